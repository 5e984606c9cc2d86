// Package rawjson reads JSON that a stranger wrote, strictly, and keeps the order
// and the numbers as they were written.
package rawjson

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

// MaxDepth is how deep JSON from a module or a peer may nest: a scalar has
// depth 0, [] has 1.
const MaxDepth = 64

const (
	// HardDepth bounds the recursion, whatever depth a caller asks for.
	HardDepth = 10_000
	// maxNumber and maxExponent keep a short text from standing for a number
	// that whoever computes with it could not hold.
	maxNumber   = 1000
	maxExponent = 9999
	// maxShown is in bytes, of a key in an error.
	maxShown = 60
	// fewKeys is up to how many keys of an object are compared one by one.
	fewKeys = 16
)

// Check reports whether raw is exactly one JSON value (RFC 8259) that every
// parser reads the same way: valid UTF-8, no key twice in one object after
// unescaping, no lone surrogate, nested at most maxDepth deep, numbers of at
// most 1,000 characters and exponents up to 9,999. It stores object keys and
// nothing else. The error is one line with byte offset and path.
func Check(raw []byte, maxDepth int) error {
	_, err := scan(raw, maxDepth, false)
	return err
}

// Parse is Check that keeps what it read.
func Parse(raw []byte, maxDepth int) (*Node, error) {
	return scan(raw, maxDepth, true)
}

func scan(raw []byte, maxDepth int, keep bool) (*Node, error) {
	s := &scanner{text: string(raw), max: min(maxDepth, HardDepth), keep: keep}
	n, err := s.document()
	if err != nil {
		return nil, err
	}
	return n, nil
}

// A syntaxError collects its path while the recursion unwinds, so that good
// input pays nothing for it.
type syntaxError struct {
	offset int
	text   string
	path   []string // innermost step first
}

func (e *syntaxError) Error() string {
	path := slices.Clone(e.path)
	slices.Reverse(path)
	return fmt.Sprintf("json: offset %d, at $%s: %s", e.offset, strings.Join(path, ""), e.text)
}

func (e *syntaxError) in(step string) *syntaxError {
	const deepest = 32 // steps shown
	if len(e.path) == deepest {
		e.path[deepest-1] = "..."
	}
	if len(e.path) >= deepest {
		e.path = e.path[:deepest-1]
	}
	e.path = append(e.path, step)
	return e
}

// A scanner walks one text from front to back. Its methods return a nil node
// unless keep is set.
type scanner struct {
	text  string
	off   int
	depth int
	max   int
	keep  bool
}

func (s *scanner) fail(format string, args ...any) *syntaxError {
	return &syntaxError{offset: s.off, text: fmt.Sprintf(format, args...)}
}

func (s *scanner) document() (*Node, error) {
	if !utf8.ValidString(s.text) {
		s.off = invalidUTF8(s.text)
		return nil, s.fail("invalid UTF-8")
	}
	n, err := s.value()
	if err != nil {
		return nil, err
	}
	if s.skipSpace(); s.off < len(s.text) {
		return nil, s.fail("found %s after the value, allowed is one value", s.found())
	}
	return n, nil
}

func invalidUTF8(text string) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

func (s *scanner) skipSpace() {
	for s.off < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.off]) >= 0 {
		s.off++
	}
}

// peek returns the next byte, 0 at the end. No byte of value 0 is ever valid
// where peek is used.
func (s *scanner) peek() byte {
	if s.off < len(s.text) {
		return s.text[s.off]
	}
	return 0
}

func (s *scanner) found() string {
	if s.off >= len(s.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.off:])
	return strconv.QuoteRuneToASCII(r)
}

func (s *scanner) value() (*Node, *syntaxError) {
	s.skipSpace()
	switch c := s.peek(); {
	case c == '{':
		return s.nested(s.object)
	case c == '[':
		return s.nested(s.array)
	case c == '"':
		return s.scalar(String, s.str)
	case c == '-' || isDigit(c):
		return s.scalar(Number, s.number)
	case c == 't':
		return s.scalar(Bool, s.literal("true"))
	case c == 'f':
		return s.scalar(Bool, s.literal("false"))
	case c == 'n':
		return s.scalar(Null, s.literal("null"))
	}
	return nil, s.fail("found %s, expected a value", s.found())
}

