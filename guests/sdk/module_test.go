package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

type input1 struct {
	What  string `json:"what"`
	Bytes []int  `json:"bytes,omitempty"`
}

type output1 struct {
	Bytes []int `json:"bytes"`
}

func (o output1) Text() string { return "there are " + strconv.Itoa(len(o.Bytes)) }

// act does what it is told, so that one tool shows every outcome.
func act(c *Call, in input1) (output1, error) {
	switch in.What {
	case "fail":
		return output1{}, errors.New("cannot: try later")
	case "panic":
		panic("lost")
	case "panic with an error":
		panic(errors.New("bad state"))
	case "panic with a struct":
		panic(input1{})
	case "index":
		return output1{Bytes: in.Bytes[len(in.Bytes):][:1]}, nil
	case "talk":
		c.Debug("d")
		c.Info("i")
		c.Warn("w")
		c.Error("e")
		c.Progress(1, 2, "half of "+c.Tool())
		value, ok := c.Config("key")
		return output1{}, errors.New(value + strings.Repeat("!", map[bool]int{true: 1}[ok]))
	}
	return output1{}, nil
}

// listener is a Host that writes down what it is told.
type listener struct {
	lines  []string
	answer abi.Response // to what is gated
}

func (h *listener) Log(level abi.LogLevel, text string) {
	h.lines = append(h.lines, "log "+strconv.Itoa(int(level))+" "+text)
}

func (h *listener) Progress(p Progress) {
	h.lines = append(h.lines, fmt.Sprintf("progress %v/%v %s", p.Progress, p.Total, p.Message))
}

func (h *listener) Config(key string) (string, bool) {
	h.lines = append(h.lines, "config "+key)
	return "configured", true
}

func (h *listener) Gated(op Gated, body []byte) abi.Response {
	h.lines = append(h.lines, string(op.Op)+" "+string(body))
	return h.answer
}

var testModule = Serve(Module{Version: "1.2.3", Tools: []Tool{
	Define(Spec{Name: "act", Title: "Act", Description: "Acts."}, act),
	Define(Spec{Name: "say", Description: "Says."}, func(_ *Call, in input1) (string, error) { return in.What, nil }),
	Define(Spec{Name: "whole", Description: "Whole."}, func(_ *Call, in input1) (Result, error) {
		if in.What == "" {
			return Result{}, nil
		}
		return Result{IsError: true, Structured: json.RawMessage(`{}`), Content: []Content{{Type: "image", Data: "aGk=", MIMEType: "image/png"}}}, nil
	}),
	Define(Spec{Name: "nan", Description: "Cannot be written."}, func(*Call, struct{}) (map[string]json.Number, error) {
		return map[string]json.Number{"n": "x"}, nil
	}),
}})

func callTool(t *testing.T, h Host, name, args string) string {
	t.Helper()
	out, err := testModule.Call(h, []byte(`{"method":"tools/call","params":{"_meta":{"a":[1]},"name":"`+name+`","arguments":`+args+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestCall(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"act", `{"what":""}`, `{"content":[{"type":"text","text":"there are 0"}],"structuredContent":{"bytes":[]}}`},
		{"act", `{"what":"fail"}`, `{"content":[{"type":"text","text":"cannot: try later"}],"isError":true}`},
		{"act", `{}`, `{"content":[{"type":"text","text":"invalid arguments for act: missing property \"what\""}],"isError":true}`},
		{"say", `{"what":"grüße \u0000"}`, `{"content":[{"type":"text","text":"grüße \u0000"}]}`},
		{"whole", `{"what":""}`, `{"content":[]}`},
		{"whole", `{"what":"x"}`, `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":true}`},
		{"nan", `{}`, `{"content":[{"type":"text","text":"internal error in tool nan: result: json: invalid number literal \"x\""}],"isError":true}`},
	} {
		if got := callTool(t, &listener{}, c.name, c.args); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.name, c.args, got, c.want)
		}
	}
}

