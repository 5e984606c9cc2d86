// Package mcp offers our tools to MCP hosts in both eras, over stdio and
// Streamable HTTP.
//
// The eras are those of the protocol: revisions up to 2025-11-25 begin with
// initialize and keep an MCP session ("legacy"); from 2026-07-28 on every
// request stands alone ("modern"). One [Server] speaks both at once, on one URL
// and on one pair of pipes. The protocol itself is go-sdk's; this package
// checks what comes in before go-sdk sees it (message.go), answers tools/list
// and tools/call itself, from raw JSON (list.go, call.go), and keeps what
// go-sdk would let through from ending the process, the connection or the call.
//
// Goroutines: one for each Server (watch), which alone changes what go-sdk knows
// of the tools; one for each call whose client asked for progress (reporter),
// which alone sends progress for it and has ended before the result goes out;
// one, for a moment, when an idle MCP session is ended; two for each stdio
// connection (its line reader, and the wait in ServeStdio) and, for a moment at
// its end, one that writes the last answers; and go-sdk's own. Shutdown and Close
// end all of them.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Tools is what a [Server] offers. Its methods may be called from several
// goroutines at once.
type Tools interface {
	// List returns what the caller may see, sorted by name. The slice is the
	// caller's, what it points to is not.
	List(tool.Caller) []tool.Spec
	// Call runs one tool. It must honour its context and has deadlines of its
	// own. Errors are told apart by the sentinels of package tool.
	Call(context.Context, tool.Caller, tool.Call) (tool.Result, error)
	// Subscribe has changed called after each change of what List returns,
	// until stop is called. changed does not block.
	Subscribe(changed func()) (stop func())
}

