package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
)

// briefServer is hutch serve in this process with the agent of these measurements, over
// a store that is weighed, and with a tool in its folder.
func briefServer(b testing.TB) (*served, *weighedStore) {
	b.Helper()
	agents := briefAgents(b).Agents
	cfg, p := newTestConfig(b, func(c *Config) { c.Agents, c.Limits.Connections = agents, 4096 })
	var kept *weighedStore
	s := startChanged(b, cfg, p, quiet, func(a *App) {
		must(b, a.engine.Close())
		kept = &weighedStore{DB: a.db}
		var err error
		a.engine, err = openEngine(b.Context(), cfg, p, kept, a.waiting(), nil, quiet)
		must(b, err)
	})
	b.Cleanup(func() { s.halt(b) })
	<-s.app.ready
	s.drop(b, "hi.wasm", greeter("hi", "good day"))
	s.awaitModule(b, "hi.wasm")
	return s, kept
}

// post asks for a run over SSE and reads its stream to the end. It returns when the first
// event came, and when all of them had.
func (s *served) post(thread, run, said string) (first, all time.Duration, err error) {
	in, err := json.Marshal(map[string]any{"threadId": thread, "runId": run, "messages": []chat.Message{says("u"+run, said)}})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	resp, err := http.Post(s.url+"/agui", "application/json", bytes.NewReader(in))
	if err != nil {
		return 0, 0, err
	}
	text := bufio.NewReader(resp.Body)
	line, err := text.ReadString('\n')
	first = time.Since(began)
	rest, also := io.ReadAll(text)
	all = time.Since(began)
	err = errors.Join(err, also, resp.Body.Close())
	if err == nil && (!strings.HasPrefix(line, "data:") || !bytes.Contains(rest, []byte(event.TypeRunFinished))) {
		err = fmt.Errorf("status %d: %s%s", resp.StatusCode, line, rest)
	}
	return first, all, err
}

// times are those of one kind of turn.
type times []time.Duration

