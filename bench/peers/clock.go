package main

import (
	"fmt"
	"time"
)

// A clock says how much time has gone by.
type clock struct {
	name string
	read func() time.Duration
	// elsewhere is what processes of ours have taken that read does not see.
	elsewhere time.Duration
}

func (c *clock) now() time.Duration { return c.read() + c.elsewhere }

// add counts time that another process took for this one.
func (c *clock) add(d time.Duration) {
	if c.name == cpuClock {
		c.elsewhere += d
	}
}

const (
	wallClock = "wall"
	cpuClock  = "cpu"
)

// clockNamed returns the clock of that name: wall, or cpu, which is the processor
// time of this process with all its threads, the collector's too. That one hardly
// notices what else a machine does.
func clockNamed(name string) (*clock, error) {
	switch name {
	case wallClock:
		start := time.Now()
		return &clock{name: name, read: func() time.Duration { return time.Since(start) }}, nil
	case cpuClock:
		if _, err := processorTime(); err != nil {
			return nil, fmt.Errorf("-clock cpu: %w", err)
		}
		return &clock{name: name, read: func() time.Duration {
			t, err := processorTime()
			if err != nil {
				panic(err) // it worked above, and takes nothing that could fail
			}
			return t
		}}, nil
	}
	return nil, fmt.Errorf("-clock %q: allowed are wall and cpu", name)
}
