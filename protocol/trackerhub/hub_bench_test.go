package trackerhub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/store"
)

// benchServer, in the environment, makes this program a tracker: its value is the folder of
// the database. What it takes is then its own, and none of its clients'.
const benchServer = "HUTCH_BENCH_TRACKER"

// benchAgents is how many agents there are.
const benchAgents = 1000

// A taken is what the server's process has taken so far.
type taken struct {
	Heap, Stacks, Resident float64 // bytes
	Processor              time.Duration
}

// serveTracker is a tracker over a database in a file, until its input ends. It says its
// address.
func serveTracker(folder string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := store.Open(ctx, filepath.Join(folder, "hutch.db"), store.Options{})
	if err != nil {
		return err
	}
	b := board.New(db, board.Options{Debounce: time.Hour})
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	as := func(slug string) tracker.Service {
		return b.For(tracker.Caller{Slug: slug, Scopes: []string{
			tracker.TasksRead, tracker.MessagesRead, tracker.MessagesWrite, tracker.MembersRead, tracker.MembersSelf, tracker.Admin,
		}})
	}
	hub := trackerhub.New(func(_ *http.Request, token string) (tracker.Service, error) { return as(token), nil },
		trackerhub.Options{Strangers: benchAgents})
	mux := http.NewServeMux()
	mux.Handle("/ws", hub)
	answer := func(path string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			out, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(out) // who asks sees that it is cut
		})
	}
	answer("/taken", func(*http.Request) (any, error) { return takenNow() })
	answer("/member", func(r *http.Request) (any, error) {
		return b.Ensure(r.Context(), tracker.CreateMember{Slug: r.FormValue("slug")})
	})
	answer("/chat", func(r *http.Request) (any, error) {
		return as(r.FormValue("by")).CreateChat(r.Context(), tracker.CreateChat{Slug: "team"})
	})
	answer("/say", func(r *http.Request) (any, error) {
		return as(r.FormValue("by")).SendMessage(r.Context(), tracker.SendMessage{ChatID: "team", Content: r.FormValue("content")})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux}
	go func() { ended <- server.Serve(listener) }()
	fmt.Println(listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	return errors.Join(err, hub.Close(context.Background()), server.Close(), db.Close())
}

// takenNow looks after a collection, when what was freed has been given back.
func takenNow() (t taken, err error) {
	runtime.GC()
	debug.FreeOSMemory() // of what is pooled there are two generations
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Heap, t.Stacks = float64(m.HeapInuse), float64(m.StackInuse)
	memory, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return t, err
	}
	used, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return t, err
	}
	var all, resident float64 // pages
	if _, err := fmt.Sscan(string(memory), &all, &resident); err != nil {
		return t, err
	}
	t.Resident = resident * float64(os.Getpagesize())
	// Behind the name of the program, which may be anything, are a letter and ten numbers.
	fields := strings.Fields(string(used[strings.LastIndexByte(string(used), ')')+1:]))
	var user, system time.Duration // hundredths of a second
	if _, err := fmt.Sscan(strings.Join(fields[11:13], " "), &user, &system); err != nil {
		return t, err
	}
	t.Processor = (user + system) * 10 * time.Millisecond
	return t, nil
}

// A crowd is a tracker in a process of its own and agents that are connected to it from here.
type crowd struct {
	testing.TB
	address string
	heard   chan heard
	conns   []*websocket.Conn
}

// heard is when which message came.
type heard struct {
	content string
	at      time.Time
}

func newCrowd(b testing.TB) *crowd {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"="+b.TempDir())
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	must(b, err)
	output, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = input.Close() // it is how the server is ended
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	must(b, err)
	c := &crowd{TB: b, address: strings.TrimSpace(line), heard: make(chan heard, 2*benchAgents)}
	for n := range benchAgents {
		c.ask("/member?slug="+benchSlug(n), nil)
	}
	c.ask("/member?slug=speaker", nil)
	c.ask("/chat?by=speaker", nil)
	return c
}

