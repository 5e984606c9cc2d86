package session

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
	"github.com/hutch-run/hutch/runtime/tail"
)

// cache holds what is live of threads: those that are used, and lately used ones.
type cache struct {
	cmu       sync.Mutex
	threads   map[Ref]*live
	idle      *list.List // of *live, the one used least lately first
	idleBytes int64
	debts
}

func (c *cache) init() {
	c.threads, c.idle, c.owed = map[Ref]*live{}, list.New(), map[Ref][]debt{}
}

// live is what is held of one thread.
type live struct {
	k   *Keeper
	ref Ref
	// turn holds one token: whoever has it may read the thread from the store, and
	// change it.
	turn chan struct{}

	// By the cache's lock: who uses it, and its place among the idle ones.
	uses  int
	place *list.Element
	cost  int64

	mu     sync.Mutex // of all below
	loaded bool
	thread Thread
	window history.Window
	// tail is that of the run that is active, speaker.
	tail    tail.Tail
	speaker *Run
	streams map[*Stream]struct{}

	// removals counts how often the thread was removed.
	removals atomic.Int64
}

func (th *live) notFound() error { return fmt.Errorf("thread %s: %w", quoted(th.ref.ID), ErrNotFound) }

// hold returns the live thread, for the caller to release.
func (k *Keeper) hold(ref Ref) *live {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	th := k.threads[ref]
	if th == nil {
		th = &live{k: k, ref: ref, turn: make(chan struct{}, 1), streams: map[*Stream]struct{}{}}
		th.turn <- struct{}{}
		k.threads[ref] = th
	}
	if th.place != nil {
		k.idle.Remove(th.place)
		k.idleBytes -= th.cost
		th.place = nil
	}
	th.uses++
	return th
}

// release ends a use. A thread that nobody uses stays a while, if there is room.
func (k *Keeper) release(th *live) {
	loaded, cost := th.weight()
	k.cmu.Lock()
	defer k.cmu.Unlock()
	if th.uses--; th.uses > 0 {
		return
	}
	if k.stateless || !loaded {
		delete(k.threads, th.ref)
		return
	}
	th.cost, th.place = cost, k.idle.PushBack(th)
	k.idleBytes += cost
	for k.idle.Len() > k.o.Cache.Messages || k.idleBytes > k.o.Cache.Bytes {
		oldest := k.idle.Front().Value.(*live)
		k.idle.Remove(oldest.place)
		k.idleBytes -= oldest.cost
		delete(k.threads, oldest.ref)
	}
}

func (th *live) weight() (loaded bool, bytes int64) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.loaded, th.window.Bytes() + int64(len(th.thread.State)) + 1024
}

// gone forgets threads that the store has removed, and what they owe with them.
func (k *Keeper) gone(refs []Ref) {
	for _, ref := range refs {
		k.settle(ref, k.owes(ref))
		k.cmu.Lock()
		th := k.threads[ref]
		k.cmu.Unlock()
		if th != nil {
			th.removed()
		}
	}
}

// removed ends the streams of a thread that the store has removed, but those of runs that
// are yet to begin, and has it read anew. If a run speaks, the thread has begun anew since.
func (th *live) removed() {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.speaker != nil {
		return
	}
	th.removals.Add(1)
	th.forget()
	th.cutOff(th.notFound())
}

// forget has the thread read anew by its next user. The caller has the lock.
func (th *live) forget() {
	th.loaded, th.thread, th.window = false, Thread{}, th.k.window()
}

