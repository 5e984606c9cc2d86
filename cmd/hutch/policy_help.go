package main

import (
	"fmt"
	"slices"
	"strings"
)

// A policyKey is one key of a policy file, for help; a test holds these to what
// [capability.Parse] knows.
type policyKey struct {
	// path leads to it from the top. In it * is a name that is the operator's own,
	// and - an item of a list.
	path string
	// name is an example of such a name.
	name string
	// means is what it is for, allowed which values there are, fallback what goes
	// without it.
	means, allowed, fallback string
	// example is a value as it stands in the file; empty if keys stand below it.
	example string
	// like is another key, below which stands what may stand below this one.
	like string
	// instead: it takes the place of its neighbour, so it is shown as a comment.
	instead bool
	// later says what holds though the key is not available yet.
	later string
}

// key is the last part of the path, as it stands in the file.
func (k policyKey) key() string {
	if k.name != "" {
		return k.name
	}
	return k.path[strings.LastIndex(k.path, "/")+1:]
}

// parent is the path of what it stands below.
func (k policyKey) parent() string { return k.path[:max(strings.LastIndex(k.path, "/"), 0)] }

const (
	topicPolicy = "policy"
	entryPath   = "modules/*"
	grantPath   = entryPath + "/grant"
	limitsPath  = "defaults/limits"

	none        = "none"
	approvals   = "allow, ask, deny"
	digestValue = "sha256: and 64 lower-case hex digits"
	pathValue   = "prefixes of paths that end on the border of a segment, such as /repos"
	unfollowed  = "nothing follows this yet: "
)

