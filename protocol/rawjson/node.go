package rawjson

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Node is one JSON value as it was written: members keep their order, and
// scalars their text. Nodes are shared between trees and never changed in
// place once they are. A nil Node is no value, and of no kind.
type Node struct {
	Kind    Kind
	Text    string // of a scalar, verbatim
	Members []Member
	Items   []*Node
}

// A Member is one name of an object, with its value.
type Member struct {
	Name    string // unescaped
	Value   *Node
	written string // the name as it was written, with quotes
}

// Kind is what a value is, in the words of JSON Schema.
type Kind string

// The kinds of values.
const (
	Object Kind = "object"
	Array  Kind = "array"
	String Kind = "string"
	Number Kind = "number"
	Bool   Kind = "boolean"
	Null   Kind = "null"
)

// NewMember returns a member whose name is written as [Quote] does.
func NewMember(name string, value *Node) Member {
	return Member{Name: name, Value: value, written: Quote(name)}
}

// NewString returns a string, written as [Quote] does.
func NewString(text string) *Node { return &Node{Kind: String, Text: Quote(text)} }

// NewObject returns an object with these members.
func NewObject(members ...Member) *Node { return &Node{Kind: Object, Members: members} }

// Is reports whether n is of kind k.
func (n *Node) Is(k Kind) bool { return n != nil && n.Kind == k }

// What names n for an error.
func (n *Node) What() string {
	if n == nil {
		return "nothing"
	}
	return string(n.Kind)
}

// Str returns the text of a string, "" for anything else.
func (n *Node) Str() string {
	if !n.Is(String) {
		return ""
	}
	return unquote(n.Text)
}

// Get returns the value of the member of that name, nil if there is none.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return n.Members[i].Value
}

// Child returns one step of a JSON pointer, nil if there is nothing.
func (n *Node) Child(token string) *Node {
	if n.Is(Object) {
		return n.Get(token)
	}
	i, err := strconv.ParseUint(token, 10, 31)
	if err != nil || !n.Is(Array) || i >= uint64(len(n.Items)) {
		return nil
	}
	return n.Items[i]
}

// Set returns a copy of n in which name is value: in its place, else at the end.
func (n *Node) Set(name string, value *Node) *Node {
	members := slices.Clone(n.Members)
	i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return NewObject(append(members, NewMember(name, value))...)
	}
	members[i].Value = value
	return NewObject(members...)
}

// Without returns a copy of n without the members of those names.
func (n *Node) Without(names ...string) *Node {
	return NewObject(slices.DeleteFunc(slices.Clone(n.Members), func(m Member) bool {
		return slices.Contains(names, m.Name)
	})...)
}

// Canonical returns n with sorted keys, and strings written as [Quote] does.
// Numbers stay as written.
func (n *Node) Canonical() *Node {
	out := &Node{Kind: n.Kind, Text: n.Text}
	if n.Kind == String {
		out.Text = Quote(unquote(n.Text))
	}
	for _, m := range n.Members {
		out.Members = append(out.Members, NewMember(m.Name, m.Value.Canonical()))
	}
	slices.SortFunc(out.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for _, item := range n.Items {
		out.Items = append(out.Items, item.Canonical())
	}
	return out
}

// Compact writes n without white space, everything else as it was written.
func (n *Node) Compact() []byte {
	return n.append(nil)
}

func (n *Node) append(b []byte) []byte {
	switch n.Kind {
	case Object:
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, m.written...), ':')
			b = m.Value.append(b)
		}
		return append(b, '}')
	case Array:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	}
	return append(b, n.Text...)
}

// unquote returns what a string literal that was scanned stands for.
func unquote(literal string) string {
	if strings.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	var text string
	_ = json.Unmarshal([]byte(literal), &text) // the scanner was stricter
	return text
}

// Quote writes text as a string literal with as few escapes as JSON allows
// (RFC 8785, 3.2.2.2). Bytes that are no UTF-8 become U+FFFD.
func Quote(text string) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(text)+2)
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= 0x20:
			b = utf8.AppendRune(b, r)
		case shortEscapes[r] != 0:
			b = append(b, '\\', shortEscapes[r])
		default:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		}
	}
	return string(append(b, '"'))
}

var shortEscapes = [0x20]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

// String returns n as compact JSON.
func (n *Node) String() string { return string(n.Compact()) }
