package fetch_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

// wire is a TCP listener that gives one answer to each connection, reads it to the
// end, and keeps the bytes of what it was sent.
type wire struct {
	url  string
	sent chan string
}

func newWire(t *testing.T, answer string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, done := &wire{"http://" + l.Addr().String(), make(chan string, 100)}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.serve(conn, answer)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return w
}

// serve reads head and body by the announced length, answers, and then waits for
// the other end so that nothing that is sent behind the request is missed.
func (w *wire) serve(conn net.Conn, answer string) {
	defer func() { _ = conn.Close() }()
	var got bytes.Buffer
	r := bufio.NewReader(io.TeeReader(conn, &got))
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
	}
	_, _ = io.CopyN(io.Discard, r, int64(length))
	_, _ = io.WriteString(conn, answer)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, r)
	w.sent <- got.String()
}

const emptyAnswer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

// What leaves for the wire is what was decided, in one request, byte for byte.
func TestS12_BytesOnTheWire(t *testing.T) {
	w := newWire(t, emptyAnswer)
	host := strings.TrimPrefix(w.url, "http://")
	c := newClient(t, fetch.Options{RequestHeaders: []string{"X-Acme-*"}})
	got, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, fetch.Request{Method: "POST", URL: w.url + "/a b?c d#e",
		Header: map[string][]string{"x-acme-one": {"1", "2"}, "ACCEPT-ENCODING": {"br"}, "Accept": {"a\tb ~!"}}, Body: []byte("GET /x HTTP/1.1\r\n\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := "POST /a%20b?c%20d HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: hutch\r\nContent-Length: 19\r\nAccept: a\tb ~!\r\n" +
		"Accept-Encoding: gzip\r\nX-Acme-One: 1\r\nX-Acme-One: 2\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
	sent := <-w.sent
	if sent != want {
		t.Errorf("sent\n%q\nwant\n%q", sent, want)
	}
	if less := int64(len("Content-Length: 19\r\n")); got.Sent != int64(len(want))-less {
		t.Errorf("counted %d of %d bytes", got.Sent, len(want))
	}
}

// smuggled are headers that would frame, route or split a request, or speak for
// somebody else.
func smuggled() map[string][]string {
	h := map[string][]string{
		"":                         {"x"},
		"X-Api-Key\r\nHost":        {"evil.test"},
		"X Api Key":                {"x"},
		"X-Api-Key:":               {"x"},
		"X-Äpi-Key":                {"x"},
		strings.Repeat("A", 65):    {"x"},
		":authority":               {"evil.test"},
		"Accept\x00":               {"x"},
		"X-Unheard-Of":             {"x"},
		"Destination":              {"http://evil.test/"},
		"X-Amz-Copy-Source":        {"/other/key"},
		"X-Acme-Host\r\nX-Evil: y": {"x"},
	}
	for _, name := range []string{"Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer",
		"Upgrade", "Expect", "Proxy-Authorization", "Proxy-Connection", "proxy-anything", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Forwarded-Proto", "x-forwarded-anything", "Forwarded", "Via", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP",
		"X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_Forwarded_For",
		"Metadata-Flavor", "X-aws-ec2-metadata-token", "X-Google-Metadata-Request", "Sec-Fetch-Site", "Sec-WebSocket-Key",
		"HTTP2-Settings", "Set-Cookie", "X-Envoy-Original-Path", "X-Middleware-Subrequest", "Max-Forwards"} {
		h[name] = []string{"1"}
	}
	return h
}

func TestS12_HeadersThatAreNotTheGuests(t *testing.T) {
	w := newWire(t, emptyAnswer)
	for _, c := range []*fetch.Client{newClient(t, fetch.Options{}), newClient(t, fetch.Options{RequestHeaders: []string{"X-Acme-*"}})} {
		for name, values := range smuggled() {
			got, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil,
				fetch.Request{URL: w.url, Header: map[string][]string{name: values, "Accept": {"*/*"}}})
			if r := refusal(t, err, codeOf(err), "header "); r.Code != abi.Denied && r.Code != abi.Invalid || got.Sent != 0 {
				t.Errorf("%q: %s, sent %d", name, r.Code, got.Sent)
			}
		}
		for _, value := range []string{"a\r\nX: y", "a\nb", "a\rb", "a\x00b", "a\x7fb", "é", "\xff", "\u2028"} {
			_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil,
				fetch.Request{URL: w.url, Header: map[string][]string{"Accept": {"ok", value}}})
			refusal(t, err, abi.Invalid, "header Accept: its value has something else than printable ASCII")
		}
	}
	if len(w.sent) > 0 {
		t.Errorf("sent %q", <-w.sent)
	}
}

