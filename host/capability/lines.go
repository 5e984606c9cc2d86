package capability

import (
	"fmt"
	"slices"
	"strings"
)

// An editor changes the lines of one module's entry. It looks for keys in the
// tree and changes lines behind them from the last to the first, so that line
// numbers of what comes before stay true; after each change it reads anew.
type editor struct {
	file, module string
	lines        []string
	newline      string
}

// newEditor reads a text, and writes an empty entry for the module into it if
// there is none.
func newEditor(file string, text []byte, module string) (*editor, error) {
	t := &editor{file: file, module: module, newline: "\n"}
	if strings.Contains(string(text), "\r\n") {
		t.newline = "\r\n"
	}
	t.lines = strings.Split(strings.ReplaceAll(strings.TrimRight(string(text), "\r\n"), "\r\n", "\n"), "\n")
	if len(text) == 0 {
		t.lines = nil
	}
	root, f := readYAML([]byte(strings.Join(t.lines, "\n")))
	if f != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, f.line, f)
	}
	return t, t.ensureModules(root)
}

func (t *editor) bytes() []byte {
	if len(t.lines) == 0 {
		return nil
	}
	return []byte(strings.Join(t.lines, t.newline) + t.newline)
}

// braces is the error for a part that is not written as lines.
func (t *editor) braces(line int, what string) error {
	return fmt.Errorf("%s:%d: %s is written in braces: write it as lines of its own, then run this again", t.file, line, what)
}

func (t *editor) ensureModules(root *node) error {
	if root == nil || root.kind == nothing {
		t.lines = append(t.lines, "version: 1", "modules:")
		return nil
	}
	if root.flow {
		return t.braces(root.line, "the policy")
	}
	modules := root.get("modules")
	if modules == nil {
		t.lines = append(t.lines, "modules:")
		return nil
	}
	if modules.value.flow {
		if len(modules.value.pairs) > 0 {
			return t.braces(modules.line, "modules")
		}
		t.lines[modules.line-1] = strings.Replace(t.lines[modules.line-1], "{}", "", 1)
	}
	if p := modules.value.get(t.module); p != nil && p.value.flow {
		return t.braces(p.line, "modules."+t.module)
	}
	return nil
}

// A span is some lines, from first up to but without end, counted from 1. Below
// is how far what hangs on it is indented, and indent how far itself is.
type span struct {
	first, end    int
	indent, below int
	value         *node
}

// spans returns the places of modules, and of the module's entry if there is one.
func (t *editor) spans() (modules, entry *span) {
	root, f := readYAML([]byte(strings.Join(t.lines, "\n")))
	if f != nil || root == nil {
		return nil, nil
	}
	whole := &span{first: 1, end: len(t.lines) + 1, value: root}
	if modules = t.child(whole, "modules"); modules != nil {
		entry = t.child(modules, t.module)
	}
	return modules, entry
}

// child returns the lines of a key and its value. Comments and empty lines behind
// it belong to what follows, unless they are indented below it.
func (t *editor) child(parent *span, key string) *span {
	i := slices.IndexFunc(parent.value.pairs, func(p pair) bool { return p.key == key })
	if i < 0 {
		return nil
	}
	p := parent.value.pairs[i]
	s := &span{first: p.line, end: parent.end, value: p.value}
	if i+1 < len(parent.value.pairs) {
		s.end = parent.value.pairs[i+1].line
	}
	return t.trim(s)
}

func (t *editor) trim(s *span) *span {
	s.indent = indentOf(t.lines[s.first-1])
	for s.end > s.first+1 && s.end-2 < len(t.lines) && t.loose(t.lines[s.end-2], s.indent) {
		s.end--
	}
	s.below = s.indent + 2
	if len(s.value.pairs) > 0 && !s.value.flow {
		s.below = indentOf(t.lines[s.value.pairs[0].line-1])
	}
	return s
}

func (t *editor) loose(line string, indent int) bool {
	text := strings.TrimSpace(line)
	return text == "" || text[0] == '#' && indentOf(line) <= indent
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// insert puts lines before line number at.
func (t *editor) insert(at, indent int, lines []string) {
	t.lines = slices.Insert(t.lines, at-1, indented(lines, indent)...)
}

func indented(lines []string, indent int) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Repeat(" ", indent) + line
	}
	return out
}

func (t *editor) cut(s *span) { t.lines = slices.Delete(t.lines, s.first-1, s.end-1) }

// setBinding writes digest and definitions, keeping the comments behind them.
func (t *editor) setBinding(b Binding) {
	for _, part := range []struct{ key, digest string }{{"digest", b.Digest}, {"definitions", b.Definitions}} {
		if part.digest == "" {
			t.remove(part.key)
			continue
		}
		t.replace(part.key, []string{part.key + ": sha256:" + part.digest})
	}
}

