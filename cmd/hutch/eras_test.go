package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// eachWay runs a test over each transport in each era of MCP. A test gets a
// running hutch, a client of it, and what the client was told.
func eachWay(t *testing.T, test func(t *testing.T, s *served, c *client)) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("http/"+version, func(t *testing.T) {
			s := startServe(t, developing)
			defer s.end(t)
			c := newTestClient(t, version, &sdk.StreamableClientTransport{
				Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: &http.Transport{}}, MaxRetries: -1,
			})
			defer c.close(t)
			test(t, s, c)
		})
		t.Run("stdio/"+version, func(t *testing.T) {
			s, transport := startStdio(t)
			defer s.end(t)
			c := newTestClient(t, version, transport)
			defer c.close(t)
			test(t, s, c)
		})
	}
}

// developing lets modules change as an author's do.
func developing(cfg *Config) { cfg.Dev = true }

// startStdio is startServe with pipes in place of a port.
func startStdio(t *testing.T) (*served, sdk.Transport) {
	t.Helper()
	cfg, p := newTestConfig(t, developing)
	o, err := cfg.takeOver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := openHouse(cfg, p, quiet, o)
	if err != nil {
		t.Fatal(err)
	}
	stdin, toHutch := io.Pipe()
	fromHutch, stdout := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{app: h.app, tools: cfg.Tools[0], stop: stop}
	member := &tenant{cfg: cfg, p: p, log: quiet, house: h}
	s.done = launch(func() error { return errors.Join(member.ServeStdio(ctx, stdin, stdout), stdin.Close(), stdout.Close()) })
	return s, &sdk.IOTransport{Reader: fromHutch, Writer: toHutch}
}

// A client is a session, and what came without being asked for.
type client struct {
	*sdk.ClientSession
	changed  chan struct{}
	progress chan *sdk.ProgressNotificationParams
}

func newTestClient(t *testing.T, version string, transport sdk.Transport) *client {
	t.Helper()
	c := &client{changed: make(chan struct{}, 100), progress: make(chan *sdk.ProgressNotificationParams, 100)}
	inner := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress <- r.Params },
	})
	var err error
	if c.ClientSession, err = inner.Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) close(t *testing.T) { closeSession(t, c.ClientSession) }

// lists returns the descriptions of what is listed, by name.
func (c *client) lists(t *testing.T) map[string]string {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, listed := range list.Tools {
		found[listed.Name] = listed.Description
	}
	return found
}

// answering is a tool with that description, which answers with text.
func answering(name, description, text string) []byte {
	spec := dialecttest.Spec(name)
	spec.Description = description
	return dialecttest.Module{Tools: []tool.Spec{spec}, Do: []dialecttest.Step{dialecttest.Text(text)}}.Bytes()
}

// A change of the folder is told once, and one that a client cannot see is not.
func TestChangesAreToldOnce(t *testing.T) {
	eachWay(t, func(t *testing.T, s *served, c *client) {
		put := func(name string, body []byte) func() { return func() { s.drop(t, name, body) } }
		told := 0
		for i, step := range []struct {
			do   func()
			name string
			want string // its description
		}{
			{put("hi.wasm", answering("hi", "Says one.", "one")), "hi", "Says one."},
			{put("hi.wasm", answering("hi", "Says two.", "two")), "hi", "Says two."},
			{func() {
				put("hi.wasm", answering("hi", "Says two.", "zwei"))()
				for callText(t, c.ClientSession, "hi") != "zwei" {
				}
				must(t, os.Remove(filepath.Join(s.tools, "hi.wasm")))
			}, "hi", ""},
			{put("end.wasm", answering("end", "The end.", "")), "end", "The end."},
		} {
			for step.do(); told <= i || c.lists(t)[step.name] != step.want; told++ {
				await(t, c.changed)
			}
		}
		if told += len(c.changed); told != 4 {
			t.Errorf("told %d times of 4 changes", told)
		}
	})
}

// A caller never meets a gap between two versions, and gets the new one soon.
func TestSwapLosesNoCall(t *testing.T) {
	eachWay(t, func(t *testing.T, s *served, c *client) {
		s.drop(t, "hi.wasm", answering("hi", "Says it.", "one"))
		for len(c.lists(t)) == 0 {
			await(t, c.changed)
		}
		s.drop(t, "hi.wasm", answering("hi", "Says it.", "two"))
		for before := 0; ; before++ {
			switch got := callText(t, c.ClientSession, "hi"); got {
			case "one":
			case "two":
				return
			default:
				t.Fatalf("after %d calls: %s", before, got)
			}
		}
	})
}

// What a guest says of its progress reaches the client while it works, and a
// client that gives up ends the guest: by notifications/cancelled, or over HTTP
// in the newer era by leaving.
func TestProgressAndCancellation(t *testing.T) {
	eachWay(t, func(t *testing.T, s *served, c *client) {
		s.drop(t, "works.wasm", dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("works")}, Do: []dialecttest.Step{
			dialecttest.Progress(1, `{"progress":1,"total":3,"message":"one of three"}`), dialecttest.Loop(),
		}}.Bytes())
		s.drop(t, "canary.wasm", greeter("canary", "alive"))
		for len(c.lists(t)) < 2 {
			await(t, c.changed)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		params := &sdk.CallToolParams{Name: "works"}
		params.SetProgressToken("token")
		ended := launch(func() error {
			_, err := c.CallTool(ctx, params)
			return err
		})
		if p := <-c.progress; p.ProgressToken != "token" || p.Progress != 1 || p.Total != 3 || p.Message != "one of three" {
			t.Errorf("progress: %+v", p)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		s.awaitLate(t)
		if got := callText(t, c.ClientSession, "canary"); got != "alive" {
			t.Errorf("after it: %s", got)
		}
	})
}

// awaitLate waits until a guest whose caller has left came to its end. Its worker
// goes on.
func (s *served) awaitLate(t *testing.T) {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(time.Millisecond); ; {
		stats := s.app.pool.Stats()
		if stats.Running == 0 && stats.Late == 1 {
			if len(stats.Ends) != 0 {
				t.Errorf("stats %+v, want no worker to end", stats)
			}
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("the guest runs on: %+v", stats)
		}
	}
}
