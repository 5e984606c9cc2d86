package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// A realServe is a serve as a user has it, which can be started again on what it left.
type realServe struct {
	t       *testing.T
	dir     string
	program string
	env     []string
	cmd     *exec.Cmd
	log     *soakLog
	url     string
}

// newRealServe has a folder with these files. It ends with the test.
func newRealServe(t *testing.T, files map[string]string) *realServe {
	t.Helper()
	s := &realServe{t: t, dir: t.TempDir(), program: soakProgram(t)}
	must(t, os.Mkdir(filepath.Join(s.dir, "tools"), 0o700))
	for name, body := range files {
		must(t, os.WriteFile(filepath.Join(s.dir, name), []byte(body), 0o600))
	}
	t.Cleanup(func() {
		if s.cmd != nil && s.cmd.ProcessState == nil {
			s.kill()
		}
		if t.Failed() && s.log != nil {
			t.Logf("the last the server said:\n%s", s.log.last())
		}
	})
	return s
}

// start starts serve on the state that is there.
func (s *realServe) start() {
	s.t.Helper()
	s.log = newSoakLog()
	s.cmd = exec.Command(s.program, "serve", "--addr", "127.0.0.1:0", "--config", "hutch.yaml", "--policy", "policy.yaml", "--state", "state", "--tools", "tools")
	s.cmd.Dir, s.cmd.Env = s.dir, append([]string{"HOME=" + s.dir}, s.env...)
	out, err := s.cmd.StderrPipe()
	must(s.t, err)
	must(s.t, s.cmd.Start())
	go s.log.read(out)
	s.url = s.log.ready(s.t)
}

// kill ends serve as kill -9 does.
func (s *realServe) kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself, which its state says
	<-s.log.over
	_ = s.cmd.Wait() // likewise
}

// victim is a serve that is killed, with the model that its agent asks, the tools of
// that agent and what they did.
type victim struct {
	*realServe
	model *llmtest.Server
	tools *httptest.Server
	// database is where what lasts is kept, "" for a file.
	database string

	calls   atomic.Int64  // that the model has asked for
	reached chan struct{} // has one for each thing that got where it is to be killed

	mu    sync.Mutex
	gate  chan struct{}  // closed once nothing is held any more
	done  map[string]int // how often each call got through to the tools' server
	holds string         // where things are held: stream, tool, result; or nothing
}

// killedThreads are used at once, each by a client of its own.
const killedThreads = 4

// counter is a module whose tools count what they do: mark and prove with values that they
// keep, hold and look at a server. prove needs a person's yes, and look changes nothing.
func counter() []byte {
	spec := func(name string, annotations *tool.Annotations) tool.Spec {
		s := dialecttest.Spec(name)
		s.Annotations = annotations
		return s
	}
	reads := true
	return dialecttest.Module{
		Tools: []tool.Spec{spec("look", &tool.Annotations{ReadOnlyHint: &reads}), spec("get", &tool.Annotations{ReadOnlyHint: &reads}), spec("hold", nil), spec("mark", nil), spec("prove", nil)},
		Requests: tool.Requests{
			"kv":   json.RawMessage(`[{"max":"64MiB","reason":"keeps what was done"}]`),
			"http": json.RawMessage(`[{"reason":"tells a server what was done"}]`),
		},
		Do: []dialecttest.Step{
			dialecttest.Ask("look", abi.OpHTTP), dialecttest.Ask("hold", abi.OpHTTP), dialecttest.Ask("get", abi.OpKVGet),
			dialecttest.Ask("mark", abi.OpKVSet), dialecttest.Ask("prove", abi.OpKVSet),
		},
	}.Bytes()
}

