package strictyaml

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	n := parsed(t, "name: \"a b\" # a comment\nlist: [1, 0x10, true, -.inf, 'x: [y']\nnone:\nbelow:\n  deep:\n  - key: v\n    other: w\n  - z\n")
	var keys []string
	err := n.Each([]string{"below", "list", "name", "none"}, func(i int, v *Node) error {
		keys = append(keys, fmt.Sprintf("%d:%s", i, show(v)))
		return nil
	})
	if got, want := strings.Join(keys, " "), "2:a b 1:[1 0x10 true -.inf x: [y] 3:- 0:{deep=[{key=v other=w} z]}"; got != want || err != nil {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	if err := parsed(t, "# nothing\n").Each(nil, nil); err != nil {
		t.Error(err)
	}
	if err := parsed(t, `{"a": {"b": "c"}}`).Each([]string{"a"}, func(_ int, v *Node) error { return v.Errorf("%w", os.ErrExist) }); !errors.Is(err, os.ErrExist) || err.Error() != "x.yaml:1: a: file already exists" {
		t.Error(err)
	}
}

func TestBareValuesAreNoTexts(t *testing.T) {
	for value, want := range map[string]bool{
		"1": true, "-1.5": true, "0x10": true, "true": true, ".inf": true,
		`"1"`: false, "'true'": false, "one": false, "1 2": false, "null": false, "[1]": false,
	} {
		if got := parsed(t, "k: "+value).Fields()[0].Value.IsBare(); got != want {
			t.Errorf("%s: %v, want %v", value, got, want)
		}
	}
}

