package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// requested sends a request and returns the status and the answer.
func requested(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := oneShot().Do(r)
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

// conforming returns the events of a stream, once clients would take them.
func conforming(t *testing.T, stream string) (events []event.Event) {
	t.Helper()
	for line := range strings.Lines(stream) {
		text, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		e, err := event.Decode([]byte(text))
		must(t, err)
		events = append(events, e)
	}
	eventtest.Conforms(t, false, events...)
	return events
}

// runBody is the input of a run with these messages, and more members.
func runBody(thread, run, messages, more string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":[%s]%s}`, thread, run, messages, more)
}

func userSays(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"role":"user","content":%q}`, id, text)
}

// E3-1, E3-3, E3-4, E3-5: what a real serve streams is what clients take, in every scenario;
// a tool of the client is answered in a second run; and a history that is sent again does not
// grow.
func TestE3_01_E3_03_E3_04_ScenariosConform(t *testing.T) {
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	const confirm = `,"tools":[{"name":"confirm","description":"Asks.","parameters":{"type":"object","properties":{}}}]`
	for _, c := range []struct{ text, ends string }{
		{"hello", "RUN_FINISHED"}, {"greet", "RUN_FINISHED"}, {"wipe", "RUN_FINISHED"}, {"broken", "RUN_ERROR"}, {"confirm", "RUN_FINISHED"}, {"both", "RUN_FINISHED"},
	} {
		thread := "t-" + c.text
		_, stream := requested(t, http.MethodPost, url+"/agui", runBody(thread, "r1", userSays("m1", c.text), confirm))
		events := conforming(t, stream)
		if last := events[len(events)-1]; string(last.Type()) != c.ends {
			t.Errorf("%s ended with %v", c.text, last)
		}
		pending := pendingOf(events)
		if called := strings.Contains(c.text, "confirm") || c.text == "both"; (len(pending) == 1) != called {
			t.Fatalf("%s: handed back are %v", c.text, pending)
		}
		var kept struct{ Messages []json.RawMessage }
		_, text := requested(t, http.MethodGet, url+"/agui/threads/"+thread, "")
		must(t, json.Unmarshal([]byte(text), &kept))
		for _, e := range events { // what was streamed is what is kept, by its id
			if start, ok := e.(event.TextMessageStart); ok && !strings.Contains(text, `"`+start.MessageID+`"`) {
				t.Errorf("%s: message %s is not kept: %s", c.text, start.MessageID, text)
			}
		}
		all := string(bytes.Join(rawAll(kept.Messages), []byte(",")))
		if len(pending) == 1 {
			all += fmt.Sprintf(`,{"id":"answer","role":"tool","toolCallId":%q,"content":"yes"}`, pending[0])
		} else {
			all += "," + userSays("m2", "hello")
		}
		_, stream = requested(t, http.MethodPost, url+"/agui", runBody(thread, "r2", all, confirm))
		again := conforming(t, stream)
		if last := again[len(again)-1]; last.Type() != event.TypeRunFinished {
			t.Errorf("%s, gone on with: ended with %v", c.text, last)
		}
		_, text = requested(t, http.MethodGet, url+"/agui/threads/"+thread, "")
		var now keptThread
		must(t, json.Unmarshal([]byte(text), &now))
		now.isWhole(t, c.text)
		if more := len(now.Messages) - len(kept.Messages); more < 1 || more > 2 { // what was said, and what was answered, if that was not a question
			t.Errorf("%s: there were %d messages, and with one and its answer there are %d: %s", c.text, len(kept.Messages), len(now.Messages), text)
		}
	}
}

func rawAll(messages []json.RawMessage) (all [][]byte) {
	for _, m := range messages {
		all = append(all, m)
	}
	return all
}

func pendingOf(events []event.Event) []string {
	end, ok := events[len(events)-1].(event.RunFinished)
	if !ok || end.Outcome == nil {
		return nil
	}
	return end.Outcome.PendingToolCallIDs
}

// E3-11: a tool that traps, never ends, takes more memory or answers with more than it may,
// or takes longer than the agent gives it, is an error that the model reads; the run goes on.
func TestE3_11_ToolsThatFailInARun(t *testing.T) {
	tools := map[string]struct {
		do   []dialecttest.Step
		code string
	}{
		"traps":    {[]dialecttest.Step{dialecttest.Trap()}, "tool_failed"},
		"endless":  {[]dialecttest.Step{dialecttest.Loop()}, "timeout"},
		"hungry":   {[]dialecttest.Step{dialecttest.GrowOrTrap(60_000)}, ""},
		"recurses": {[]dialecttest.Step{dialecttest.Recurse()}, ""},
		"fails":    {[]dialecttest.Step{dialecttest.Fail(1, "not today")}, "tool_error"},
		"much":     {[]dialecttest.Step{dialecttest.Output(64 << 20)}, ""},
	}
	modules, script := map[string][]byte{}, ""
	for name, c := range tools {
		modules[name+".wasm"] = dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec(name)}, Do: c.do}.Bytes()
		script += fmt.Sprintf("- match: {text: %s, role: user}\n  call: {tool: %s}\n", name, name)
	}
	dir := folderWith(t, modules)
	for name, text := range map[string]string{
		"hutch.yaml":  "agents:\n  player: {default: true, model: {script: script.yaml}, limits: {tool_timeout: 20s}}\n  hasty: {model: {script: script.yaml}, limits: {tool_timeout: 300ms}}\nlimits: {timeout: 2s}\n",
		"script.yaml": script + "- say: \"I read ${result}.\"\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	url, _ := startTold(t, prepared(t, dir, "serve", "--addr", "127.0.0.1:0", "--config", "hutch.yaml"))
	for name, c := range tools {
		for _, agent := range []string{"player", "hasty"} {
			if agent == "hasty" && name != "endless" {
				continue
			}
			_, stream := requested(t, http.MethodPost, url+"/agents/"+agent+"/agui", runBody(agent+name, "r", userSays("m", name), ""))
			events := conforming(t, stream)
			result := ""
			for _, e := range events {
				if r, ok := e.(event.ToolCallResult); ok {
					result = string(must1(json.Marshal(r.Content)))
				}
			}
			if !strings.Contains(result, `\"error\":`) || !strings.Contains(result, `\"code\":\"`+c.code) || len(result) > 8<<10 {
				t.Errorf("%s of %s: the model reads %.600s, want the code %s", name, agent, result, c.code)
			}
			if last := events[len(events)-1]; last.Type() != event.TypeRunFinished {
				t.Errorf("%s of %s: the run ended with %v", name, agent, last)
			}
		}
	}
}

