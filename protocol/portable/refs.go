package portable

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

const (
	// maxTargets bounds the places that the references of one schema name.
	maxTargets = 256
	// maxInlined bounds the bytes that inlining copies, definitions included.
	maxInlined = 8 * maxSchema
	// maxHops bounds a chain of references at the root.
	maxHops = 16
)

// references inlines the $refs of one schema.
type references struct {
	root        *rawjson.Node // as the module wrote it; what pointers point into
	links       map[*rawjson.Node][]*rawjson.Node
	inlined     int  // bytes
	found       bool // a $ref, whether inlined or not
	nestedID    bool
	resolvedAll bool
}

// inline returns the root with every reference replaced by what it names,
// except those that lead back to themselves.
func (w *rewriter) inline(where string) (*rawjson.Node, error) {
	root := w.root
	for hops := 0; root.Get("$ref") != nil; hops++ {
		if hops == maxHops {
			return nil, fmt.Errorf("%s.$ref: leads back to itself", where)
		}
		target, err := w.target(where, root.Get("$ref"))
		if err != nil {
			return nil, err
		}
		w.found = true
		root = merge(target, root.Without("$ref"))
	}
	root, err := w.expandSubs(where, root, 1)
	if err == nil && w.found && w.nestedID {
		err = fmt.Errorf("%s: a sub-schema with $id beside a $ref, allowed is one or the other", where)
	}
	return root, err
}

func (w *rewriter) expandSubs(where string, n *rawjson.Node, depth int) (*rawjson.Node, error) {
	return mapSchemas(n, where, func(where string, sub *rawjson.Node) (*rawjson.Node, error) { return w.expand(where, sub, depth+1) })
}

func (w *rewriter) expand(where string, n *rawjson.Node, depth int) (*rawjson.Node, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("%s: schemas nested deeper than %d, the most allowed", where, maxSchemaDepth)
	}
	w.nestedID = w.nestedID || n.Get("$id").Is(rawjson.String)
	ref := n.Get("$ref")
	if ref == nil {
		return w.expandSubs(where, n, depth)
	}
	w.found = true
	target, err := w.target(where, ref)
	if err != nil {
		return nil, err
	}
	loop, err := w.recursive(where, target)
	if err != nil {
		return nil, err
	}
	if loop {
		w.warnf("%s: the recursive $ref %s stays, which some hosts do not follow", where, shown(ref.Str()))
		return w.expandSubs(where, n, depth)
	}
	if w.inlined += len(target.Compact()); w.inlined > maxInlined {
		return nil, fmt.Errorf("%s: references stand for more than %d bytes, the most allowed", where, maxInlined)
	}
	if target, err = w.expand(where, target, depth); err != nil {
		return nil, err
	}
	siblings, err := w.expandSubs(where, n.Without("$ref"), depth)
	if err != nil {
		return nil, err
	}
	return merge(target, siblings), nil
}

// merge puts a referenced schema and what stood beside the reference together.
// Both apply, so only what cannot disagree is mixed into one object.
func merge(target, siblings *rawjson.Node) *rawjson.Node {
	out := target
	for _, m := range siblings.Members {
		old := target.Get(m.Name)
		switch {
		case !target.Is(rawjson.Object):
			return wrap(target, siblings)
		case annotation(m.Name), old == nil && (m.Name == "$defs" || m.Name == "definitions"):
			out = out.Set(m.Name, m.Value)
		case old == nil || old.String() != m.Value.String():
			return wrap(target, siblings)
		}
	}
	return out
}

