package capability

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/host/address"
)

// The kinds of grants, as a policy spells them and in its order.
const (
	kindHTTP         = "http"
	kindSecrets      = "secrets"
	kindKV           = "kv"
	kindTracker      = "tracker"
	kindConversation = "conversation"
	kindBridge       = "bridge"
	kindTool         = "tool"
	kindFS           = "fs"
)

func kinds() []string {
	return []string{kindHTTP, kindSecrets, kindKV, kindTracker, kindConversation, kindBridge, kindTool, kindFS}
}

// nameKinds are the kinds that are lists of names, with the parser of a name.
func nameKinds() map[string]func(string) (string, error) {
	return map[string]func(string) (string, error){
		kindTracker: parseScope, kindConversation: parseConversation, kindBridge: parseBridge, kindTool: parseToolName,
	}
}

// names returns the list of a kind that is a list of names.
func (g *Grant) names(kind string) *[]string {
	switch kind {
	case kindTracker:
		return &g.Tracker
	case kindConversation:
		return &g.Conversation
	case kindBridge:
		return &g.Bridge
	}
	return &g.Tool
}

// Kinds returns the kinds of which g has something, in the policy's order.
func (g Grant) Kinds() []string {
	has := map[string]bool{
		kindHTTP: len(g.HTTP) > 0, kindSecrets: len(g.Secrets) > 0, kindKV: g.KV != nil,
		kindTracker: len(g.Tracker) > 0, kindConversation: len(g.Conversation) > 0,
		kindBridge: len(g.Bridge) > 0, kindTool: len(g.Tool) > 0, kindFS: len(g.FS) > 0,
	}
	return slices.DeleteFunc(kinds(), func(kind string) bool { return !has[kind] })
}

// grant reads the grants of a module or of a tool, or what a module requests.
func (r *reader) grant(n *node, at string, g *Grant, narrows bool) {
	known := []field{
		{kindHTTP, func(n *node, at string) {
			r.rules(n, at, narrows, func(n *node, at string) { r.httpRule(n, at, g) })
		}},
		{kindSecrets, func(n *node, at string) {
			r.rules(n, at, narrows, func(n *node, at string) { r.secretRule(n, at, g) })
		}},
		{kindKV, func(n *node, at string) { r.kv(n, at, g, narrows) }},
	}
	for _, kind := range listKinds() {
		known = append(known, field{kind, func(n *node, at string) { r.names(n, at, g, kind, narrows) }})
	}
	known = append(known, field{kindFS, func(n *node, at string) {
		r.rules(n, at, narrows, func(n *node, at string) { r.fsRule(n, at, g) })
	}})
	r.fields(n, at, known)
}

// rules reads a list of rules. An empty one is a mistake in a module's grant, and
// in a tool's takes everything of its kind away.
func (r *reader) rules(n *node, at string, narrows bool, read func(n *node, at string)) {
	if n.kind == sequence && len(n.items) == 0 && !narrows && !r.asks {
		r.bad(n.line, at, "found an empty list", "it grants nothing: leave the key out")
	}
	r.list(n, at, read)
}

// reason is the key that requests have besides.
func (r *reader) reason(into *string) []field {
	if !r.asks {
		return nil
	}
	return []field{{"reason", func(n *node, at string) { value(r, n, at, into, parseReason) }}}
}

func parseReason(text string) (string, error) {
	const longest = 300
	if len(text) > longest {
		return "", fmt.Errorf("at most %d bytes", longest)
	}
	return text, nil
}

