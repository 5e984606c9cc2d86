package dialect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestParseDescription(t *testing.T) {
	yes := true
	full := `{"tools":[{"name":"greet","title":"Greet","description":"Greets.","inputSchema":{"type":"object"},"outputSchema":{"a":1},
		"annotations":{"title":"T","readOnlyHint":true,"other":1},"icons":[]}],"requests":{"http":[{"host":"a"}]},"version":"1.2.0"}`
	native := tool.Description{
		Tools: []tool.Spec{{Name: "greet", Title: "Greet", Description: "Greets.", InputSchema: json.RawMessage(`{"type":"object"}`),
			OutputSchema: json.RawMessage(`{"a":1}`), Annotations: &tool.Annotations{Title: "T", ReadOnlyHint: &yes}}},
		Requests: tool.Requests{"http": json.RawMessage(`[{"host":"a"}]`)}, Version: "1.2.0",
	}
	plain := tool.Description{Tools: []tool.Spec{{Name: "greet", Description: "Greets.", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	bare := tool.Description{Tools: []tool.Spec{{Name: "a", InputSchema: json.RawMessage(`{"n":9007199254740993}`)}}}
	tests := []struct {
		name string
		kind Kind
		raw  string
		want tool.Description
	}{
		{"native", Hutch, full, native},
		{"v1 gives three fields", V1, full, plain},
		{"native, bare", Hutch, `{"tools":[{"name":"a","inputSchema":{"n":9007199254740993}}]}`, bare},
		{"v1 with nulls", V1, `{"tools":[{"name":"a","description":null,"title":null,"annotations":null,"inputSchema":{"n":9007199254740993}}],"nextCursor":null}`, bare},
		{"names are exact", Hutch, `{"tools":[{"name":"a","NAME":"b","inputSchema":{"n":9007199254740993}}]}`, bare},
	}
	for _, tt := range tests {
		if got, err := ParseDescription(tt.kind, []byte(tt.raw)); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestParseDescriptionErrors(t *testing.T) {
	spec := func(i int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{}}`, i) }
	var many []string
	for i := range MaxTools + 1 {
		many = append(many, spec(i))
	}
	tests := []struct{ name, raw, native, v1 string }{
		{"empty", ``, "nothing was written", ""},
		{"D23 too large", `{"tools":[` + spec(1) + strings.Repeat(" ", MaxDescriptionBytes) + `]}`, "262186 bytes, at most 262144", ""},
		{"no JSON", `{"tools":`, "json: offset 9", ""},
		{"invalid UTF-8", "{\"tools\":[{\"name\":\"\xff\"}]}", "json: offset 19", ""},
		{"a key twice", `{"tools":[],"tools":[]}`, `json: offset 12`, ""},
		{"too deep", `{"tools":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "", ""},
		{"no object", `[]`, "it is an array, want an object", ""},
		{"no tools", `{}`, "it: tools is missing", ""},
		{"tools are an object", `{"tools":{}}`, "it: tools is an object, want an array", ""},
		{"D23 too many", `{"tools":[` + strings.Join(many, ",") + `]}`, "65 tools, at most 64", ""},
		{"none", `{"tools":[]}`, "tools is empty; a module describes at least one", ""},
		{"tool is a string", `{"tools":["a"]}`, "tool 1 is a string, want an object", ""},
		{"no name", `{"tools":[{"inputSchema":{}}]}`, "tool 1: name is missing", ""},
		{"empty name", `{"tools":[{"name":"","inputSchema":{}}]}`, "tool 1: name is empty", ""},
		{"name is a number", `{"tools":[{"name":1,"inputSchema":{}}]}`, "tool 1: name is a number, want a string", ""},
		{"one name twice", `{"tools":[` + spec(1) + `,` + spec(2) + `,` + spec(1) + `]}`, `tools 1 and 3 are both named "t1"`, ""},
		{"no schema", `{"tools":[{"name":"a"}]}`, `tool 1 ("a"): inputSchema is missing`, ""},
		{"schema is true", `{"tools":[{"name":"a","inputSchema":true}]}`, `tool 1 ("a"): inputSchema is a boolean, want an object`, ""},
		{"schema is a string", `{"tools":[` + spec(1) + `,{"name":"a","inputSchema":"{}"}]}`, `tool 2 ("a"): inputSchema is a string, want an object`, ""},
		{"unknown field", `{"tools":[` + spec(1) + `],"zebra":1,"author":2}`, `unknown field "author"`, "ok"},
		{"description is null", `{"tools":[{"name":"a","description":null,"inputSchema":{}}]}`, `tool 1 ("a"): description is null, want a string`, "ok"},
		{"annotations are a list", `{"tools":[{"name":"a","annotations":[],"inputSchema":{}}]}`, `tool 1 ("a"): annotations is an array, want an object`, "ok"},
		{"hint is a string", `{"tools":[{"name":"a","annotations":{"readOnlyHint":"yes"},"inputSchema":{}}]}`,
			`tool 1 ("a"): annotations: readOnlyHint is a string, want a boolean`, "ok"},
		{"output schema is a list", `{"tools":[{"name":"a","outputSchema":[],"inputSchema":{}}]}`, `tool 1 ("a"): outputSchema is an array, want an object`, "ok"},
		{"requests are a list", `{"tools":[` + spec(1) + `],"requests":["http"]}`, `it: requests is an array, want an object`, "ok"},
		{"aliases are a list", `{"tools":[{"name":"a","aliases":[],"inputSchema":{}}]}`, `tool 1 ("a"): aliases is an array, want an object`, "ok"},
		{"an alias of a number", `{"tools":[{"name":"a","aliases":{"p":{"x":1}},"inputSchema":{}}]}`, `tool 1 ("a"): aliases: json: cannot unmarshal number`, "ok"},
		{"translations are a list", `{"tools":[{"name":"a","translations":[],"inputSchema":{}}]}`, `tool 1 ("a"): translations is an array, want an object`, "ok"},
		{"a translation is a text", `{"tools":[{"name":"a","translations":{"ru":"A"},"inputSchema":{}}]}`, `tool 1 ("a"): translations: ru is a string, want an object`, "ok"},
		{"a translated name", `{"tools":[{"name":"a","translations":{"ru":{"name":"b"}},"inputSchema":{}}]}`, `tool 1 ("a"): translations: ru: unknown field "name"`, "ok"},
		{"a translated parameter is a number", `{"tools":[{"name":"a","translations":{"ru":{"parameters":{"p":1}}},"inputSchema":{}}]}`,
			`tool 1 ("a"): translations: ru: parameters: json: cannot unmarshal number`, "ok"},
		{"version is a number", `{"tools":[` + spec(1) + `],"version":1}`, `it: version is a number, want a string`, "ok"},
	}
	for _, tt := range tests {
		if tt.v1 == "" {
			tt.v1 = tt.native
		}
		for kind, want := range map[Kind]string{Hutch: tt.native, V1: tt.v1} {
			_, err := ParseDescription(kind, []byte(tt.raw))
			switch {
			case want == "ok" && err != nil, want != "ok" && err == nil:
				t.Errorf("%s, %s: %v", kind, tt.name, err)
			case want != "ok" && want != "" && !strings.HasPrefix(err.Error(), "description: "+want):
				t.Errorf("%s, %s: %v\nwant description: %s", kind, tt.name, err, want)
			}
		}
	}
}

func FuzzParseDescription(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true}}],"requests":{"http":[]},"version":"1"}`), true)
	f.Add([]byte(`{"tools":[{"name":"a","description":null,"inputSchema":{}}]}`), false)
	f.Fuzz(func(t *testing.T, raw []byte, native bool) {
		kind := V1
		if native {
			kind = Hutch
		}
		d, err := ParseDescription(kind, raw)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
				t.Errorf("error %q", err)
			}
			return
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := ParseDescription(Hutch, again); err != nil || len(parsed.Tools) != len(d.Tools) {
			t.Errorf("%s reads as %s, which does not read: %v", raw, again, err)
		}
	})
}
