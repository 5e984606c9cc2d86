package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// soaked is a server as a process, seen from outside.
type soaked struct {
	cmd          *exec.Cmd
	dir, program string
	tools, url   string
	policy       *soakPolicy
	log          *soakLog
	// connections are everybody's to the server.
	connections http.Transport
	// alone is held by one act that must not have others beside it, and shared by
	// the rest.
	alone sync.RWMutex

	// called counts good calls.
	called atomic.Int64
	// randomReady counts random modules that became tools and were called.
	randomReady atomic.Int64

	mu       sync.Mutex
	everSeen map[int]string  // workers by process id, and when each started
	kept     map[string]bool // keys that the server said it keeps
}

func upper(s string) string { return strings.ToUpper(s) }

// reading is what a leak would add to.
type reading struct {
	descriptors, routines, workers int
}

func (s *soaked) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), name)
}

func (s *soaked) measure(t *testing.T) reading {
	t.Helper()
	open, err := os.ReadDir(s.proc("fd"))
	must(t, err)
	return reading{descriptors: len(open), routines: s.metric(t, "go_goroutines"), workers: len(s.workers(t))}
}

var metricLine = regexp.MustCompile(`(?m)^(\w+) (\d+)$`)

func (s *soaked) metric(t *testing.T, name string) int {
	t.Helper()
	text := s.page(t, "/metrics")
	for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
		if m[1] == name {
			n, err := strconv.Atoi(m[2])
			must(t, err)
			return n
		}
	}
	t.Fatalf("no metric %s in\n%s", name, text)
	return 0
}

// resident is the server's resident memory, without its workers'.
func (s *soaked) resident(t *testing.T) int64 {
	text, err := os.ReadFile(s.proc("statm"))
	if err != nil {
		t.Error(err)
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Error(err)
	}
	s.workers(t) // so that all that live for a moment are noted
	return pages * int64(os.Getpagesize())
}

// worker is a child of the server.
type soakWorker struct {
	pid   int
	state string // Z: dead, and nobody asked how
	ticks int    // of processor time
	began string // with pid, who it is
}

// workers are the server's children.
func (s *soaked) workers(t *testing.T) (all []soakWorker) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Error(err)
	}
	for _, path := range stats {
		if w, parent := readStat(path); parent == s.cmd.Process.Pid {
			all = append(all, w)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range all {
		s.everSeen[w.pid] = w.began
	}
	return all
}

// readStat reads a process's state; one that is gone has no parent.
func readStat(path string) (w soakWorker, parent int) {
	text, err := os.ReadFile(path)
	at := strings.LastIndexByte(string(text), ')')
	if err != nil || at < 0 {
		return w, 0
	}
	fields := strings.Fields(string(text[at+1:]))
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n } // the kernel writes numbers
	w = soakWorker{state: fields[0], ticks: number(11) + number(12), began: fields[19]}
	w.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
	return w, number(1)
}

// settles waits until what was there for hostile files is gone, and holds that
// all of it is: a worker for each good module may stay.
func (s *soaked) settles(t *testing.T, before reading, modules int) {
	t.Helper()
	// A connection may come and go while this looks.
	most := reading{descriptors: before.descriptors + 2, routines: before.routines + 6, workers: modules}
	s.connections.CloseIdleConnections()
	var now reading
	tick := time.Tick(100 * time.Millisecond)
	// A worker may stay for a minute when it is idle.
	for deadline := time.Now().Add(3 * patientFor); time.Now().Before(deadline); <-tick {
		now = s.measure(t)
		if now.descriptors <= most.descriptors && now.routines <= most.routines && now.workers <= most.workers {
			t.Logf("left: %+v, at first %+v", now, before)
			return
		}
	}
	t.Errorf("left: %+v, at most %+v; at first %+v", now, most, before)
}

// endsCleanly ends the server as a service manager does.
func (s *soaked) endsCleanly(t *testing.T) {
	t.Helper()
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() {
		<-s.log.over
		ended <- s.cmd.Wait()
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patientFor):
		t.Error("still there after SIGTERM")
	}
	for pid, began := range s.everSeen {
		w, _ := readStat(fmt.Sprintf("/proc/%d/stat", pid))
		// One that is dead and waits for the init of this machine is no longer ours;
		// those that the server itself left waiting were counted while it lived.
		if w.began == began && w.state != "Z" {
			t.Errorf("worker %d is still there: %+v", pid, w)
		}
	}
}

