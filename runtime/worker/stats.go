package worker

import (
	"sync"
	"sync/atomic"
)

// Stats says what a pool is doing and has done since it was made.
type Stats struct {
	// Workers is the number of worker processes alive, and RSS the sum of their
	// resident memory in bytes when it was last measured, at most a second ago.
	Workers int
	RSS     int64
	// Running is the number of calls inside the pool, waiting ones included.
	Running int64
	// Starts counts workers started; Ends counts those that ended, by reason:
	// crash, jail, timeout, cancelled, compile, start, memory, protocol, idle, evicted,
	// retired, closed.
	Starts uint64
	Ends   map[string]uint64
	// Calls counts calls and descriptions asked for; Reruns those run again because
	// their worker was lost through no fault of theirs; Late the answers that came
	// when their caller had left.
	Calls, Reruns, Late uint64
}

// counters is what Stats is made from.
type counters struct {
	starts, calls, reruns, late atomic.Uint64
	running                     atomic.Int64

	mu   sync.Mutex
	ends map[reason]uint64
}

func (c *counters) ended(why reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = map[reason]uint64{}
	}
	c.ends[why]++
}

// Stats returns the pool's figures; the map is the caller's own.
func (p *Pool) Stats() Stats {
	s := Stats{
		Running: p.count.running.Load(),
		Starts:  p.count.starts.Load(), Calls: p.count.calls.Load(),
		Reruns: p.count.reruns.Load(), Late: p.count.late.Load(),
		Ends: map[string]uint64{},
	}
	for _, proc := range p.processes() {
		if proc.reason() == "" {
			s.Workers++
			s.RSS += proc.rss.Load()
		}
	}
	p.count.mu.Lock()
	defer p.count.mu.Unlock()
	for why, n := range p.count.ends {
		s.Ends[string(why)] = n
	}
	return s
}
