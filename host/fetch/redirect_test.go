package fetch_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

// counted counts the connections that a server gets.
func counted(t *testing.T, h http.HandlerFunc) (rawURL string, connections *atomic.Int32) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	connections = new(atomic.Int32)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, connections
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{location}
		w.WriteHeader(http.StatusFound)
	}
}

func TestS08_RedirectsAreDecidedAnew(t *testing.T) {
	inner, connections := counted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inner") })
	port := inner[strings.LastIndexByte(inner, ':'):]
	for location, want := range map[string]string{
		inner + "/":                           "not granted", // same address, another port
		"http://127.0.0.1" + port:             "not granted",
		"http://localhost" + port:             "not granted",
		"http://inside.test" + port + "/":     "blocked_ip", // granted by name, resolves to loopback
		"//inside.test" + port + "/":          "blocked_ip",
		"http://other.test/":                  "not granted",
		"https://outer.test/":                 "not granted",
		"file:///etc/passwd":                  `scheme "file"`,
		"gopher://x/":                         `scheme "gopher"`,
		"javascript:alert(1)":                 `scheme "javascript"`,
		"http://user@outer.test/":             "a user in the URL",
		"http://[::ffff:7f00:1]" + port + "/": "host",
		"http://2130706433" + port + "/":      "host",
		"/public/%2e%2e/x":                    "dot segments",
		"/private/x":                          "not granted",
		"../private/x":                        "not granted",
		"http://outer.test\\@other.test/":     "cannot be read",
		"\xff":                                "not UTF-8",
		"/" + strings.Repeat("a", 8<<10):      "a URL of 8193 bytes",
	} {
		s := server(t, redirectTo(location))
		rule, _ := named(t, "outer.test", s.URL)
		rule.Paths = []string{"/public"}
		inside := rule
		inside.Host, inside.AllowPrivate, inside.Ports, inside.Paths = "inside.test", nil, loopback(t, inner).Ports, nil
		n := resolves("127.0.0.1", "outer.test", "inside.test", "other.test", "localhost")
		c := newClient(t, fetch.Options{Resolver: n})
		start := strings.Replace(s.URL, "127.0.0.1", "outer.test", 1) + "/public/start"
		_, err := c.Do(t.Context(), "m", granted{rule, inside}, nil, get(start))
		refusal(t, err, codeOf(err), want)
		if asked := n.queries(); slices.Contains(asked, "other.test.") || slices.Contains(asked, "localhost") {
			t.Errorf("%.50s: asked for %v", location, asked)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("the inner server got %d connections", n)
	}
}

func TestS08_RedirectsAreCounted(t *testing.T) {
	var asked atomic.Int32
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
		}
	})
	rules := granted{loopback(t, s.URL)}
	for _, tt := range []struct{ most, hops, requests int }{{0, 5, 6}, {0, 6, 6}, {2, 2, 3}, {2, 3, 3}, {0, 1 << 30, 6}} {
		asked.Store(0)
		c := newClient(t, fetch.Options{MaxRedirects: tt.most})
		got, err := c.Do(t.Context(), "m", rules, nil, get(fmt.Sprintf("%s/%d", s.URL, tt.hops)))
		if tt.hops < tt.requests {
			if err != nil || got.Redirects != tt.hops || got.URL != s.URL+"/0" {
				t.Errorf("%d hops: %v, %d redirects, at %s", tt.hops, err, got.Redirects, got.URL)
			}
		} else {
			refusal(t, err, abi.Limit, fmt.Sprintf("redirects once more after %d", tt.requests-1))
		}
		if n := int(asked.Load()); n != tt.requests {
			t.Errorf("%d hops, at most %d: %d requests, want %d", tt.hops, tt.most, n, tt.requests)
		}
	}
	c := newClient(t, fetch.Options{MaxRedirects: -1})
	got, err := c.Do(t.Context(), "m", rules, nil, get(s.URL+"/3"))
	if err != nil || got.Status != http.StatusFound || got.Header["Location"][0] != "/2" {
		t.Errorf("without redirects: %v, %d %v", err, got.Status, got.Header)
	}
}