// An operator's own names do not open what frames a request or speaks for a proxy.
func TestS12_OptionsCannotOpenReservedHeaders(t *testing.T) {
	w := newWire(t, emptyAnswer)
	c := newClient(t, fetch.Options{RequestHeaders: []string{"*", "Host", "X-Forwarded-For", "Transfer-Encoding"}})
	for _, name := range []string{"Host", "X-Forwarded-For", "Transfer-Encoding", "Content-Length", "Connection", "X-HTTP-Method-Override",
		"X_Forwarded_For", "Content_Length"} {
		_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, fetch.Request{URL: w.url, Header: map[string][]string{name: {"1"}}})
		refusal(t, err, abi.Denied, "not one of those that a tool may set: allowed are ")
	}
	_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, fetch.Request{URL: w.url, Header: map[string][]string{"X-Unheard-Of": {"1"}}})
	if sent := <-w.sent; err != nil || !strings.Contains(sent, "X-Unheard-Of: 1\r\n") {
		t.Errorf("%v, sent %q", err, sent)
	}
}

func lines(n int) map[string][]string {
	h := map[string][]string{}
	for i := range n {
		h[fmt.Sprintf("X-Acme-%d", i)] = []string{"v"}
	}
	return h
}

func TestS13_FortyThousandHeaders(t *testing.T) {
	w := newWire(t, emptyAnswer)
	c := newClient(t, fetch.Options{RequestHeaders: []string{"X-Acme-*"}})
	for n, allowed := range map[int]bool{64: true, 65: false, 40_000: false} {
		for _, header := range []map[string][]string{lines(n), {"X-Acme": slices.Repeat([]string{"v"}, n)}} {
			header = map[bool]map[string][]string{true: header, false: {"X-Acme-A": header["X-Acme"]}}[len(header) > 1]
			_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, fetch.Request{URL: w.url, Header: header})
			if allowed && err != nil {
				t.Errorf("%d: %v", n, err)
			} else if !allowed {
				refusal(t, err, abi.Limit, fmt.Sprintf("the request has %d header lines: at most 64 are allowed", n))
			}
		}
	}
	_, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, fetch.Request{URL: w.url,
		Header: map[string][]string{"X-Acme-A": {strings.Repeat("a", 64<<10-len("X-Acme-A: \r\n")+1)}}})
	refusal(t, err, abi.Limit, "the request has 65537 bytes of header lines: at most 65536")
	for range 2 { // those of 64 lines
		if sent := <-w.sent; strings.Count(sent, "X-Acme-") != 64 {
			t.Errorf("sent %q", sent)
		}
	}
}

func TestS13_FortyThousandHeadersInAnAnswer(t *testing.T) {
	flood := func(n int) string {
		var b strings.Builder
		b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n")
		for i := range n {
			fmt.Fprintf(&b, "X-RateLimit-%d: v\r\n", i)
		}
		b.WriteString("\r\nok")
		return b.String()
	}
	c := newClient(t, fetch.Options{})
	for n, text := range map[int]string{63: "", 64: "the answer has 65 header lines: at most 64", 40_000: "has over 65536 bytes of header lines"} {
		w := newWire(t, flood(n))
		got, err := c.Do(t.Context(), "m", granted{loopback(t, w.url)}, nil, get(w.url))
		if text != "" {
			refusal(t, err, codeOf(err), text)
		} else if err != nil || len(got.Header) != 64 {
			t.Errorf("%d: %v, %d lines", n, err, len(got.Header))
		}
	}
	// The same over HTTP/2, where the lines are compressed.
	s, roots := tlsServer(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 40_000 {
			w.Header()[fmt.Sprintf("X-Ratelimit-%d", i)] = []string{"v"}
		}
	})
	c = newClient(t, fetch.Options{Roots: roots})
	_, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL))
	refusal(t, err, abi.Unavailable, "has over 65536 bytes of header lines")
}

