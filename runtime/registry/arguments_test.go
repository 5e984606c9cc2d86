package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker"
)

// withSchema is a world with one tool, take, of that input schema.
func withSchema(t *testing.T, schema string) *world {
	t.Helper()
	w := newWorld(t)
	w.apply(w.module("take.wasm", dialecttest.Module{Tools: []tool.Spec{
		{Name: "take", Description: "takes", InputSchema: json.RawMessage(schema)}}}))
	if m := w.Modules()[0]; m.Status != tool.Ready {
		t.Fatal(m.Reason)
	}
	return w
}

const taskSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["task_id", "agent"],
  "properties": {
    "task_id": {"type": "string", "pattern": "^TE-[0-9]+$"},
    "agent": {"type": "string", "minLength": 2, "maxLength": 5},
    "status": {"enum": ["todo", "done", null]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5, "multipleOf": 0.1},
    "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "minItems": 1, "uniqueItems": true},
    "filter": {"type": "object", "required": ["by"], "properties": {"by": {"const": "name"}}, "maxProperties": 1,
               "propertyNames": {"pattern": "^[a-z]+$"}},
    "who": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["slug", "team"]}]},
    "one": {"oneOf": [{"type": "integer"}, {"minimum": 5}]},
    "never": false,
    "not": {"not": {"type": "string"}},
    "some": {"type": "array", "contains": {"type": "integer"}},
    "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": false}
  },
  "dependentRequired": {"limit": ["status"]}
}`

func TestMessagesSayWhatToChange(t *testing.T) {
	const ok = `"task_id":"TE-1","agent":"bob"`
	tests := []struct{ args, want string }{
		{`{}`, `missing "task_id", "agent"`},
		{`{"task_id":"TE-1"}`, `missing "agent"`},
		{`{` + ok + `,"stauts":"todo"}`, `unknown "stauts", allowed are "agent", "filter", "labels", "limit", "never", "not", "one", "pair", "ratio", "some", "status", "task_id", "who"`},
		{`{"task_id":"12","agent":"bob"}`, `"task_id": found string "12", must match ^TE-[0-9]+$`},
		{`{"task_id":7,"agent":"bob"}`, `"task_id": found number 7, allowed is string`},
		{`{"task_id":"TE-1","agent":"x"}`, `"agent": 1 characters, at least 2`},
		{`{"task_id":"TE-1","agent":"ünïcödé"}`, `"agent": 7 characters, at most 5`},
		{`{` + ok + `,"status":"don"}`, `"status": found string "don", allowed are "todo", "done", null`},
		{`{` + ok + `,"status":null,"limit":0}`, `"limit": found number 0, at least 1`},
		{`{` + ok + `,"status":null,"limit":12345678901234567890}`, `"limit": found number 12345678901234567890, at most 100`},
		{`{` + ok + `,"status":null,"limit":1.5}`, `"limit": found number 1.5, allowed is integer`},
		{`{` + ok + `,"limit":5}`, `missing "status", needed beside "limit"`},
		{`{` + ok + `,"ratio":0}`, `"ratio": found number 0, must be more than 0`},
		{`{` + ok + `,"ratio":0.6}`, `"ratio": found number 0.6, must be less than 0.5`},
		{`{` + ok + `,"ratio":0.25}`, `"ratio": found number 0.25, must be a multiple of 0.1`},
		{`{` + ok + `,"labels":[]}`, `"labels": 0 items, at least 1`},
		{`{` + ok + `,"labels":["a","b","c","d"]}`, `"labels": 4 items, at most 3`},
		{`{` + ok + `,"labels":["a","b","a"]}`, `"labels": items 0 and 2 are equal, each must be different`},
		{`{` + ok + `,"labels":["a",2]}`, `"labels[1]": found number 2, allowed is string`},
		{`{` + ok + `,"labels":"a"}`, `"labels": found string "a", allowed is array`},
		{`{` + ok + `,"filter":{}}`, `"filter": missing "by"`},
		{`{` + ok + `,"filter":{"by":"id"}}`, `"filter.by": found string "id", allowed is "name"`},
		{`{` + ok + `,"filter":{"by":"name","a":1}}`, `"filter": 2 properties, at most 1`},
		{`{` + ok + `,"filter":{"B":"name"}}`, `"filter": missing "by"; "filter": the name "B" is not allowed here`},
		{`{` + ok + `,"who":{"slug":1}}`, `"who": found an object, allowed is integer (the closest of 2 forms)`},
		{`{` + ok + `,"one":7}`, `"one": fits more than one of the allowed forms, must fit exactly one`},
		{`{` + ok + `,"never":1}`, `"never": nothing is allowed here, leave it out`},
		{`{` + ok + `,"not":"a"}`, `"not": found string "a", which is ruled out`},
		{`{` + ok + `,"some":["a"]}`, `"some": none of the items is of the kind that must be there`},
		{`{` + ok + `,"pair":[1,2]}`, `"pair[1]": nothing is allowed here, leave it out`},
		{`{"agent":1,"limit":"x","status":"y","labels":{},"ratio":[],"pair":{},"never":0}`,
			`missing "task_id"; "agent": found number 1, allowed is string; "labels": found an object, allowed is array; ` +
				`"limit": found string "x", allowed is integer; "never": nothing is allowed here, leave it out; 3 more problems`},
		{`{"task_id":"` + strings.Repeat("é", 500) + `","agent":"bob"}`,
			`"task_id": found string "` + strings.Repeat("é", 28) + `…", must match ^TE-[0-9]+$`},
	}
	w := withSchema(t, taskSchema)
	for _, tt := range tests {
		_, err := w.text("take", tt.args)
		if !errors.Is(err, tool.ErrInvalid) {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		if want := `invalid arguments for "take": ` + tt.want; err.Error() != want {
			t.Errorf("%.200s:\n got %s\nwant %s", tt.args, err, want)
		}
	}
	good := `{` + ok + `,"status":"done","limit":100,"labels":["a"],"filter":{"by":"name"},"who":3,"one":2,"some":[1],"pair":[1]}`
	if got, err := w.text("take", good); err != nil || got != "take"+good {
		t.Errorf("good arguments: %q, %v", got, err)
	}
}

// Arguments are one JSON object, read alike by everyone (E10, E11).
func TestE11_ArgumentsAreStrictJSON(t *testing.T) {
	w := withSchema(t, `{"type":"object"}`)
	for args, want := range map[string]string{
		`[1]`:                    "found an array of 1, allowed is an object",
		`"{}"`:                   `found string "{}", allowed is an object`,
		`null`:                   "found null, allowed is an object",
		`{"a":1}<|end|>`:         "after the value",
		`{"a":1,"a":2}`:          "key a stands twice",
		`{"a":"` + "\xff" + `"}`: "invalid UTF-8",
		`{"a":"\ud800"}`:         "surrogate",
		`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`: "64",
		`{"a":1e99999}`: "exponent",
		`{"a":1e9999}`:  "number 1e9999 has 10000 digits when it is written out, at most 400",
		`{"a":NaN}`:     "json",
		`{'a':1}`:       "json",
	} {
		if _, err := w.text("take", args); !errors.Is(err, tool.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", args, err, want)
		}
	}
}

func TestArgumentsHaveALargestSize(t *testing.T) {
	w := withSchema(t, `{"type":"object"}`)
	w.o.Limits.InputBytes = 20
	w.Reconsider(t.Context())
	if _, err := w.text("take", `{"a":"0123456789ab"}`); err != nil {
		t.Errorf("20 bytes: %v", err)
	}
	_, err := w.text("take", `{"a":"0123456789abc"}`)
	if !errors.Is(err, tool.ErrInvalid) || !strings.Contains(err.Error(), "21 bytes, at most 20 (limits.input)") || tool.LimitOf(err) != "input" {
		t.Errorf("21 bytes: %v", err)
	}
}

// Numbers reach the guest as the caller wrote them.
func TestNumbersReachTheGuestAsWritten(t *testing.T) {
	w := withSchema(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	args := `{"n": 9007199254740993, "m":12345678901234567890,"x":1.0E+2, "y" :-0 }`
	if got, err := w.text("take", args); err != nil || got != "take"+args {
		t.Errorf("the guest got %q, %v", got, err)
	}
}

func TestArgumentsAreCheckedAgainstTheOwnSchema(t *testing.T) {
	// Published, the combinator at the root is gone; it is enforced all the same.
	w := withSchema(t, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
		"oneOf":[{"required":["a"]},{"required":["b"]}]}`)
	if strings.Contains(string(w.List(tool.Caller{})[0].InputSchema), "oneOf") {
		t.Fatal("the published schema still has oneOf")
	}
	if _, err := w.text("take", `{"a":1,"b":2}`); !errors.Is(err, tool.ErrInvalid) {
		t.Errorf("both: %v", err)
	}
	if _, err := w.text("take", `{"b":2}`); err != nil {
		t.Errorf("one: %v", err)
	}
}

