package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// talk sends lines and returns the next n lines that come back.
func talk(t *testing.T, p *pipes, in *bufio.Reader, n int, lines ...string) []string {
	t.Helper()
	sent := make(chan struct{})
	defer func() { <-sent }()
	go func() { // the server may answer before it reads on
		defer close(sent)
		for _, line := range lines {
			if _, err := io.WriteString(p.in, line+"\n"); err != nil {
				return // the test sees that nothing comes back
			}
		}
	}()
	var got []string
	for range n {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	return got
}

func callLine(id, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q}}`, id, name)
}

func cancelLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func TestStdioLineEnds(t *testing.T) {
	p := newStdio(within(t), t, newServer(t, newFakeTools(), Options{}))
	in := bufio.NewReader(p.out)
	got := talk(t, p, in, 2, initialize+"\r", "", "   ", "\r", `  {"jsonrpc":"2.0","id":2,"method":"ping"}  `)
	if want := `{"jsonrpc":"2.0","id":2,"result":{}}`; got[1] != want {
		t.Errorf("got %s, want %s", got[1], want)
	}
	// The last line needs no end.
	go func() {
		_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		_ = p.in.Close()
	}()
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), `"id":3,"result"`) {
		t.Errorf("got %s, %v", rest, err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("served until %v", err)
	}
}

func TestStdioLinesHaveALimit(t *testing.T) {
	p := newStdio(within(t), t, newServer(t, newFakeTools(), Options{}))
	in := bufio.NewReader(p.out)
	frame := `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":""}}`
	fill := func(n int) string {
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	for i, c := range []struct{ line, want string }{
		{initialize, `"id":1,"result"`},
		{fill(maxLine), `"id":2,"result":{}`},
		{fill(maxLine + 3), `"id":null,"error":{"code":-32600,"message":"a line of more than 16777216 bytes`},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `"id":3,"result":{}`},
	} {
		if got := talk(t, p, in, 1, c.line); !strings.Contains(got[0], c.want) {
			t.Errorf("%d: got %.200s, want %s", i, got[0], c.want)
		}
	}
}

// readLine against a reader that knows no limit.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\r\nbb\n\nccccccccc\nd"), 4)
	f.Add([]byte("\n\r\n"), 0)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		if most < 0 || most > 1<<10 {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		want := bytes.SplitAfter(data, []byte("\n"))
		if last := len(want) - 1; len(want[last]) == 0 {
			want = want[:last]
		}
		for _, line := range want {
			got, err := readLine(r, most)
			if long := len(line) > most+2; long != errors.Is(err, errLong) {
				t.Fatalf("%q with at most %d: %v", line, most, err)
			} else if !long && (err != nil || string(got) != strings.TrimRight(string(line), "\r\n")) {
				t.Fatalf("%q: got %q, %v", line, got, err)
			}
		}
		if _, err := readLine(r, most); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

// H17: go-sdk never answers the second.
func TestStdioIdsInUse(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		close(started)
		<-release
		return tool.Text("first"), nil
	}
	p := newStdio(within(t), t, newServer(t, f, Options{}))
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	talk(t, p, in, 0, callLine("7", "slow"))
	<-started
	if got := talk(t, p, in, 1, callLine("7", "echo")); !strings.Contains(got[0], `"error":{"code":-32600,"message":"id 7 is in use`) {
		t.Errorf("second: %s", got)
	}
	close(release)
	if got := talk(t, p, in, 1); !strings.Contains(got[0], `"id":7,"result":{"content":[{"type":"text","text":"first"}]}`) {
		t.Errorf("first: %s", got)
	}
	if got := talk(t, p, in, 1, `{"jsonrpc":"2.0","id":7,"method":"ping"}`); !strings.Contains(got[0], `"id":7,"result":{}`) {
		t.Errorf("after it: %s", got)
	}
}

// waitForEnd is a tool that runs until it is cancelled.
func waitForEnd(started chan<- string, ended chan<- error) func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
		started <- c.Name
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Result{}, tool.ErrCancelled
	}
}

func wasCancelled(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the tool got %v", err)
		}
	case <-within(t).Done():
		t.Fatal("the tool goes on")
	}
}

