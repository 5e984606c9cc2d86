package main

import (
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
)

// guard refuses requests that a web page could have caused: by a name that
// resolves to this machine (DNS rebinding: the Host is foreign) or straight
// across (the Origin is foreign). It stands before every route and method, a
// GET included, because an answer can be a stream that a page may read.
type guard struct {
	hosts map[string]bool
	log   *slog.Logger
}

// newGuard allows the loopback names, and the host that was configured, which
// is a loopback address as well (see checkAddr).
func newGuard(addr string, log *slog.Logger) guard {
	g := guard{hosts: map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}, log: log}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		g.hosts[strings.ToLower(host)] = true
	}
	return g
}

func (g guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !g.host(r.Host):
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

// host accepts exact names with any port: a tunnel may end at another one.
func (g guard) host(hostport string) bool {
	name := hostport
	if host, port, err := net.SplitHostPort(hostport); err == nil {
		if _, err := parsePort(port); err != nil {
			return false
		}
		name = host
	} else if inner, ok := strings.CutPrefix(hostport, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return false
		}
	}
	return g.hosts[strings.ToLower(name)]
}

// origin accepts requests without an Origin, which no browser sends across
// sites with a method other than GET or HEAD, and those of a page that was
// served under the very host and port that is asked.
func (g guard) origin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	return len(origins) == 1 && strings.EqualFold(origins[0], "http://"+r.Host)
}
