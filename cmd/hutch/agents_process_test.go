//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

// played is what the agent of these tests says.
const played = `
- match: {tool: hi}
  say: "It said ${result}."
- match: {tool: wipe, result: '"error"'}
  say: "Not done."
- match: {tool: wipe}
  say: "Done: ${result}."
- match: {role: tool}
  say: "You said ${result}."
- match: {text: greet}
  say: "I ask. "
  call: {tool: hi}
- match: {text: wipe}
  call: {tool: wipe}
- match: {text: confirm}
  ask: {tool: confirm}
- match: {text: pair}
  ask: [{tool: confirm}, {tool: choose}]
- match: {text: mixed}
  call: [{tool: wipe}, {tool: confirm}]
- match: {text: twice}
  call: [{tool: wipe, args: {n: 1}}, {tool: wipe, args: {n: 2}}]
- match: {text: stranger}
  call: {tool: nobody}
- match: {text: down}
  fail: {as: refused, text: the key is no good}
- match: {text: both}
  call: [{tool: hi}, {tool: confirm}]
- match: {text: broken}
  say: "I begin, "
  fail: {as: cut, text: the line went dead}
- match: {text: slow}
  delay: 60s
- match: {text: soon}
  delay: 1s
- say: "Hello."
`

// agentFolder has a tool that may be called, one that a person has to allow, and an agent
// that plays a script.
func agentFolder(t *testing.T) (dir string, args []string) {
	t.Helper()
	dir = folderWith(t, map[string][]byte{"hi.wasm": greeter("hi", "good day"), "wipe.wasm": greeter("wipe", "all gone")})
	for name, text := range map[string]string{
		"hutch.yaml":  "agents:\n  player: {default: true, model: {script: script.yaml}}\n  parrot: {model: {kind: echo}, tools: [hi]}\n",
		"script.yaml": played, "policy.yaml": "version: 1\nmodules:\n  wipe.wasm:\n    tools: {wipe: {approval: ask}}\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir, []string{"--config", "hutch.yaml", "--policy", "policy.yaml"}
}

// serveAgents starts serve there, and waits until its tools are known.
func serveAgents(t *testing.T, dir string, args []string) (p *process, url string) {
	t.Helper()
	p = start(t, dir, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	url = p.says(t, `^hutch: serving (http://127\.0\.0\.1:\d+)/agui: agent player, which plays .*script\.yaml$`)
	p.says(t, `^hutch: modules: 1 ready, 1 held; tools: 1$`)
	return p, url
}

// The real clients of both generations take all that serve says: tools of the server and
// of the client, a person's yes and no, failures, and a run that somebody ends.
func TestS3_001_RealClientsOfAgents(t *testing.T) {
	folder := eventtest.Clients(t, "../..")
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	for _, c := range []struct {
		text string
		args []string
	}{
		{"hello", []string{"--expect", "success", "--turns", "2"}},
		{"greet", []string{"--expect", "success", "--expect-event", "TOOL_CALL_RESULT"}},
		{"confirm", []string{"--expect", "success", "--tool", "confirm=yes"}},
		{"both", []string{"--expect", "success", "--tool", "confirm=yes", "--expect-event", "TOOL_CALL_RESULT"}},
		{"wipe", []string{"--expect", "success", "--resume", "approve", "--expect-event", "TOOL_CALL_RESULT"}},
		{"wipe", []string{"--expect", "success", "--resume", "deny", "--expect-event", "TOOL_CALL_RESULT"}},
		{"wipe", []string{"--expect", "interrupt"}},
		{"pair", []string{"--expect", "success", "--tool", "confirm=yes", "--tool", "choose=blue"}},
		{"mixed", []string{"--expect", "success", "--tool", "confirm=yes", "--expect-event", "TOOL_CALL_RESULT"}},
		{"twice", []string{"--expect", "success", "--resume", "approve", "--expect-event", "TOOL_CALL_RESULT"}},
		{"stranger", []string{"--expect", "success", "--expect-event", "TOOL_CALL_RESULT"}},
		{"broken", []string{"--expect", "error"}},
		{"down", []string{"--expect", "error"}},
		{"slow", nil},
	} {
		for _, generation := range []string{"1.0", "0.0.59"} {
			t.Run(strings.Join(append([]string{c.text, generation}, c.args...), " "), func(t *testing.T) {
				args := append([]string{"check.mjs", url + "/agui", "--message", c.text, "--client", generation, "--timeout", "60"}, c.args...)
				if c.text == "slow" {
					args = append(args, "--expect", map[string]string{"1.0": "cancelled", "0.0.59": "error"}[generation])
					done := launch(func() error { return cancelFirst(url) })
					defer func() { must(t, <-done) }()
				}
				cmd := exec.CommandContext(t.Context(), "node", args...)
				cmd.Dir = folder
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "PASS") {
					t.Errorf("%v\n%s", err, out)
				}
				switch approved := slices.Contains(args, "approve"); {
				case approved && !strings.Contains(string(out), "Done: all gone"), slices.Contains(args, "deny") && strings.Contains(string(out), "all gone"):
					t.Errorf("what was allowed and what was done differ\n%s", out)
				}
			})
		}
	}
}

// Real clients come in with a token, and not without.
func TestRealClientsWithTokens(t *testing.T) {
	folder := eventtest.Clients(t, "../..")
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	made, err := prepared(t, dir, "tokens", "create", "page").Output()
	must(t, err)
	for _, generation := range []string{"1.0", "0.0.59"} {
		for _, c := range []struct{ path, token, want string }{
			{"/agui", strings.TrimSpace(string(made)), "PASS"},
			{"/agents/parrot/agui", strings.TrimSpace(string(made)), "PASS"},
			{"/agui", "hutch_nobody", "VIOLATION [http] status 401"},
			{"/agents/nobody/agui", strings.TrimSpace(string(made)), "VIOLATION [http] status 404"},
		} {
			cmd := exec.CommandContext(t.Context(), "node", "check.mjs", url+c.path, "--client", generation, "--message", "hello", "--expect", "success", "--header", "Authorization: Bearer "+c.token)
			cmd.Dir = folder
			if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) || (c.want == "PASS") != (err == nil) {
				t.Errorf("%s %s: %v\n%s", generation, c.path, err, out)
			}
		}
	}
}