func TestStdioCancelledCallsEndUnanswered(t *testing.T) {
	started, ended := make(chan string, 1), make(chan error, 1)
	f := newFakeTools()
	f.call = waitForEnd(started, ended)
	p := newStdio(within(t), t, newServer(t, f, Options{}))
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	for _, id := range []string{"7", `"seven"`} {
		talk(t, p, in, 0, callLine(id, "slow"))
		<-started
		talk(t, p, in, 0, cancelLine(`"other"`), cancelLine(id))
		wasCancelled(t, ended)
	}
	// Had a cancelled call been answered, that would come first.
	if got := talk(t, p, in, 1, `{"jsonrpc":"2.0","id":9,"method":"ping"}`); got[0] != `{"jsonrpc":"2.0","id":9,"result":{}}` {
		t.Errorf("got %s", got)
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("served until %v", err)
	}
}

// go-sdk cancels what runs when the input ends: `echo '...' | hutch mcp` would
// get no answer.
func TestStdioEndsAfterItsAnswers(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	f := newFakeTools()
	f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
		close(started)
		<-release
		return tool.Text("late"), ctx.Err()
	}
	p := newStdio(within(t), t, newServer(t, f, Options{}))
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	talk(t, p, in, 0, callLine("7", "slow"))
	<-started
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), `"late"`) {
		t.Errorf("got %s, %v", rest, err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("served until %v", err)
	}
}