func TestOlderDraftsAreRead(t *testing.T) {
	w := withSchema(t, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
		"properties":{"d":{"type":"string","format":"date"},"t":{"type":"array","items":[{"type":"integer"}],"additionalItems":false}}}`)
	if _, err := w.text("take", `{"d":"2026-11-30","t":[1]}`); err != nil {
		t.Error(err)
	}
	for args, want := range map[string]string{
		`{"d":"30.11.2026"}`: `"d": found string "30.11.2026", must be of format date`,
		`{"t":[1,2]}`:        `"t": 1 items too many`,
	} {
		if _, err := w.text("take", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestPatternsGoCannotReadAreLeftToTheTool(t *testing.T) {
	w := withSchema(t, `{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!x)"}}}`)
	if _, err := w.text("take", `{"p":"x"}`); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(w.Modules()[0].Tools[0].Warnings); !strings.Contains(got, "is not checked by hutch") {
		t.Errorf("warnings: %s", got)
	}
}

// failures of a worker, and what the caller is told; one row for each class.
func TestFailuresAreToldInOneTable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind error
		text string
	}{
		{abi.Failf(abi.ClassTimeout, "took 30 s"), tool.ErrTimeout, `tool "take": took 30 s: ask for less, or try again`},
		{abi.Failf(abi.ClassCancelled, "gone"), tool.ErrCancelled, `tool "take": gone`},
		{abi.Failf(abi.ClassLimit, "out of memory"), tool.ErrLimit, `tool "take": out of memory: ask for less`},
		{abi.Exceeded(abi.ClassLimit, abi.LimitOutput, "9 bytes"), tool.ErrLimit, `tool "take": 9 bytes (limits.output): ask for less`},
		{abi.Exceeded(abi.ClassBusy, abi.LimitQueue, "3 wait"), tool.ErrBusy, `tool "take": 3 wait (limits.queue)`},
		{abi.Failf(abi.ClassTrap, "unreachable\n\x1b[2J"), tool.ErrFailed, `tool "take": unreachable �[2J: this tool cannot do it, use another`},
		{abi.Failf(abi.ClassModule, "no"), tool.ErrFailed, `tool "take": no: this tool cannot run, use another`},
		{abi.Failf(abi.ClassWorkerLost, "lost"), tool.ErrUnavailable, `tool "take": lost: try again`},
		{abi.Failf(abi.ClassInternal, "no"), tool.ErrUnavailable, `tool "take": no: try again later`},
		{context.Canceled, tool.ErrCancelled, `tool "take": cancelled`},
		{context.DeadlineExceeded, tool.ErrTimeout, `tool "take": timeout: ask for less, or try again`},
		{errors.New("open /secret/path"), tool.ErrUnavailable, `tool "take": could not be run: try again later`},
	} {
		w := withSchema(t, `{"type":"object"}`)
		w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) { return nil, tt.err }
		_, err := w.text("take", `{}`)
		if !errors.Is(err, tt.kind) || err.Error() != tt.text {
			t.Errorf("%v: got %v", tt.err, err)
		}
		var f *abi.Failure
		if errors.As(tt.err, &f) && tool.LimitOf(err) != string(f.Limit) {
			t.Errorf("%v: the limit is %q", err, tool.LimitOf(err))
		}
	}
}

