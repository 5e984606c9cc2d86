package tool

import (
	"slices"
	"strings"
)

// combinators are what the Claude API refuses at the root of an input schema.
// The bool says whether a branch of it always applies.
var combinators = []struct {
	name   string
	always bool
}{
	{"allOf", true}, {"anyOf", false}, {"oneOf", false}, {"not", false}, {"if", false}, {"then", false}, {"else", false},
}

// liftCombinators replaces the combinators at the root by the properties that
// their branches name, so that a model still sees what it can say.
func (w *rewriter) liftCombinators(where string, root *node) *node {
	l := lifter{w: w, choices: map[string][]*node{}, offered: map[string]bool{}, followed: map[*node]bool{}}
	l.branches(root, true)
	var gone []string
	for _, c := range combinators {
		if root.get(c.name) != nil {
			gone = append(gone, c.name)
		}
	}
	if len(gone) == 0 {
		return root
	}
	w.warnf("%s: %s at the root left out, hosts refuse it there; arguments are still checked against it", where, strings.Join(gone, ", "))
	return l.into(root.without(gone...))
}

// A lifter gathers the properties of branches, in order.
type lifter struct {
	w        *rewriter
	names    []string
	choices  map[string][]*node
	offered  map[string]bool // name and text of what is in choices
	followed map[*node]bool  // targets of references, each visited once
	required []*node
}

// branches visits the branches of n's combinators. What not and if say is a
// condition, not an offer.
func (l *lifter) branches(n *node, always bool) {
	for _, c := range combinators {
		if c.name == "not" || c.name == "if" {
			continue
		}
		branches := n.get(c.name)
		if branches.is(kindObject) {
			l.branch(branches, always && c.always)
		} else if branches.is(kindArray) {
			for _, b := range branches.items {
				l.branch(b, always && c.always)
			}
		}
	}
}

func (l *lifter) branch(b *node, always bool) {
	if ref := b.get("$ref"); ref != nil {
		target, err := l.w.target("", ref)
		if err != nil || l.followed[target] {
			return
		}
		l.followed[target] = true
		b = target
	}
	if properties := b.get("properties"); properties.is(kindObject) {
		for _, m := range properties.members {
			l.offer(m.name, m.value)
		}
	}
	if required := b.get("required"); always && required.is(kindArray) {
		l.required = append(l.required, required.items...)
	}
	l.branches(b, always)
}

func (l *lifter) offer(name string, schema *node) {
	key := quote(name) + schema.String()
	if l.offered[key] {
		return
	}
	l.offered[key] = true
	if l.choices[name] == nil {
		l.names = append(l.names, name)
	}
	l.choices[name] = append(l.choices[name], schema)
}

// into adds to root the properties it does not name itself.
func (l *lifter) into(root *node) *node {
	old := root.get("properties")
	if len(l.names) > 0 && (old == nil || old.is(kindNull) || old.is(kindObject)) {
		properties := newObject()
		if old.is(kindObject) {
			properties.members = slices.Clone(old.members)
			for _, m := range old.members {
				delete(l.choices, m.name)
			}
		}
		for _, name := range l.names {
			if schemas := l.choices[name]; schemas != nil {
				properties.members = append(properties.members, newMember(name, choice(schemas)))
			}
		}
		root = root.set("properties", properties)
	}
	return l.intoRequired(root)
}

func choice(schemas []*node) *node {
	if len(schemas) == 1 {
		return schemas[0]
	}
	return newObject(newMember("anyOf", &node{kind: kindArray, items: schemas}))
}

// intoRequired adds what branches that always apply require.
func (l *lifter) intoRequired(root *node) *node {
	list := &node{kind: kindArray}
	seen := map[string]bool{}
	if old := root.get("required"); old.is(kindArray) {
		for _, name := range old.items {
			seen[name.str()] = true
		}
		list.items = slices.Clone(old.items)
	}
	before := len(list.items)
	for _, name := range l.required {
		if name.is(kindString) && !seen[name.str()] {
			seen[name.str()] = true
			list.items = append(list.items, name)
		}
	}
	if len(list.items) == before {
		return root
	}
	return root.set("required", list)
}