// must1 returns what there is of something that cannot fail.
func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// provoked are requests to agents that are wrong, each in its own way.
func provoked() (requests [][3]string) {
	long := strings.Repeat("x", 2000)
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, path := range []string{
		"/agui/threads?limit=-1", "/agui/threads?limit=0", "/agui/threads?limit=99999999999999999999", "/agui/threads?limit=x", "/agui/threads?after=x",
		"/agui/threads?after=" + cursor(`{"o":"local","i":"t","u":"9999-12-31T23:59:59.999999999Z"}`), "/agui/threads?after=" + cursor(`{"o":"local","i":"t","u":"0000-01-01T00:00:00Z"}`),
		"/agui/threads?after=" + cursor(`{"o":"local","i":"t","u":"-1"}`), "/agui/threads?after=" + cursor(`{"o":"' or 1=1 --","i":"t"}`), "/agui/threads?after=" + cursor(`[]`),
		"/agui/threads?after=" + cursor(`{"i":"`+long+`"}`), "/agui/threads/nobody", "/agui/threads/t?limit=-1", "/agui/threads/t?limit=9999999", "/agui/threads/t?before=nobody",
		"/agui/threads/t?before=" + long, "/agui/threads/t?before=%00", "/agui/threads/t/events?runId=nobody", "/agui/threads/t/events?runId=%00", "/agui/threads/nobody/events",
		"/agui/threads/%2e%2e%2fetc%2fpasswd", "/agui/threads/';drop table thread;--", "/agui/threads/" + long, "/agents/nobody/agui/threads", "/agents/..%2f/agui/threads",
	} {
		requests = append(requests, [3]string{http.MethodGet, strings.ReplaceAll(path, " ", "%20"), ""})
	}
	for _, body := range []string{
		``, `{`, `[]`, `null`, `"x"`, `{"threadId":1}`, `{"threadId":"t"}`, runBody("", "r", "", ""), runBody("t", "", "", ""), runBody(long, "r", "", ""), runBody("t\x00", "r", "", ""),
		runBody("t", "r1", userSays("m9", "another"), ""), runBody("t", "p1", `{"id":"m","role":"emperor","content":"x"}`, ""), runBody("t", "p2", `{"id":"m","role":"user","content":7}`, ""),
		runBody("t", "p3", `{"role":"user","content":"x"}`, ""), runBody("t", "p4", "", `,"tools":7`), runBody("t", "p5", "", `,"tools":[{"name":7}]`), runBody("t", "p6", "", `,"resume":{}`),
		runBody("t", "p7", "", `,"resume":[{"interruptId":"nobody","status":"resolved","payload":{"approved":true}}]`), runBody("t", "p8", "", `,"forwardedProps":{"historyMode":"forget"}`),
		runBody("t", "p9", "", `,"state":{"a":"`+strings.Repeat("x", 300<<10)+`"}`), strings.Repeat("[", 100_000),
	} {
		requests = append(requests, [3]string{http.MethodPost, "/agui", body})
	}
	for _, body := range []string{``, `{`, `[]`, `{"runId":7}`, `{"runId":"nobody"}`, `{"runId":"` + long + `"}`} {
		requests = append(requests, [3]string{http.MethodPost, "/agui/threads/t/cancel", body})
	}
	return requests
}

// H14, H20: cursors, ids and bodies that are wrong are refused, with a word that says what;
// none of it says where hutch keeps what, what it is made of, or what it knows of others.
func TestH14_H20_WrongRequestsToAgents(t *testing.T) {
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	say(t, url, "t", "r1", "hello", "").until(t, "RUN_FINISHED")
	requests := provoked()
	if len(requests) < 50 {
		t.Fatalf("only %d requests", len(requests))
	}
	for _, r := range requests {
		code, text := requested(t, r[0], url+r[1], r[2])
		name := fmt.Sprintf("%s %.80s %.80s", r[0], r[1], r[2])
		ended := strings.Contains(text, "RUN_ERROR") || strings.Contains(text, "RUN_FINISHED")
		if code >= 500 || code < 400 && !ended && !strings.Contains(r[1], "?after=eyJv") { // a cursor that could be one, as it begins with {"o
			t.Errorf("%s: %d %.300s", name, code, text)
		}
		said := strings.ToLower(strings.NewReplacer(r[1], "", "/agui", "", "application/json", "").Replace(text))
		for _, never := range []string{dir, "/tmp", "/home", "sql", "goroutine", ".go:", "runtime error", "panic", "0x", "hutch.db"} {
			if strings.Contains(said, never) {
				t.Errorf("%s: %q is in %.300s", name, never, text)
			}
		}
	}
	say(t, url, "t", "r2", "hello", "").until(t, "RUN_FINISHED")
}
