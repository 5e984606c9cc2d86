package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestExampleCompare(t *testing.T) {
	structured := tool.Text("12")
	structured.Structured = []byte(`{"a": 1.0, "b": [12345678901234567890]}`)
	for _, c := range []struct {
		want   string
		result tool.Result
		diff   string
	}{
		{`{"text":"one\ntwo"}`, tool.Text("one\ntwo"), ""},
		{`{"text":"one\ntwo\nthree"}`, tool.Text("one\n2\nthree"), `text, line 2 of 3:|- "two"|+ "2"`},
		{`{"text":"one"}`, tool.Text("one\n"), `text, line 2 of 1:|+ ""`},
		{`{"text":"one\ntwo"}`, tool.Text("one"), `text, line 2 of 2:|- "two"`},
		{`{"textContains":"n"}`, tool.Text("one"), ""},
		{`{"textContains":"x"}`, tool.Text("one"), `text: "x" is not in "one"`},
		{`{"text":"no","isError":true}`, tool.Failed("no"), ""},
		{`{"isError":true}`, tool.Text("yes"), "isError: want true, found false"},
		{`{"textContains":"y"}`, tool.Failed("why"), "isError: want false, found true|error: why"},
		{`{"structured":{"b":[12345678901234567890],"a":1.0}}`, structured, ""},
		{`{"structured":{"a":1.0,"b":[12345678901234567891]}}`, structured,
			`structured:|- {"a":1.0,"b":[12345678901234567891]}|+ {"a":1.0,"b":[12345678901234567890]}`},
		{`{"structured":{}}`, tool.Text("x"), "structured:|- {}|+ (none)"},
	} {
		var e example
		if err := e.parse([]byte(`{"tool":"t","want":` + c.want + `}`)); err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if got := strings.Join(e.compare(c.result), "|"); got != c.diff {
			t.Errorf("%s: %s, want %s", c.want, got, c.diff)
		}
	}
}

func TestExampleParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"want":{"text":""}}`:                       "no tool is named",
		`{"tool":"t"}`:                               "want is empty: it would accept any answer",
		`{"tool":"t","want":{"isError":false}}`:      "want is only isError false, which is the default: it would accept any answer",
		`{"tool":"t","want":{"txt":""}}`:             `json: unknown field "txt"`,
		`{"tool":"t","want":{"text":1}}`:             "want.text: found number, wanted string",
		`{"tool":"t","want":1}`:                      "want: found number, wanted object",
		`{"tool":"t","tool":"u","want":{"text":""}}`: "json: offset 12, at $: key tool stands twice in one object",
		``: "the file is empty",
	} {
		if err := new(example).parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzExample(f *testing.F) {
	f.Add([]byte(`{"tool":"t","arguments":{},"want":{"structured":[1e400]}}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		var e example
		if err := e.parse(body); err == nil {
			e.compare(tool.Text("x"))
		} else {
			position(body, err)
		}
	})
}
