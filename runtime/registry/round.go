package registry

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// A round is what one set of modules still waits for. A newer set ends it; what
// both wait for is carried over, so that nothing is admitted twice at once.
type round struct {
	ctx     context.Context // of what begins while it lasts
	base    *snapshot       // who had which name when it began
	waiting map[string]bool // digests without a verdict
	prove   map[string]bool // digests whose manifest alone is no verdict
	over    chan struct{}   // closed when nothing is waited for, or by a newer one
}

// begin makes wanted, in its final order, the whole set and publishes what is
// known of it. The rest is admitted meanwhile. applying is held.
func (r *Registry) begin(ctx context.Context, wanted []tool.Candidate) (over <-chan struct{}) {
	unknown, known := r.recall(wanted)
	prove := r.replacing(wanted)
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &round{ctx: ctx, base: r.current.Load(), waiting: map[string]bool{}, prove: prove, over: make(chan struct{})}
	if r.closed.Load() {
		close(next.over)
		return next.over
	}
	if r.round != nil {
		close(r.round.over)
	}
	r.round, r.wanted = next, wanted
	r.retain(known)
	r.enqueue(unknown)
	if len(next.waiting) == 0 {
		r.settle()
		return next.over
	}
	r.publishLocked(next.base)
	r.forget()
	r.fill()
	return next.over
}

// enqueue lines up what is to be admitted and no longer what is not wanted. New
// ones go first: those in line may be hanging one after the other. mu is held.
func (r *Registry) enqueue(unknown []tool.Candidate) {
	wanted := map[string]tool.Candidate{}
	for _, c := range unknown {
		if !r.settled(c.Digest) { // not even since it was looked up
			wanted[c.Digest] = c
			r.round.waiting[c.Digest] = true
		}
	}
	var before []tool.Candidate
	for _, c := range r.queue {
		if now, still := wanted[c.Digest]; still {
			before = append(before, now)
			delete(wanted, c.Digest)
		}
	}
	r.queue = slices.DeleteFunc(slices.Clone(unknown), func(c tool.Candidate) bool {
		_, fresh := wanted[c.Digest]
		return !fresh || r.admitting[c.Digest]
	})
	r.queue = append(r.queue, before...)
}

// settled reports whether there is a verdict that is enough. mu is held.
func (r *Registry) settled(digest string) bool {
	v, known := r.verdicts[digest]
	return known && (!v.unproven() || !r.round.prove[digest])
}

// fill begins admissions while there is room. mu is held.
func (r *Registry) fill() {
	for len(r.admitting) < admissions && len(r.queue) > 0 {
		c, ctx := r.queue[0], r.round.ctx
		r.queue = r.queue[1:]
		r.admitting[c.Digest] = true
		r.running.Go(func() {
			defer r.recovered("what a module became was not published")
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(r.life, cancel)()
			r.admitted(c, r.admit(ctx, c))
		})
	}
}

// admitted notes what came of an admission and begins the next.
func (r *Registry) admitted(c tool.Candidate, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.admitting, c.Digest)
	if r.closed.Load() {
		return
	}
	defer r.fill()
	if r.round == nil || !r.round.waiting[c.Digest] {
		r.retireUnused(c.Digest) // it went meanwhile
		return
	}
	if v.unproven() && r.round.prove[c.Digest] { // it became a replacement meanwhile
		r.queue = slices.Insert(r.queue, 0, c)
		return
	}
	if !r.settled(c.Digest) {
		r.verdicts[c.Digest] = v
	}
	r.described = append(r.described, c.Digest)
	delete(r.round.waiting, c.Digest)
	if len(r.round.waiting) == 0 {
		r.settle()
		return
	}
	r.publishSoon()
}

// settle ends a round that waits for nothing any more. mu is held.
func (r *Registry) settle() {
	ended := r.round
	r.round = nil
	defer close(ended.over)
	r.publishLocked(ended.base)
	r.retireUncallable()
	r.forget()
}

// publishSoon publishes verdicts while others are awaited: a module that takes
// long keeps nobody from using the others. mu is held.
func (r *Registry) publishSoon() {
	r.stale = true
	if r.soon == nil {
		r.soon = time.AfterFunc(publishEvery, r.publishStale)
	}
}

func (r *Registry) publishStale() {
	defer r.recovered("what modules became was not published")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.soon = nil
	if r.stale && r.round != nil && !r.closed.Load() {
		r.publishLocked(r.round.base)
	}
}

// recovered keeps a panic of a goroutine of ours from ending the process.
func (r *Registry) recovered(consequence string) {
	if p := recover(); p != nil {
		r.o.Logger.Error(consequence, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// end stops all rounds for good and waits for what they began. closed is set.
func (r *Registry) end() {
	r.mu.Lock()
	r.stop()
	if r.soon != nil {
		r.soon.Stop()
	}
	if r.round != nil {
		close(r.round.over)
	}
	r.round, r.queue = nil, nil
	r.mu.Unlock()
	r.running.Wait()
}
