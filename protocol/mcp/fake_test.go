package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// liveness is far longer than anything here takes.
const liveness = 20 * time.Second

// A fakeTools is Tools in memory. Tests set call, or use the tools below.
type fakeTools struct {
	call func(context.Context, tool.Caller, tool.Call) (tool.Result, error)

	mu          sync.Mutex
	specs       []tool.Spec
	subscribers map[int]func()
	next        int
	callers     []tool.Caller // of List, then of Call
}

const numbersSchema = `{"properties":{"z":{"maximum":12345678901234567890,"type":"integer"},"a":{"const":"<&>"}},"type":"object"}`

func newFakeTools() *fakeTools {
	no := false
	return &fakeTools{subscribers: map[int]func(){}, specs: []tool.Spec{
		{Name: "echo", Title: "Echo", Description: "Returns its arguments.", InputSchema: json.RawMessage(numbersSchema),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
			Annotations:  &tool.Annotations{OpenWorldHint: &no}},
		{Name: "fail", Description: "Fails as its name says.", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}}
}

func (f *fakeTools) List(c tool.Caller) []tool.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers = append(f.callers, c)
	return slices.Clone(f.specs)
}

func (f *fakeTools) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	do := f.call
	f.mu.Unlock()
	if do != nil {
		return do(ctx, c, call)
	}
	switch call.Name {
	case "echo":
		return tool.Result{Structured: call.Arguments, Content: []tool.Content{{Type: "text", Text: string(call.Arguments)}}}, nil
	case "fail":
		return tool.Result{}, tool.ErrInvalid
	}
	return tool.Result{}, tool.NotFound(call.Name)
}

func (f *fakeTools) Subscribe(changed func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	f.subscribers[id] = changed
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subscribers, id)
	}
}

// set replaces the tools and tells whoever subscribed.
func (f *fakeTools) set(specs ...tool.Spec) {
	f.mu.Lock()
	f.specs = specs
	var told []func()
	for _, changed := range f.subscribers {
		told = append(told, changed)
	}
	f.mu.Unlock()
	for _, changed := range told {
		changed()
	}
}

func named(names ...string) []tool.Spec {
	var specs []tool.Spec
	for _, name := range names {
		specs = append(specs, tool.Spec{Name: name, Description: "d", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
	}
	return specs
}

// newServer returns a server over f that ends with the test.
func newServer(t *testing.T, f *fakeTools, o Options) *Server {
	t.Helper()
	s := New(f, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// newHTTP serves s and returns the URL.
func newHTTP(t *testing.T, s *Server) string {
	t.Helper()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // ends open streams, which web.Close waits for
			t.Errorf("close: %v", err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// A pipes is the client's end of a stdio connection.
type pipes struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error // what ServeStdio returned
}

func newStdio(ctx context.Context, t *testing.T, s *Server) *pipes {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipes{in: inW, out: outR, done: make(chan error, 1)}
	go func() { p.done <- s.ServeStdio(ctx, inR, outW) }()
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
	})
	return p
}

// transports names each way to reach a server with go-sdk's client.
var transports = []struct {
	name    string
	connect func(*testing.T, *Server) sdk.Transport
}{
	{"http", func(t *testing.T, s *Server) sdk.Transport {
		return &sdk.StreamableClientTransport{Endpoint: newHTTP(t, s), HTTPClient: httpClient(t), MaxRetries: -1}
	}},
	{"stdio", func(t *testing.T, s *Server) sdk.Transport {
		p := newStdio(context.Background(), t, s)
		return &sdk.IOTransport{Reader: p.out, Writer: p.in}
	}},
}

func httpClient(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// eachWay runs a test over both transports in both eras.
func eachWay(t *testing.T, test func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport)) {
	for _, transport := range transports {
		for _, version := range []string{lastLegacy, firstModern} {
			t.Run(transport.name+"/"+version, func(t *testing.T) { test(t, version, transport.connect) })
		}
	}
}

func newClient(ctx context.Context, t *testing.T, transport sdk.Transport, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	if o == nil {
		o = &sdk.ClientOptions{}
	}
	o.Capabilities = &sdk.ClientCapabilities{}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), liveness)
	t.Cleanup(cancel)
	return ctx
}

func text(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	var all []string
	for _, c := range res.Content {
		block, ok := c.(*sdk.TextContent)
		if !ok {
			t.Fatalf("a block of %T", c)
		}
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}

// A logged collects what a server logs.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
}

var errSecret = errors.New("open /var/lib/secret.db: permission denied")
