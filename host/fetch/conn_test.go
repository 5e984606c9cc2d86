package fetch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

// The environment names proxies; none of them sees a connection.
func TestS15_EnvironmentProxiesAreNotUsed(t *testing.T) {
	proxy, connections := counted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "proxy") })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	if p, err := http.ProxyFromEnvironment(httptest.NewRequest("GET", "http://outer.test/", nil)); err != nil || p == nil { // it may be that of an earlier run in this process
		t.Fatalf("the environment's proxy is %v, %v: this test would show nothing", p, err)
	}
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") }
	plain := server(t, handler)
	d := &dials{to: plain.Listener.Addr().String()}
	c := newClient(t, fetch.Options{Resolver: resolves("93.184.215.14", "outer.test"), Dial: d.dial})
	got, err := c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://outer.test/"))
	if err != nil || string(got.Body) != "direct" {
		t.Errorf("%v, %q", err, got.Body)
	}
	_, err = c.Do(t.Context(), "m", granted{{Host: "outer.test"}}, nil, get("https://outer.test/"))
	refusal(t, err, abi.Unavailable, "does not speak TLS")
	if !slices.Equal(d.addresses(), []string{"93.184.215.14:80", "93.184.215.14:443"}) || connections.Load() != 0 {
		t.Errorf("dialled %v, the proxy got %d connections", d.addresses(), connections.Load())
	}
}

// Modules share no connection, also with HTTP/2, and none between rules that allow
// different addresses. One module uses its own again, and no cookie comes back.
func TestS21_ConnectionsAreApart(t *testing.T) {
	var mu sync.Mutex
	var remotes []string
	handler := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		remotes = append(remotes, r.RemoteAddr)
		if len(r.Cookies()) > 0 || r.Header.Get("Authorization") != "" {
			t.Errorf("sent %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "of-somebody"})
	}
	plain := server(t, handler)
	secure, roots := tlsServer(t, handler)
	for _, target := range []string{plain.URL, secure.URL} {
		remotes = nil
		c := newClient(t, fetch.Options{Roots: roots})
		narrow, wide := loopback(t, target), loopback(t, target)
		wide.AllowPrivate = prefixes("127.0.0.0/8", "10.0.0.0/8")
		turned := wide
		turned.AllowPrivate = prefixes("10.0.0.0/8", "127.0.0.0/8", "10.0.0.0/8")
		for _, use := range []struct {
			module string
			rule   capability.HTTPRule
		}{{"a", narrow}, {"b", narrow}, {"a", narrow}, {"a", wide}, {"a", turned}, {"b", narrow}} {
			if _, err := c.Do(t.Context(), use.module, granted{use.rule}, nil, get(target)); err != nil {
				t.Fatal(err)
			}
		}
		a, b, aWide := remotes[0], remotes[1], remotes[3]
		if a == b || a == aWide || b == aWide || !slices.Equal(remotes, []string{a, b, a, aWide, aWide, b}) {
			t.Errorf("%s: connections from %v", target, remotes)
		}
	}
}

// A connection that a wider rule has opened to an inner address is not used for a
// request under one that allows none.
func TestS21_NarrowRuleGetsNoWideConnection(t *testing.T) {
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	wide, rawURL := named(t, "nas.test", s.URL)
	narrow := wide
	wide.Paths, narrow.Paths, narrow.AllowPrivate = []string{"/wide"}, []string{"/narrow"}, nil
	c := newClient(t, fetch.Options{Resolver: resolves("127.0.0.1", "nas.test")})
	rules := granted{wide, narrow}
	if _, err := c.Do(t.Context(), "m", rules, nil, get(rawURL+"/wide")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), "m", rules, nil, get(rawURL+"/narrow"))
	refusal(t, err, abi.Denied, "blocked_ip")
}

