package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
	"github.com/hutch-run/hutch/runtime/session"
)

// H-17, H-22: without a word about it there are 16 runs at once, 4 of an agent, and threads
// are kept 90 days.
func TestH_17_H_22_DefaultsOfTheEngine(t *testing.T) {
	cfg, err := readConfig(t, "", nil)
	must(t, err)
	got, want := fmt.Sprintf("%+v", cfg.Engine), fmt.Sprintf("%+v", session.Options{
		PerAgent: 4, PerProcess: 16, QueuePerThread: 16, Queue: 256, KeepThreads: 90 * day, KeepEvents: 30 * day, Threads: 10_000,
		Thread: session.Bounds{Messages: 20_000, Bytes: 64 << 20}, EventBytes: 64 << 20, Window: session.Bounds{Messages: 200, Bytes: 512 << 10},
	})
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, wrong := range []string{"runs: {at_once: 0}", "runs: {queue: -1}", "threads: {keep: 90d}", "threads: {keep: 100000h}", "threads: {bytes: 1KiB}", "threads: {bytes: 64}", "threads: {kept: 1h}"} {
		if _, err := readConfig(t, wrong+"\n", nil); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// H-22: as many runs there are at once, and wait, as are configured.
func TestH_22_RunsAtOnceAreConfigured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow.yaml")
	must(t, os.WriteFile(file, []byte("- delay: 60s\n- say: late\n"), 0o600))
	agents := "\nagents:\n  one: {default: true, model: {kind: script, script: " + file + "}}\n  two: {model: {kind: script, script: " + file + "}}\n"
	for _, c := range []struct {
		runs    string
		started []bool // of a run of one, another of one, and one of two
		busy    bool   // for a fourth
	}{
		{"", []bool{true, true, true}, false},
		{"runs: {per_agent: 1}", []bool{true, false, true}, false},
		{"runs: {at_once: 2}", []bool{true, true, false}, false},
		{"runs: {at_once: 1, queue: 2}", []bool{true, false, false}, true},
	} {
		t.Run(c.runs, func(t *testing.T) {
			e := testEngine(t, nil, c.runs+agents)
			for i, agent := range []string{"one", "one", "two"} {
				v, err := e.visit(access.Anyone(), agent, faceAGUI)
				must(t, err)
				id := fmt.Sprint("t", i)
				s, err := v.submit(t.Context(), input(id, "r", says("m", "x")))
				must(t, err)
				t.Cleanup(s.Close)
				if _, runs := v.keeper.Active(v.who, session.Ref{Owner: v.who.Name, ID: id}); runs != c.started[i] {
					t.Errorf("run %d of %s: in progress is %v, want %v", i, agent, runs, c.started[i])
				}
			}
			v, err := e.visit(access.Anyone(), "two", faceAGUI)
			must(t, err)
			s, err := v.submit(t.Context(), input("t3", "r", says("m", "x")))
			if err == nil {
				t.Cleanup(s.Close)
			}
			if errors.Is(err, session.ErrBusy) != c.busy {
				t.Errorf("a fourth run: %v, want busy: %v", err, c.busy)
			}
		})
	}
}

// H-17, E3-20: what is kept of threads is bounded as configured.
func TestH_17_E3_20_ThreadsAreBoundedAsConfigured(t *testing.T) {
	e := testEngine(t, nil, "threads: {per_principal: 2}\n"+twoAgents)
	v, err := e.visit(access.Identity{Principal: "ann"}, "", faceAGUI)
	must(t, err)
	for i := range 4 {
		_, err := ran(t, v, input(fmt.Sprint("t", i), "r", says("m", "x")))
		must(t, err)
	}
	page, err := v.Threads(t.Context(), agui.ThreadsQuery{Limit: 9})
	must(t, err)
	if len(page.Threads) != 2 || page.Threads[0].ID != "t3" {
		t.Errorf("kept are %+v, want two, the last one first", page.Threads)
	}
}

// S3-019, E3-12: tools change the state, and are called again and again, where the agent says
// so; no other ones do.
func TestS3_019_E3_12_ToolsOfAgentsByName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "paint.yaml")
	must(t, os.WriteFile(file, []byte(`
- match: {text: '^(?P<color>\w+)$'}
  call: {tool: paint, args: {color: "${color}"}}
- match: {text: look, role: user}
  call: {tool: look, args: {}}
- match: {tool: look}
  call: {tool: look, args: {}}
- say: done
`), 0o600))
	for _, c := range []struct {
		agent string
		// kinds are of what is told of the state. looks are how often a tool is called with the
		// same arguments, for which there are five rounds.
		kinds []event.Type
		looks int
	}{
		{"polling_tools: [look], state_tools: [paint], ", []event.Type{event.TypeStateSnapshot, event.TypeStateSnapshot, event.TypeStateDelta}, 5},
		{"state_tools: [look], ", nil, 3},
		{"", nil, 3},
	} {
		t.Run(c.agent, func(t *testing.T) {
			e := testEngine(t, someTools{"paint", "look"}, "agents:\n  a: {"+c.agent+"limits: {rounds: 5}, model: {kind: script, script: "+file+"}}\n")
			v, err := e.visit(access.Anyone(), "", faceAGUI)
			must(t, err)
			var kinds []event.Type
			for _, color := range []string{"green", "blue"} {
				all, err := ran(t, v, input("t", color, says(color, color)))
				must(t, err)
				for _, e := range all {
					if e.Type() == event.TypeStateSnapshot || e.Type() == event.TypeStateDelta {
						kinds = append(kinds, e.Type())
					}
				}
			}
			if !slices.Equal(kinds, c.kinds) {
				t.Errorf("%v, want %v", kinds, c.kinds)
			}
			all, _ := ran(t, v, input("u", "r", says("look", "please look")))
			looks := 0
			for _, e := range all {
				if r, ok := e.(event.ToolCallResult); ok && strings.HasPrefix(r.Content.String(), faceAGUI) {
					looks++
				}
			}
			if looks != c.looks {
				t.Errorf("called %d times, want %d", looks, c.looks)
			}
		})
	}
}

