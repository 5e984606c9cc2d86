package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
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

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/protocol/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// liveness is how long a test waits for what must happen; it decides nothing else.
const liveness = 10 * time.Second

// granted are rules as a policy has them. Loopback servers are reached only
// through AllowPrivate of these.
type granted []capability.HTTPRule

func (g granted) HTTP(method string, u *url.URL) (capability.HTTPRule, *capability.Refusal) {
	for _, rule := range g {
		if rule.Match(method, u) {
			return rule, nil
		}
	}
	return capability.HTTPRule{}, &capability.Refusal{Code: abi.Denied, Text: "not granted: " + method + " " + u.Host + u.EscapedPath()}
}

func allMethods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// loopback is a rule for the host and port of a test server, by its URL.
func loopback(t testing.TB, rawURL string) capability.HTTPRule {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(u.Host)
	return capability.HTTPRule{Scheme: u.Scheme, Host: u.Hostname(), Ports: []int{int(addr.Port())},
		Methods: allMethods(), AllowPrivate: prefixes("127.0.0.1/32")}
}

// named is loopback under a name that resolves there.
func named(t testing.TB, name, rawURL string) (capability.HTTPRule, string) {
	t.Helper()
	rule := loopback(t, rawURL)
	rule.Host = name
	return rule, strings.Replace(rawURL, "127.0.0.1", name, 1)
}

func newClient(t testing.TB, o fetch.Options) *fetch.Client {
	t.Helper()
	if o.Resolver == nil {
		o.Resolver = &names{}
	}
	c := fetch.New(o)
	t.Cleanup(c.Close)
	return c
}

func server(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func tlsServer(t testing.TB, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = nullLog()
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func get(rawURL string) fetch.Request { return fetch.Request{URL: rawURL} }

// refusal returns the refusal that err must be.
func refusal(t testing.TB, err error, code abi.Code, text string) fetch.Refused {
	t.Helper()
	var refused *fetch.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal: %s %q", err, code, text)
	}
	if refused.Code != code || !strings.Contains(refused.Text, text) {
		t.Fatalf("got %s: %s\nwant %s: …%s…", refused.Code, refused.Text, code, text)
	}
	return *refused
}

// names is a resolver that knows some names and counts what it is asked. Each
// answer but the last is given once.
type names struct {
	known map[string][][]string // by absolute name
	mu    sync.Mutex
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	answers := n.known[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.168.1.1:53", IsNotFound: true}
	}
	if len(answers) > 1 {
		n.known[host] = answers[1:]
	}
	var out []netip.Addr
	for _, text := range answers[0] {
		out = append(out, netip.MustParseAddr(text))
	}
	return out, nil
}

func (n *names) queries() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

// resolves answers every name in list with one address, always.
func resolves(addr string, list ...string) *names {
	n := &names{known: map[string][][]string{}}
	for _, name := range list {
		n.known[name+"."] = [][]string{{addr}}
	}
	return n
}

// dials counts connections and leads all of them to one loopback address, whatever
// was to be dialled. With no address it refuses them.
type dials struct {
	to    string
	mu    sync.Mutex
	asked []string
}

func (d *dials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.asked = append(d.asked, address)
	d.mu.Unlock()
	if d.to == "" {
		return nil, errors.New("no connection was expected to " + address)
	}
	return new(net.Dialer).DialContext(ctx, network, d.to)
}

func (d *dials) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// nameserver is a real DNS server on loopback whose A records come from answer,
// which is called for one query after the other. There are no other records.
type nameserver struct {
	conn  net.PacketConn
	mu    sync.Mutex
	asked []string // names of the A queries
}

func newNameserver(t *testing.T, answer func(n int, name string) netip.Addr) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, done := &nameserver{conn: conn}, make(chan struct{})
	go func() {
		defer close(done)
		s.serve(answer)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return s
}

func (s *nameserver) serve(answer func(int, string) netip.Addr) {
	packet := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
		m.Additionals = nil
		if q.Type == dnsmessage.TypeA {
			s.mu.Lock()
			addr := answer(len(s.asked), q.Name.String())
			s.asked = append(s.asked, q.Name.String())
			s.mu.Unlock()
			if addr.IsValid() {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body: &dnsmessage.AResource{A: addr.As4()}}}
			}
		}
		if b, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(b, from)
		}
	}
}

func (s *nameserver) queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

func TestAnswerAsAGuestSeesIt(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("X-Api-Key")))
	})
	c := newClient(t, fetch.Options{})
	got, err := c.Do(t.Context(), "m", granted{loopback(t, s.URL)}, nil, fetch.Request{Method: "post",
		URL: s.URL + "/a/./b/../c?q=1 2#part", Header: map[string][]string{"x-api-key": {"k"}}, Body: []byte("hi")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != 418 || string(got.Body) != "POST /a/c?q=1%202 k" || got.Header["Content-Type"][0] != "application/json" {
		t.Errorf("got %d %v %q", got.Status, got.Header, got.Body)
	}
	if got.URL != s.URL+"/a/c?q=1%202" || got.Addr.String() != "127.0.0.1" || got.Redirects != 0 {
		t.Errorf("asked %s at %s, %d redirects", got.URL, got.Addr, got.Redirects)
	}
	if got.Sent < 100 || got.Sent > 200 || got.Received < 80 || got.Received > 300 {
		t.Errorf("sent %d, received %d", got.Sent, got.Received)
	}
}

func TestNothingIsAllowedWithoutRules(t *testing.T) {
	n, d := resolves("93.184.215.14", "example.com"), &dials{}
	c := newClient(t, fetch.Options{Resolver: n, Dial: d.dial})
	for _, rules := range []fetch.Rules{nil, granted{}} {
		got, err := c.Do(t.Context(), "m", rules, nil, get("https://example.com/"))
		refusal(t, err, abi.Denied, "")
		if got.Sent != 0 || got.Addr.IsValid() {
			t.Errorf("sent %d bytes to %s", got.Sent, got.Addr)
		}
	}
	if len(n.queries())+len(d.addresses()) > 0 {
		t.Errorf("asked %v, dialled %v", n.queries(), d.addresses())
	}
}

// codeOf is the code of a refusal, or OK if there is none.
func codeOf(err error) abi.Code {
	var refused *fetch.Refused
	if errors.As(err, &refused) {
		return refused.Code
	}
	return abi.OK
}

// nullLog takes what a server says about handshakes that are meant to fail.
func nullLog() *log.Logger { return log.New(io.Discard, "", 0) }