// said what the server logs.
type soakLog struct {
	over chan struct{} // closed at its end
	url  chan string

	mu       sync.Mutex
	verdicts map[string]string   // the last one of each file
	ended    map[string][]string // how the workers of each file ended
	errors   []string
	policies int // that were none
	tail     []string
	changed  chan struct{} // closed, and replaced, when a verdict comes
}

func newSoakLog() *soakLog {
	return &soakLog{over: make(chan struct{}), url: make(chan string, 1), verdicts: map[string]string{}, ended: map[string][]string{}, changed: make(chan struct{})}
}

var (
	servingLine = regexp.MustCompile(`^hutch: serving (http://[0-9.:]+)/mcp$`)
	logPair     = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S*)`)
)

func (l *soakLog) read(from io.Reader) {
	defer close(l.over)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var url string
	for lines.Scan() {
		if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
		if strings.HasPrefix(lines.Text(), "hutch: modules: ") {
			l.url <- url
		}
		l.note(lines.Text())
	}
}

func (l *soakLog) note(line string) {
	said := map[string]string{}
	for _, m := range logPair.FindAllStringSubmatch(line, -1) {
		value := m[2]
		if plain, err := strconv.Unquote(value); err == nil {
			value = plain
		}
		if _, known := said[m[1]]; !known {
			said[m[1]] = value
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail[max(0, len(l.tail)-50):], line)
	switch {
	case slices.Contains([]string{"module rejected", "module held", "module not replaced"}, said["msg"]):
		l.verdicts[said["module"]] = said["status"] + ": " + said["reason"]
	case said["msg"] == "module added", said["msg"] == "module replaced":
		if said["status"] == "held" { // why says a line of its own, before or after
			return
		}
		l.verdicts[said["module"]] = said["status"]
	case said["msg"] == "worker ended":
		l.ended[said["module"]] = append(l.ended[said["module"]], said["reason"])
	case said["msg"] == "the policy stays as it was, for the file is wrong":
		l.policies++
	case said["level"] == "ERROR":
		l.errors = append(l.errors, line)
		return
	default:
		return
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// ready waits until the server has looked at its folders.
func (l *soakLog) ready(t *testing.T) string {
	t.Helper()
	select {
	case url := <-l.url:
		return url
	case <-l.over:
		t.Fatalf("the server does not start:\n%s", l.last())
		return ""
	}
}

// ends waits until a worker of the file ended in such a way, and returns how all
// did that did not end well.
func (l *soakLog) ends(name, how string) []string {
	late := time.After(4 * patientFor)
	for {
		l.mu.Lock()
		got, changed := slices.Clone(l.ended[name]), l.changed
		l.mu.Unlock()
		if slices.Contains(got, how) {
			return got
		}
		select {
		case <-changed:
		case <-late:
			return got
		}
	}
}

// policiesKept is how often the server said that a policy file is none.
func (l *soakLog) policiesKept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policies
}

// keepsPolicy waits until it has said so that often.
func (l *soakLog) keepsPolicy(times int) bool {
	late := time.After(4 * patientFor)
	for {
		l.mu.Lock()
		got, changed := l.policies, l.changed
		l.mu.Unlock()
		if got >= times {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

// last is what the server said last.
func (l *soakLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.tail, "\n")
}

// verdict waits until a file's verdict fits one of the patterns.
func (l *soakLog) verdict(name string, patterns ...string) (string, error) {
	late := time.After(4 * patientFor)
	for {
		l.mu.Lock()
		got, changed := l.verdicts[name], l.changed
		l.mu.Unlock()
		for _, p := range patterns {
			if got != "" && fits(p, got) {
				return got, nil
			}
		}
		select {
		case <-changed:
		case <-late:
			return got, fmt.Errorf("%s: %q, want %q", name, got, patterns)
		}
	}
}

// saidNothingWrong holds that the server logged no error, but that a module was
// quarantined.
func (s *soaked) saidNothingWrong(t *testing.T) {
	t.Helper()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, line := range s.log.errors {
		if !strings.Contains(line, `msg="module quarantined"`) {
			t.Errorf("logged: %s", line)
		}
	}
}

func (s *soaked) connect(t *testing.T) *sdk.ClientSession {
	session, err := connectBy(t.Context(), &s.connections, s.url, func() {})
	if err != nil {
		t.Errorf("connect: %v", err)
	}
	return session
}

func (s *soaked) page(t *testing.T, path string) string {
	t.Helper()
	r, err := http.Get(s.url + path)
	must(t, err)
	text, err := io.ReadAll(r.Body)
	must(t, errors.Join(err, r.Body.Close()))
	return string(text)
}