// What an agent says of its model is what the model is asked with, and what its face tells.
func TestModelsAreAskedAsConfigured(t *testing.T) {
	image := says("m", "")
	image.Content = chat.Parts(chat.Part{Type: chat.PartText, Text: "see"}, chat.Part{Type: "image", Source: &chat.Source{Type: "data", Value: "AA==", MimeType: "image/png"}})
	for _, c := range []struct {
		model string
		has   []string
		lacks string
		takes bool
	}{
		{"", []string{`"stream_options":{"include_usage":true}`, `"image_url"`}, "temperature", true},
		{"parts: none, usage: false, extra: [temperature=0.2, 'stop=[\"x\"]'], ", []string{`"temperature":0.2`, `"stop":["x"]`, "[image was left out"}, "stream_options", false},
	} {
		var asked string
		server := llmtest.Choose(t, func(r llmtest.Request) llmtest.Answer {
			asked = string(r.Body)
			return llmtest.Stream(llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Done())
		})
		e := testEngine(t, nil, "agents:\n  a: {model: {"+c.model+"kind: openai, name: m, base_url: "+server.URL+"}}\n")
		v, err := e.visit(access.Anyone(), "", faceAGUI)
		must(t, err)
		_, err = ran(t, v, input("t", "r", image))
		must(t, err)
		for _, part := range c.has {
			if !strings.Contains(asked, part) {
				t.Errorf("no %s in %s", part, asked)
			}
		}
		if strings.Contains(asked, c.lacks) {
			t.Errorf("%s is in %s", c.lacks, asked)
		}
		can, err := v.Capabilities(t.Context())
		must(t, err)
		if can.Multimodal.Input.Image != c.takes {
			t.Errorf("capabilities: %+v", can.Multimodal)
		}
	}
	for _, wrong := range []string{"parts: [image, none]", "parts: video", "extra: temperature", "extra: [temperature=hot]", "extra: [model=1]", "extra: [a=1, a=2]"} {
		if _, err := readConfig(t, "agents:\n  a: {model: {kind: openai, "+wrong+"}}\n", nil); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// S3-019: a module changes the state of a thread by what it answers, and a client reads that.
func TestS3_019_ModulesChangeTheState(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	file := filepath.Join(t.TempDir(), "paint.yaml")
	must(t, os.WriteFile(file, []byte("- match: {role: user}\n  call: {tool: paint, args: {}}\n- say: done\n"), 0o600))
	settled, err := readConfig(t, "agents:\n  a: {state_tools: [paint], model: {kind: script, script: "+file+"}}\n", nil)
	must(t, err)
	cfg.Agents = settled.Agents
	s := startServer(t, cfg, p, quiet)
	defer s.end(t)
	s.drop(t, "paint.wasm", dialecttest.Module{
		Tools: []tool.Spec{dialecttest.Spec("paint")},
		Do:    []dialecttest.Step{dialecttest.Result(`{"content":[{"type":"text","text":"painted"}],"_meta":{"ag-ui/state":{"color":"green"}}}`)},
	}.Bytes())
	s.awaitReadyModule(t, "paint.wasm")
	resp, err := http.Post(s.url+"/agui", "application/json", strings.NewReader(
		`{"threadId":"t","runId":"r","protocolVersion":"1.0","state":{"size":1},"messages":[{"id":"m","role":"user","content":"paint"}]}`))
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, errors.Join(err, resp.Body.Close()))
	for _, want := range []string{`"STATE_SNAPSHOT","snapshot":{"size":1}`, `"STATE_DELTA","delta":[{"op":"add","path":"/color","value":"green"}]`, `"RUN_FINISHED"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