func TestConnectionsAreKeptForSoManyModules(t *testing.T) {
	rawURL, connections := counted(t, func(http.ResponseWriter, *http.Request) {})
	c := newClient(t, fetch.Options{MaxPools: 2})
	for i, step := range []struct {
		module string
		want   int32 // connections so far
	}{{"a", 1}, {"b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"c", 3}, {"b", 4}, {"c", 4}, {"a", 5}} {
		if _, err := c.Do(t.Context(), step.module, granted{loopback(t, rawURL)}, nil, get(rawURL)); err != nil {
			t.Fatal(err)
		}
		if got := connections.Load(); got != step.want {
			t.Errorf("step %d, module %s: %d connections, want %d", i, step.module, got, step.want)
		}
	}
	c.Forget("b")
	if _, err := c.Do(t.Context(), "a", granted{loopback(t, rawURL)}, nil, get(rawURL)); err != nil || connections.Load() != 5 {
		t.Errorf("%v, %d connections after another module was forgotten", err, connections.Load())
	}
	c.Forget("a")
	if _, err := c.Do(t.Context(), "a", granted{loopback(t, rawURL)}, nil, get(rawURL)); err != nil || connections.Load() != 6 {
		t.Errorf("%v, %d connections after the module was forgotten", err, connections.Load())
	}
}

func TestTLSIsForTheName(t *testing.T) {
	serverNames := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, r.Host)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		serverNames <- h.ServerName
		return nil, nil
	}}
	s.Config.ErrorLog = nullLog()
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	d := &dials{to: s.Listener.Addr().String()}
	n := resolves("93.184.215.14", "example.com", "other.test")
	c := newClient(t, fetch.Options{Roots: roots, Resolver: n, Dial: d.dial})
	rules := granted{{Host: "example.com"}, {Host: "other.test"}}
	got, err := c.Do(t.Context(), "m", rules, nil, get("https://EXAMPLE.com./"))
	if err != nil || string(got.Body) != "HTTP/2.0 example.com" || <-serverNames != "example.com" {
		t.Errorf("%v, %q", err, got.Body)
	}
	_, err = c.Do(t.Context(), "m", rules, nil, get("https://other.test/"))
	refusal(t, err, abi.Unavailable, "certificate is not valid for it")
	untrusting := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
	_, err = untrusting.Do(t.Context(), "m", rules, nil, get("https://example.com/"))
	refusal(t, err, abi.Unavailable, "certificate is not valid for it")
}

func TestOldTLSIsRefused(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	s.Config.ErrorLog = nullLog()
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := newClient(t, fetch.Options{Roots: roots})
	_, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL))
	refusal(t, err, abi.Unavailable, "TLS handshake failed")
}

// A call that ends takes its connection along, whatever that was waiting for.
func TestE26_CancelledCallsCloseTheirConnection(t *testing.T) {
	for name, script := range map[string]struct {
		answer string
		https  bool
		body   int
	}{
		"answer":    {},
		"header":    {answer: "HTTP/1.1 200 OK\r\nX: "},
		"body":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"},
		"chunk":     {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nx"},
		"redirect":  {answer: "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 100\r\n\r\nx"},
		"handshake": {https: true},
		"sending":   {body: 64 << 20},
	} {
		u := newUpstream(t, script.answer)
		rawURL := u.url
		if script.https {
			rawURL = strings.Replace(rawURL, "http:", "https:", 1)
		}
		c := newClient(t, fetch.Options{MaxRequest: 64 << 20})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, "m", granted{loopback(t, rawURL)}, nil, fetch.Request{Method: "POST", URL: rawURL, Body: make([]byte, script.body)})
			done <- err
		}()
		<-u.answered
		cancel()
		refusal(t, <-done, abi.Cancelled, "the call that asked has ended")
		close(u.read)
		select {
		case <-u.gone:
		case <-time.After(liveness):
			t.Errorf("%s: the connection is still open", name)
		}
	}
}

// upstream is a server that answers a connection's first bytes and says so. When
// it is told to it reads the rest, and says when the connection is gone.
type upstream struct {
	url                  string
	answered, read, gone chan struct{}
}

