package event

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/hutch-run/hutch/protocol/chat"
)

// GuardOptions say what a stream is about.
type GuardOptions struct {
	// ThreadID and RunID are those that the run must have; empty is any.
	ThreadID, RunID string
	// Many lets one run follow another, and lets there be none.
	Many bool
}

// ErrOrder is what a stream breaks that [Guard] ends: the order of events, or the
// shape of one. Its text is for the log.
var ErrOrder = errors.New("order of events")

// Guard keeps the rules of AG-UI (specification, "Events") in front of whoever writes
// events down, whatever comes from behind it:
//
//   - RUN_STARTED is first, and has a version; ids are those of the run.
//   - What is open is closed, last opened first, before RUN_FINISHED; and before
//     RUN_ERROR all but calls of tools, whose end would say that their arguments are
//     whole. A subagent that still runs ends as an error, or as suspended where the
//     run waits for its interrupts.
//   - RUN_FINISHED has an outcome, and a success the calls that nobody answered.
//   - Chunks become the events that they stand for.
//   - There is exactly one last event for each run.
//
// A stream that breaks a rule, yields an error, panics or just ends is ended by a
// RUN_ERROR that says no more than [ErrorOf] does. That pair has both: the event is
// for the peer, the error for the log. A pair of an error without an event is for the
// log alone, about what came behind the end of a run. No pair has neither.
//
// A guarded stream that is guarded once more stays as it is.
func Guard(events iter.Seq2[Event, error], o GuardOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		g := &guard{o: o}
		for e, err := range contained(events) {
			out, err := g.take(e, err)
			for _, e := range out {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				g.end(err, yield)
				return
			}
		}
		if !g.complete() {
			g.end(fmt.Errorf("%w: the stream ended before the run did", ErrOrder), yield)
		}
	}
}

// end yields what closes a stream that cannot go on.
func (g *guard) end(err error, yield func(Event, error) bool) {
	if g.over {
		yield(nil, err)
		return
	}
	for _, e := range g.closing(TypeRunError, nil) {
		if !yield(e, nil) {
			return
		}
	}
	yield(ErrorOf(err), err)
}

// contained turns a panic of the engine into an error. One of the consumer passes.
func contained(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		outside, stopped := false, false
		defer func() {
			if outside || stopped {
				return
			}
			if p := recover(); p != nil {
				yield(nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		events(func(e Event, err error) bool {
			if stopped {
				return false
			}
			outside = true
			stopped = !yield(e, err)
			outside = false
			return !stopped
		})
	}
}

// A guard is what is known of one stream. It belongs to one goroutine.
type guard struct {
	o GuardOptions
	// started: a run was, over: it has ended.
	started, over bool
	threadID      string
	runID         string

	open      []entity         // in the order in which they were opened
	chunk     *entity          // the one of them that chunks continue
	owners    map[owned]string // by whom anything with an id was opened
	calls     []string         // of tools, in order
	answered  map[string]bool  // calls with a result
	subagents map[string]bool  // true: it runs; false: it has ended
	running   []string         // those that run, in order
}

// entity is something that opens and closes. Two of one kind and id cannot be open at
// once; steps have the ids of their owners as well.
type entity struct {
	kind  kind
	id    string
	owner string // of a step
}

type kind string

const (
	message          kind = "message"
	call             kind = "call"
	span             kind = "reasoning span"
	reasoningMessage kind = "reasoning message"
	step             kind = "step"
)

// owned is an id that has an owner. Spans and the messages in them share theirs.
type owned struct{ bucket, id string }

func (g *guard) complete() bool {
	if g.o.Many && !g.started {
		return true
	}
	return g.over
}

// take returns what to write for one pair, and then why the stream cannot go on.
func (g *guard) take(e Event, err error) ([]Event, error) {
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("%w: neither an event nor an error", ErrOrder)
	}
	e = g.filled(e)
	if err := Validate(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	if err := g.lifecycle(e); err != nil {
		return nil, err
	}
	out, err := g.next(e)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrOrder, err)
	}
	return out, err
}

// filled sets what follows from the rest of the stream.
func (g *guard) filled(e Event) Event {
	switch e := e.(type) {
	case RunStarted:
		if e.ProtocolVersion == "" {
			e.ProtocolVersion = Version
		}
		return e
	case RunFinished:
		if e.ThreadID == "" {
			e.ThreadID = g.threadID
		}
		if e.RunID == "" {
			e.RunID = g.runID
		}
		return e
	case ReasoningMessageStart:
		e.Role = chat.Reasoning
		return e
	}
	return e
}

// lifecycle refuses what may not stand where it does in the life of a run.
func (g *guard) lifecycle(e Event) error {
	_, starts := e.(RunStarted)
	_, fails := e.(RunError)
	switch {
	case g.over && (!g.o.Many || !starts):
		return fmt.Errorf("%w: %s after the run has ended", ErrOrder, e.Type())
	case !g.started && !starts && !fails:
		return fmt.Errorf("%w: %s before RUN_STARTED", ErrOrder, e.Type())
	case g.started && !g.over && starts:
		return fmt.Errorf("%w: RUN_STARTED in a run", ErrOrder)
	}
	return nil
}
