package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/tool"
)

var update = flag.Bool("update", false, "write what the tests got into testdata")

// TestSpec runs testdata: each archive holds definitions (NAME.in)
// and what becomes of them (NAME.out).
func TestSpec(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				if name, ok := strings.CutSuffix(f.Name, ".in"); ok {
					got.Files = append(got.Files, f, txtar.File{Name: name + ".out", Data: portableText(t, f.Data)})
				}
			}
			compareGolden(t, file, txtar.Format(got))
		})
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// portableText says what Spec made of one definition, a line a field.
func portableText(t *testing.T, in []byte) []byte {
	t.Helper()
	var s tool.Spec
	if err := json.Unmarshal(in, &s); err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	out, warnings, err := Spec(s)
	var b bytes.Buffer
	if err != nil {
		if !errors.Is(err, tool.ErrRejected) {
			t.Errorf("%v does not wrap tool.ErrRejected", err)
		}
		fmt.Fprintf(&b, "error: %v\n", err)
		return b.Bytes()
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.Bytes()
}

func object(schema string) tool.Spec {
	return tool.Spec{Name: "t", Description: "d", InputSchema: json.RawMessage(schema)}
}

// TestSpecLimits hits every limit once from each side.
func TestSpecLimits(t *testing.T) {
	nested := func(n int) string {
		return `{"type":"object","properties":` + strings.Repeat(`{"p":{"properties":`, n-1) + `{}` + strings.Repeat(`}}`, n-1) + `}`
	}
	chain := func(n int) string { // each definition names the one before it twice
		defs := `"d0":{"type":"string"}`
		for i := 1; i < n; i++ {
			defs += fmt.Sprintf(`,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
		}
		return fmt.Sprintf(`{"type":"object","properties":{"p":{"$ref":"#/$defs/d%d"}},"$defs":{%s}}`, n-1, defs)
	}
	targets := func(n int) string {
		defs, uses := `"x":{}`, `"x":{}`
		for i := range n {
			defs += fmt.Sprintf(`,"d%d":{}`, i)
			uses += fmt.Sprintf(`,"p%d":{"$ref":"#/$defs/d%d"}`, i, i)
		}
		return `{"type":"object","properties":{` + uses + `},"$defs":{` + defs + `}}`
	}
	big := func(n int) string {
		pad := n - len(`{"type":"object","title":"","properties":{}}`)
		return `{"type":"object","title":"` + strings.Repeat("x", pad) + `","properties":{}}`
	}
	long := func(n int) tool.Spec {
		return tool.Spec{Name: "t" + strings.Repeat("x", n-1), InputSchema: json.RawMessage(`{}`)}
	}
	for _, c := range []struct {
		name string
		in   tool.Spec
		want string
	}{
		{"name of 48", long(48), ""},
		{"name of 49", long(49), "allowed are a letter and up to 47 more"},
		{"20 schemas deep", object(nested(20)), ""},
		{"21 schemas deep", object(nested(21)), "nested deeper than 20"},
		{"65 values deep", object(`{"default":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`), "nested deeper than 64"},
		{"references that double", object(chain(9)), ""},
		{"references that double too often", object(chain(19)), "bytes"},
		{"256 places", object(targets(256)), ""},
		{"257 places", object(targets(257)), "references to more than 256 places"},
		{"128 KiB", object(big(maxSchema)), ""},
		{"128 KiB and 1", object(big(maxSchema + 1)), "131073 bytes, at most 131072"},
		{"key of 64", object(`{"properties":{"` + strings.Repeat("k", 64) + `":{}}}`), ""},
		{"key of 65", object(`{"properties":{"` + strings.Repeat("k", 65) + `":{}}}`), "allowed are 1 to 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Spec(c.in)
			if c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSpecCutsDescriptionsOnARune(t *testing.T) {
	s := object(`{"type":"object","properties":{}}`)
	s.Description = strings.Repeat("é", 5<<20/2)
	out, warnings, err := Spec(s)
	if err != nil || len(warnings) != 1 {
		t.Fatalf("%v, %q", err, warnings)
	}
	if want := strings.Repeat("é", 999) + "…"; out.Description != want {
		t.Errorf("got %d bytes, want %d", len(out.Description), len(want))
	}
}

func TestSpecRefusesInvalidUTF8(t *testing.T) {
	good := object(`{"type":"object"}`)
	for name, broken := range map[string]func(*tool.Spec){
		"name":        func(s *tool.Spec) { s.Name = "a\xff" },
		"title":       func(s *tool.Spec) { s.Title = "a\xff" },
		"description": func(s *tool.Spec) { s.Description = "a\xff" },
		"annotations": func(s *tool.Spec) { s.Annotations = &tool.Annotations{Title: "a\xff"} },
		"schema":      func(s *tool.Spec) { s.InputSchema = json.RawMessage("{\"title\":\"\xff\"}") },
	} {
		s := good
		broken(&s)
		if _, _, err := Spec(s); !errors.Is(err, tool.ErrRejected) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSpecBoundsWarnings(t *testing.T) {
	properties := `"k":true`
	for i := range 100 {
		properties += fmt.Sprintf(`,"k%d":true`, i)
	}
	_, warnings, err := Spec(object(`{"type":"object","properties":{` + properties + `}}`))
	if err != nil || len(warnings) != maxWarnings || warnings[maxWarnings-1] != "more warnings are left out" {
		t.Errorf("%v, %d warnings, the last is %q", err, len(warnings), warnings[len(warnings)-1])
	}
}

func TestSpecLeavesItsArgumentAlone(t *testing.T) {
	s := object(`{ "type": "object" }`)
	s.Annotations = &tool.Annotations{Title: "a\u200bb"}
	if _, _, err := Spec(s); err != nil {
		t.Fatal(err)
	}
	if s.Annotations.Title != "a\u200bb" || string(s.InputSchema) != `{ "type": "object" }` {
		t.Errorf("changed to %q, %s", s.Annotations.Title, s.InputSchema)
	}
}

func ExampleSpec() {
	out, warnings, err := Spec(tool.Spec{
		Name:        "notes/search",
		Description: "Finds notes.",
		InputSchema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`),
	})
	fmt.Println(out.Name, string(out.InputSchema), err)
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// notes_search {"type":"object","properties":{}} <nil>
	// name "notes/search": listed as notes_search, because hosts refuse dots, slashes and spaces
}

// FuzzSpec: it never panics, and its result is its own result again and
// keeps the promises that can be checked from outside.
func FuzzSpec(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range archive.Files {
			var s tool.Spec
			if strings.HasSuffix(c.Name, ".in") && json.Unmarshal(c.Data, &s) == nil {
				f.Add(s.Name, s.Title, s.Description, []byte(s.InputSchema), []byte(s.OutputSchema))
			}
		}
	}
	f.Fuzz(func(t *testing.T, name, title, description string, in, out []byte) {
		first, _, err := Spec(tool.Spec{Name: name, Title: title, Description: description, InputSchema: in, OutputSchema: out})
		if err != nil {
			return
		}
		second, _, err := Spec(first)
		if err != nil || !sameSpec(first, second) {
			t.Fatalf("again: %v\n%+v\n%+v", err, first, second)
		}
		for _, schema := range []json.RawMessage{first.InputSchema, first.OutputSchema} {
			if schema == nil {
				continue
			}
			var root struct {
				Type       string
				Properties map[string]json.RawMessage
			}
			if err := json.Unmarshal(schema, &root); err != nil || root.Type != "object" || root.Properties == nil {
				t.Fatalf("%v: %s", err, schema)
			}
		}
	})
}
