//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// modelKey is the key of the models of these tests.
const modelKey = "sk-test-3Vq8mN2xWfJ7rT5y"

// startTold starts a serve, and returns what it says, all of it.
func startTold(t *testing.T, p *process) (url string, log *transcript) {
	t.Helper()
	log = &transcript{}
	p.Stderr = log
	must(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	for end := time.Now().Add(patientFor); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !strings.Contains(log.String(), "\nhutch: modules: ") {
			continue
		}
		_, rest, _ := strings.Cut(log.String(), "hutch: serving ")
		url, _, _ = strings.Cut(rest, "/mcp")
		return url, log
	}
	t.Fatalf("it does not begin:\n%s", log)
	return "", nil
}

// An oddModel is a model, the settings of the agent that asks it, and how a turn with it
// ends.
type oddModel struct {
	settings string
	base     string // instead of answers
	answers  func(n int) llmtest.Answer
	want     string // the last event, its code, and a part of its message
	result   string // a part of a tool's result on the way
}

// playOdd has each of these models asked by an agent of a real serve, all at once. Behind
// each of those turns another one ends well.
func playOdd(t *testing.T, models map[string]oddModel) {
	t.Helper()
	dir := folderWith(t, map[string][]byte{"hi.wasm": greeter("hi", "good day")})
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(modelKey+"\n"), 0o600))
	var text strings.Builder
	text.WriteString("agents:\n")
	first := true
	for name, m := range models {
		base := m.base
		if base == "" {
			base = m.serve(t)
		}
		fmt.Fprintf(&text, "  %s: {default: %v, model: {kind: openai, name: m, base_url: %q, key_file: key%s}}\n", name, first, base, m.settings)
		first = false
	}
	must(t, os.WriteFile(filepath.Join(dir, "hutch.yaml"), []byte(text.String()), 0o600))
	p := prepared(t, dir, "serve", "--addr", "127.0.0.1:0", "--config", "hutch.yaml", "--log", "debug")
	url, log := startTold(t, p)
	var all sync.WaitGroup
	for name, m := range models {
		all.Go(func() { m.play(t, url, name) })
	}
	all.Wait()
	if strings.Contains(log.String(), modelKey) {
		t.Error("the key is in the log")
	}
	if strings.Contains(log.String(), "panic") {
		t.Errorf("it panicked:\n%s", log)
	}
}

// serve serves the model: its answers for the thread odd, and a good one in another.
func (m oddModel) serve(t *testing.T) string {
	var mu sync.Mutex
	n := 0
	s := llmtest.Choose(t, func(r llmtest.Request) llmtest.Answer {
		if strings.Contains(string(r.Body), `"and well"`) {
			return llmtest.Stream(llmtest.Say("well"), llmtest.Finish("stop"), llmtest.Done())
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		return m.answers(n)
	})
	s.Key = modelKey
	return s.URL
}

func (m oddModel) play(t *testing.T, url, name string) {
	events, messages := turnOf(t, url+"/agents/"+name, "odd-"+name, "r1", "do it")
	last := events[len(events)-1]
	got := fmt.Sprintf("%v %v %v", last["type"], last["code"], last["message"])
	if end, part, _ := strings.Cut(m.want, ": "); !strings.HasPrefix(got, end) || !strings.Contains(got, part) {
		t.Errorf("%s: ended with %.300s, want %s", name, got, m.want)
	}
	results := ""
	for _, e := range events {
		if e["type"] == "TOOL_CALL_RESULT" {
			results += fmt.Sprint(e["content"], "\n")
		}
	}
	if !strings.Contains(results, m.result) {
		t.Errorf("%s: the results are %.2000s, want %s", name, results, m.result)
	}
	if text := fmt.Sprint(events) + messages; strings.Contains(text, modelKey) {
		t.Errorf("%s: the key is in %s", name, text)
	}
	if m.base == "" {
		events, _ = turnOf(t, url+"/agents/"+name, "odd-"+name, "r2", "and well")
		if last := events[len(events)-1]; last["type"] != "RUN_FINISHED" {
			t.Errorf("%s: the next turn ended with %v", name, last)
		}
	}
}

// turnOf returns the events of a run, and the thread behind it.
func turnOf(t *testing.T, url, thread, run, text string) (events []map[string]any, kept string) {
	body := fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":[{"id":"m-%s","role":"user","content":%q}]}`, thread, run, run, text)
	ctx, stop := context.WithTimeout(context.Background(), 2*patientFor)
	defer stop()
	ask := func(method, path, body string) string {
		r, err := http.NewRequestWithContext(ctx, method, url+"/agui"+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := oneShot().Do(r)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close() //nolint:errcheck // it was read only
		said, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %s %v %.300s", method, path, resp.Status, err, said)
		}
		return string(said)
	}
	for frame := range strings.SplitSeq(ask(http.MethodPost, "", body), "\n") {
		var e map[string]any
		if data, ok := strings.CutPrefix(frame, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		events = append(events, map[string]any{"type": "nothing"})
	}
	return events, ask(http.MethodGet, "/threads/"+thread, "")
}

// always gives one answer to everything.
func always(a llmtest.Answer) func(int) llmtest.Answer { return func(int) llmtest.Answer { return a } }

// first gives one answer, and then a good one.
func first(a llmtest.Answer) func(int) llmtest.Answer {
	return func(n int) llmtest.Answer {
		if n == 1 {
			return a
		}
		return llmtest.Stream(llmtest.Say("well"), llmtest.Finish("stop"), llmtest.Done())
	}
}

// S3-033: whatever a model says, its run ends in an event that says how, the thread goes
// on, and nobody sees the key.
func TestModelsThatSayAnything(t *testing.T) {
	calls := func(events ...[]string) llmtest.Answer {
		return llmtest.Stream(append(events, llmtest.Finish("tool_calls"), llmtest.Done())...)
	}
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, llmtest.Call(i, fmt.Sprint("c", i), "hi", "{}")...)
		}
		return all
	}
	large := strings.Repeat("x", 10<<20)
	pieces := []string{`{"n":"`}
	for range 160 {
		pieces = append(pieces, large[:64<<10])
	}
	playOdd(t, map[string]oddModel{
		"unknown":   {answers: first(calls(llmtest.Call(0, "c", "rm_rf", `{"path":"/"}`))), want: "RUN_FINISHED", result: `"code":"not_found"`},
		"broken":    {answers: first(calls(llmtest.Call(0, "c", "hi", `{"a":`))), want: "RUN_FINISHED", result: `"code":"invalid_arguments"`},
		"no-object": {answers: first(calls(llmtest.Call(0, "c", "hi", `[1,2]`))), want: "RUN_FINISHED", result: `"code":"invalid_arguments"`},
		"loops":     {answers: always(calls(llmtest.Call(0, "", "hi", `{}`))), want: "RUN_ERROR max_tool_rounds: after 16 rounds", result: "repeated"},
		"rounds": {settings: "}, limits: {rounds: 3", answers: func(n int) llmtest.Answer {
			return calls(llmtest.Call(0, "", "hi", fmt.Sprintf(`{"n":%d}`, n)))
		}, want: "RUN_ERROR max_tool_rounds: after 3 rounds", result: "good day"},
		"silent":      {answers: always(llmtest.Stream(llmtest.Finish("stop"), llmtest.Done())), want: "RUN_ERROR empty_answer"},
		"thousand":    {answers: always(calls(many(1000))), want: "RUN_ERROR answer_too_large: 64 calls"},
		"sixty-four":  {answers: first(calls(many(64))), want: "RUN_FINISHED", result: "good day"},
		"ten-mib":     {answers: always(calls(llmtest.Call(0, "c", "hi", pieces...))), want: "RUN_ERROR answer_too_large"},
		"at-once":     {answers: always(calls(llmtest.Call(0, "c", "hi", `{"n":"`+large+`"}`))), want: "RUN_ERROR answer_too_large"},
		"talks":       {answers: always(llmtest.Stream(llmtest.Say(large), llmtest.Finish("stop"), llmtest.Done())), want: "RUN_ERROR answer_too_large"},
		"shows-key":   {answers: always(llmtest.Refuse(400, "bad", "the key "+modelKey+" has no credit")), want: "RUN_ERROR model_refused: [key]"},
		"not-a-model": {answers: always(llmtest.Plain(200, "text/html", "<html>hello</html>")), want: "RUN_ERROR model_malformed: base URL"},
		"no-json":     {answers: always(llmtest.Stream(llmtest.Raw("data: {nothing}\n\n"))), want: "RUN_ERROR model_malformed"},
	})
}

