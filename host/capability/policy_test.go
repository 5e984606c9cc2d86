package capability

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestParseReadsTheWholeGrammar(t *testing.T) {
	e, ok := mustParse(t, full).Entry("github.wasm")
	if !ok {
		t.Fatal("no entry")
	}
	want := []string{
		"http GET, POST https://api.github.com port 443 below /repos/, at most 4MiB back, 60/min",
		"http GET https://any public host, refused until allowed",
		"http GET, HEAD https://nas.lan, private addresses 192.168.1.7/32",
		"secret github_token as header Authorization to api.github.com",
		"kv, at most 1MiB, kept for 720h",
		"tracker tasks:read", "tracker steps:write@project-slug", "conversation send",
		"bridge mcp:files/read_file", "bridge a2a:reviewer", "tool word_count", "fs /srv/docs ro",
	}
	if got := e.Grant.Lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("grant:\ngot  %q\nwant %q", got, want)
	}
	if s := e.Grant.Secrets[0]; s.Prefix != "Bearer " {
		t.Errorf("secret: %+v", s)
	}
	issue := e.Tools["create_issue"]
	if issue.Approval != Ask || len(issue.Grant.HTTP) != 1 || issue.Args["title"].MaxLength != 200 {
		t.Errorf("tool: %+v", issue)
	}
	e.Grant, e.Tools = Grant{}, nil
	if want := (Entry{
		Digest: digestA, Definitions: defsA, Prefix: "gh_", Decided: true, Line: 5,
		Signature: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		Config:    map[string]string{"base_url": "https://api.github.com", "api-key": "secret://github_token"},
		Agents:    []string{"coder", "reviewer"},
		Limits:    Limits{Call: abi.Limits{Wall: 10 * time.Second}, CallsPerDay: 5000, EgressPerDay: 100 << 20},
	}); !reflect.DeepEqual(e, want) {
		t.Errorf("entry:\ngot  %+v\nwant %+v", e, want)
	}
}

func TestParseDefaults(t *testing.T) {
	b := NewBook(Options{Policy: mustParse(t, full)})
	got := b.page().policy.defaults
	want := defaults{approval: Allow, limits: Limits{Call: abi.Limits{
		MemoryBytes: 64 << 20, Wall: 30 * time.Second, OutputBytes: 1 << 20, HostCalls: 1000}}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseOfNothingGrantsNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# a comment\n", "---\n", "version: 1", "version: 1\nmodules:\n", "version: 1\nmodules: {}"} {
		if p := mustParse(t, text); len(p.Modules()) != 0 {
			t.Errorf("%q: %v", text, p.Modules())
		}
	}
	var p *Policy
	if _, ok := p.Entry("x.wasm"); ok {
		t.Error("a nil policy has an entry")
	}
}

