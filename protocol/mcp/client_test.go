package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestClientListsAndCalls(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		s := newServer(t, newFakeTools(), Options{Instructions: "Be kind."})
		c := newClient(ctx, t, connect(t, s), version, nil)
		list, err := c.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != 2 || list.Tools[0].Name != "echo" || list.Tools[1].Name != "fail" || list.NextCursor != "" {
			t.Errorf("listed %+v", list)
		}
		res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"z":1,"a":2}`)})
		if err != nil || res.IsError || text(t, res) != `{"z":1,"a":2}` {
			t.Errorf("got %+v, %v", res, err)
		}
		if got := c.InitializeResult().Instructions; got != "Be kind." {
			t.Errorf("instructions %q", got)
		}
	})
}

func TestS1_052_UnknownToolsAreNotFound(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		errs := map[string]error{
			"unknown": tool.NotFound("unknown"), "denied": tool.ErrDenied,
			"held": fmt.Errorf("%w: run hutch tools approve", tool.ErrHeld), "rejected": tool.ErrRejected,
		}
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			return tool.Result{}, errs[c.Name]
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{})), version, nil)
		for name := range errs {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || wire.Message != "Tool not found: "+name || wire.Data != nil {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

func TestFailuresAreResultsThatAModelCanRead(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("%w: count is 3, at most 2", err) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{tool.ErrInvalid, "the arguments do not fit the tool's schema: correct them and call again"},
		{wrapped(tool.ErrInvalid), "invalid arguments: count is 3, at most 2"},
		{wrapped(tool.ErrDenied), "denied: count is 3, at most 2"},
		{tool.ErrDenied, ""},
		{wrapped(tool.ErrTimeout), "timeout: count is 3, at most 2"},
		{wrapped(tool.ErrLimit), "limit: count is 3, at most 2"},
		{wrapped(tool.ErrBusy), "busy: count is 3, at most 2"},
		{tool.ErrBusy, "the tool is busy with other calls: call again in a moment"},
		{wrapped(tool.ErrFailed), "tool failed: count is 3, at most 2"},
		{wrapped(tool.ErrUnavailable), "unavailable: count is 3, at most 2"},
		{tool.ErrCancelled, "the call was cancelled"},
		{context.Canceled, "the call was cancelled"},
		{context.DeadlineExceeded, "the tool took too long and was stopped: ask it for less at once"},
		{fmt.Errorf("read /etc/passwd: %w", context.DeadlineExceeded), "the tool took too long and was stopped: ask it for less at once"},
		{fmt.Errorf("%w: %w", tool.ErrHeld, tool.ErrUnavailable), ""},
	} {
		if got, known := failureText(c.err); !known || got != c.want {
			t.Errorf("%v: got %q, %v, want %q", c.err, got, known, c.want)
		}
	}
	if _, known := failureText(errSecret); known {
		t.Error("an unknown error is shown")
	}
	if got, _ := failureText(fmt.Errorf("%w: %s", tool.ErrFailed, strings.Repeat("é", 1<<20))); len(got) > maxErrorText+8 {
		t.Errorf("a text of %d bytes", len(got))
	}
}

// spent is a failed call that used something up.
type spent struct{ error }

func (s spent) Unwrap() error   { return s.error }
func (spent) Usage() tool.Usage { return tool.Usage{Fuel: 7, HostCalls: 2} }

// A result says what its call used up, also one that is a failure.
func TestUsageIsMetadata(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			if c.Name == "fail" {
				return tool.Result{}, spent{tool.ErrLimit}
			}
			return tool.WithUsage(tool.Text("done"), spent{}.Usage()), nil
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{})), version, nil)
		for name, fails := range map[string]bool{"echo": false, "fail": true} {
			res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			used, err := json.Marshal(res.Meta["io.github.hutch-run/usage"])
			if err != nil || string(used) != `{"fuel":7,"hostCalls":2}` || res.IsError != fails {
				t.Errorf("%s: used %s, %v, error %v", name, used, err, res.IsError)
			}
		}
	})
}

func TestH20_UnknownErrorsStayInTheLog(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		var log logged
		f := newFakeTools()
		f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) { return tool.Result{}, errSecret }
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{Logger: log.logger()})), version, nil)
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"token": "hunter2"}})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || !strings.HasPrefix(wire.Message, "internal error ") {
			t.Fatalf("got %v", err)
		}
		id := strings.TrimPrefix(wire.Message, "internal error ")
		if !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "secret.db") {
			t.Errorf("the log does not explain %s:\n%s", id, &log)
		}
		if strings.Contains(log.String(), "hunter2") {
			t.Errorf("the log holds arguments:\n%s", &log)
		}
	})
}

// By itself go-sdk v1.8.0 ends the process when a handler panics, and when one
// returns neither a result nor an error.
func TestPanicsAndNothingsAreAnswered(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		var log logged
		f := newFakeTools()
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			if c.Name == "nothing" {
				return tool.Result{}, nil
			}
			panic("hunter2")
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{Logger: log.logger()})), version, nil)
		p := &sdk.CallToolParams{Name: "panic"}
		p.SetProgressToken("x") // its reporter has to end too
		_, err := c.CallTool(ctx, p)
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || !strings.Contains(log.String(), strings.TrimPrefix(wire.Message, "internal error ")+" ") {
			t.Errorf("got %v, logged:\n%s", err, &log)
		}
		if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "client_test.go") {
			t.Errorf("the log should say where, not what:\n%s", &log)
		}
		res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "nothing"})
		if err != nil || res.IsError || res.Content == nil {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

func TestPanicInListIsAnswered(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		p := &panickyList{fakeTools: f}
		s := New(p, Options{})
		t.Cleanup(func() { _ = s.Close() })
		c := newClient(ctx, t, connect(t, s), version, nil)
		if _, err := c.ListTools(ctx, nil); err == nil || !strings.Contains(err.Error(), "internal error") {
			t.Errorf("got %v", err)
		}
		if res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo"}); err != nil || res.IsError {
			t.Errorf("after it: %+v, %v", res, err)
		}
	})
}

type panickyList struct{ *fakeTools }

func (*panickyList) List(tool.Caller) []tool.Spec { panic("list") }

func TestCallerIsSetByTheServer(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{Agent: "coder"})), version, nil)
		for range 2 {
			if _, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Meta: sdk.Meta{"agent": "root", "principal": "root"}}); err != nil {
				t.Fatal(err)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		ids := map[string]bool{}
		for _, got := range f.callers[1:] { // the first is the server's own
			ids[got.CallID] = true
			if got.Principal != "local" || got.Agent != "coder" || got.Face != "mcp" || got.RunID != "" || got.CallID == "" {
				t.Errorf("caller %+v", got)
			}
			if got.Conversation != c.ID() {
				t.Errorf("conversation %q, MCP session %q", got.Conversation, c.ID())
			}
		}
		if len(ids) != len(f.callers)-1 {
			t.Errorf("%d ids for %d callers", len(ids), len(f.callers)-1)
		}
	})
}

func TestMaxCalls(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		started, release := make(chan struct{}), make(chan struct{})
		f := newFakeTools()
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			if c.Name == "slow" {
				close(started)
				<-release
			}
			return tool.Text("done"), nil
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{MaxCalls: 1})), version, nil)
		slow := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "slow"})
			slow <- err
		}()
		<-started
		res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo"})
		if err != nil || !res.IsError || text(t, res) != "1 calls are running, the most allowed: call again when one has ended" {
			t.Errorf("got %+v, %v", res, err)
		}
		close(release)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		if res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo"}); err != nil || res.IsError {
			t.Errorf("after it: %+v, %v", res, err)
		}
	})
}

// Hosts leave arguments out, or send null, for a tool that takes none.
func TestNoArgumentsAreAnEmptyObject(t *testing.T) {
	f := newFakeTools()
	got := make(chan string, 1)
	f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
		got <- string(c.Arguments)
		return tool.Text("called"), nil
	}
	s := newServer(t, f, Options{})
	url := newHTTP(t, s)
	legacyHeaders := "Mcp-Session-Id: " + openSession(t, url)
	p := newStdio(within(t), t, s)
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	for i, args := range []string{``, `"arguments":null,`, `"arguments": null ,`, `"arguments":{},`, `"arguments":{ },`} {
		modern, modernHeaders := modernCall(i+2, "echo")
		modern = strings.Replace(modern, `"name":`, args+`"name":`, 1)
		legacy := strings.Replace(callLine(fmt.Sprint(i+2), "echo"), `"name":`, args+`"name":`, 1)
		for name, ask := range map[string]func() string{
			"http/" + lastLegacy:   func() string { _, text := do(t, url, "POST", legacyHeaders, legacy); return text },
			"http/" + firstModern:  func() string { _, text := do(t, url, "POST", modernHeaders, modern); return text },
			"stdio/" + lastLegacy:  func() string { return talk(t, p, in, 1, legacy)[0] },
			"stdio/" + firstModern: func() string { return talk(t, p, in, 1, modern)[0] },
		} {
			answer := ask()
			if !strings.Contains(answer, `"called"`) {
				t.Errorf("%s, %q: %s", name, args, answer)
				continue
			}
			if args := <-got; strings.ReplaceAll(args, " ", "") != "{}" {
				t.Errorf("%s: the tool got %q", name, args)
			}
		}
	}
}