// What is secret stays with the origin that it was meant for, also when the last
// redirect leads back there.
func TestS08_CredentialsStayWithTheirOrigin(t *testing.T) {
	type seen struct {
		host, path, method, body string
		header                   http.Header
	}
	var hops []seen
	var first, second string
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		hops = append(hops, seen{r.Host, r.URL.RequestURI(), r.Method, string(body), r.Header.Clone()})
		next := map[string]string{"/start": first + "/same", "/same": second + "/away", "/away": first + "/back"}[r.URL.Path]
		if next != "" {
			http.Redirect(w, r, next, http.StatusTemporaryRedirect)
		}
	}
	a, b := server(t, handler), server(t, handler)
	ruleA, urlA := named(t, "first.test", a.URL)
	ruleB, urlB := named(t, "second.test", b.URL)
	first, second = urlA, urlB
	c := newClient(t, fetch.Options{Resolver: resolves("127.0.0.1", "first.test", "second.test")})
	inject := func(u *url.URL, h http.Header) error {
		if u.Hostname() == "first.test" && u.Path != "/back" {
			h.Set("X-Secret", "value")
			h.Add("Cookie", "c2=secret") // must not reach the array that the next hop's header has
			u.RawQuery = "key=value"
		}
		return nil
	}
	own := map[string]string{"Authorization": "Bearer x", "Cookie": "c=1", "X-Api-Key": "k", "Private-Token": "p", "Referer": "http://r/",
		"X-Vault-Token": "v", "Accept": "a/b", "Content-Type": "t/p", "User-Agent": "ua"}
	header := map[string][]string{}
	for name, value := range own {
		header[name] = append(make([]string, 0, 4), value)
	}
	got, err := c.Do(t.Context(), "m", granted{ruleA, ruleB}, inject,
		fetch.Request{Method: "POST", URL: urlA + "/start", Header: header, Body: []byte("data")})
	if err != nil || got.Redirects != 3 || got.URL != urlA+"/back" || len(hops) != 4 {
		t.Fatalf("%v, %d redirects, at %s, %d requests", err, got.Redirects, got.URL, len(hops))
	}
	kept := []string{"Accept", "Content-Type", "User-Agent"}
	for i, hop := range hops {
		if hop.method != "POST" || hop.body != "data" {
			t.Errorf("hop %d: %s %q", i, hop.method, hop.body)
		}
		injected := i < 2
		if (hop.header.Get("X-Secret") == "value") != injected || strings.Contains(hop.path, "key=value") != injected {
			t.Errorf("hop %d, %s: injected %v %s", i, hop.host, hop.header, hop.path)
		}
		for name, value := range own {
			if want := injected || slices.Contains(kept, name); slices.Contains(hop.header[name], value) != want {
				t.Errorf("hop %d, %s: %s is %q, sent should be %t", i, hop.host, name, hop.header[name], want)
			}
		}
		if injected && len(hop.header["Cookie"]) != 2 || !injected && hop.header.Get("Cookie") != "" {
			t.Errorf("hop %d: cookies %q", i, hop.header["Cookie"])
		}
	}
}

// Another scheme or another port of the same host is another origin.
func TestS08_OriginIsSchemeHostAndPort(t *testing.T) {
	var got []string
	note := func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }
	plain := server(t, note)
	secure, roots := tlsServer(t, note)
	for _, target := range []string{plain.URL, secure.URL} {
		got = nil
		s := server(t, redirectTo(target+"/"))
		c := newClient(t, fetch.Options{Roots: roots})
		_, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL), loopback(t, target)}, nil,
			fetch.Request{URL: s.URL, Header: map[string][]string{"Authorization": {"Bearer x"}}})
		if err != nil || !slices.Equal(got, []string{""}) {
			t.Errorf("%s: %v, authorization %q", target, err, got)
		}
	}
}

