// Package strictyaml reads a bounded, strict YAML document and names line and
// key in errors.
//
// Strict means: one document of at most [MaxBytes] in valid UTF-8 without hidden
// characters, nested at most [MaxDepth] deep, with at most [MaxKeys] keys, of
// mappings, lists and single values alone. Anchors, aliases, merge keys, tags,
// directives and explicit keys are refused, and by [Node.Each] keys that stand there
// twice, so that a value is what stands at its key. JSON is YAML too.
//
// Errors are, or join, [*Finding]; see [Findings].
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	// MaxBytes is the largest document that is read.
	MaxBytes = 64 << 10
	// MaxDepth is how many mappings and lists may stand in each other.
	MaxDepth = 16
	// MaxKeys is how many keys it may have in all.
	MaxKeys = 4096
)

// A Node is a value of a document: a mapping, a list, a single value, or nothing
// where a key has no value. It knows where it stands.
type Node struct {
	document string
	line     int
	parent   *Node  // nil at the root
	key      string // of a mapping; empty for an item of a list
	index    int    // of a list
	kind     Kind
	flow     bool
	bare     bool
	text     string
	fields   []Field
	items    []*Node
}

// Kind is what a value is.
type Kind int

// The kinds.
const (
	Nothing Kind = iota
	Plain        // on its line, with or without quotes
	List
	Mapping
	Block // a text of several lines behind | or >
)

// A Field is one key of a mapping.
type Field struct {
	Name  string
	Line  int // of the key
	Value *Node
}

// Parse reads the only document in body; name is what errors call it. An empty
// one is a Node without a value.
func Parse(name string, body []byte) (*Node, error) { return ParseWithin(name, body, Bounds{}) }

// ParseWithin is [Parse] for documents that may be larger or must be smaller.
func ParseWithin(name string, body []byte, b Bounds) (*Node, error) {
	b = b.withDefaults()
	if err := checkBytes(name, body, b.Bytes); err != nil {
		return nil, err
	}
	n, err := parse(name, body, b)
	if line := tabbedLine(body); err != nil && line > 0 { // most likely why, and the library says it badly
		return nil, finding(name, line, "tabs cannot indent in YAML: use spaces")
	}
	return n, err
}

// tabbedLine is the first line that is indented with a tab, 0 if none is.
func tabbedLine(body []byte) int {
	n := 0
	for line := range bytes.Lines(body) {
		n++
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.ContainsRune(indent, '\t') {
			return n
		}
	}
	return 0
}

// checkBytes refuses what a person and the parser could read differently.
func checkBytes(name string, body []byte, most int) error {
	if len(body) > most {
		return finding(name, 1, "%d bytes: at most %d", len(body), most)
	}
	line := 1
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return finding(name, line, "not valid UTF-8: save it in that encoding")
		case r == '\n':
			line++
		case r == '\r' && bytes.HasPrefix(body[i:], []byte("\r\n")), r == '\t':
		case abi.Hidden(r):
			return finding(name, line, "the hidden character %U: remove it, what is not seen cannot be checked", r)
		}
		i += size
	}
	return nil
}

// Each calls set with the value of every key of a mapping, in the order of the
// document; i is the key's index in names. A key that is not among them or stands
// there twice is an error; a Node without a value has none. What is wrong with one
// key does not keep the others from being looked at: their errors are joined.
func (n *Node) Each(names []string, set func(i int, v *Node) error) error {
	switch n.kind {
	case Nothing:
		return nil
	case Mapping:
	default:
		return n.Errorf("keys and values are wanted here")
	}
	var wrong []error
	seen := map[string]int{}
	for _, f := range n.fields {
		i := slices.Index(names, f.Name)
		switch {
		case seen[f.Name] > 0:
			wrong = append(wrong, n.keyError(f, "stands there twice, first in line %d", seen[f.Name]))
		case i < 0:
			wrong = append(wrong, n.keyError(f, "no such key; there are %s", strings.Join(names, ", ")))
		default:
			wrong = append(wrong, set(i, f.Value))
		}
		if seen[f.Name] == 0 {
			seen[f.Name] = f.Line
		}
	}
	return errors.Join(wrong...)
}

