package capability

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// grantOf reads the grant of x.wasm.
func grantOf(t *testing.T, grant string) Grant {
	t.Helper()
	e, _ := mustParse(t, granting(grant)).Entry("x.wasm")
	return e.Grant
}

func requestsOf(t *testing.T, asks map[string]string) Grant {
	t.Helper()
	raw := tool.Requests{}
	for kind, text := range asks {
		raw[kind] = json.RawMessage(text)
	}
	g, err := ParseRequests(raw)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOpenAndClosedRequests(t *testing.T) {
	g := requestsOf(t, map[string]string{
		"http": `[{"host":"a.test","reason":"one"},{"reason":"two"}]`, "secrets": `[{"reason":"three"}]`,
		"kv": `[{"reason":"four"}]`, "tool": `[{"name":"a","reason":"five"},{"reason":"six"}]`, "fs": `[{"reason":"seven"}]`,
	})
	if got, want := strings.Join(g.Closed().Lines(), "; "), "http GET, HEAD https://a.test; kv; tool a"; got != want {
		t.Errorf("closed: %s, want %s", got, want)
	}
	if got := strings.Join(g.Open(), " "); got != "http secrets tool fs" {
		t.Errorf("open: %s", got)
	}
	if got := strings.Join(g.Why(), " "); len(g.Why()) != len(g.Lines()) || got != "one two three four five six seven" {
		t.Errorf("reasons: %s", got)
	}
}

func TestPlusKeepsTheWider(t *testing.T) {
	for _, c := range []struct{ name, has, more, want string }{
		{"nothing before", "{}", "{http: [{host: a.test}], kv: {max: 1KiB}}", "http GET, HEAD https://a.test; kv, at most 1KiB"},
		{"covered by what is there", `{http: [{host: "*"}]}`, "{http: [{host: a.test, paths: [/x]}]}", "http GET, HEAD https://any public host"},
		{"in place of what it covers", "{http: [{host: a.test, methods: [GET]}, {host: b.test}]}", `{http: [{host: "*"}]}`, "http GET, HEAD https://any public host"},
		{"another method", "{http: [{host: a.test}]}", "{http: [{host: a.test, methods: [POST]}]}", "http GET, HEAD https://a.test; http POST https://a.test"},
		{"what is denied stays", "{http: [{host: a.test, approval: deny}]}", `{http: [{host: "*"}]}`, "http GET, HEAD https://a.test, denied; http GET, HEAD https://any public host"},
		{"what is asked stays", "{http: [{host: a.test, approval: ask}]}", `{http: [{host: "*"}]}`, "http GET, HEAD https://a.test, refused until allowed; http GET, HEAD https://any public host"},
		{"unless it is named", "{http: [{host: a.test, approval: ask}]}", "{http: [{host: a.test}]}", "http GET, HEAD https://a.test"},
		{"storage and names", "{kv: {max: 1MiB}, tracker: [\"tasks:read@p\"], fs: [{path: /a/b, mode: ro}]}",
			"{kv: {max: 1KiB}, tracker: [\"tasks:read\"], tool: [t], fs: [{path: /a, mode: rw}]}", "kv, at most 1KiB; tracker tasks:read; tool t; fs /a rw"},
		{"a secret put elsewhere", "{http: [{host: a.test}], secrets: [{name: n, header: X, host: a.test}]}",
			"{http: [{host: a.test}], secrets: [{name: n, header: X, prefix: P, host: a.test}]}", "http GET, HEAD https://a.test; secret n as header X to a.test"},
	} {
		has := grantOf(t, c.has)
		before := strings.Join(has.Lines(), "; ")
		got := has.Plus(grantOf(t, c.more))
		if text := strings.Join(got.Lines(), "; "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
		if now := strings.Join(has.Lines(), "; "); now != before {
			t.Errorf("%s: the operand was %s and is %s", c.name, before, now)
		}
		if _, err := SetGrant("p", nil, "x.wasm", Binding{Digest: digestA}, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWithoutAndOnly(t *testing.T) {
	g := grantOf(t, "{http: [{host: a.test}], secrets: [{name: n, header: X, host: a.test}], kv: {}, tool: [t]}")
	for _, c := range []struct {
		change func(...string) (Grant, error)
		kinds  []string
		want   string
	}{
		{g.Without, []string{"kv"}, "http secrets tool"},
		{g.Without, []string{"http"}, "kv tool"},
		{g.Without, []string{"tool", "secrets"}, "http kv"},
		{g.Only, []string{"kv", "tool"}, "kv tool"},
		{g.Only, nil, ""},
	} {
		got, err := c.change(c.kinds...)
		if err != nil || strings.Join(got.Kinds(), " ") != c.want {
			t.Errorf("%v: %v, %v, want %s", c.kinds, got.Kinds(), err, c.want)
		}
		if _, err := c.change("htpp"); err == nil || !strings.Contains(err.Error(), "there are http, secrets") {
			t.Errorf("an unknown kind: %v", err)
		}
	}
}

// No grant counts without a request, so what would never count is told.
func TestUnasked(t *testing.T) {
	asks := requestsOf(t, map[string]string{"http": `[{"host":"a.test"},{"host":"*.b.test","methods":["POST"]}]`, "tool": `["t"]`,
		"secrets": `[{"name":"n","header":"X","host":"a.test"}]`})
	granted := grantOf(t, `{http: [{host: a.test}, {host: c.test}, {host: x.b.test}, {host: "*", methods: [POST]}],
      secrets: [{name: n, header: X, host: a.test}, {name: n, header: X, host: c.test}, {name: m, header: Y, host: a.test}], kv: {}, tool: [t, u], tracker: ["tasks:read"], fs: [{path: /a, mode: ro}]}`)
	want := []string{"http GET, HEAD https://c.test", "http GET, HEAD https://x.b.test", "secret n as header X to c.test",
		"secret m as header Y to a.test", "kv", "tracker tasks:read", "tool u", "fs /a ro"}
	limited := requestsOf(t, map[string]string{"http": `[{"methods":["GET"]},{"host":"a.test","methods":["PUT","DELETE"]},{"reason":"x","methods":["HEAD"]}]`})
	if got := limited.Unasked(grantOf(t, `{http: [{host: a.test}, {host: a.test, methods: [POST]}, {host: b.test, methods: [PUT]}]}`)); !slices.Equal(got, []string{"http POST https://a.test", "http PUT https://b.test"}) {
		t.Errorf("with methods: %q", got)
	}
	for host, want := range map[string]string{"a.test": "GET HEAD PUT DELETE", "b.test": "GET HEAD"} {
		if got := strings.Join(limited.Methods(HTTPRule{Host: host}), " "); got != want {
			t.Errorf("methods for %s: %s, want %s", host, got, want)
		}
	}
	if got := asks.Unasked(granted); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	open := requestsOf(t, map[string]string{"http": `[{}]`, "tool": `[{}]`, "secrets": `[{}]`, "kv": `[{}]`, "tracker": `[{}]`, "fs": `[{}]`})
	if got := open.Unasked(granted); got != nil {
		t.Errorf("of a module that leaves everything open: %q", got)
	}
}

func TestSetConfig(t *testing.T) {
	const text = "version: 1\nmodules:\n  x.wasm:\n    config:\n      a: one   # first\n      # second\n      b: two\n    # behind\n    agents: [c]\n"
	for _, c := range []struct {
		name   string
		config map[string]string
		before string
		want   string
	}{
		{"one changed, one new", map[string]string{"a": "1 # x", "b": "two", "c": ""}, text,
			"version: 1\nmodules:\n  x.wasm:\n    config:\n      a: \"1 # x\"  # first\n      # second\n      b: two\n      c: \"\"\n    # behind\n    agents: [c]\n"},
		{"one gone", map[string]string{"a": "one"}, text,
			"version: 1\nmodules:\n  x.wasm:\n    config:\n      a: one   # first\n      # second\n    # behind\n    agents: [c]\n"},
		{"all gone", nil, text, "version: 1\nmodules:\n  x.wasm:\n    # behind\n    agents: [c]\n"},
		{"others instead", map[string]string{"secret://x": "é\n"}, text,
			"version: 1\nmodules:\n  x.wasm:\n    config:\n      # second\n      \"secret://x\": \"é\\n\"\n    # behind\n    agents: [c]\n"},
		{"in braces", map[string]string{"a": "two"}, "version: 1\nmodules:\n  x.wasm:\n    config: {a: one}\n",
			"version: 1\nmodules:\n  x.wasm:\n    config:\n      a: two\n"},
		{"nothing there", map[string]string{"k": "v"}, "", "version: 1\nmodules:\n  x.wasm:\n    config:\n      k: v\n"},
		{"nothing wanted", nil, "", ""},
		{"the same", map[string]string{"a": "one", "b": "two"}, text, text},
	} {
		got, err := SetConfig("p", []byte(c.before), "x.wasm", c.config)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
	if _, err := SetConfig("p", []byte(granting("{}")), "x.wasm", map[string]string{"k": "secret://n"}); err == nil || !strings.Contains(err.Error(), "grant.secrets") {
		t.Errorf("a placeholder of a secret that is not granted: %v", err)
	}
}