func TestRedirectsChangeMethodsAsBrowsersDo(t *testing.T) {
	var seen []string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if status := 0; r.URL.Path != "/end" {
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
			http.Redirect(w, r, "/end", status)
			return
		}
		seen = append(seen, fmt.Sprintf("%s %s %s", r.Method, body, r.Header.Get("Content-Type")))
	})
	c := newClient(t, fetch.Options{})
	for request, want := range map[string]string{
		"POST 301": "GET  ", "POST 302": "GET  ", "POST 303": "GET  ", "POST 307": "POST b t/p", "POST 308": "POST b t/p",
		"PUT 301": "GET  ", "DELETE 303": "GET  ", "GET 302": "GET b t/p", "HEAD 303": "HEAD  t/p",
	} {
		method, status, _ := strings.Cut(request, " ")
		seen = nil
		_, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, fetch.Request{Method: method, URL: s.URL + "/" + status,
			Header: map[string][]string{"Content-Type": {"t/p"}}, Body: []byte("b")})
		if method == "HEAD" {
			want = "HEAD b t/p"
		}
		if err != nil || !slices.Equal(seen, []string{want}) {
			t.Errorf("%s: %v, %q, want %q", request, err, seen, want)
		}
	}
	// A method that the redirect turns into is decided like any other.
	rule := loopback(t, s.URL)
	rule.Methods = []string{"POST"}
	_, err := c.Do(t.Context(), "m", granted{rule}, nil, fetch.Request{Method: "POST", URL: s.URL + "/303"})
	refusal(t, err, abi.Denied, `redirect by host "127.0.0.1`)
}

func TestAnswersThatOnlyLookLikeRedirects(t *testing.T) {
	c := newClient(t, fetch.Options{})
	for status, location := range map[int]string{300: "/x", 302: "", 304: "/x", 305: "/x", 306: "/x", 201: "/x"} {
		s := server(t, func(w http.ResponseWriter, _ *http.Request) {
			if location != "" {
				w.Header().Set("Location", location)
			}
			w.WriteHeader(status)
		})
		got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL))
		if err != nil || got.Status != status || got.Redirects != 0 {
			t.Errorf("%d: %v, %d, %d redirects", status, err, got.Status, got.Redirects)
		}
	}
}

// An injection cannot lead the request elsewhere, write what frames it, or break a line.
func TestInjectionIsChecked(t *testing.T) {
	var seen []*http.Request
	s := server(t, func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r) })
	c := newClient(t, fetch.Options{})
	secret := "hunter2hunter2"
	for name, tt := range map[string]struct {
		inject fetch.Inject
		code   abi.Code
		text   string
	}{
		"host":        {func(u *url.URL, _ http.Header) error { u.Host = "evil.test"; return nil }, abi.Denied, "change where it goes"},
		"scheme":      {func(u *url.URL, _ http.Header) error { u.Scheme = "https"; return nil }, abi.Denied, "change where it goes"},
		"path":        {func(u *url.URL, _ http.Header) error { u.Path = "/x"; return nil }, abi.Denied, "change where it goes"},
		"user":        {func(u *url.URL, _ http.Header) error { u.User = url.User("x"); return nil }, abi.Denied, "change where it goes"},
		"framing":     {func(_ *url.URL, h http.Header) error { h.Set("Transfer-Encoding", "chunked"); return nil }, abi.Denied, "Transfer-Encoding"},
		"no token":    {func(_ *url.URL, h http.Header) error { h["X y"] = []string{"z"}; return nil }, abi.Denied, "X y"},
		"newline":     {func(_ *url.URL, h http.Header) error { h.Set("X-Secret", secret+"\r\nX: y"); return nil }, abi.Invalid, "X-Secret"},
		"error":       {func(*url.URL, http.Header) error { return errors.New("secret t is not set\n") }, abi.Denied, "secret t is not set "},
		"long header": {func(_ *url.URL, h http.Header) error { h.Set("X-Secret", strings.Repeat(secret, 5000)); return nil }, abi.Limit, "bytes of header lines with what is added"},
		"long query":  {func(u *url.URL, _ http.Header) error { u.RawQuery = strings.Repeat(secret, 5000); return nil }, abi.Limit, "bytes with what is added to it"},
		"query":       {func(u *url.URL, _ http.Header) error { u.RawQuery = "k=" + secret + " HTTP/1.1\r\n"; return nil }, abi.OK, ""},
	} {
		got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, tt.inject, get(s.URL+"/a?b"))
		if tt.code != abi.OK {
			if r := refusal(t, err, tt.code, tt.text); strings.Contains(r.Text, secret) || strings.Contains(r.Text, "\n") {
				t.Errorf("%s: %q", name, r.Text)
			}
		} else if err != nil || len(seen) != 1 || seen[0].URL.RawQuery != "k="+secret+"%20HTTP/1.1%0D%0A" || got.URL != s.URL+"/a?b" {
			t.Errorf("%s: %v, at %s", name, err, got.URL)
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d requests were sent, want 1", len(seen))
	}
}