func parsed(t *testing.T, body string) *Node {
	t.Helper()
	n, err := Parse("x.yaml", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// show writes what is in n.
func show(n *Node) string {
	var parts []string
	switch n.kind {
	case List:
		for _, v := range n.items {
			parts = append(parts, show(v))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case Mapping:
		for _, f := range n.fields {
			parts = append(parts, f.Name+"="+show(f.Value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case Nothing:
		return "-"
	}
	return n.text
}

// nested is a value in so many mappings and lists, in each way of writing them.
func nested(depth int) map[string]string {
	var indented strings.Builder
	for i := range depth {
		indented.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	half := ""
	for i := range depth / 2 { // a list may begin in the column of its key
		half += strings.Repeat("  ", i) + "a:\n" + strings.Repeat("  ", i) + "- "
		if i < depth/2-1 {
			half += "\n"
		}
	}
	return map[string]string{
		"lists": strings.Repeat("[", depth) + strings.Repeat("]", depth), "mappings": strings.Repeat("{a: ", depth) + "x" + strings.Repeat("}", depth),
		"dashes": strings.Repeat("- ", depth) + "x", "indented": strings.TrimSuffix(indented.String(), "\n") + " x", "unclosed": strings.Repeat("[", depth),
		"below a key":            "- a: " + strings.Repeat("[", depth-2) + strings.Repeat("]", depth-2),
		"pairs":                  "[" + strings.Repeat("{a: [", (depth-1)/2) + strings.Repeat("]}", (depth-1)/2) + "]",
		"lists under their keys": half + "x",
	}
}

func TestDepthAtTheLimitAndOneMore(t *testing.T) {
	for how, body := range nested(MaxDepth) {
		if _, err := Parse("x.yaml", []byte(body)); err != nil && how != "unclosed" {
			t.Errorf("%s, %d deep: %v\n%s", how, MaxDepth, err, body)
		}
	}
	for how, body := range nested(MaxDepth + 2) {
		_, err := Parse("x.yaml", []byte(body))
		if err == nil || !strings.HasSuffix(err.Error(), ": nested deeper than 16 levels") {
			t.Fatalf("%s, %d deep: %v", how, MaxDepth+2, err)
		}
	}
	if _, err := Parse("x.yaml", []byte("a: "+strings.Repeat("[", MaxDepth))); err == nil || err.Error() != "x.yaml:1: nested deeper than 16 levels" {
		t.Errorf("one more: %v", err)
	}
	wide := "a: '" + strings.Repeat("[", 100) + "' # " + strings.Repeat("[", 100) + "\nb: \"" + strings.Repeat("{", 100) + "\"\nc: " + strings.Repeat("x[", 100) + "\n"
	for i := range 100 {
		wide += fmt.Sprintf("k%d:\n- [{}]\n", i)
	}
	if _, err := Parse("x.yaml", []byte(wide)); err != nil {
		t.Errorf("brackets in text: %v", err)
	}
}

// TestHostileDocuments holds that no document of the largest size costs much.
// Without the check of the depth the first would take gigabytes, so that the test
// before stops there.
func TestHostileDocuments(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, MaxBytes/len(unit)) }
	for _, unit := range []string{
		"[", "{", "{a: ", "[a,", "[a: ", "- ", "? ", "a: ", "&a ", "*a ", "!x ", "!!set ", "- &a\n", "'", "\"", "|\n", "a: |\n", "%\n", "---\n", "...\n",
		"# c\n", "\n", "\r", "\t", " ", "<<: a\n", "<<: ", ": ", ":", ",", "]", "}", "[]: ", "[]:\n", "{}\n", "@", "`", "\\", "\x00", "- a: b\n", "-\n", "a:\n", "k: v\n", "a", "a\n ", "\u2028",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("x.yaml", []byte(fill(unit)))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Fatalf("%q: %d MiB allocated", unit, took>>20)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 2*maxMessage) {
			t.Errorf("%q: %q", unit, err)
		}
	}
}

func TestKeysAtTheLimitAndOneMore(t *testing.T) {
	var keys strings.Builder
	for i := range MaxKeys {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	parsed(t, keys.String())
	if _, err := Parse("x.yaml", []byte(keys.String()+"k: v\n")); err == nil || err.Error() != "x.yaml:4097: more than 4096 keys" {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	const belongs = "write the value where it belongs, or put it in quotes"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	for _, c := range []struct{ name, body, want string }{
		{"alias bomb", bomb, "x.yaml:1: anchors (&) are not read: " + belongs},
		{"anchor", "a: x\nb: &b x\n", "x.yaml:2: anchors (&) are not read: " + belongs},
		{"alias", "a: *a\n", "x.yaml:1: aliases (*) are not read: " + belongs + `, as in "*"`},
		{"merge key", "<<: {a: b}\n", "x.yaml:1: merge keys (<<) are not read: write the keys where they belong"},
		{"tag", "a: !!binary x\n", "x.yaml:1: tags (!) are not read: leave it away, or put the value in quotes"},
		{"directive", "%YAML 1.2\n---\na: b\n", "x.yaml:1: directives (%) are not read: leave it away"},
		{"explicit key", "? a\n: b\n", "x.yaml:1: explicit keys (?) are not read: write key: value"},
		{"list as key", "[a]: b\n", "x.yaml:1: a key is one plain value, not a list or a mapping"},
		{"mapping as key", "a: b\n{c: d}: e\n", "x.yaml:2: a key is one plain value, not a list or a mapping"},
		{"two documents", "a: 1\n---\na: 2\n", "x.yaml:3: a second document: one is read"},
		{"latin1", "a: x\nb: caf\xe9\n", "x.yaml:2: not valid UTF-8: save it in that encoding"},
		{"too large", strings.Repeat("#", MaxBytes+1), "x.yaml:1: 65537 bytes: at most 65536"},
		{"hidden", "a: x\n# \u202e\n", "x.yaml:2: the hidden character U+202E: remove it, what is not seen cannot be checked"},
		{"carriage return alone", "a: x\rb: y\n", "x.yaml:1: the hidden character U+000D: remove it, what is not seen cannot be checked"},
		{"nothing as key", "~: b\n", "x.yaml:1: a key that is no word: write key: value"},
		{"empty key", "a: b\n'': c\n", "x.yaml:2: a key that is no word: write key: value"},
		{"no yaml", "a: [b\n", "x.yaml:1: sequence end token ']' not found"},
	} {
		if _, err := Parse("x.yaml", []byte(c.body)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestValuesOfTheWrongKind(t *testing.T) {
	n := parsed(t, "a: {b: x}\nc: []\nd: ''\ne: |\n  text\n")
	got := map[string]error{}
	names := []string{"a", "c", "d", "e"}
	err := n.Each(names, func(i int, v *Node) error {
		_, got[names[i]+" text"] = v.Text()
		_, got[names[i]+" items"] = v.Items()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"a text": "x.yaml:1: a: one plain value is wanted here", "a items": "x.yaml:1: a: a list is wanted here",
		"c items": "x.yaml:2: c: empty: name at least one", "d text": "x.yaml:3: d: empty", "e text": "x.yaml:4: e: one plain value is wanted here",
	} {
		if err := got[what]; err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", what, err, want)
		}
	}
	if err := n.Each([]string{"a"}, func(int, *Node) error { return nil }); err == nil || !strings.HasPrefix(err.Error(), "x.yaml:2: c: no such key; there are a\n") {
		t.Error(err)
	}
	if err := parsed(t, "- a\n").Each(nil, nil); err == nil || err.Error() != "x.yaml:1: keys and values are wanted here" {
		t.Error(err)
	}
}

func TestKeysThatStandTwice(t *testing.T) {
	for body, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":     "x.yaml:3: a: stands there twice, first in line 1",
		"b: 1\n\"b\": 2\n":       "x.yaml:2: b: stands there twice, first in line 1",
		"{b: 1, 'b': 2}\n":       "x.yaml:1: b: stands there twice, first in line 1",
		"a: 1\na: 2\na: 3\n":     "x.yaml:2: a: stands there twice, first in line 1\nx.yaml:3: a: stands there twice, first in line 1",
		"c: 1\na: 2\r\nc: 3\n\n": "x.yaml:1: c: no such key; there are a, b\nx.yaml:3: c: stands there twice, first in line 1",
	} {
		err := parsed(t, body).Each([]string{"a", "b"}, func(int, *Node) error { return nil })
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", body, err, want)
		}
	}
}

// One mistake does not hide the next, and each knows its place.
func TestFindings(t *testing.T) {
	err := parsed(t, "a: [1]\nb:\n  c: x\n  d: y\nz: 1\n").Each([]string{"a", "b"}, func(_ int, v *Node) error {
		if _, err := v.Text(); v.Kind() != Mapping {
			return err
		}
		return v.Each([]string{"c"}, func(_ int, v *Node) error { return v.Errorf("bad: %w", os.ErrExist) })
	})
	var got []string
	for _, f := range Findings(fmt.Errorf("read: %w", err)) {
		got = append(got, fmt.Sprintf("%d %s %v", f.Line, f.Key, f.Err))
	}
	want := "1 a one plain value is wanted here|3 b.c bad: file already exists|4 b.d no such key; there are c|5 z no such key; there are a, b"
	if strings.Join(got, "|") != want || !errors.Is(err, os.ErrExist) {
		t.Errorf("%q\nwant %s", got, want)
	}
}

// Who asks for other bounds gets them.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		body string
		b    Bounds
		want string
	}{
		{"a: b\n", Bounds{Bytes: 5, Keys: 1, Tokens: 3}, ""},
		{"a: b\n", Bounds{Bytes: 4}, "x.yaml:1: 5 bytes: at most 4"},
		{"a: b\n", Bounds{Tokens: 2}, "x.yaml:1: 3 words and signs: at most 2"},
		{"a: b\nc: d\n", Bounds{Keys: 1}, "x.yaml:2: more than 1 keys"},
		{"a:\n  b: c\n  d: e\nf:\n- g: h\n  i: j\n- g: h\n  i: j\n", Bounds{Siblings: 2}, ""},
		{"a: b\nc:\n  d: e\nf: g\n", Bounds{Siblings: 2}, "x.yaml:4: more than 2 keys in one mapping"},
		{"a:\n- b: c\n  d: e\n  f: g\n", Bounds{Siblings: 2}, "x.yaml:4: more than 2 keys in one mapping"},
		{"{a: {b: c, d: e}, f: {g: h}}\n", Bounds{Siblings: 2}, ""},
		{"{a: b, c: {d: e},\nf: g}\n", Bounds{Siblings: 2}, "x.yaml:2: more than 2 keys in one mapping"},
		{strings.Repeat("#", MaxBytes+1), Bounds{Bytes: MaxBytes + 1}, ""},
	} {
		_, err := ParseWithin("x.yaml", []byte(c.body), c.b)
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%.20q: %s, want %s", c.body, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range nested(5) {
		f.Add([]byte(body))
	}
	f.Add([]byte("a: &a [*a]\n? {}: 1\n"))
	f.Add([]byte("a: |+2\n  x\n\"b\" : 'c'\n--- >\n x\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := Parse("x.yaml", body)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") || !strings.HasPrefix(err.Error(), "x.yaml:") {
				t.Errorf("%q", err)
			}
			return
		}
		if d := depthOf(n); d > MaxDepth {
			t.Errorf("%d deep", d)
		}
	})
}

func depthOf(n *Node) (deepest int) {
	for _, v := range n.items {
		deepest = max(deepest, depthOf(v))
	}
	for _, f := range n.fields {
		deepest = max(deepest, depthOf(f.Value))
	}
	if n.kind == List || n.kind == Mapping {
		deepest++
	}
	return deepest
}
