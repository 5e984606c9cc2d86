package tool

import (
	"encoding/json"
	"fmt"
	"slices"
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
	if !root.is(kindObject) {
		return nil, fmt.Errorf("%s: found %s, allowed is an object with \"type\":\"object\"", where, root.what())
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
	if root.get("type").str() != string(kindObject) {
		return nil, fmt.Errorf("the root is not of type object, and older clients drop every tool for that")
	}
	return w.finish(where, root)
}

func readSchema(where string, raw json.RawMessage) (*node, error) {
	switch {
	case len(raw) == 0:
		return nil, fmt.Errorf("%s: missing, allowed is an object with \"type\":\"object\"", where)
	case len(raw) > maxSchema:
		return nil, fmt.Errorf("%s: %d bytes, at most %d", where, len(raw), maxSchema)
	}
	root, err := parseJSON(raw, MaxDepth)
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

func newRewriter(p *profiler, root *node) *rewriter {
	return &rewriter{profiler: p, references: references{root: root}}
}

// finish rewrites every sub-schema and gives the properties a root must have.
func (w *rewriter) finish(where string, root *node) (json.RawMessage, error) {
	root, err := w.prune(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if root, err = w.rewrite(where, root, 1); err != nil {
		return nil, err
	}
	if root.get("properties") == nil {
		root = root.set("properties", newObject())
	}
	raw := root.compact()
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("%s: %d bytes with references inlined, at most %d", where, len(raw), maxSchema)
	}
	return raw, nil
}

// objectRoot sees to it that the root says type object. Arguments are always an
// object, so saying it where nothing was said takes nothing away.
func (w *rewriter) objectRoot(where string, root *node) (*node, error) {
	t := root.get("type")
	switch {
	case t.str() == string(kindObject):
		return root, nil
	case t == nil:
		w.warnf("%s: \"type\":\"object\" added", where)
	case t.is(kindArray) && slices.ContainsFunc(t.items, func(n *node) bool { return n.str() == string(kindObject) }):
		w.warnf("%s: type %s became \"object\", arguments are always one", where, t.shown())
	default:
		return nil, fmt.Errorf("%s: type %s, allowed is \"object\"", where, t.shown())
	}
	return root.set("type", newString(string(kindObject))), nil
}

// rewrite returns the sub-schema n as an object that hosts take.
func (w *rewriter) rewrite(where string, n *node, depth int) (*node, error) {
	switch {
	case depth > maxSchemaDepth:
		return nil, fmt.Errorf("%s: schemas nested deeper than %d, the most allowed", where, maxSchemaDepth)
	case n.is(kindBool):
		w.warnf("%s: the schema %s became an object", where, n.text)
		if n.text == "true" {
			return newObject(), nil
		}
		return newObject(newMember("not", newObject())), nil
	case !n.is(kindObject):
		return nil, fmt.Errorf("%s: found %s, allowed is a schema", where, n.what())
	}
	out := newObject()
	for _, m := range n.members {
		kept, err := w.keyword(where, n, m)
		if err != nil {
			return nil, err
		}
		out.members = append(out.members, kept...)
	}
	if typeAllows(out.get("type"), "array") && out.get("items") == nil {
		w.warnf("%s: an array without items, \"items\":{} added", where)
		out = out.set("items", newObject())
	}
	return out.mapSchemas(where, func(where string, sub *node) (*node, error) { return w.rewrite(where, sub, depth+1) })
}

// typeAllows reports whether the value of a type keyword names that type.
func typeAllows(t *node, name string) bool {
	return t.str() == name || t.is(kindArray) && slices.ContainsFunc(t.items, func(n *node) bool { return n.str() == name })
}

// keyword returns what stands in place of member m of the schema n.
func (w *rewriter) keyword(where string, n *node, m member) ([]member, error) {
	at := where + "." + shownKey(m.name)
	switch m.name {
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
		if m.value.is(kindArray) {
			return w.tuple(at, n, m)
		}
	case "additionalItems":
		if n.get("items").is(kindArray) {
			return nil, nil // its place is now items, see tuple
		}
	case "type":
		return []member{m}, w.checkType(at, m.value)
	case "enum":
		w.warnEnum(at, m.value)
	case "title", "description", "$comment":
		if m.value.is(kindString) {
			if clean := w.visible(at, m.value.str()); clean != m.value.str() {
				m.value = newString(clean)
			}
			return []member{m}, nil
		}
	}
	return []member{m}, w.checkContainer(at, m)
}

func (w *rewriter) properties(at string, m member) ([]member, error) {
	switch {
	case m.value.is(kindNull):
		w.warnf("%s: null became {}", at)
		m.value = newObject()
	case !m.value.is(kindObject):
		return nil, fmt.Errorf("%s: found %s, allowed is an object", at, m.value.what())
	}
	for _, property := range m.value.members {
		if !portableKey(property.name) {
			return nil, fmt.Errorf("%s: property %s, allowed are 1 to 64 letters, digits, _ . and -", at, shown(property.name))
		}
	}
	return []member{m}, nil
}

func (w *rewriter) required(at string, m member) ([]member, error) {
	switch {
	case m.value.is(kindNull), m.value.is(kindBool):
		w.warnf("%s: %s left out, allowed is a list of names", at, m.value.text)
		return nil, nil
	case !m.value.is(kindArray):
		return nil, fmt.Errorf("%s: found %s, allowed is a list of names", at, m.value.what())
	}
	for _, name := range m.value.items {
		if !name.is(kindString) {
			return nil, fmt.Errorf("%s: found %s in it, allowed is a list of names", at, name.what())
		}
	}
	return []member{m}, nil
}

// tuple turns items and additionalItems of older drafts into what they are
// called since 2020-12, the default once $schema is gone.
func (w *rewriter) tuple(at string, n *node, m member) ([]member, error) {
	if n.get("prefixItems") != nil {
		return nil, fmt.Errorf("%s: a list beside prefixItems, allowed is a schema", at)
	}
	w.warnf("%s: the list became prefixItems", at)
	rest := n.get("additionalItems")
	if rest == nil {
		rest = newObject()
	}
	return []member{newMember("prefixItems", m.value), newMember("items", rest)}, nil
}

func (w *rewriter) checkType(at string, t *node) error {
	names := []*node{t}
	if t.is(kindArray) && len(t.items) > 0 {
		w.warnf("%s: several types, which some hosts refuse", at)
		names = t.items
	}
	for _, name := range names {
		switch name.str() {
		case "null", "boolean", "object", "array", "number", "string", "integer":
		default:
			return fmt.Errorf("%s: found %s, allowed are the names of JSON types", at, t.shown())
		}
	}
	return nil
}

func (w *rewriter) warnEnum(at string, list *node) {
	for _, value := range list.items {
		if !value.is(kindString) {
			w.warnf("%s: not only strings, which some hosts refuse", at)
			return
		}
	}
}

// checkContainer refuses a keyword whose sub-schemas do not stand where they
// should, and tells of hidden characters in values that cannot be changed.
func (w *rewriter) checkContainer(at string, m member) error {
	switch positions[m.name] {
	case inObject:
		if !m.value.is(kindObject) {
			return fmt.Errorf("%s: found %s, allowed is an object", at, m.value.what())
		}
	case inList:
		if !m.value.is(kindArray) {
			return fmt.Errorf("%s: found %s, allowed is a list of schemas", at, m.value.what())
		}
	case noSchema:
		if m.value.anyHidden() {
			w.warnf("%s: hidden characters in a value", at)
		}
	}
	return nil
}
