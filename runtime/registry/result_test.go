package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker"
)

// answering is a world with one tool, ask, that answers so.
func answering(t *testing.T, outputSchema, answer string) *world {
	t.Helper()
	w := newWorld(t)
	s := dialecttest.Spec("ask")
	if outputSchema != "" {
		s.OutputSchema = json.RawMessage(outputSchema)
	}
	w.apply(w.module("ask.wasm", dialecttest.Module{Tools: []tool.Spec{s}}))
	w.says("ask.wasm", tool.Ready, "")
	w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) { return []byte(answer), nil }
	return w
}

const countSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`

func TestResultsAreMadeFitForHosts(t *testing.T) {
	tests := []struct{ name, schema, answer, want string }{
		{"plain text", "", `{"content":[{"type":"text","text":"hi"}]}`,
			`{"content":[{"type":"text","text":"hi"}]}`},
		{"no content at all", "", `{"content":[]}`, `{"content":[]}`},
		{"structure without text", countSchema, `{"structuredContent":{"n": 12345678901234567890}}`,
			`{"content":[{"type":"text","text":"{\"n\":12345678901234567890}"}],"structuredContent":{"n":12345678901234567890}}`},
		{"structure with a picture", countSchema, `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":{"n":1}}`,
			`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
		{"structure with its own text", countSchema, `{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`,
			`{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`},
		{"structure nobody announced", "", `{"structuredContent":{"x":1}}`,
			`{"content":[{"type":"text","text":"{\"x\":1}"}],"structuredContent":{"x":1}}`},
		{"an array as structure", `{"type":"array","items":{"type":"integer"}}`, `{"structuredContent":[1,2]}`,
			`{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`},
		{"a text as structure", `{"type":"string"}`, `{"structuredContent":"a"}`, `{"content":[{"type":"text","text":"\"a\""}]}`},
		{"an error without structure", countSchema, `{"content":[{"type":"text","text":"no"}],"isError":true}`,
			`{"content":[{"type":"text","text":"no"}],"isError":true}`},
		{"an error with structure", countSchema, `{"isError":true,"structuredContent":{"why":"no"}}`,
			`{"content":[{"type":"text","text":"{\"why\":\"no\"}"}],"isError":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := answering(t, tt.schema, tt.answer)
			res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "ask"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := rawjson.Marshal(res); err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// E10: text that is no UTF-8 goes no further, whatever a guest puts it into.
func TestE10_TextThatIsNotUTF8(t *testing.T) {
	for name, bad := range map[string]string{
		"bytes that begin nothing": "\xff\xfe", "a surrogate": "\xed\xa0\x80", "overlong": "\xc0\x80", "cut off": "\xe2\x82",
	} {
		t.Run(name, func(t *testing.T) {
			w := answering(t, "", `{"content":[{"type":"text","text":"`+bad+`"}]}`)
			if text, err := w.text("ask", `{}`); err == nil {
				t.Errorf("result %q", text)
			} else if !utf8.ValidString(err.Error()) {
				t.Errorf("error %q", err)
			}
			w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) {
				return nil, abi.Failf(abi.ClassGuest, "no luck %s today", bad)
			}
			res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "ask"})
			if err != nil || !res.IsError || !utf8.ValidString(res.Content[0].Text) || !strings.HasPrefix(res.Content[0].Text, "no luck ") {
				t.Errorf("error of the guest: %+v, %v", res, err)
			}
		})
	}
}

func TestResultsThatBreakTheirPromiseFail(t *testing.T) {
	tests := []struct{ name, schema, answer, want string }{
		{"another type", countSchema, `{"structuredContent":{"n":"1"}}`, `structuredContent: "n": found string "1", allowed is integer`},
		{"not there", countSchema, `{"content":[{"type":"text","text":"{\"n\":1}"}]}`, "there is no structuredContent"},
		{"null", countSchema, `{"content":[],"structuredContent":null}`, "there is no structuredContent"},
		{"no JSON", "", `hello`, "json"},
		{"nothing", "", ``, "nothing was written"},
		{"key twice (E11)", "", `{"content":[],"content":[]}`, "content"},
		{"invalid UTF-8 (E10)", "", "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}", "invalid UTF-8"},
		{"surrogate in UTF-8 (E10)", "", "{\"content\":[{\"type\":\"text\",\"text\":\"\xed\xa0\x80\"}]}", "invalid UTF-8"},
		{"overlong (E10)", "", "{\"content\":[{\"type\":\"text\",\"text\":\"\xc0\x80\"}]}", "invalid UTF-8"},
		{"too deep (E11)", "", `{"content":[],"structuredContent":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, "64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := answering(t, tt.schema, tt.answer).text("ask", `{}`)
			if !errors.Is(err, tool.ErrFailed) || !strings.HasPrefix(err.Error(), `tool "ask" answered what it may not: `) ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("Call = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestResultsHaveALargestSize(t *testing.T) {
	answer := `{"content":[{"type":"text","text":"hi"}]}`
	w := answering(t, "", answer)
	w.o.Limits.OutputBytes = len(answer)
	w.Reconsider(t.Context())
	if _, err := w.text("ask", `{}`); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	w.o.Limits.OutputBytes--
	w.Reconsider(t.Context())
	if _, err := w.text("ask", `{}`); !errors.Is(err, tool.ErrLimit) {
		t.Errorf("one byte over: %v", err)
	}
}

// What a call used up stands in its result, however it ended, and where a module
// writes something else, that does not count.
func TestCallsSayWhatTheyUsed(t *testing.T) {
	const said = `"io.github.hutch-run/usage":{"fuel":9007199254740993,"hostCalls":2}`
	used := abi.Usage{Fuel: 9007199254740993, HostCalls: 2, LogLines: 7}
	for name, c := range map[string]struct {
		answer string
		fails  error
		meta   string // of a result; empty: an error
	}{
		"an answer":        {answer: `{"content":[]}`, meta: "{" + said + "}"},
		"a module's _meta": {answer: `{"content":[],"_meta":{"a.example/n":1.0}}`, meta: `{"a.example/n":1.0,` + said + "}"},
		"a lie":            {answer: `{"content":[],"_meta":{"io.github.hutch-run/usage":{"fuel":1},"io.github.hutch-run/x":1}}`, meta: "{" + said + "}"},
		"its own error":    {fails: abi.Failf(abi.ClassGuest, "no luck"), meta: "{" + said + "}"},
		"a trap":           {fails: abi.Failf(abi.ClassTrap, "unreachable")},
		"a limit":          {fails: abi.Exceeded(abi.ClassLimit, abi.LimitFuel, "too much")},
		"not an answer":    {answer: `hello`},
	} {
		t.Run(name, func(t *testing.T) {
			w := answering(t, "", "")
			w.workers.used = used
			w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) { return []byte(c.answer), c.fails }
			res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "ask"})
			got := res.Usage
			if c.meta == "" {
				got = tool.UsageOf(err)
			}
			if want := (tool.Usage{Fuel: used.Fuel, HostCalls: used.HostCalls}); got != want || string(res.Meta) != c.meta || (err != nil) != (c.meta == "") {
				t.Errorf("used %+v, _meta %s, %v; want %+v, %s", got, res.Meta, err, want, c.meta)
			}
		})
	}
}

// A call that nobody ran says nothing, and a module may not say it instead.
func TestUnknownUsageIsNotMadeUp(t *testing.T) {
	w := answering(t, "", `{"content":[],"_meta":{"io.github.hutch-run/usage":{"fuel":1}}}`)
	if res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "ask"}); err != nil || res.Meta != nil {
		t.Errorf("_meta %s, %v", res.Meta, err)
	}
	_, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "ask", Arguments: json.RawMessage(`[]`)})
	if u := tool.UsageOf(err); err == nil || u != (tool.Usage{}) {
		t.Errorf("a refused call used %+v, %v", u, err)
	}
}
