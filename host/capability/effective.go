package capability

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

// Effective is what one call of one tool may do: requested by the module,
// granted by the policy, and not taken away by what the policy says about the
// tool. The zero value may do nothing. It stays as it is when the policy changes.
type Effective struct {
	module    string
	refused   string // why nothing is allowed; empty if something may be
	ready     bool
	requested Grant
	entry     Entry
	tool      ToolEntry
	limits    Limits
	dev       bool
	flags     string // of commands, such as " --state x"
}

// HTTP decides one request, or one hop of it. The rule that is returned holds
// the sizes, the rate and the private addresses that go for it. A denying rule
// wins, then the rule with the most exact host, then the first.
func (e Effective) HTTP(method string, u *url.URL) (HTTPRule, *Refusal) {
	t, refusal := targetOf(method, u)
	if refusal != nil {
		return HTTPRule{}, refuse(refusal.Code, "http: %s", refusal.Text)
	}
	rule, refusal := e.rule(t)
	if refusal != nil {
		refusal.Text = fmt.Sprintf("http: %s %s: %s", abi.OneLine(method, 20), t.where(), refusal.Text)
		return HTTPRule{}, refusal
	}
	return rule, nil
}

// rule returns the rule that lets t through, or why none does.
func (e Effective) rule(t target) (HTTPRule, *Refusal) {
	rule, ok := firstMatch(e.entry.Grant.HTTP, t)
	switch {
	case !e.ready:
		return rule, refuse(abi.Denied, "%s", e.why())
	case ok && rule.Approval == Deny:
		return rule, refuse(abi.Denied, "denied by the policy")
	}
	asked, requested := firstMatch(e.requested.HTTP, t)
	switch {
	case !requested || asked.Approval == Deny:
		return rule, refuse(abi.Denied, "the module never requested it, so no grant counts; its author adds it to the requests")
	case !ok:
		return rule, e.undecided(t, "not granted"+e.grantedHosts())
	case rule.Approval == Ask:
		return rule, e.undecided(t, "not allowed yet")
	}
	rule = rule.within(asked)
	if !e.narrows(kindHTTP) {
		return rule, nil
	}
	narrow, ok := firstMatch(e.tool.Grant.HTTP, t)
	if !ok || narrow.Approval.stricter(Allow) {
		return rule, refuse(abi.Denied, "not granted to this tool of the module; the operator edits its grant below tools in the policy")
	}
	return rule.within(narrow), nil
}

// why says why nothing is allowed.
func (e Effective) why() string {
	if e.refused == "" {
		return "nothing is granted"
	}
	return e.refused
}

// firstMatch returns the rule that decides: one that denies, else the one with
// the most exact host, else the first. A rule without a host is an open request.
func firstMatch(rules []HTTPRule, t target) (best HTTPRule, found bool) {
	for _, rule := range rules {
		if !rule.asksFor(t) {
			continue
		}
		if rule.Approval == Deny {
			return rule, true
		}
		if !found || hostRank(rule.Host) < hostRank(best.Host) {
			best, found = rule, true
		}
	}
	return best, found
}

// within narrows what a rule gives to what another one does.
func (r HTTPRule) within(other HTTPRule) HTTPRule {
	r.MaxRequest, r.MaxResponse = lower(r.MaxRequest, other.MaxRequest), lower(r.MaxResponse, other.MaxResponse)
	if other.Rate.perDay() < r.Rate.perDay() {
		r.Rate = other.Rate
	}
	return r
}

// lower returns the lower of two bounds, of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (e Effective) narrows(kind string) bool {
	return e.tool.Grant != nil && slices.Contains(e.tool.Narrows, kind)
}

func (e Effective) grantedHosts() string {
	const most = 5
	given := Grant{HTTP: slices.DeleteFunc(slices.Clone(e.entry.Grant.HTTP), func(r HTTPRule) bool { return r.Approval.stricter(Allow) })}
	hosts := given.about(kindHTTP)
	if len(hosts) == 0 {
		return ""
	}
	if rest := len(hosts) - most; rest > 0 {
		hosts = append(hosts[:most:most], fmt.Sprintf("%d more", rest))
	}
	return "; granted are requests to " + strings.Join(hosts, ", ") + " with their methods, ports and paths"
}

// Secrets returns the secrets that may be put into this call's requests. A
// module that is foreign to hutch asks by reading a placeholder from its
// configuration. There are none in development, where bytes are not checked.
func (e Effective) Secrets() (rules []SecretRule) {
	if !e.ready || e.dev {
		return nil
	}
	for _, s := range e.entry.Grant.Secrets {
		if !e.asksFor(s) {
			continue
		}
		if !e.narrows(kindSecrets) {
			rules = append(rules, s)
			continue
		}
		for _, n := range e.tool.Grant.Secrets {
			if paths, ok := meetPaths(s.Paths, n.Paths); ok && n.same(s) {
				n.Paths, n.Prefix = paths, s.Prefix
				rules = append(rules, n)
			}
		}
	}
	return rules
}

// same reports whether two rules put one secret into one place of one host.
func (s SecretRule) same(o SecretRule) bool {
	return s.Name == o.Name && s.Host == o.Host && strings.EqualFold(s.Header, o.Header) && s.Query == o.Query
}

