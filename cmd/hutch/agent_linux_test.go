package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// A farTracker is a tracker of somebody else: its own process, with tokens, which agents
// reach over a network that can be broken.
type farTracker struct {
	t *testing.T
	// program is hutch as it is shipped.
	program, dir string
	addr         string // where it listens
	net          *cable
	// Client is a person's.
	*trackerclient.Client
	tokens map[string]string // by member
}

// newFarTracker starts a tracker with a project and these agents.
func newFarTracker(t *testing.T, agents ...string) *farTracker {
	t.Helper()
	e := &farTracker{t: t, program: soakProgram(t), dir: t.TempDir(), tokens: map[string]string{}}
	for _, name := range append([]string{"ann"}, agents...) {
		args := []string{"tokens", "create", name}
		for _, scope := range access.Scopes() {
			if name == "ann" || slices.Contains(agentScopes(), scope) {
				args = append(args, "--scope", scope)
			}
		}
		out, err := prepared(t, e.dir, args...).Output()
		must(t, err)
		e.tokens[name] = strings.TrimSpace(string(out))
	}
	p := start(t, e.dir, "tracker", "--addr", "127.0.0.1:0")
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	url := p.says(t, `^hutch: serving a tracker at (http://[0-9.:]+),`)
	e.addr = strings.TrimPrefix(url, "http://")
	go func() { _, _ = io.Copy(io.Discard, p.errors) }() // until it ends
	e.net = newCable(t, e.addr)
	var err error
	e.Client, err = trackerclient.New(url+trackerPath, e.tokens["ann"], trackerclient.Options{})
	must(t, err)
	t.Cleanup(e.Close)
	_, err = e.CreateProject(t.Context(), tracker.CreateProject{Slug: "test", Key: "TE"})
	must(t, err)
	for _, slug := range agents {
		_, err = e.CreateMember(t.Context(), tracker.CreateMember{Slug: slug, Kind: tracker.Agent})
		must(t, err)
	}
	return e
}

// gives makes a task for a member.
func (e *farTracker) gives(title, slug string) tracker.TaskOut {
	e.t.Helper()
	task, err := e.CreateTask(e.t.Context(), tracker.CreateTask{Project: "test", Title: title, AssigneeSlug: slug})
	must(e.t, err)
	return task
}

// awaits waits until a task has a status.
func (e *farTracker) awaits(task string, status tracker.Status) {
	e.t.Helper()
	var last tracker.TaskOut
	for end := time.Now().Add(compilesFor); last.Status != status; time.Sleep(50 * time.Millisecond) {
		var err error
		if last, err = e.GetTask(e.t.Context(), task); err != nil || time.Now().After(end) {
			e.t.Fatalf("%+v is not %s: %v", last, status, err)
		}
	}
}

// A hired one is a hutch agent in a folder that can be started again.
type hired struct {
	t       *testing.T
	program string
	dir     string
	args    []string
	p       *process
	over    chan struct{} // closed when its output has ended

	mu    sync.Mutex
	lines []trailLine
	said  bytes.Buffer // what is no such line
}

// hire makes an agent.json, and a folder for an agent that plays a script.
func (e *farTracker) hire(slug, script string) *hired {
	e.t.Helper()
	h := &hired{t: e.t, program: e.program, dir: e.t.TempDir(), args: []string{"agent", "player", "--config", "hutch.yaml", "--file", "agent.json", "--json"}}
	file, err := json.Marshal(map[string]any{
		"slug": slug, "name": "A player", "token": e.tokens[slug], "tracker_url": "http://" + e.net.addr + trackerPath,
		"capabilities": []string{"coding"}, "task_listen": "assigned", "chat_listen": "mentions", "model": "of another program",
	})
	must(e.t, err)
	for name, body := range map[string]string{
		"agent.json": string(file), "script.yaml": script,
		"hutch.yaml": "agents:\n  player: {default: true, model: {kind: script, script: script.yaml}, tracker: {parallel: 1}}\n",
	} {
		must(e.t, os.WriteFile(filepath.Join(h.dir, name), []byte(body), 0o600))
	}
	must(e.t, os.Mkdir(filepath.Join(h.dir, "tools"), 0o700))
	state := filepath.Join(h.dir, "state")
	warm.lend(e.t, state)
	e.t.Cleanup(func() { warm.keep(state) })
	return h
}

