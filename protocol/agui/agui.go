// Package agui streams one agent run to a user interface over SSE.
//
// It speaks AG-UI 1.0 (specification, "Transport"), and with clients of the 0.x
// generation what those can read. It keeps nothing between requests: what runs and
// what is kept is the [Engine]'s.
//
// Each stream has two goroutines: that of its request, which runs the engine's
// iterator and writes events, and one that writes comments while there are none. The
// second ends before the request does. A lock orders what they write.
package agui

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// Engine is what there is for one caller. Of threads of others it says
// [event.ErrNotFound], as of those that do not exist.
type Engine interface {
	// Run takes a run, or plays the one that the input started already. It returns when
	// the run is taken, though it may have to wait for others before it begins; an error
	// says that it is not, and may become an HTTP status. The events are to be iterated
	// over, once. Ending ctx or the iteration leaves the run; whether it then goes on is
	// the engine's policy, but the iteration ends at once.
	Run(ctx context.Context, in event.Input) (iter.Seq2[event.Event, error], error)
	// Events plays a run from its beginning. Without a run's id it plays the one in
	// progress, and each that follows, until ctx ends. The events are to be iterated
	// over, once.
	Events(ctx context.Context, threadID, runID string) (iter.Seq2[event.Event, error], error)
	// Cancel ends a run; without an id, the one in progress. It returns
	// [event.ErrNotRunning] if there is none.
	Cancel(ctx context.Context, threadID, runID string) error
	// Threads lists threads, the last used first.
	Threads(ctx context.Context, q ThreadsQuery) (ThreadPage, error)
	// Thread returns a thread with its last messages, oldest first.
	Thread(ctx context.Context, id string, q MessagesQuery) (History, error)
	// Capabilities returns what the agent can do.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// Options are what an operator may change. Zero values are the defaults.
type Options struct {
	// Prefix stands before every route, and may have wildcards of [http.ServeMux];
	// default /agui.
	Prefix string
	// MaxBody is in bytes, of a request; default 4 MiB.
	MaxBody int64
	// MaxMessages is of one input; default 10,000.
	MaxMessages int
	// MaxTools is how many tools, and how many pieces of context or answers to
	// interrupts, an input may have; default 256.
	MaxTools int
	// Room is how many streams may be open at once, which servers may share; default 4,096,
	// of which 2,048 may watch.
	Room *Room
	// KeepAlive is the longest silence on a stream; default 12 s.
	KeepAlive time.Duration
	// Patience is how long a client may take to read a frame or to send its request;
	// default 30 s.
	Patience time.Duration
	// Logger is told what peers are not; nil is nobody.
	Logger *slog.Logger
}

func (o Options) filled() Options {
	o.Prefix = or(o.Prefix, "/agui")
	o.MaxBody = or(o.MaxBody, 4<<20)
	o.MaxMessages = or(o.MaxMessages, 10_000)
	o.MaxTools = or(o.MaxTools, 256)
	if o.Room == nil {
		o.Room = NewRoom(4096, 2048)
	}
	o.KeepAlive = or(o.KeepAlive, 12*time.Second)
	o.Patience = or(o.Patience, 30*time.Second)
	o.Logger = or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Server answers requests at these routes, below its prefix:
//
//	POST                        starts a run and streams it
//	GET  /capabilities          what the agent can do
//	GET  /threads               the caller's threads
//	GET  /threads/{id}          one thread with its messages
//	GET  /threads/{id}/events   streams the run in progress, and those that follow
//	POST /threads/{id}/cancel   ends the run in progress
//
// Who may ask, and from which origin, is checked before it.
type Server struct {
	o    Options
	open func(*http.Request) (Engine, error)
	mux  *http.ServeMux
	stop context.Context // ends with Shutdown
	end  context.CancelFunc
	idle chan struct{} // closed when the last stream has ended after Shutdown

	mu      sync.Mutex // guards what follows
	streams int
	shut    bool
}

// New returns a server. open returns the engine for whoever sent a request, or nil if
// that is nobody.
func New(open func(*http.Request) (Engine, error), o Options) *Server {
	s := &Server{o: o.filled(), open: open, mux: http.NewServeMux(), idle: make(chan struct{})}
	s.stop, s.end = context.WithCancel(context.Background())
	p := s.o.Prefix
	s.handle(http.MethodPost, p, s.run)
	s.handle(http.MethodGet, p+"/capabilities", s.capabilities)
	s.handle(http.MethodGet, p+"/threads", s.threads)
	s.handle(http.MethodGet, p+"/threads/{id}", s.thread)
	s.handle(http.MethodGet, p+"/threads/{id}/events", s.events)
	s.handle(http.MethodPost, p+"/threads/{id}/cancel", s.cancel)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, &refusal{status: http.StatusNotFound, Code: "not_found", Message: "no such route: there are " + p + ", and below it capabilities and threads"})
	})
	return s
}

// handle routes requests to what needs the caller's engine, and refuses other methods.
func (s *Server) handle(method, path string, do func(http.ResponseWriter, *http.Request, Engine)) {
	allowed := method
	if method == http.MethodGet {
		allowed += ", " + http.MethodHead
	}
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allowed)
		s.refuse(w, &refusal{status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "allowed here is " + allowed})
	})
	s.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		engine, err := s.open(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case engine == nil:
			s.refuse(w, &refusal{status: http.StatusUnauthorized, Code: "unauthorized", Message: "who asks is not known"})
		case r.Method == http.MethodPost && !isJSON(r):
			// A page of another site can post forms, and nothing else, without asking.
			s.refuse(w, &refusal{status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "Content-Type: allowed is application/json"})
		default:
			do(w, r, engine)
		}
	})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch p := recover(); p {
		case nil:
			return
		case http.ErrAbortHandler:
		default:
			s.o.Logger.ErrorContext(r.Context(), "agui: panic", "panic", p, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler) // what is half written is cut off, not completed
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(w, r)
}

// errShutdown is why a stream's context ends when the server does.
var errShutdown = errors.New("shutting down")

// Shutdown ends every stream, those with a run in them by a RUN_ERROR, and returns when
// they have ended, or with the error of ctx. New ones are refused from then on.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	return s.Drain(ctx)
}

// Drain refuses new streams, and returns when those that there are have ended by
// themselves, or with the error of ctx.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.shut && s.streams == 0 {
		close(s.idle)
	}
	s.shut = true
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A visit is one stream as the server counts it. Its context ends with the request,
// with the server, or when cancel says that the client is gone.
type visit struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	leave  func()
}

// enter lets a stream begin; watches says that it brings no run.
func (s *Server) enter(r *http.Request, watches bool) (visit, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return visit{}, &refusal{status: http.StatusServiceUnavailable, Code: event.CodeShutdown, Message: "hutch is shutting down"}
	}
	leave, full := s.o.Room.take(watches)
	if full != nil {
		return visit{}, full
	}
	s.streams++
	ctx, cancel := context.WithCancelCause(r.Context())
	unhook := context.AfterFunc(s.stop, func() { cancel(errShutdown) })
	return visit{ctx: ctx, cancel: cancel, leave: func() {
		unhook()
		cancel(nil)
		leave()
		s.left()
	}}, nil
}

func (s *Server) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams--; s.shut && s.streams == 0 {
		close(s.idle)
	}
}
