package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

const base = `{"tools":[
	{"name":"b","title":"B","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}},"required":["n"]}},
	{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],
	"requests":{"http":[{"host":"api.example.org","reason":"r"}]},"version":"1.0.0"}`

func parsed(t testing.TB, text string) (d tool.Description) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestF08_DiffNamesEveryChange(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"version", `1.0.0`, `2.0.0`, nil},
		{"order of keys", `"title":"B","description":"d"`, `"description":"d","title":"B"`, nil},
		{"title", `"B"`, `"C"`, []string{`b: title: "B" -> "C"`}},
		{"title gone", `"title":"B",`, ``, []string{`b: title: removed "B"`}},
		{"description", `"d"`, `"d\n\u202eignore"`, []string{"b: description: \"d\" -> \"d\\n\uFFFDignore\""}},
		{"deep in a schema", `10`, `10.0`, []string{`b: inputSchema.properties.n.maximum: 10 -> 10.0`}},
		{"key of a schema", `"maximum":10`, `"minimum":1`, []string{
			`b: inputSchema.properties.n.maximum: removed 10`, `b: inputSchema.properties.n.minimum: added 1`}},
		{"item of a list", `["n"]`, `["n","m"]`, []string{`b: inputSchema.required[1]: added "m"`}},
		{"type of a value", `["n"]`, `{}`, []string{`b: inputSchema.required: ["n"] -> {}`}},
		{"hint", `"readOnlyHint":true`, `"readOnlyHint":false`, []string{`a: annotations.readOnlyHint: true -> false`}},
		{"no annotations", `,"annotations":{"readOnlyHint":true}`, ``, []string{
			`a: annotations: removed (some)`, `a: annotations.readOnlyHint: removed true`}},
		{"another spelling", `"name":"a",`, `"name":"a","aliases":{"n":{"x":"y"}},`, []string{`a: aliases: added {"n":{"x":"y"}}`}},
		{"translation", `"name":"a",`, `"name":"a","translations":{"ru":{"title":"Я"}},`, []string{`a: translations: added {"ru":{"title":"Я"}}`}},
		{"request", `api.example.org`, `evil.example.org`, []string{`requests.http[0].host: "api.example.org" -> "evil.example.org"`}},
		{"another kind", `"requests":{`, `"requests":{"kv":{},`, []string{`requests.kv: added {}`}},
		{"tool renamed", `"name":"a"`, `"name":"c"`, []string{`a: removed`, `c: added`,
			`c: inputSchema: null -> {"type":"object"}`, `c: annotations: added (some)`, `c: annotations.readOnlyHint: added true`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(base, c.old, c.new, 1)
			if changed == base {
				t.Fatal("nothing replaced")
			}
			var got []string
			for _, row := range Diff(parsed(t, base), parsed(t, changed)) {
				got = append(got, row.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			agrees(t, parsed(t, base), parsed(t, changed))
		})
	}
}

// agrees holds that Diff sees what Hash sees.
func agrees(t *testing.T, old, now tool.Description) {
	t.Helper()
	a, errA := Hash(old)
	b, errB := Hash(now)
	if errA != nil || errB != nil {
		return
	}
	if rows := Diff(old, now); (len(rows) == 0) != (a == b) {
		t.Errorf("hashes equal is %t, rows are %v\nold %+v\nnew %+v", a == b, rows, old, now)
	}
}

func TestDiffSeesOrderAndNamesTwice(t *testing.T) {
	d := parsed(t, base)
	turned := d
	turned.Tools = []tool.Spec{d.Tools[1], d.Tools[0]}
	if rows := Diff(d, turned); len(rows) != 1 || rows[0].String() != "order: b, a -> a, b" {
		t.Errorf("turned: %v", rows)
	}
	twice := d
	twice.Tools = []tool.Spec{d.Tools[0], d.Tools[0]}
	for _, other := range []tool.Description{d, turned, {Tools: d.Tools[:1]}} {
		agrees(t, twice, other)
		agrees(t, other, twice)
	}
}

func TestDiffIsBounded(t *testing.T) {
	old, now := tool.Description{}, tool.Description{}
	for i := range 3 * MaxChanges {
		name := fmt.Sprintf("t%d", i)
		old.Tools = append(old.Tools, tool.Spec{Name: name, InputSchema: json.RawMessage(`{}`)})
		now.Tools = append(now.Tools, tool.Spec{Name: name, Description: strings.Repeat("x\n", 5000), InputSchema: json.RawMessage(`{}`)})
	}
	rows := Diff(old, now)
	if len(rows) != MaxChanges+1 || rows[MaxChanges].What != "400 more changes" {
		t.Fatalf("%d rows, the last is %v", len(rows), rows[len(rows)-1])
	}
	if n := len(rows[0].String()); n > 2100 || strings.Contains(rows[0].String(), "\n") {
		t.Errorf("a row of %d bytes", n)
	}
}

func TestDiffOfBrokenJSON(t *testing.T) {
	broken := tool.Description{Tools: []tool.Spec{{Name: "a", InputSchema: json.RawMessage(`{"a":`)}}}
	if rows := Diff(broken, broken); rows != nil {
		t.Errorf("the same: %v", rows)
	}
	if rows := Diff(tool.Description{Tools: []tool.Spec{{Name: "a"}}}, broken); len(rows) != 1 {
		t.Errorf("broken: %v", rows)
	}
}

// FuzzDiff: no text panics, and Diff is empty exactly if the hashes are the same.
func FuzzDiff(f *testing.F) {
	f.Add(base, strings.Replace(base, "10", "11", 1))
	f.Add(`{"tools":[{"name":"a"},{"name":"a"}]}`, `{"tools":[{"name":"a","inputSchema":null}],"requests":{}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var old, now tool.Description
		if json.Unmarshal([]byte(a), &old) != nil || json.Unmarshal([]byte(b), &now) != nil {
			return
		}
		agrees(t, old, now)
		agrees(t, old, old)
	})
}