func (r *reader) httpRule(n *node, at string, g *Grant) {
	var rule HTTPRule
	found := r.count()
	r.fields(n, at, append([]field{
		{"scheme", func(n *node, at string) { value(r, n, at, &rule.Scheme, word(schemeHTTPS, schemeHTTP)) }},
		{"host", func(n *node, at string) { value(r, n, at, &rule.Host, parseHost) }},
		{"methods", func(n *node, at string) { values(r, n, at, &rule.Methods, word(knownMethods()...)) }},
		{"paths", func(n *node, at string) { values(r, n, at, &rule.Paths, parsePath) }},
		{"ports", func(n *node, at string) { values(r, n, at, &rule.Ports, parsePort) }},
		{"max_request", func(n *node, at string) { value(r, n, at, &rule.MaxRequest, size(1, 1<<30)) }},
		{"max_response", func(n *node, at string) { value(r, n, at, &rule.MaxResponse, size(1, 1<<30)) }},
		{"rate", func(n *node, at string) { value(r, n, at, &rule.Rate, parseRate) }},
		{"allow_private", func(n *node, at string) { values(r, n, at, &rule.AllowPrivate, parsePrivate) }},
		{"approval", func(n *node, at string) { value(r, n, at, &rule.Approval, word(Allow, Ask, Deny)) }},
	}, r.reason(&rule.Reason)...))
	if r.count() > found {
		return
	}
	if rule.Host == "" && (!r.asks || !onlyOpen(n)) {
		r.bad(n.line, at+".host", "not there", `name the host, such as api.example.org, or "*" for every public one`)
		return
	}
	if host, why := rule.unreachable(); !r.asks && why != "" {
		r.bad(n.line, at+".host", "found "+shown(host)+", which can never match", why)
		return
	}
	for i, other := range g.HTTP {
		if why := rule.shadow(other, i); !r.asks && why != "" {
			r.bad(n.line, at, "can never match", why)
			return
		}
	}
	g.HTTP = append(g.HTTP, rule)
}

// count is how many findings there are so far.
func (r *reader) count() int { return len(r.findings) + r.more }

// onlyOpen reports whether a request for HTTP leaves everything open but what
// bounds whatever is granted.
func onlyOpen(n *node) bool {
	return !slices.ContainsFunc(n.pairs, func(p pair) bool {
		return !slices.Contains([]string{"methods", "max_request", "max_response", "reason"}, p.key)
	})
}

// onlyReason reports whether a request does not say what it is about.
func onlyReason(n *node) bool {
	return len(n.pairs) == 0 || len(n.pairs) == 1 && n.pairs[0].key == "reason"
}

// unreachable says why nothing can come through a rule by itself.
func (r HTTPRule) unreachable() (host, why string) {
	if r.Host == anyHost {
		if len(r.AllowPrivate) > 0 {
			return r.Host, `"*" is every public address: name the host for which allow_private is meant`
		}
		return "", ""
	}
	suffix, wild := strings.CutPrefix(r.Host, "*.")
	if wild && !strings.Contains(suffix, ".") && len(r.AllowPrivate) == 0 {
		return r.Host, `one label before a single one is most of the world: write "*", or allow_private for a network of your own`
	}
	if publicLooking(r.Host) {
		if len(r.AllowPrivate) > 0 && isAddress(r.Host) {
			return r.Host, "the address is public: leave allow_private out"
		}
		return "", ""
	}
	if addr, err := netip.ParseAddr(r.Host); err == nil && address.Permits(addr, r.AllowPrivate, nil) {
		return "", ""
	}
	if localName(r.Host) && slices.ContainsFunc(r.AllowPrivate, leadsHere) {
		return "", ""
	}
	return r.Host, "it is not public: name its address in allow_private"
}

// shadow says why a rule makes no difference behind an earlier one, or why it
// takes all of it away.
func (r HTTPRule) shadow(earlier HTTPRule, i int) string {
	switch {
	case r.Approval == Deny && earlier.Approval != Deny:
		if r.about(earlier) {
			return fmt.Sprintf("rule [%d] is denied altogether by this one: leave both out", i)
		}
	case earlier.Approval == Deny && earlier.about(r):
		return fmt.Sprintf("rule [%d] denies all of it", i)
	case hostRank(earlier.Host) == hostRank(r.Host) && earlier.about(r):
		return fmt.Sprintf("rule [%d] lets all of it through before", i)
	}
	return ""
}

func parsePath(text string) (string, error) {
	text = strings.ReplaceAll(text, "%2f", "%2F")
	clean := path.Clean(text)
	if strings.HasSuffix(text, "/") && clean != "/" {
		clean += "/"
	}
	plain := strings.ReplaceAll(text, "%2F", "/")
	if text[0] != '/' || text != clean || strings.ContainsAny(plain, "?#%\\*; \t") || hidesSegments(text, plain) {
		return "", errors.New("a path begins with /, has no .. or // and no ?, #, *, ;, space, or % but for a slash inside a segment (%2F); it stands for all that lies below")
	}
	return text, nil
}

