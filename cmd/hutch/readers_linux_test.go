package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// readers is how many clients come at once.
const readers = 200

// readersModel says much or little, once it may.
type readersModel struct {
	mu    sync.Mutex
	gate  chan struct{}
	times map[string]int // how often it has said much, by whom it was told to
}

var muchTo = regexp.MustCompile(`say much (\d+)`)

// saysMuch counts that somebody is told much.
func (m *readersModel) saysMuch(body string) int {
	who := muchTo.FindString(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[who]++
	return m.times[who]
}

// shut has the model wait for open.
func (m *readersModel) shut() (open func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gate := make(chan struct{})
	m.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// answer says a little, or for somebody who asks for much four times 3 MiB, with calls of a
// tool between them.
func (m *readersModel) answer(r llmtest.Request) llmtest.Answer {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		<-gate
	}
	body := string(r.Body)
	if !strings.Contains(body, "say much") {
		return llmtest.Stream(llmtest.Say("one, ", "two"), llmtest.Finish("stop"), llmtest.Done())
	}
	var pieces []string
	for range 48 {
		pieces = append(pieces, strings.Repeat("much ", 64<<10/5))
	}
	said := llmtest.Say(pieces...)
	n := m.saysMuch(body)
	if n == 4 {
		return llmtest.Stream(said, llmtest.Finish("stop"), llmtest.Done())
	}
	return llmtest.Stream(said, llmtest.Call(0, "", "hi", fmt.Sprintf(`{"n":%d}`, n)), llmtest.Finish("tool_calls"), llmtest.Done())
}

// rawReader is a client with so small a window that it is soon full.
func rawReader(t *testing.T, url, body string) *net.TCPConn {
	t.Helper()
	d := net.Dialer{Timeout: patientFor, Control: smallWindow}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	must(t, err)
	_, err = fmt.Fprintf(conn, "POST /agui HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	must(t, err)
	return conn.(*net.TCPConn)
}

// reset ends a connection with a reset, as a machine does that has lost it.
func reset(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	must(t, conn.SetLinger(0))
	must(t, conn.Close())
}

// gauge is a number of the page /metrics.
func (s *realServe) gauge(name string) float64 {
	s.t.Helper()
	resp, err := oneShot().Get(s.url + "/metrics")
	must(s.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read only
	line := regexp.MustCompile(`^` + name + ` (\S+)$`)
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			must(s.t, err)
			return n
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// finishes holds that each of these runs ends well, whoever reads it.
func (s *realServe) finishes(what string, turns []*turn) {
	s.t.Helper()
	for _, u := range turns {
		deadline := time.Now().Add(4 * patientFor)
		for {
			ctx, stop := context.WithDeadline(s.t.Context(), deadline)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/agui/threads/"+u.thread+"/events?protocolVersion=1.0&runId="+u.run, nil)
			must(s.t, err)
			found := newTurn(u.thread, u.run, "")
			found.read(r, func(string) {})
			stop()
			if found.last == "RUN_FINISHED" {
				break
			}
			if !found.refused && found.last != "" || time.Now().After(deadline) { // one that waits is not kept at once
				s.t.Fatalf("%s: run %s ended with %q %s", what, u.run, found.last, found.code)
			}
		}
	}
}

// waits waits until a run waits or runs: what is reset before it was read is not there.
func (s *realServe) waits(u *turn) {
	s.t.Helper()
	for end := time.Now().Add(patientFor); time.Now().Before(end); time.Sleep(time.Millisecond) {
		resp, err := oneShot().Get(s.url + "/agui/threads/" + u.thread)
		must(s.t, err)
		must(s.t, resp.Body.Close())
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("run %s is not there", u.run)
}

// comesBack waits until a gauge is no more than most.
func (s *realServe) comesBack(name string, most float64) {
	s.t.Helper()
	now := 0.0
	for end := time.Now().Add(2 * patientFor); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if now = s.gauge(name); now <= most {
			return
		}
	}
	s.t.Errorf("%s is %v, and was to come back to %v", name, now, most)
}

func crowdOf(name, text string, n int) (turns []*turn) {
	for i := range n {
		turns = append(turns, newTurn(fmt.Sprint(name, i), name, fmt.Sprint(text, " ", i)))
	}
	return turns
}

// readersServe is a serve whose model is m.
func readersServe(t *testing.T, m *readersModel) *realServe {
	model := llmtest.Choose(t, m.answer)
	s := newRealServe(t, map[string]string{
		"hutch.yaml":  "limits: {connections: 512}\nagents:\n  a: {model: {kind: openai, base_url: " + model.URL + ", name: m}}\n", // a share of them is for streams
		"policy.yaml": "version: 1\n",
	})
	s.env = []string{"GOGC=25"} // so that what is let go is soon not counted
	must(t, os.WriteFile(filepath.Join(s.dir, "tools", "hi.wasm"), greeter("hi", "good day"), 0o600))
	s.start()
	return s
}

const heapGauge, routinesGauge = "go_memstats_heap_alloc_bytes", "go_goroutines"

// H10, E3-9: clients that read nothing, with their windows full, and clients whose
// connections are reset, 200 at once: their runs go on to their ends, others are served
// meanwhile, and what they took comes back.
func TestH10_ReadersThatStopOrVanish(t *testing.T) {
	m := &readersModel{times: map[string]int{}}
	s := readersServe(t, m)
	first := crowdOf("first", "say little", 1)
	first[0].send(t.Context(), s.url, func(string) {})
	s.finishes("at first", first)
	heap, routines := s.gauge(heapGauge), s.gauge(routinesGauge)

	open := m.shut()
	t.Cleanup(open)
	vanish := crowdOf("vanish", "say little", readers)
	for _, u := range vanish {
		conn := rawReader(t, s.url, u.body())
		s.waits(u)
		reset(t, conn)
	}
	open()
	s.finishes("a client that vanished", vanish)
	s.comesBack(routinesGauge, routines+8)

	open = m.shut()
	t.Cleanup(open)
	stuck, much := crowdOf("stuck", "say little", readers), crowdOf("much", "say much", 6)
	var conns []*net.TCPConn
	for _, u := range append(stuck, much...) {
		conns = append(conns, rawReader(t, s.url, u.body()))
	}
	open()
	s.finishes("a client that does not read", append(stuck, much...))
	t.Logf("goroutines %v, with %d that do not read %v; heap %.1f MiB, then %.1f", routines, len(conns), s.gauge(routinesGauge), heap/(1<<20), s.gauge(heapGauge)/(1<<20))
	if now := s.gauge(heapGauge); now > heap+(160<<20) {
		t.Errorf("those who do not read hold %.1f MiB", (now-heap)/(1<<20))
	}
	for _, conn := range conns {
		reset(t, conn)
	}
	s.comesBack(routinesGauge, routines+8)
	s.comesBack(heapGauge, heap+(64<<20))
}

// smallWindow bounds what the kernel takes for a reader.
func smallWindow(_, _ string, c syscall.RawConn) (err error) {
	return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }), err)
}
