package portable

import (
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/rawjson"
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
func (w *rewriter) liftCombinators(where string, root *rawjson.Node) *rawjson.Node {
	l := lifter{w: w, choices: map[string][]*rawjson.Node{}, offered: map[string]bool{}, followed: map[*rawjson.Node]bool{}}
	l.branches(root, true)
	var gone []string
	for _, c := range combinators {
		if root.Get(c.name) != nil {
			gone = append(gone, c.name)
		}
	}
	if len(gone) == 0 {
		return root
	}
	w.warnf("%s: %s at the root left out, hosts refuse it there; arguments are still checked against it", where, strings.Join(gone, ", "))
	return l.into(root.Without(gone...))
}

// A lifter gathers the properties of branches, in order.
type lifter struct {
	w        *rewriter
	names    []string
	choices  map[string][]*rawjson.Node
	offered  map[string]bool        // name and text of what is in choices
	followed map[*rawjson.Node]bool // targets of references, each visited once
	required []*rawjson.Node
}

// branches visits the branches of n's combinators. What not and if say is a
// condition, not an offer.
func (l *lifter) branches(n *rawjson.Node, always bool) {
	for _, c := range combinators {
		if c.name == "not" || c.name == "if" {
			continue
		}
		branches := n.Get(c.name)
		if branches.Is(rawjson.Object) {
			l.branch(branches, always && c.always)
		} else if branches.Is(rawjson.Array) {
			for _, b := range branches.Items {
				l.branch(b, always && c.always)
			}
		}
	}
}

func (l *lifter) branch(b *rawjson.Node, always bool) {
	if ref := b.Get("$ref"); ref != nil {
		target, err := l.w.target("", ref)
		if err != nil || l.followed[target] {
			return
		}
		l.followed[target] = true
		b = target
	}
	if properties := b.Get("properties"); properties.Is(rawjson.Object) {
		for _, m := range properties.Members {
			l.offer(m.Name, m.Value)
		}
	}
	if required := b.Get("required"); always && required.Is(rawjson.Array) {
		l.required = append(l.required, required.Items...)
	}
	l.branches(b, always)
}

func (l *lifter) offer(name string, schema *rawjson.Node) {
	key := rawjson.Quote(name) + schema.String()
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
func (l *lifter) into(root *rawjson.Node) *rawjson.Node {
	old := root.Get("properties")
	if len(l.names) > 0 && (old == nil || old.Is(rawjson.Null) || old.Is(rawjson.Object)) {
		properties := rawjson.NewObject()
		if old.Is(rawjson.Object) {
			properties.Members = slices.Clone(old.Members)
			for _, m := range old.Members {
				delete(l.choices, m.Name)
			}
		}
		for _, name := range l.names {
			if schemas := l.choices[name]; schemas != nil {
				properties.Members = append(properties.Members, rawjson.NewMember(name, choice(schemas)))
			}
		}
		root = root.Set("properties", properties)
	}
	return l.intoRequired(root)
}

func choice(schemas []*rawjson.Node) *rawjson.Node {
	if len(schemas) == 1 {
		return schemas[0]
	}
	return rawjson.NewObject(rawjson.NewMember("anyOf", &rawjson.Node{Kind: rawjson.Array, Items: schemas}))
}

// intoRequired adds what branches that always apply require.
func (l *lifter) intoRequired(root *rawjson.Node) *rawjson.Node {
	list := &rawjson.Node{Kind: rawjson.Array}
	seen := map[string]bool{}
	if old := root.Get("required"); old.Is(rawjson.Array) {
		for _, name := range old.Items {
			seen[name.Str()] = true
		}
		list.Items = slices.Clone(old.Items)
	}
	before := len(list.Items)
	for _, name := range l.required {
		if name.Is(rawjson.String) && !seen[name.Str()] {
			seen[name.Str()] = true
			list.Items = append(list.Items, name)
		}
	}
	if len(list.Items) == before {
		return root
	}
	return root.Set("required", list)
}