// policyKeys are all keys of a policy file, in an order in which they can be read.
func policyKeys() []policyKey {
	return slices.Concat(
		[]policyKey{
			{path: "version", means: "the version of this grammar; has to be there", allowed: "1", example: "1"},
			{path: "defaults", means: "what goes for each module whose entry does not say otherwise"},
			{path: "defaults/approval", means: "may tools be called", allowed: approvals, fallback: "allow; ask has a person decide about each call, in hutch chat and at /agui, and holds the tool elsewhere", example: "allow"},
			{path: limitsPath, means: "bounds of one call, and of one day"},
		},
		policyLimits(),
		[]policyKey{
			{path: "modules", means: "one entry for each module that something is said about"},
			{path: entryPath, name: "github.wasm", means: "the name of the file in the tool folder"},
			{path: entryPath + "/digest", means: "the bytes that the grant is for; without it a grant counts for nothing",
				allowed: digestValue + ", as hutch tools inspect shows them", example: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			{path: entryPath + "/definitions", means: "what its tools say of themselves, decided about with the bytes", allowed: digestValue,
				fallback: "the bytes alone count", example: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
			{path: entryPath + "/prefix", means: "stands before the names of its tools", allowed: "a letter and up to 15 letters, digits, _ and -", fallback: none, example: "gh_"},
			{path: grantPath, means: "what the module may do, if it asks for it; {} grants nothing, and it is used all the same", fallback: "held if it asks for anything"},
		},
		policyHTTP(), policySecrets(), policyOtherKinds(), policyEntry(),
	)
}

func policyLimits() []policyKey {
	limit := func(name, allowed, example string) policyKey {
		at := slices.IndexFunc(limitKeys, func(k limitKey) bool { return k.name == name })
		return policyKey{path: limitsPath + "/" + name, means: limitKeys[at].means, allowed: allowed,
			fallback: "that of the configuration, " + limitKeys[at].fallback, example: example}
	}
	return []policyKey{
		limit("memory", "64KiB to 4GiB", "64MiB"),
		limit("timeout", "1ms to 1h", "10s"),
		limit("input", "1KiB to 64MiB", "1MiB"),
		limit("output", "1KiB to 64MiB", "1MiB"),
		limit("log_lines", "1 to 1000000", "100"),
		limit("log_line", "1B to 1MiB", "8KiB"),
		limit("host_calls", "1 to 1000000", "1000"),
		limit("fuel", "1 to 1000000000000000", "5e9"),
		{path: limitsPath + "/calls_per_day", means: "calls of one module in a day (UTC)", allowed: "1 to 1000000000000000", fallback: none, example: "5000"},
		{path: limitsPath + "/egress_per_day", means: "bytes that one module may send and receive in a day (UTC)", allowed: "1B to 1048576GiB", fallback: none, example: "100MiB"},
	}
}

func policyHTTP() []policyKey {
	const at = grantPath + "/http"
	return []policyKey{
		{path: at, means: "requests that it may make; of several rules that match, one that denies counts, else the one with the most exact host, else the first"},
		{path: at + "/-/host", means: "has to be there", allowed: `a name, an address, *.NAME for one label before it, or "*" for every public host`, example: "api.github.com"},
		{path: at + "/-/scheme", allowed: "https, http", fallback: "https", example: "https"},
		{path: at + "/-/methods", allowed: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", fallback: "GET and HEAD", example: "[GET, POST]"},
		{path: at + "/-/paths", allowed: pathValue, fallback: "every path", example: "[/repos]"},
		{path: at + "/-/ports", allowed: "1 to 65535", fallback: "443, for http 80", example: "[443]"},
		{path: at + "/-/max_request", means: "body of a request", allowed: "1B to 1GiB", fallback: "8MiB", example: "1MiB"},
		{path: at + "/-/max_response", means: "body of an answer; what is above 11MiB counts as that", allowed: "1B to 1GiB", fallback: "8MiB", example: "4MiB"},
		{path: at + "/-/rate", means: "requests at once, and as many again in that time", allowed: "1 to 1000000, a slash and s, min, h or day", fallback: none, example: "60/min"},
		{path: at + "/-/allow_private", means: "addresses that the host may have though they are not public", allowed: "addresses and ranges", fallback: none, example: "[10.1.2.0/24]"},
		{path: at + "/-/approval", means: "ask refuses with the command that allows it, deny refuses in every spelling of a path", allowed: approvals, fallback: "allow", example: "allow"},
	}
}

func policySecrets() []policyKey {
	const at = grantPath + "/secrets"
	return []policyKey{
		{path: at, means: "secrets that hutch puts into its requests; a rule for http has to let those through"},
		{path: at + "/-/name", means: "has to be there, as in hutch secrets list", allowed: "letters, digits, _ and -, at most 64", example: "github_token"},
		{path: at + "/-/host", means: "has to be there: the one host that gets it", allowed: "a name or an address", example: "api.github.com"},
		{path: at + "/-/header", means: "where it goes: this or query has to be there", allowed: "the name of a header that belongs to no connection", example: "Authorization"},
		{path: at + "/-/prefix", means: "stands before the value in the header", allowed: "printable ASCII, at most 64", fallback: none, example: `"Bearer "`},
		{path: at + "/-/query", means: "in place of header and prefix, the parameter of the URL", allowed: "letters, digits and -._~[], at most 64", example: "key", instead: true},
		{path: at + "/-/paths", allowed: pathValue, fallback: "every path", example: "[/repos/example]"},
	}
}

func policyOtherKinds() []policyKey {
	names := func(kind, means, allowed, example string) policyKey {
		return policyKey{path: grantPath + "/" + kind, means: means, allowed: allowed, fallback: none, example: example}
	}
	return []policyKey{
		{path: grantPath + "/kv", means: "values that it keeps, for each caller apart"},
		{path: grantPath + "/kv/max", means: "keys, values, and 64 bytes for each; 0B in the grant of a tool gives none", allowed: "1B to 1GiB", fallback: "1MiB", example: "1MiB"},
		{path: grantPath + "/kv/ttl", means: "the longest that a value is kept", allowed: "1s to 87600h", fallback: "for ever", example: "720h"},
		names("tracker", "what it may do in the tracker, as whoever calls it", "tasks:read, tasks:write, tasks:take, tasks:assign, tasks:force, steps:read, steps:write, messages:read, "+
			"messages:write, projects:read, members:read, members:self, files:read, files:write, each with @project behind it or not", `["tasks:read"]`),
		names("conversation", unfollowed+"messages to other conversations", "send", "[send]"),
		names("bridge", unfollowed+"tools of other servers, and other agents", "mcp:SERVER/TOOL and a2a:AGENT, one server's tool or one agent each", `["mcp:files/read_file"]`),
		names("tool", unfollowed+"other tools", "names of tools", "[word_count]"),
		{path: grantPath + "/fs", means: unfollowed + "folders"},
		{path: grantPath + "/fs/-/path", means: "has to be there", allowed: "an absolute path", example: "/srv/docs"},
		{path: grantPath + "/fs/-/mode", means: "has to be there", allowed: "ro, rw", example: "ro"},
	}
}

func policyEntry() []policyKey {
	const tools = entryPath + "/tools"
	return []policyKey{
		{path: entryPath + "/config", means: "what it reads as its configuration; secret://NAME becomes that secret where the grant puts it", allowed: "at most 256 values of at most 64KiB each"},
		{path: entryPath + "/config/*", name: "token", allowed: "a text", example: `"secret://github_token"`},
		{path: tools, means: "what goes for single tools"},
		{path: tools + "/*", name: "create_issue", means: "the name of the tool, without prefix"},
		{path: tools + "/*/approval", means: "may it be called; ask has a person decide about each call", allowed: approvals, fallback: "that of defaults", example: "allow"},
		{path: tools + "/*/grant", means: "narrows the kinds that stand in it, with the keys of the module's grant; [] takes one away",
			fallback: "all that the module has", example: "{http: [{host: api.github.com, methods: [POST]}], bridge: []}", like: grantPath},
		{path: tools + "/*/args", means: "bounds of its arguments"},
		{path: tools + "/*/args/*", name: "title", means: "the name of the argument"},
		{path: tools + "/*/args/*/max_length", means: "characters, of what is no text as JSON", allowed: "1 to 67108864", fallback: none, example: "200"},
		{path: entryPath + "/agents", means: "the agents that may see and call its tools; over MCP and on the command line a call is of none",
			allowed: "lower-case letters, digits, - and _", fallback: "everybody", example: "[reviewer]"},
		{path: entryPath + "/limits", means: "bounds with the keys of defaults.limits", fallback: "those of defaults", example: "{timeout: 30s}", like: limitsPath},
		{path: entryPath + "/signature", means: "who must have signed the file; another holds it", allowed: "ed25519: and 32 bytes in base64", fallback: "nobody",
			example: "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="},
		{path: entryPath + "/checkpoint", means: "on: calls begin in the state that the module has started in; off: each starts it anew, which is slower",
			allowed: "on, off", fallback: "on", example: "off"},
		{path: entryPath + "/instance", later: "each call starts from a clean state"},
	}
}

// policyHelp is a policy file with every key, and what each is for.
func policyHelp() string {
	return `# What modules may do. --policy, HUTCH_POLICY or policy in the configuration name the file; without, it is
# policy.yaml in the state folder. Nothing has to be in it, but no key is taken that is not here, and no value
# without its unit. hutch tools grant and hutch run --observe write these lines, hutch config check reads them.
` + policyFileText(policyKeys())
}

// policyFileText writes keys with their examples, each below what it means.
func policyFileText(keys []policyKey) string {
	var b strings.Builder
	for i, k := range keys {
		indent := strings.Repeat("  ", strings.Count(k.path, "/"))
		dash := ""
		if item, ok := strings.CutSuffix(k.parent(), "/-"); ok && keys[i-1].path == item {
			indent, dash = indent[2:], "- "
		}
		for _, line := range wrapped(k.says(), 110-len(indent)) {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		if k.later != "" {
			continue
		}
		if k.instead {
			dash = "# "
		}
		fmt.Fprintln(&b, strings.TrimRight(indent+dash+k.key()+": "+k.example, " "))
	}
	return b.String()
}

// says is the comment above a key.
func (k policyKey) says() string {
	if k.later != "" {
		return k.key() + ": not available yet, and refused: " + k.later
	}
	text := k.means
	if k.allowed != "" {
		text += prefixed(": ", k.allowed)
	}
	text = strings.TrimPrefix(text, ": ")
	if k.fallback != "" {
		text += " (default: " + k.fallback + ")"
	}
	return text
}

// wrapped breaks a text into lines of at most width bytes, between words.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