// newVictim keeps what lasts in a database of PostgreSQL, or, if that is "", in a file.
func newVictim(t *testing.T, database string) *victim {
	t.Helper()
	v := &victim{database: database, reached: make(chan struct{}, 1<<10), gate: make(chan struct{}), done: map[string]int{}}
	v.model = llmtest.Choose(t, v.answer)
	v.tools = httptest.NewServer(http.HandlerFunc(v.serveTool))
	t.Cleanup(v.tools.Close)
	t.Cleanup(v.release)
	module := counter()
	v.realServe = newRealServe(t, map[string]string{
		"hutch.yaml": "agents:\n  a: {model: {kind: openai, base_url: " + v.model.URL + ", name: m}}\n",
		"policy.yaml": fmt.Sprintf("version: 1\nmodules:\n  counter.wasm:\n    digest: sha256:%x\n    grant: {kv: {max: 64MiB}, http: [%s]}\n    tools: {prove: {approval: ask}}\n",
			sha256.Sum256(module), reach(t, v.tools.URL, "")),
	})
	must(t, os.WriteFile(filepath.Join(v.dir, "tools", "counter.wasm"), module, 0o600))
	if database != "" {
		v.env = append(v.env, envStoreURL+"="+database)
	}
	v.start()
	return v
}

// hold has whatever gets there wait, until release.
func (v *victim) hold(where string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.holds, v.gate = where, make(chan struct{})
	for len(v.reached) > 0 {
		<-v.reached
	}
}

// release lets all go on that is held, and holds nothing more.
func (v *victim) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds != "" {
		close(v.gate)
	}
	v.holds = ""
}

// held waits if things are held there. It reports whether they are.
func (v *victim) held(where string) bool {
	v.mu.Lock()
	gate, holds := v.gate, v.holds == where
	v.mu.Unlock()
	if holds {
		v.reached <- struct{}{}
		<-gate
	}
	return holds
}

// isHeld reports whether things are held there.
func (v *victim) isHeld(where string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.holds == where
}

// askedOf is what a request to a model asks.
type askedOf struct {
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

// answer is what the model says: what a user's message asks for, and done behind a tool's
// result.
func (v *victim) answer(r llmtest.Request) llmtest.Answer {
	var asked askedOf
	if err := json.Unmarshal(r.Body, &asked); err != nil || len(asked.Messages) == 0 {
		v.t.Errorf("a request of the model: %v %s", err, r.Body)
		return llmtest.Refuse(http.StatusBadRequest, "", "nothing is asked")
	}
	last := asked.Messages[len(asked.Messages)-1]
	says := llmtest.Stream(llmtest.Say("all ", "done"), llmtest.Finish("stop"), llmtest.Usage(10, 2), llmtest.Done())
	if last.Role == "tool" {
		v.held("result")
		return says
	}
	word, _, _ := strings.Cut(strings.Trim(string(last.Content), `"`), " ")
	switch word {
	case "stream":
		if v.isHeld("stream") {
			says = llmtest.Stream(llmtest.Say("one ", "two "))
			says.Hang = true
		}
		return says
	case "look", "hold", "mark", "prove":
		return v.calling(word)
	case "marks":
		return v.calling("mark", "mark", "mark", "hold", "mark", "mark")
	}
	v.signal("answer")
	return says
}

// signal says that something got there, without waiting.
func (v *victim) signal(where string) {
	if v.isHeld(where) {
		v.reached <- struct{}{}
	}
}

// calling calls tools, each with arguments that no other call has.
func (v *victim) calling(names ...string) llmtest.Answer {
	events := llmtest.Say("I call. ")
	for i, name := range names {
		n := v.calls.Add(1)
		args := fmt.Sprintf(`{"key":"k/%d","value":"%s"}`, n, name)
		if name == "look" || name == "hold" {
			args = fmt.Sprintf(`{"method":"GET","url":"%s/%d"}`, v.tools.URL, n)
		}
		events = append(events, llmtest.Call(i, fmt.Sprintf("call%d", n), name, args)...)
	}
	v.signal("call")
	return llmtest.Stream(events, llmtest.Finish("tool_calls"), llmtest.Usage(10, 2), llmtest.Done())
}

// serveTool counts what tools ask for.
func (v *victim) serveTool(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	v.done[r.URL.Path]++
	v.mu.Unlock()
	v.held("tool")
	_, _ = io.WriteString(w, "done") // the tool may be gone
}

// turn is a run as a client asked for it, and what the client was told of it.
type turn struct {
	thread, run, text, resume string

	begun, refused bool
	results        map[string]string // by the id of the message
	interrupts     []event.Interrupt
	last           string // the type of the last event
	code           string // of the error it was
	ended          chan struct{}
}

func newTurn(thread, run, text string) *turn {
	return &turn{thread: thread, run: run, text: text, results: map[string]string{}, ended: make(chan struct{})}
}

func (u *turn) body() string {
	messages := "[]"
	if u.text != "" {
		messages = fmt.Sprintf(`[{"id":"m-%s","role":"user","content":%q}]`, u.run, u.text)
	}
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":%s%s}`, u.thread, u.run, messages, u.resume)
}

// send asks for the run and reads what comes of it, until nothing more does. seen is told
// each event's type.
func (u *turn) send(ctx context.Context, url string, seen func(kind string)) {
	defer close(u.ended)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/agui", strings.NewReader(u.body()))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	u.read(r, seen)
}

// read reads the events that a request is answered with.
func (u *turn) read(r *http.Request, seen func(kind string)) {
	resp, err := oneShot().Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close() //nolint:errcheck // it was read only
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body) // what there is of it
		u.refused, u.last = true, resp.Status+" "+string(text)
		return
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e struct {
			Type, MessageID, Code string
			Content               json.RawMessage
			Outcome               struct{ Interrupts []event.Interrupt }
		}
		if json.Unmarshal(text, &e) != nil {
			return // cut short: it was not told
		}
		switch e.Type {
		case "RUN_STARTED":
			u.begun = true
		case "TOOL_CALL_RESULT":
			u.results[e.MessageID] = string(e.Content)
		case "RUN_FINISHED":
			u.interrupts = e.Outcome.Interrupts
		}
		u.last, u.code = e.Type, e.Code
		seen(e.Type)
	}
}

