package capability

import (
	"errors"

	"github.com/hutch-run/hutch/protocol/strictyaml"
)

// What a policy file may be made of; see [strictyaml].
const (
	// MaxPolicyBytes is the largest policy file; a thousand modules fit.
	MaxPolicyBytes = 1 << 20
	maxDepth       = strictyaml.MaxDepth
	maxKeys        = 100_000
	maxTokens      = 300_000
	// maxSiblings is how many modules there may be, and keys in anything else: the
	// time to parse one mapping is quadratic in it.
	maxSiblings = 2_000
)

// A fault is why a text is no YAML of ours.
type fault struct {
	line       int
	key, found string
}

func (f *fault) Error() string { return f.finding().String() }

func (f *fault) finding() Finding { return Finding{f.line, f.key, f.found, ""} }

// readYAML returns the only document of a text. It is nothing if there is none.
func readYAML(text []byte) (*node, *fault) {
	root, err := strictyaml.ParseWithin("", text, strictyaml.Bounds{Bytes: MaxPolicyBytes, Keys: maxKeys, Siblings: maxSiblings, Tokens: maxTokens})
	if bad := (*strictyaml.Finding)(nil); errors.As(err, &bad) {
		return nil, &fault{bad.Line, bad.Key, bad.Err.Error()}
	}
	if err != nil {
		return nil, &fault{1, "", err.Error()}
	}
	return fromYAML(root), nil
}

// fromYAML turns what was read into a tree of ours.
func fromYAML(n *strictyaml.Node) *node {
	out := &node{line: n.Line(), flow: n.IsFlow()}
	switch n.Kind() {
	case strictyaml.Plain, strictyaml.Block:
		out.kind, out.text = scalar, n.Raw()
	case strictyaml.List:
		out.kind = sequence
		for _, item := range n.All() {
			out.items = append(out.items, fromYAML(item))
		}
	case strictyaml.Mapping:
		out.kind = mapping
		for _, f := range n.Fields() {
			out.pairs = append(out.pairs, pair{f.Name, f.Line, fromYAML(f.Value)})
		}
	}
	return out
}
