package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hutch-run/hutch/protocol/event"
)

// An Item is what a [Stream] gives.
type Item struct {
	// Number, unless it is 0, says that all events up to it are durable and have been
	// given: a stream attached behind it goes on without a gap. An event without one is
	// part of something that is not durable yet; who attaches again gets that from its
	// start.
	Number int64
	// RunID is the run's.
	RunID string
	// Event is nil if only the number is news.
	Event event.Event
}

// A Stream is what happens in a thread, from some number on: what is kept, then what
// comes. Its reader must close it. Closing it does nothing to a run.
type Stream struct {
	th *live
	// run is the one run that it is about; "" is all.
	run string
	// removals is how often the thread had been removed when the stream was made, and
	// behind the number that it tells no end of a run before.
	removals, behind int64
	// last is the number that it ends with; 0 is none.
	last int64
	// instead is given if there is nothing up to last any more.
	instead []event.Event

	mu    sync.Mutex
	items []Item
	bytes int
	why   error         // why nothing follows the items
	old   *Record       // the run that is to be given from its beginning, instead of one to come
	wake  chan struct{} // holds one token when there is something new

	// Of the reader alone.
	at     int64 // the last number that was given or passed over
	given  bool
	joined bool
	closed bool
}

// replayPage is how many events are read at once.
const replayPage = 256

// newStream is a stream that begins behind a number. It is a use of the thread.
func newStream(th *live, run string, after int64) *Stream {
	th.k.hold(th.ref)
	return &Stream{th: th, run: run, at: after, removals: th.removals.Load(), wake: make(chan struct{}, 1)}
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end lets nothing follow.
func (s *Stream) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = why
	}
	s.signal()
}

// pop takes the next item, if there is one. Otherwise err says whether more will come.
func (s *Stream) pop() (i Item, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) == 0 {
		s.items = nil
		s.lags(-s.bytes)
		return i, false, s.why
	}
	i, s.items[0] = s.items[0], Item{}
	s.items = s.items[1:]
	s.lags(-min(s.bytes, sizeOfEvent(i.Event)))
	return i, true, nil
}

// Next waits for the next item. It returns [io.EOF] when the run has ended that the
// stream is about, [ErrSlow] when it was cut off, [ErrNotFound] when the thread is gone,
// [ErrClosed] when the keeper is. It is called by one goroutine at a time.
func (s *Stream) Next(ctx context.Context) (Item, error) {
	for {
		i, ok, err := s.pop()
		if ok || err != nil {
			return i, err
		}
		s.turn()
		if !s.joined {
			if err := s.replay(ctx); err != nil {
				return Item{}, err
			}
			continue
		}
		select {
		case <-s.wake:
		case <-s.th.k.closed():
			s.end(ErrClosed)
		case <-ctx.Done():
			return Item{}, ctx.Err()
		}
	}
}

// replay reads a page of what is kept and, if nothing is left of it, joins those who
// listen. Nothing is read while the thread is locked. Whoever joins has seen all up to
// the thread's head and nothing behind it, and the head moves in one step with what is
// sent: so nothing is lost between the two, and nothing comes twice.
func (s *Stream) replay(ctx context.Context) error {
	if s.th.removals.Load() != s.removals {
		return s.th.notFound()
	}
	upTo := s.last
	if upTo == 0 {
		upTo = s.th.head()
	}
	page, err := s.page(ctx, upTo)
	if err != nil {
		return err
	}
	for _, kept := range page {
		s.at = kept.Number
		if s.run != "" && s.run != kept.Run {
			continue
		}
		e, err := event.Decode(kept.Body)
		if errors.Is(err, event.ErrUnknownType) {
			continue
		}
		if err != nil {
			return fmt.Errorf("event %d of the thread: %w", kept.Number, err)
		}
		s.items = append(s.items, Item{kept.Number, kept.Run, e})
		s.given = true
	}
	if len(page) == replayPage {
		return nil
	}
	if s.last > 0 {
		s.joined = true
		if s.th.removals.Load() != s.removals { // with some of what was to be read
			s.end(s.th.notFound())
			return nil
		}
		if !s.given {
			s.giveInstead()
		}
		s.end(io.EOF)
		return nil
	}
	s.at = max(s.at, upTo)
	s.join()
	return nil
}

// page reads what is kept up to a number, and nothing that the thread's streams have not
// been told of.
func (s *Stream) page(ctx context.Context, upTo int64) ([]Kept, error) {
	if s.at >= upTo {
		return nil, nil
	}
	return s.th.k.store.ThreadEvents(ctx, s.th.ref, EventQuery{After: s.at, UpTo: upTo, Limit: replayPage})
}