func (s *scanner) nested(read func() (*Node, *syntaxError)) (*Node, *syntaxError) {
	if s.depth >= s.max {
		return nil, s.fail("nested deeper than %d, the most allowed", s.max)
	}
	s.depth++
	s.off++
	n, err := read()
	s.depth--
	return n, err
}

func (s *scanner) scalar(k Kind, read func() *syntaxError) (*Node, *syntaxError) {
	start := s.off
	if err := read(); err != nil || !s.keep {
		return nil, err
	}
	return &Node{Kind: k, Text: s.text[start:s.off]}, nil
}

func (s *scanner) literal(word string) func() *syntaxError {
	return func() *syntaxError {
		if !strings.HasPrefix(s.text[s.off:], word) {
			return s.fail("found %s, expected %s", s.found(), word)
		}
		s.off += len(word)
		return nil
	}
}

func (s *scanner) array() (*Node, *syntaxError) {
	n := s.container(Array)
	if s.skipSpace(); s.peek() == ']' {
		s.off++
		return n, nil
	}
	for i := 0; ; i++ {
		item, err := s.value()
		if err != nil {
			return nil, err.in("[" + strconv.Itoa(i) + "]")
		}
		if s.keep {
			n.Items = append(n.Items, item)
		}
		if more, err := s.separator(']'); err != nil || !more {
			return n, err
		}
	}
}

func (s *scanner) object() (*Node, *syntaxError) {
	n := s.container(Object)
	if s.skipSpace(); s.peek() == '}' {
		s.off++
		return n, nil
	}
	var seen keySet
	for {
		name, written, err := s.key(&seen)
		if err != nil {
			return nil, err
		}
		item, err := s.value()
		if err != nil {
			return nil, err.in("." + PathStep(name))
		}
		if s.keep {
			n.Members = append(n.Members, Member{Name: name, Value: item, written: written})
		}
		if more, err := s.separator('}'); err != nil || !more {
			return n, err
		}
	}
}

func (s *scanner) container(k Kind) *Node {
	if !s.keep {
		return nil
	}
	return &Node{Kind: k}
}

// key reads a key and its colon, and returns it unescaped and as written.
func (s *scanner) key(seen *keySet) (name, written string, err *syntaxError) {
	if s.skipSpace(); s.peek() != '"' {
		return "", "", s.fail("found %s, expected a key in double quotes", s.found())
	}
	start := s.off
	if err := s.str(); err != nil {
		return "", "", err
	}
	written = s.text[start:s.off]
	if name = unquote(written); !seen.add(name) {
		s.off = start
		return "", "", s.fail("key %s stands twice in one object", PathStep(name))
	}
	if s.skipSpace(); s.peek() != ':' {
		return "", "", s.fail("found %s, expected a colon", s.found())
	}
	s.off++
	return name, written, nil
}

// separator reports whether another element follows, and eats what says so.
func (s *scanner) separator(end byte) (bool, *syntaxError) {
	s.skipSpace()
	switch s.peek() {
	case ',':
		s.off++
		return true, nil
	case end:
		s.off++
		return false, nil
	}
	return false, s.fail("found %s, expected a comma or %q", s.found(), end)
}

// A keySet holds the keys of one object: a list while they are few.
type keySet struct {
	few  []string
	many map[string]struct{}
}

// add reports whether name is new.
func (k *keySet) add(name string) bool {
	if k.many == nil {
		if slices.Contains(k.few, name) {
			return false
		}
		if k.few = append(k.few, name); len(k.few) <= fewKeys {
			return true
		}
		k.many = make(map[string]struct{}, 4*fewKeys)
		for _, old := range k.few {
			k.many[old] = struct{}{}
		}
		return true
	}
	size := len(k.many)
	k.many[name] = struct{}{}
	return len(k.many) > size
}

// shown quotes text from outside for an error, in ASCII: letters that look alike
// do not.
func shown(text string) string { return strconv.QuoteToASCII(abi.Cut(text, maxShown)) }

// PathStep returns key as a step of a path in an error: quoted and cut, unless it
// reads well as it is.
func PathStep(name string) string {
	if plain(strings.TrimPrefix(name, "$")) {
		return name
	}
	return shown(name)
}

func plain(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"0123456789_.-") == ""
}