// S3-033: a provider that does not answer, or not to the end, holds a run no longer than
// the agent's limits say, and the end names the limit.
func TestProvidersThatDoNotAnswer(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and is silent
	must(t, err)
	t.Cleanup(func() { must(t, deaf.Close()) })
	drip := llmtest.Stream(strings.Split(strings.Repeat(": \n", 2000), ""))
	drip.Pace = 20 * time.Millisecond
	hangs := llmtest.Stream()
	hangs.Hang = true
	begins := llmtest.Stream(llmtest.Say("I begin "))
	begins.Hang = true
	cut := llmtest.Stream(llmtest.Say("I begin, ", "and so on"))
	cut.Cut = cut.Size() - 5
	gone := llmtest.Stream()
	gone.Cut = -1
	storm := llmtest.Refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down")
	playOdd(t, map[string]oddModel{
		"deaf":      {settings: ", idle: 100ms", base: "http://" + deaf.Addr().String() + "/v1", want: "RUN_ERROR model_timeout: 100ms, the limit idle of the model"},
		"headers":   {settings: ", idle: 100ms", answers: always(hangs), want: "RUN_ERROR model_timeout: 100ms, the limit idle of the model"},
		"half-said": {settings: ", idle: 100ms", answers: always(begins), want: "RUN_ERROR model_timeout: 100ms, the limit idle of the model"},
		"drips":     {settings: ", total: 500ms", answers: always(drip), want: "RUN_ERROR model_timeout: 500ms, the limit total of the model"},
		"wall":      {settings: "}, limits: {wall: 300ms", answers: always(begins), want: "RUN_ERROR timeout: 300ms, the limit wall of its agent"},
		"storm":     {answers: always(storm.With("Retry-After-Ms", "20")), want: "RUN_ERROR model_unavailable: (tried 4 times)"},
		"long":      {settings: ", total: 500ms", answers: always(storm.With("Retry-After", "86400")), want: "RUN_ERROR model_unavailable: slow down"},
		"broke":     {answers: always(llmtest.Refuse(429, "insufficient_quota", "you have no credit")), want: "RUN_ERROR model_unavailable: no credit"},
		"down":      {answers: always(llmtest.Refuse(503, "", "overloaded").With("Retry-After-Ms", "20")), want: "RUN_ERROR model_unavailable: (tried 4 times)"},
		"cut":       {answers: always(cut), want: "RUN_ERROR answer_cut"},
		"gone":      {answers: always(gone), want: "RUN_ERROR model_unavailable: closed the connection (tried 4 times)"},
	})
}
