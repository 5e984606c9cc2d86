package main

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// boundedBody limits how large a request's body may be and how long it may
// take to arrive. The deadline stands before any handler runs: the server reads
// what a handler left unread, and would otherwise wait for it without end.
func boundedBody(next http.Handler, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := limit
		if carriesFile(r) {
			most = max(limit, tracker.MaxFileBody)
		}
		if r.ContentLength > most {
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusRequestEntityTooLarge, "too_large", "body of "+strconv.FormatInt(r.ContentLength, 10)+" bytes: at most "+strconv.FormatInt(most, 10))
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, most), conn: http.NewResponseController(w)}
			body.deadline(time.Now().Add(bodyTimeout))
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// carriesFile reports whether a request may be one that gives the tracker a file.
func carriesFile(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/files") && r.URL.RawPath == ""
}

// timedBody takes the connection's deadline away once the body has been read:
// it would otherwise end an answer that streams for longer.
type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.deadline(time.Time{})
	}
	return n, err
}

// deadline ignores errors: a connection that takes no deadline is an
// in-memory one, of a test.
func (b *timedBody) deadline(t time.Time) { _ = b.conn.SetReadDeadline(t) }

// cappedListener refuses connections over a number instead of letting them
// queue: a client that is told can do something about it.
type cappedListener struct {
	net.Listener
	slots   chan struct{}
	refused func()
}

func capped(l net.Listener, most int, refused func()) *cappedListener {
	return &cappedListener{Listener: l, slots: make(chan struct{}, most), refused: refused}
}

// Accept returns the next connection that there is a slot for.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &cappedConn{Conn: conn, release: l.release()}, nil
		default:
			l.refused()
			_ = conn.Close() // nothing was sent on it
		}
	}
}

// release returns a function that gives one slot back, the first time it is
// called.
func (l *cappedListener) release() func() {
	return sync.OnceFunc(func() { <-l.slots })
}

type cappedConn struct {
	net.Conn
	release func()
}

func (c *cappedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
