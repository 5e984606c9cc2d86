package capability

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// A node is one value of a policy file or of a module's requests, whichever
// language it was written in.
type node struct {
	kind  nodeKind
	text  string // of a scalar, without quotes
	line  int    // 0 in requests
	pairs []pair
	items []*node
	flow  bool // written in braces or brackets
}

type nodeKind int

const (
	nothing nodeKind = iota
	scalar
	mapping
	sequence
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "keys and values", "a list"}[k]
}

type pair struct {
	key   string
	line  int
	value *node
}

// get returns the value of a key, nil if there is none.
func (n *node) get(key string) *pair {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.pairs, func(p pair) bool { return p.key == key })
	if i < 0 {
		return nil
	}
	return &n.pairs[i]
}

// maxFindings is how many mistakes are told at once.
const maxFindings = 20

// PolicyError lists what is wrong with a policy file, or with what a module
// requests.
type PolicyError struct {
	// Name is the file, or "requests".
	Name string
	// Findings are the first 20, in the order of the text; More counts the rest.
	Findings []Finding
	More     int
}

// Finding is one mistake.
type Finding struct {
	// Line is 0 if what was read has no lines.
	Line int
	// Key is the path to the value, such as modules.x.wasm.grant.http[0].host.
	Key string
	// Found and Allowed say what stands there, and what may.
	Found, Allowed string
}

// String returns the finding on one line.
func (f Finding) String() string {
	text := f.Found
	if f.Allowed != "" {
		text += ": " + f.Allowed
	}
	if f.Key != "" {
		text = f.Key + ": " + text
	}
	return text
}

// Lines returns each finding with its place.
func (e *PolicyError) Lines() []string {
	var lines []string
	for _, f := range e.Findings {
		at := e.Name
		if f.Line > 0 {
			at += ":" + strconv.Itoa(f.Line)
		}
		lines = append(lines, at+": "+f.String())
	}
	return lines
}

// Error returns the first finding, and how many there are besides.
func (e *PolicyError) Error() string {
	rest := len(e.Findings) - 1 + e.More
	if rest == 0 {
		return e.Lines()[0]
	}
	return fmt.Sprintf("%s (and %d more)", e.Lines()[0], rest)
}

// A reader walks a tree and collects what is wrong with it. Requests are read
// with the same grammar; asks is set for them.
type reader struct {
	findings []Finding
	more     int
	asks     bool
}

func (r *reader) bad(line int, key, found, allowed string) {
	if len(r.findings) == maxFindings {
		r.more++
		return
	}
	r.findings = append(r.findings, Finding{line, shownKey(key), found, allowed})
}

// err returns what was found, nil if nothing was.
func (r *reader) err(name string) error {
	if len(r.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return &PolicyError{Name: name, Findings: r.findings, More: r.more}
}

// shownKey keeps a path on one short line: names in it come from outside.
func shownKey(key string) string { return abi.OneLine(key, 200) }

// shown quotes a value from outside.
func shown(text string) string {
	const longest = 60
	return strconv.QuoteToASCII(abi.Cut(text, longest))
}

// what names a value for a finding.
func (n *node) what() string {
	if n.kind == scalar {
		return shown(n.text)
	}
	return n.kind.String()
}

// A field is one key that a mapping may have.
type field struct {
	name string
	read func(n *node, at string)
}

// fields reads a mapping whose keys are known.
func (r *reader) fields(n *node, at string, known []field) {
	if n.kind != mapping {
		r.bad(n.line, at, "found "+n.what(), "keys and values are wanted here")
		return
	}
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	r.each(n, at, func(p pair, at string) {
		i := slices.Index(names, p.key)
		if i < 0 {
			r.bad(p.line, at, "no such key", "allowed are "+strings.Join(names, ", "))
			return
		}
		known[i].read(p.value, at)
	})
}

// each visits the pairs of a mapping, and finds keys that stand there twice.
func (r *reader) each(n *node, at string, visit func(p pair, at string)) {
	if n.kind != mapping {
		r.bad(n.line, at, "found "+n.what(), "keys and values are wanted here")
		return
	}
	seen := make(map[string]bool, len(n.pairs))
	for _, p := range n.pairs {
		below := p.key
		if at != "" {
			below = at + "." + p.key
		}
		if seen[p.key] {
			r.bad(p.line, below, "stands there twice", "once is enough")
			continue
		}
		seen[p.key] = true
		visit(p, below)
	}
}

// maxItems is how many items a list may have. Lists are compared item by item,
// and what a module requests is a stranger's.
const maxItems = 256

// list visits the items of a list.
func (r *reader) list(n *node, at string, visit func(n *node, at string)) {
	if n.kind != sequence {
		r.bad(n.line, at, "found "+n.what(), "a list is wanted here")
		return
	}
	if len(n.items) > maxItems {
		r.bad(n.line, at, fmt.Sprintf("found %d items", len(n.items)), fmt.Sprintf("at most %d", maxItems))
		return
	}
	for i, item := range n.items {
		visit(item, at+"["+strconv.Itoa(i)+"]")
	}
}

// text reads a single value that is not empty.
func (r *reader) text(n *node, at string) (string, bool) {
	if n.kind != scalar {
		r.bad(n.line, at, "found "+n.what(), "a single value is wanted here")
		return "", false
	}
	if n.text == "" {
		r.bad(n.line, at, "found an empty value", "write one, or leave the key out")
		return "", false
	}
	return n.text, true
}

// value reads a single value with parse, whose error says what is allowed.
func value[T any](r *reader, n *node, at string, into *T, parse func(string) (T, error)) {
	text, ok := r.text(n, at)
	if !ok {
		return
	}
	v, err := parse(text)
	if err != nil {
		r.bad(n.line, at, "found "+shown(text), err.Error())
		return
	}
	*into = v
}

// values reads a list of different single values with parse, at least one.
func values[T comparable](r *reader, n *node, at string, into *[]T, parse func(string) (T, error)) {
	before := len(r.findings)
	r.list(n, at, func(n *node, at string) {
		var v T
		seen := len(r.findings) + r.more
		value(r, n, at, &v, parse)
		switch {
		case len(r.findings)+r.more > seen:
		case slices.Contains(*into, v):
			r.bad(n.line, at, "found "+n.what()+" twice", "once is enough")
		default:
			*into = append(*into, v)
		}
	})
	if n.kind == sequence && len(n.items) == 0 && len(r.findings) == before {
		r.bad(n.line, at, "found an empty list", "it can never match: leave the key out, or name something")
	}
}

// word returns a parser for one of a few words.
func word[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		var names []string
		for _, w := range words {
			names = append(names, string(w))
		}
		return "", fmt.Errorf("allowed are %s", strings.Join(names, ", "))
	}
}

// fromJSON turns what a module requests into a tree.
func fromJSON(n *rawjson.Node) *node {
	out := &node{}
	switch n.Kind {
	case rawjson.Object:
		out.kind = mapping
		for _, m := range n.Members {
			out.pairs = append(out.pairs, pair{key: m.Name, value: fromJSON(m.Value)})
		}
	case rawjson.Array:
		out.kind = sequence
		for _, item := range n.Items {
			out.items = append(out.items, fromJSON(item))
		}
	case rawjson.String:
		out.kind, out.text = scalar, n.Str()
	case rawjson.Number, rawjson.Bool:
		out.kind, out.text = scalar, n.Text
	}
	return out
}
