package worker

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// reason says why a worker ended.
type reason string

const (
	endCrash     reason = "crash"     // by itself, or by someone else's hand
	endJail      reason = "jail"      // it tried what its jail forbids
	endTimeout   reason = "timeout"   // a call was over its wall limit
	endCancelled reason = "cancelled" // a cancelled call did not end by itself
	endCompile   reason = "compile"   // compiling was over its limit
	endStart     reason = "start"     // it did not say hello
	endFrozen    reason = "frozen"    // it answered nothing, and did nothing
	endMemory    reason = "memory"    // it was over its memory limit
	endProtocol  reason = "protocol"  // it said what it may not
	endIdle      reason = "idle"      // nobody called for a while
	endEvicted   reason = "evicted"   // others needed the memory
	endRetired   reason = "retired"   // its version is no longer wanted
	endClosed    reason = "closed"    // the pool was closed
)

// ours reports whether the pool ended a worker that did nothing wrong.
func (r reason) ours() bool {
	return r == endIdle || r == endEvicted || r == endRetired || r == endClosed
}

// broken reports whether the worker itself went wrong.
func (r reason) broken() bool {
	return r == endCrash || r == endProtocol || r == endMemory || r == endFrozen || r == endJail
}

// deadly reports whether a module whose workers keep ending so does harm: not if
// they were ended by us or by a caller, nor for being slow to start or compile,
// which a busy machine can be to blame for.
func (r reason) deadly() bool { return r.broken() || r == endTimeout }

// process is the parent's side of one worker.
type process struct {
	child *child
	o     processOptions
	out   chan frame
	hello chan struct{} // closed when the worker said hello
	ended chan struct{} // closed when the worker is being killed or gone
	gone  chan struct{} // closed when it is reaped and every call is settled
	gated sync.WaitGroup
	turns chan struct{} // one for each gated operation being served
	rss   atomic.Int64
	pulse pulse
	// loaded is set once the module is, served once any other answer came.
	loaded, served atomic.Bool

	mu    sync.Mutex
	last  uint64 // the highest call number
	calls map[uint64]*call
	why   reason // empty while alive
}

type processOptions struct {
	log *slog.Logger
	// calls is the most calls at once.
	calls int
	// grace is how long a call that was left may go on before the worker is killed.
	grace time.Duration
	// onEnd is told once, as soon as the worker will take no more calls.
	onEnd func(*process, reason)
	count *counters
}

// adopt takes over a child that was just started.
func adopt(c *child, o processOptions) *process {
	p := &process{
		child: c, o: o,
		out:   make(chan frame, 2*o.calls),
		hello: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
		turns: make(chan struct{}, o.calls),
		calls: map[uint64]*call{},
	}
	go p.write()
	go p.read()
	return p
}

// end kills the worker, once. Calls are settled when its output is read out, so
// that an answer already on its way still counts.
func (p *process) end(why reason) {
	p.mu.Lock()
	if p.why != "" {
		p.mu.Unlock()
		return
	}
	p.why = why
	close(p.ended)
	p.mu.Unlock()
	p.child.kill()
	p.o.onEnd(p, why)
}

// reason says why the worker ended; it is empty while the worker lives.
func (p *process) reason() reason {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *process) write() {
	w := newFrameWriter(p.child.in)
	for {
		select {
		case f := <-p.out:
			if w.write(f) != nil { // it is gone, or going: the reader says why
				p.child.kill()
				return
			}
		case <-p.ended:
			return
		}
	}
}

func (p *process) read() {
	err := p.receive(bufio.NewReaderSize(p.child.out, firstChunk))
	if err != nil {
		p.end(endProtocol)
	}
	p.child.kill() // its output has ended, so should it, if it has not
	waited := p.child.wait()
	if endedByJail(waited) {
		p.end(endJail)
	}
	if outOfMemory(p.child.said()) {
		p.end(endMemory)
	}
	p.end(endCrash) // if nothing else had ended it
	starved := p.reason() == endMemory
	for _, c := range p.takeAll() {
		c.settle(outcome{lost: true, starved: starved && c.kind == kindCall})
	}
	p.gated.Wait()
	p.report(err, waited)
	// Both ends are ours alone by now, and the child is reaped.
	_, _ = p.child.in.Close(), p.child.out.Close()
	close(p.gone)
}

// outOfMemory reports whether a worker's last words are those of a Go runtime that
// the system refused memory (Go 1.26, runtime/malloc.go and mem_linux.go).
func outOfMemory(words string) bool {
	for line := range strings.Lines(words) {
		if why, fatal := strings.CutPrefix(line, "fatal error: "); fatal {
			return strings.Contains(why, "out of memory") || strings.Contains(why, "cannot allocate")
		}
	}
	return false
}

// report logs what an operator may want to know; nobody else hears it.
func (p *process) report(broke, waited error) {
	level, attrs := slog.LevelWarn, []any{"reason", string(p.why), "pid", p.child.pid}
	if p.why.ours() {
		level = slog.LevelDebug
	} else {
		attrs = append(attrs, "exit", fmt.Sprint(waited), "stderr", p.child.said())
	}
	if broke != nil {
		attrs = append(attrs, "err", broke.Error())
	}
	p.o.log.Log(context.Background(), level, "worker ended", attrs...)
}

func (p *process) takeAll() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*call, 0, len(p.calls))
	for _, c := range p.calls {
		all = append(all, c)
	}
	clear(p.calls)
	return all
}

func (p *process) find(id uint64) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// take removes a call, so that whoever gets it settles it.
func (p *process) take(id uint64) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	delete(p.calls, id)
	return c
}

// do sends c and waits for its outcome, or until c.ctx ends: then the outcome is
// the failure that because makes of the end, and a worker that does not finish
// the call within the grace is killed.
func (p *process) do(c *call, because func(context.Context) (*abi.Failure, reason)) outcome {
	if !p.register(c) {
		c.free()
		return outcome{lost: true}
	}
	select {
	case p.out <- frame{kind: c.kind, id: c.id, head: c.head, tail: c.tail}:
	case <-p.ended: // the reader settles it
	case <-c.ctx.Done():
		if p.take(c.id) != nil {
			c.settle(outcome{})
		}
		failure, _ := because(c.ctx)
		return outcome{failure: failure}
	}
	select {
	case o := <-c.answer:
		return o
	case <-c.ctx.Done():
		failure, why := because(c.ctx)
		p.abandon(c, why)
		return outcome{failure: failure}
	}
}

func (p *process) register(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != "" {
		return false
	}
	p.last++
	c.id, c.answer = p.last, make(chan outcome, 1)
	p.calls[c.id] = c
	return true
}

// abandon lets c's caller go at once. A worker that is stuck is not waited for:
// if the cancel does not fit its queue, it is killed like one that ignores it.
func (p *process) abandon(c *call, why reason) {
	c.leave()
	c.reapAfter(p.o.grace, func() {
		if p.find(c.id) != nil {
			p.end(why)
		}
	})
	if p.find(c.id) == nil { // settled meanwhile: the timer finds nothing
		return
	}
	select {
	case p.out <- frame{kind: kindCancel, id: c.id}:
	default:
	}
}
