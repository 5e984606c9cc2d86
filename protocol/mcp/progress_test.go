package mcp

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/tool"
)

// reported runs a reporter in a bubble and returns what it sent.
func reported(t *testing.T, during func(r *reporter)) []tool.Progress {
	t.Helper()
	var sent []tool.Progress
	synctest.Test(t, func(t *testing.T) {
		r := newReporter(10*time.Second, func(p tool.Progress) error { sent = append(sent, p); return nil })
		go func() {
			defer close(r.ended)
			r.run()
		}()
		during(r)
		if r.stop() != (len(sent) > 0) {
			t.Error("stop says otherwise")
		}
	})
	return sent
}

func TestProgressOnlyGoesForward(t *testing.T) {
	got := reported(t, func(r *reporter) {
		for _, p := range []float64{0, 0, 2, 1, math.NaN(), math.Inf(1), math.Inf(-1), 2, 3} {
			r.report(tool.Progress{Progress: p, Total: math.Inf(1)})
		}
	})
	want := []tool.Progress{{Progress: 0}, {Progress: 2}, {Progress: 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// Hosts that give up after 60 s of silence hear a silent tool.
func TestSilentToolsAreHeard(t *testing.T) {
	got := reported(t, func(*reporter) { time.Sleep(35 * time.Second) })
	if len(got) != 3 {
		t.Fatalf("got %v", got)
	}
	for i, p := range got {
		if want := fmt.Sprintf("still running after %d s", 10*(i+1)); p.Message != want || i > 0 && p.Progress <= got[i-1].Progress {
			t.Errorf("%d: got %+v", i, p)
		}
	}
}

func TestHeartbeatsNeverOvertakeTheTool(t *testing.T) {
	got := reported(t, func(r *reporter) {
		for i := range 4 {
			r.report(tool.Progress{Progress: float64(i) / 3, Total: 1})
			time.Sleep(25 * time.Second)
		}
	})
	var tools []float64
	for i, p := range got {
		if i > 0 && p.Progress <= got[i-1].Progress || p.Total != 1 {
			t.Errorf("%d: %+v", i, p)
		}
		if p.Message == "" {
			tools = append(tools, p.Progress)
		}
	}
	if len(got) != 12 || len(tools) != 4 {
		t.Errorf("%d of the tool's 4 reports in %v", len(tools), got)
	}
	large := reported(t, func(r *reporter) {
		r.report(tool.Progress{Progress: 1e300})
		time.Sleep(15 * time.Second)
	})
	if len(large) != 2 {
		t.Errorf("got %v", large)
	}
}

// A client that does not read holds up nobody but itself, and gets the newest.
func TestSlowClientsLoseTheOldest(t *testing.T) {
	got := reported(t, func(r *reporter) {
		for i := range 10 * pendingProgress {
			r.report(tool.Progress{Progress: float64(i)})
		}
	})
	if len(got) < pendingProgress || got[len(got)-1].Progress != 10*pendingProgress-1 {
		t.Errorf("got %d, the last %v", len(got), got[len(got)-1])
	}
}

// Every report comes, in order, and the result after them.
func TestResultsComeLast(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			for i := range 5 {
				c.Progress(tool.Progress{Progress: float64(i)})
			}
			return tool.Text("done"), nil
		}
		type report struct {
			token any
			step  float64
		}
		reports := make(chan report, 500)
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{})), version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
				reports <- report{req.Params.ProgressToken, req.Params.Progress}
			},
		})
		for i := range 100 {
			p := &sdk.CallToolParams{Name: "steps"}
			p.SetProgressToken(fmt.Sprint(i))
			if res, err := c.CallTool(ctx, p); err != nil || text(t, res) != "done" {
				t.Fatalf("got %+v, %v", res, err)
			}
		}
		next := map[any]float64{}
		for range 500 {
			select {
			case r := <-reports:
				if r.step != next[r.token] {
					t.Fatalf("call %v: step %v, want %v", r.token, r.step, next[r.token])
				}
				next[r.token]++
			case <-ctx.Done():
				t.Fatalf("got %v", next)
			}
		}
	})
}

func TestNoTokenNoProgress(t *testing.T) {
	f := newFakeTools()
	var progress []bool
	f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
		progress = append(progress, c.Progress != nil)
		return tool.Text("done"), nil
	}
	p := newStdio(within(t), t, newServer(t, f, Options{}))
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	tokens := []string{`{}`, `{"progressToken":null}`, `{"progressToken":12345678901234567890}`, `{"progressToken":0.5}`, `{"progressToken":{}}`, `{"progressToken":[]}`, `{"progressToken":true}`,
		`{"progressToken":"` + strings.Repeat("x", maxID+1) + `"}`, `{"progressToken":7}`, `{"progressToken":"x"}`, `{"progressToken":"` + strings.Repeat("x", maxID) + `"}`}
	for _, meta := range tokens {
		talk(t, p, in, 1, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","_meta":`+meta+`}}`)
	}
	if want := []bool{false, false, false, false, false, false, false, false, true, true, true}; !slices.Equal(progress, want) {
		t.Errorf("got %v, want %v", progress, want)
	}
}

// A status that was sent with the first report cannot become 400 any more.
func TestToolsThatVanishWhileReporting(t *testing.T) {
	f := newFakeTools()
	f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
		c.Progress(tool.Progress{Progress: 1})
		return tool.Result{}, tool.NotFound(c.Name)
	}
	body, headers := modernCall(1, "gone")
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
	_, text := do(t, newHTTP(t, newServer(t, f, Options{})), "POST", headers, body)
	if !strings.HasPrefix(text, "<- 200 text/event-stream\n") || !strings.Contains(text, `"text":"Tool not found: gone"`) || !strings.Contains(text, `"isError":true`) {
		t.Errorf("got %s", text)
	}
}

func TestHeartbeatsReachHosts(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		heard := make(chan struct{}, 100)
		f := newFakeTools()
		f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
			for range 2 {
				select {
				case <-heard:
				case <-ctx.Done():
					return tool.Result{}, ctx.Err()
				}
			}
			return tool.Text("heard"), nil
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{Heartbeat: time.Millisecond})), version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
				select {
				case heard <- struct{}{}:
				default:
				}
			},
		})
		p := &sdk.CallToolParams{Name: "silent"}
		p.SetProgressToken("x")
		if res, err := c.CallTool(ctx, p); err != nil || text(t, res) != "heard" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}
