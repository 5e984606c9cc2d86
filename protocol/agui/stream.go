package agui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// A stream writes frames of SSE: LF alone, one event a frame, each flushed at once.
// Nothing is written after the last event of its run, or after a write that failed.
type stream struct {
	s      *Server
	w      http.ResponseWriter
	c      *http.ResponseController
	cancel context.CancelCauseFunc // ends the engine's iteration

	mu    sync.Mutex // guards what follows, and every use of w
	begun bool       // the status is out
	done  bool
	wrote time.Time
}

// errGone is why a stream ends whose client does not read it.
var errGone = errors.New("the client does not read")

// stream begins to keep a stream alive; the function that it returns ends that.
func (s *Server) stream(w http.ResponseWriter, cancel context.CancelCauseFunc) (*stream, func()) {
	st := &stream{s: s, w: w, c: http.NewResponseController(w), cancel: cancel, wrote: time.Now()}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer func() {
			if p := recover(); p != nil {
				s.o.Logger.Error("agui: panic", "panic", p, "stack", string(debug.Stack()))
				cancel(errGone)
			}
		}()
		st.keepAlive(stop)
	}()
	return st, func() {
		close(stop)
		<-stopped
	}
}

// keepAlive writes a comment whenever nothing was written for a while. It finds out,
// too, about clients that are gone without a word.
func (st *stream) keepAlive(stop <-chan struct{}) {
	timer := time.NewTimer(st.s.o.KeepAlive)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
			timer.Reset(st.comment())
		}
	}
}

// comment writes one if it is time, and returns how long until it may be again.
func (st *stream) comment() time.Duration {
	if !st.mu.TryLock() {
		return st.s.o.KeepAlive // something is being written
	}
	defer st.mu.Unlock()
	if wait := st.s.o.KeepAlive - time.Since(st.wrote); wait > 0 {
		return wait
	}
	st.frame([]byte(": keep-alive\n\n"))
	return st.s.o.KeepAlive
}

// begin sends the status, for a stream whose first event may be long in coming. If it
// cannot, the stream's context ends.
func (st *stream) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.frame(nil)
}

// event writes an event. It reports whether the stream goes on.
func (st *stream) event(e event.Event, last bool) bool {
	text, err := event.Encode(e)
	if err != nil {
		panic(fmt.Errorf("a guarded event that cannot be written: %w", err))
	}
	frame := make([]byte, 0, len(text)+len("data: \n\n"))
	frame = append(append(append(frame, "data: "...), text...), "\n\n"...)
	st.mu.Lock()
	defer st.mu.Unlock()
	ok := st.frame(frame)
	st.done = st.done || last
	return ok && !last
}

// refuse answers with a status instead of a stream, and reports whether it still could.
func (st *stream) refuse(answer *refusal) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.begun || st.done {
		return false
	}
	st.done = true
	st.s.refuse(st.w, answer)
	return true
}

// frame writes what is whole by itself. The caller holds the lock.
func (st *stream) frame(text []byte) bool {
	if st.done {
		return false
	}
	if err := st.write(text); err != nil {
		st.done = true
		st.cancel(fmt.Errorf("%w: %w", errGone, err))
		return false
	}
	st.wrote = time.Now()
	return true
}

func (st *stream) write(text []byte) error {
	if err := st.c.SetWriteDeadline(time.Now().Add(st.s.o.Patience)); err != nil {
		return err
	}
	if !st.begun {
		st.begun = true
		h := st.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // nginx would hold the stream back
		st.w.WriteHeader(http.StatusOK)
	}
	if _, err := st.w.Write(text); err != nil {
		return err
	}
	return st.c.Flush()
}