// What the tool itself reports is an answer that the model reads (P06: capped).
func TestGuestErrorsAreAnswers(t *testing.T) {
	w := withSchema(t, `{"type":"object"}`)
	w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) {
		return nil, &abi.Failure{Class: abi.ClassGuest, Text: "no such file\x00\x1b[31m" + strings.Repeat("é", 10_000)}
	}
	res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "take"})
	if err != nil || !res.IsError || !strings.HasPrefix(res.Content[0].Text, "no such file��[31mé") {
		t.Fatalf("%+.200v, %v", res, err)
	}
	if n := len(res.Content[0].Text); n > maxFailureText {
		t.Errorf("%d bytes of text, at most %d", n, maxFailureText)
	}
}

func TestProgressIsPassedOn(t *testing.T) {
	w := withSchema(t, `{"type":"object"}`)
	w.workers.call = func(_ context.Context, _ worker.Module, in abi.Invocation) ([]byte, error) {
		for _, raw := range []string{`{"progress":1,"total":2,"message":"half\nway"}`, `nonsense`, `[]`, `{"progress":"x"}`, `{"progress":{"a":{}}}`} {
			in.Progress(json.RawMessage(raw))
		}
		return rawjson.Marshal(tool.Text("ok"))
	}
	var got []tool.Progress
	call := tool.Call{Name: "take", Progress: func(p tool.Progress) { got = append(got, p) }}
	if _, err := w.Call(t.Context(), tool.Caller{}, call); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != (tool.Progress{Progress: 1, Total: 2, Message: "half way"}) {
		t.Errorf("progress: %+v", got)
	}
}