// Options says how a [Server] presents itself. The zero value works.
type Options struct {
	// Name, Title and Version name the program to hosts. Defaults: hutch, none, 0.
	Name, Title, Version string
	// Instructions are for the model; hosts cut them at about 2,000 characters.
	Instructions string
	// Agent is the agent on whose behalf every call is made; may be empty.
	Agent string
	// Principal says who sent an HTTP request; false refuses it. Who may ask, under
	// which host and from which origin, is checked before the server. Default: all
	// that get here are "local", as is whoever holds a pipe.
	Principal func(*http.Request) (principal string, ok bool)
	// Context returns the context of a message from that of its connection and the header
	// of the HTTP request that it came with. Default: that of its connection.
	Context func(context.Context, http.Header) context.Context
	// SessionTimeout ends a legacy MCP session over HTTP that had neither a
	// request nor a stream for so long. Default 1 h.
	SessionTimeout time.Duration
	// UnusedTimeout ends one that sent nothing after initialize. Default 1 min.
	UnusedTimeout time.Duration
	// MaxSessions bounds legacy MCP sessions and modern subscriptions over HTTP,
	// taken together. When it is reached, an idle session is ended for each new
	// one; its client gets 404 and begins anew. Default 1,000.
	MaxSessions int
	// MaxCalls bounds the calls that run at once. Default 256.
	MaxCalls int
	// Heartbeat is the longest a client that asked for progress hears nothing
	// during a call; some hosts give up after 60 s of silence. Default 10 s.
	Heartbeat time.Duration
	// Quiet is how long the tools must not change before hosts are told of a
	// change; a storm of changes is told of ten times as late at most. Default
	// 50 ms.
	Quiet time.Duration
	// Drain is the longest a stdio connection waits for running calls once its
	// input has ended; they are answered with an error then. Default 1 min.
	Drain time.Duration
	// Logger gets what an operator should know, never arguments or results.
	// Default: nothing is logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	orDefault(&o.Name, "hutch")
	orDefault(&o.Version, "0")
	orDefault(&o.SessionTimeout, time.Hour)
	orDefault(&o.UnusedTimeout, time.Minute)
	orDefault(&o.MaxSessions, 1000)
	orDefault(&o.MaxCalls, 256)
	orDefault(&o.Heartbeat, 10*time.Second)
	orDefault(&o.Quiet, 50*time.Millisecond)
	orDefault(&o.Drain, time.Minute)
	orDefault(&o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Server serves [Tools] to any number of connections.
type Server struct {
	tools    Tools
	o        Options
	sdk      *sdk.Server
	http     http.Handler
	list     catalogue
	audience audience
	sessions sessions

	slots chan struct{} // one for each running call
	dirty chan struct{} // holds one value while a change is untold

	life   context.Context // ends calls, watch and connections
	end    context.CancelFunc
	unsub  func()
	watch  sync.WaitGroup
	mu     sync.Mutex
	closed bool // nothing new is accepted
	calls  sync.WaitGroup
}

// New returns a server that offers t. Close or Shutdown it when done.
func New(t Tools, o Options) *Server {
	s := &Server{tools: t, o: o.withDefaults(), dirty: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	s.slots = make(chan struct{}, s.o.MaxCalls)
	s.sessions = sessions{s: s, open: map[string]*session{}}
	s.sdk = sdk.NewServer(
		&sdk.Implementation{Name: s.o.Name, Title: s.o.Title, Version: s.o.Version},
		&sdk.ServerOptions{
			Instructions: s.o.Instructions,
			Logger:       sdkLogger(s.o.Logger),
			// Nothing but tools: without this, go-sdk would advertise logging.
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = cacheable() },
		})
	s.sdk.AddReceivingMiddleware(s.receive)
	s.sdk.AddSendingMiddleware(s.send)
	s.http = s.newHandler()
	s.unsub = t.Subscribe(s.changed)
	s.sync()
	s.watch.Go(s.watchTools)
	return s
}

// cacheable says how long a list may be kept: lists differ by caller, and can
// change at any time.
func cacheable() sdk.Cacheable { return sdk.Cacheable{TTLMs: 5000, CacheScope: "private"} }

// Handler serves Streamable HTTP, both eras, at whatever path it is mounted. It does not
// look at Host and Origin.
func (s *Server) Handler() http.Handler { return s.http }

// Shutdown stops taking requests, waits for running calls until ctx ends,
// cancels the rest, and ends every connection and stream. Cancelled calls are
// answered first. It returns ctx's error if calls had to be cancelled.
//
// Call it while [http.Server.Shutdown] runs: that waits for the streams which
// this ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.waitCalls(ctx)
	s.end()
	if err != nil {
		s.lastWords()
	}
	return errors.Join(err, s.closeConnections())
}

// Close is Shutdown that does not wait for running calls.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (s *Server) stop() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.unsub()
	}
}

// Stopping reports whether the server has begun to end: nothing new is begun.
func (s *Server) Stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// enter counts a call in, unless the server has stopped. The caller of enter
// calls s.calls.Done.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

func (s *Server) waitCalls(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.calls.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select { // both may be ready
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}

// lastWords gives calls that were just cancelled a moment to be answered.
func (s *Server) lastWords() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.waitCalls(ctx) != nil {
		s.o.Logger.Debug("mcp: some calls end without an answer")
	}
}

// closeTimeout is how long connections may take to end once their calls were
// cancelled. What is left then is stuck in a write, and ends with its socket.
const closeTimeout = 3 * time.Second

// closeConnections ends what go-sdk calls sessions: legacy MCP sessions, modern
// requests and stdio connections.
func (s *Server) closeConnections() error {
	s.sessions.forget()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for session := range s.sdk.Sessions() {
			all.Go(func() { s.closeSession(session) })
		}
		all.Wait()
		s.watch.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(closeTimeout):
		return errors.New("mcp: some connections did not end")
	}
}

func (s *Server) closeSession(session *sdk.ServerSession) {
	defer s.recovered("close a session")
	if err := session.Close(); err != nil {
		s.o.Logger.Debug("mcp: close a session", "error", err)
	}
}
