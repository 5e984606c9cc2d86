package portable

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

const (
	// maxSchema is in bytes, as it comes and as it goes.
	maxSchema = 128 << 10
	// maxSchemaDepth counts schemas within schemas.
	maxSchemaDepth = 20
)

func (p *profiler) inputSchema(raw json.RawMessage) (json.RawMessage, error) {
	const where = "inputSchema"
	root, err := readSchema(where, raw)
	if err != nil {
		return nil, err
	}
	if !root.Is(rawjson.Object) {
		return nil, fmt.Errorf("%s: found %s, allowed is an object with \"type\":\"object\"", where, root.What())
	}
	w := newRewriter(p, root)
	if root, err = w.inline(where); err != nil {
		return nil, err
	}
	if root, err = w.objectRoot(where, root); err != nil {
		return nil, err
	}
	return w.finish(where, w.liftCombinators(where, root))
}

func (p *profiler) outputSchema(raw json.RawMessage) json.RawMessage {
	const where = "outputSchema"
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	out, err := p.portableOutput(where, raw)
	if err != nil {
		p.warnf("%s: left out: %s", where, err)
		return nil
	}
	return out
}

func (p *profiler) portableOutput(where string, raw json.RawMessage) (json.RawMessage, error) {
	root, err := readSchema(where, raw)
	if err != nil {
		return nil, err
	}
	w := newRewriter(p, root)
	if root, err = w.inline(where); err != nil {
		return nil, err
	}
	if root.Get("type").Str() != string(rawjson.Object) {
		return nil, fmt.Errorf("the root is not of type object, and older clients drop every tool for that")
	}
	return w.finish(where, root)
}