// However a connection ends, each request that was not answered is: in order if
// its call says so itself, else with an error. Then the output ends.
func TestStdioAnswersWhatItEnds(t *testing.T) {
	const byItself = `"text":"the server is shutting down, the call was cancelled"}],"isError":true}`
	const forIt = `"error":{"code":-32603,"message":"the server is shutting down, the request was not finished"}`
	for _, c := range []struct {
		name     string
		end      func(s *Server, p *pipes, cancel func()) error
		stubborn bool // the tool does not end when it is told to
		want     string
		served   error
	}{
		{"context", func(_ *Server, _ *pipes, cancel func()) error { cancel(); return nil }, false, forIt, context.Canceled},
		{"context, stubborn", func(_ *Server, _ *pipes, cancel func()) error { cancel(); return nil }, true, forIt, context.Canceled},
		{"input", func(_ *Server, p *pipes, _ func()) error { return p.in.Close() }, false, forIt, nil},
		{"input, stubborn", func(_ *Server, p *pipes, _ func()) error { return p.in.Close() }, true, forIt, nil},
		{"close", func(s *Server, _ *pipes, _ func()) error { return s.Close() }, false, byItself, nil},
		{"close, stubborn", func(s *Server, _ *pipes, _ func()) error { return s.Close() }, true, forIt, nil},
	} {
		for _, version := range []string{lastLegacy, firstModern} {
			t.Run(c.name+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					started, release := make(chan struct{}), make(chan struct{})
					f := newFakeTools()
					f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
						close(started)
						<-ctx.Done()
						if c.stubborn {
							<-release
						}
						return tool.Result{}, tool.ErrCancelled
					}
					s := New(f, Options{})
					ctx, cancel := context.WithCancel(t.Context())
					p := newStdio(ctx, t, s)
					in := bufio.NewReader(p.out)
					talk(t, p, in, 1, initialize)
					line := callLine("7", "slow")
					if version == firstModern {
						line, _ = modernCall(7, "slow")
					}
					talk(t, p, in, 0, line)
					<-started
					ended := make(chan error, 1)
					began := time.Now()
					go func() { ended <- c.end(s, p, cancel) }()
					rest, err := io.ReadAll(in)
					if got := string(rest); err != nil || strings.Count(got, `"id":7`) != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
						t.Errorf("got %s, %v", got, err)
					}
					if took := time.Since(began); took > time.Minute+5*time.Second {
						t.Errorf("answered after %v", took)
					}
					time.Sleep(time.Minute)
					close(release)
					if err := <-p.done; !errors.Is(err, c.served) {
						t.Errorf("served until %v", err)
					}
					if err := <-ended; err != nil && !c.stubborn {
						t.Error(err)
					}
					cancel()
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// An answer that is on its way when the end comes is not cut off.
func TestStdioEndsAfterTheAnswerOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(newFakeTools(), Options{})
		ctx, cancel := context.WithCancel(t.Context())
		p := newStdio(ctx, t, s)
		in := bufio.NewReader(p.out)
		talk(t, p, in, 1, initialize)
		talk(t, p, in, 0, callLine("7", "echo"))
		synctest.Wait() // it is being written
		cancel()
		synctest.Wait()
		time.Sleep(farewell / 2)
		rest, err := io.ReadAll(in)
		if err != nil || !strings.Contains(string(rest), `"id":7,"result"`) || !strings.HasSuffix(string(rest), "\n") {
			t.Errorf("got %s, %v", rest, err)
		}
		if err := <-p.done; !errors.Is(err, context.Canceled) {
			t.Errorf("served until %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Without a reader nothing is said, and the end comes nevertheless.
func TestStdioEndsWhenNobodyReadsTheLastAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, ended := make(chan string, 1), make(chan error, 1)
		f := newFakeTools()
		f.call = waitForEnd(started, ended)
		s := New(f, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		p := newStdio(ctx, t, s)
		talk(t, p, bufio.NewReader(p.out), 1, initialize)
		talk(t, p, nil, 0, callLine("7", "slow"))
		<-started
		began := time.Now()
		cancel()
		if err := <-p.done; !errors.Is(err, context.Canceled) {
			t.Errorf("served until %v", err)
		}
		if took := time.Since(began); took != farewell {
			t.Errorf("after %v", took)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the tool got %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What is asked while a server shuts down is answered at once.
func TestStdioRefusesWhileShuttingDown(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		close(started)
		<-release
		return tool.Text("first"), nil
	}
	s := newServer(t, f, Options{})
	p := newStdio(within(t), t, s)
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	talk(t, p, in, 0, callLine("7", "slow"))
	<-started
	s.stop() // what Shutdown begins with
	if got := talk(t, p, in, 1, callLine("8", "echo")); !strings.Contains(got[0], `"id":8,"error":{"code":-32050,"message":"the server is shutting down, the request was not begun`) {
		t.Errorf("second: %s", got)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(within(t)) }()
	close(release)
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), `"first"`) {
		t.Errorf("first: %s, %v", rest, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestStdioEndsWhenNobodyReads(t *testing.T) {
	p := newStdio(within(t), t, newServer(t, newFakeTools(), Options{}))
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
	talk(t, p, nil, 0, initialize)
	if err := <-p.done; err == nil {
		t.Error("served to the end")
	}
}

func listenLine(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id)
}

// go-sdk lets a second subscription take over the first, and ends both
// with either.
func TestStdioHasOneSubscription(t *testing.T) {
	f := newFakeTools()
	p := newStdio(within(t), t, newServer(t, f, Options{Quiet: time.Millisecond}))
	in := bufio.NewReader(p.out)
	if got := talk(t, p, in, 1, listenLine("1")); !strings.Contains(got[0], "notifications/subscriptions/acknowledged") {
		t.Fatal(got)
	}
	if got := talk(t, p, in, 1, listenLine("2")); !strings.Contains(got[0], `"id":2,"error":{"code":-32600,"message":"id 2: one subscription`) {
		t.Fatal(got)
	}
	talk(t, p, in, 0, cancelLine("2"))
	f.set(named("new")...)
	if got := talk(t, p, in, 1); !strings.Contains(got[0], "notifications/tools/list_changed") || !strings.Contains(got[0], `"io.modelcontextprotocol/subscriptionId":1`) {
		t.Errorf("got %s", got)
	}
	talk(t, p, in, 0, cancelLine("1"))
	if got := talk(t, p, in, 1, listenLine("3")); !strings.Contains(got[0], "notifications/subscriptions/acknowledged") {
		t.Errorf("after the first was cancelled: %s", got)
	}
	if err := p.in.Close(); err != nil { // an open subscription does not hold the end up
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("served until %v", err)
	}
}

// Results far over bufio.Scanner's 64 KiB.
func TestStdioLargeResults(t *testing.T) {
	big := strings.Repeat("x", 5<<20)
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) { return tool.Text(big), nil }
	p := newStdio(within(t), t, newServer(t, f, Options{}))
	in := bufio.NewReader(p.out)
	if got := talk(t, p, in, 2, initialize, callLine("2", "echo")); !strings.Contains(got[1], big) {
		t.Errorf("%d bytes", len(got[1]))
	}
}

// FuzzStdio: whatever a client sends, the process lives, every line that comes
// back is JSON, and the connection ends with its input.
func FuzzStdio(f *testing.F) {
	for _, seed := range transcriptSeeds(f, "testdata/stdio-*.txtar") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(newFakeTools(), Options{Drain: time.Second})
		defer func() { _ = s.Close() }()
		var out bytes.Buffer
		if err := s.ServeStdio(context.Background(), io.NopCloser(bytes.NewReader(data)), nopWriteCloser{&out}); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if err := rawjson.Check(line, maxMessageDepth+rawjson.MaxDepth); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	})
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