// again is the same run, asked for once more.
func (u *turn) again() *turn {
	more := newTurn(u.thread, u.run, u.text)
	more.resume = u.resume
	return more
}

// A killing is a phase of runs in which serve is killed.
type killing struct {
	phase, text string
	holds       string // where things are held meanwhile
	sees        string // the event that every client has seen by then
	reach       int    // how many of each thread got where they are held
	// jitter is how much later it is killed at most, where nothing holds it there.
	jitter time.Duration
	// also is done by each client before.
	also func(v *victim, u *turn)
	// ends are those of runs that a client may find.
	ends []string
}

const (
	cutOff    = "RUN_ERROR interrupted"
	endedWell = "RUN_FINISHED"
)

// killings are all phases of a run under load.
func killings() []killing {
	attach := func(v *victim, u *turn) { v.attach(u, 3) }
	cancel := func(v *victim, u *turn) { v.cancel(u) }
	return []killing{
		{phase: "before the run is kept", text: "say", jitter: 3 * time.Millisecond, ends: []string{cutOff, endedWell}},
		{phase: "while the model speaks", text: "stream", holds: "stream", sees: "TEXT_MESSAGE_CONTENT", ends: []string{cutOff}},
		{phase: "between model and tool", text: "mark", holds: "call", reach: 1, jitter: 100 * time.Millisecond, ends: []string{cutOff, endedWell}},
		{phase: "while a tool reads", text: "look", holds: "tool", reach: 1, ends: []string{cutOff}},
		{phase: "while a tool changes something", text: "hold", holds: "tool", reach: 1, ends: []string{cutOff}},
		{phase: "while tools keep values", text: "marks", holds: "tool", reach: 1, ends: []string{cutOff}},
		{phase: "behind a tool's result", text: "mark", holds: "result", reach: 1, sees: "TOOL_CALL_RESULT", ends: []string{cutOff}},
		{phase: "at the last commit", text: "say", holds: "answer", reach: 1, jitter: 4 * time.Millisecond, ends: []string{cutOff, endedWell}},
		{phase: "while a person is asked", text: "prove", holds: "nothing", sees: "RUN_FINISHED", ends: []string{endedWell}},
		{phase: "while clients come back", text: "stream", holds: "stream", sees: "TEXT_MESSAGE_CONTENT", also: attach, ends: []string{cutOff}},
		{phase: "while it is cancelled", text: "stream", holds: "stream", sees: "TEXT_MESSAGE_CONTENT", also: cancel, jitter: 3 * time.Millisecond, ends: []string{cutOff, endedWell, "RUN_ERROR cancelled"}},
	}
}