// turnTo makes the stream that of a run which has ended: from its beginning, unless some of
// it was given already, as part of what is kept. It is the reader's to call.
func (s *Stream) turnTo(old Record) {
	if !s.given {
		s.at = max(0, old.First-1)
	}
	s.last, s.instead = old.Last, s.th.k.unbegun(s.th.ref.ID, old)
	if s.joined = old.Last == 0; s.joined {
		s.giveInstead()
		s.end(io.EOF)
	}
}

// turn looks whether the stream is to be that of a run which has ended.
func (s *Stream) turn() {
	s.mu.Lock()
	old := s.old
	s.old = nil
	s.mu.Unlock()
	if old != nil {
		s.turnTo(*old)
	}
}

// giveInstead gives what stands for a run of which nothing is left.
func (s *Stream) giveInstead() {
	for _, e := range s.instead {
		s.items = append(s.items, Item{RunID: s.run, Event: e})
	}
}

// join begins to listen if nothing has been kept since the last page.
func (s *Stream) join() {
	th := s.th
	th.mu.Lock()
	defer th.mu.Unlock()
	if s.joined = th.thread.Head <= s.at; !s.joined {
		return
	}
	if th.removals.Load() != s.removals {
		s.end(th.notFound())
		return
	}
	th.streams[s] = struct{}{}
	if r := th.speaker; r != nil && (s.run == "" || s.run == r.rec.ID) {
		for _, e := range th.tail.SoFar() {
			s.items = append(s.items, Item{RunID: r.rec.ID, Event: e})
		}
		return
	}
	if th.speaker == nil {
		s.items = append(s.items, th.k.untold(th.ref, s.run, s.behind)...)
	}
	if s.run != "" && !th.k.expects(runKey{th.ref, s.run}) {
		delete(th.streams, s)
		s.end(io.EOF)
	}
}

// Close ends the stream for its reader.
func (s *Stream) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.th.mu.Lock()
	delete(s.th.streams, s)
	s.th.mu.Unlock()
	s.end(ErrClosed)
	s.mu.Lock()
	s.items = nil
	s.lags(-s.bytes)
	s.mu.Unlock()
	s.th.k.release(s.th)
}

// Attach returns a stream of a thread: the events behind the number after, and then
// what comes, of all runs. What has been removed by then is passed over.
func (k *Keeper) Attach(ctx context.Context, p Principal, ref Ref, after int64) (*Stream, error) {
	if err := p.mayRead(ref); err != nil {
		return nil, err
	}
	th := k.hold(ref)
	defer k.release(th)
	removals := th.removals.Load()
	if err := th.known(ctx); err != nil {
		return nil, err
	}
	s := newStream(th, "", after)
	s.removals = removals
	return s, nil
}

// Follow returns a stream of a thread from the beginning of the run in progress on, or
// from now on if there is none, and then of all that follow.
func (k *Keeper) Follow(ctx context.Context, p Principal, ref Ref) (*Stream, error) {
	s, err := k.Attach(ctx, p, ref, 0)
	if err != nil {
		return nil, err
	}
	s.th.mu.Lock()
	defer s.th.mu.Unlock()
	s.at, s.behind = s.th.thread.Head, s.th.thread.Head
	if r := s.th.speaker; r != nil {
		s.at = r.rec.First - 1
	}
	return s, nil
}

// AttachRun returns a stream of one run, from its beginning to its end.
func (k *Keeper) AttachRun(ctx context.Context, p Principal, ref Ref, runID string) (*Stream, error) {
	if _, err := k.Thread(ctx, p, ref); err != nil {
		return nil, err
	}
	th := k.hold(ref)
	defer k.release(th)
	if err := th.known(ctx); err != nil {
		return nil, err
	}
	s, err := k.before(ctx, th, runID, "")
	if err == nil && s == nil {
		err = fmt.Errorf("run %s: %w", quoted(runID), ErrNotFound)
	}
	return s, err
}

// known reads the thread, and says whether there is one.
func (th *live) known(ctx context.Context) error {
	if err := th.lock(ctx); err != nil {
		return err
	}
	defer th.unlock()
	if err := th.load(ctx); err != nil {
		return err
	}
	if th.head() == 0 || th.k.stateless { // nothing is kept that could be attached to
		return fmt.Errorf("thread %s: %w", quoted(th.ref.ID), ErrNotFound)
	}
	return nil
}
