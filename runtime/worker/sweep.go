package worker

import (
	"maps"
	"slices"
	"time"
)

// sweepEvery is how often memory is measured and idle workers are looked for,
// while there are workers at all.
const sweepEvery = time.Second

// sweep runs until the pool closes. Without workers it sleeps.
func (p *Pool) sweep() {
	var tick <-chan time.Time // kept while workers start, or many starts would hold it up
	var pinged time.Time
	for {
		if tick == nil && len(p.processes()) > 0 {
			tick = time.After(min(sweepEvery, p.o.IdleTTL))
		}
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-tick:
			tick = nil
			p.endIdle()
			p.evict()
			p.endOversized()
			if time.Since(pinged) >= sweepEvery {
				pinged = time.Now()
				p.endFrozen()
			}
		}
	}
}

// nudge wakes the sweeper after a first worker started.
func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Pool) endIdle() {
	for _, s := range p.active() {
		expired := func() bool { return time.Since(s.idleSince) >= p.o.IdleTTL }
		if proc := s.surrender(expired); proc != nil {
			proc.end(endIdle)
		}
	}
}

// active returns the slots that have a process.
func (p *Pool) active() []*slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := make(map[*slot]bool, len(p.procs))
	for _, s := range p.procs {
		set[s] = true
	}
	return slices.Collect(maps.Keys(set))
}

// evict ends idle workers, the least recently used first, until the rest is
// within the memory budget.
func (p *Pool) evict() {
	total := p.weigh()
	if total <= p.o.MemoryBudget {
		return
	}
	slots := p.active()
	idle := make(map[*slot]time.Time, len(slots))
	for _, s := range slots {
		s.mu.Lock()
		idle[s] = s.idleSince
		s.mu.Unlock()
	}
	slices.SortFunc(slots, func(a, b *slot) int { return idle[a].Compare(idle[b]) })
	for _, s := range slots {
		if total <= p.o.MemoryBudget {
			return
		}
		if proc := s.surrender(func() bool { return true }); proc != nil {
			proc.end(endEvicted)
			total -= proc.rss.Load()
		}
	}
}

// weigh measures every worker and returns the sum of those still alive.
func (p *Pool) weigh() (total int64) {
	procs := p.processes()
	pids := make([]int, len(procs))
	for i, proc := range procs {
		pids[i] = proc.child.pid
	}
	sizes := p.measure(pids)
	for _, proc := range procs {
		proc.rss.Store(sizes[proc.child.pid])
		if proc.reason() == "" {
			total += sizes[proc.child.pid]
		}
	}
	return total
}

// endOversized kills workers over their own memory limit. Where the platform has
// a hard limit, that one comes first.
func (p *Pool) endOversized() {
	p.mu.Lock()
	var over []*process
	for proc, s := range p.procs {
		if proc.rss.Load() > p.ceiling(s.module.Limits) {
			over = append(over, proc)
		}
	}
	p.mu.Unlock()
	for _, proc := range over {
		proc.end(endMemory)
	}
}
