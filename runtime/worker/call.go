package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// request is what is asked of a worker; it may be asked twice.
type request struct {
	kind kind
	// head and tail are the frame's body.
	head, tail []byte
	// max is the most bytes the answer may have.
	max int
	inv abi.Invocation
}

// call is one pending reply: a request that a worker was given, and the one-shot
// channel its outcome comes back on.
type call struct {
	request
	id uint64
	// ctx ends when the caller no longer waits; gated operations get it.
	ctx context.Context
	// free gives the call's turn back. It is called once, when the worker is done
	// with the call or gone, which may be long after the caller left.
	free func()

	answer chan outcome // one place, filled once

	mu sync.Mutex
	// left is set when the caller stops waiting: no callback runs afterwards.
	left bool
	// reap kills the worker of a call that was left and does not end.
	reap *time.Timer
	// asked counts gated operations handed to the host, asking is set while one
	// is unanswered; lines and steps count what was forwarded.
	asked        int
	asking       bool
	lines, steps int
}

// outcome is how a call ended.
type outcome struct {
	body    []byte
	usage   abi.Usage
	failure *abi.Failure
	// lost: the worker ended first. gated: the call had made a gated operation, so
	// running it again might do something twice.
	lost, gated bool
	// starved: the worker was ended for using too much memory, or ended because the
	// kernel refused it more.
	starved bool
}

func (o outcome) result() ([]byte, abi.Usage, error) {
	switch {
	case o.lost && o.starved:
		return nil, o.usage, abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "the tool used up the memory of its process")
	case o.lost:
		return nil, o.usage, abi.Failf(abi.ClassWorkerLost, "the tool's process ended during the call")
	case o.failure != nil:
		return nil, o.usage, o.failure
	default:
		return o.body, o.usage, nil
	}
}

// settle hands out the outcome. Whoever took the call out of its process's table
// calls it, so it happens once.
func (c *call) settle(o outcome) (late bool) {
	c.mu.Lock()
	late = c.left
	if c.reap != nil {
		c.reap.Stop()
	}
	o.gated = c.asked > 0
	o.usage.HostCalls = max(o.usage.HostCalls, c.asked)
	o.usage.LogLines = max(o.usage.LogLines, c.lines)
	c.mu.Unlock()
	c.free()
	c.answer <- o
	return late
}

// leave is the caller's way out. Afterwards no callback of the call runs.
func (c *call) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
}

// reapAfter arranges for kill if the worker is not done with the call by then.
func (c *call) reapAfter(grace time.Duration, kill func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reap = time.AfterFunc(grace, kill)
}

// wallError is the cause of a context that ends with a call's wall limit.
type wallError struct{ wall time.Duration }

func (e *wallError) Error() string {
	return fmt.Sprintf("the call took longer than %v, its limit", e.wall)
}