// Of a redirect that cannot be read nothing is quoted that may have been injected: it is
// cleaned before it is cut, or left out.
func TestS18_RedirectsAreQuotedClean(t *testing.T) {
	secret := strings.Repeat("hunter2", 5)
	inject := func(_ *url.URL, h http.Header) error { h.Set("X-Secret", secret); return nil }
	s := server(t, redirectTo("https://h%zz/"+strings.Repeat("x", 70)+secret))
	c := newClient(t, fetch.Options{})
	for want, clean := range map[string]func(string) string{
		"to a URL that is not followed": nil,
		"https://h%zz/xxx":              func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") },
	} {
		req := get(s.URL)
		req.Clean = clean
		_, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, inject, req)
		if r := refusal(t, err, abi.Invalid, want); strings.Contains(r.Text, "hunter2") {
			t.Errorf("told: %s", r.Text)
		}
	}
}

// The body is held to the limit of each hop's own rule.
func TestMaxRequest(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big" {
			http.Redirect(w, r, "/small", http.StatusTemporaryRedirect)
		}
	})
	big, small := loopback(t, s.URL), loopback(t, s.URL)
	big.Paths, big.MaxRequest = []string{"/big", "/end"}, 10
	small.Paths, small.MaxRequest = []string{"/small"}, 9
	c := newClient(t, fetch.Options{MaxRequest: 11})
	post := func(rules granted, path string, n int) error {
		_, err := c.Do(t.Context(), "m", rules, nil, fetch.Request{Method: "POST", URL: s.URL + path, Body: make([]byte, n)})
		return err
	}
	rules, open := granted{big, small}, granted{loopback(t, s.URL)}
	for _, err := range []error{post(rules, "/end", 10), post(rules, "/big", 9), post(open, "/end", 11)} {
		if err != nil {
			t.Error(err)
		}
	}
	refusal(t, post(rules, "/end", 11), abi.Limit, "a body of 11 bytes: at most 10 are allowed (max_request)")
	refusal(t, post(rules, "/big", 10), abi.Limit, "redirect by host")
	refusal(t, post(open, "/end", 12), abi.Limit, "at most 11")
}

// Rules get a URL of their own: what they do to it changes nothing.
func TestRulesCannotChangeTheURL(t *testing.T) {
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	c := newClient(t, fetch.Options{})
	got, err := c.Do(t.Context(), "m", meddling{loopback(t, s.URL)}, nil, get(s.URL+"/a"))
	if err != nil || got.URL != s.URL+"/a" {
		t.Errorf("%v, at %s", err, got.URL)
	}
}

type meddling struct{ rule capability.HTTPRule }

func (m meddling) HTTP(_ string, u *url.URL) (capability.HTTPRule, *capability.Refusal) {
	u.Host, u.Path = "127.0.0.1:1", "/elsewhere"
	return m.rule, nil
}
