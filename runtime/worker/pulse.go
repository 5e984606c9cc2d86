package worker

import (
	"sync"
	"time"
)

// pulse counts a worker's pings and pongs. What counts are rounds of the
// sweeper, not time: if the whole machine, or this process, stood still for a
// while, a worker is not to blame.
type pulse struct {
	mu          sync.Mutex
	sent, heard uint64
	// busy is how much processor time the worker had used when it last answered;
	// unknown where the platform does not say.
	busy  time.Duration
	known bool
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

// next returns the number of the next ping and how many are unanswered. used is
// the worker's processor time so far.
func (u *pulse) next(used time.Duration, known bool) (id, missed uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	missed = u.sent - u.heard
	if missed == 0 {
		u.busy, u.known = used, known
	}
	u.sent++
	return u.sent, missed
}

// idle reports whether the worker is known to have used no processor time since
// it last answered.
func (u *pulse) idle(used time.Duration, known bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return known && u.known && used == u.busy
}

// endFrozen pings every worker that has loaded its module, and kills those that
// have answered none for as long as Options.Heartbeat.
//
// A guest that computes can keep its worker from answering: the worker's
// collector waits for it, and everybody for the collector. That is no fault while
// a call runs, whose own wall limit ends it. A worker that neither answers nor
// computes is stopped, whatever it was doing.
func (p *Pool) endFrozen() {
	most := max(uint64(p.o.Heartbeat/sweepEvery), 1)
	for _, proc := range p.processes() {
		if !proc.loaded.Load() {
			continue // compiling has a limit of its own
		}
		used, known := p.busyTime(proc.child.pid)
		id, missed := proc.pulse.next(used, known)
		if missed >= most && (!proc.occupied() || proc.pulse.idle(used, known)) {
			proc.end(endFrozen)
			continue
		}
		select {
		case proc.out <- frame{kind: kindPing, id: id}:
		default: // it does not read: the ping is missed like one it does not answer
		}
	}
}

// occupied reports whether the worker has a call.
func (p *process) occupied() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls) > 0
}