// grantFaults are what may not stand in a grant, each with the key behind grant.
// and what the finding says.
var grantFaults = []struct{ name, grant, want string }{
	{"unknown kind", `{gpio: [1]}`, `gpio: no such key: allowed are http, secrets, kv, tracker, conversation, bridge, tool, fs`},
	{"kind of another case", `{HTTP: []}`, `HTTP: no such key`},
	{"a list for keys", `[http]`, `found a list: keys and values are wanted here`},
	{"nothing", ``, `found nothing: keys and values are wanted here`},
	{"a reason", `{http: [{host: a.test, reason: x}]}`, `http[0].reason: no such key`},
	{"http: no list", `{http: {host: a.test}}`, `http: found keys and values: a list is wanted here`},
	{"http: empty", `{http: []}`, `http: found an empty list: it grants nothing`},
	{"http: no host", `{http: [{methods: [GET]}]}`, `http[0].host: not there: name the host`},
	{"http: a URL", `{http: [{host: "https://a.test/"}]}`, `http[0].host: found "https://a.test/": a host is a name`},
	{"http: host and port", `{http: [{host: "a.test:80"}]}`, `http[0].host: found "a.test:80"`},
	{"http: user", `{http: [{host: "u@a.test"}]}`, `http[0].host: found "u@a.test"`},
	{"http: number", `{http: [{host: "2130706433"}]}`, `http[0].host: found "2130706433": an IPv4 address is four numbers`},
	{"http: star inside", `{http: [{host: "a.*.test"}]}`, `http[0].host: found "a.*.test": allowed are a host`},
	{"http: star before an address", `{http: [{host: "*.10.0.0.1"}]}`, `http[0].host: found "*.10.0.0.1": an address has no labels`},
	{"http: star before one label", `{http: [{host: "*.com"}]}`, `http[0].host: found "*.com", which can never match`},
	{"http: private", `{http: [{host: 192.168.1.7}]}`, `http[0].host: found "192.168.1.7", which can never match: it is not public`},
	{"http: other private range", `{http: [{host: 192.168.1.7, allow_private: [10.0.0.0/8]}]}`, `which can never match`},
	{"http: localhost", `{http: [{host: localhost}]}`, `which can never match: it is not public`},
	{"http: star and private", `{http: [{host: "*", allow_private: [10.0.0.0/8]}]}`, `"*" is every public address`},
	{"http: public address, private range", `{http: [{host: 1.1.1.1, allow_private: [10.0.0.0/8]}]}`, `the address is public`},
	{"http: public range", `{http: [{host: a.test, allow_private: [8.8.8.0/24]}]}`, `allow_private[0]: found "8.8.8.0/24": only ranges that are not public`},
	{"http: whole world", `{http: [{host: a.test, allow_private: [0.0.0.0/0]}]}`, `only ranges that are not public`},
	{"http: nobody's address", `{http: [{host: a.test, allow_private: [0.0.0.0/32]}]}`, `leads to nobody`},
	{"http: everybody's address", `{http: [{host: a.test, allow_private: ["ff02::/16"]}]}`, `leads to nobody`},
	{"http: IPv4 in IPv6", `{http: [{host: a.test, allow_private: ["::ffff:10.0.0.1"]}]}`, `write IPv4 addresses as four numbers`},
	{"http: zone", `{http: [{host: a.test, allow_private: ["fe80::1%eth0"]}]}`, `an address or a range`},
	{"http: credentials in a wide range", `{http: [{host: 169.254.169.254, allow_private: [169.254.0.0/16]}]}`, `name its address in allow_private`},
	{"http: bits behind the length", `{http: [{host: a.test, allow_private: [10.1.0.0/8]}]}`, `write 10.0.0.0/8`},
	{"http: method", `{http: [{host: a.test, methods: [get]}]}`, `methods[0]: found "get": allowed are GET, HEAD, POST`},
	{"http: CONNECT", `{http: [{host: a.test, methods: [CONNECT]}]}`, `methods[0]: found "CONNECT"`},
	{"http: method twice", `{http: [{host: a.test, methods: [GET, GET]}]}`, `methods[1]: found "GET" twice`},
	{"http: no methods", `{http: [{host: a.test, methods: []}]}`, `methods: found an empty list: it can never match`},
	{"http: one method", `{http: [{host: a.test, methods: GET}]}`, `methods: found "GET": a list is wanted here`},
	{"http: relative path", `{http: [{host: a.test, paths: [repos]}]}`, `paths[0]: found "repos": a path begins with /`},
	{"http: path with dots", `{http: [{host: a.test, paths: [/a/../b]}]}`, `paths[0]`},
	{"http: path with star", `{http: [{host: a.test, paths: [/a/*]}]}`, `paths[0]`},
	{"http: escaped path", `{http: [{host: a.test, paths: [/a%20b]}]}`, `paths[0]`},
	{"http: escaped dots", `{http: [{host: a.test, paths: [/a/..%2fb]}]}`, `paths[0]`},
	{"http: escaped slash twice", `{http: [{host: a.test, paths: [/a%2fb, /a%2Fb]}]}`, `paths[1]: found "/a%2Fb" twice`},
	{"http: port 0", `{http: [{host: a.test, ports: [0]}]}`, `ports[0]: found "0": a port is 1 to 65535`},
	{"http: port over", `{http: [{host: a.test, ports: [65536]}]}`, `ports[0]`},
	{"http: octal port", `{http: [{host: a.test, ports: [0443]}]}`, `ports[0]`},
	{"http: scheme", `{http: [{host: a.test, scheme: ftp}]}`, `scheme: found "ftp": allowed are https, http`},
	{"http: size without unit", `{http: [{host: a.test, max_response: 4096}]}`, `max_response: found "4096": a size is a whole number and B, KiB`},
	{"http: size MB", `{http: [{host: a.test, max_response: 4MB}]}`, `max_response: found "4MB"`},
	{"http: size 0", `{http: [{host: a.test, max_request: 0B}]}`, `max_request: found "0B": allowed are 1B to 1GiB`},
	{"http: rate", `{http: [{host: a.test, rate: 60}]}`, `rate: found "60": a rate is 1 to 1000000, a slash and s, min, h or day`},
	{"http: rate 0", `{http: [{host: a.test, rate: 0/min}]}`, `rate: found "0/min"`},
	{"http: approval", `{http: [{host: a.test, approval: maybe}]}`, `approval: found "maybe": allowed are allow, ask, deny`},
	{"http: the same again", `{http: [{host: a.test}, {host: A.test.}]}`, `http[1]: can never match: rule [0] lets all of it through before`},
	{"http: narrower behind", `{http: [{host: a.test}, {host: a.test, paths: [/x]}]}`, `http[1]: can never match`},
	{"http: denied before", `{http: [{host: a.test, approval: deny}, {host: a.test}]}`, `rule [0] denies all of it`},
	{"http: denied behind", `{http: [{host: a.test}, {host: "*", methods: [GET, HEAD], approval: deny}]}`, `rule [0] is denied altogether`},
	{"http: an empty value", `{http: [{host: ""}]}`, `host: found an empty value`},
	{"secrets: no name", `{http: [{host: a.test}], secrets: [{header: A, host: a.test}]}`, `secrets[0].name: not there`},
	{"secrets: name", `{http: [{host: a.test}], secrets: [{name: a/b, header: A, host: a.test}]}`, `secrets[0].name: found "a/b"`},
	{"secrets: no host", `{http: [{host: a.test}], secrets: [{name: a, header: A}]}`, `secrets[0].host: not there`},
	{"secrets: any host", `{http: [{host: a.test}], secrets: [{name: a, header: A, host: "*"}]}`, `a secret goes to one host`},
	{"secrets: neither place", `{http: [{host: a.test}], secrets: [{name: a, host: a.test}]}`, `exactly one says where`},
	{"secrets: both places", `{http: [{host: a.test}], secrets: [{name: a, header: A, query: q, host: a.test}]}`, `exactly one says where`},
	{"secrets: Host", `{http: [{host: a.test}], secrets: [{name: a, header: Host, host: a.test}]}`, `this header belongs to the connection`},
	{"secrets: line break", `{http: [{host: a.test}], secrets: [{name: a, header: "A\nB", host: a.test}]}`, `secrets[0].header: found "A\nB"`},
	{"secrets: prefix with a break", `{http: [{host: a.test}], secrets: [{name: a, header: A, prefix: "x\r\n", host: a.test}]}`, `prefix: found "x\r\n": printable ASCII`},
	{"secrets: prefix of a query", `{http: [{host: a.test}], secrets: [{name: a, query: q, prefix: x, host: a.test}]}`, `found a prefix of a query`},
	{"secrets: host without http", `{http: [{host: a.test}], secrets: [{name: a, header: A, host: b.test}]}`, `secrets: "a" can never be sent`},
	{"secrets: path without http", `{http: [{host: a.test, paths: [/x/]}], secrets: [{name: a, header: A, host: a.test, paths: [/y/]}]}`, `can never be sent`},
	{"secrets: same place twice", `{http: [{host: a.test}], secrets: [{name: a, header: A, host: a.test}, {name: b, header: a, host: a.test}]}`, `secrets[1]: can never match`},
	{"kv: a list", `{kv: [1]}`, `kv: found a list`},
	{"kv: no unit", `{kv: {max: 1}}`, `kv.max: found "1"`},
	{"kv: nothing fits", `{kv: {max: 0B}}`, `kv.max: found "0B": allowed are 1B to 1GiB`},
	{"kv: days", `{kv: {ttl: 30d}}`, `kv.ttl: found "30d": a duration is a number and ms, s, m or h`},
	{"kv: too short", `{kv: {ttl: 1ms}}`, `kv.ttl: found "1ms": allowed are 1s to 87600h`},
	{"tracker: scope", `{tracker: ["tasks:delete"]}`, `tracker[0]: found "tasks:delete": allowed are tasks:read`},
	{"tracker: everything", `{tracker: ["*"]}`, `tracker[0]: found "*"`},
	{"tracker: project", `{tracker: ["tasks:read@"]}`, `a project is its slug`},
	{"tracker: covered", `{tracker: ["tasks:read", "tasks:read@p"]}`, `tracker[1]: can never match`},
	{"conversation", `{conversation: [read]}`, `conversation[0]: found "read": allowed are send`},
	{"bridge: all tools", `{bridge: ["mcp:files/*"]}`, `bridge[0]: found "mcp:files/*": allowed are mcp:SERVER/TOOL`},
	{"bridge: no tool", `{bridge: ["mcp:files"]}`, `bridge[0]`},
	{"bridge: other", `{bridge: ["http:files/x"]}`, `bridge[0]`},
	{"tool: name", `{tool: ["a b"]}`, `tool[0]: found "a b"`},
	{"tool: twice", `{tool: [a, a]}`, `tool[1]: can never match`},
	{"fs: relative", `{fs: [{path: docs, mode: ro}]}`, `fs[0].path: found "docs"`},
	{"fs: everything", `{fs: [{path: /, mode: ro}]}`, `fs[0].path: found "/"`},
	{"fs: dots", `{fs: [{path: /a/.., mode: ro}]}`, `fs[0].path`},
	{"fs: mode", `{fs: [{path: /a, mode: rwx}]}`, `fs[0].mode: found "rwx": allowed are ro, rw`},
	{"fs: no mode", `{fs: [{path: /a}]}`, `fs[0].mode: not there`},
	{"fs: covered", `{fs: [{path: /a, mode: rw}, {path: /a/b, mode: ro}]}`, `fs[1]: can never match`},
}

