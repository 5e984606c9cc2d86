package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hutch-run/hutch/protocol/event"
)

// Submit has a run begin as soon as its turn comes, and returns the stream of its
// events. The run goes on whoever reads them: only [Keeper.Cancel], the limit of its
// time and [Keeper.Close] end it.
//
// A run that the thread has had is not run again: with the same input the stream gives
// what is kept of it, and what still comes; with another one Submit returns
// [ErrDuplicateRun]. It returns [ErrInvalid] or [ErrLimit] for an input that cannot be
// run, as far as that is known before its turn, and [ErrBusy] if too many wait.
func (k *Keeper) Submit(ctx context.Context, p Principal, in Input, do Runner) (*Stream, error) {
	in = in.withDefaults()
	if err := k.check(p, in); err != nil {
		return nil, err
	}
	digest, err := in.digest()
	if err != nil {
		return nil, err
	}
	return k.submit(ctx, newRun(k, Ref{p.Name, in.Thread}, in, digest, do))
}

func (in Input) withDefaults() Input {
	if in.Trigger == "" {
		in.Trigger = ByClient
	}
	if in.Mode == "" {
		in.Mode = Append
	}
	if in.RunID == "" {
		in.RunID = rand.Text()
	}
	return in
}

// check refuses what no thread could take.
func (k *Keeper) check(p Principal, in Input) error {
	for _, f := range []struct{ what, id string }{{"principal", p.Name}, {"threadId", in.Thread}, {"runId", in.RunID}, {"agent", in.Agent}} {
		if err := checkID(f.what, f.id); err != nil {
			return err
		}
	}
	if in.Parent != "" {
		if err := checkID("parentRunId", in.Parent); err != nil {
			return err
		}
	}
	if modes := []Mode{Append, Replace}; !slices.Contains(modes, in.Mode) {
		return fmt.Errorf("%w: history mode %s, allowed are %v", ErrInvalid, quoted(string(in.Mode)), modes)
	}
	if triggers := []Trigger{ByClient, ByContinuation, ByEvent, ByMessage}; !slices.Contains(triggers, in.Trigger) {
		return fmt.Errorf("%w: trigger %s, allowed are %v", ErrInvalid, quoted(string(in.Trigger)), triggers)
	}
	if err := k.checkState(in.State); err != nil {
		return err
	}
	if most := k.o.Thread.Messages; len(in.Messages) > most {
		return fmt.Errorf("%w: %d messages, at most %d: send only the new ones", ErrLimit, len(in.Messages), most)
	}
	for i, m := range in.Messages {
		if err := checkMessage(m, k.o.MessageBytes); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

func (k *Keeper) checkState(state json.RawMessage) error {
	if state == nil {
		return nil
	}
	if len(state) > k.o.StateBytes {
		return fmt.Errorf("%w: state of %d bytes, at most %d", ErrLimit, len(state), k.o.StateBytes)
	}
	if !json.Valid(state) {
		return fmt.Errorf("%w: state that is not JSON", ErrInvalid)
	}
	return nil
}

// digest tells inputs apart, but for white space.
func (in Input) digest() (string, error) {
	in.RunID, in.Jobs = "", nil
	body, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// submit lets a run in, or finds out what became of it before.
func (k *Keeper) submit(ctx context.Context, r *Run) (*Stream, error) {
	if s, err := k.before(ctx, r.th, r.in.RunID, r.digest); s != nil || err != nil {
		r.drop()
		return s, err
	}
	s, active, same, err := k.enter(r)
	switch {
	case same != nil:
		defer r.drop()
		return k.again(same, r.digest)
	case err != nil:
		r.drop()
		return nil, err
	case active:
		err = r.beginNow(ctx)
	default:
		err = r.record(ctx)
	}
	if err != nil && !r.replayed {
		s.Close()
		return nil, err
	}
	return s, nil
}

// enter lets a run in, and returns a stream of it that misses nothing: as long as the
// thread is locked the run cannot begin.
func (k *Keeper) enter(r *Run) (s *Stream, active bool, same *Run, err error) {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	active, same, err = k.admit(r)
	if same != nil || err != nil {
		return nil, false, same, err
	}
	s = newStream(r.th, r.in.RunID, 0)
	s.joined = true
	r.th.streams[s] = struct{}{}
	return s, active, nil, nil
}

// before returns the stream of a run that was submitted before, nil if there was none.
// Its input must have that digest, unless that is "".
func (k *Keeper) before(ctx context.Context, th *live, id, digest string) (*Stream, error) {
	var old Record
	for range 2 { // one that had not ended when it was read may have by then
		k.smu.Lock()
		same := k.byID[runKey{th.ref, id}]
		k.smu.Unlock()
		if same != nil {
			return k.again(same, digest)
		}
		found, err := k.store.ThreadRuns(ctx, th.ref, id, 1)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		if old = found[0]; digest != "" && old.Digest != digest {
			return nil, ErrDuplicateRun
		}
		if old.Status.Ended() {
			return k.replayed(th, old), nil
		}
	}
	old.Status, old.Code, old.Message = Failed, CodeStore, lostEnd
	return k.replayed(th, old), nil
}

// lostEnd is said of a run whose end could not be kept.
const lostEnd = "the end of this run could not be kept"

// replayed is the stream of a run that has ended. If none of its events is left it says
// at least how it ended.
func (k *Keeper) replayed(th *live, old Record) *Stream {
	s := newStream(th, old.ID, 0)
	s.turnTo(old)
	return s
}

// again returns a stream of a run that has not ended.
func (k *Keeper) again(same *Run, digest string) (*Stream, error) {
	if digest != "" && same.digest != digest || k.stateless { // nothing of it is kept that could be sent again
		return nil, ErrDuplicateRun
	}
	same.th.mu.Lock()
	defer same.th.mu.Unlock()
	rec := same.rec
	if rec.First == 0 && rec.Status.Ended() {
		return k.replayed(same.th, rec), nil
	}
	s := newStream(same.th, rec.ID, max(0, rec.First-1))
	if rec.First == 0 { // it waits, and all of it is still to come
		s.joined = true
		same.th.streams[s] = struct{}{}
	}
	return s, nil
}

// unbegun are the events of a run that ended before it began, of which none are kept: a
// thread's own never say that a run began while another was open.
func (k *Keeper) unbegun(thread string, rec Record) []event.Event {
	return []event.Event{started(thread, rec), k.terminal(thread, rec, nil)}
}

func started(thread string, rec Record) event.RunStarted {
	e := event.RunStarted{ThreadID: thread, RunID: rec.ID, ProtocolVersion: event.Version, ParentRunID: rec.Parent}
	if !rec.Started.IsZero() {
		e.Timestamp = rec.Started.UnixMilli()
	}
	return e
}

// terminal is the last event of a run.
func (k *Keeper) terminal(thread string, rec Record, o *event.Outcome) event.Event {
	if rec.Status == Failed {
		return k.runError(rec)
	}
	if o == nil {
		o = &event.Outcome{Type: event.Success}
	}
	if rec.Status == Cancelled {
		o.Type = event.Cancelled
	}
	return event.RunFinished{ThreadID: thread, RunID: rec.ID, Outcome: o, Usage: rec.Usage, Base: k.stamp()}
}
