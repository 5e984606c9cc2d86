// Package strictyaml reads a bounded, strict YAML document and names line and
// key in errors.
//
// Strict means: one document of at most [MaxBytes] in valid UTF-8, nested at most
// [MaxDepth] deep, with at most [MaxKeys] keys, of mappings, lists and plain values
// alone. Anchors, aliases, merge keys, tags, directives, explicit keys and keys that
// stand there twice are refused, so that a value is what stands at its key. JSON is
// YAML too.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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

// ReadFile returns the bytes of a regular file of at most [MaxBytes], or behind a
// link to one. It never waits for whoever writes a pipe. Errors do not repeat the
// path.
func ReadFile(path string) (_ []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s, not a regular file", typeOf(info.Mode()))
	}
	body, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(body) > MaxBytes {
		return nil, fmt.Errorf("larger than %dKiB", MaxBytes>>10)
	}
	return body, nil
}

func withoutPath(err error) error {
	var bad *os.PathError
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

func typeOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&os.ModeNamedPipe != 0:
		return "a pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	default:
		return "something special"
	}
}

// A Node is a value of a document: a mapping, a list, one plain value, or nothing
// where a key has no value. It knows where it stands.
type Node struct {
	document string
	line     int
	path     string // from the root, as in "limits.timeout" or "tools[1]"; empty at the root
	kind     kind
	text     string
	fields   []field
	items    []*Node
}

type kind int

const (
	nothing kind = iota
	plain
	list
	mapping
	other // a value of YAML that no document here needs
)

type field struct {
	name  string
	line  int
	value *Node
}

// Parse reads the only document in body; name is what errors call it. An empty
// one is a Node without a value.
func Parse(name string, body []byte) (*Node, error) {
	if err := checkBytes(name, body); err != nil {
		return nil, err
	}
	n, err := parse(name, body)
	if line := tabbedLine(body); err != nil && line > 0 { // most likely why, and the library says it badly
		return nil, fmt.Errorf("%s:%d: tabs cannot indent in YAML: use spaces", name, line)
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

func checkBytes(name string, body []byte) error {
	if len(body) > MaxBytes {
		return fmt.Errorf("%s: larger than %dKiB", name, MaxBytes>>10)
	}
	if utf8.Valid(body) {
		return nil
	}
	line := 1
	for rest := body; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			break
		}
		line += bytes.Count(rest[:size], []byte{'\n'})
		rest = rest[size:]
	}
	return fmt.Errorf("%s:%d: not valid UTF-8: save it in that encoding", name, line)
}

// Each calls set with the value of every key of a mapping, in the order of the
// document; i is the key's index in names. Another key is an error; a Node without
// a value has none.
func (n *Node) Each(names []string, set func(i int, v *Node) error) error {
	switch n.kind {
	case nothing:
		return nil
	case mapping:
	default:
		return n.Errorf("keys and values are wanted here")
	}
	for _, f := range n.fields {
		i := slices.Index(names, f.name)
		if i < 0 {
			return fmt.Errorf("%s:%d: %s: no such key; there are %s", n.document, f.line, join(n.path, abi.Cut(f.name, maxShown)), strings.Join(names, ", "))
		}
		if err := set(i, f.value); err != nil {
			return err
		}
	}
	return nil
}

// maxShown is how much of a key an error shows, in bytes.
const maxShown = 80

// IsList reports whether n is a list.
func (n *Node) IsList() bool { return n.kind == list }

// Items returns the elements of a list that has some.
func (n *Node) Items() ([]*Node, error) {
	switch {
	case n.kind != list:
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
	case n.kind != plain && n.kind != nothing:
		return "", n.Errorf("one plain value is wanted here")
	case n.text == "":
		return "", n.Errorf("empty")
	}
	return n.text, nil
}

// Line is where n begins, from 1.
func (n *Node) Line() int { return n.line }

// Errorf returns an error that begins with the document, the line and the key of n,
// and wraps what %w stands for.
func (n *Node) Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if n.path == "" {
		return fmt.Errorf("%s:%d: %w", n.document, n.line, err)
	}
	return fmt.Errorf("%s:%d: %s: %w", n.document, n.line, n.path, err)
}

// join is the path of a key below path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
