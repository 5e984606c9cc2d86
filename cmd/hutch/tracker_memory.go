package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// memory is a listener in memory, and who may come to it. Its server begins with the first
// agent that is admitted.
type memory struct {
	pipes chan net.Conn
	done  chan struct{} // closed when nobody may connect any more
	end   func()        // closes it

	mu     sync.Mutex
	tokens map[string]string // slugs by their tokens
	server *http.Server
	served chan error
}

func newMemory() *memory {
	m := &memory{pipes: make(chan net.Conn), done: make(chan struct{}), tokens: map[string]string{}}
	m.end = sync.OnceFunc(func() { close(m.done) })
	return m
}

// admit returns the token of an agent, which is of this process alone.
func (m *memory) admit(slug string, h http.Handler) (token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for known, whose := range m.tokens {
		if whose == slug {
			return known
		}
	}
	token = rand.Text()
	m.tokens[token] = slug
	if m.server == nil {
		m.server = &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
		m.served = launch(func() error { return unlessClosed(m.server.Serve(m)) })
	}
	return token
}

func (m *memory) slugOf(token string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slug, ok := m.tokens[token]
	return slug, ok
}

// dial connects a client.
func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.pipes <- theirs:
		return ours, nil
	case <-m.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(net.ErrClosed, ctx.Err(), ours.Close(), theirs.Close())
}

// Accept implements [net.Listener], as the methods below do.
func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.pipes:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close is the server's: nobody connects any more.
func (m *memory) Close() error {
	m.end()
	return nil
}

// Addr is that of no network.
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// close ends the server and what is connected to it.
func (m *memory) close() error {
	m.end()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return nil
	}
	err := m.server.Close()
	failed := <-m.served
	m.served <- nil // for whoever closes it again
	return errors.Join(err, failed)
}
