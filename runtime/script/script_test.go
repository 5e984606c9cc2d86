package script_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
	"github.com/hutch-run/hutch/runtime/script"
)

func played(t testing.TB, text string) *script.Model {
	t.Helper()
	s, err := script.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScriptContract(t *testing.T) {
	llmtest.Contract(t, llmtest.Subject{
		Say: func(t *testing.T, _ string, _ int) llmtest.Model { return played(t, `- say: "${text}"`) },
		Call: func(t *testing.T, calls []chat.FunctionCall, _ int) llmtest.Model {
			var list []string
			for _, c := range calls {
				list = append(list, fmt.Sprintf(`{"tool": %q, "args": %s}`, c.Name, c.Arguments))
			}
			return played(t, "- call: ["+strings.Join(list, ", ")+"]")
		},
		Fail: func(t *testing.T) llmtest.Model { return played(t, `- {say: some, fail: "then\nnothing"}`) },
		Slow: func(t *testing.T) llmtest.Model { return played(t, "- delay: 1m\n- say: late") },
	})
}

// A conversation is written as who says what: "u:" a user, "a:" the assistant, "c:" a
// call of a tool (name, space, id), "t:" its answer (id, space, text), "r:" a thought.
func conversation(lines ...string) (r chat.Request) {
	for i, line := range lines {
		who, what, _ := strings.Cut(line, ":")
		m := chat.Message{ID: fmt.Sprint("m", i), Content: chat.Text(what)}
		first, rest, _ := strings.Cut(what, " ")
		switch who {
		case "u":
			m.Role = chat.User
		case "a":
			m.Role = chat.Assistant
		case "r":
			m.Role = chat.Reasoning
		case "c":
			m.Role, m.Content = chat.Assistant, chat.Content{}
			m.ToolCalls = []chat.ToolCall{{ID: rest, Type: "function", Function: chat.FunctionCall{Name: first, Arguments: "{}"}}}
		case "t":
			m.Role, m.ToolCallID, m.Content = chat.Tool, first, chat.Text(rest)
		case "e":
			m.Role, m.ToolCallID, m.Content, m.Error = chat.Tool, first, chat.Content{}, rest
		}
		r.Messages = append(r.Messages, m)
	}
	return r
}

func TestScripts(t *testing.T) {
	const tasks = `
- match: {text: '^done (?P<key>TE-\d+)$'}
  call: {tool: get_task, args: {key: "${key}"}}
- match: {tool: get_task, result: '"status": *"open"'}
  say: "Closing ${result.title}. "
  call:
    - {tool: update_task, args: {id: "${result.id}", version: "${result.version}", labels: ["${result.labels.1}", x], by: {name: "me: ${result.title}"}, force: true, n: 1.50, none: }}
    - {tool: now}
- match: {tool: update_task}
  say: "${results.get_task.title} is closed (${result})"
- match: {role: tool}
  fail: "${result}"
- match: {text: '(\d+) and (\d+)'}
  call: {tool: add, args: {a: "${1|json}", b: "${2}", all: "${0}"}}
- match: {text: raw}
  call: {tool: add, args: '{"a": "${text}'}
- match: {text: pay}
  ask: {tool: confirm, args: {what: "$${text} ${text}"}}
- match: {text: pay}
  say: "ask me where I can ask you"
- match: {text: nothing}
  say: ""
  usage: {input: 12, output: 1}
- match: {role: assistant}
  say: |
    go
    on
`
	const task = `{"id": 9007199254740993, "version": 1.0, "title": "Fix <it>", "labels": ["a", {"b": null}], "status": "open"}`
	withConfirm := func(r chat.Request) chat.Request {
		r.Tools = []chat.Function{{Name: "other"}, {Name: "confirm"}}
		return r
	}
	s := played(t, tasks)
	for name, tt := range map[string]struct {
		request chat.Request
		want    string // as of summary; an error is shown instead
	}{
		"a group of an expression":   {conversation("u:done TE-15"), `|get_task({"key":"TE-15"}) calls`},
		"parts of a result":          {conversation("u:done TE-15", "c:get_task call_1", "t:call_1 "+task), `Closing Fix <it>. |update_task({"id":9007199254740993,"version":1.0,"labels":[{"b":null},"x"],"by":{"name":"me: Fix <it>"},"force":true,"n":1.50,"none":null})|now({}) calls`},
		"an earlier result":          {conversation("u:done TE-15", "c:get_task call_1", "t:call_1 "+task, "c:update_task call_2", "t:call_2 ok"), "Fix <it> is closed (ok) end"},
		"thoughts do not count":      {conversation("u:done TE-15", "c:get_task call_1", "t:call_1 "+task, "c:update_task call_2", "t:call_2 ok", "r:hm"), "Fix <it> is closed (ok) end"},
		"any of several results":     {conversation("u:x", "c:now x", "c:update_task y", "c:get_task z", "t:z {\"title\": \"T\"}", "t:x 12", "t:y ok"), "T is closed (ok) end"},
		"no step but the last":       {conversation("u:done TE-15", "c:get_task call_1", "t:call_1 gone"), " ! the provider is unavailable: gone"},
		"a failure in the client":    {conversation("u:x", "c:f call_1", "e:call_1 closed"), " ! the provider is unavailable: closed"},
		"numbers":                    {conversation("u:add 2 and 40"), `|add({"a":2,"b":"40","all":"2 and 40"}) calls`},
		"arguments as they are":      {conversation("u:raw"), `|add({"a": "raw) calls`},
		"a tool that the client has": {withConfirm(conversation("u:pay")), `|confirm({"what":"${text} pay"}) calls`},
		"a tool that it has not":     {conversation("u:pay"), "ask me where I can ask you end"},
		"nothing to say":             {conversation("u:say nothing"), " end 12+1"},
		"another role":               {conversation("u:x", "a:y"), "go\non\n end"},
		"no step":                    {conversation("u:x"), ` ! refused by the provider: s.yaml: no step fits: last in the conversation is a message of role "user"`},
		"no conversation":            {chat.Request{}, ` ! refused by the provider: s.yaml: no step fits: last in the conversation is a message of role ""`},
		"a part that is missing":     {conversation("u:x", "c:get_task x", `t:x {"status": "open", "title": "T", "id": 1}`), ` ! refused by the provider: s.yaml:4: update_task: "version": ${result.version}: the result has no "version" there`},
		"a result that is no JSON":   {conversation("u:x", "c:get_task x", `t:x "status": "open"`), ` ! refused by the provider: s.yaml:4: ${result.title}: the result is not JSON`},
		"an answer that never came":  {conversation("u:x", "c:update_task x", "t:x ok"), ` ! refused by the provider: s.yaml:9: ${results.get_task.title}: that tool has not answered yet`},
	} {
		t.Run(name, func(t *testing.T) {
			got := llmtest.Take(t, s.Stream(t.Context(), tt.request))
			is := got.String()
			if got.Err != nil {
				is += "! " + got.Err.Error()
			}
			if is != tt.want {
				t.Errorf("%s\nwant %s", is, tt.want)
			}
		})
	}
}

func TestScriptsFailAsTheySay(t *testing.T) {
	for as, want := range map[string]error{
		"unavailable": chat.ErrUnavailable, "refused": chat.ErrRefused, "overflow": chat.ErrOverflow, "timeout": chat.ErrTimeout,
		"limit": chat.ErrLimit, "cut": chat.ErrCut, "malformed": chat.ErrMalformed,
	} {
		s := played(t, "- fail: {as: "+as+", text: at once}")
		if got := llmtest.Take(t, s.Stream(t.Context(), llmtest.Ask("go"))); !errors.Is(got.Err, want) || !strings.HasSuffix(got.Err.Error(), ": at once") {
			t.Errorf("%s: %v", as, got.Err)
		}
	}
}

// TestScriptsAreTheSameEachTime, ids and all.
func TestScriptsAreTheSameEachTime(t *testing.T) {
	s := played(t, "- call: [{tool: a}, {tool: b}]")
	for request, want := range map[string][]string{
		"u:go":                       {"call_1", "call_2"},
		"u:go|c:a call_7|t:call_7 x": {"call_8", "call_9"},
		"u:go|c:a call_x|t:call_x x": {"call_1", "call_2"},
	} {
		for range 2 {
			var ids []string
			for _, c := range llmtest.Take(t, s.Stream(t.Context(), conversation(strings.Split(request, "|")...))).Calls {
				ids = append(ids, c.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s: %q, want %q", request, ids, want)
			}
		}
	}
}

func TestDelaysAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := played(t, "- delay: 2s\n- match: {text: slow}\n  delay: 3s\n- say: ok")
		for text, want := range map[string]time.Duration{"slow": 5 * time.Second, "fast": 2 * time.Second} {
			begin := time.Now()
			if got := llmtest.Take(t, s.Stream(t.Context(), llmtest.Ask(text))); got.Text != "ok" || time.Since(begin) != want {
				t.Errorf("%s: %q, %v after %v", text, got.Text, got.Err, time.Since(begin))
			}
		}
	})
}

