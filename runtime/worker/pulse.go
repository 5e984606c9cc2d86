package worker

import "sync"

// pulse counts a worker's pings and pongs. What counts are rounds of the
// sweeper, not time: if the whole machine, or this process, stood still for a
// while, a worker is not to blame.
type pulse struct {
	mu          sync.Mutex
	sent, heard uint64
}

// answered notes a pong and reports whether there was such a ping.
func (u *pulse) answered(id uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id <= u.heard || id > u.sent {
		return false
	}
	u.heard = id
	return true
}

// next returns the number of the next ping and how many are unanswered.
func (u *pulse) next() (id, missed uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	missed = u.sent - u.heard
	u.sent++
	return u.sent, missed
}

// endFrozen pings every worker that has loaded its module, and kills those that
// have answered none for as long as Options.Heartbeat.
//
// No guest keeps its worker from answering: it comes back for fuel every few
// milliseconds, and what one instruction may take is bounded by its memory.
func (p *Pool) endFrozen() {
	most := max(uint64(p.o.Heartbeat/sweepEvery), 1)
	for _, proc := range p.processes() {
		if !proc.loaded.Load() {
			continue // compiling has a limit of its own
		}
		id, missed := proc.pulse.next()
		if missed >= most {
			proc.end(endFrozen)
			continue
		}
		select {
		case proc.out <- frame{kind: kindPing, id: id}:
		default: // it does not read: the ping is missed like one it does not answer
		}
	}
}
