package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// weighedStore is a store that counts what the engine asks of it, and the time that
// changes take.
type weighedStore struct {
	*store.DB
	commits, reads, messages, events atomic.Int64
	committing                       atomic.Int64 // nanoseconds
}

func (s *weighedStore) CommitThread(ctx context.Context, c session.Change, jobs ...event.Job) (session.Committed, error) {
	began := time.Now()
	defer func() {
		s.commits.Add(1)
		s.committing.Add(int64(time.Since(began)))
	}()
	return s.DB.CommitThread(ctx, c, jobs...)
}

func (s *weighedStore) Thread(ctx context.Context, ref session.Ref) (session.Thread, error) {
	s.reads.Add(1)
	return s.DB.Thread(ctx, ref)
}

func (s *weighedStore) ThreadMessages(ctx context.Context, ref session.Ref, q session.MessageQuery) ([]session.Stored, error) {
	all, err := s.DB.ThreadMessages(ctx, ref, q)
	s.reads.Add(1)
	s.messages.Add(int64(len(all)))
	return all, err
}

func (s *weighedStore) ThreadKnows(ctx context.Context, ref session.Ref, ids []string) (map[string]int64, error) {
	s.reads.Add(1)
	return s.DB.ThreadKnows(ctx, ref, ids)
}

func (s *weighedStore) ThreadEvents(ctx context.Context, ref session.Ref, q session.EventQuery) ([]session.Kept, error) {
	all, err := s.DB.ThreadEvents(ctx, ref, q)
	s.reads.Add(1)
	s.events.Add(int64(len(all)))
	return all, err
}

func (s *weighedStore) ThreadRuns(ctx context.Context, ref session.Ref, id string, limit int) ([]session.Record, error) {
	s.reads.Add(1)
	return s.DB.ThreadRuns(ctx, ref, id, limit)
}

// asked is how often the store was asked, and what it gave.
type asked struct{ commits, reads, messages, events int64 }

// since returns what was asked since the last time, and begins anew.
func (s *weighedStore) since() asked {
	return asked{s.commits.Swap(0), s.reads.Swap(0), s.messages.Swap(0), s.events.Swap(0)}
}

// brief is what the agent of these measurements says: a text, of which each word is a
// piece; with a tool and without.
const brief = `
- match: {tool: hi}
  say: "It said ${result}, which is what was asked for."
- match: {text: greet}
  call: {tool: hi}
- match: {text: wait}
  delay: 10m
- say: "This is an answer of about as many words as people get from a model that was told to be brief, and no more than that."
`

// briefAgents is a configuration with that agent alone.
func briefAgents(t testing.TB) Config {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.yaml")
	must(t, os.WriteFile(script, []byte(brief), 0o600))
	cfg, err := readConfig(t, fmt.Sprintf("agents:\n  brief: {model: {script: %q}}\n", script), nil)
	must(t, err)
	return cfg
}

// weighed is an engine with that agent, over a store of its own.
type weighed struct {
	t    testing.TB
	cfg  Config
	kept *weighedStore
	*engine
}

func newWeighed(t testing.TB) *weighed {
	t.Helper()
	w := &weighed{t: t, cfg: briefAgents(t)}
	st, err := openState(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	db, err := openStore(t.Context(), Config{State: st.dir}, true, quiet)
	must(t, err)
	w.kept = &weighedStore{DB: db}
	w.open(someTools{"hi"})
	t.Cleanup(func() { must(t, errors.Join(w.Close(), db.Close())) })
	return w
}

// open opens the engine, so that nothing of any thread is in memory.
func (w *weighed) open(tools agent.Tools) {
	w.t.Helper()
	if w.engine != nil {
		must(w.t, w.Close())
	}
	var err error
	w.engine, err = openEngine(w.t.Context(), w.cfg, program{}, w.kept, tools, nil, quiet)
	must(w.t, err)
}

// turn runs a turn in which only a new message is sent, to its end.
func (w *weighed) turn(thread, run, said string) time.Duration {
	w.t.Helper()
	v, err := w.visit(access.Anyone(), "", faceAGUI)
	must(w.t, err)
	began := time.Now()
	must(w.t, finishes(v, input(thread, run, says("u"+run, said))))
	return time.Since(began)
}

// finishes runs a turn, which has to end well.
func finishes(v agui.Engine, in event.Input) error {
	var last event.Event
	events, err := v.Run(context.Background(), in)
	if err != nil {
		return err
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		last = e
	}
	if _, ok := last.(event.RunFinished); !ok {
		return fmt.Errorf("the run %s ended with %+v", in.RunID, last)
	}
	return nil
}

// grow makes a thread that has had so many turns.
func (w *weighed) grow(thread string, turns int) {
	w.t.Helper()
	c := session.Change{Ref: session.Ref{Owner: access.Anyone().Principal, ID: thread}, Agent: "brief"}
	for at := 0; at < turns; at += 100 {
		c.At, c.Messages, c.Events, c.New = time.Now(), nil, nil, nil
		for i := at; i < min(turns, at+100); i++ {
			id := fmt.Sprint("old", i)
			c.New = append(c.New, session.Record{ID: id, Status: session.Finished, First: 1, Last: 2, Created: c.At, Ended: c.At})
			for _, role := range []chat.Role{chat.User, chat.Assistant} {
				c.Messages = append(c.Messages, chat.Message{ID: id + string(role), Role: role, Content: chat.Text("It is fine today, and tomorrow it will rain in the afternoon.")})
			}
			for range 6 {
				c.Events = append(c.Events, session.Kept{Run: id, Body: []byte(`{"type":"CUSTOM","name":"n","value":"It is fine today, and tomorrow it will rain."}`)})
			}
		}
		done, err := w.kept.DB.CommitThread(w.t.Context(), c)
		must(w.t, err)
		c.Head = done.Thread.Head
	}
}

// What a turn asks of the store is stated in docs/benchmarks.md, and does not grow with
// the thread: no more than the window that a model is shown is ever read of it.
func TestTurnsAskLittleOfTheStore(t *testing.T) {
	w := newWeighed(t)
	const window = 200 // messages
	w.grow("short", 9)
	w.grow("long", 3000)
	for _, c := range []struct {
		name, thread, said string
		want               asked
	}{
		{"a new thread", "new", "hello", asked{2, 4, 0, 0}},
		{"turn 10 of a thread that is not in memory", "short", "hello", asked{2, 4, 18, 0}},
		{"turn 3,001 likewise", "long", "hello", asked{2, 4, window, 0}},
		{"turn 11 of one that is", "short", "hello", asked{2, 2, 0, 0}},
		{"turn 3,002 likewise", "long", "hello", asked{2, 2, 0, 0}},
		{"a turn with a tool", "short", "greet", asked{4, 2, 0, 0}},
		{"one of a long thread", "long", "greet", asked{4, 2, 0, 0}},
	} {
		w.kept.since()
		w.turn(c.thread, c.name, c.said)
		if got := w.kept.since(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