// TestWrongScripts: each error names line and key, and what to write instead.
func TestWrongScripts(t *testing.T) {
	many := "- call: [" + strings.Repeat("{tool: a},", 64) + "{tool: a}]"
	for text, want := range map[string]string{
		"":                               "s.yaml:1: a list is wanted here",
		"say: x":                         "s.yaml:1: a list is wanted here",
		"[]":                             "s.yaml:1: empty: name at least one",
		"- x":                            "s.yaml:1: [0]: keys and values are wanted here; there are match, say, call, ask, delay, fail, usage",
		"- say: a\n  sya: b":             "s.yaml:2: [0].sya: no such key; there are match, say, call, ask, delay, fail, usage",
		"- say: a\n  say: b":             "s.yaml:2: [0].say: stands there twice, first in line 1",
		"- match: {role: user}":          "s.yaml:1: [0]: does nothing: one of say, call, ask, delay, fail is wanted",
		"- {fail: a, call: {tool: b}}":   "s.yaml:1: [0]: does several things: one of call, ask, delay, fail is wanted",
		"- {delay: 1s, say: a}":          "s.yaml:1: [0]: a delay stands alone: what comes after it is a step of its own",
		"- {fail: a, usage: {input: 1}}": "s.yaml:1: [0]: a turn that fails has no usage: leave it away",
		"- say: a\n- say: b":             "s.yaml:2: [1]: never reached: the step in line 1 fits always",
		"- say:":                         `s.yaml:1: [0].say: a text is wanted here, "" if it is empty`,
		"- say: [a]":                     `s.yaml:1: [0].say: a text is wanted here, "" if it is empty`,
		"- {match: {}, say: a}":          "s.yaml:1: [0].match: matches nothing in particular: leave it away, or give role, text, tool or result",
		"- {match: {role: bot}, say: a}": "s.yaml:1: [0].match.role: no such role; there are [user tool assistant developer system]",
		"- {match: {text: '('}, say: a}": "s.yaml:1: [0].match.text: no expression: error parsing regexp: missing closing ): `(`",
		"- {match: {role: user, tool: a}, say: a}":                  `s.yaml:1: [0].match: can never match: role is "user", and tool and result are of role tool`,
		"- {match: {text: '(?P<text>a)'}, say: a}":                  `s.yaml:1: [0].match: group "text": the name is taken`,
		"- {match: {text: '(?P<a>a)', result: '(?P<a>a)'}, say: a}": `s.yaml:1: [0].match: group "a": the name is taken`,
		"- say: '${1}'":                         `s.yaml:1: [0].say: "${1}": no such name; there are text, result, results`,
		"- {match: {text: (a)}, say: '${2}'}":   `s.yaml:1: [0].say: "${2}": no such name; there are text, result, results, 0, 1`,
		"- say: '${text'":                       `s.yaml:1: [0].say: "${text" has no closing brace: write $${ for the two signs themselves`,
		"- say: '${text.a}'":                    `s.yaml:1: [0].say: "${text.a}": it is a text and has no parts`,
		"- say: '${result..a}'":                 `s.yaml:1: [0].say: "${result..a}": a part of the path is empty`,
		"- say: '${results}'":                   `s.yaml:1: [0].say: "${results}": which tool's? write ${results.TOOL}`,
		"- say: '${text|yaml}'":                 `s.yaml:1: [0].say: "${text|yaml}": after | stands json or nothing`,
		"- call: x":                             "s.yaml:1: [0].call: keys and values are wanted here; there are tool, args",
		"- call: []":                            "s.yaml:1: [0].call: empty: name at least one",
		"- call: {args: {}}":                    "s.yaml:1: [0].call: names no tool",
		"- call: {tool: ''}":                    "s.yaml:1: [0].call.tool: empty",
		"- call: {tool: a, args: [1]}":          "s.yaml:1: [0].call.args: keys and values are wanted here, or a text that goes out as it is",
		"- call: {tool: a, args: 1}":            "s.yaml:1: [0].call.args: keys and values are wanted here, or a text that goes out as it is",
		"- call: {tool: a, args: {b: 0x10}}":    `s.yaml:1: [0].call.args.b: "0x10" is no number of JSON: put it in quotes if it is a text`,
		"- call: {tool: a, args: {b: 1, b: 2}}": "s.yaml:1: [0].call.args.b: stands there twice",
		"- call:\n  - {tool: a}\n  - {tool: a, args: {b: {c: ['${x}']}}}": `s.yaml:3: [0].call[1].args.b.c[0]: "${x}": no such name; there are text, result, results`,
		many:                                 "s.yaml:1: [0].call: 65 calls: at most 64",
		"- delay: soon":                      "s.yaml:1: [0].delay: a time such as 500ms or 2s is wanted here, at most 10m0s",
		"- delay: 11m":                       "s.yaml:1: [0].delay: a time such as 500ms or 2s is wanted here, at most 10m0s",
		"- delay: -1s":                       "s.yaml:1: [0].delay: a time such as 500ms or 2s is wanted here, at most 10m0s",
		"- fail: {as: boom, text: x}":        "s.yaml:1: [0].fail.as: no such fault; there are unavailable, refused, overflow, timeout, limit, cut, malformed",
		"- fail: {as: cut}":                  "s.yaml:1: [0].fail: says nothing: a text is wanted",
		"- {say: a, usage: {input: many}}":   "s.yaml:1: [0].usage.input: a number of tokens is wanted here",
		"- {say: a, usage: {output: -1}}":    "s.yaml:1: [0].usage.output: a number of tokens is wanted here",
		"- say: &x a":                        "s.yaml:1: anchors (&) are not read: write the value where it belongs, or put it in quotes",
		"- {say: a, x: 1}\n- {say: b, y: 1}": "s.yaml:1: [0].x: no such key; there are match, say, call, ask, delay, fail, usage\ns.yaml:2: [1].y: no such key; there are match, say, call, ask, delay, fail, usage",
	} {
		if _, err := script.Parse("s.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.80s:\n%v\nwant %s", text, err, want)
		}
	}
}

