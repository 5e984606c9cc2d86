package agui

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"

	"github.com/hutch-run/hutch/protocol/event"
)

// run starts a run and streams it.
func (s *Server) run(w http.ResponseWriter, r *http.Request, engine Engine) {
	text, refused := s.body(w, r)
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	in, refused := s.decodeInput(text)
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	v, refused := s.enter(r, false)
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	defer v.leave()
	st, end := s.stream(w, v.cancel)
	defer end()
	events, err := engine.Run(v.ctx, in)
	if err != nil {
		events = func(yield func(event.Event, error) bool) { yield(nil, err) }
	} else {
		st.begin() // it may have to wait, and proxies do not
	}
	s.play(v.ctx, st, events, written{
		GuardOptions: event.GuardOptions{ThreadID: in.ThreadID, RunID: in.RunID},
		old:          in.ProtocolVersion == "",
	})
}

// events streams what goes on in a thread. A client says with protocolVersion that it
// is of AG-UI 1.0, and with runId which run it wants to see.
func (s *Server) events(w http.ResponseWriter, r *http.Request, engine Engine) {
	id, runID := r.PathValue("id"), r.URL.Query().Get("runId")
	if refused := checkAll(r, "runId"); refused != nil {
		s.refuse(w, refused)
		return
	}
	v, refused := s.enter(r, true)
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	defer v.leave()
	events, err := engine.Events(v.ctx, id, runID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	st, end := s.stream(w, v.cancel)
	defer end()
	st.begin()
	s.play(v.ctx, st, events, written{
		GuardOptions: event.GuardOptions{ThreadID: id, RunID: runID, Many: runID == ""},
		old:          r.URL.Query().Get("protocolVersion") == "",
	})
}

// written says how a stream is written down.
type written struct {
	event.GuardOptions
	old bool // for a client of the 0.x generation
}

// play writes events until the run's last one, or until the client is gone. What gives
// them is begun in any case, so that it can let go of what it has.
func (s *Server) play(ctx context.Context, st *stream, events iter.Seq2[event.Event, error], as written) {
	for e, err := range event.Guard(ending(ctx, events), as.GuardOptions) {
		if why := context.Cause(ctx); why != nil && !errors.Is(why, errShutdown) {
			s.o.Logger.DebugContext(ctx, "agui: a client left", "thread", as.ThreadID, "run", as.RunID, "error", why)
			return
		}
		if err != nil && s.failed(ctx, st, err, as) {
			return
		}
		if e == nil {
			continue
		}
		last := ends(e) && !as.Many
		if as.old {
			e = downgraded(e)
		}
		if !st.event(e, last) {
			return
		}
	}
}

// failed logs an error, louder if it is ours, or answers with its status where that can still
// be done; it reports whether it did.
func (s *Server) failed(ctx context.Context, st *stream, err error, as written) bool {
	answer, known := refusalOf(err)
	if known {
		return st.refuse(answer)
	}
	level := slog.LevelError
	if f := (*event.Failure)(nil); errors.As(err, &f) && f.Code != event.CodeInternal { // the peer's doing, or known already
		level = slog.LevelInfo
	}
	s.o.Logger.Log(ctx, level, "agui: a run failed", "thread", as.ThreadID, "run", as.RunID, "error", err)
	return false
}

func ends(e event.Event) bool {
	return e.Type() == event.TypeRunFinished || e.Type() == event.TypeRunError
}

// ending says why events end that end with the server.
func ending(ctx context.Context, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	down := func() error {
		if !errors.Is(context.Cause(ctx), errShutdown) {
			return nil
		}
		return &event.Failure{Code: event.CodeShutdown, Message: "hutch is shutting down: ask for the thread again later", Cause: errShutdown}
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if why := down(); err != nil && why != nil {
				e, err = nil, why
			}
			if !yield(e, err) {
				return
			}
		}
		if why := down(); why != nil {
			yield(nil, why)
		}
	}
}
