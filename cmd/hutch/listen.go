package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/access"
)

// listen opens the one listener, and what it proves with who it is. Without a token only
// this machine may reach it. A name may resolve to anything, so the address that came of
// it is looked at again.
func (a *App) listen(ctx context.Context) (net.Listener, error) {
	cfg := a.cfg
	if key := cfg.exposed(); key != "" && !a.keys.Needed() {
		return nil, cfg.withoutTokens(key, "")
	}
	var err error
	if a.certificate, err = openCertificate(cfg.TLS, a.log); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		if at, ok := hutchServes(ctx, cfg.Addr); ok {
			err = fmt.Errorf("hutch already serves at %s/mcp", at)
		}
		return nil, hinted(err, "stop what listens there, or use another address with --addr HOST:PORT")
	}
	if !a.keys.Needed() && !isLoopback(l.Addr()) {
		return nil, errors.Join(cfg.withoutTokens(flagAddr, ", resolved to "+l.Addr().String()), l.Close())
	}
	return l, nil
}

// withoutTokens refuses to listen where others reach us, as the setting key says.
func (cfg Config) withoutTokens(key, resolved string) error {
	place := cmp.Or(cfg.given[key].place(key), key)
	return usagef("%s: %s%s: not loopback, and without tokens anyone who reaches it could do everything", place, quoted(cfg.reachedBy(key)), resolved).
		withHint("make the first token with \"hutch tokens create NAME%[1]s\", or for a member of the tracker with \"hutch tracker token create SLUG%[1]s\", or listen on 127.0.0.1 alone", cfg.stateFlag())
}

// exposed returns the setting that says that others than this machine reach us, empty if
// none does: an address, or what a proxy before us is called. A name is looked up when it
// is listened on.
func (cfg Config) exposed() string {
	local := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && ip.IsLoopback()
	}
	host, _, _ := net.SplitHostPort(cfg.Addr) // all interfaces if it is none
	if host == "" || net.ParseIP(host) != nil && !local(host) {
		return flagAddr
	}
	if u, err := url.Parse(cfg.URL); cfg.URL != "" && (err != nil || !local(u.Hostname())) {
		return keyURL
	}
	if slices.ContainsFunc(cfg.Hosts, func(host string) bool { return !local(host) }) {
		return keyHosts
	}
	return ""
}

// reachedBy is the value of a setting about where we are reached.
func (cfg Config) reachedBy(key string) string {
	switch key {
	case keyURL:
		return cfg.URL
	case keyHosts:
		return strings.Join(cfg.Hosts, ",")
	}
	return cfg.Addr
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// door is what stands before everything that is served at an address.
func (a *App) door(addr net.Addr) *access.Door { return access.NewDoor(a.keys, a.doorOptions(addr)) }

func (a *App) doorOptions(addr net.Addr) access.Options {
	hosts := a.cfg.Hosts
	if host, _, err := net.SplitHostPort(a.cfg.Addr); err == nil {
		hosts = append([]string{host}, hosts...)
	}
	return access.Options{
		Closed: !isLoopback(addr) || a.cfg.exposed() != "", Hosts: hosts, Origins: a.cfg.Origins, URL: a.cfg.URL,
		Public: []string{"/healthz", "/readyz"}, Later: []string{socketPath}, Resources: []string{"/mcp"},
		Refused: func(why string) { a.metrics.turnedAway.WithLabelValues(why).Inc() }, Logger: a.log,
	}
}

func schemeOf(tls bool) string {
	if tls {
		return "https://"
	}
	return "http://"
}

// base is the address that the listener at addr is reached by.
func (a *App) base(addr net.Addr) string {
	if a.cfg.URL != "" {
		return a.cfg.URL
	}
	return schemeOf(a.certificate != nil) + addr.String()
}

// socketURL is where the tracker's socket is, at a base.
func socketURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + socketPath }
