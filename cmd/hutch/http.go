package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/protocol/access"
)

// Time limits of the listener. There is none on writing: an answer may be a
// stream that lives as long as its reader.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	bodyTimeout   = 30 * time.Second
	maxHeader     = 64 << 10 // bytes
)

// faces are what a listener serves.
type faces struct {
	// door stands before all of them.
	door    *access.Door
	mcp     http.Handler
	agents  http.Handler
	tracker *embedded // nil if there is none here
	metrics http.Handler
	// ready returns nil, or why the program cannot serve yet.
	ready func() error
	// counted is told about every answered request.
	counted func(route string, code int)
	// telemetry is told of those that were let in, but for probes; nil is off.
	telemetry *telemetry.T
}

// newHandler builds the routes of the one listener.
func newHandler(cfg Config, f faces, log *slog.Logger) http.Handler {
	r := newRoutes(cfg, f, log)
	served := r.With(traced(f.telemetry))
	served.Handle("/mcp", f.mcp)
	for _, path := range aguiPaths {
		served.Handle(path, f.agents)
	}
	if f.tracker != nil {
		served.Mount(trackerPath, f.tracker.rest)
		r.Method(http.MethodGet, socketPath, f.tracker.hub) // it lasts, so nobody is told when it has been answered
	}
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "no such route: hutch serves /mcp, /agui, /agents/NAME/agui, /api/v1, /ws, /healthz, /readyz and /metrics")
	})
	return r
}

// newRoutes builds the routes that every listener has. Order matters: what comes
// first sees every request, those that are refused included.
func newRoutes(cfg Config, f faces, log *slog.Logger) *chi.Mux {
	r := chi.NewRouter()
	r.Use(
		identified,
		func(next http.Handler) http.Handler { return counted(next, f.counted) },
		func(next http.Handler) http.Handler { return recovered(next, log) },
		func(next http.Handler) http.Handler { return boundedBody(next, cfg.Limits.Body) },
		f.door.Wrap,
	)
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", serverName)
		probed(w, http.StatusOK, "ok")
	})
	r.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := f.ready()
		switch {
		case err == nil:
			probed(w, http.StatusOK, "ready")
		case f.door.Closed(): // anyone may ask
			probed(w, http.StatusServiceUnavailable, "loading")
		default:
			probed(w, http.StatusServiceUnavailable, err.Error())
		}
	})
	r.With(f.door.Need(access.Admin)).Method(http.MethodGet, "/metrics", f.metrics)
	for _, path := range f.door.MetadataPaths() {
		r.Get(path, f.door.Metadata)
	}
	r.MethodNotAllowed(func(w http.ResponseWriter, q *http.Request) {
		allowed := strings.Join(methodsAt(r, q.URL), ", ")
		w.Header().Set("Allow", allowed)
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "allowed here is "+allowed)
	})
	return r
}

// methodsAt returns the methods of the route at u.
func methodsAt(routes chi.Routes, u *url.URL) (allowed []string) {
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		if routes.Match(chi.NewRouteContext(), m, cmp.Or(u.RawPath, u.Path)) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}

// refuse answers an error in the form that agents' face has for its own.
func refuse(w http.ResponseWriter, status int, code, message string) {
	said := map[string]string{"code": code, "message": message}
	if id := w.Header().Get(requestHeader); id != "" {
		said["requestId"] = id
	}
	text, err := json.Marshal(map[string]any{"error": said})
	if err != nil {
		plain(w, status, message)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// plain answers one line of text, with the id of the request if it is an error.
func plain(w http.ResponseWriter, code int, text string) {
	if id := w.Header().Get(requestHeader); code >= http.StatusBadRequest && id != "" {
		text += " (request " + id + ")"
	}
	probed(w, code, text)
}

// probed is plain for probes, which compare texts.
func probed(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // the client may be gone; nobody else cares
}

// recovered answers 500 for a handler that broke, so that one request cannot
// take the others with it, and leaves the details to the log.
func recovered(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			x := recover()
			if x == nil {
				return
			}
			if err, ok := x.(error); ok && errors.Is(err, http.ErrAbortHandler) { // the server's own way to cut an answer off
				panic(x)
			}
			log.ErrorContext(r.Context(), "handler broke", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			refuse(w, http.StatusInternalServerError, "internal", "hutch could not answer: its log says why")
		}()
		next.ServeHTTP(w, r)
	})
}

// counted tells who counts about each answer. A route that is not ours counts
// as one, so that a scanner cannot make a time series a path.
func counted(next http.Handler, tell func(route string, code int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			route := chi.RouteContext(r.Context()).RoutePattern()
			if route == "" {
				route = "other"
			}
			tell(route, seen.code)
		}()
		next.ServeHTTP(seen, r)
	})
}

// statusWriter remembers the status code of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	if code >= 200 { // 1xx go ahead of the answer
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection, and with it Flush
// and the deadlines.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack hands the connection over to a handler that answers by itself.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rest, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.code = http.StatusSwitchingProtocols
	}
	return conn, rest, err
}

// Flush makes the wrapper an http.Flusher for handlers that ask by type.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// newServer returns the server for handler; its requests live at most as long
// as base.
func newServer(base context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
}
