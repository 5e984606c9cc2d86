package agui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// pipes is a listener whose connections are in memory, so that time in a bubble goes
// on while both ends wait.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A bubble is a server in a synctest bubble.
type bubble struct {
	*Server
	pipes *pipes
	left  *atomic.Int32
	log   log
}

func inBubble(t *testing.T, f *fake, o Options) *bubble {
	b := &bubble{pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, left: new(atomic.Int32)}
	f.left = b.left
	o.Logger = b.log.logger()
	b.Server = New(f.open, o)
	server := &http.Server{Handler: b.Server, ReadHeaderTimeout: time.Minute}
	go server.Serve(b.pipes) //nolint:errcheck // ends with Close
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// connect sends the head of a request and returns its connection.
func (b *bubble) connect(t *testing.T, head string) net.Conn {
	near, far := net.Pipe()
	b.pipes.conns <- far
	if _, err := io.WriteString(near, strings.ReplaceAll(head, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return near
}

func sent(in string) string {
	return fmt.Sprintf("POST /agui HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: %d\n\n%s", len(in), in)
}

const waits = `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"wait"}]}`

// respond reads the head of a response.
func respond(t *testing.T, conn net.Conn) (*http.Response, *bufio.Reader) {
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, bufio.NewReader(resp.Body)
}

// line reads the next line of a stream that is not empty.
func line(t *testing.T, r *bufio.Reader) string {
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return "error: " + err.Error()
		}
		if text != "\n" {
			return strings.TrimSuffix(text, "\n")
		}
	}
}

func TestE3_21_KeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := make(chan struct{})
		f := &fake{run: func(_ context.Context, in event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				<-quiet
				yield(started(in), nil)
				time.Sleep(30 * time.Second)
				yield(finished(in, nil), nil)
				time.Sleep(20 * time.Second)
			}
		}}
		b := inBubble(t, f, Options{})
		begin := time.Now()
		conn := b.connect(t, sent(waits))
		resp, body := respond(t, conn)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s %v", resp.Status, resp.Header)
		}
		// Before the run has begun, while it is quiet, and never behind its end.
		for _, want := range []string{"12s : keep-alive", "24s : keep-alive", "24s data: RUN_STARTED", "36s : keep-alive", "48s : keep-alive", "54s data: RUN_FINISHED", "1m14s error: EOF"} {
			got := line(t, body)
			if strings.HasPrefix(got, "data: ") {
				e, err := event.Decode([]byte(strings.TrimPrefix(got, "data: ")))
				if err != nil {
					t.Fatalf("%s: %v", got, err)
				}
				got = "data: " + string(e.Type())
			}
			if got = fmt.Sprintf("%s %s", time.Since(begin), got); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if want == "24s : keep-alive" {
				close(quiet)
			}
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A client that does not read holds nothing up for longer than it may.
func TestH10_SlowReaders(t *testing.T) {
	for name, run := range map[string]func(*fake, context.Context, event.Input) iter.Seq2[event.Event, error]{
		"while the run is quiet": (*fake).waiting,
		"while it says much": func(f *fake, ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				defer f.left.Add(1)
				for ok := yield(started(in), nil); ok; {
					ok = yield(event.Custom{Name: strings.Repeat("x", 1000), Value: []byte("1")}, nil)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				f.run = func(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] { return run(f, ctx, in) }
				b := inBubble(t, f, Options{})
				begin := time.Now()
				conn := b.connect(t, sent(waits))
				respond(t, conn)
				for b.left.Load() == 0 && time.Since(begin) < time.Hour {
					time.Sleep(time.Second)
				}
				if took := time.Since(begin); b.left.Load() != 1 || took > time.Minute {
					t.Errorf("after %s %d runs are left alone", took, b.left.Load())
				}
				if strings.Contains(b.log.String(), "level=ERROR") {
					t.Errorf("the log says\n%s", &b.log)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestE3_09_VanishedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{})
		conn := b.connect(t, sent(waits))
		_, body := respond(t, conn)
		if got := line(t, body); !strings.Contains(got, "RUN_STARTED") {
			t.Error(got)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if b.left.Load() != 1 || strings.Contains(b.log.String(), "level=ERROR") {
			t.Errorf("%d runs are left, the log says\n%s", b.left.Load(), &b.log)
		}
	})
}

// A body that does not come is not waited for, and the wait does not end a stream
// whose body did.
func TestH08_SlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{})
		begin := time.Now()
		conn := b.connect(t, "POST /agui HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: 10\n\n{")
		resp, _ := respond(t, conn)
		if took := time.Since(begin); resp.StatusCode != http.StatusBadRequest || took != 30*time.Second {
			t.Errorf("%s after %s", resp.Status, took)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		conn = b.connect(t, sent(waits))
		_, body := respond(t, conn)
		for range 10 { // two minutes
			line(t, body)
		}
		if b.left.Load() != 0 {
			t.Error("the stream ended")
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A connection that cannot be held to a deadline, or whose writes fail, ends its
// stream, whether or not whoever made it says so.
func TestConnectionsThatCannotStream(t *testing.T) {
	for name, w := range map[string]*broken{
		"no deadlines":        {deadline: http.ErrNotSupported},
		"no write succeeds":   {},
		"the second one ends": {flushes: 1},
		"the third one ends":  {flushes: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w.ResponseRecorder = httptest.NewRecorder()
			f := &fake{left: new(atomic.Int32)}
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, "POST", "/agui", strings.NewReader(waits))
			r.Header.Set("Content-Type", "application/json")
			New(f.open, Options{}).ServeHTTP(w, r)
			if took := time.Since(begin); f.left.Load() != 1 || took > 12*time.Second {
				t.Errorf("%s: after %s %d runs are left", name, took, f.left.Load())
			}
		})
	}
}

// A broken connection takes so many flushes, and then fails.
type broken struct {
	*httptest.ResponseRecorder
	flushes  int
	deadline error
}

func (b *broken) SetReadDeadline(time.Time) error  { return nil }
func (b *broken) SetWriteDeadline(time.Time) error { return b.deadline }

func (b *broken) FlushError() error {
	if b.flushes--; b.flushes < 0 {
		return io.ErrClosedPipe
	}
	return nil
}

func TestE3_25_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{})
		running := b.connect(t, sent(waits))
		_, runs := respond(t, running)
		saying := b.connect(t, sent(strings.Replace(waits, "wait", "wait and say why", 1)))
		_, says := respond(t, saying)
		watching := b.connect(t, "GET /agui/threads/mine/events HTTP/1.1\nHost: x\nPrincipal: mine\n\n")
		_, watched := respond(t, watching)
		for range 7 { // both runs that there are to see
			line(t, watched)
		}
		read := make(chan string)
		go func() {
			var all []string
			for _, r := range []*bufio.Reader{runs, says, watched} {
				text, err := io.ReadAll(r)
				all = append(all, fmt.Sprint(string(text), err))
			}
			read <- strings.Join(all, "")
		}()
		if err := b.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		const run = `data: {"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}` + "\n\n" +
			`data: {"type":"RUN_ERROR","message":"hutch is shutting down: ask for the thread again later","code":"shutdown"}` + "\n\n<nil>"
		want := strings.Join([]string{run, run, "\n<nil>"}, "")
		if got := <-read; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		late := b.connect(t, sent(waits))
		if resp, _ := respond(t, late); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a late one: %s", resp.Status)
		}
		for _, conn := range []net.Conn{running, saying, watching, late} {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestShutdownWithoutStreamsAndWithOneThatStays(t *testing.T) {
	if err := New((&fake{}).open, Options{}).Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		stay := make(chan struct{})
		f := &fake{run: func(_ context.Context, in event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				yield(started(in), nil)
				<-stay
			}
		}}
		b := inBubble(t, f, Options{})
		conn := b.connect(t, sent(waits))
		respond(t, conn)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(stay)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestH08_StreamsAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{Room: NewRoom(1, 1)})
		first := b.connect(t, sent(waits))
		respond(t, first)
		for range 2 {
			second := b.connect(t, sent(waits))
			if resp, _ := respond(t, second); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s %v", resp.Status, resp.Header)
			}
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		third := b.connect(t, sent(waits))
		if resp, _ := respond(t, third); resp.StatusCode != http.StatusOK {
			t.Errorf("after one has left: %s", resp.Status)
		}
		if err := third.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Clients that watch leave room for runs, at every server that shares it; the place of one
