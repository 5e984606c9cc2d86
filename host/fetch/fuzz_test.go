package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/capability"
)

// FuzzURL: what a rule of the policy matches and what is sent agree. Whatever a guest
// writes, either nothing is sent, or the request line is one that the rule matches
// when a server's own reader takes it apart.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://a.test/p/", "https://A.test:0443/p/x/../y;c?d e#f", "https://a.test/p/%2e%2e/q", "https://a.test/p/a%2Fb",
		"https://a.test/p%2Fa", "https://a.test/p/%252e%252e/q", "https://a.test/p/..;/q", "https://b.test/", "/q", "//b.test/", "https://a.test/p/\\..\\q",
		"https://a.test.:443/p/%C3%A9/\u00e9?\"", "https://[::1]/p/", "https://a.test/p//../../q"} {
		f.Add("https://a.test/p/", seed)
		f.Add(seed, "https://a.test/p/next")
	}
	rule := capability.HTTPRule{Host: "a.test", Paths: []string{"/p/"}}
	f.Fuzz(func(t *testing.T, first, second string) {
		c := New(Options{})
		sent := &wire{t: t, rule: rule, location: second}
		c.pools[poolKey{module: "m"}] = &pool{transport: sent, close: func() {}}
		_, err := c.Do(t.Context(), "m", oneRule{rule}, nil, Request{URL: first})
		if refused := (*Refused)(nil); errors.As(err, &refused) {
			checkRefused(t, refused)
		}
		parsed, parseErr := url.Parse(first)
		matched := parseErr == nil && utf8.ValidString(first) && len(first) <= 8<<10 && rule.Match("GET", parsed)
		if matched != (sent.n > 0) {
			t.Fatalf("%q: matched %t, %d requests sent: %v", first, matched, sent.n, err)
		}
	})
}

// wire holds each request that is sent to the rule, as HTTP/1.1 writes it, and
// redirects the first.
type wire struct {
	t        *testing.T
	rule     capability.HTTPRule
	location string
	n        int
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var b bytes.Buffer
	if err := r.Clone(w.t.Context()).Write(&b); err != nil {
		w.t.Fatalf("%v: %v", r.URL, err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&b))
	if err != nil {
		w.t.Fatalf("%v: %v", r.URL, err)
	}
	u := *got.URL
	u.Scheme, u.Host = r.URL.Scheme, got.Host
	if !w.rule.Match(got.Method, &u) || r.URL.Host != got.Host || u.RequestURI() != r.URL.RequestURI() {
		w.t.Fatalf("%q was sent to %q", got.RequestURI, got.Host)
	}
	if strings.ContainsFunc(got.RequestURI, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		w.t.Fatalf("request line %q", got.RequestURI)
	}
	w.n++
	status := 200
	if w.n == 1 {
		status = 302
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {w.location}}, Body: http.NoBody}, nil
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