func TestParseRefusesInAGrant(t *testing.T) {
	for _, c := range grantFaults {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("policy.yaml", []byte(granting(c.grant)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			if !strings.HasPrefix(err.Error(), "policy.yaml:5: modules.x.wasm.grant") {
				t.Errorf("place: %v", err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const entry = "version: 1\nmodules:\n  x.wasm:\n    "
	for _, c := range []struct{ name, text, want string }{
		{"no version", "modules: {}", `p:1: version: not there`},
		{"version 2", "version: 2", `p:1: version: found "2": allowed are 1`},
		{"unknown key", "version: 1\nmodule: {}", `p:2: module: no such key: allowed are version, defaults, modules`},
		{"a list", "- version: 1", `p:1: found a list`},
		{"key twice", "version: 1\nversion: 1", `p:2: version: stands there twice`},
		{"module twice", "version: 1\nmodules:\n  x.wasm: {agents: [a]}\n  x.wasm: {agents: [b]}", `p:4: modules.x.wasm: stands there twice`},
		{"path", "version: 1\nmodules:\n  a/x.wasm: {}", `p:3: modules.a/x.wasm: found "a/x.wasm": a module is named by its file`},
		{"hidden file", "version: 1\nmodules:\n  .x.wasm: {}", `a module is named by its file`},
		{"no file of a module", "version: 1\nmodules:\n  x: {}", `a module is named by its file`},
		{"nothing about it", "version: 1\nmodules:\n  x.wasm:", `p:3: modules.x.wasm: found nothing`},
		{"digest", entry + "digest: abc", `p:4: modules.x.wasm.digest: found "abc": a digest is sha256:`},
		{"digest in capitals", entry + "digest: sha256:" + strings.Repeat("A", 64), `digest: found`},
		{"definitions alone", entry + "definitions: sha256:" + defsA, `definitions: stands without a digest`},
		{"prefix", entry + "prefix: 'a b'", `prefix: found "a b"`},
		{"prefix that begins no name", entry + "prefix: _a", `prefix: found "_a": a prefix is a letter`},
		{"agents", entry + "agents: []", `agents: found an empty list: it can never match`},
		{"agent", entry + "agents: [Coder]", `agents[0]: found "Coder"`},
		{"instance", entry + "instance: session", `instance: not available yet: each call starts from a clean state: leave the key out`},
		{"checkpoint", entry + "checkpoint: yes", `checkpoint: found "yes": allowed are on, off`},
		{"signature", entry + "signature: ed25519:AAAA", `signature: found "ed25519:AAAA": a signature's key is`},
		{"limit", entry + "limits: {cpu: 1}", `limits.cpu: no such key: allowed are memory, timeout`},
		{"memory", entry + "limits: {memory: 64}", `limits.memory: found "64": a size is`},
		{"memory of nothing", entry + "limits: {memory: 1KiB}", `allowed are 64KiB to 4GiB`},
		{"timeout", entry + "limits: {timeout: 0}", `limits.timeout: found "0": a duration is`},
		{"timeout of hours", entry + "limits: {timeout: 2h}", `allowed are 1ms to 1h`},
		{"count", entry + "limits: {calls_per_day: 1.5e9}", `limits.calls_per_day: found "1.5e9": a whole number`},
		{"count overflow", entry + "limits: {calls_per_day: 99e18}", `limits.calls_per_day: found "99e18"`},
		{"fuel", entry + "limits: {fuel: 1.5}", `limits.fuel: found "1.5": a whole number`},
		{"fuel of all", "version: 1\ndefaults: {limits: {fuel: 0}}", `defaults.limits.fuel: found "0"`},
		{"calls", entry + "limits: {calls_per_day: -1}", `limits.calls_per_day: found "-1"`},
		{"config", entry + "config: {a: [b]}", `config.a: found a list`},
		{"config of nothing", entry + "config: {a: }", `config.a: found nothing`},
		{"secret not granted", entry + "grant: {}\n    config: {a: secret://b}", `p:5: modules.x.wasm.config.a: found "secret://b": the secret has to stand in grant.secrets`},
		{"tool's name", entry + "tools: {'a b': {}}", `tools.a b: found "a b"`},
		{"tool's key", entry + "tools: {a: {limits: {}}}", `tools.a.limits: no such key: allowed are approval, grant, args`},
		{"argument", entry + "tools: {a: {args: {b: {}}}}", `args.b: bounds nothing`},
		{"argument's length", entry + "tools: {a: {args: {b: {max_length: 0}}}}", `max_length: found "0": allowed are 1 to`},
		{"tool beyond its module", entry + "grant: {kv: {}}\n    tools: {a: {grant: {http: [{host: a.test}]}}}",
			`p:5: modules.x.wasm.tools.a.grant.http: can never match: it narrows the module's http`},
		{"tool beyond its module's host", entry + "grant: {http: [{host: b.test}]}\n    tools: {a: {grant: {http: [{host: a.test}]}}}", `can never match`},
		{"tool beyond its module's scope", entry + "grant: {tracker: ['tasks:read']}\n    tools: {a: {grant: {tracker: ['tasks:write']}}}", `can never match`},
		{"default approval", "version: 1\ndefaults: {approval: no}", `defaults.approval: found "no"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("p", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParseRefusesTextThatIsNotPlain(t *testing.T) {
	deep := func(open, close string, n int) string {
		return "version: 1\nmodules: " + strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	for _, c := range []struct{ name, text, want string }{
		{"anchor", "version: &v 1", "p:1: anchors (&) are not read"},
		{"alias", "version: *v", `aliases (*) are not read`},
		{"star without quotes", granting("{http: [{host: *}]}"), `p:5: aliases (*) are not read: write the value where it belongs, or put it in quotes, as in "*"`},
		{"merge", "version: 1\n<<: {}", "p:2: merge keys (<<) are not read"},
		{"tag", "version: !!int 1", "tags (!) are not read"},
		{"directive", "%YAML 1.2\n---\nversion: 1", "directives (%) are not read"},
		{"key after ?", "? version\n: 1", "explicit keys (?) are not read"},
		{"two documents", "version: 1\n---\nversion: 1", "p:3: a second document"},
		{"key that is a list", "[a]: 1", "a key is one plain value"},
		{"no UTF-8", "version: 1 # \xff", "p:1: not valid UTF-8"},
		{"hidden", "version: 1\n# \u202e", "p:2: the hidden character U+202E"},
		{"carriage return alone", "version: 1\rmodules: {}", "the hidden character U+000D"},
		{"zero", "version: 1\x00", "the hidden character U+0000"},
		{"byte order mark", "\ufeffversion: 1", "the hidden character U+FEFF"},
		{"tab", "version: 1\nmodules:\n\tx.wasm: {}", "p:3: tabs cannot indent in YAML"},
		{"open quote", "version: \"1", "p:1: could not find end character"},
		{"brackets", deep("[", "]", 17), "p:2: nested deeper than 16 levels"},
		{"braces", deep("{a: ", "}", 17), "nested deeper"},
		{"more keys in one mapping than are parsed in time", "version: 1\n" + strings.Repeat("k: 1\n", 99_000), "more than 2000 keys in one mapping"},
		{"a hundred thousand brackets", deep("[", "", 100_000), "nested deeper"},
		{"dashes", "version: 1\nmodules:\n" + strings.Repeat("- ", 100_000), "nested deeper"},
		{"steps", steps(17), "nested deeper"},
		{"too large", "version: 1\n" + strings.Repeat("#\n", MaxPolicyBytes/2), "p:1: 1048587 bytes: at most 1048576"},
		{"too many pieces", "version: 1\nmodules: [" + strings.Repeat("1,", 200_000) + "]", "words and signs: at most 300000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Now()
			_, err := Parse("p", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// steps nests keys by indenting them.
func steps(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// As large and as deep as it may be, and no more.
func TestParseAtTheLimits(t *testing.T) {
	exact := "version: 1\n#" + strings.Repeat("x", MaxPolicyBytes-13) + "\n"
	if len(exact) != MaxPolicyBytes {
		t.Fatal(len(exact))
	}
	mustParse(t, exact)
	_, f := readYAML([]byte(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)))
	if f != nil {
		t.Errorf("%d brackets: %v", maxDepth, f)
	}
	if _, f := readYAML([]byte(steps(maxDepth) + strings.Repeat(" ", maxDepth) + "b")); f != nil {
		t.Errorf("%d steps: %v", maxDepth, f)
	}
}

func TestParseTellsAllFindings(t *testing.T) {
	text := "version: 1\nmodules:\n"
	for i := range 30 {
		text += fmt.Sprintf("  m%d.wasm: {foo: 1}\n", i)
	}
	_, err := Parse("p", []byte(text))
	var all *PolicyError
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	if len(all.Findings) != 20 || all.More != 10 || !strings.HasSuffix(err.Error(), "(and 29 more)") {
		t.Errorf("%d findings and %d more: %v", len(all.Findings), all.More, err)
	}
	for i, f := range all.Findings {
		if f.Line != 3+i || f.Key != fmt.Sprintf("modules.m%d.wasm.foo", i) {
			t.Errorf("finding %d: %+v", i, f)
		}
	}
	if strings.Contains(strings.Join(all.Lines(), ""), "\n") {
		t.Error("a finding has more than one line")
	}
}

// Lines are right where they are easily wrong.
func TestFindingsNameTheLine(t *testing.T) {
	for _, text := range []string{
		"version: 1\nmodules:\n  # one\n  # two\n\n  x.wasm:\n    foo: 1\n",
		"version: 1\r\nmodules:\r\n  # one\r\n  # two\r\n\r\n  x.wasm:\r\n    foo: 1\r\n",
		"version: 1\nmodules:\n  y.wasm:\n    config:\n      a: |\n        b\n      c: d\n  x.wasm: {foo: 1}\n",
	} {
		want := 1 + strings.Count(text[:strings.Index(text, "foo")], "\n")
		_, err := Parse("p", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("p:%d: modules.x.wasm.foo", want)) {
			t.Errorf("%q: got %v, want line %d", text, err, want)
		}
	}
}

// thousand is a policy of a thousand modules, each with a good deal to say.
func thousand() []byte {
	var b strings.Builder
	b.WriteString("version: 1\nmodules:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  m%d.wasm:\n    digest: sha256:%064x\n    definitions: sha256:%064x\n    prefix: m%d_\n    grant:\n      http:\n"+
			"        - {host: api%d.example.com, methods: [GET, POST], paths: [/repos/], ports: [443], max_response: 4MiB, rate: 60/min}\n"+
			"        - {host: nas.lan, allow_private: [192.168.1.7/32]}\n"+
			"      secrets: [{name: tok, header: Authorization, prefix: \"Bearer \", host: api%d.example.com}]\n"+
			"      kv: {max: 1MiB, ttl: 720h}\n      tracker: [tasks:read, \"steps:write@p\"]\n"+
			"    config: {base_url: https://api.example.com, api-key: secret://tok}\n    agents: [coder, reviewer]\n    limits: {timeout: 10s}\n", i, i, i, i, i, i)
	}
	return []byte(b.String())
}

func TestThousandModulesFit(t *testing.T) {
	text := thousand()
	if len(mustParse(t, string(text)).Modules()) != 1000 {
		t.Error("modules are missing")
	}
}

// BenchmarkReload is what a policy of a thousand modules takes from its text until
// it decides. At most 300 ms are asked for.
func BenchmarkReload(b *testing.B) {
	text := thousand()
	book := new(Book)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p, err := Parse("policy.yaml", text)
		if err != nil {
			b.Fatal(err)
		}
		book.Swap(p)
	}
}

// What a call may compute, and whether it starts anew, reaches a module's calls.
func TestFuelAndCheckpoint(t *testing.T) {
	const text = "version: 1\ndefaults: {limits: {fuel: 7e9}}\nmodules:\n" +
		"  a.wasm: {grant: {}, checkpoint: off}\n  b.wasm: {grant: {}, checkpoint: on, limits: {fuel: 5}}\n"
	p, err := Parse("p", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]abi.Limits{"a.wasm": {Fuel: 7e9, Fresh: true}, "b.wasm": {Fuel: 5}} {
		e, _ := p.Entry(name)
		if got := e.Limits.or(p.defaults.limits).Call; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
