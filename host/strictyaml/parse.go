package strictyaml

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hutch-run/hutch/protocol/abi"
)

// parse reads body in two steps. The library's lexer is linear, its parser takes
// time and memory quadratic in the depth, 7 GB for 64 KiB of brackets, and in the
// keys of one mapping. So both are counted as the parser would see them, in the
// lexer's tokens, before the parser does.
func parse(name string, body []byte) (*Node, error) {
	tokens := lexer.Tokenize(string(body))
	if err := checkTokens(name, tokens); err != nil {
		return nil, err
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // take says it better
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil {
			return nil, fmt.Errorf("%s:%d: %s", name, bad.GetToken().Position.Line, abi.OneLine(bad.GetMessage(), maxMessage))
		}
		return nil, fmt.Errorf("%s: %s", name, abi.OneLine(err.Error(), maxMessage))
	}
	root := &Node{document: name, line: 1}
	found := false
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if found {
			return nil, fmt.Errorf("%s:%d: a second document: one is read", name, lineOf(doc.Body))
		}
		found = true
		if root, err = node(name, "", doc.Body); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// maxMessage bounds what the library says, in bytes: it can quote the document.
const maxMessage = 200

// refused are the tokens of what makes a value something else than what stands at
// its key.
var refused = map[token.Type]string{
	token.AnchorType:     "anchors (&) are not read: write the value where it belongs",
	token.AliasType:      "aliases (*) are not read: write the value where it belongs",
	token.MergeKeyType:   "merge keys (<<) are not read: write the keys where they belong",
	token.TagType:        "tags (!) are not read: leave it away, or put the value in quotes",
	token.DirectiveType:  "directives (%) are not read: leave it away",
	token.MappingKeyType: "explicit keys (?) are not read: write key: value",
}

func checkTokens(name string, tokens token.Tokens) error {
	var n nesting
	keys := 0
	for i, t := range tokens {
		if why := refused[t.Type]; why != "" {
			return fmt.Errorf("%s:%d: %s", name, t.Position.Line, why)
		}
		isKey := i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
		if isKey {
			keys++
		}
		if keys > MaxKeys {
			return fmt.Errorf("%s:%d: more than %d keys", name, t.Position.Line, MaxKeys)
		}
		if isKey && (t.Type == token.SequenceEndType || t.Type == token.MappingEndType) {
			return fmt.Errorf("%s:%d: a key is one plain value, not a list or a mapping", name, t.Position.Line)
		}
		if n.see(t, isKey); n.depth() > MaxDepth {
			return fmt.Errorf("%s:%d: nested deeper than %d levels", name, t.Position.Line, MaxDepth)
		}
	}
	return nil
}

// nesting is how deep a token stands: in so many brackets, and below so many keys
// and dashes.
type nesting struct {
	brackets int
	// block are the columns where the mappings and lists begin that are open; see
	// [place].
	block []int
}

func (n *nesting) depth() int { return n.brackets + len(n.block) }

func (n *nesting) see(t *token.Token, isKey bool) {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.brackets++
	case token.SequenceEndType, token.MappingEndType:
		n.brackets = max(n.brackets-1, 0)
	case token.SequenceEntryType:
		n.enter(place(t, true))
	case token.DocumentHeaderType, token.DocumentEndType:
		n.block = n.block[:0]
	default:
		if isKey && n.brackets == 0 {
			n.enter(place(t, false))
		}
	}
}

// place orders what begins in a column: a list may begin where its own key does,
// and is in it nevertheless.
func place(t *token.Token, isList bool) int {
	if isList {
		return 2*t.Position.Column + 1
	}
	return 2 * t.Position.Column
}

func (n *nesting) enter(at int) {
	for len(n.block) > 0 && n.block[len(n.block)-1] > at {
		n.block = n.block[:len(n.block)-1]
	}
	if len(n.block) == 0 || n.block[len(n.block)-1] < at {
		n.block = append(n.block, at)
	}
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// node turns the library's tree into ours.
func node(name, path string, from ast.Node) (*Node, error) {
	n := &Node{document: name, line: lineOf(from), path: path}
	switch from := from.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text = plain, from.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = plain, from.GetToken().Value
	case *ast.SequenceNode:
		n.kind = list
		for i, v := range from.Values {
			item, err := node(name, fmt.Sprintf("%s[%d]", path, i), v)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.MappingNode:
		return n, n.take(from.Values)
	case *ast.MappingValueNode:
		return n, n.take([]*ast.MappingValueNode{from})
	default:
		n.kind = other
	}
	return n, nil
}

// take makes n a mapping of pairs.
func (n *Node) take(pairs []*ast.MappingValueNode) error {
	n.kind = mapping
	seen := map[string]int{}
	for _, pair := range pairs {
		key, line := pair.Key.GetToken().Value, lineOf(pair.Key)
		path := join(n.path, abi.Cut(key, maxShown))
		if first, twice := seen[key]; twice {
			return fmt.Errorf("%s:%d: %s: stands there twice, first in line %d", n.document, line, path, first)
		}
		seen[key] = line
		v, err := node(n.document, path, pair.Value)
		if err != nil {
			return err
		}
		n.fields = append(n.fields, field{key, line, v})
	}
	return nil
}