func (r *reader) secretRule(n *node, at string, g *Grant) {
	var rule SecretRule
	found := r.count()
	r.fields(n, at, append([]field{
		{"name", func(n *node, at string) { value(r, n, at, &rule.Name, parseSecretName) }},
		{"header", func(n *node, at string) { value(r, n, at, &rule.Header, parseHeader) }},
		{"query", func(n *node, at string) { value(r, n, at, &rule.Query, parseQuery) }},
		{"prefix", func(n *node, at string) { value(r, n, at, &rule.Prefix, parseSecretPrefix) }},
		{"host", func(n *node, at string) { value(r, n, at, &rule.Host, parseSecretHost) }},
		{"paths", func(n *node, at string) { values(r, n, at, &rule.Paths, parsePath) }},
	}, r.reason(&rule.Reason)...))
	if r.count() > found {
		return
	}
	open := r.asks && onlyReason(n)
	switch {
	case open:
	case rule.Name == "":
		r.bad(n.line, at+".name", "not there", "name the secret, as in: hutch secrets list")
	case rule.Host == "":
		r.bad(n.line, at+".host", "not there", "name the host that may get the secret")
	case (rule.Header == "") == (rule.Query == ""):
		r.bad(n.line, at, "found both or none of header and query", "exactly one says where the secret goes")
	case rule.Prefix != "" && rule.Header == "":
		r.bad(n.line, at+".prefix", "found a prefix of a query", "it stands before the value of a header")
	case slices.ContainsFunc(g.Secrets, rule.sameSecret):
		r.bad(n.line, at, "can never match", "an earlier rule puts the same secret into the same place")
	}
	if r.count() == found {
		g.Secrets = append(g.Secrets, rule)
	}
}

func (s SecretRule) sameSecret(other SecretRule) bool {
	return s.Host == other.Host && strings.EqualFold(s.Header, other.Header) && s.Query == other.Query && pathsCover(other.Paths, s.Paths)
}

