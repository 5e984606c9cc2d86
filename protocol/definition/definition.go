// Package definition identifies what a module says about itself, and says how two
// versions of it differ.
package definition

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Hash identifies what a module says its tools are and what it requests, as 64
// lower-case hex digits. Decisions are bound to it. It is
// [portable.DefinitionHash], taken of the description as exported.
func Hash(d tool.Description) (string, error) { return portable.DefinitionHash(d) }

// MaxChanges is how many rows [Diff] returns; one more says how many were left
// out.
const MaxChanges = 200

// Change is one row of a difference, for a person to read. All fields are single
// lines that are safe to show; what is long is cut.
type Change struct {
	// Tool is the name of a tool; empty for what is about the whole module.
	Tool string
	// What changed: "description", "inputSchema.properties.title.maxLength" and so
	// on; "added" or "removed" for a whole tool; "order" for all of them.
	What string
	// Old and New are the values, JSON as it was written; empty for one that is
	// not there.
	Old, New string
}

// String returns the row on one line.
func (c Change) String() string {
	subject := c.What
	if c.Tool != "" {
		subject = c.Tool + ": " + c.What
	}
	switch {
	case c.Old == "" && c.New == "":
		return subject
	case c.Old == "":
		return subject + ": added " + c.New
	case c.New == "":
		return subject + ": removed " + c.Old
	}
	return subject + ": " + c.Old + " -> " + c.New
}

// Diff says how two descriptions differ in what [Hash] sees, in the order of the
// old one's tools, with what is new behind. It is empty exactly if the hashes are
// the same, as long as both descriptions have one. Descriptions whose JSON is
// broken are compared as text.
func Diff(old, now tool.Description) []Change {
	var d differ
	d.tools(old.Tools, now.Tools)
	for _, kind := range slices.Sorted(maps.Keys(both(old.Requests, now.Requests))) {
		d.raw("", "requests."+rawjson.PathStep(kind), old.Requests[kind], now.Requests[kind])
	}
	if rest := len(d.rows) - MaxChanges; rest > 0 {
		d.rows = append(d.rows[:MaxChanges:MaxChanges], Change{What: fmt.Sprintf("%d more changes", rest)})
	}
	return d.rows
}

