package mcp

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newcomers is the share of all sessions, one in so many, that is left to those
// which sent nothing since initialize: clients that open sessions and forget
// them push out each other, and a new one still has time for its next message.
const newcomers = 8

// A sessions knows the legacy MCP sessions over HTTP and bounds them, together
// with modern subscriptions. go-sdk keeps them as well, but neither counts them
// nor ends one for another.
type sessions struct {
	s *Server

	mu     sync.Mutex
	open   map[string]*session
	taken  int       // places that are held
	unused list.List // of sessions that are not busy, longest idle first
	used   list.List
}

// A session is one legacy MCP session.
type session struct {
	id    string
	owner string // the principal that opened it
	sdk   *sdk.ServerSession
	busy  int  // requests and streams under way; none is cut off
	used  bool // something came after initialize
	gone  bool // its client ended it
	queue *list.List
	place *list.Element // in queue, nil while busy
	ends  time.Time     // unless it gets busy before
	timer *time.Timer
}

// A place is room for one more session or subscription, from before the request
// that opens it until after.
type place struct {
	over    bool     // the request has ended
	session *session // what it opened, which counts instead
}

// placeKey is where an HTTP request's context has its place: go-sdk hands
// nothing else on from the request to what handles initialize.
type placeKey struct{}

// take returns a place, nil if there is none. To make room it ends the session
// that would be missed least; that one is closed before the place can be used,
// so there are never more than allowed.
func (t *sessions) take() *place {
	t.mu.Lock()
	var out *session
	if len(t.open)+t.taken >= t.s.o.MaxSessions {
		if out = t.expendable(); out == nil {
			t.mu.Unlock()
			return nil
		}
		t.remove(out)
	}
	t.taken++
	t.mu.Unlock()
	if out != nil {
		t.s.o.Logger.Debug("mcp: an idle session was ended to make room", "used", out.used)
		t.s.closeSession(out.sdk)
	}
	return &place{}
}

// expendable needs the lock. It returns the session that has been idle longest,
// first among those that were never used if they take more than their share;
// nil if all are busy.
func (t *sessions) expendable() *session {
	queue := &t.used
	if t.unused.Len() > t.s.o.MaxSessions/newcomers || t.used.Len() == 0 {
		queue = &t.unused
	}
	if first := queue.Front(); first != nil {
		return first.Value.(*session)
	}
	return nil
}

// give takes p back, or leaves it to the session that was opened under it.
func (t *sessions) give(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.over = true
	if p.session == nil {
		t.taken--
		return
	}
	t.release(p.session)
}

// opened takes note of the session that an initialize opened, whose request is
// what ctx comes from. Over stdio there is none.
func (t *sessions) opened(ctx context.Context, opened *sdk.ServerSession) {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok || opened.ID() == "" {
		return
	}
	t.mu.Lock()
	if p.over { // the client left before it got the id
		t.mu.Unlock()
		go t.s.closeSession(opened) // waits for the request that we are in
		return
	}
	defer t.mu.Unlock()
	p.session = &session{id: opened.ID(), owner: principalOf(ctx), sdk: opened, busy: 1}
	t.taken--
	t.open[opened.ID()] = p.session
}

// acquire keeps the session of that id from ending until done is called. It
// returns nil if its owner has none: that of another is as good as none.
func (t *sessions) acquire(id, owner string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.open[id]
	if e == nil || e.gone || e.owner != owner {
		return nil
	}
	if e.busy == 0 {
		t.leaveQueue(e)
	}
	e.busy++
	e.used = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.release(e)
	}
}

// release needs the lock. What is no longer busy waits to be used again, for a
// while.
func (t *sessions) release(e *session) {
	e.busy--
	switch {
	case e.busy > 0 || t.open[e.id] != e:
	case e.gone:
		t.remove(e)
	default:
		t.enqueue(e)
	}
}

// enqueue needs the lock.
func (t *sessions) enqueue(e *session) {
	life := t.s.o.SessionTimeout
	e.queue = &t.used
	if !e.used {
		life, e.queue = min(life, t.s.o.UnusedTimeout), &t.unused
	}
	e.place = e.queue.PushBack(e)
	e.ends = time.Now().Add(life)
	if e.timer == nil {
		e.timer = time.AfterFunc(life, func() { t.expire(e) })
	} else {
		e.timer.Reset(life)
	}
}

// leaveQueue needs the lock.
func (t *sessions) leaveQueue(e *session) {
	if e.place != nil {
		e.queue.Remove(e.place)
		e.place = nil
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// expire ends e, unless it was used after the timer had fired.
func (t *sessions) expire(e *session) {
	defer t.s.recovered("end an idle session")
	t.mu.Lock()
	due := e.place != nil && !time.Now().Before(e.ends)
	if due {
		t.remove(e)
	}
	t.mu.Unlock()
	if due {
		t.s.closeSession(e.sdk)
	}
}

// remove needs the lock.
func (t *sessions) remove(e *session) {
	t.leaveQueue(e)
	delete(t.open, e.id)
}

// ended says that a client ended its session. It counts as long as it is busy.
func (t *sessions) ended(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.open[id]; e != nil {
		e.gone = true
	}
}

// forget drops all sessions, which the server closes.
func (t *sessions) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.open {
		t.remove(e)
	}
}

// serveLegacy serves a request of the handshake era. Its session does not end
// meanwhile, a stream's for as long as the stream is open.
func (h *endpoint) serveLegacy(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get(sessionHeader); id != "" {
		done := h.s.sessions.acquire(id, principalOf(r.Context()))
		if done == nil {
			// 2025-11-25, Transports, Session Management: the client then begins anew.
			deny(w, "session not found", http.StatusNotFound)
			return
		}
		defer done()
		if r.Method == http.MethodDelete {
			seen := &statusWriter{ResponseWriter: w}
			defer func() {
				if seen.code == http.StatusNoContent {
					h.s.sessions.ended(id)
				}
			}()
			w = seen
		}
	}
	h.legacy.ServeHTTP(w, r)
}

// statusWriter remembers the status of an answer that is no stream.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}
