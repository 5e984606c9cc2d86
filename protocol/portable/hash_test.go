package portable

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

const definition = `{"tools":[
	{"name":"b","title":"B","description":"d <&>","inputSchema":{"type":"object","maximum":12345678901234567890}},
	{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true}}],
	"requests":{"http":[{"host":"api.example.org","reason":"r"}]},"version":"1.0.0"}`

// The value is what sha256sum says of the compact text; grants are bound to
// it, so it never changes.
func TestDefinitionHash(t *testing.T) {
	const want = "82eba522e37c576018cd92142a8cc9f6a49e61183aafffc10762523b888da1d1"
	if got := hashOf(t, definition); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func hashOf(t *testing.T, text string) string {
	t.Helper()
	var d tool.Description
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	got, err := DefinitionHash(d)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDefinitionHashSeesEveryChange(t *testing.T) {
	base := hashOf(t, definition)
	for _, c := range []struct {
		name, old, new string
		same           bool
	}{
		{"white space", `{"type":"object",`, `{ "type" : "object" ,`, true},
		{"order of keys", `"type":"object","maximum":12345678901234567890`, `"maximum":12345678901234567890,"type":"object"`, true},
		{"escapes", `"object"`, `"\u006fbject"`, true},
		{"version", `1.0.0`, `2.0.0`, true},
		{"name", `"name":"b"`, `"name":"c"`, false},
		{"title", `"B"`, `"C"`, false},
		{"description", `d <`, `e <`, false},
		{"schema", `"object"`, `"string"`, false},
		{"last digit", `890}`, `891}`, false},
		{"way a number is written", `890}`, `890.0}`, false},
		{"annotations", `true`, `false`, false},
		{"request", `api.example.org`, `evil.example.org`, false},
		{"reason", `"r"`, `"s"`, false},
	} {
		changed := strings.Replace(definition, c.old, c.new, 1)
		if changed == definition {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		if got := hashOf(t, changed); (got == base) != c.same {
			t.Errorf("%s: same hash is %v, want %v", c.name, got == base, c.same)
		}
	}
}

func TestDefinitionHashRefusesBrokenJSON(t *testing.T) {
	for _, raw := range []string{`{`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`} {
		d := tool.Description{Tools: []tool.Spec{{Name: "a", InputSchema: json.RawMessage(raw)}}}
		if hash, err := DefinitionHash(d); err == nil {
			t.Errorf("%q: got %s", raw, hash)
		}
	}
}