func both(a, b tool.Requests) tool.Requests {
	all := tool.Requests{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

type differ struct{ rows []Change }

// add takes a row; what stands in it comes from a module.
func (d *differ) add(name, what, old, now string) {
	const longest = 2000 // a whole description fits
	line := func(s string) string { return abi.OneLine(s, longest) }
	d.rows = append(d.rows, Change{line(name), line(what), line(old), line(now)})
}

func (d *differ) tools(old, now []tool.Spec) {
	if (old == nil) != (now == nil) {
		d.add("", "tools", listed(old), listed(now))
	}
	if repeated(old) || repeated(now) {
		d.byPlace(old, now)
		return
	}
	for _, o := range old {
		if i := find(now, o.Name); i >= 0 {
			d.tool(o, now[i])
		} else {
			d.add(o.Name, "removed", "", "")
		}
	}
	for _, n := range now {
		if find(old, n.Name) < 0 {
			d.add(n.Name, "added", "", "")
			d.tool(tool.Spec{Name: n.Name}, n)
		}
	}
	if order := ordered(old, now); order != ordered(now, old) {
		d.add("", "order", order, ordered(now, old))
	}
}

func listed(tools []tool.Spec) string {
	if tools == nil {
		return ""
	}
	return fmt.Sprintf("(a list of %d)", len(tools))
}

// byPlace compares tools by their place: with a name twice there is no other way.
func (d *differ) byPlace(old, now []tool.Spec) {
	for i := range max(len(old), len(now)) {
		var o, n tool.Spec
		if i < len(old) {
			o = old[i]
		}
		if i < len(now) {
			n = now[i]
		}
		at := "tools[" + strconv.Itoa(i) + "]"
		if len(old) <= i {
			d.add(at, "added", "", "")
		} else if len(now) <= i {
			d.add(at, "removed", "", "")
		}
		d.text(at, "name", o.Name, n.Name)
		n.Name = at
		d.tool(o, n)
	}
}

func repeated(tools []tool.Spec) bool {
	seen := map[string]bool{}
	for _, t := range tools {
		if seen[t.Name] {
			return true
		}
		seen[t.Name] = true
	}
	return false
}

func find(tools []tool.Spec, name string) int {
	return slices.IndexFunc(tools, func(t tool.Spec) bool { return t.Name == name })
}

// ordered returns the names of the tools that the others have too.
func ordered(tools, others []tool.Spec) string {
	var names []string
	for _, t := range tools {
		if find(others, t.Name) >= 0 {
			names = append(names, rawjson.PathStep(t.Name))
		}
	}
	return strings.Join(names, ", ")
}

func (d *differ) tool(o, n tool.Spec) {
	d.text(n.Name, "title", o.Title, n.Title)
	d.text(n.Name, "description", o.Description, n.Description)
	d.raw(n.Name, "inputSchema", orNull(o.InputSchema), orNull(n.InputSchema))
	d.raw(n.Name, "outputSchema", o.OutputSchema, n.OutputSchema)
	d.annotations(n.Name, o.Annotations, n.Annotations)
	d.raw(n.Name, "aliases", encoded(o.Aliases), encoded(n.Aliases))
	d.raw(n.Name, "translations", encoded(o.Translations), encoded(n.Translations))
}

// encoded returns texts as JSON, nil for none.
func encoded[T any](texts map[string]T) []byte {
	if len(texts) == 0 {
		return nil
	}
	raw, err := rawjson.Marshal(texts)
	if err != nil { // strings always marshal
		return nil
	}
	return raw
}

// orNull is how a schema that is not there is hashed.
func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func (d *differ) text(name, what, old, now string) {
	if old != now {
		d.add(name, what, quoted(old), quoted(now))
	}
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return rawjson.Quote(text)
}

func (d *differ) annotations(name string, o, n *tool.Annotations) {
	if (o == nil) != (n == nil) {
		d.add(name, "annotations", present(o), present(n))
	}
	var none tool.Annotations
	if o == nil {
		o = &none
	}
	if n == nil {
		n = &none
	}
	d.text(name, "annotations.title", o.Title, n.Title)
	d.hint(name, "readOnlyHint", o.ReadOnlyHint, n.ReadOnlyHint)
	d.hint(name, "destructiveHint", o.DestructiveHint, n.DestructiveHint)
	d.hint(name, "idempotentHint", o.IdempotentHint, n.IdempotentHint)
	d.hint(name, "openWorldHint", o.OpenWorldHint, n.OpenWorldHint)
}

func present(a *tool.Annotations) string {
	if a == nil {
		return ""
	}
	return "(some)"
}

func (d *differ) hint(name, what string, old, now *bool) {
	if o, n := hinted(old), hinted(now); o != n {
		d.add(name, "annotations."+what, o, n)
	}
}

func hinted(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// raw compares two JSON values, nil for one that is not there.
func (d *differ) raw(name, what string, old, now []byte) {
	if len(old) == 0 && len(now) == 0 {
		return
	}
	o, oldErr := parse(old)
	n, newErr := parse(now)
	if oldErr != nil || newErr != nil {
		if string(old) != string(now) {
			d.add(name, what, string(old), string(now))
		}
		return
	}
	d.node(name, what, o, n)
}

func parse(raw []byte) (*rawjson.Node, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	n, err := rawjson.Parse(raw, rawjson.MaxDepth)
	if err != nil {
		return nil, err
	}
	return n.Canonical(), nil
}

// node compares canonical values, and goes into objects and lists that both have.
func (d *differ) node(name, what string, o, n *rawjson.Node) {
	switch {
	case written(o) == written(n):
	case o.Is(rawjson.Object) && n.Is(rawjson.Object):
		for _, m := range o.Members {
			d.node(name, what+"."+rawjson.PathStep(m.Name), m.Value, n.Get(m.Name))
		}
		for _, m := range n.Members {
			if o.Get(m.Name) == nil {
				d.node(name, what+"."+rawjson.PathStep(m.Name), nil, m.Value)
			}
		}
	case o.Is(rawjson.Array) && n.Is(rawjson.Array):
		for i := range max(len(o.Items), len(n.Items)) {
			at := strconv.Itoa(i)
			d.node(name, what+"["+at+"]", o.Child(at), n.Child(at))
		}
	default:
		d.add(name, what, written(o), written(n))
	}
}

func written(n *rawjson.Node) string {
	if n == nil {
		return ""
	}
	return n.String()
}