// attach has clients read along, and waits until they do.
func (v *victim) attach(u *turn, clients int) {
	reading := make(chan struct{}, 1<<10)
	for range clients {
		r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+"/agui/threads/"+u.thread+"/events?protocolVersion=1.0&runId="+u.run, nil)
		if err != nil {
			v.t.Error(err)
			return
		}
		go newTurn(u.thread, u.run, "").read(r, func(kind string) {
			if kind == "TEXT_MESSAGE_CONTENT" {
				reading <- struct{}{}
			}
		})
	}
	for range clients {
		v.wait(reading, "a client that comes back")
	}
}

// cancel ends the run. Nobody waits for the answer.
func (v *victim) cancel(u *turn) {
	url := v.url + "/agui/threads/" + u.thread + "/cancel"
	go func() {
		resp, err := oneShot().Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"runId":%q}`, u.run)))
		if err == nil {
			_ = resp.Body.Close() // it is not read
		}
	}()
}

func (v *victim) wait(c <-chan struct{}, what string) {
	v.t.Helper()
	select {
	case <-c:
	case <-v.log.over:
		v.t.Fatalf("%s: serve has ended\n%s", what, v.log.last())
	case <-time.After(patientFor):
		v.t.Fatalf("%s: nothing happens", what)
	}
}

// killed has a run in each thread, kills serve where the phase says, starts it again and
// holds that nothing was lost, doubled or left behind.
func (v *victim) killed(k killing, round string) (cut int) {
	v.t.Helper()
	v.hold(k.holds)
	turns := make([]*turn, killedThreads)
	saw := make(chan struct{}, 1<<10)
	for i := range turns {
		turns[i] = newTurn(fmt.Sprint("t", i), round+"-"+strconv.Itoa(i), k.text)
		var once sync.Once
		go turns[i].send(v.t.Context(), v.url, func(kind string) {
			if kind == k.sees {
				once.Do(func() { saw <- struct{}{} })
			}
		})
	}
	for range k.reach * len(turns) {
		v.wait(v.reached, k.phase)
	}
	if k.sees != "" {
		for range turns {
			v.wait(saw, k.phase+": "+k.sees)
		}
	}
	for _, u := range turns {
		if k.also != nil {
			k.also(v, u)
		}
	}
	if k.jitter > 0 {
		time.Sleep(rand.N(k.jitter)) // where it dies is to be another each time
	}
	v.kill()
	for _, u := range turns {
		<-u.ended
	}
	v.release()
	v.start()
	for _, u := range turns {
		if v.check(k, u) {
			cut++
		}
	}
	return cut
}

// check holds that a client finds its run, its message and what it was told, and can go on.
// It reports whether the run was cut off.
func (v *victim) check(k killing, u *turn) (cut bool) {
	v.t.Helper()
	found, kept := v.ending(u), v.thread(u.thread)
	end := strings.TrimSpace(found.last + " " + found.code)
	switch {
	case found.refused && u.begun:
		v.t.Errorf("%s: a run that had begun is not known any more: %s", k.phase, found.last)
	case !found.refused && !slices.Contains(k.ends, end):
		v.t.Errorf("%s: run %s ended with %q", k.phase, u.run, end)
	case u.last == "RUN_FINISHED" && found.last != "RUN_FINISHED":
		v.t.Errorf("%s: a run that had ended well ends with %q", k.phase, end)
	}
	if said := kept.times("m-" + u.run); said != 1 && (said != 0 || !found.refused) {
		v.t.Errorf("%s: the message of run %s is there %d times", k.phase, u.run, said)
	}
	for id, content := range u.results {
		if kept.times(id) != 1 || found.results[id] != content {
			v.t.Errorf("%s: a client was told %s, and it is there %d times, as %s", k.phase, content, kept.times(id), found.results[id])
		}
	}
	kept.isWhole(v.t, k.phase)
	v.goesOn(k, u)
	return end == cutOff
}

// goesOn has a client do what it would: ask for the same run again, answer what it was
// asked, and say something else.
func (v *victim) goesOn(k killing, u *turn) {
	v.t.Helper()
	again := u.again()
	v.play(again)
	if again.last != "RUN_FINISHED" && again.last != "RUN_ERROR" {
		v.t.Errorf("%s: run %s, asked for again, ends with %q", k.phase, u.run, again.last)
	}
	if asked := again.interrupts; len(asked) > 0 {
		answer := newTurn(u.thread, u.run+"-yes", "")
		answer.resume = fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]`, asked[0].ID)
		v.play(answer)
		if answer.last != "RUN_FINISHED" || len(answer.results) != 1 {
			v.t.Errorf("%s: what was allowed ended with %s and %v", k.phase, answer.last, answer.results)
		}
	}
	next := newTurn(u.thread, u.run+"-next", "say")
	v.play(next)
	if next.last != "RUN_FINISHED" {
		v.t.Errorf("%s: the next run of thread %s ends with %q %s", k.phase, u.thread, next.last, next.code)
	}
}

