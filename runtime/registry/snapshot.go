package registry

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/tool"
)

// A snapshot is everything published at one moment. It never changes.
type snapshot struct {
	entries []*entry // in the order of the candidates, shipped ones first
	byKey   map[string]*entry
	tools   []*listed // sorted by published name
	byName  map[string]*listed
	// visible changes whenever the list that hosts see does.
	visible [sha256.Size]byte
}

// An entry is one file and what became of it.
type entry struct {
	candidate tool.Candidate
	mount     *mount // what serves; nil if nothing does
	status    tool.Status
	reason    string
	waits     string // why the version before serves; empty if it does not
	// firm: all that came before it in the order was known when it got its names,
	// so they are its own. Else one of those may still take them.
	firm bool

	next   *mount // what should serve
	before *mount // what served until now and still may
	keeps  bool   // before has its names for as long as it wants
}

// listed is a tool under its published name.
type listed struct {
	name  string
	mount *mount
	bound *boundTool
}

const reasonLoading = "is being loaded"

// keyOf identifies a file over its versions.
func keyOf(c tool.Candidate) string { return c.Source + "\x00" + c.Name }

// build decides what serves: a pure function of its arguments. verdicts has an
// answer for each digest that is known; others are still being admitted.
func build(base *snapshot, wanted []tool.Candidate, verdicts map[string]verdict, o *Options) *snapshot {
	b := builder{
		verdicts: verdicts, o: o,
		next:     &snapshot{byKey: map[string]*entry{}, byName: map[string]*listed{}},
		claimed:  map[string]*entry{},
		reserved: map[string]*entry{},
	}
	loading := false
	for _, c := range wanted {
		key := keyOf(c)
		if b.next.byKey[key] != nil {
			continue // the same file twice
		}
		e := &entry{candidate: c}
		b.next.entries = append(b.next.entries, e)
		b.next.byKey[key] = e
		was := base.byKey[key]
		b.propose(e, was)
		e.keeps = e.before != nil && was != nil && was.firm && sameNames(e.before, was.mount)
		e.firm = e.keeps || !loading
		loading = loading || e.reason == reasonLoading
	}
	b.settleLive()
	b.settleNew()
	b.finish()
	return b.next
}

// sameNames reports whether a file goes by the prefix that it had: who gets another
// has to find its new names free, like one that is new.
func sameNames(m, was *mount) bool {
	return was == nil || m.module.Prefix == was.module.Prefix
}

type builder struct {
	verdicts map[string]verdict
	o        *Options // Policy, Grants, Limits and Pinned
	next     *snapshot
	// claimed says who has a name; reserved, who had it and may want it back.
	claimed, reserved map[string]*entry
}

// propose works out what e should serve, and what it can fall back to.
func (b *builder) propose(e *entry, was *entry) {
	if was != nil && was.mount != nil && b.verdicts[was.mount.def.digest].err == nil {
		e.before = b.mount(e.candidate, was.mount.def)
	}
	if e.before == nil || b.judge(e.before).Status != tool.Ready {
		if pinned := b.pinned(e.candidate); pinned != nil {
			e.before = pinned
		}
	}
	if e.before != nil && e.before.misnamed() != nil {
		e.before = nil
	}
	if e.candidate.Err != nil {
		e.reason = e.candidate.Err.Error()
		return
	}
	v, known := b.verdicts[e.candidate.Digest]
	switch {
	case !known, v.unproven() && replaces(e.candidate, was, b.o.Pinned(e.candidate)):
		e.status, e.reason = tool.Held, reasonLoading
		return
	case v.err != nil:
		e.reason = v.err.Error()
		if q := (*quarantinedError)(nil); errors.As(v.err, &q) {
			e.status = tool.Held
		}
		return
	}
	next := b.mount(e.candidate, v.def)
	if err := next.misnamed(); err != nil {
		e.reason = err.Error()
		return
	}
	switch d := b.judge(next); {
	case d.Status == tool.Rejected:
		e.reason = d.Reason
	case d.Status == tool.Held && e.before != nil && b.judge(e.before).Status == tool.Ready:
		e.reason = "held: " + d.Reason // asking for more must not take the tool away
	default:
		e.next = next
	}
}

