package capability

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Options configure a [Book].
type Options struct {
	// Policy is in force from the start; nil grants nothing.
	Policy *Policy
	// Shipped is what the modules that came with the program are granted as long
	// as the operator's policy neither grants to them nor pins them. It counts
	// for the bytes in ShippedDigests alone, by name, 64 hex digits each.
	Shipped        *Policy
	ShippedDigests map[string]string
	// Flags are what a command needs behind it to be about this policy, such as
	// " --state x". They stand in what is said to the operator alone.
	Flags string
	// Signed returns nil if the module with the digest is signed with an ed25519
	// key, which is in base64: see [CheckSignature]. It is asked again and again.
	// Nil: no signature can be checked, and what a policy wants signed is held.
	Signed func(digest, key string) error
	// Dev ignores digests, definitions and pins, for an author who rebuilds a
	// module again and again; in return no secret is given to anything.
	Dev bool
}

// Book is the policy in force. Its zero value grants nothing. Its methods may be
// called from any goroutine; each call sees one policy, before or after a [Book.Swap].
type Book struct {
	o    Options
	now  atomic.Pointer[page]
	turn sync.Mutex // taken to replace now
	// asked keeps what modules request, since every listing asks.
	asked requestCache
}

// page is what Swap and SetPins replace.
type page struct {
	policy *Policy
	pins   map[string]Pin
}

// NewBook returns a book with a policy in force.
func NewBook(o Options) *Book {
	b := &Book{o: o}
	b.now.Store(&page{policy: o.Policy})
	return b
}

// Swap puts p in force: at once for decisions to come, while an [Effective] that
// was given out stays as it is.
func (b *Book) Swap(p *Policy) { b.replace(func(now *page) { now.policy = p }) }

// SetPins tells the book which version of each module serves, by name. A version
// that differs from it is judged by [Pin.Changes].
func (b *Book) SetPins(pins map[string]Pin) {
	b.replace(func(now *page) { now.pins = maps.Clone(pins) })
}

func (b *Book) replace(change func(now *page)) {
	b.turn.Lock()
	defer b.turn.Unlock()
	next := *b.page()
	change(&next)
	b.now.Store(&next)
}

func (b *Book) page() *page {
	if now := b.now.Load(); now != nil {
		return now
	}
	return &page{}
}

// Policy returns the policy in force, nil if there is none.
func (b *Book) Policy() *Policy { return b.page().policy }

// Decide says whether c may see and call a tool: it is the one answer to both.
// The tool is named as published, with m.Prefix. Held reasons end in the command that decides.
// The zero caller asks how things stand with nobody in particular.
func (b *Book) Decide(c tool.Caller, m tool.Module, s tool.Spec) tool.Decision {
	d, _ := b.decide(c, m, s.Name)
	return d
}

// Effective returns what a call of a tool may do. It is nothing unless Decide is
// ready for the same caller, module and tool.
func (b *Book) Effective(c tool.Caller, m tool.Module, toolName string) Effective {
	d, e := b.decide(c, m, toolName)
	if e.ready = d.Status == tool.Ready; !e.ready {
		e.refused = d.Reason
	}
	return e
}

// Entry returns what goes for a module: what the operator's policy says or, where
// that decides nothing about one that came with the program, what came with it.
func (b *Book) Entry(m tool.Module) Entry {
	e, _ := b.entry(b.Policy(), m)
	return e
}

// Shipped returns what came with a module, false if it did not come with the program.
func (b *Book) Shipped(m tool.Module) (Entry, bool) {
	e, _ := b.entry(nil, m)
	return e, m.Shipped
}

// A verdict is a state that needs no further question.
type verdict struct {
	status tool.Status
	reason string
	told   bool
	ask    bool
}

func held(format string, args ...any) *verdict {
	return &verdict{status: tool.Held, reason: fmt.Sprintf(format, args...)}
}

func (b *Book) decide(c tool.Caller, m tool.Module, toolName string) (tool.Decision, Effective) {
	now := b.page()
	requested, err := b.asked.of(m)
	if err != nil {
		return tool.Decision{Status: tool.Rejected, Reason: requestError(err)}, Effective{module: m.Name}
	}
	entry, d := b.entry(now.policy, m)
	e := Effective{module: m.Name, requested: requested, entry: entry, dev: b.o.Dev, flags: b.o.Flags,
		tool: entry.Tools[strings.TrimPrefix(toolName, m.Prefix)], limits: entry.Limits.or(d.limits)}
	for _, v := range []*verdict{
		b.signed(m, entry.Signature), b.bound(now, m, e), entry.forAgent(c), e.approved(c, d.approval),
	} {
		if v != nil {
			return tool.Decision{Status: v.status, Reason: v.reason, Told: v.told, Ask: v.ask}, e
		}
	}
	return tool.Decision{Status: tool.Ready}, e
}

// requestError is what is wrong with a module's requests, without their name.
func requestError(err error) string { return strings.TrimPrefix(err.Error(), "requests: ") }

