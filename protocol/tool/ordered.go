package tool

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A node is one JSON value as it was written: members keep their order, and
// scalars their text. Nodes are shared between trees and never changed in
// place once they are.
type node struct {
	kind    kind
	text    string // of a scalar, verbatim
	members []member
	items   []*node
}

type member struct {
	name  string // unescaped
	text  string // as written, with quotes
	value *node
}

type kind string

const (
	kindObject kind = "object"
	kindArray  kind = "array"
	kindString kind = "string"
	kindNumber kind = "number"
	kindBool   kind = "boolean"
	kindNull   kind = "null"
)

func newMember(name string, value *node) member {
	return member{name: name, text: quote(name), value: value}
}

func newString(text string) *node { return &node{kind: kindString, text: quote(text)} }

func newObject(members ...member) *node { return &node{kind: kindObject, members: members} }

// is reports whether n, which may be nil, is of kind k.
func (n *node) is(k kind) bool { return n != nil && n.kind == k }

// what names n for an error.
func (n *node) what() string {
	if n == nil {
		return "nothing"
	}
	return string(n.kind)
}

// str returns the text of a string, "" for anything else.
func (n *node) str() string {
	if !n.is(kindString) {
		return ""
	}
	return unquote(n.text)
}

// get returns the member of that name, nil if there is none.
func (n *node) get(name string) *node {
	if n.is(kindObject) {
		for i := range n.members {
			if n.members[i].name == name {
				return n.members[i].value
			}
		}
	}
	return nil
}

// set returns a copy of n in which name is value: in its place, else at the end.
func (n *node) set(name string, value *node) *node {
	out := &node{kind: kindObject, members: make([]member, 0, len(n.members)+1)}
	found := false
	for _, m := range n.members {
		if m.name == name {
			m.value, found = value, true
		}
		out.members = append(out.members, m)
	}
	if !found {
		out.members = append(out.members, newMember(name, value))
	}
	return out
}

// without returns a copy of n without the members of those names.
func (n *node) without(names ...string) *node {
	out := &node{kind: kindObject, members: make([]member, 0, len(n.members))}
next:
	for _, m := range n.members {
		for _, name := range names {
			if m.name == name {
				continue next
			}
		}
		out.members = append(out.members, m)
	}
	return out
}

// compact writes n without white space, everything else as it was written.
func (n *node) compact() []byte {
	var b []byte
	return n.append(b)
}

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case kindObject:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, m.text...), ':')
			b = m.value.append(b)
		}
		return append(b, '}')
	case kindArray:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	}
	return append(b, n.text...)
}

// unquote returns what a string literal that was scanned stands for.
func unquote(literal string) string {
	body := literal[1 : len(literal)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			b.WriteByte(body[i])
			i++
			continue
		}
		i += unescape(&b, body[i:])
	}
	return b.String()
}

// unescape writes what the escape at the front of text stands for, and returns
// its length.
func unescape(b *strings.Builder, text string) int {
	if text[1] != 'u' {
		b.WriteByte(escapes[text[1]])
		return 2
	}
	unit, _ := hex4(text[1:])
	if low, ok := lowSurrogate(text[6:]); ok && utf16.IsSurrogate(rune(unit)) {
		b.WriteRune(utf16.DecodeRune(rune(unit), rune(low)))
		return 12
	}
	b.WriteRune(rune(unit))
	return 6
}

var escapes = [...]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// quote writes text as a string literal with as few escapes as JSON allows
// (RFC 8785, 3.2.2.2). Bytes that are no UTF-8 become U+FFFD.
func quote(text string) string {
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
func (n *node) String() string { return string(n.compact()) }

// shown quotes n for an error, cut to a length.
func (n *node) shown() string {
	if n.is(kindString) {
		return shown(n.str())
	}
	return shown(n.String())
}

// anyHidden reports whether a key or a string within n hides characters.
func (n *node) anyHidden() bool {
	switch n.kind {
	case kindString:
		return hasHidden(n.str())
	case kindArray:
		for _, item := range n.items {
			if item.anyHidden() {
				return true
			}
		}
	case kindObject:
		for _, m := range n.members {
			if hasHidden(m.name) || m.value.anyHidden() {
				return true
			}
		}
	}
	return false
}
