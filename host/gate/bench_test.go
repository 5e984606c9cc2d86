package gate_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	benchURL   = "http://api.test/repos/owner/name/issues?state=open&per_page=100"
	benchBody  = `{"title":"hello"}`
	benchReply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"number\":12}"
)

// echoing is a connection to a server that costs as little as one can: it answers
// each request with the same bytes.
type echoing struct {
	net.Conn // of nobody, for its methods that are not called
	ask      chan struct{}
	closed   chan struct{}
	left     string
}

func (e *echoing) Write(p []byte) (int, error) {
	e.ask <- struct{}{}
	return len(p), nil
}

func (e *echoing) Read(p []byte) (int, error) {
	if e.left == "" {
		select {
		case <-e.ask:
			e.left = benchReply
		case <-e.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *echoing) Close() error { close(e.closed); return nil }

func (e *echoing) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}
}

func dialEchoing(context.Context, string, string) (net.Conn, error) {
	return &echoing{ask: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// benchGate is a gate whose module may do what the benchmarks do.
func benchGate(b *testing.B) (begin func() abi.Host) {
	b.Helper()
	w := newWorld(b, `    grant:
      http: [{scheme: http, host: other.test}, {scheme: http, host: api.test, methods: [GET, POST], paths: [/repos/], allow_private: [10.0.0.0/8]}]
      secrets: [{name: token, header: Authorization, prefix: "Bearer ", host: api.test}]
      kv: {}
    limits: {host_calls: 1000000}
`)
	w.shelf.values["x.wasm/local a"] = []byte("value")
	file := filepath.Join(b.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("token="+theSecret+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	vault, err := secrets.Open(secrets.Options{File: file})
	if err != nil {
		b.Fatal(err)
	}
	client := fetch.New(fetch.Options{Dial: dialEchoing, Resolver: resolver{}})
	b.Cleanup(client.Close)
	g := gate.New(gate.Options{Fetch: client, Secrets: vault, KV: kv.New(w.shelf, nil), MaxHTTP: 1 << 40})
	return func() abi.Host {
		host, _, end := g.Call(caller(), w.module, "take", w.effective())
		b.Cleanup(end)
		return host
	}
}

// BenchmarkGate is what a gated operation costs in this process beyond the pipe.
// Of http, what net/http costs without us is in BenchmarkMirror.
func BenchmarkGate(b *testing.B) {
	begin := benchGate(b)
	for name, op := range map[string]abi.Request{
		"kv":        {Op: abi.OpKVGet, Body: []byte(`{"key":"a"}`)},
		"refused":   {Op: abi.OpTracker, Body: []byte(`{}`)},
		"elsewhere": {Op: abi.OpHTTP, Body: []byte(`{"method":"POST","url":"https://api.test/admin","body":""}`)},
		"http": {Op: abi.OpHTTP, Body: []byte(`{"method":"POST","url":"` + benchURL + `","headers":{"Accept":"application/json",` +
			`"Content-Type":"application/json","X-Github-Api-Version":"2022-11-28"},"body":"{\"title\":\"hello\"}"}`)},
	} {
		b.Run(name, func(b *testing.B) {
			var host abi.Host
			want := abi.OK
			if name == "refused" || name == "elsewhere" {
				want = abi.Denied
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%500_000 == 0 {
					host = begin() // a call may do no more than a million
				}
				if r := host(context.Background(), op); r.Code != want {
					b.Fatalf("%v %s", r.Code, r.Body)
				}
			}
		})
	}
}

// BenchmarkMirror is the same request by net/http alone, over the same connection.
func BenchmarkMirror(b *testing.B) {
	transport := &http.Transport{DialContext: dialEchoing, DisableCompression: true}
	defer transport.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, benchURL, strings.NewReader(benchBody))
		if err != nil {
			b.Fatal(err)
		}
		for name, value := range map[string]string{"Accept": "application/json", "Content-Type": "application/json",
			"X-Github-Api-Version": "2022-11-28", "Authorization": "Bearer " + theSecret} {
			req.Header.Set(name, value)
		}
		answer, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(answer.Body); err != nil {
			b.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGateDecide is the part that decides: the URL is read and brought into
// its one form, and the rules say what goes for it.
func BenchmarkGateDecide(b *testing.B) {
	w := newWorld(b, `    grant: {http: [{host: other.test}, {scheme: http, host: api.test, methods: [GET, POST], paths: [/repos/]}]}
`)
	e := w.effective()
	b.ReportAllocs()
	for b.Loop() {
		u, refusal := capability.ParseURL(nil, benchURL)
		if refusal != nil {
			b.Fatal(refusal)
		}
		if _, refusal = e.HTTP(http.MethodPost, u); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

// resolver answers every name with one public address.
type resolver struct{}

func (resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 215, 14})}, nil
}
