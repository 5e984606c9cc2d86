package mcp

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/tool"
)

// watchChanges connects a client that counts list_changed.
func watchChanges(t *testing.T, f *fakeTools, o Options, version string, connect func(*testing.T, *Server) sdk.Transport) (*sdk.ClientSession, chan struct{}) {
	t.Helper()
	changes := make(chan struct{}, 1000)
	c := newClient(within(t), t, connect(t, newServer(t, f, o)), version, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changes <- struct{}{} },
	})
	return c, changes
}

func TestChangesAreTold(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		c, changes := watchChanges(t, f, Options{Quiet: time.Millisecond}, version, connect)
		for _, specs := range [][]tool.Spec{named("a"), named("a", "b"), {{Name: "a", Description: "other", InputSchema: named("a")[0].InputSchema}}, {}} {
			f.set(specs...)
			select {
			case <-changes:
			case <-ctx.Done():
				t.Fatalf("nothing told of %v", specs)
			}
			list, err := c.ListTools(ctx, nil)
			if err != nil || len(list.Tools) != len(specs) {
				t.Errorf("listed %+v, %v", list, err)
			}
		}
	})
}

// A client hears of changes once it has sent initialized, and not before. What
// would come too early is looked for before the answer to a ping that was sent
// after the change was told of.
func TestNoChangesBeforeInitialized(t *testing.T) {
	f := newFakeTools()
	s := newServer(t, f, Options{Quiet: time.Millisecond})
	p := newStdio(within(t), t, s)
	in := bufio.NewReader(p.out)
	told := make(chan struct{}, 10)
	s.sdk.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			defer func() { told <- struct{}{} }()
			return next(ctx, method, req)
		}
	})
	silent := func(name, ping string, lines ...string) {
		t.Helper()
		f.set(named(name)...)
		select {
		case <-told:
		case <-within(t).Done():
			t.Fatalf("%s: nothing was to be told, or it was sent", name)
		}
		if got := talk(t, p, in, 1, append(lines, ping)...); strings.Contains(got[0], "list_changed") {
			t.Errorf("%s: %s", name, got[0])
		}
	}
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	talk(t, p, in, 1, ping) // the connection is there
	silent("connected", ping)
	talk(t, p, in, 1, initialize)
	silent("initializing", ping)
	talk(t, p, in, 1, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ping)
	f.set(named("ready")...)
	if got := talk(t, p, in, 1); !strings.Contains(got[0], "list_changed") {
		t.Errorf("initialized: %s", got[0])
	}
}

// Over stdio a modern client hears of changes inside of its subscription alone,
// and without one not at all.
func TestModernChangesNeedASubscription(t *testing.T) {
	f := newFakeTools()
	p := newStdio(within(t), t, newServer(t, f, Options{Quiet: time.Millisecond}))
	in := bufio.NewReader(p.out)
	if got := talk(t, p, in, 1, listenLine("1")); !strings.Contains(got[0], "acknowledged") {
		t.Fatal(got)
	}
	for _, name := range []string{"a", "b"} {
		f.set(named(name)...)
		if got := talk(t, p, in, 1); !strings.Contains(got[0], `"io.modelcontextprotocol/subscriptionId":1`) {
			t.Errorf("%s: %s", name, got[0])
		}
	}
}

// Sessions that ended are forgotten.
func TestAudienceForgets(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	for range 3 {
		p := newStdio(within(t), t, s)
		talk(t, p, bufio.NewReader(p.out), 2, initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		if n := len(s.audience.ready); n != 1 {
			t.Errorf("%d sessions are told", n)
		}
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-p.done; err != nil {
			t.Error(err)
		}
	}
}

// A storm is a few notifications, the last one after the last change.
func TestStormsOfChangesAreOne(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		c, changes := watchChanges(t, f, Options{}, version, connect)
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("t%03d", i))
			f.set(named(names...)...)
		}
		told := 0
		for listed := 0; listed < 100; told++ {
			select {
			case <-changes:
			case <-ctx.Done():
				t.Fatalf("told %d times, the last list had %d tools", told, listed)
			}
			list, err := c.ListTools(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			listed = len(list.Tools)
		}
		if told > 3 {
			t.Errorf("told %d times", told)
		}
	})
}