func parseSecretName(text string) (string, error) {
	if len(text) > 64 || strings.Trim(text, letters+digits+"_-") != "" || strings.Trim(text[:1], letters+digits) != "" {
		return "", errors.New("a secret's name is letters, digits, _ and -, at most 64")
	}
	return text, nil
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// parseHeader takes what a token may have (RFC 9110, 5.6.2), but no header by
// which a request is framed, routed or forwarded.
func parseHeader(text string) (string, error) {
	if len(text) > 64 || strings.Trim(text, letters+digits+"!#$%&'*+-.^_`|~") != "" {
		return "", errors.New("a header's name has letters, digits and -, at most 64")
	}
	lower := strings.ToLower(text)
	if slices.Contains([]string{"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "expect", "forwarded"}, lower) ||
		strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "x-forwarded-") {
		return "", errors.New("this header belongs to the connection and is never set for a module")
	}
	return text, nil
}

func parseQuery(text string) (string, error) {
	if len(text) > 64 || strings.Trim(text, letters+digits+"-._~[]") != "" {
		return "", errors.New("a parameter's name has letters, digits and -._~[], at most 64")
	}
	return text, nil
}

func parseSecretPrefix(text string) (string, error) {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || len(text) > 64 {
			return "", errors.New("printable ASCII, at most 64")
		}
	}
	return text, nil
}

// What a module may keep, and for how long.
const (
	maxKV  = 1 << 30
	maxTTL = 10 * 365 * 24 * time.Hour
)

func (r *reader) kv(n *node, at string, g *Grant, narrows bool) {
	if r.asks && n.kind == sequence && len(n.items) == 1 {
		n, at = n.items[0], at+"[0]"
	}
	var rule KVRule
	least := int64(1)
	if narrows {
		least = 0
	}
	found := r.count()
	r.fields(n, at, append([]field{
		{"max", func(n *node, at string) { value(r, n, at, &rule.Max, size(least, maxKV)) }},
		{"ttl", func(n *node, at string) { value(r, n, at, &rule.TTL, duration(time.Second, maxTTL)) }},
	}, r.reason(&rule.Reason)...))
	if r.count() == found {
		g.KV = &rule
	}
}

func (r *reader) fsRule(n *node, at string, g *Grant) {
	var rule FSRule
	found := r.count()
	r.fields(n, at, append([]field{
		{"path", func(n *node, at string) { value(r, n, at, &rule.Path, parseFolder) }},
		{"mode", func(n *node, at string) { value(r, n, at, &rule.Mode, word("ro", "rw")) }},
	}, r.reason(&rule.Reason)...))
	switch {
	case r.count() > found:
	case r.asks && onlyReason(n):
		g.FS = append(g.FS, rule)
	case rule.Path == "":
		r.bad(n.line, at+".path", "not there", "name the folder")
	case rule.Mode == "":
		r.bad(n.line, at+".mode", "not there", "allowed are ro, rw")
	case slices.ContainsFunc(g.FS, func(other FSRule) bool {
		return below(other.Path, rule.Path) && (other.Mode == "rw" || rule.Mode == "ro")
	}):
		r.bad(n.line, at, "can never match", "an earlier rule lets the module in already")
	default:
		g.FS = append(g.FS, rule)
	}
}

func parseFolder(text string) (string, error) {
	if text[0] != '/' || path.Clean(text) != text || text == "/" {
		return "", errors.New("a folder is an absolute path without .. and without a slash at its end, and not / itself")
	}
	return text, nil
}

// names reads a list of names. A request may give each as {name: ..., reason: ...}.
func (r *reader) names(n *node, at string, g *Grant, kind string, narrows bool) {
	list := g.names(kind)
	r.rules(n, at, narrows, func(n *node, at string) {
		found, name, reason := r.count(), "", ""
		if r.asks && n.kind == mapping {
			r.fields(n, at, append(r.reason(&reason), field{"name", func(n *node, at string) { value(r, n, at, &name, nameKinds()[kind]) }}))
			if onlyReason(n) {
				name = anyHost
			}
		} else {
			value(r, n, at, &name, nameKinds()[kind])
		}
		if r.count() > found {
			return
		}
		if slices.ContainsFunc(*list, func(other string) bool { return nameCovers(kind, other, name) }) {
			r.bad(n.line, at, "can never match", "an earlier name covers "+shown(name))
			return
		}
		*list = append(*list, name)
		if reason != "" {
			if g.Reasons == nil {
				g.Reasons = map[string]string{}
			}
			g.Reasons[kind+" "+name] = reason
		}
	})
}

// nameCovers reports whether name gives all that other does: a tracker's scope
// without a project is about every project.
func nameCovers(kind, name, other string) bool {
	scope, _, limited := strings.Cut(other, "@")
	return name == other || name == anyHost || kind == kindTracker && limited && name == scope
}

// trackerScopes are the scopes without the project.
func trackerScopes() []string {
	return []string{"tasks:read", "tasks:write", "tasks:take", "tasks:assign", "tasks:force", "steps:read", "steps:write",
		"messages:read", "messages:write", "projects:read", "members:read", "members:self", "files:read", "files:write"}
}

func parseScope(text string) (string, error) {
	scope, project, limited := strings.Cut(text, "@")
	if !slices.Contains(trackerScopes(), scope) {
		return "", errors.New("allowed are " + strings.Join(trackerScopes(), ", ") + ", each with @project behind it or not")
	}
	if limited && !slug(project, 64) {
		return "", errors.New("a project is its slug: lower-case letters, digits, - and _")
	}
	return text, nil
}

func slug(text string, longest int) bool {
	return text != "" && len(text) <= longest && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz"+digits+"-_") == "" && text[0] != '-'
}

func parseConversation(text string) (string, error) { return word("send")(text) }

func parseBridge(text string) (string, error) {
	if server, name, ok := strings.Cut(strings.TrimPrefix(text, "mcp:"), "/"); ok && strings.HasPrefix(text, "mcp:") && slug(server, 64) && toolName(name) {
		return text, nil
	}
	if agent, ok := strings.CutPrefix(text, "a2a:"); ok && slug(agent, 64) {
		return text, nil
	}
	return "", errors.New("allowed are mcp:SERVER/TOOL and a2a:AGENT, one server's tool or one agent each")
}

func parseToolName(text string) (string, error) {
	if !toolName(text) {
		return "", errors.New("a tool's name is letters, digits, _, - and ., at most 128")
	}
	return text, nil
}

func toolName(text string) bool {
	return text != "" && len(text) <= 128 && strings.Trim(text, letters+digits+"_-.") == ""
}