func (v *victim) play(u *turn) {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), patientFor)
	defer stop()
	u.send(ctx, v.url, func(string) {})
}

// ending is the run as a client finds it that comes back.
func (v *victim) ending(u *turn) *turn {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), patientFor)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/agui/threads/"+u.thread+"/events?protocolVersion=1.0&runId="+u.run, nil)
	must(v.t, err)
	found := newTurn(u.thread, u.run, "")
	found.read(r, func(string) {})
	return found
}

// H-16: a serve that is killed in any phase of its runs leaves ends that clients see, and
// what they were told; nothing is carried out twice.
func TestH_16_ServeKilledInEveryPhase(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { killedInEveryPhase(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { killedInEveryPhase(t, server.Database(t)) })
}

func killedInEveryPhase(t *testing.T, database string) {
	v := newVictim(t, database)
	cut := 0
	for i, k := range killings() {
		cut += v.killed(k, fmt.Sprint("r", i))
	}
	if cut < 6*killedThreads {
		t.Errorf("%d runs were cut off: phases were missed", cut)
	}
	v.didOnce()
}

// TestSoakKills kills serve in phases that chance picks, each time a little later.
func TestSoakKills(t *testing.T) {
	if os.Getenv(soakEnv) == "" {
		t.Skip("takes long: make soak, or " + soakEnv + "=1m")
	}
	long, err := time.ParseDuration(os.Getenv(soakEnv))
	must(t, err)
	v := newVictim(t, "")
	all, cut, rounds := killings(), 0, 0
	for end := time.Now().Add(long); !t.Failed() && (rounds < len(all) || time.Now().Before(end)); rounds++ {
		k := all[rounds%len(all)]
		if rounds >= len(all) {
			k = all[rand.N(len(all))]
			k.jitter += 50 * time.Millisecond
		}
		cut += v.killed(k, fmt.Sprint("r", rounds))
	}
	v.didOnce()
	t.Logf("killed %d times, %d runs were cut off", rounds, cut)
}
