package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a client, a relay, and the servers that it finds one after another.
type scene struct {
	t       *testing.T
	client  *bufio.Scanner // what the client reads
	say     chan<- string  // what it writes; closed when it has said everything
	servers chan *actor
	ended   chan error
	absent  chan struct{} // closed when there is no server to wait for
	silent  bool          // the servers to come do not say whether they work
}

// actor is one server, played by the test.
type actor struct {
	t   *testing.T
	in  *bufio.Scanner
	out io.WriteCloser
	end func()
}

// play runs a scene in a bubble of its own.
func play(t *testing.T, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		in, toRelay := io.Pipe()
		read, out := io.Pipe()
		say := make(chan string, 10)
		go func() {
			for line := range say {
				_, _ = io.WriteString(toRelay, line+"\n") // the relay may have ended
			}
			_ = toRelay.Close()
		}()
		s := &scene{t: t, client: bufio.NewScanner(read), say: say, servers: make(chan *actor), absent: make(chan struct{}), ended: make(chan error, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			s.ended <- Run(ctx, in, out, Options{Connect: s.connect, NotBegun: -32050})
			_ = out.Close()
		}()
		f(s)
		cancel()
		_, _ = in.Close(), read.Close()
		if s.say != nil {
			close(s.say)
		}
	})
}

func (s *scene) connect(ctx context.Context) (Server, error) {
	server, in, out := Pipe()
	a := &actor{t: s.t, in: bufio.NewScanner(in), out: out, end: func() { _, _ = in.Close(), out.Close() }}
	select {
	case s.servers <- a:
		if s.silent {
			return deaf{server}, nil
		}
		return server, nil
	case <-s.absent:
		return nil, errors.New("nobody is there")
	case <-ctx.Done():
		return nil, errors.New("nobody is there")
	}
}

// deaf is a server whose process does nothing.
type deaf struct{ Server }

func (deaf) Check(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// writes has the client write lines.
func (s *scene) writes(lines ...string) {
	for _, line := range lines {
		s.say <- line
	}
}

// reads wants the client to read lines.
func (s *scene) reads(lines ...string) {
	s.t.Helper()
	for _, want := range lines {
		if !s.client.Scan() || s.client.Text() != want {
			s.t.Fatalf("the client read %q, want %q", s.client.Text(), want)
		}
	}
}

func (a *actor) hears(lines ...string) {
	a.t.Helper()
	for _, want := range lines {
		if !a.in.Scan() || a.in.Text() != want {
			a.t.Fatalf("the server read %q, want %q", a.in.Text(), want)
		}
	}
}

func (a *actor) says(lines ...string) {
	a.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(a.out, line+"\n"); err != nil {
			a.t.Fatal(err)
		}
	}
}

const (
	hello    = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	welcome  = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`
	ready    = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	changed  = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	list     = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	listed   = `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`
	callTwo  = `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"id":7}},"id":"two"}`
	listen   = `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen"}`
	lostText = "the hutch process that ran the tools ended during this call: it may or may not have been done; look before you call again"
)

var lostTwo = fmt.Sprintf(`{"jsonrpc":"2.0","id":"two","result":{"content":[{"type":"text","text":%q}],"isError":true}}`, lostText)