func TestS16_AnswersShowOnlyWhatIsListed(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Server", "X-Powered-By", "X-Internal-Host", "X-Amz-Cf-Id", "Via",
			"X-Served-By", "Strict-Transport-Security", "Alt-Svc", "X-Backend", "Content-Security-Policy", "X-Acme-Id", "Proxy-Authenticate"} {
			h.Set(name, "internal")
		}
		h["Link"] = []string{"<a>", "<b>"}
		h.Set("Etag", "\"\xe9\"\tx")
		h.Set("X-RateLimit-Remaining", "7")
		h.Set("Content-Type", "text/plain")
	})
	for _, tt := range []struct {
		more []string
		want []string
	}{
		{nil, []string{"Content-Length", "Content-Type", "Date", "Etag", "Link", "X-Ratelimit-Remaining"}},
		{[]string{"X-Acme-*", "Set-Cookie"}, []string{"Content-Length", "Content-Type", "Date", "Etag", "Link", "X-Acme-Id", "X-Ratelimit-Remaining"}},
		{[]string{"Set-*"}, []string{"Content-Length", "Content-Type", "Date", "Etag", "Link", "X-Ratelimit-Remaining"}},
	} {
		c := newClient(t, fetch.Options{ResponseHeaders: tt.more})
		got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, get(s.URL))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range got.Header {
			names = append(names, name)
		}
		if slices.Sort(names); !slices.Equal(names, tt.want) {
			t.Errorf("%v: shown %v, want %v", tt.more, names, tt.want)
		}
		if !slices.Equal(got.Header["Link"], []string{"<a>", "<b>"}) || got.Header["Etag"][0] != "\"\uFFFD\" x" {
			t.Errorf("link %q, etag %q", got.Header["Link"], got.Header["Etag"])
		}
	}
}

// A server that resets the connection, and an address that nothing leads to.
func TestErrorsOfTheNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // leaves the rest unread
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	target := "http://" + l.Addr().String()
	_, err = newClient(t, fetch.Options{}).Do(t.Context(), "m", granted{loopback(t, target)}, nil, get(target))
	refusal(t, err, abi.Unavailable, "ended the connection before its answer was complete")
	c := newClient(t, fetch.Options{Resolver: resolves("8.8.8.8", "some.test"), Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("no route to 8.8.8.8")}
	}})
	_, err = c.Do(t.Context(), "m", granted{anyPublic()}, nil, get("http://some.test/"))
	refusal(t, err, abi.Unavailable, "cannot be reached on that port from here")
}

// No error that a guest reads has an address, a name server or what was injected.
func TestErrorsTellNoSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	inject := func(u *url.URL, h http.Header) error {
		u.RawQuery = "k=" + secret
		h.Set("Authorization", "Bearer "+secret)
		return nil
	}
	listening := func(answer string) string { return newWire(t, answer).url }
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	handler := func(http.ResponseWriter, *http.Request) {}
	plain := server(t, handler)
	secure, _ := tlsServer(t, handler)
	for target, want := range map[string]string{
		"http://" + closed.Addr().String():           "refuses connections",
		listening("nonsense " + secret + "\r\n\r\n"): "no HTTP",
		listening(""): "ended the connection",
		listening("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"):                             "ended the connection",
		listening("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"): "switch protocols",
		secure.URL: "certificate is not valid",
		strings.Replace(plain.URL, "http:", "https:", 1): "does not speak TLS",
	} {
		rule, rawURL := named(t, "some.test", target)
		c := newClient(t, fetch.Options{Resolver: resolves("127.0.0.1", "some.test"), Timeout: liveness})
		_, err := c.Do(t.Context(), "m", granted{rule}, inject, get(rawURL))
		refused := refusal(t, err, abi.Unavailable, want)
		if strings.Contains(refused.Text, secret) || strings.Contains(refused.Text, "127.0.0.1") || !strings.Contains(refused.Text, "some.test") {
			t.Errorf("the guest reads %q", refused.Text)
		}
		if target == "http://"+closed.Addr().String() && (refused.Err == nil || !errors.Is(err, refused.Err)) {
			t.Errorf("the cause is lost: %v", refused.Err)
		}
	}
	c := newClient(t, fetch.Options{})
	_, err = c.Do(t.Context(), "m", granted{anyPublic()}, inject, get("http://nowhere.test/"))
	if r := refusal(t, err, abi.Unavailable, "there is no such host"); strings.Contains(r.Text, "192.168") {
		t.Errorf("the guest reads %q", r.Text)
	}
}
