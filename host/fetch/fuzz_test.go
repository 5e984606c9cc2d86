package fetch

import (
	"bufio"
	"bytes"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
)

// checkCanonical holds what every URL must be that the rules decide about.
func checkCanonical(t *testing.T, u *url.URL) {
	t.Helper()
	again, refused := parseURL(nil, u.String())
	if refused != nil || again.String() != u.String() {
		t.Fatalf("%q is read again as %v: %v", u, again, refused)
	}
	if host, err := capability.CanonicalHost(u.Hostname()); err != nil || host != u.Hostname() {
		t.Fatalf("%q: host is canonically %q, %v", u, host, err)
	}
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		t.Fatalf("%#v", u)
	}
	line := u.RequestURI()
	if !strings.HasPrefix(line, "/") || strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		t.Fatalf("request line %q", line)
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			t.Fatalf("path %q", u.Path)
		}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && addr.String() != u.Hostname() {
		t.Fatalf("host %q", u.Hostname())
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/", "http://a@b", "HTTP://EXAMPLE.com:080/a/../b;c?d e#f", "http://[::1]:80/", "http://ü.de/%2e%2e",
		"//x", "/x", "?", "http://x/%25%32%65", "http://127.1/", "http://x\\y/", "http://x/a//..//b", "http:x", "http://[fe80::1%25a]/", "http://%41/", "http://%A00000", "http://xn--0000-u70y/", "http://a\u2024b/"} {
		f.Add(seed, "")
		f.Add("http://base.test/a/b?c", seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		u, refused := parseURL(nil, first)
		if (u == nil) == (refused == nil) {
			t.Fatalf("%v, %v", u, refused)
		}
		if refused != nil {
			checkRefused(t, refused)
			return
		}
		checkCanonical(t, u)
		if next, refused := parseURL(u, second); refused == nil {
			checkCanonical(t, next)
		} else {
			checkRefused(t, refused)
		}
	})
}

// checkRefused holds that what a stranger wrote cannot break a line, or fill one.
func checkRefused(t *testing.T, refused *Refused) {
	t.Helper()
	if refused.Code <= 0 || refused.Text == "" || len(refused.Text) > 1000 || strings.ContainsAny(refused.Text, "\r\n\x00") {
		t.Fatalf("%d %q", refused.Code, refused.Text)
	}
}

func FuzzHeader(f *testing.F) {
	for _, seed := range [][2]string{{"Accept", "*/*"}, {"Host", "x"}, {"x-acme-a", "1"}, {"X\r\nHost", "y"}, {"Cookie", "a\r\nb: c"}, {"X_Forwarded_For", "1"},
		{"", ""}, {":path", "/"}, {"X-Acme-\u00e9", "\xff"}, {"ACCEPT", "\t"}, {"Content-length", "1"}, {"X-Acme-Ö", "a"}, {"TE", "trailers"}} {
		f.Add(seed[0], seed[1], seed[1], seed[0])
	}
	c := New(Options{RequestHeaders: []string{"*"}, MaxHeaderBytes: 1 << 20})
	f.Fuzz(func(t *testing.T, name, value, second, third string) {
		header, refused := c.guestHeader(map[string][]string{name: {value, second}, third: {value}})
		if refused != nil {
			checkRefused(t, refused)
			return
		}
		var b bytes.Buffer
		if err := header.Write(&b); err != nil {
			t.Fatal(err)
		}
		lines, _ := headerSize(header)
		if n := strings.Count(b.String(), "\n"); n != lines || !isASCII(b.String()) {
			t.Fatalf("%d lines became %d: %q", lines, n, b.String())
		}
		b.WriteString("\r\n")
		read, err := textproto.NewReader(bufio.NewReader(&b)).ReadMIMEHeader()
		if err != nil && len(header) > 0 {
			t.Fatalf("%v: %q", err, header)
		}
		for name := range read {
			if reserved(name) || http.Header(read).Get(name) != strings.Trim(header.Get(name), " \t") {
				t.Fatalf("%q: sent %q, read %q", name, header[name], read[name])
			}
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e || r < ' ' && r != '\r' && r != '\n' && r != '\t' })
}

// FuzzAddress holds our table against the predicates of the standard library: it
// may refuse more than they do, and never less.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "8.8.8.8", "::1", "::ffff:10.0.0.1", "2600::1", "fe80::1", "64:ff9b::1"} {
		b, err := netip.MustParseAddr(seed).MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	table := newAddressTable()
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || !table.permits(a, nil, nil) {
			return
		}
		u := a.Unmap()
		if !u.IsGlobalUnicast() || u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified() {
			t.Fatalf("%s is permitted", a)
		}
		if table.permits(a, nil, []netip.Addr{u}) {
			t.Fatalf("%s is permitted though it is this machine's", a)
		}
	})
}