func annotation(name string) bool {
	switch name {
	case "$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	}
	return false
}

func wrap(target, siblings *rawjson.Node) *rawjson.Node {
	all := &rawjson.Node{Kind: rawjson.Array}
	if old := siblings.Get("allOf"); old.Is(rawjson.Array) {
		all.Items = append(all.Items, old.Items...)
	}
	all.Items = append(all.Items, target)
	return siblings.Set("allOf", all)
}

// target returns what ref names.
func (r *references) target(where string, ref *rawjson.Node) (*rawjson.Node, error) {
	tokens, err := pointer(ref)
	if err != nil {
		return nil, fmt.Errorf("%s.$ref: %w", where, err)
	}
	n := r.root
	for _, token := range tokens {
		if n = n.Child(token); n == nil {
			return nil, fmt.Errorf("%s.$ref: nothing stands at %s", where, shown(ref.Str()))
		}
	}
	return n, nil
}

// pointer splits a local reference (RFC 6901, section 6).
func pointer(ref *rawjson.Node) ([]string, error) {
	text := ref.Str()
	rest, local := strings.CutPrefix(text, "#")
	switch {
	case !ref.Is(rawjson.String):
		return nil, fmt.Errorf("found %s, allowed is a string", ref.What())
	case local && rest == "":
		return nil, nil
	case !local || rest[0] != '/':
		return nil, fmt.Errorf("found %s, allowed are references within the schema, such as #/$defs/name", shown(text))
	}
	rest, err := url.PathUnescape(rest[1:])
	if err != nil {
		return nil, fmt.Errorf("found %s, which is escaped wrongly", shown(text))
	}
	tokens := strings.Split(rest, "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// recursive reports whether following references from target leads back to it.
func (r *references) recursive(where string, target *rawjson.Node) (bool, error) {
	seen := map[*rawjson.Node]bool{}
	queue := []*rawjson.Node{target}
	for len(queue) > 0 {
		next, err := r.linked(where, queue[0])
		if err != nil {
			return false, err
		}
		queue = queue[1:]
		for _, n := range next {
			if n == target {
				return true, nil
			}
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return false, nil
}

// linked returns what the references anywhere within n name, each once.
func (r *references) linked(where string, n *rawjson.Node) ([]*rawjson.Node, error) {
	if known, ok := r.links[n]; ok {
		return known, nil
	}
	if len(r.links) == maxTargets {
		return nil, fmt.Errorf("%s: references to more than %d places, the most allowed", where, maxTargets)
	}
	var out []*rawjson.Node
	seen := map[*rawjson.Node]bool{}
	err := eachRef(n, func(ref *rawjson.Node) error {
		target, err := r.target(where, ref)
		if err == nil && !seen[target] {
			seen[target] = true
			out = append(out, target)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.links == nil {
		r.links = map[*rawjson.Node][]*rawjson.Node{}
	}
	r.links[n] = out
	return out, nil
}

// eachRef calls f with the value of each $ref within the schema n.
func eachRef(n *rawjson.Node, f func(ref *rawjson.Node) error) error {
	if ref := n.Get("$ref"); ref != nil {
		if err := f(ref); err != nil {
			return err
		}
	}
	_, err := mapSchemas(n, "", func(_ string, sub *rawjson.Node) (*rawjson.Node, error) { return sub, eachRef(sub, f) })
	return err
}

// prune drops the definitions that nothing names any more, once references
// were inlined, and makes sure that those that stay still lead somewhere.
func (w *rewriter) prune(root *rawjson.Node) (*rawjson.Node, error) {
	if !w.found {
		return root, nil
	}
	body := root.Without("$defs", "definitions")
	k := keeper{in: references{root: root}, used: map[string]map[string]bool{"$defs": {}, "definitions": {}}}
	if err := eachRef(body, k.follow); err != nil {
		return nil, err
	}
	w.resolvedAll = !k.any
	for key, used := range k.used {
		root = pruneDefinitions(root, key, used)
	}
	return root, nil
}

func pruneDefinitions(root *rawjson.Node, key string, used map[string]bool) *rawjson.Node {
	defs := root.Get(key)
	switch {
	case defs == nil:
		return root
	case len(used) == 0:
		return root.Without(key)
	}
	kept := rawjson.NewObject()
	for _, m := range defs.Members {
		if used[m.Name] {
			kept.Members = append(kept.Members, m)
		}
	}
	return root.Set(key, kept)
}

// A keeper finds the definitions that can be reached.
type keeper struct {
	in   references
	used map[string]map[string]bool
	any  bool
}

func (k *keeper) follow(ref *rawjson.Node) error {
	k.any = true
	if _, err := k.in.target("", ref); err != nil {
		return fmt.Errorf("the recursive $ref %s names a place that had to change: use $defs", shown(ref.Str()))
	}
	tokens, err := pointer(ref)
	if err != nil || len(tokens) < 2 {
		return err
	}
	used := k.used[tokens[0]]
	if used == nil || used[tokens[1]] {
		return nil
	}
	used[tokens[1]] = true
	return eachRef(k.in.root.Get(tokens[0]).Child(tokens[1]), k.follow)
}
