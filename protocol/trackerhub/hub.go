// Package trackerhub serves the tracker's socket: it lets agents in, sends each the events
// of its queue until they are acknowledged, and takes what they send.
//
// The queue is the board's, and nothing of it is kept here: a connection reads events when
// there are some and when its peer has room for them. A peer that does not read stalls its
// own connection alone, loses it, and finds everything again when it comes back.
//
// Each connection has three goroutines. One reads frames and does what they say; one waits
// for events; one, the only one that writes, sends them, and what the first has to answer.
// All end with [Hub.Close].
package trackerhub

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Options are what an operator may change. The zero value works.
type Options struct {
	// Origins are those of the pages that may connect; default none. An agent has no origin.
	Origins []string
	// Most is how many connections there may be; default 4,096.
	Most int
	// Strangers is how many of them may not have said yet who they are; default 256.
	Strangers int
	// Names is the set of names of events: "v2" has one for every message; default "v1".
	Names string
	// AuthWithin, HeartbeatEvery, OfflineAfter and AckWithin default to those of the tracker.
	AuthWithin, HeartbeatEvery, OfflineAfter, AckWithin time.Duration
	// WriteWithin is how long one frame may take to be written before its reader is too
	// slow; default 10 s.
	WriteWithin time.Duration
	// Logger is told what peers are not; nil is nobody.
	Logger *slog.Logger
}

func (o Options) filled() Options {
	for at, usual := range map[*time.Duration]time.Duration{
		&o.AuthWithin: tracker.AuthWithin, &o.HeartbeatEvery: tracker.HeartbeatEvery, &o.OfflineAfter: tracker.OfflineAfter,
		&o.AckWithin: tracker.AckWithin, &o.WriteWithin: 10 * time.Second,
	} {
		if *at <= 0 {
			*at = usual
		}
	}
	if o.Most <= 0 {
		o.Most = 4096
	}
	if o.Strangers <= 0 {
		o.Strangers = 256
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Open returns the board for whoever has a token, or nil if that is nobody. The request is
// the one that the connection began with: who sent it may be known without a token, which is
// empty then. The connection ends with the context of the request. If that has a cause
// besides [context.Canceled], the agent is told not to come back.
type Open func(r *http.Request, token string) (tracker.Service, error)

// Hub is the tracker's end of all sockets, an [http.Handler].
type Hub struct {
	o    Options
	open Open
	up   websocket.Upgrader

	unknown, parked, slow atomic.Int64

	mu        sync.Mutex
	closed    bool
	strangers int
	conns     map[*conn]bool
	slots     map[string]*slot // by the id of a member
	running   sync.WaitGroup
}

// A slot is where an agent's one connection is. Whoever comes or leaves has its lock, so that
// who leaves late does not make offline who has come.
type slot struct {
	mu     sync.Mutex
	holder *conn
	users  int // those who have the slot or wait for it, under the hub's lock
}

// Stats are what has been, and how many connections there are.
type Stats struct {
	Connections int
	Unknown     int64 // frames of an unknown type
	Parked      int64 // events
	Slow        int64 // connections that were ended because nobody read
}

// New returns a hub, which asks open who connects. [Hub.Close] ends it.
func New(open Open, o Options) *Hub {
	h := &Hub{o: o.filled(), open: open, conns: map[*conn]bool{}, slots: map[string]*slot{}}
	h.up = websocket.Upgrader{
		HandshakeTimeout: 10 * time.Second,
		WriteBufferPool:  &sync.Pool{}, // an idle connection needs none
		CheckOrigin:      h.allows,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			w.Header().Set("Sec-WebSocket-Version", "13")
			http.Error(w, reason.Error(), status)
		},
	}
	return h
}

// allows: a page may be anybody's, and is not let in unless it was named.
func (h *Hub) allows(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 0 || len(origins) == 1 && slices.Contains(h.o.Origins, origins[0])
}

// Stats returns what there is to count.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{Connections: len(h.conns), Unknown: h.unknown.Load(), Parked: h.parked.Load(), Slow: h.slow.Load()}
}

// ServeHTTP implements [http.Handler]. It returns when the connection has ended. Before there is
// one it answers 401 for a token that nobody has, 403 for a page that may not connect, and 503
// with Retry-After where there are too many. What a connection ends with later is its close code.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if token != "" { // a wrong one is told before there is a socket
		service, err := h.open(r, token)
		if err != nil || service == nil {
			h.turnAway(w, r, err)
			return
		}
	}
	c := h.enter(r, token)
	if c == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many connections: try again", http.StatusServiceUnavailable)
		return
	}
	defer h.exit(c)
	ws, err := h.up.Upgrade(hijackable{w}, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	c.ws = ws
	c.serve()
}

func (h *Hub) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		h.o.Logger.ErrorContext(r.Context(), "a token could not be looked up", "err", err)
		http.Error(w, "the tracker failed: try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "nobody has this token", http.StatusUnauthorized)
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// hijackable finds the connection below writers that wrap others.
type hijackable struct{ http.ResponseWriter }

func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// enter makes room for a connection, or returns nil.
func (h *Hub) enter(r *http.Request, token string) *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.conns) >= h.o.Most || h.strangers >= h.o.Strangers {
		return nil
	}
	c := newConn(h, r, token)
	h.conns[c] = true
	h.strangers++
	h.running.Add(1)
	return c
}

func (h *Hub) exit(c *conn) {
	h.known(c)
	h.mu.Lock()
	delete(h.conns, c)
	h.mu.Unlock()
	h.running.Done()
}

// known: the connection is no stranger's any more.
func (h *Hub) known(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !c.known {
		c.known = true
		h.strangers--
	}
}

// Close ends all connections, and returns when they have ended or with ctx's error.
func (h *Hub) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	for c := range h.conns {
		c.end(websocket.CloseGoingAway, "the tracker stops")
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { h.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold runs fn while nobody else has the member's slot.
func (h *Hub) hold(member string, fn func(*slot)) {
	h.mu.Lock()
	s := h.slots[member]
	if s == nil {
		s = &slot{}
		h.slots[member] = s
	}
	s.users++
	h.mu.Unlock()

	s.mu.Lock()
	defer func() {
		h.mu.Lock()
		if s.users--; s.users == 0 && s.holder == nil {
			delete(h.slots, member)
		}
		h.mu.Unlock()
		s.mu.Unlock()
	}()
	fn(s)
}
