package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// DefinitionHash identifies what a module says its tools are, as 64 lower-case
// hex digits: the SHA-256 of tools and requests as one compact JSON value. Keys
// are sorted by their bytes, strings carry the fewest escapes (RFC 8785), numbers
// stay as written, tools keep the module's order. Version does not count.
// Take it of the description as exported, before prefix and profile.
//
// The error says which JSON of d is broken.
func DefinitionHash(d Description) (string, error) {
	d.Version = ""
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return "", fmt.Errorf("definition hash: %w", err)
	}
	n, err := parseJSON(b.Bytes(), hardDepth)
	if err != nil {
		return "", fmt.Errorf("definition hash: %w", err)
	}
	sum := sha256.Sum256(n.canonical().compact())
	return hex.EncodeToString(sum[:]), nil
}

// canonical returns n with sorted keys and normal strings.
func (n *node) canonical() *node {
	out := &node{kind: n.kind, text: n.text}
	if n.kind == kindString {
		out.text = quote(unquote(n.text))
	}
	for _, m := range n.members {
		out.members = append(out.members, newMember(m.name, m.value.canonical()))
	}
	slices.SortFunc(out.members, func(a, b member) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	for _, item := range n.items {
		out.items = append(out.items, item.canonical())
	}
	return out
}