// starts starts it.
func (h *hired) starts() {
	h.t.Helper()
	h.p = &process{Cmd: exec.Command(h.program, h.args...)}
	h.p.Dir, h.p.Env = h.dir, []string{"HOME=" + h.dir, "HUTCH_STATE=" + filepath.Join(h.dir, "state")}
	out, err := h.p.StdoutPipe()
	must(h.t, err)
	h.p.Stderr = &safeBuffer{mu: &h.mu, b: &h.said}
	must(h.t, h.p.Start())
	p, over := h.p, make(chan struct{})
	h.over = over
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			h.take(lines.Bytes())
		}
	}()
	h.t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		<-over
		_ = p.Wait()
		if h.t.Failed() {
			h.t.Logf("the agent said:\n%s\n%v", h.said.String(), h.lines)
		}
	})
}

func (h *hired) take(line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var l trailLine
	if json.Unmarshal(line, &l) == nil {
		h.lines = append(h.lines, l)
		return
	}
	h.said.Write(append(line, '\n'))
}

// safeBuffer is written by a process while others read it.
type safeBuffer struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// shows waits until so many lines are about that, and returns them.
func (h *hired) shows(what string, text string, n int) (found []trailLine) {
	h.t.Helper()
	for end := time.Now().Add(compilesFor); ; time.Sleep(20 * time.Millisecond) {
		if found = h.shown(what, text); len(found) >= n {
			return found
		}
		if time.Now().After(end) {
			h.t.Fatalf("%d lines about %s %s, want %d", len(found), what, text, n)
		}
	}
}

// shown are the lines about something.
func (h *hired) shown(what, text string) (found []trailLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if l.What == what && strings.HasPrefix(l.Text, text) {
			found = append(found, l)
		}
	}
	return found
}

// dies ends it as kill -9 does.
func (h *hired) dies() {
	_ = h.p.Process.Kill()
	<-h.over
	_ = h.p.Wait() // it says that it was killed
}

// ends waits until it has ended by itself, and returns what it said to people.
func (h *hired) ends() (string, error) {
	h.t.Helper()
	select {
	case <-h.over:
	case <-time.After(compilesFor):
		h.t.Fatal("it does not end")
	}
	err := h.p.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.String(), err
}

// A cable passes connections on to an address, and can be cut.
type cable struct {
	addr, to string
	mu       sync.Mutex
	cutOff   bool // whatever comes is refused
	mute     bool // nothing that an agent says on its socket arrives
	conns    map[net.Conn]bool
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &cable{addr: l.Addr().String(), to: to, conns: map[net.Conn]bool{}}
	done := launch(func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			go w.pass(c)
		}
	})
	t.Cleanup(func() {
		must(t, l.Close())
		must(t, <-done)
		w.cut(true)
	})
	return w
}

