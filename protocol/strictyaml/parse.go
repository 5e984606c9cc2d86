package strictyaml

import (
	"cmp"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Bounds are how much a document may have; zero is the default of each.
type Bounds struct {
	// Bytes is the largest document that is read. Default: [MaxBytes].
	Bytes int
	// Keys is how many keys it may have in all. Default: [MaxKeys].
	Keys int
	// Siblings is how many keys one mapping may have. Default: as many as Keys.
	Siblings int
	// Tokens is how many words, signs and comments it may have. Default: as many
	// as there are bytes.
	Tokens int
}

func (b Bounds) withDefaults() Bounds {
	b.Bytes, b.Keys = cmp.Or(b.Bytes, MaxBytes), cmp.Or(b.Keys, MaxKeys)
	b.Tokens, b.Siblings = cmp.Or(b.Tokens, b.Bytes), cmp.Or(b.Siblings, b.Keys)
	return b
}

// parse reads body in two steps. The library's lexer is linear, its parser takes
// time and memory quadratic in the depth, 7 GB for 64 KiB of brackets, and in the
// keys of one mapping. So both are counted as the parser would see them, in the
// lexer's tokens, before the parser does.
func parse(name string, body []byte, b Bounds) (*Node, error) {
	// The lexer counts \r\n as two lines.
	tokens := lexer.Tokenize(strings.ReplaceAll(string(body), "\r\n", "\n"))
	if err := checkTokens(name, tokens, b); err != nil {
		return nil, err
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // Each finds them in less time, and says it better
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil && bad.GetToken().Position != nil {
			return nil, finding(name, bad.GetToken().Position.Line, "%s", abi.OneLine(bad.GetMessage(), maxMessage))
		}
		return nil, finding(name, 1, "%s", abi.OneLine(err.Error(), maxMessage))
	}
	root := &Node{document: name, line: 1}
	found := false
	for _, doc := range tree.Docs {
		if _, comments := doc.Body.(*ast.CommentGroupNode); doc.Body == nil || comments {
			continue
		}
		if found {
			return nil, finding(name, lineOf(doc.Body), "a second document: one is read")
		}
		found = true
		if root, err = node(Node{document: name}, doc.Body); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// maxMessage bounds what the library says, in bytes: it can quote the document.
const maxMessage = 200

// refused says why a token is not read that makes a value something else than what
// stands at its key; empty if it is.
func refused(t token.Type) string {
	switch t {
	case token.AnchorType:
		return "anchors (&) are not read: write the value where it belongs, or put it in quotes"
	case token.AliasType:
		return `aliases (*) are not read: write the value where it belongs, or put it in quotes, as in "*"`
	case token.MergeKeyType:
		return "merge keys (<<) are not read: write the keys where they belong"
	case token.TagType:
		return "tags (!) are not read: leave it away, or put the value in quotes"
	case token.DirectiveType:
		return "directives (%) are not read: leave it away"
	case token.MappingKeyType:
		return "explicit keys (?) are not read: write key: value"
	}
	return ""
}

func checkTokens(name string, tokens token.Tokens, b Bounds) error {
	if len(tokens) > b.Tokens {
		return finding(name, 1, "%d words and signs: at most %d", len(tokens), b.Tokens)
	}
	var n nesting
	keys := 0
	for i, t := range tokens {
		if t.Position == nil {
			continue
		}
		if why := refused(t.Type); why != "" {
			return finding(name, t.Position.Line, "%s", why)
		}
		isKey := i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
		if isKey {
			keys++
		}
		if keys > b.Keys {
			return finding(name, t.Position.Line, "more than %d keys", b.Keys)
		}
		if isKey && (t.Type == token.SequenceEndType || t.Type == token.MappingEndType) {
			return finding(name, t.Position.Line, "a key is one plain value, not a list or a mapping")
		}
		if n.see(t, isKey); n.depth() > MaxDepth {
			return finding(name, t.Position.Line, "nested deeper than %d levels", MaxDepth)
		}
		if isKey && n.siblings() > b.Siblings {
			return finding(name, t.Position.Line, "more than %d keys in one mapping", b.Siblings)
		}
	}
	return nil
}

// nesting is how deep a token stands: in so many brackets, and below so many keys
// and dashes.
type nesting struct {
	// brackets are those that are open, with how many keys each has.
	brackets []int
	// block are the columns where the mappings and lists begin that are open; see
	// [place].
	block []opened
}

// opened is a mapping or a list without brackets.
type opened struct{ at, keys int }

func (n *nesting) depth() int { return len(n.brackets) + len(n.block) }

// siblings is how many keys the mapping has that the last token, a key, stands in.
func (n *nesting) siblings() int {
	if last := len(n.brackets) - 1; last >= 0 {
		return n.brackets[last]
	}
	return n.block[len(n.block)-1].keys
}

func (n *nesting) see(t *token.Token, isKey bool) {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.brackets = append(n.brackets, 0)
	case token.SequenceEndType, token.MappingEndType:
		n.brackets = n.brackets[:max(len(n.brackets)-1, 0)]
	case token.SequenceEntryType:
		n.enter(place(t, true))
	case token.DocumentHeaderType, token.DocumentEndType:
		n.block = n.block[:0]
	default:
		switch last := len(n.brackets) - 1; {
		case !isKey:
		case last >= 0:
			n.brackets[last]++
		default:
			n.enter(place(t, false))
			n.block[len(n.block)-1].keys++
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
	for len(n.block) > 0 && n.block[len(n.block)-1].at > at {
		n.block = n.block[:len(n.block)-1]
	}
	if len(n.block) == 0 || n.block[len(n.block)-1].at < at {
		n.block = append(n.block, opened{at: at})
	}
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// node turns the library's tree into ours; at says where it stands.
func node(at Node, from ast.Node) (*Node, error) {
	n := &at
	n.line = lineOf(from)
	switch from := from.(type) {
	case *ast.NullNode:
	case *ast.LiteralNode:
		n.kind, n.text = Block, from.Value.Value
	case *ast.SequenceNode:
		n.kind, n.flow = List, from.IsFlowStyle
		for i, v := range from.Values {
			item, err := node(Node{document: n.document, parent: n, index: i}, v)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.MappingNode:
		n.flow = from.IsFlowStyle
		return n, n.take(from.Values)
	case *ast.MappingValueNode:
		return n, n.take([]*ast.MappingValueNode{from})
	default:
		text, ok := plainText(from)
		if !ok {
			return nil, n.Errorf("%s: a value, a list, or keys and values are wanted here", strings.ToLower(from.Type().String()))
		}
		_, quotable := from.(*ast.StringNode)
		n.kind, n.text, n.bare = Plain, text, !quotable
	}
	return n, nil
}

// plainText returns what stands on its line, without quotes.
func plainText(from ast.Node) (string, bool) {
	switch from := from.(type) {
	case *ast.StringNode:
		return from.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(from.GetToken().Value), true
	}
	return "", false
}

// take makes n a mapping of pairs.
func (n *Node) take(pairs []*ast.MappingValueNode) error {
	n.kind = Mapping
	for _, pair := range pairs {
		line := lineOf(pair.Key)
		key, ok := plainText(pair.Key)
		if !ok || key == "" {
			return finding(n.document, line, "a key that is no word: write key: value")
		}
		v, err := node(Node{document: n.document, parent: n, key: key}, pair.Value)
		if err != nil {
			return err
		}
		n.fields = append(n.fields, Field{key, line, v})
	}
	return nil
}