func newUpstream(t *testing.T, answer string) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{"http://" + l.Addr().String(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(u.gone)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Read(make([]byte, 10))
		_, _ = io.WriteString(conn, answer)
		close(u.answered)
		<-u.read
		_, _ = io.Copy(io.Discard, conn)
	}()
	t.Cleanup(func() { _ = l.Close(); <-u.gone })
	return u
}

// With HTTP/2 it is the stream that ends; the connection serves others.
func TestE26_CancelledCallsEndTheirStream(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	s, roots := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/wait" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		close(ended)
	})
	c := newClient(t, fetch.Options{Roots: roots})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, "m", granted{loopback(t, s.URL)}, nil, get(s.URL+"/wait"))
		done <- err
	}()
	<-begun
	cancel()
	refusal(t, <-done, abi.Cancelled, "")
	select {
	case <-ended:
	case <-time.After(liveness):
		t.Error("the stream is still open")
	}
	if _, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL+"/")); err != nil {
		t.Error(err)
	}
}

// A call that ends while its name is looked up or its connection is being made
// leaves nothing running; one that has ended before sends nothing.
func TestE26_CancelledBeforeTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	c := newClient(t, fetch.Options{Resolver: resolves("93.184.215.14", "some.test"), Dial: hang})
	_, err := c.Do(ctx, "m", granted{anyPublic()}, nil, get("http://some.test/"))
	refusal(t, err, abi.Cancelled, "")
	<-ended
	ctx, cancel = context.WithCancel(t.Context())
	r := &hangingResolver{cancel: cancel, ended: make(chan struct{})}
	c = newClient(t, fetch.Options{Resolver: r, Dial: new(dials).dial})
	_, err = c.Do(ctx, "m", granted{anyPublic()}, nil, get("http://some.test/"))
	refusal(t, err, abi.Cancelled, "")
	<-r.ended

	w := newWire(t, emptyAnswer)
	c = newClient(t, fetch.Options{})
	got, err := c.Do(ctx, "m", granted{loopback(t, w.url)}, nil, get(w.url))
	if refusal(t, err, abi.Cancelled, ""); got.Sent != 0 || len(w.sent) > 0 {
		t.Errorf("sent %d bytes", got.Sent)
	}
}

type hangingResolver struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func (r *hangingResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	r.cancel()
	<-ctx.Done()
	close(r.ended)
	return nil, ctx.Err()
}

// Many goroutines, modules and ends at once.
func TestClientIsForAnyGoroutine(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Api-Key")) }
	plain := server(t, handler)
	secure, roots := tlsServer(t, handler)
	c := newClient(t, fetch.Options{Roots: roots, MaxPools: 3})
	inject := func(_ *url.URL, h http.Header) error { h.Set("Authorization", "x"); return nil }
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 20 {
				target, key := []string{plain.URL, secure.URL}[n%2], fmt.Sprint(i, "-", n)
				ctx, cancel := context.WithCancel(t.Context())
				if n%5 == 4 {
					go cancel()
				}
				got, err := c.Do(ctx, fmt.Sprint("m", i%5), granted{loopback(t, target)}, inject,
					fetch.Request{URL: target, Header: map[string][]string{"X-Api-Key": {key}}})
				if cancel(); err == nil && string(got.Body) != key || err != nil && codeOf(err) != abi.Cancelled {
					t.Errorf("%s: %v, %q", key, err, got.Body)
				}
				if n == 10 {
					c.Forget(fmt.Sprint("m", i%5))
				}
			}
		})
	}
	wg.Wait()
}

// A server that switches protocols unasked has the connection closed, though it
// sends nothing more: that body does not end with the call.
func TestSwitchOfProtocolsIsNotAwaited(t *testing.T) {
	u := newUpstream(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	c := newClient(t, fetch.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), "m", granted{loopback(t, u.url)}, nil, get(u.url))
		done <- err
	}()
	select {
	case err := <-done:
		refusal(t, err, abi.Unavailable, "wants to switch protocols")
	case <-time.After(liveness):
		t.Error("the call waits for the connection's end")
	}
	close(u.read)
}