func (e Effective) asksFor(s SecretRule) bool {
	for _, value := range e.entry.Config {
		if name, ok := placeholder(value); ok && name == s.Name {
			return true
		}
	}
	return slices.ContainsFunc(e.requested.Secrets, func(q SecretRule) bool {
		return q.Name == "" || q.Name == s.Name && hostCovers(q.Host, s.Host)
	})
}

// meetPaths returns the prefixes below which both lists are met; no prefix is
// every path.
func meetPaths(a, b []string) (both []string, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return append(slices.Clone(a), b...), true
	}
	for _, p := range a {
		for _, q := range b {
			switch {
			case below(p, q):
				both = append(both, q)
			case below(q, p):
				both = append(both, p)
			}
		}
	}
	slices.Sort(both)
	return slices.Compact(both), len(both) > 0
}

// KV returns the bounds of the module's storage, false if it has none.
func (e Effective) KV() (KVRule, bool) {
	if !e.ready || e.entry.Grant.KV == nil || e.requested.KV == nil {
		return KVRule{}, false
	}
	rule := e.entry.Grant.KV.within(*e.requested.KV)
	if e.narrows(kindKV) {
		if rule = rule.within(*e.tool.Grant.KV); e.tool.Grant.KV.Max == 0 {
			return KVRule{}, false
		}
	}
	return rule, true
}

func (r KVRule) within(other KVRule) KVRule {
	r.Max = lower(r.Max, other.Max)
	if r.TTL == 0 || other.TTL != 0 && other.TTL < r.TTL {
		r.TTL = other.TTL
	}
	return r
}

// Tracker returns the scopes of this call, sorted.
func (e Effective) Tracker() []string { return e.list(kindTracker) }

// Conversation returns what the call may do with conversations, sorted.
func (e Effective) Conversation() []string { return e.list(kindConversation) }

// Bridge returns the remote tools and agents that the call may use, sorted.
func (e Effective) Bridge() []string { return e.list(kindBridge) }

// Tool returns the tools that the call may call, sorted.
func (e Effective) Tool() []string { return e.list(kindTool) }

func (e Effective) list(kind string) []string {
	if !e.ready {
		return nil
	}
	both := meetNames(kind, *e.requested.names(kind), *e.entry.Grant.names(kind))
	if e.narrows(kind) {
		both = meetNames(kind, both, *e.tool.Grant.names(kind))
	}
	return both
}

// FS returns the folders that the call may see: those of the grant that were
// requested, by the narrower of the two modes.
func (e Effective) FS() (rules []FSRule) {
	if !e.ready {
		return nil
	}
	rules = meetFolders(e.entry.Grant.FS, e.requested.FS)
	if e.narrows(kindFS) {
		rules = meetFolders(rules, e.tool.Grant.FS)
	}
	return rules
}

func meetFolders(granted, other []FSRule) (both []FSRule) {
	for _, g := range granted {
		for _, o := range other {
			rule := g
			switch {
			case o.Path == "":
			case below(g.Path, o.Path):
				rule.Path = o.Path
			case !below(o.Path, g.Path):
				continue
			}
			if o.Mode == "ro" {
				rule.Mode = "ro"
			}
			if !slices.Contains(both, rule) {
				both = append(both, rule)
			}
		}
	}
	return both
}

// Allows reports whether the call may use an operation at all; nil means yes.
// What the operation is about is decided by the method of its kind.
func (e Effective) Allows(op abi.Op) *Refusal {
	kind := op.Capability()
	has := false
	switch kind {
	case kindHTTP:
		has = e.ready // a refusal names the host, which is not known here
	case kindKV:
		_, has = e.KV()
	case kindTracker, kindConversation, kindBridge, kindTool:
		has = len(e.list(kind)) > 0
	}
	switch {
	case has:
		return nil
	case !e.ready:
		return refuse(abi.Denied, "%s: %s", op, e.why())
	}
	return e.decidable(fmt.Sprintf("%s: %s is not granted", op, kind), command("grant", e.module))
}

// Config returns what the module reads with config_get. The map is the caller's.
// In development placeholders of secrets are left out.
func (e Effective) Config() map[string]string {
	if !e.ready {
		return nil
	}
	config := maps.Clone(e.entry.Config)
	maps.DeleteFunc(config, func(_, value string) bool {
		_, secret := placeholder(value)
		return secret && e.dev
	})
	return config
}

// Limits returns the limits of the module, or of the policy's defaults; what
// neither says is zero.
func (e Effective) Limits() Limits { return e.limits }

// Arguments checks a call's arguments, a JSON object, against what the policy
// says about them.
func (e Effective) Arguments(args json.RawMessage) *Refusal {
	if len(e.tool.Args) == 0 || len(args) == 0 {
		return nil
	}
	n, err := rawjson.Parse(args, rawjson.MaxDepth)
	if err != nil {
		return &Refusal{Code: abi.Invalid, Text: abi.OneLine(err.Error(), 200)}
	}
	for _, name := range slices.Sorted(maps.Keys(e.tool.Args)) {
		value, most := n.Get(name), e.tool.Args[name].MaxLength
		if value == nil || most == 0 {
			continue
		}
		text := value.Str()
		if !value.Is(rawjson.String) {
			text = value.String()
		}
		if length := utf8.RuneCountInString(text); length > most {
			return &Refusal{Code: abi.Denied, Text: fmt.Sprintf("argument %s: %d characters, the policy allows %d", shown(name), length, most)}
		}
	}
	return nil
}
