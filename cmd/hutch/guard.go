package main

import (
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/mcp"
)

// guard refuses requests that a web page could have caused: by a name that
// resolves to this machine (DNS rebinding: the Host is foreign) or straight
// across (the Origin is foreign). It stands before every route and method, a
// GET included, because an answer can be a stream that a page may read.
type guard struct {
	own string // the configured host
	log *slog.Logger
}

// newGuard allows the loopback names, and the host that was configured, which
// is a loopback address as well (see checkAddr).
func newGuard(addr string, log *slog.Logger) guard {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = ""
	}
	return guard{own: host, log: log}
}

func (g guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !mcp.OwnHost(r.Host, g.own):
			g.refuse(w, r, "host not allowed: use localhost or 127.0.0.1")
		case !g.origin(r):
			g.refuse(w, r, "origin not allowed: pages of other sites may not call hutch")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse tells the log no louder than debug: a page could write it full. The
// metrics count refusals.
func (g guard) refuse(w http.ResponseWriter, r *http.Request, text string) {
	g.log.Debug("request refused", "reason", text, "host", abi.Cut(r.Host, 80), "origin", abi.Cut(strings.Join(r.Header["Origin"], ","), 80), "path", abi.Cut(r.URL.Path, 80))
	http.Error(w, text, http.StatusForbidden)
}

// origin accepts requests without an Origin, which no browser sends across
// sites with a method other than GET or HEAD, and those of our own pages.
func (g guard) origin(r *http.Request) bool {
	return len(r.Header["Origin"]) == 0 || mcp.OwnOrigin(r)
}