// entryOrder is where keys that are written go: behind these that stand there.
var entryOrder = []string{"digest", "definitions", "prefix", "grant", keyConfig}

// keyConfig is the key of what a module reads.
const keyConfig = "config"

// replace writes a key of the entry with its value.
func (t *editor) replace(key string, lines []string) {
	modules, entry := t.spans()
	if modules == nil {
		return
	}
	if entry == nil {
		t.insert(modules.end, modules.below, append([]string{scalarText(t.module) + ":"}, indented(lines, 2)...))
		return
	}
	if old := t.child(entry, key); old != nil {
		if old.end == old.first+1 && len(lines) == 1 {
			lines = []string{lines[0] + comment(t.lines[old.first-1], old.value)}
		}
		t.cut(old)
		t.insert(old.first, old.indent, lines)
		return
	}
	t.insert(t.place(entry, key), entry.below, lines)
}

// place returns the line before which a new key goes.
func (t *editor) place(entry *span, key string) int {
	at := entry.first + 1
	for _, before := range entryOrder[:slices.Index(entryOrder, key)] {
		if s := t.child(entry, before); s != nil {
			at = s.end
		}
	}
	return at
}

// comment returns the comment at the end of a line that holds a digest.
func comment(line string, value *node) string {
	i := strings.Index(line, " #")
	if i < 0 || value.kind != scalar || strings.Contains(value.text, "#") {
		return ""
	}
	return "  " + strings.TrimSpace(line[i:])
}

// remove takes a key out of the entry.
func (t *editor) remove(key string) {
	if _, entry := t.spans(); entry != nil {
		if s := t.child(entry, key); s != nil {
			t.cut(s)
		}
	}
}

// dropEmpty takes the entry away if nothing is left in it.
func (t *editor) dropEmpty() {
	if _, entry := t.spans(); entry != nil && entry.value.kind == nothing {
		t.cut(entry)
	}
}

// setGrant changes the grant kind by kind, and lists rule by rule.
func (t *editor) setGrant(g Grant) {
	_, entry := t.spans()
	if entry == nil || t.child(entry, "grant") == nil {
		t.replace("grant", g.yaml())
		return
	}
	grant := t.child(entry, "grant")
	if grant.value.flow || len(grant.value.pairs) == 0 || len(g.Kinds()) == 0 {
		t.replace("grant", g.yaml())
		return
	}
	for _, kind := range kinds() {
		t.setKind(kind, g)
	}
}

// setKind changes what a grant that is written as lines says of one kind. Each
// change moves lines, so it looks for the grant again.
func (t *editor) setKind(kind string, g Grant) {
	_, entry := t.spans()
	grant := t.child(entry, "grant")
	if grant == nil {
		return
	}
	old, wanted := t.child(grant, kind), slices.Contains(g.Kinds(), kind)
	switch {
	case old == nil && wanted:
		t.insert(grant.end, grant.below, g.yamlOf(kind))
	case old != nil && !wanted:
		t.cut(old)
	case old != nil && !t.setItems(old, kind, g):
		t.cut(old)
		t.insert(old.first, old.indent, g.yamlOf(kind))
	}
}

// setItems keeps the rules of a list that stay, takes out the others and puts new
// ones behind. It reports whether that could be done.
func (t *editor) setItems(old *span, kind string, g Grant) bool {
	var before Grant
	(&reader{}).grant(&node{kind: mapping, pairs: []pair{{kind, 0, old.value}}}, "", &before, false)
	if slices.Equal(before.yamlOf(kind), g.yamlOf(kind)) {
		return true
	}
	had, want := before.yamlItems(kind), g.yamlItems(kind)
	if old.value.flow || len(had) == 0 || len(had) != len(old.value.items) {
		return false
	}
	items := t.items(old)
	if items == nil {
		return false
	}
	var fresh []string
	for _, rule := range want {
		if !slices.Contains(had, rule) {
			fresh = append(fresh, "- "+rule)
		}
	}
	t.insert(old.end, items[0].indent, fresh)
	for i, item := range slices.Backward(items) {
		if !slices.Contains(want, had[i]) {
			t.cut(item)
		}
	}
	return true
}

// items returns the lines of each item of a list, nil if some item does not begin
// a line with its dash.
func (t *editor) items(list *span) (spans []*span) {
	for i, item := range list.value.items {
		if item.line <= list.first || !strings.HasPrefix(strings.TrimSpace(t.lines[item.line-1]), "- ") {
			return nil
		}
		s := &span{first: item.line, end: list.end, value: item}
		if i+1 < len(list.value.items) {
			s.end = list.value.items[i+1].line
		}
		if s.end <= s.first {
			return nil
		}
		spans = append(spans, t.trim(s))
	}
	return spans
}
