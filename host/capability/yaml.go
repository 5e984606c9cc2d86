package capability

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hutch-run/hutch/protocol/abi"
)

// What a policy file may be made of. The parser takes quadratic memory on
// brackets in brackets, so depth is counted in the tokens, before it runs.
const (
	// MaxPolicyBytes is the largest policy file; a thousand modules fit.
	MaxPolicyBytes = 1 << 20
	maxDepth       = 16
	maxTokens      = 300_000
)

// A fault is why a text is no YAML of ours.
type fault struct {
	line           int
	found, allowed string
}

func (f *fault) Error() string { return Finding{f.line, "", f.found, f.allowed}.String() }

// readYAML returns the only document of a text, nil if there is none.
func readYAML(text []byte) (*node, *fault) {
	if f := checkText(text); f != nil {
		return nil, f
	}
	// The lexer counts \r\n as two lines.
	tokens := lexer.Tokenize(strings.ReplaceAll(string(text), "\r\n", "\n"))
	if f := checkTokens(tokens); f != nil {
		return nil, f
	}
	// Keys that stand twice are found by the reader, which takes less time.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, faultOf(err)
	}
	return onlyDocument(file)
}

func faultOf(err error) *fault {
	var bad yaml.Error
	if errors.As(err, &bad) && bad.GetToken() != nil && bad.GetToken().Position != nil {
		return &fault{bad.GetToken().Position.Line, "no YAML", abi.OneLine(bad.GetMessage(), 200)}
	}
	return &fault{1, "no YAML", abi.OneLine(err.Error(), 200)}
}

func onlyDocument(file *ast.File) (root *node, f *fault) {
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if _, comments := doc.Body.(*ast.CommentGroupNode); comments {
			continue
		}
		if root != nil {
			return nil, &fault{lineOf(doc.Body), "found a second document", "one is read"}
		}
		if root, f = fromYAML(doc.Body, 0); f != nil {
			return nil, f
		}
	}
	return root, nil
}

// checkText refuses what a person and the parser could read differently.
func checkText(text []byte) *fault {
	if len(text) > MaxPolicyBytes {
		return &fault{1, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d: split the tools over several state directories", MaxPolicyBytes)}
	}
	line := 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return &fault{line, "found bytes that are no UTF-8", "save the file as UTF-8"}
		case r == '\n':
			line++
		case r == '\r' && bytes.HasPrefix(text[i:], []byte("\r\n")), r == '\t':
		case abi.Hidden(r):
			return &fault{line, fmt.Sprintf("found the hidden character %U", r), "remove it: what is not seen cannot be checked"}
		}
		i += size
	}
	return nil
}

// refused are parts of YAML that let a text say something elsewhere than where
// it stands, or that policies have no use for.
func refused(t token.Type) (found, allowed string) {
	const plainly = "write the value where it is used"
	switch t {
	case token.AnchorType:
		return "found an anchor (&)", plainly + ", or put it in quotes"
	case token.AliasType:
		return "found an alias (*)", plainly + `, or put it in quotes, as in "*"`
	case token.MergeKeyType:
		return "found a merge key (<<)", plainly
	case token.TagType:
		return "found a tag (!)", "leave it out, or put it in quotes"
	case token.DirectiveType:
		return "found a directive (%)", "leave it out"
	case token.MappingKeyType:
		return "found a key after ?", "write it as key: value"
	}
	return "", ""
}

func checkTokens(tokens token.Tokens) *fault {
	if len(tokens) > maxTokens {
		return &fault{1, fmt.Sprintf("found %d pieces of text", len(tokens)), fmt.Sprintf("at most %d", maxTokens)}
	}
	var d depth
	for _, t := range tokens {
		if t.Position == nil {
			continue
		}
		if found, allowed := refused(t.Type); found != "" {
			return &fault{t.Position.Line, found, allowed}
		}
		if d.see(t) > maxDepth {
			return &fault{t.Position.Line, "nested deeper than a policy is", fmt.Sprintf("at most %d levels", maxDepth)}
		}
	}
	return nil
}

// depth counts how many values are open around a token.
type depth struct {
	brackets int
	blocks   []block // outermost first, in columns that never shrink
}

type block struct {
	column int
	list   bool
}

func (d *depth) see(t *token.Token) int {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.brackets++
	case token.SequenceEndType, token.MappingEndType:
		d.brackets = max(d.brackets-1, 0)
	case token.SequenceEntryType:
		d.open(block{t.Position.Column, true})
	case token.MappingValueType:
		if t.Prev != nil && t.Prev.Position != nil {
			d.open(block{t.Prev.Position.Column, false})
		}
	}
	return d.brackets + len(d.blocks)
}

// open notes a list's dash or a mapping's key. A list may stand in the column of
// the key that it belongs to.
func (d *depth) open(b block) {
	if d.brackets > 0 {
		return
	}
	for len(d.blocks) > 0 {
		top := d.blocks[len(d.blocks)-1]
		if top == b {
			return
		}
		if top.column < b.column || top.column == b.column && b.list {
			break
		}
		d.blocks = d.blocks[:len(d.blocks)-1]
	}
	d.blocks = append(d.blocks, b)
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// fromYAML turns what the parser made into a tree of ours.
func fromYAML(n ast.Node, deep int) (*node, *fault) {
	if deep > maxDepth {
		return nil, &fault{lineOf(n), "nested deeper than a policy is", fmt.Sprintf("at most %d levels", maxDepth)}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return fromMapping(n, n.Values, n.IsFlowStyle, deep)
	case *ast.MappingValueNode:
		return fromMapping(n, []*ast.MappingValueNode{n}, false, deep)
	case *ast.SequenceNode:
		out := &node{kind: sequence, line: lineOf(n), flow: n.IsFlowStyle}
		for _, v := range n.Values {
			item, f := fromYAML(v, deep+1)
			if f != nil {
				return nil, f
			}
			out.items = append(out.items, item)
		}
		return out, nil
	}
	return fromScalar(n)
}

func fromMapping(n ast.Node, values []*ast.MappingValueNode, flow bool, deep int) (*node, *fault) {
	out := &node{kind: mapping, line: lineOf(n), flow: flow}
	for _, v := range values {
		key, f := fromScalar(v.Key)
		if f != nil {
			return nil, f
		}
		if key.kind != scalar || key.text == "" {
			return nil, &fault{lineOf(v.Key), "found a key that is no word", "write it as key: value"}
		}
		value, f := fromYAML(v.Value, deep+1)
		if f != nil {
			return nil, f
		}
		out.pairs = append(out.pairs, pair{key.text, key.line, value})
	}
	return out, nil
}

func fromScalar(n ast.Node) (*node, *fault) {
	out := &node{kind: scalar, line: lineOf(n)}
	switch n := n.(type) {
	case *ast.StringNode:
		out.text = n.Value
	case *ast.LiteralNode:
		out.text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		out.text = strings.TrimSpace(n.GetToken().Value)
	case *ast.NullNode:
		out.kind = nothing
	default:
		return nil, &fault{lineOf(n), "found " + strings.ToLower(n.Type().String()), "a single value is wanted here"}
	}
	return out, nil
}