func (n *Node) keyError(f Field, format string, args ...any) error {
	return &Finding{n.document, f.Line, join(n.path(), abi.Cut(f.Name, maxShown)), fmt.Errorf(format, args...)}
}

// maxShown is how much of a key an error shows, in bytes.
const maxShown = 80

// Kind says what n is.
func (n *Node) Kind() Kind { return n.kind }

// IsList reports whether n is a list.
func (n *Node) IsList() bool { return n.kind == List }

// IsFlow reports whether n is a list or a mapping in brackets or braces.
func (n *Node) IsFlow() bool { return n.flow }

// Fields returns the keys of a mapping as they stand there; they are the Node's.
func (n *Node) Fields() []Field { return n.fields }

// All returns the elements of a list as they stand there; they are the Node's.
func (n *Node) All() []*Node { return n.items }

// IsBare reports whether n is a plain value that YAML takes for a number or a truth
// value, and not for a text, as it does with 1 and true, and not with "1".
func (n *Node) IsBare() bool { return n.bare }

// Raw returns a single value as it was written, without its quotes.
func (n *Node) Raw() string { return n.text }

// Items returns the elements of a list that has some.
func (n *Node) Items() ([]*Node, error) {
	switch {
	case n.kind != List:
		return nil, n.Errorf("a list is wanted here")
	case len(n.items) == 0:
		return nil, n.Errorf("empty: name at least one")
	}
	return n.items, nil
}

// Text returns a plain value as it was written, without its quotes. It is never
// empty.
func (n *Node) Text() (string, error) {
	switch {
	case n.kind != Plain && n.kind != Nothing:
		return "", n.Errorf("one plain value is wanted here")
	case n.text == "":
		return "", n.Errorf("empty")
	}
	return n.text, nil
}

// Line is where n begins, from 1.
func (n *Node) Line() int { return n.line }

// Errorf returns a [*Finding] about n, which wraps what %w stands for.
func (n *Node) Errorf(format string, args ...any) error {
	return &Finding{n.document, n.line, n.path(), fmt.Errorf(format, args...)}
}

// A Finding is one mistake in a document.
type Finding struct {
	Document string
	Line     int    // from 1
	Key      string // from the root, as in "limits.timeout"; may be empty
	Err      error
}

func finding(document string, line int, format string, args ...any) *Finding {
	return &Finding{Document: document, Line: line, Err: fmt.Errorf(format, args...)}
}

// Error returns the finding on one line that begins with where it is.
func (f *Finding) Error() string {
	if f.Key == "" {
		return fmt.Sprintf("%s:%d: %v", f.Document, f.Line, f.Err)
	}
	return fmt.Sprintf("%s:%d: %s: %v", f.Document, f.Line, f.Key, f.Err)
}

// Unwrap returns what is wrong.
func (f *Finding) Unwrap() error { return f.Err }

// Findings returns the mistakes that an error of this package is made of, in the
// order in which they were found.
func Findings(err error) (all []*Finding) {
	switch err := err.(type) { //nolint:errorlint // it unwraps itself, to see all that is joined
	case *Finding:
		return []*Finding{err}
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			all = append(all, Findings(one)...)
		}
	case interface{ Unwrap() error }:
		return Findings(err.Unwrap())
	}
	return all
}

// path is where n stands from the root, as in "limits.timeout" or "tools[1]"; empty at
// the root.
func (n *Node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.key == "":
		return fmt.Sprintf("%s[%d]", n.parent.path(), n.index)
	}
	return join(n.parent.path(), abi.Cut(n.key, maxShown))
}

// join is the path of a key below path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
