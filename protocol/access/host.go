package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hosts are the names a request may ask for. Every other name could have been made to
// resolve to us (DNS rebinding), one with a dot at its end included.
type hosts []string

// newHosts takes names and addresses as hostOf returns them.
func newHosts(more ...string) hosts {
	h := hosts{"localhost", "127.0.0.1", "::1"}
	for _, name := range more {
		if addr, err := netip.ParseAddr(name); err == nil {
			name = addr.Unmap().String()
		}
		if name != "" {
			h = append(h, strings.ToLower(name))
		}
	}
	return h
}

// has reports whether the Host header of a request names this machine: as only someone on
// it does, by the address that the connection came in at, or as was configured. Case does
// not matter (RFC 9110, 4.2.3), nor does the port, because a tunnel may end at another one.
func (h hosts) has(r *http.Request) bool {
	name, ok := hostOf(r.Host)
	if !ok {
		return false
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && name == at.AddrPort().Addr().Unmap().WithZone("").String() {
		return true
	}
	return slices.Contains(h, name)
}

// hostOf returns the host of a Host header in lower case, an address in its usual form.
func hostOf(hostport string) (name string, ok bool) {
	if !isASCII(hostport) { // there are letters that become ASCII in lower case
		return "", false
	}
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
		return addr.String(), addr.Zone() == ""
	}
	return strings.ToLower(name), name != "" && !strings.HasPrefix(hostport, "[")
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// CheckHost refuses what is not the name or the address of a host alone.
func CheckHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	for label := range strings.SplitSeq(host, ".") {
		ok := label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-'
		if !ok || strings.ContainsFunc(label, func(r rune) bool { return !strings.ContainsRune(hostCharacters, r) }) {
			return fmt.Errorf("%q: write the name of a host, without a scheme and a port, such as hutch.example.org", host)
		}
	}
	return nil
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// CheckOrigin refuses what is not an origin as a browser writes it (RFC 6454, 6.2).
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || origin != strings.ToLower(origin) {
		return fmt.Errorf("%q: write an origin as a browser does, such as https://app.example.org", origin)
	}
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		return fmt.Errorf("%q: a browser leaves the port of its scheme out: write %s", origin, strings.TrimSuffix(origin, ":"+u.Port()))
	}
	return nil
}

// CheckURL refuses what is not the address of a listener.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		err = errors.New("no http or https")
	}
	if err == nil {
		err = CheckOrigin(text)
	}
	if err == nil {
		err = CheckHost(u.Hostname())
	}
	if err != nil {
		return fmt.Errorf("%q: write scheme and host alone, such as https://hutch.example.org", text)
	}
	return nil
}

// ownOrigin reports whether a request comes from a page that was served under the very host
// and port that it asks, or under the address that we are reached by.
func (d *Door) ownOrigin(r *http.Request, origin string) bool {
	return isASCII(origin) && (strings.EqualFold(origin, d.base(r)) || strings.EqualFold(origin, schemeOf(r)+r.Host))
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://"
	}
	return "http://"
}

// base is the address that a client reaches us by, as far as we know.
func (d *Door) base(r *http.Request) string {
	if d.o.URL != "" {
		return d.o.URL
	}
	return strings.ToLower(schemeOf(r) + r.Host)
}