// entry returns what goes for a module: the operator's entry, with the shipped
// grant in it where the operator decided nothing about a shipped module.
func (b *Book) entry(p *Policy, m tool.Module) (Entry, defaults) {
	e, ok := p.Entry(m.Name)
	var d defaults
	if p != nil {
		d = p.defaults
	}
	shipped, known := b.o.Shipped.Entry(m.Name)
	digest := b.o.ShippedDigests[m.Name]
	if !known || !m.Shipped || digest == "" || digest != m.Digest || e.Decided || e.Digest != "" {
		return e, d
	}
	shipped.Digest, shipped.Definitions = digest, ""
	if !ok {
		return shipped, d
	}
	e.Decided, e.Grant, e.Digest = shipped.Decided, shipped.Grant, digest
	if e.Config == nil {
		e.Config = shipped.Config
	}
	e.Limits = e.Limits.or(shipped.Limits)
	return e, d
}

// bound says whether the decision that there is, if one is needed, was made for
// this module as it is.
func (b *Book) bound(now *page, m tool.Module, e Effective) *verdict {
	asks := len(e.requested.Kinds()) > 0
	switch {
	case asks && !e.entry.Decided:
		return held("asks for %s: not decided: run %s", e.requested.summary(), command("grant", m.Name))
	case b.o.Dev:
		return nil
	case asks && e.entry.Digest == "":
		return held("the grant names no digest, so it counts for nothing: run %s", command("approve", m.Name))
	case e.entry.Digest != "":
		return e.entry.fits(m)
	}
	return b.pinned(now, m, e.requested)
}

// fits compares what a decision was made for with what there is.
func (e Entry) fits(m tool.Module) *verdict {
	what := ""
	switch {
	case e.Digest != m.Digest:
		what = "the file"
	case e.Definitions != "" && e.Definitions != m.Definitions:
		what = "what its tools say"
	default:
		return nil
	}
	return held("%s changed since it was decided about: look with %s, then: run %s", what, command("diff", m.Name), command("approve", m.Name))
}

// pinned judges a module that nobody had to decide about by what served before.
func (b *Book) pinned(now *page, m tool.Module, requested Grant) *verdict {
	changes := now.pins[m.Name].Changes(Pin{Digest: m.Digest, Definitions: m.Definitions, Version: m.Version, Requests: requested})
	if len(changes) == 0 {
		return nil
	}
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.Text)
	}
	return held("%s: look with %s, then: run %s", strings.Join(texts, "; "), command("diff", m.Name), command("approve", m.Name))
}

// Prefix returns what stands before the names of a module's tools.
func (b *Book) Prefix(m tool.Module) string {
	e, _ := b.entry(b.page().policy, m)
	return e.Prefix
}

// Language returns the language that a module's configuration has under lang, in small
// letters; empty if it has none.
func (b *Book) Language(m tool.Module) string {
	e, _ := b.entry(b.page().policy, m)
	return strings.ToLower(e.Config["lang"])
}

func (e Entry) forAgent(c tool.Caller) *verdict {
	if e.Agents == nil || c == (tool.Caller{}) || slices.Contains(e.Agents, c.Agent) {
		return nil
	}
	return held("for the agents %s alone: add %s to agents in the policy", strings.Join(e.Agents, ", "), shown(c.Agent))
}

// approved applies what the policy says about calls of the tool. Whoever may use the
// module is told: it is no secret that a person has to allow the tool. Who can ask one
// is to do so before each call. The reasons go on after the name of a module or a tool.
func (e Effective) approved(c tool.Caller, otherwise Approval) *verdict {
	reason := ""
	switch a := cmp.Or(e.tool.Approval, otherwise); {
	case a == Ask && c.Asks:
		return &verdict{status: tool.Ready, ask: true}
	case a == Deny:
		reason = "is denied by the policy: only the operator can allow it, with approval: allow for this tool"
	case a == Ask:
		reason = "waits for a person before each call, as the policy says, and nobody can be asked here: ask for it with \"hutch chat\" or at /agui, or the operator allows it, with approval: allow for this tool"
	default:
		return nil
	}
	return &verdict{status: tool.Held, reason: reason, told: true, ask: cmp.Or(e.tool.Approval, otherwise) == Ask}
}

// command is how a person decides about a module.
func command(verb, module string) string { return "hutch tools " + verb + " " + shellWord(module) }

// shellWord quotes a file name for a command that is shown, if it has to be.
func shellWord(name string) string {
	if name != "" && strings.Trim(name, letters+digits+"._-") == "" && name[0] != '-' {
		return name
	}
	return "'" + strings.ReplaceAll(abi.OneLine(name, 255), "'", `'\''`) + "'"
}

// requestCache keeps what modules request by digest and definitions. What a
// module without both requests is read each time.
type requestCache struct {
	mu   sync.RWMutex
	kept map[[2]string]requestsRead
}

type requestsRead struct {
	grant Grant
	err   error
}

// maxKept bounds the cache; a registry has fewer modules at once.
const maxKept = 4096

func (c *requestCache) of(m tool.Module) (Grant, error) {
	key := [2]string{m.Digest, m.Definitions}
	if len(m.Requests) == 0 || m.Digest == "" || m.Definitions == "" {
		return ParseRequests(m.Requests)
	}
	c.mu.RLock()
	read, ok := c.kept[key]
	c.mu.RUnlock()
	if ok {
		return read.grant, read.err
	}
	read.grant, read.err = ParseRequests(m.Requests)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[[2]string]requestsRead{}
	}
	c.kept[key] = read
	return read.grant, read.err
}