// pass passes one connection on.
func (w *cable) pass(in net.Conn) {
	defer in.Close() //nolint:errcheck // it may be closed already
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer out.Close() //nolint:errcheck // likewise
	if !w.add(in, out) {
		return
	}
	go func() {
		_, _ = io.Copy(in, out) // until one of them is closed
		_ = in.Close()
	}()
	buf := make([]byte, 32<<10)
	socket := false
	for {
		n, err := in.Read(buf)
		socket = socket || bytes.HasPrefix(buf[:n], []byte("GET "+socketPath+" "))
		if !w.drops(socket) {
			if _, err := out.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *cable) add(all ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range all {
		w.conns[c] = true
	}
	return !w.cutOff
}

func (w *cable) drops(socket bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return socket && w.mute
}

// cut closes all connections, and refuses new ones or not.
func (w *cable) cut(off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutOff = off
	for c := range w.conns {
		_ = c.Close() // it may be closed already
	}
	clear(w.conns)
}

// silence keeps from the tracker what agents say on their sockets, or not.
func (w *cable) silence(mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = mute
}

// E0-1, E0-4: an agent whose acknowledgement did not arrive, and that is killed, is sent the
// event again, and has no second run for it.
func TestE0_04_KilledBetweenEventAndAck(t *testing.T) {
	e := newFarTracker(t, "coder")
	h := e.hire("coder", quickScript)
	h.starts()
	h.shows(trailConnected, "", 1)
	e.net.silence(true)
	task := e.gives("one", "coder")
	h.shows(trailTask, "done", 1)
	h.dies()
	if got := h.shown(trailTask, "running"); len(got) != 1 {
		t.Errorf("runs before: %v", got)
	}
	e.awaits(task.ID, tracker.InReview)
	// It is given back, so that a second run would be seen, and work.
	e.net.silence(false)
	h.starts()
	h.shows(trailConnected, "", 2)
	last := e.gives("two", "coder")
	h.shows(trailTask, "done", 2) // what came before it has been taken by then
	if got := h.shown(trailTask, "running"); len(got) != 2 || got[1].Task != last.Key {
		t.Errorf("runs: %v", got)
	}
}

// E0-3: what happens while the network is broken is done after it, each once and in order.
func TestE0_03_TasksGivenWhileTheSocketIsCut(t *testing.T) {
	e := newFarTracker(t, "coder")
	h := e.hire("coder", quickScript)
	h.starts()
	h.shows(trailConnected, "", 1)
	e.net.cut(true)
	h.shows(trailLost, "", 1)
	var want []string
	for n := range 5 {
		want = append(want, e.gives(fmt.Sprint("task ", n), "coder").Key)
	}
	time.Sleep(10 * time.Second) // for which the network is broken
	e.net.cut(false)
	h.shows(trailTask, "done", len(want))
	var ran []string
	for _, l := range h.shown(trailTask, "running") {
		ran = append(ran, l.Task)
	}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

// A tracker that is not there when an agent starts is waited for; and an agent ends at once
// when it is told to.
func TestAgentsWaitForTheirTracker(t *testing.T) {
	e := newFarTracker(t, "coder")
	h := e.hire("coder", quickScript)
	e.net.cut(true)
	task := e.gives("one", "coder")
	h.starts()
	h.shows(trailLost, "", 2)
	e.net.cut(false)
	h.shows(trailTask, "done", 1)
	e.awaits(task.ID, tracker.InReview)
	must(t, h.p.Process.Signal(syscall.SIGINT))
	said, err := h.ends()
	if err != nil || !strings.Contains(said, `hutch: warning: agent file "agent.json": "model" means nothing to hutch`) {
		t.Errorf("%v, said %s", err, said)
	}
}

// An agent that its tracker does not want says so, with what to do, and ends.
func TestAgentsThatAreNotLetIn(t *testing.T) {
	e := newFarTracker(t, "coder", "tester")
	first, wrong := e.hire("coder", quickScript), e.hire("coder", quickScript)
	e.tokens["tester"], e.tokens["coder"] = e.tokens["coder"], e.tokens["tester"]
	other := e.hire("coder", quickScript) // with the token of another member
	body, err := os.ReadFile(filepath.Join(wrong.dir, "agent.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(wrong.dir, "agent.json"), bytes.ReplaceAll(body, []byte("hutch_"), []byte("hutsh_")), 0o600))
	for _, h := range []*hired{wrong, other} {
		h.starts()
		said, err := h.ends()
		if err == nil || !strings.Contains(said, "hutch: error: coder: the tracker does not let this agent in") || !strings.Contains(said, "hutch: hint: the token has to be that of the member coder: whoever runs the tracker makes one with \"hutch tracker token create coder\"\n") {
			t.Errorf("%v, said %s", err, said)
		}
	}
	first.starts()
	first.shows(trailConnected, "", 1)
	second := e.hire("tester", quickScript)
	second.args = append(second.args, "--state", "other")
	body, err = os.ReadFile(filepath.Join(first.dir, "agent.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(second.dir, "agent.json"), body, 0o600))
	second.starts()
	second.shows(trailConnected, "", 1)
	said, err := first.ends()
	if err == nil || !strings.Contains(said, "hutch: error: coder: another connection of this agent took its place") || !strings.Contains(said, "hutch: hint: end the other one") {
		t.Errorf("%v, said %s", err, said)
	}
	task := e.gives("one", "coder")
	e.awaits(task.ID, tracker.InReview)
}

// The agents of a serve work with a tracker elsewhere too, each as its own member, and so do
// their tools.
func TestAgentsOfAServeElsewhere(t *testing.T) {
	e := newFarTracker(t, "coder", "tester")
	files := quickTeam()
	files["hutch.yaml"] = "tracker: {url: \"http://" + e.net.addr + trackerPath + "\"}\nagents:\n" +
		"  coder: {default: true, model: {kind: script, script: quick.yaml}, tracker: {token_file: coder-token}}\n" +
		"  tester: {model: {kind: script, script: quick.yaml}, tracker: {token_file: tester-token}}\n"
	files["coder-token"], files["tester-token"], files["policy.yaml"] = e.tokens["coder"]+"\n", e.tokens["tester"]+"\n", "version: 1\n"
	s := newRealServe(t, files)
	state := filepath.Join(s.dir, "state")
	warm.lend(t, state)
	t.Cleanup(func() { warm.keep(state) })
	s.start()
	for _, slug := range []string{"coder", "tester"} {
		task := e.gives("for "+slug, slug)
		e.awaits(task.ID, tracker.InReview)
		done, err := e.TaskActivity(t.Context(), task.ID, tracker.Paging{})
		must(t, err)
		for _, a := range done.Items {
			if a.Action != "created" && a.Actor.Slug != slug {
				t.Errorf("%s of %s was done by %s", a.Action, task.Key, a.Actor.Slug)
			}
		}
	}
}