// that left is free.
func TestH08_WatchersLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := NewRoom(2, 1)
		first, second := inBubble(t, &fake{}, Options{Room: room}), inBubble(t, &fake{}, Options{Room: room})
		asks := func(b *bubble, head, want string) net.Conn {
			t.Helper()
			conn := b.connect(t, head)
			resp, body := respond(t, conn)
			line, err := body.ReadString('\n')
			if err != nil || !strings.Contains(line, want) || resp.StatusCode != http.StatusOK && !resp.Close {
				t.Errorf("%s %v: %s, %v, want %s", resp.Status, resp.Header, line, err, want)
			}
			return conn
		}
		const watch = "GET /agui/threads/t/events HTTP/1.1\nHost: x\nPrincipal: t\n\n"
		watches := first.connect(t, watch)
		respond(t, watches)
		refused := asks(second, watch, "1 streams watch threads, at most 1: close one or try again later")
		runs := asks(second, sent(waits), "RUN_STARTED")
		full := asks(first, sent(waits), "2 streams are open, at most 2: close one or try again later")
		for _, conn := range []net.Conn{watches, refused, runs, full} {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		again := second.connect(t, watch)
		if resp, _ := respond(t, again); resp.StatusCode != http.StatusOK {
			t.Errorf("after all have left: %s", resp.Status)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server that drains lets streams end by themselves, and takes no new ones.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{})
		runs := b.connect(t, sent(waits))
		respond(t, runs)
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := b.Drain(soon); !errors.Is(err, context.DeadlineExceeded) || b.left.Load() != 0 {
			t.Errorf("%v, and %d runs were left", err, b.left.Load())
		}
		late := b.connect(t, sent(waits))
		if resp, _ := respond(t, late); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a new one: %s", resp.Status)
		}
		for _, conn := range []net.Conn{runs, late} {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := b.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What could have been a status is an event once the status is out.
func TestErrorBehindAKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{refuse: func() error {
			time.Sleep(13 * time.Second)
			return &event.Failure{Code: event.CodeBusy, Message: "16 runs are in progress"}
		}}
		conn := inBubble(t, f, Options{}).connect(t, sent(waits))
		resp, body := respond(t, conn)
		text, err := io.ReadAll(body)
		const want = ": keep-alive\n\n" + `data: {"type":"RUN_ERROR","message":"16 runs are in progress","code":"busy"}` + "\n\n"
		if resp.StatusCode != http.StatusOK || string(text) != want || err != nil {
			t.Errorf("%s %s, %v", resp.Status, text, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A run that waits for others is a stream at once, and what it then fails with is an event.
func TestRunsThatWaitHaveTheirStatusAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{run: func(context.Context, event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				time.Sleep(5 * time.Second)
				yield(nil, &event.Failure{Code: event.CodeInvalid, Message: "resume: no interrupt i waits"})
			}
		}}
		begin := time.Now()
		conn := inBubble(t, f, Options{}).connect(t, sent(waits))
		resp, body := respond(t, conn)
		if took := time.Since(begin); took != 0 || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s %v after %s", resp.Status, resp.Header, took)
		}
		if got := line(t, body); !strings.Contains(got, `"RUN_ERROR"`) || !strings.Contains(got, event.CodeInvalid) {
			t.Error(got)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}