func (t times) at(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return t[(len(t)-1)*percent/100]
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// BenchmarkEngine takes turns in one assembled hutch, of a text and of a tool that is a
// module in a worker, in this process and over a connection: one after the other, so that
// all meet the same machine. What a turn waits for its commits is told apart. The SSE of a
// bare net/http server, the same frames with nothing behind them, is beside it.
func BenchmarkEngine(b *testing.B) {
	s, kept := briefServer(b)
	v, err := s.app.engine.visit(access.Anyone(), "", faceAGUI)
	must(b, err)
	bare := &served{url: bareTurns(b, s)}
	own, commits, firsts := map[string]times{}, times{}, times{}
	asked := map[string]int64{}
	measure := func(what string, turn func(thread, run string) (first, all time.Duration, err error), i int) {
		was, wait := kept.commits.Load(), kept.committing.Load()
		first, all, err := turn(fmt.Sprint(what, i/10), fmt.Sprint("r", i))
		must(b, err)
		waited := time.Duration(kept.committing.Load() - wait)
		own[what], asked[what] = append(own[what], all-waited), kept.commits.Load()-was
		if what == "sse" {
			firsts, commits = append(firsts, first), append(commits, waited)
		}
	}
	inProcess := func(said string) func(thread, run string) (first, all time.Duration, err error) {
		return func(thread, run string) (_, all time.Duration, err error) {
			began := time.Now()
			err = finishes(v, input(thread, run, says("u"+run, said)))
			return 0, time.Since(began), err
		}
	}
	over := func(s *served, said string) func(thread, run string) (first, all time.Duration, err error) {
		return func(thread, run string) (first, all time.Duration, err error) { return s.post(thread, run, said) }
	}
	for i := 0; b.Loop(); i++ {
		measure("text", inProcess("hello"), i)
		measure("sse", over(s, "hello"), i)
		measure("bare", over(bare, "hello"), i)
		measure("tool", inProcess("greet"), i)
		measure("sse-tool", over(s, "greet"), i)
	}
	for what, all := range own {
		b.ReportMetric(us(all.at(50)), what+"-p50-us")
	}
	b.ReportMetric(us(own["sse"].at(99)), "sse-p99-us")
	b.ReportMetric(us(commits.at(50)), "commits-p50-us")
	b.ReportMetric(us(firsts.at(50)), "first-p50-us")
	b.ReportMetric(us(firsts.at(99)), "first-p99-us")
	b.ReportMetric(float64(asked["text"]), "commits/text")
	b.ReportMetric(float64(asked["tool"]), "commits/tool")
	b.ReportMetric(0, "ns/op")
}

// bareTurns is a server of net/http alone that writes the frames of a text turn.
func bareTurns(b testing.TB, s *served) (url string) {
	b.Helper()
	in := `{"threadId":"frames","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`
	resp, err := http.Post(s.url+"/agui", "application/json", strings.NewReader(in))
	must(b, err)
	text, err := io.ReadAll(resp.Body)
	must(b, errors.Join(err, resp.Body.Close()))
	frames := bytes.SplitAfter(text, []byte("\n\n"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		for _, frame := range frames {
			if _, err := w.Write(frame); err != nil || c.Flush() != nil {
				return
			}
		}
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkLongThread takes turns, in which only a new message is sent, in threads that
// have had 9 and in one that has had about 10,000, one after the other. The ratio is that
// of the median turns: "whole" with their commits, "own" without. "cold" are turns of an
// engine that has nothing of the thread in memory.
func BenchmarkLongThread(b *testing.B) {
	b.Run("warm", func(b *testing.B) { longThread(b, false) })
	b.Run("cold", func(b *testing.B) { longThread(b, true) })
}

func longThread(b *testing.B, cold bool) {
	w := newWeighed(b)
	w.grow("long", 9_600) // of 20,000 messages the oldest would go
	took, own := map[string]times{}, map[string]times{}
	for i := 0; b.Loop(); i++ {
		short := fmt.Sprint("short", i)
		w.grow(short, 8)
		for kind, thread := range map[string]string{"short": short, "long": "long"} {
			w.turn(thread, fmt.Sprint("before", i), "hello")
			if cold {
				w.open(someTools{"hi"})
				w.turn("other", fmt.Sprint(kind, i), "hello")
			}
			wait := w.kept.committing.Load()
			all := w.turn(thread, fmt.Sprint("then", i), "hello")
			took[kind] = append(took[kind], all)
			own[kind] = append(own[kind], all-time.Duration(w.kept.committing.Load()-wait))
		}
	}
	b.ReportMetric(us(took["short"].at(50)), "turn10-us")
	b.ReportMetric(us(took["long"].at(50)), "turn10000-us")
	b.ReportMetric(us(own["short"].at(50)), "own10-us")
	b.ReportMetric(us(own["long"].at(50)), "own10000-us")
	b.ReportMetric(float64(took["long"].at(50))/float64(took["short"].at(50)), "whole-ratio")
	b.ReportMetric(float64(own["long"].at(50))/float64(own["short"].at(50)), "own-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdleStreams is the memory that a thousand streams take on which nothing
// happens, each of a thread of its own, and beside it that of as many of a server of
// net/http alone. What clients take is in both. Its operations mean nothing.
func BenchmarkIdleStreams(b *testing.B) {
	const streams = 1000
	s, kept := briefServer(b)
	for i := range streams {
		c := session.Change{Ref: session.Ref{Owner: access.Anyone().Principal, ID: fmt.Sprint("t", i)}, Agent: "brief", At: time.Now()}
		_, err := kept.DB.CommitThread(b.Context(), c)
		must(b, err)
	}
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	}))
	b.Cleanup(bare.Close)
	for b.Loop() {
		other, goroutines := idleStreams(b, bare.URL, streams, func(int) string { return "/" })
		own, ours := idleStreams(b, s.url, streams, func(i int) string { return fmt.Sprintf("/agui/threads/t%d/events", i) })
		b.ReportMetric(own, "B/stream")
		b.ReportMetric(other, "B/bare")
		b.ReportMetric(own-other, "B/more")
		b.ReportMetric(ours-goroutines, "goroutines/more")
	}
	b.ReportMetric(0, "ns/op")
}

// idleStreams opens streams and returns what memory and how many goroutines each takes.
func idleStreams(b testing.TB, url string, n int, path func(i int) string) (memory, goroutines float64) {
	b.Helper()
	addr := strings.TrimPrefix(url, "http://")
	before, were := inUse(), runtime.NumGoroutine()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		must(b, err)
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path(i), addr)
		must(b, err)
		for r, line := bufio.NewReaderSize(conn, 64), ""; line != "Content-Type: text/event-stream\r\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		conns[i] = conn
	}
	memory = (inUse() - before) / float64(n)
	goroutines = float64(runtime.NumGoroutine()-were) / float64(n)
	for _, c := range conns {
		must(b, c.Close())
	}
	for deadline := time.Now().Add(patientFor); runtime.NumGoroutine() > were+n/100 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return memory, goroutines
}

// inUse is the memory of this process that is not free, in bytes.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // of what is pooled there are two generations
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// BenchmarkRunsAtOnce asks for a hundred runs at once over SSE, each in a thread of its
// own: how long it takes until all have ended; and, of a hundred whose model does not
// answer, what memory and how many goroutines each takes in this process, the client's
// among them. As many run as the limits say, and the others wait.
func BenchmarkRunsAtOnce(b *testing.B) {
	const runs = 100
	s, kept := briefServer(b)
	var took times
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		var all sync.WaitGroup
		failed := make(chan error, runs)
		for n := range runs {
			all.Go(func() {
				if _, _, err := s.post(fmt.Sprint("t", n), fmt.Sprint("r", i), "hello"); err != nil {
					failed <- err
				}
			})
		}
		all.Wait()
		took = append(took, time.Since(began))
		close(failed)
		must(b, <-failed)
	}
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(100 * time.Millisecond) // connections are closed elsewhere
	before, were, commits := inUse(), runtime.NumGoroutine(), kept.commits.Load()
	for n := range runs {
		go func() {
			_, _, _ = s.post(fmt.Sprint("w", n), "waits", "wait") // until the server ends
		}()
	}
	for deadline := time.Now().Add(patientFor); kept.commits.Load() < commits+runs; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d runs are known", kept.commits.Load()-commits, runs)
		}
	}
	b.ReportMetric((inUse()-before)/runs, "B/run")
	b.ReportMetric(float64(runtime.NumGoroutine()-were)/runs, "goroutines/run")
	b.ReportMetric(us(took.at(50))/1e3, "100runs-p50-ms")
	b.ReportMetric(0, "ns/op")
}