// What a hutch that runs knows of a token's use is listed.
func TestTokensThatWereUsed(t *testing.T) {
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	made, err := prepared(t, dir, "tokens", "create", "page").Output()
	must(t, err)
	list := func() string {
		out, err := prepared(t, dir, "tokens", "list").Output()
		must(t, err)
		return string(out)
	}
	if got := list(); !regexp.MustCompile(`no end +-  hutch_`).MatchString(got) {
		t.Errorf("before: %s", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/agui/capabilities", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(made)))
	resp, err := oneShot().Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	if got := list(); resp.StatusCode != http.StatusOK || !regexp.MustCompile(`no end +used \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  hutch_`).MatchString(got) {
		t.Errorf("%s, after: %s", resp.Status, got)
	}
}

// oneShot is a client that leaves no connection behind.
func oneShot() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// cancelFirst ends the first run that is in progress.
func cancelFirst(url string) error {
	for end := time.Now().Add(patientFor); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := oneShot().Get(url + "/agui/threads")
		if err != nil {
			return err
		}
		var page struct {
			Threads []struct{ ID, RunID string }
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		_ = resp.Body.Close() // it was read only
		if err != nil {
			return err
		}
		for _, thread := range page.Threads {
			if thread.RunID == "" {
				continue
			}
			resp, err := oneShot().Post(url+"/agui/threads/"+thread.ID+"/cancel", "application/json", strings.NewReader(fmt.Sprintf(`{"runId":%q}`, thread.RunID)))
			if err != nil {
				return err
			}
			_ = resp.Body.Close() // likewise
			if resp.StatusCode == http.StatusAccepted {
				return nil
			}
		}
	}
	return fmt.Errorf("no run was in progress")
}

// aguiStream is a stream of events that is read line by line.
type aguiStream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

func streamOf(t *testing.T, resp *http.Response, err error) *aguiStream {
	t.Helper()
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s", resp.Status, text)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &aguiStream{resp.Body, bufio.NewScanner(resp.Body)}
}

// say begins a run; more are members of its input besides, each with a comma before it.
func say(t *testing.T, url, thread, run, text, more string) *aguiStream {
	t.Helper()
	messages := "[]"
	if text != "" {
		messages = fmt.Sprintf(`[{"id":"m-%s","role":"user","content":%q}]`, run, text)
	}
	body := fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":%s%s}`, thread, run, messages, more)
	resp, err := oneShot().Post(url+"/agui", "application/json", strings.NewReader(body))
	return streamOf(t, resp, err)
}

// until reads up to an event of that type, and returns it.
func (s *aguiStream) until(t *testing.T, kind string) map[string]any {
	t.Helper()
	var seen []string
	for s.lines.Scan() {
		text, ok := bytes.CutPrefix(s.lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		seen = append(seen, string(text))
		var e map[string]any
		must(t, json.Unmarshal(text, &e))
		if e["type"] == kind {
			return e
		}
	}
	t.Fatalf("no %s (%v) in\n%s", kind, s.lines.Err(), strings.Join(seen, "\n"))
	return nil
}

// E3-9: a run goes on when its client leaves; who comes back sees all of it, and the
// thread is there after a restart.
func TestE3_09_RunsOutliveTheirClients(t *testing.T) {
	dir, args := agentFolder(t)
	p, url := serveAgents(t, dir, args)
	left := say(t, url, "t", "r", "soon greet", "")
	left.until(t, "RUN_STARTED")
	must(t, left.body.Close())
	resp, err := oneShot().Get(url + "/agui/threads/t/events?protocolVersion=1.0&runId=r")
	back := streamOf(t, resp, err)
	back.until(t, "RUN_STARTED")
	if got := back.until(t, "TOOL_CALL_RESULT")["content"]; got != "good day" {
		t.Errorf("the tool answered %v", got)
	}
	back.until(t, "RUN_FINISHED")
	can, err := oneShot().Get(url + "/agui/capabilities")
	must(t, err)
	said, err := io.ReadAll(can.Body)
	must(t, errors.Join(err, can.Body.Close()))
	if !strings.Contains(string(said), `"resumable":false`) || !strings.Contains(string(said), `"custom":{"reattach":true}`) {
		t.Errorf("what is said of coming back: %s", said)
	}
	say(t, url, "t", "r", "soon greet", "").until(t, "RUN_FINISHED") // the same again is not run again

	p.signal(t, syscall.SIGTERM)
	if got := p.exit(t); got.ExitCode() != exitOK {
		t.Error(got)
	}
	_, url = serveAgents(t, dir, args)
	resp, err = oneShot().Get(url + "/agui/threads/t")
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	for _, want := range []string{`"content":"soon greet"`, `"content":"good day"`, `"content":"It said good day."`, `"messages":4`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	must(t, resp.Body.Close())
	resp, err = oneShot().Get(url + "/agents/parrot/agui/threads/t")
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("another agent's thread: %s", resp.Status)
	}
}

// E3-22: a question outlives the process that asked it.
func TestE3_22_QuestionsOutliveARestart(t *testing.T) {
	dir, args := agentFolder(t)
	p, url := serveAgents(t, dir, args)
	end := say(t, url, "t", "r1", "wipe", "").until(t, "RUN_FINISHED")
	asked, ok := end["outcome"].(map[string]any)["interrupts"].([]any)
	if !ok || len(asked) != 1 {
		t.Fatalf("asked: %v", end)
	}
	id, _ := asked[0].(map[string]any)["id"].(string)
	p.signal(t, syscall.SIGTERM)
	p.exit(t)
	_, url = serveAgents(t, dir, args)
	answered := say(t, url, "t", "r2", "", fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]`, id))
	if got := answered.until(t, "TOOL_CALL_RESULT")["content"]; got != "all gone" {
		t.Errorf("the tool answered %v", got)
	}
	answered.until(t, "RUN_FINISHED")
}

// E3-25: who stops serve waits seconds, and clients learn why their run ended.
func TestE3_25_ServeEndsStreams(t *testing.T) {
	dir, args := agentFolder(t)
	p, url := serveAgents(t, dir, args)
	running := say(t, url, "t", "r", "slow", "")
	running.until(t, "RUN_STARTED")
	p.signal(t, syscall.SIGTERM)
	if e := running.until(t, "RUN_ERROR"); e["code"] != "shutdown" {
		t.Errorf("ended with %v", e)
	}
	if got := p.exit(t); got.ExitCode() != exitOK {
		t.Error(got)
	}
}

// hutch chat asks the agents of a serve on the same state folder, and asks nobody where
// there is no terminal: the question stays in the thread.
func TestChatThroughServe(t *testing.T) {
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	chat := func(args ...string) (string, int) {
		p := prepared(t, dir, append([]string{"chat", "--thread", "c"}, args...)...)
		out, err := p.CombinedOutput()
		if p.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), p.ProcessState.ExitCode()
	}
	if out, code := chat("greet"); code != exitOK || !strings.Contains(out, "hutch: hi answers good day\nIt said good day.\n") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := chat("wipe", "--agent", "player", "--config", "hutch.yaml"); code != exitDenied || !strings.Contains(out, "hutch: error: denied: nobody can be asked here: Allow wipe with {}?\nhutch: hint: hutch chat --thread c --agent player --config hutch.yaml") || strings.Contains(out, "all gone") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := chat("again", "--agent", "parrot"); code != exitFailed || !strings.Contains(out, `the thread is one of the agent "player"`) {
		t.Errorf("%d %s", code, out)
	}
	resp, err := oneShot().Get(url + "/agui/threads/c")
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	if !strings.Contains(string(text), `"reason":"tool_call"`) {
		t.Errorf("the question is not there: %s", text)
	}
}

// E3-9: where the agent says so, a run ends with the client that asked for it, and not with
// one that reads along.
func TestE3_09_RunsEndWithTheirClients(t *testing.T) {
	dir, args := agentFolder(t)
	must(t, os.WriteFile(filepath.Join(dir, "hutch.yaml"), []byte("agents:\n  player: {model: {script: script.yaml}, on_disconnect: cancel}\n"), 0o600))
	_, url := serveAgents(t, dir, args)
	asked := say(t, url, "t", "r", "slow", "")
	asked.until(t, "RUN_STARTED")
	along := func() *aguiStream {
		resp, err := oneShot().Get(url + "/agui/threads/t/events?protocolVersion=1.0&runId=r")
		return streamOf(t, resp, err)
	}
	leaves := along()
	leaves.until(t, "RUN_STARTED")
	must(t, leaves.body.Close())
	stays := along()
	stays.until(t, "RUN_STARTED")
	must(t, asked.body.Close())
	end := stays.until(t, "RUN_FINISHED")
	if outcome, _ := end["outcome"].(map[string]any); outcome["type"] != "cancelled" {
		t.Errorf("ended with %v", end)
	}
	say(t, url, "t", "r2", "hello", "").until(t, "RUN_FINISHED")
}

// C-28: a client that sends its history and lacks something of it is told all of it, before
// the answer; one that lacks nothing, or sends only what is new, is not.
func TestC_28_SnapshotsForWhoMissedSomething(t *testing.T) {
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	for _, run := range []string{"r1", "r2"} {
		say(t, url, "t", run, "hello", "").until(t, "RUN_FINISHED")
	}
	resp, err := oneShot().Get(url + "/agui/threads/t")
	must(t, err)
	var kept struct{ Messages []json.RawMessage }
	must(t, json.NewDecoder(resp.Body).Decode(&kept))
	must(t, resp.Body.Close())
	if len(kept.Messages) != 4 {
		t.Fatalf("kept: %s", kept.Messages)
	}
	for _, c := range []struct {
		name   string
		run    string
		sends  []int // of what is kept
		misses bool
	}{{"all of it", "r2b", []int{0, 1, 2, 3}, false}, {"the first turn alone", "r3", []int{0, 1}, true}, {"only new ones", "r4", nil, false}} {
		var history []string
		for _, i := range c.sends {
			history = append(history, string(kept.Messages[i]))
		}
		history = append(history, fmt.Sprintf(`{"id":"m-%s","role":"user","content":"hello"}`, c.run))
		body := fmt.Sprintf(`{"threadId":"t","runId":%q,"protocolVersion":"1.0","messages":[%s]}`, c.run, strings.Join(history, ","))
		resp, err := oneShot().Post(url+"/agui", "application/json", strings.NewReader(body))
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		before, _, _ := strings.Cut(string(text), "TEXT_MESSAGE_START")
		_, snapshot, there := strings.Cut(before, `"type":"MESSAGES_SNAPSHOT"`)
		if there != c.misses || !strings.Contains(string(text), "RUN_FINISHED") {
			t.Errorf("%s: %s", c.name, text)
		}
		if c.misses && (strings.Count(snapshot, `"content":"hello"`) != 4 || strings.Count(snapshot, `"content":"Hello."`) != 3) {
			t.Errorf("%s: the snapshot is %s", c.name, snapshot)
		}
	}
}

// H-20: a serve that runs goes by the tokens there are: the first one cuts off what came in
// without one, the last one goes only where somebody says so, and what it lets in then it
// lets in after a restart too.
func TestTokensOfAServeThatRuns(t *testing.T) {
	dir, args := agentFolder(t)
	p, url := serveAgents(t, dir, args)
	tokens := func(want int, args ...string) string {
		t.Helper()
		p := prepared(t, dir, append([]string{"tokens"}, args...)...)
		out, _ := p.Output() // the exit code says it
		if got := p.ProcessState.ExitCode(); got != want {
			t.Fatalf("tokens %v: %d, want %d", args, got, want)
		}
		return strings.TrimSpace(string(out))
	}
	lets := func(token string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/agui/threads", nil)
		must(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := oneShot().Do(r)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != want {
			t.Errorf("%.10s: %s, want %d", token, resp.Status, want)
		}
	}
	lets("", http.StatusOK)
	running := say(t, url, "t", "r", "slow", "")
	running.until(t, "RUN_STARTED")
	first := tokens(exitOK, "create", "first")
	_, _ = io.Copy(io.Discard, running.body) // it ends, or this test does not
	lets("", http.StatusUnauthorized)
	lets(first, http.StatusOK)
	tokens(exitFailed, "revoke", "first")
	lets(first, http.StatusOK)
	second := tokens(exitOK, "create", "second")
	tokens(exitOK, "revoke", "first")
	lets(first, http.StatusUnauthorized)
	lets(second, http.StatusOK)
	tokens(exitOK, "revoke", "second", "--open")
	lets("", http.StatusOK)
	tokens(exitOK, "create", "third")
	lets("", http.StatusUnauthorized)
	tokens(exitOK, "revoke", "third", "--open")
	p.signal(t, syscall.SIGTERM)
	log := restOf(p)
	p.exit(t)
	if got := strings.Count(log, `msg="token created"`); got != 3 || strings.Count(log, "expires=never") != got || strings.Contains(log, "0001-") {
		t.Errorf("the log: %s", log)
	}
	_, url = serveAgents(t, dir, args)
	lets("", http.StatusOK)
}

// restOf returns what a process still writes to standard error.
func restOf(p *process) string {
	var b strings.Builder
	for p.stderr.Scan() {
		b.WriteString(p.stderr.Text() + "\n")
	}
	return b.String()
}
