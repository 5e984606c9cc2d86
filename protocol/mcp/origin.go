package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// OwnHost reports whether a Host header names this machine as only someone on
// it does: localhost, 127.0.0.1, [::1], or one of the addresses in more, which
// are written without brackets. Case does not matter (RFC 9110, 4.2.3), nor does
// the port, because a tunnel may end at another one. Every other name could have
// been made to resolve to us (DNS rebinding), one with a dot at its end included.
func OwnHost(hostport string, more ...string) bool {
	name, ok := hostName(hostport)
	if !ok {
		return false
	}
	switch name {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return slices.ContainsFunc(more, func(own string) bool {
		addr, err := netip.ParseAddr(own)
		return err == nil && name == addr.Unmap().String()
	})
}

// hostName returns the host of a Host header in lower case, an address in its
// usual form.
func hostName(hostport string) (name string, ok bool) {
	name = hostport
	if host, port, err := net.SplitHostPort(hostport); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", false
		}
		name = host
	} else if inner, ok := strings.CutPrefix(hostport, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", false
		}
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String(), true
	}
	return strings.ToLower(name), !strings.HasPrefix(hostport, "[")
}

// OwnOrigin reports whether a request comes from a page that was served under
// the very host and port that it asks. Whether these are ours, [OwnHost] says.
func OwnOrigin(r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	origins := r.Header.Values("Origin")
	return len(origins) == 1 && strings.EqualFold(origins[0], scheme+r.Host)
}

// allowedHost refuses names that could have been rebound, if the connection
// came in at a loopback address. Elsewhere we do not know our names.
func allowedHost(r *http.Request) bool {
	local := loopback(r)
	return local == "" || OwnHost(r.Host, local)
}

// loopback returns the address that the connection came in at, "" if that is no
// loopback address.
func loopback(r *http.Request) string {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return ""
	}
	return addr.IP.String()
}

// allowedOrigin reports whether the request comes from no web page, from one
// that the operator named, or from one of our own on a loopback address.
func (h *endpoint) allowedOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 || len(origins) == 1 && slices.Contains(h.s.o.Origins, origins[0]) {
		return true
	}
	return OwnOrigin(r) && OwnHost(r.Host, loopback(r))
}