// A server that ends leaves the client with its session, its questions asked of
// the next, and the calls it cannot know of answered.
func TestServerEnds(t *testing.T) {
	play(t, func(s *scene) {
		first := <-s.servers
		s.writes(hello)
		first.hears(hello)
		first.says(welcome)
		s.reads(welcome)
		s.writes(ready, list, callTwo, listen)
		first.hears(ready, list, callTwo, listen)
		first.end()
		s.reads(lostTwo)
		second := <-s.servers
		s.reads(changed)
		second.hears(hello, ready, list, listen)
		second.says(welcome, listed) // the welcome is not for the client, who had one
		s.reads(listed)
		s.writes(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
		second.hears(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	})
}

// A server that is about to end says what it has not begun: that goes to the next,
// calls too, and the client learns nothing of it.
func TestNotBegun(t *testing.T) {
	play(t, func(s *scene) {
		first := <-s.servers
		s.writes(list, callTwo)
		first.hears(list, callTwo)
		first.says(`{"jsonrpc":"2.0","id":"two","error":{"code":-32050,"message":"not begun"}}`, listed)
		s.reads(listed)
		first.end()
		second := <-s.servers
		second.hears(callTwo)
		second.end() // which may have begun it
		s.reads(lostTwo)
		<-s.servers
	})
}

// A server whose process was stopped keeps its connection and answers nothing. It
// is left while a request waits, and not before.
func TestServerStopsResponding(t *testing.T) {
	play(t, func(s *scene) {
		s.silent = true
		first := <-s.servers
		time.Sleep(time.Hour)
		began := time.Now()
		s.writes(callTwo)
		first.hears(callTwo)
		s.reads(strings.Replace(lostTwo, "ended during", "stopped responding during", 1))
		if waited := time.Since(began); waited > checkEvery+checkPatience+lastWords {
			t.Errorf("it waited %v", waited)
		}
		s.silent = false
		second := <-s.servers
		s.writes(list)
		second.hears(list)
		time.Sleep(time.Hour) // it says that it works
		second.says(listed)
		s.reads(listed)
	})
}

// One that ends before it answered the handshake is asked for nothing twice.
func TestServerEndsInHandshake(t *testing.T) {
	play(t, func(s *scene) {
		first := <-s.servers
		s.writes(hello)
		first.hears(hello)
		first.end()
		second := <-s.servers
		second.hears(hello)
		second.says(welcome)
		s.reads(welcome)
	})
}

// A client of a revision without a handshake is told of no change it did not
// subscribe to.
func TestServerEndsWithoutHandshake(t *testing.T) {
	play(t, func(s *scene) {
		first := <-s.servers
		s.writes(list)
		first.hears(list)
		first.end()
		second := <-s.servers
		second.hears(list)
		second.says(listed)
		s.reads(listed)
	})
}

func TestClientEnds(t *testing.T) {
	play(t, func(s *scene) {
		server := <-s.servers
		s.writes(callTwo, list)
		close(s.say)
		s.say = nil
		server.hears(callTwo, list)
		if server.in.Scan() {
			t.Fatalf("the server read %q after the end", server.in.Text())
		}
		server.says(listed)
		s.reads(listed)
		server.end() // without having answered the call
		s.reads(lostTwo)
		if err := <-s.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestNobodyTakesOver(t *testing.T) {
	play(t, func(s *scene) {
		first := <-s.servers
		s.writes(list)
		first.hears(list)
		began := time.Now()
		first.end()
		s.reads(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no hutch process answers"}}`)
		if err := <-s.ended; err == nil || err.Error() != "nobody is there" {
			t.Errorf("Run: %v", err)
		}
		if waited := time.Since(began); waited != 15*time.Second+restMost+hearTime {
			t.Errorf("it waited %v", waited)
		}
	})
}

// A client that finds nobody from the start is told so in answer to what it said.
func TestNobodyIsThere(t *testing.T) {
	play(t, func(s *scene) {
		close(s.absent)
		s.writes(hello, list)
		for _, id := range []string{"0", "1"} {
			s.reads(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"no hutch process answers"}}`)
		}
		if err := <-s.ended; err == nil || err.Error() != "nobody is there" {
			t.Errorf("Run: %v", err)
		}
	})
}

// Servers that end at once are not looked for in a tight loop.
func TestServersThatEndAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		began := time.Now()
		for range 10 {
			(<-s.servers).end()
		}
		if took := time.Since(began); took != 9*restMost {
			t.Errorf("ten servers were found in %v", took)
		}
	})
}

func TestClientCannotBeWrittenTo(t *testing.T) {
	in, say := io.Pipe()
	server, _, serverOut := Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), in, brokenWriter{}, Options{
			Connect: func(context.Context) (Server, error) { return server, nil },
		})
	}()
	if _, err := io.WriteString(serverOut, listed+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Run: %v", err)
	}
	_ = say.Close()
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Of a line that is too long, the server gets enough to refuse it, and the next
// line is one of its own.
func TestLongLine(t *testing.T) {
	r := bufio.NewReader(strings.NewReader(strings.Repeat("x", 2*longLine) + "\n" + list + "\n"))
	line, err := readLine(r)
	if err != nil || len(line) != longLine {
		t.Errorf("read %d bytes, %v, want %d", len(line), err, longLine)
	}
	if line, err := readLine(r); err != nil || string(line) != list+"\n" {
		t.Errorf("then %q, %v", line, err)
	}
}

func TestPeek(t *testing.T) {
	tests := map[string]message{
		list:    {id: "1", method: "tools/list"},
		callTwo: {id: `"two"`, method: "tools/call"},
		listed:  {id: "1"},
		ready:   {method: "notifications/initialized"},
		`{"jsonrpc":"2.0","error":{"code":1},"id":null}`: {code: 1},
		`{"jsonrpc":"2.0","id":3,"error":{"code":-7}}`:   {id: "3", code: -7},
		`{"id":3,"error":"no"}`:                          {id: "3"},
		`{"id":1.50,"method":7}`:                         {id: "1.50"},
		`{"params":{"id":1,"method":"x"}}`:               {},
		`[{"id":1,"method":"x"}]`:                        {},
		`{"id":1,"method":"x"`:                           {id: "1", method: "x"},
		`{"id"`:                                          {},
		"":                                               {},
		"\xff\xfe":                                       {},
	}
	for line, want := range tests {
		if got := peek([]byte(line)); got != want {
			t.Errorf("peek(%s) = %+v, want %+v", line, got, want)
		}
	}
}

// An answer is recognised without reading what it holds.
func BenchmarkPeek(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)
	for b.Loop() {
		if peek(line).id != "1" {
			b.Fatal("no id")
		}
	}
}

func FuzzPeek(f *testing.F) {
	for _, line := range []string{hello, listed, callTwo, `{"id":{"a":[1]},"method":"x"}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if m := peek(line); m.request() && m.answer() {
			t.Errorf("%q is a request and an answer", line)
		}
	})
}
