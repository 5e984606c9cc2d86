package agui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/transcripts.txtar anew")

// A log is what an operator reads.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// served serves an engine on a loopback address.
func served(t *testing.T, f *fake, o Options) *httptest.Server {
	t.Helper()
	if f.left == nil {
		f.left = new(atomic.Int32)
	}
	server := httptest.NewServer(New(f.open, o))
	t.Cleanup(server.Close)
	return server
}

// do sends a request that is written as a first line, headers, and a body.
func do(t *testing.T, url, request string) (*http.Response, string) {
	t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ": "); ok {
			r.Header.Set(name, value)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func post(in string) string {
	return "POST /agui\nContent-Type: application/json\n\n" + in
}

func asking(text string) string {
	return post(`{"threadId":"t-1","runId":"r-1","protocolVersion":"1.0","messages":[{"id":"u","role":"user","content":"` + text + `"}]}`)
}

// What goes over the wire, with clients of both generations.
func TestS3_001_Transcripts(t *testing.T) {
	const file = "testdata/transcripts.txtar"
	scripts, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := served(t, &fake{}, Options{})
	for i, f := range scripts.Files {
		request, want, _ := strings.Cut(string(f.Data), "=>\n")
		resp, body := do(t, server.URL, strings.TrimSpace(request))
		got := resp.Status + "\n"
		for _, name := range []string{"Content-Type", "Cache-Control", "X-Accel-Buffering", "X-Content-Type-Options", "Retry-After", "Allow"} {
			if value := resp.Header.Get(name); value != "" {
				got += name + ": " + value + "\n"
			}
		}
		got += "\n" + body
		if *update {
			scripts.Files[i].Data = []byte(request + "=>\n" + got)
		} else if got != want {
			t.Errorf("%s: got\n%swant\n%s", f.Name, got, want)
		}
		if strings.Contains(got, "secret") || strings.Contains(body, "\r") {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(scripts), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A thread of someone else is like one that does not exist, to the byte.
func TestE3_15_ThreadsOfOthersDoNotExist(t *testing.T) {
	server := served(t, &fake{}, Options{})
	for _, route := range []string{"GET /agui/threads/%s", "GET /agui/threads/%s/events", "GET /agui/threads/%s/events?runId=r-1", "POST /agui/threads/%s/cancel"} {
		var answers []string
		for _, id := range []string{"theirs", "nothere"} {
			resp, body := do(t, server.URL, fmt.Sprintf(route, id)+"\nPrincipal: mine")
			resp.Header.Del("Date")
			answers = append(answers, fmt.Sprint(resp.Status, resp.Header, body))
		}
		if !strings.HasPrefix(answers[0], "404") || answers[0] != answers[1] {
			t.Errorf("%s: %q", route, answers)
		}
		if resp, body := do(t, server.URL, fmt.Sprintf(strings.Replace(route, "/events", "/events?runId=r-1", 1), "theirs")+"\nPrincipal: theirs"); !strings.Contains(route, "?") && resp.StatusCode >= 300 {
			t.Errorf("%s for its owner: %s %s", route, resp.Status, body)
		}
	}
}

func TestErrorsBeforeAStream(t *testing.T) {
	var l log
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  string
	}{
		{event.ErrNotFound, 404, "not_found", ""},
		{fmt.Errorf("secret: %w", event.ErrNotRunning), 409, "not_running", ""},
		{&event.Failure{Code: event.CodeInvalid, Message: "resume: no interrupt i waits"}, 400, "invalid_input", ""},
		{&event.Failure{Code: event.CodeForbidden, Message: "the thread may only be read"}, 403, "forbidden", ""},
		{&event.Failure{Code: event.CodeBusy, Message: "16 runs are in progress", Cause: errors.New("secret")}, 429, "busy", "5"},
		{&event.Failure{Code: event.CodeUnavailable, Message: "no store"}, 503, "unavailable", "5"},
		{&event.Failure{Code: event.CodeShutdown, Message: "later"}, 503, "shutdown", "5"},
		{&event.Failure{Code: "duplicate_run_id", Message: "the run r-1 had another input"}, 200, "duplicate_run_id", ""},
		{errors.New("secret"), 200, "internal", ""},
	} {
		f := &fake{run: func(context.Context, event.Input) iter.Seq2[event.Event, error] { return failing(c.err) }}
		server := served(t, f, Options{Logger: l.logger()})
		resp, body := do(t, server.URL, asking("x"))
		if resp.StatusCode != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) || resp.Header.Get("Retry-After") != c.retry || strings.Contains(body, "secret") {
			t.Errorf("%v: %s %v %s", c.err, resp.Status, resp.Header, body)
		}
	}
	if n := strings.Count(l.String(), "a run failed"); n != 2 || !strings.Contains(l.String(), "error=secret") {
		t.Errorf("the log has %d failures:\n%s", n, &l)
	}
}

func TestPanicsCutOff(t *testing.T) {
	var l log
	server := served(t, &fake{}, Options{Logger: l.logger()})
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/agui/capabilities", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Principal", "broken")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(r); err == nil {
		t.Errorf("%s", resp.Status)
		_ = resp.Body.Close()
	}
	if !strings.Contains(l.String(), "panic=secret") {
		t.Errorf("the log says\n%s", &l)
	}
}

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
func TestSlowReaders(t *testing.T) {
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
func TestSlowBodies(t *testing.T) {
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

func TestMaxStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, &fake{}, Options{MaxStreams: 1})
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