// mount offers a version of the file that c is of.
func (b *builder) mount(c tool.Candidate, def *definition) *mount {
	m := &mount{def: def, module: tool.Module{
		Name: c.Name, Digest: def.digest, Source: c.Source, Shipped: c.Shipped,
		Requests: def.requests, Definitions: def.hash, Version: def.exported.Version,
	}}
	m.module.Prefix = b.o.Prefix(m.module)
	m.tools = prefixed(m.module.Prefix, spoken(b.o.Language(m.module), def.tools))
	m.limits = b.o.Grants.Limits(m.module).Or(b.o.Limits)
	return m
}

// spoken returns tools as they are described in a language; those without a translation
// stay as they are.
func spoken(language string, tools []*boundTool) []*boundTool {
	if language == "" {
		return tools
	}
	described := make([]*boundTool, len(tools))
	for i, t := range tools {
		n := *t
		if public, ok := t.translated[language]; ok {
			n.public = public
		}
		described[i] = &n
	}
	return described
}

// prefixed returns tools under the names that they have with a prefix.
func prefixed(prefix string, tools []*boundTool) []*boundTool {
	if prefix == "" {
		return tools
	}
	named := make([]*boundTool, len(tools))
	for i, t := range tools {
		n := *t
		n.public.Name = prefix + t.public.Name
		named[i] = &n
	}
	return named
}

// misnamed says which name is none that hosts take, with the prefix.
func (m *mount) misnamed() error {
	if m.module.Prefix == "" {
		return nil
	}
	for _, t := range m.tools {
		if err := portable.CheckName(t.public.Name); err != nil {
			return fmt.Errorf("with the prefix %q: %w", m.module.Prefix, err)
		}
	}
	return nil
}

// pinned returns the version that was accepted for a file, nil if the file has it,
// or it may not serve.
func (b *builder) pinned(c tool.Candidate) *mount {
	digest := b.o.Pinned(c)
	def := b.verdicts[digest].def
	if def == nil || digest == c.Digest {
		return nil
	}
	if m := b.mount(c, def); b.judge(m).Status == tool.Ready {
		return m
	}
	return nil
}

// judge says how things stand with a module: ready if any of its tools is.
func (b *builder) judge(m *mount) tool.Decision {
	var first tool.Decision
	for i, t := range m.tools {
		d := b.o.Policy.Decide(tool.Caller{}, m.module, t.public)
		if d.Status == tool.Ready {
			return d
		}
		if i == 0 {
			first = d
		}
	}
	return first
}

// settleLive settles the files that served before. Each keeps the names it has
// while it is being decided about, so that it can always go back; a name is
// free for others once its owner has settled without it.
func (b *builder) settleLive() {
	var changed []*entry
	for _, e := range b.next.entries {
		if !e.keeps {
			continue
		}
		for _, name := range claims(e.before) {
			b.reserved[name] = e
		}
		if e.next != nil {
			changed = append(changed, e)
		}
	}
	for {
		waiting := slices.DeleteFunc(slices.Clone(changed), func(e *entry) bool {
			if b.rival(e, e.next) != nil {
				return false
			}
			b.settle(e, e.next)
			return true
		})
		if len(waiting) == len(changed) {
			break
		}
		changed = waiting
	}
	for _, e := range b.next.entries {
		if !e.keeps || e.mount != nil {
			continue
		}
		if e.next != nil {
			e.reason = b.rival(e, e.next).text()
		}
		b.settleBefore(e)
	}
}

func (b *builder) settleBefore(e *entry) {
	e.waits = e.reason
	e.reason = fmt.Sprintf("serving the version before (sha256:%.12s…): %s", e.before.def.digest, e.reason)
	b.settle(e, e.before)
}