// A panic is a result for the model, and a stack for the author.
func TestPanic(t *testing.T) {
	for what, want := range map[string]string{
		"panic":               "lost",
		"panic with an error": "bad state",
		"panic with a struct": "panic with a sdk.input1",
		"index":               "runtime error: slice bounds out of range [:1] with capacity 0",
	} {
		h := &listener{}
		got := callTool(t, h, "act", `{"what":"`+what+`"}`)
		if want := `{"content":[{"type":"text","text":"internal error in tool act: ` + want + `"}],"isError":true}`; got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
		if len(h.lines) != 1 || !strings.Contains(h.lines[0], "module_test.go") {
			t.Errorf("%s: logged %q, want the stack", what, h.lines)
		}
	}
}

func TestHostCalls(t *testing.T) {
	h := &listener{}
	if got := callTool(t, h, "act", `{"what":"talk"}`); !strings.Contains(got, `"configured!"`) {
		t.Errorf("got %s", got)
	}
	want := []string{"log 1 d", "log 2 i", "log 3 w", "log 4 e", "progress 1/2 half of act", "config key"}
	if !reflect.DeepEqual(h.lines, want) {
		t.Errorf("the host heard %q, want %q", h.lines, want)
	}
}

// What is no call of a tool is the host's mistake, and reported as such.
func TestCallErrors(t *testing.T) {
	for in, want := range map[string]string{
		``:                             "call: EOF",
		`{"params":{"name":"act"}`:     "call: unexpected EOF",
		`{"params":{"name":"act"},}`:   "call: invalid character '}' looking for beginning of object key string",
		`{"params":{"name":"act"}}x`:   "call: more after the JSON value",
		`{"params":[]}`:                "call: json: cannot unmarshal array into Go struct field invocation.params of type sdk.params",
		`{}`:                           `no tool "" in this module`,
		`{"params":{"name":"nobody"}}`: `no tool "nobody" in this module`,
	} {
		if _, err := testModule.Call(&listener{}, []byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	m := Module{Version: "1.2.3", Tools: testModule.Tools[:2]}
	got, err := m.Describe()
	const schema = `{"type":"object","properties":{"what":{"type":"string"},"bytes":{"type":"array","items":{"type":"integer"}}},` +
		`"required":["what"],"additionalProperties":false}`
	const pure = `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
	want := `{"tools":[` +
		`{"name":"act","title":"Act","description":"Acts.","inputSchema":` + schema +
		`,"outputSchema":{"type":"object","properties":{"bytes":{"type":"array","items":{"type":"integer"}}},` +
		`"required":["bytes"],"additionalProperties":false},"annotations":` + pure + `},` +
		`{"name":"say","description":"Says.","inputSchema":` + schema + `,"annotations":` + pure + `}],"version":"1.2.3"}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestAnnotations(t *testing.T) {
	m := Module{Requests: Requests{HTTP: []HTTP{{Host: "api.example.org", Reason: "weather"}}}}
	for _, s := range []Spec{{}, {ReadOnly: true}, {Additive: true, Idempotent: true}, {ReadOnly: true, ClosedWorld: true}} {
		s.Name, s.Description = "t"+strconv.Itoa(len(m.Tools)), "Does."
		m.Tools = append(m.Tools, Define(s, act))
	}
	b, err := m.Describe()
	if err != nil {
		t.Fatal(err)
	}
	var d tool.Description
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	want := [][4]bool{{false, true, false, true}, {true, false, true, true}, {false, false, true, true}, {true, false, true, false}}
	for i, s := range d.Tools {
		a := s.Annotations
		if got := [4]bool{*a.ReadOnlyHint, *a.DestructiveHint, *a.IdempotentHint, *a.OpenWorldHint}; got != want[i] {
			t.Errorf("%s: got %v, want %v", s.Name, got, want[i])
		}
	}
}

func TestTranslations(t *testing.T) {
	in := map[string]Translation{"ru": {Title: "Я", Description: "Делает.", Parameters: map[string]string{"what": "Что"}}}
	m := Module{Tools: []Tool{Define(Spec{Name: "a", Description: "A.", Translations: in}, act)}}
	b, err := m.Describe()
	if want := `"translations":{"ru":{"title":"Я","description":"Делает.","parameters":{"what":"Что"}}}`; err != nil || !strings.Contains(string(b), want) {
		t.Errorf("got %s, %v", b, err)
	}
	many := map[string]Translation{}
	for i := range 17 {
		many["a"+string(rune('a'+i))] = Translation{}
	}
	for want, in := range map[string]map[string]Translation{
		"translations are in 17 languages, at most 16":           many,
		`translation "ru" is too long: a title`:                  {"ru": {Title: strings.Repeat("я", 201)}},
		`a description 1000`:                                     {"ru": {Description: strings.Repeat("я", 1001)}},
		`translation "ru": unknown property "x"; known are what`: {"ru": {Parameters: map[string]string{"x": "y"}}},
		`translation "ru": property "what" has over 1000`:        {"ru": {Parameters: map[string]string{"what": strings.Repeat("я", 1001)}}},
	} {
		m := Module{Tools: []Tool{Define(Spec{Name: "a", Description: "A.", Translations: in}, act)}}
		if _, err := m.Describe(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestDescribeErrors(t *testing.T) {
	type bad struct{ F func() }
	good := Define(Spec{Name: "a", Description: "A."}, act)
	long := strings.Repeat("x", 1001)
	for _, c := range []struct {
		tools []Tool
		want  string
	}{
		{nil, "the module has no tools"},
		{[]Tool{good, good}, "tool a: defined twice"},
		{[]Tool{Define(Spec{Name: "2x", Description: "X."}, act)}, `tool 2x: name is "2x", must be 1 to 48 of letters, digits, _ and -, a letter first`},
		{[]Tool{Define(Spec{Name: "a.b", Description: "X."}, act)}, `tool a.b: name is "a.b", must be 1 to 48 of letters, digits, _ and -, a letter first`},
		{[]Tool{Define(Spec{Name: "a"}, act)}, "tool a: description has 0 characters, must have 1 to 1000"},
		{[]Tool{Define(Spec{Name: "a", Description: long}, act)}, "tool a: description has 1001 characters, must have 1 to 1000"},
		{[]Tool{Define(Spec{Name: "a", Description: "A."}, func(*Call, bad) (string, error) { return "", nil })},
			"tool a: input: F: is a func(), which has no JSON form"},
		{[]Tool{Define(Spec{Name: "a", Description: "A."}, func(*Call, string) (string, error) { return "", nil })},
			"tool a: input: is string, must be a struct"},
		{[]Tool{Define(Spec{Name: "a", Description: "A."}, func(*Call, struct{}) (int, error) { return 0, nil })},
			"tool a: output: is int, must be a struct, a map, a slice, a string or an sdk.Result"},
	} {
		m := Module{Tools: c.tools}
		if _, err := m.Describe(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestUsage(t *testing.T) {
	if got := testModule.usage(); !strings.HasPrefix(got, "This is a hutch module (act, say, whole, nan), not a program.") {
		t.Errorf("got %s", got)
	}
}

// Nothing has to be changed about a definition for any known host.
func TestPortable(t *testing.T) {
	m := Module{Tools: []Tool{
		Define(Spec{Name: "every", Title: "Every", Description: "Has\nevery type."}, func(*Call, everyInput) (everyOutput, error) { return everyOutput{}, nil }),
		Define(Spec{Name: "map", Description: "Has none."}, func(*Call, struct{}) (map[string][]address, error) { return nil, nil }),
	}}
	b, err := m.Describe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rawjson.Check(b, 100); err != nil {
		t.Error(err)
	}
	var d tool.Description
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Tools {
		same, warnings, err := portable.Spec(s)
		if err != nil || warnings != nil || !reflect.DeepEqual(same, s) {
			t.Errorf("%s: became %+v, %q, %v", s.Name, same, warnings, err)
		}
	}
}