// One change every 20 ms for a second, in a bubble: go-sdk by itself would tell
// of each.
func TestStormsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeTools()
		s := New(f, Options{})
		for i := range 50 {
			f.set(named(fmt.Sprintf("t%d", i))...)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		looked := len(f.callers) - 1 // once at the start
		f.mu.Unlock()
		if looked < 1 || looked > 3 || s.list.told["t49"] == nil {
			t.Errorf("looked %d times, told of %v", looked, s.list.told)
		}
	})
}

// Only what differs reaches go-sdk, which tells hosts of whatever it is given.
func TestUnchangedToolsAreNotTouched(t *testing.T) {
	f := newFakeTools()
	f.specs = named("a", "b")
	s := newServer(t, f, Options{})
	before := s.list.told["a"]
	f.mu.Lock()
	f.specs = named("a", "c") // equal, not the same
	f.mu.Unlock()
	s.sync()
	if s.list.told["a"] != before {
		t.Error("an equal tool was added again")
	}
	if s.list.told["b"] != nil || s.list.told["c"] == nil || len(s.list.entries) != 2 {
		t.Errorf("told %v, kept %v", s.list.told, s.list.entries)
	}
}

func TestNothingVisibleNothingTold(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		f.set(named("a")...)
		c, changes := watchChanges(t, f, Options{Quiet: time.Millisecond}, version, connect)
		told := 0
		for _, next := range [][]tool.Spec{named("a", "b"), named("a", "b", "end")} {
			for range 5 {
				f.set(f.List(tool.Caller{})...)
			}
			f.set(next...)
			for listed := 0; listed < len(next); told++ {
				select {
				case <-changes:
				case <-ctx.Done():
					t.Fatalf("nothing told of %v", next)
				}
				list, err := c.ListTools(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				listed = len(list.Tools)
			}
		}
		if told += len(changes); told != 2 {
			t.Errorf("told %d times of 2 changes", told)
		}
	})
}

// While the tools are replaced, a list never lacks what both sets have.
func TestListsDuringChanges(t *testing.T) {
	f := newFakeTools()
	f.set(named("a", "stays")...)
	c := newClient(within(t), t, transports[0].connect(t, newServer(t, f, Options{Quiet: time.Microsecond})), firstModern, nil)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			f.set(named(fmt.Sprintf("t%d", i), "stays")...)
		}
	}()
	for range 200 {
		list, err := c.ListTools(within(t), &sdk.ListToolsParams{})
		if err != nil || len(list.Tools) != 2 || list.Tools[1].Name != "stays" {
			t.Errorf("listed %+v, %v", list, err)
			break
		}
	}
	stop.Store(true)
	<-done
}

func TestAnnotationsAreAlwaysSaid(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name string
		in   *tool.Annotations
		want sdk.ToolAnnotations
	}{
		{"nothing said", nil, sdk.ToolAnnotations{Title: "T", DestructiveHint: &yes, OpenWorldHint: &yes}},
		{"a pure tool", (*tool.Annotations)(nil).Pure(), sdk.ToolAnnotations{Title: "T", ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}},
		{"some said", &tool.Annotations{Title: "own", DestructiveHint: &no, IdempotentHint: &yes}, sdk.ToolAnnotations{Title: "own", IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &yes}},
	} {
		got := annotations(tool.Spec{Title: "T", Annotations: c.in})
		if got.Title != c.want.Title || got.ReadOnlyHint != c.want.ReadOnlyHint || got.IdempotentHint != c.want.IdempotentHint ||
			*got.DestructiveHint != *c.want.DestructiveHint || *got.OpenWorldHint != *c.want.OpenWorldHint {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestManyToolsAreWarnedOfOnce(t *testing.T) {
	var log logged
	f := newFakeTools()
	s := newServer(t, f, Options{Logger: log.logger()})
	for _, n := range []int{40, 41, 42, 129, 130, 41, 40, 41} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
		}
		f.mu.Lock()
		f.specs = named(names...)
		f.mu.Unlock()
		s.sync()
	}
	for warning, want := range map[string]int{"tools=41 shown=40": 2, "tools=129 shown=128": 1, "shown=": 3} {
		if got := strings.Count(log.String(), warning); got != want {
			t.Errorf("%q: %d times, want %d", warning, got, want)
		}
	}
}