func benchSlug(n int) string { return fmt.Sprint("agent-", n) }

func (c *crowd) ask(path string, out any) {
	c.Helper()
	r, err := http.Get("http://" + c.address + path)
	must(c.TB, err)
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		c.Fatalf("%s: %s: %s", path, r.Status, text)
	}
	if out == nil {
		_, err = io.Copy(io.Discard, r.Body)
	} else {
		err = json.NewDecoder(r.Body).Decode(out)
	}
	must(c.TB, err)
}

func (c *crowd) taken() (t taken) { c.ask("/taken", &t); return t }

// enter connects an agent, which acknowledges what it is sent.
func (c *crowd) enter(slug string) *websocket.Conn {
	c.Helper()
	dialer := websocket.Dialer{ReadBufferSize: 1024, WriteBufferSize: 1024}
	ws, r, err := dialer.DialContext(c.Context(), "ws://"+c.address+"/ws", nil)
	must(c.TB, err)
	_ = r.Body.Close()
	must(c.TB, ws.WriteJSON(tracker.Auth{Type: tracker.FrameAuth, Token: slug, Agent: tracker.AuthAgent{Slug: slug}}))
	var ok tracker.AuthOK
	must(c.TB, ws.ReadJSON(&ok))
	if ok.Type != tracker.FrameAuthOK {
		c.Fatalf("%s was not let in: %+v", slug, ok)
	}
	go func() {
		for {
			_, raw, err := ws.ReadMessage()
			at := time.Now()
			if err != nil {
				return
			}
			var f got
			if json.Unmarshal(raw, &f) != nil || f.Type != tracker.FrameEvent {
				continue
			}
			if f.Event == tracker.EventChatMessage {
				c.heard <- heard{f.Data.Content, at}
			}
			if ws.WriteJSON(tracker.Ack{Type: tracker.FrameAck, ID: f.ID}) != nil {
				return
			}
		}
	}()
	return ws
}

func (c *crowd) enterAll() {
	for n := range benchAgents {
		c.conns = append(c.conns, c.enter(benchSlug(n)))
	}
	c.Cleanup(func() {
		for _, ws := range c.conns {
			_ = ws.Close()
		}
	})
}

// say has somebody write to the chat, and returns how long it took until each agent had it.
func (c *crowd) say(content string) (took []time.Duration) {
	c.Helper()
	begin := time.Now()
	c.ask("/say?by=speaker&content="+content, nil)
	for len(took) < benchAgents {
		select {
		case h := <-c.heard:
			if h.content == content {
				took = append(took, h.at.Sub(begin))
			}
		case <-time.After(liveness):
			c.Fatalf("%d of %d agents were told", len(took), benchAgents)
		}
	}
	slices.Sort(took)
	return took
}

// BenchmarkIdleAgents is the memory of a tracker's process that a thousand agents take who
// are connected and whom nothing is told, beyond what it has before. Its operations mean
// nothing.
func BenchmarkIdleAgents(b *testing.B) {
	c := newCrowd(b)
	before := c.taken()
	c.enterAll()
	for b.Loop() {
		after := c.taken()
		b.ReportMetric((after.Heap+after.Stacks-before.Heap-before.Stacks)/benchAgents, "B/agent")
		b.ReportMetric((after.Resident-before.Resident)/benchAgents, "resident-B/agent")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFanOut has a message reach a thousand agents, each of whom acknowledges it: from
// the request to send it until an agent has it. The agents are in the process of the bench,
// on the same processors.
func BenchmarkFanOut(b *testing.B) {
	c := newCrowd(b)
	c.enterAll()
	var all []time.Duration
	before := c.taken()
	n := 0
	for b.Loop() {
		all = append(all, c.say(fmt.Sprint("m", n))...)
		n++
	}
	used := c.taken().Processor - before.Processor
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	b.ReportMetric(ms(all[len(all)/2]), "p50-ms")
	b.ReportMetric(ms(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(ms(used)/float64(n), "server-cpu-ms")
	b.ReportMetric(0, "ns/op")
}