func (th *live) lock(ctx context.Context) error {
	select {
	case <-th.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (th *live) unlock() { th.turn <- struct{}{} }

// load reads the thread and its window, if need be. The caller has the turn.
func (th *live) load(ctx context.Context) error {
	th.mu.Lock()
	loaded := th.loaded
	th.mu.Unlock()
	if loaded {
		return nil
	}
	t, err := th.k.store.Thread(ctx, th.ref)
	if errors.Is(err, ErrNotFound) {
		t, err = Thread{Ref: th.ref}, nil
	}
	if err != nil {
		return err
	}
	w, err := th.readWindow(ctx, 0)
	if err != nil {
		return err
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	if was := th.thread.Head; was > 0 && was != t.Head { // a change was kept, and its maker was told that it was not
		th.cutOff(ErrSlow)
	}
	th.thread, th.window, th.loaded = t, w, true
	return nil
}

// window is an empty one.
func (k *Keeper) window() history.Window {
	return history.NewWindow(k.o.Window.Messages, k.o.Window.Bytes)
}

// cutOff ends streams, but those of runs that are yet to begin. The caller has the lock.
func (th *live) cutOff(why error) {
	for s := range th.streams {
		if s.run == "" || !th.k.toBegin(runKey{th.ref, s.run}) {
			s.end(why)
			delete(th.streams, s)
		}
	}
}

// readWindow reads the end of the thread, or of what is before a message.
func (th *live) readWindow(ctx context.Context, before int64) (history.Window, error) {
	w := th.k.window()
	stored, err := th.last(ctx, before)
	if err != nil {
		return w, err
	}
	began, err := th.began(ctx, stored)
	if err != nil {
		return w, err
	}
	for _, m := range began {
		w.Add(m)
	}
	for _, s := range stored {
		w.Add(s.Message)
	}
	return w, nil
}

// last reads as much as is shown of what is before a message, or of the end for 0.
func (th *live) last(ctx context.Context, before int64) ([]Stored, error) {
	return th.k.store.ThreadMessages(ctx, th.ref, MessageQuery{Last: true, Before: before, Limit: th.k.o.Window.Messages, MaxBytes: th.k.o.Window.Bytes})
}

// began reads what else a model has to be shown of a turn that began before what is read
// of the thread: the question of the user, and the calls that the first results answer.
func (th *live) began(ctx context.Context, stored []Stored) (began []chat.Message, err error) {
	if slices.ContainsFunc(stored, func(s Stored) bool { return s.Role == chat.User }) {
		return nil, nil
	}
	apart := len(stored) > 0 && stored[0].Role == chat.Tool // from its call
	for page := stored; len(page) > 0; {
		if page, err = th.last(ctx, page[0].Number); err != nil {
			return nil, err
		}
		for _, s := range slices.Backward(page) {
			if apart || s.Role == chat.User {
				began = slices.Insert(began, 0, s.Message)
				apart = apart && s.Role == chat.Tool
			}
			if s.Role == chat.User {
				return began, nil
			}
		}
	}
	return began, nil
}

// head is the number of the thread's last change.
func (th *live) head() int64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.thread.Head
}

// commit makes a change, and takes it over in one step with what it means for those who
// listen: then runs with the lock. The caller has the turn.
func (th *live) commit(ctx context.Context, c Change, then func(), jobs ...event.Job) error {
	var left history.Window
	if c.DropFrom > 0 { // read before: a run must not begin and then not know what was said
		var err error
		if left, err = th.readWindow(ctx, c.DropFrom); err != nil {
			return err
		}
	}
	done, err := th.k.store.CommitThread(ctx, c, jobs...)
	if err != nil {
		th.mu.Lock()
		th.loaded = false // what the store has is what counts
		th.mu.Unlock()
		return err
	}
	th.k.gone(done.Gone)
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.k.stateless && c.State == nil {
		done.Thread.State = th.thread.State
	}
	th.thread = done.Thread
	if c.DropFrom > 0 {
		th.window = left
	}
	if c.TrimTo > 0 {
		th.loaded = false
	}
	for _, m := range c.Messages {
		th.window.Add(m)
	}
	then()
	return nil
}

// publish sends an item to all streams. The caller has the lock.
func (th *live) publish(i Item) {
	if th.k.stateless { // nothing can be taken up again
		if i.Number = 0; i.Event == nil {
			return
		}
	}
	if len(th.streams) == 0 {
		return
	}
	size := sizeOfEvent(i.Event)
	for s := range th.streams {
		if !s.push(i, size) {
			delete(th.streams, s)
		}
	}
}

// finish ends the streams that are of one run. The caller has the lock.
func (th *live) finish(r *Run) {
	for s := range th.streams {
		if s.run == r.rec.ID {
			s.end(io.EOF)
			delete(th.streams, s)
		}
	}
}

// sizeOfEvent is about what an event takes in memory.
func sizeOfEvent(e event.Event) int {
	const small = 256
	switch e := e.(type) {
	case nil, event.TextMessageStart, event.TextMessageEnd, event.ToolCallStart, event.ToolCallEnd, event.StepStarted, event.StepFinished,
		event.ReasoningStart, event.ReasoningMessageStart, event.ReasoningMessageEnd, event.ReasoningEnd:
		return small
	case event.TextMessageContent:
		return small + len(e.Delta)
	case event.ToolCallArgs:
		return small + len(e.Delta)
	case event.ReasoningMessageContent:
		return small + len(e.Delta)
	case event.ToolCallResult:
		return small + len(e.Content.String())
	}
	body, err := json.Marshal(e)
	if err != nil { // it was written before
		return small
	}
	return small + len(body)
}
