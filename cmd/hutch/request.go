package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/protocol/access"
)

// requestHeader is where a request may bring an id, and where its answer has the one that
// it got.
const requestHeader = "X-Request-Id"

// goodRequestID is what an id may be that somebody else made up: it stands in logs, in
// spans and in answers.
var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

type requestIDKey struct{}

// identified gives each request an id, for the log and for whoever reports a failure: its
// own, if it brings a good one. What is behind finds it in the request's header too.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.ToLower(rand.Text()[:12])
		if own := r.Header.Values(requestHeader); len(own) == 1 && goodRequestID.MatchString(own[0]) {
			id = own[0]
		}
		r.Header.Set(requestHeader, id)
		w.Header().Set(requestHeader, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r.WithContext(ofRequest(r.Context(), id)))
	})
}

// ofRequest returns the context of what belongs to a request.
func ofRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// numbered is a handler that adds to a line the id of the request that it belongs to.
type numbered struct{ slog.Handler }

// Handle adds the id.
func (h numbered) Handle(ctx context.Context, r slog.Record) error {
	if id := requestID(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper.
func (h numbered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return numbered{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper.
func (h numbered) WithGroup(name string) slog.Handler { return numbered{h.Handler.WithGroup(name)} }

// traced tells of requests, under the route that they took.
func traced(t *telemetry.T) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if t == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, _ := access.From(r.Context())
			ctx, end := t.Request(r.Context(), telemetry.Request{
				Method: r.Method, Route: chi.RouteContext(r.Context()).RoutePattern(), Header: r.Header, Known: who.Token != "",
			})
			seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
			defer func() { end(seen.code) }()
			next.ServeHTTP(seen, r.WithContext(ctx))
		})
	}
}

// inRequest returns the context of a message over HTTP, which may have come over a
// connection of an earlier request.
func (a *App) inRequest(ctx context.Context, h http.Header) context.Context {
	return a.telemetry.Within(ofRequest(ctx, h.Get(requestHeader)), h)
}