// TestTheScriptOfTheDocumentation is one, and does what it says.
func TestTheScriptOfTheDocumentation(t *testing.T) {
	source, err := os.ReadFile("parse.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(source)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			text.WriteString(rest)
		}
	}
	s := played(t, text.String())
	for said, want := range map[string]string{
		"u:count a B": `|word_count({"text":"a B","lower":true}) calls`,
		"u:count a B|c:word_count x|t:x {\"words\":2}": "These are 2 words. end",
		"u:do both":      `|now({})|roll({"sides":6}) calls`,
		"u:are you sure": "I do not know what to do. end 12+8",
	} {
		got := llmtest.Take(t, s.Stream(t.Context(), conversation(strings.Split(said, "|")...)))
		if got.String() != want {
			t.Errorf("%s: %s, %v, want %s", said, got, got.Err, want)
		}
	}
}

// TestScriptsMayBeJSON: JSON is YAML too.
func TestScriptsMayBeJSON(t *testing.T) {
	s := played(t, `[{"match": {"role": "user"}, "call": {"tool": "f", "args": {"a": [1, "1", true, null, {"b": "${text}"}]}}}]`)
	got := llmtest.Take(t, s.Stream(t.Context(), llmtest.Ask("go")))
	if want := `|f({"a":[1,"1",true,null,{"b":"go"}]}) calls`; got.String() != want {
		t.Errorf("%s, %v, want %s", got, got.Err, want)
	}
}
