// Package trackerrest answers a tracker's routes for a board. [Routes] is the one table of
// what can be asked: [Server] serves it, and [Describe] describes it.
package trackerrest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Options are what an operator may change of a [Server]. The zero value works.
type Options struct {
	// Title is what the description is called; default "hutch tracker".
	Title string
	// Version is the program's.
	Version string
	// Base is where the routes are, for the description; default "/api/v1".
	Base string
	// BodyWithin is how long a body may take to come; default 1 minute.
	BodyWithin time.Duration
	// Logger is told what callers are not; nil is nobody.
	Logger *slog.Logger
}

// uploadsAtOnce is how many files are taken at the same time, each of which is in memory
// several times; others wait.
const uploadsAtOnce = 4

// maxBody is how large a body may be that carries no file.
const maxBody = 4 << 20

// requestHeader names a request. Whoever serves the routes may have set it.
const requestHeader = "X-Request-Id"

// Server answers requests at [Routes], and GET /openapi.json with what they are. A body has at
// most 4 MiB, or room for the largest file, of which four are taken at once; what is wrong with a request is a [tracker.Error] in
// JSON, also where a handler panics. It may be used from any goroutine and has none.
//
// Who may ask, and from which origin, is checked before it; what a caller may do, the
// [tracker.Service] says.
type Server struct {
	o      Options
	open   func(*http.Request) (tracker.Service, error)
	mux    *chi.Mux
	spoken []byte // the description
	files  chan struct{}
}

// New returns a server. open returns the board for whoever sent a request, or nil if
// that is nobody, which is answered 401; an error that is a [tracker.Error] is what the caller
// is told, and of another the log is. It fails only if the routes cannot be described.
func New(open func(*http.Request) (tracker.Service, error), o Options) (*Server, error) {
	if o.Title == "" {
		o.Title = "hutch tracker"
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Base == "" {
		o.Base = "/api/v1"
	}
	if o.BodyWithin <= 0 {
		o.BodyWithin = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, open: open, mux: chi.NewMux(), files: make(chan struct{}, uploadsAtOnce)}
	var err error
	if s.spoken, err = json.Marshal(Describe(o)); err != nil {
		return nil, err
	}
	s.register()
	return s, nil
}

func (s *Server) register() {
	s.mux.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, tracker.Errorf(tracker.CodeNotFound, "no such route").Next("openapi.json says which there are"))
	})
	allowed := map[string][]string{}
	for _, route := range Routes() {
		handle := func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, route) }
		s.mux.MethodFunc(route.Method, route.Path, handle)
		allowed[route.Path] = append(allowed[route.Path], route.Method)
		if route.Method == http.MethodGet {
			s.mux.MethodFunc(http.MethodHead, route.Path, handle)
			allowed[route.Path] = append(allowed[route.Path], http.MethodHead)
		}
	}
	s.mux.Get("/openapi.json", func(w http.ResponseWriter, r *http.Request) { s.write(w, r, http.StatusOK, json.RawMessage(s.spoken)) })
	s.mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		here := strings.Join(allowed[s.pattern(r)], ", ")
		w.Header().Set("Allow", here)
		s.refuse(w, r, tracker.Errorf(tracker.CodeMethod, "%s cannot be asked here", tracker.Quote(r.Method)).Next("allowed is "+here))
	})
}

// pattern is the path of the routes that a request would have had with another method.
func (s *Server) pattern(r *http.Request) string {
	path := r.URL.Path
	if c := chi.RouteContext(r.Context()); c != nil && c.RoutePath != "" {
		path = c.RoutePath
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		c := chi.NewRouteContext()
		if s.mux.Match(c, method, path) {
			return c.RoutePattern()
		}
	}
	return ""
}

// Routes implements [chi.Routes], with the methods below, so that what is served can be
// walked from outside.
func (s *Server) Routes() []chi.Route { return s.mux.Routes() }

// Middlewares implements [chi.Routes].
func (s *Server) Middlewares() chi.Middlewares { return s.mux.Middlewares() }

// Match implements [chi.Routes].
func (s *Server) Match(c *chi.Context, method, path string) bool { return s.mux.Match(c, method, path) }

// Find implements [chi.Routes].
func (s *Server) Find(c *chi.Context, method, path string) string { return s.mux.Find(c, method, path) }

// ServeHTTP implements [http.Handler]. The path is that of a [Route]: a prefix is taken off before.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		s.o.Logger.ErrorContext(r.Context(), "a request to the tracker panicked", "panic", p, "stack", string(debug.Stack()))
		s.refuse(w, r, tracker.Errorf(tracker.CodeInternal, "the tracker failed"))
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if h.Get(requestHeader) == "" {
		h.Set(requestHeader, newRequestID())
	}
	s.mux.ServeHTTP(w, r)
}

// serve answers at one route.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route Route) {
	service, err := s.open(r)
	if err == nil && service == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		err = tracker.Errorf(tracker.CodeUnauthorized, "nobody is known here without a token").Next("send the header Authorization: Bearer TOKEN")
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if route.many > maxBody {
		select {
		case s.files <- struct{}{}:
			defer func() { <-s.files }()
		case <-r.Context().Done():
			return
		}
	}
	c := &call{w: w, r: r, route: route, service: service, within: s.o.BodyWithin}
	if err = c.checkQuery(); err == nil {
		var out any
		if out, err = route.do(c); err == nil {
			s.answer(c, out)
			return
		}
	}
	s.refuse(w, r, err)
}

func (s *Server) answer(c *call, out any) {
	switch out := out.(type) {
	case rawFile:
		out.write(c.w)
		return
	case tracker.TaskOut:
		c.w.Header().Set("ETag", `"`+strconv.FormatInt(out.Version, 10)+`"`)
	case nil:
		c.w.WriteHeader(c.route.status)
		return
	}
	s.write(c.w, c.r, c.route.status, out)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		s.o.Logger.ErrorContext(r.Context(), "an answer of the tracker could not be written down", "err", err)
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the tracker failed"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // who does not read it has left
}

// errorOf has what a caller is told of an error that is none of the tracker's own.
func (s *Server) errorOf(r *http.Request, err error) *tracker.Error {
	var e *tracker.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return tracker.Errorf(tracker.CodeUnavailable, "the request took too long").Next("try again")
	}
	s.o.Logger.ErrorContext(r.Context(), "a request to the tracker failed", "err", err)
	return tracker.Errorf(tracker.CodeInternal, "the tracker failed").Next("whoever runs it finds the reason in its log, by the request id")
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := s.errorOf(r, err)
	s.write(w, r, e.Status(), map[string]any{"error": e})
}

// A call is one request at a route.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	route   Route
	service tracker.Service
	asked   url.Values    // under their first names
	within  time.Duration // for the body
}

func (c *call) ctx() context.Context { return c.r.Context() }

// at is a part of the path.
func (c *call) at(name string) string {
	value := chi.URLParam(c.r, name)
	if c.r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return value
	}
	return plain
}

// key is the idempotency key.
func (c *call) key() string { return c.r.Header.Get("Idempotency-Key") }

func newRequestID() string { return strings.ToLower(rand.Text()) }