// settleNew settles the rest, in order: first come, first served.
func (b *builder) settleNew() {
	for _, e := range b.next.entries {
		if e.mount != nil {
			continue
		}
		if e.next != nil {
			r := b.rival(e, e.next)
			if r == nil {
				b.settle(e, e.next)
				continue
			}
			e.reason = r.text()
		}
		if e.before != nil && b.rival(e, e.before) == nil {
			b.settleBefore(e)
		}
	}
}

func (b *builder) settle(e *entry, m *mount) {
	if e.before != nil {
		for _, name := range claims(e.before) {
			delete(b.reserved, name)
		}
	}
	for _, name := range claims(m) {
		b.claimed[name] = e
	}
	e.mount = m
}

// A rivalry is one name that two files want.
type rivalry struct {
	claim     string
	has, want tool.Candidate
}

// rival returns why e cannot serve m, nil if it can.
func (b *builder) rival(e *entry, m *mount) *rivalry {
	for _, name := range claims(m) {
		for _, owner := range []*entry{b.claimed[name], b.reserved[name]} {
			if owner != nil && owner != e {
				return &rivalry{claim: name, has: owner.candidate, want: e.candidate}
			}
		}
	}
	return nil
}

func (r *rivalry) text() string {
	name, isFile := strings.CutPrefix(r.claim, fileClaim)
	switch {
	case isFile && r.has.Shipped:
		return fmt.Sprintf("a file named %q belongs to hutch: choose another name", name)
	case r.has.Shipped:
		return fmt.Sprintf("tool %q of %s belongs to hutch: choose another name, or give %s a prefix in the policy", name, r.want.Name, r.want.Name)
	case isFile:
		return fmt.Sprintf("a file named %q serves already, from %s: rename or remove one of them", name, r.has.Source)
	}
	return fmt.Sprintf("tool %q of %s is already offered by %s from %s: rename or remove one of them, or give %s a prefix in the policy",
		r.claim, r.want.Name, r.has.Name, r.has.Source, r.want.Name)
}

// fileClaim starts the claim of a file name; no tool name contains it.
const fileClaim = "file "

// claims are the names that only one module can have: its file's, by which
// policy knows it, and its tools'.
func claims(m *mount) []string {
	names := []string{fileClaim + m.module.Name}
	for _, t := range m.tools {
		names = append(names, t.public.Name)
	}
	return names
}

// finish fills in the statuses and the tables by name.
func (b *builder) finish() {
	n := b.next
	for _, e := range n.entries {
		e.next, e.before, e.keeps = nil, nil, false
		if e.mount == nil {
			if e.status == "" {
				e.status = tool.Rejected
			}
			continue
		}
		d := b.judge(e.mount)
		e.status = d.Status
		if e.reason == "" {
			e.reason = d.Reason
		}
		for _, t := range e.mount.tools {
			l := &listed{name: t.public.Name, mount: e.mount, bound: t}
			n.tools = append(n.tools, l)
			n.byName[l.name] = l
		}
	}
	slices.SortFunc(n.tools, func(x, y *listed) int { return strings.Compare(x.name, y.name) })
	// A name that hosts do not take is known too, but never hides another tool.
	for _, l := range n.tools {
		if alias := l.mount.module.Prefix + l.bound.own.Name; n.byName[alias] == nil {
			n.byName[alias] = l
		}
	}
	n.visible = b.fingerprint()
}

func (b *builder) fingerprint() (sum [sha256.Size]byte) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, l := range b.next.tools {
		if b.o.Policy.Decide(tool.Caller{}, l.mount.module, l.bound.public).Status != tool.Ready {
			continue
		}
		if err := enc.Encode(l.bound.public); err != nil {
			// Its JSON was checked when it was admitted; say "changed" if not.
			fmt.Fprintln(h, l.mount.def.digest, l.name)
		}
	}
	h.Sum(sum[:0])
	return sum
}