func readSchema(where string, raw json.RawMessage) (*rawjson.Node, error) {
	switch {
	case len(raw) == 0:
		return nil, fmt.Errorf("%s: missing, allowed is an object with \"type\":\"object\"", where)
	case len(raw) > maxSchema:
		return nil, fmt.Errorf("%s: %d bytes, at most %d", where, len(raw), maxSchema)
	}
	root, err := rawjson.Parse(raw, rawjson.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return root, nil
}

// A rewriter makes one schema portable.
type rewriter struct {
	*profiler
	references
}

func newRewriter(p *profiler, root *rawjson.Node) *rewriter {
	return &rewriter{profiler: p, references: references{root: root}}
}

// finish rewrites every sub-schema and gives the properties a root must have.
func (w *rewriter) finish(where string, root *rawjson.Node) (json.RawMessage, error) {
	root, err := w.prune(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if root, err = w.rewrite(where, root, 1); err != nil {
		return nil, err
	}
	if root.Get("properties") == nil {
		root = root.Set("properties", rawjson.NewObject())
	}
	raw := root.Compact()
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("%s: %d bytes with references inlined, at most %d", where, len(raw), maxSchema)
	}
	return raw, nil
}

// objectRoot sees to it that the root says type object. Arguments are always an
// object, so saying it where nothing was said takes nothing away.
func (w *rewriter) objectRoot(where string, root *rawjson.Node) (*rawjson.Node, error) {
	t := root.Get("type")
	switch {
	case t.Str() == string(rawjson.Object):
		return root, nil
	case t == nil:
		w.warnf("%s: \"type\":\"object\" added", where)
	case t.Is(rawjson.Array) && slices.ContainsFunc(t.Items, func(n *rawjson.Node) bool { return n.Str() == string(rawjson.Object) }):
		w.warnf("%s: type %s became \"object\", arguments are always one", where, shownNode(t))
	default:
		return nil, fmt.Errorf("%s: type %s, allowed is \"object\"", where, shownNode(t))
	}
	return root.Set("type", rawjson.NewString(string(rawjson.Object))), nil
}

// rewrite returns the sub-schema n as an object that hosts take.
func (w *rewriter) rewrite(where string, n *rawjson.Node, depth int) (*rawjson.Node, error) {
	switch {
	case depth > maxSchemaDepth:
		return nil, fmt.Errorf("%s: schemas nested deeper than %d, the most allowed", where, maxSchemaDepth)
	case n.Is(rawjson.Bool):
		w.warnf("%s: the schema %s became an object", where, n.Text)
		if n.Text == "true" {
			return rawjson.NewObject(), nil
		}
		return rawjson.NewObject(rawjson.NewMember("not", rawjson.NewObject())), nil
	case !n.Is(rawjson.Object):
		return nil, fmt.Errorf("%s: found %s, allowed is a schema", where, n.What())
	}
	out := rawjson.NewObject()
	for _, m := range n.Members {
		kept, err := w.keyword(where, n, m)
		if err != nil {
			return nil, err
		}
		out.Members = append(out.Members, kept...)
	}
	if typeAllows(out.Get("type"), "array") && out.Get("items") == nil {
		w.warnf("%s: an array without items, \"items\":{} added", where)
		out = out.Set("items", rawjson.NewObject())
	}
	return mapSchemas(out, where, func(where string, sub *rawjson.Node) (*rawjson.Node, error) { return w.rewrite(where, sub, depth+1) })
}

// typeAllows reports whether the value of a type keyword names that type.
func typeAllows(t *rawjson.Node, name string) bool {
	return t.Str() == name || t.Is(rawjson.Array) && slices.ContainsFunc(t.Items, func(n *rawjson.Node) bool { return n.Str() == name })
}

// keyword returns what stands in place of member m of the schema n.
func (w *rewriter) keyword(where string, n *rawjson.Node, m rawjson.Member) ([]rawjson.Member, error) {
	at := where + "." + rawjson.PathStep(m.Name)
	switch m.Name {
	case "$schema":
		return nil, nil
	case "$defs", "definitions":
		if w.resolvedAll {
			return nil, nil
		}
	case "$dynamicRef", "$recursiveRef":
		return nil, fmt.Errorf("%s: hosts do not follow it, use $ref", at)
	case "properties":
		return w.properties(at, m)
	case "required":
		return w.required(at, m)
	case "items":
		if m.Value.Is(rawjson.Array) {
			return w.tuple(at, n, m)
		}
	case "additionalItems":
		if n.Get("items").Is(rawjson.Array) {
			return nil, nil // its place is now items, see tuple
		}
	case "type":
		return []rawjson.Member{m}, w.checkType(at, m.Value)
	case "enum":
		w.warnEnum(at, m.Value)
	case "title", "description", "$comment":
		if m.Value.Is(rawjson.String) {
			if clean := w.visible(at, m.Value.Str()); clean != m.Value.Str() {
				m.Value = rawjson.NewString(clean)
			}
			return []rawjson.Member{m}, nil
		}
	}
	return []rawjson.Member{m}, w.checkContainer(at, m)
}

func (w *rewriter) properties(at string, m rawjson.Member) ([]rawjson.Member, error) {
	switch {
	case m.Value.Is(rawjson.Null):
		w.warnf("%s: null became {}", at)
		m.Value = rawjson.NewObject()
	case !m.Value.Is(rawjson.Object):
		return nil, fmt.Errorf("%s: found %s, allowed is an object", at, m.Value.What())
	}
	for _, property := range m.Value.Members {
		if !portableKey(property.Name) {
			return nil, fmt.Errorf("%s: property %s, allowed are 1 to 64 letters, digits, _ . and -", at, shown(property.Name))
		}
	}
	return []rawjson.Member{m}, nil
}

func (w *rewriter) required(at string, m rawjson.Member) ([]rawjson.Member, error) {
	switch {
	case m.Value.Is(rawjson.Null), m.Value.Is(rawjson.Bool):
		w.warnf("%s: %s left out, allowed is a list of names", at, m.Value.Text)
		return nil, nil
	case !m.Value.Is(rawjson.Array):
		return nil, fmt.Errorf("%s: found %s, allowed is a list of names", at, m.Value.What())
	}
	for _, name := range m.Value.Items {
		if !name.Is(rawjson.String) {
			return nil, fmt.Errorf("%s: found %s in it, allowed is a list of names", at, name.What())
		}
	}
	return []rawjson.Member{m}, nil
}

// tuple turns items and additionalItems of older drafts into what they are
// called since 2020-12, the default once $schema is gone.
func (w *rewriter) tuple(at string, n *rawjson.Node, m rawjson.Member) ([]rawjson.Member, error) {
	if n.Get("prefixItems") != nil {
		return nil, fmt.Errorf("%s: a list beside prefixItems, allowed is a schema", at)
	}
	w.warnf("%s: the list became prefixItems", at)
	rest := n.Get("additionalItems")
	if rest == nil {
		rest = rawjson.NewObject()
	}
	return []rawjson.Member{rawjson.NewMember("prefixItems", m.Value), rawjson.NewMember("items", rest)}, nil
}

func (w *rewriter) checkType(at string, t *rawjson.Node) error {
	names := []*rawjson.Node{t}
	if t.Is(rawjson.Array) && len(t.Items) > 0 {
		w.warnf("%s: several types, which some hosts refuse", at)
		names = t.Items
	}
	for _, name := range names {
		switch name.Str() {
		case "null", "boolean", "object", "array", "number", "string", "integer":
		default:
			return fmt.Errorf("%s: found %s, allowed are the names of JSON types", at, shownNode(t))
		}
	}
	return nil
}

func (w *rewriter) warnEnum(at string, list *rawjson.Node) {
	for _, value := range list.Items {
		if !value.Is(rawjson.String) {
			w.warnf("%s: not only strings, which some hosts refuse", at)
			return
		}
	}
}

// checkContainer refuses a keyword whose sub-schemas do not stand where they
// should, and tells of hidden characters in values that cannot be changed.
func (w *rewriter) checkContainer(at string, m rawjson.Member) error {
	switch positions[m.Name] {
	case inObject:
		if !m.Value.Is(rawjson.Object) {
			return fmt.Errorf("%s: found %s, allowed is an object", at, m.Value.What())
		}
	case inList:
		if !m.Value.Is(rawjson.Array) {
			return fmt.Errorf("%s: found %s, allowed is a list of schemas", at, m.Value.What())
		}
	case noSchema:
		if anyHidden(m.Value) {
			w.warnf("%s: hidden characters in a value", at)
		}
	}
	return nil
}
