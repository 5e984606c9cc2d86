package capability

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// asking requests http of a.test, kv and a secret.
func asking() tool.Module {
	return module(map[string]string{"http": `[{"host":"a.test","reason":"r"}]`, "kv": `{}`})
}

const undecided = "asks for http a.test, kv: not decided: run hutch tools grant x.wasm"

func TestDecide(t *testing.T) {
	bound := "digest: sha256:" + digestA + "\n    definitions: sha256:" + defsA + "\n    "
	grant := "grant: {http: [{host: a.test}]}"
	changed := ": look with hutch tools diff x.wasm, then: run hutch tools approve x.wasm"
	for _, c := range []struct {
		name, entry string
		m           tool.Module
		want        tool.Decision
	}{
		{"asks for nothing", "", module(nil), tool.Decision{Status: tool.Ready}},
		{"asks for an empty list", "", module(map[string]string{"http": `[]`}), tool.Decision{Status: tool.Ready}},
		{"undecided", "", asking(), tool.Decision{Status: tool.Held, Reason: undecided}},
		{"settings are no decision", "agents: [coder]", asking(), tool.Decision{Status: tool.Held, Reason: undecided}},
		{"a digest is no decision", "digest: sha256:" + digestA, asking(), tool.Decision{Status: tool.Held, Reason: undecided}},
		{"granted", bound + grant, asking(), tool.Decision{Status: tool.Ready}},
		{"granted nothing", bound + "grant: {}", asking(), tool.Decision{Status: tool.Ready}},
		{"granted to bytes alone", "digest: sha256:" + digestA + "\n    " + grant, asking(), tool.Decision{Status: tool.Ready}},
		{"granted to nobody", grant, asking(), tool.Decision{Status: tool.Held,
			Reason: "the grant names no digest, so it counts for nothing: run hutch tools approve x.wasm"}},
		{"granted to other bytes", strings.Replace(bound, digestA, digestB, 1) + grant, asking(), tool.Decision{Status: tool.Held,
			Reason: "the file changed since it was decided about" + changed}},
		{"granted to other definitions", strings.Replace(bound, defsA, defsB, 1) + grant, asking(), tool.Decision{Status: tool.Held,
			Reason: "what its tools say changed since it was decided about" + changed}},
		{"pinned to other bytes, asks for nothing", "digest: sha256:" + digestB, module(nil), tool.Decision{Status: tool.Held,
			Reason: "the file changed since it was decided about" + changed}},
		{"signature", bound + grant + "\n    signature: ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", asking(), tool.Decision{Status: tool.Held,
			Reason: "the policy wants a signature by ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=: nothing here can check it: have it signed, or take signature from x.wasm in the policy"}},
		{"for other agents", bound + grant + "\n    agents: [reviewer, writer]", asking(), tool.Decision{Status: tool.Held,
			Reason: `for the agents reviewer, writer alone: add "coder" to agents in the policy`}},
		{"for this agent", bound + grant + "\n    agents: [reviewer, coder]", asking(), tool.Decision{Status: tool.Ready}},
		{"denied", bound + grant + "\n    tools: {t: {approval: deny}}", asking(), tool.Decision{Status: tool.Held,
			Reason: "is denied by the policy: only the operator can allow it, with approval: allow for this tool", Told: true}},
		{"denied, for other agents", bound + grant + "\n    agents: [reviewer]\n    tools: {t: {approval: deny}}", asking(), tool.Decision{Status: tool.Held,
			Reason: `for the agents reviewer alone: add "coder" to agents in the policy`}},
		{"denied and changed", strings.Replace(bound, digestA, digestB, 1) + grant + "\n    tools: {t: {approval: deny}}", asking(), tool.Decision{Status: tool.Held,
			Reason: "the file changed since it was decided about" + changed}},
		{"asked for", bound + grant + "\n    tools: {t: {approval: ask}}", asking(), tool.Decision{Status: tool.Held,
			Reason: "waits for a person before each call, as the policy says, and nobody can be asked here: ask for it with \"hutch chat\" or at /agui, or the operator allows it, with approval: allow for this tool", Told: true, Ask: true}},
		{"another tool is denied", bound + grant + "\n    tools: {u: {approval: deny}}", asking(), tool.Decision{Status: tool.Ready}},
		{"unknown capability", bound + grant, module(map[string]string{"telepathy": `{}`, "a\nb\u202e": `{}`}), tool.Decision{Status: tool.Rejected,
			Reason: `asks for "a\nb\u202e", "telepathy": known capabilities are http, secrets, kv, tracker, conversation, bridge, tool, fs`}},
		{"broken request", bound + grant, module(map[string]string{"http": `{}`}), tool.Decision{Status: tool.Rejected,
			Reason: "http: found keys and values: a list is wanted here"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "version: 1\n"
			if c.entry != "" {
				text += "modules:\n  x.wasm:\n    " + c.entry
			}
			b := NewBook(Options{Policy: mustParse(t, text)})
			got := b.Decide(local, c.m, tool.Spec{Name: "t"})
			if got != c.want {
				t.Errorf("\ngot  %+v\nwant %+v", got, c.want)
			}
			_, kv := b.Effective(local, c.m, "t").KV()
			_, refused := b.Effective(local, c.m, "t").HTTP("GET", at(t, "https://a.test/"))
			if got.Status != tool.Ready && (kv || refused == nil) {
				t.Errorf("not ready, and the call may do something")
			}
			if got.Status != tool.Ready && !strings.HasSuffix(refused.Text, got.Reason) {
				t.Errorf("refused with %q", refused.Text)
			}
		})
	}
}

func TestNobodyInParticularSeesThroughAgents(t *testing.T) {
	b := NewBook(Options{Policy: mustParse(t, "version: 1\nmodules: {x.wasm: {agents: [coder]}}")})
	for _, c := range []struct {
		caller tool.Caller
		want   tool.Status
	}{
		{tool.Caller{}, tool.Ready}, {tool.Caller{Agent: "coder"}, tool.Ready},
		{tool.Caller{Principal: "local"}, tool.Held}, {tool.Caller{Face: "mcp"}, tool.Held}, {tool.Caller{Agent: "Coder"}, tool.Held},
	} {
		if d := b.Decide(c.caller, module(nil), tool.Spec{Name: "t"}); d.Status != c.want {
			t.Errorf("%+v: %+v", c.caller, d)
		}
	}
}

func TestPrefixedToolsAreFoundByTheirOwnNames(t *testing.T) {
	b := NewBook(Options{Policy: mustParse(t, "version: 1\nmodules: {x.wasm: {prefix: gh_, tools: {t: {approval: deny}}}}")})
	m := module(nil)
	if m.Prefix = b.Prefix(m); m.Prefix != "gh_" {
		t.Errorf("the prefix is %q", m.Prefix)
	}
	if d := b.Decide(local, m, tool.Spec{Name: "gh_t"}); d.Status != tool.Held {
		t.Errorf("gh_t: %+v", d)
	}
	if d := b.Decide(local, m, tool.Spec{Name: "gh_u"}); d.Status != tool.Ready {
		t.Errorf("gh_u: %+v", d)
	}
	// Between a change of the policy and the list that follows, names are those of before.
	b.Swap(mustParse(t, "version: 1\nmodules: {x.wasm: {prefix: other_, tools: {t: {approval: deny}}}}"))
	if d := b.Decide(local, m, tool.Spec{Name: "gh_t"}); d.Status != tool.Held {
		t.Errorf("gh_t under another prefix: %+v", d)
	}
}

// Who can ask a person may use a tool that waits for one; whatever else the policy says
// comes before that.
func TestCallersThatAsk(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		asks         bool
		want         tool.Status
		ask          bool
	}{
		{"ask", "{x.wasm: {tools: {t: {approval: ask}}}}", true, tool.Ready, true},
		{"ask, and nobody can", "{x.wasm: {tools: {t: {approval: ask}}}}", false, tool.Held, true},
		{"allow", "{x.wasm: {tools: {t: {approval: allow}}}}", true, tool.Ready, false},
		{"deny", "{x.wasm: {tools: {t: {approval: deny}}}}", true, tool.Held, false},
		{"for others", "{x.wasm: {agents: [other], tools: {t: {approval: ask}}}}", true, tool.Held, false},
	} {
		b := NewBook(Options{Policy: mustParse(t, "version: 1\nmodules: "+c.policy)})
		caller := tool.Caller{Principal: "local", Agent: "coder", Asks: c.asks}
		d := b.Decide(caller, module(nil), tool.Spec{Name: "t"})
		if d.Status != c.want || d.Ask != c.ask {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestDefaultApproval(t *testing.T) {
	b := NewBook(Options{Policy: mustParse(t, "version: 1\ndefaults: {approval: deny}\nmodules: {x.wasm: {tools: {t: {approval: allow}}}}")})
	for name, want := range map[string]tool.Status{"t": tool.Ready, "u": tool.Held} {
		if d := b.Decide(local, module(nil), tool.Spec{Name: name}); d.Status != want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheZeroBookGrantsNothing(t *testing.T) {
	var b Book
	if d := b.Decide(local, asking(), tool.Spec{}); d.Status != tool.Held || d.Reason != undecided {
		t.Errorf("%+v", d)
	}
	if d := b.Decide(local, module(nil), tool.Spec{}); d.Status != tool.Ready {
		t.Errorf("%+v", d)
	}
	b.Swap(mustParse(t, granting("{kv: {}}")))
	if d := b.Decide(local, asking(), tool.Spec{}); d.Status != tool.Ready {
		t.Errorf("after Swap: %+v", d)
	}
	b.Swap(nil)
	if d := b.Decide(local, asking(), tool.Spec{}); d.Status != tool.Held {
		t.Errorf("after taking the policy away: %+v", d)
	}
}

func TestDevelopmentIgnoresDigestsAndGivesNoSecrets(t *testing.T) {
	text := "version: 1\nmodules:\n  x.wasm:\n    digest: sha256:" + digestB + "\n    grant: {http: [{host: a.test}], secrets: [{name: k, header: A, host: a.test}]}\n" +
		"    config: {key: secret://k, base: b, lang: RU}\n"
	m := asking()
	m.Requests["secrets"] = json.RawMessage(`[{"name":"k","header":"A","host":"a.test"}]`)
	dev := NewBook(Options{Policy: mustParse(t, text), Dev: true})
	if d := dev.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Ready {
		t.Fatalf("%+v", d)
	}
	e := dev.Effective(local, m, "t")
	if _, refused := e.HTTP("GET", at(t, "https://a.test/")); refused != nil {
		t.Error(refused)
	}
	if s := e.Secrets(); s != nil {
		t.Errorf("secrets: %v", s)
	}
	if l := dev.Language(m); l != "ru" {
		t.Errorf("language: %q", l)
	}
	if c := e.Config(); len(c) != 2 || c["base"] != "b" {
		t.Errorf("config: %v", c)
	}
	if d := NewBook(Options{Policy: mustParse(t, text)}).Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Held {
		t.Errorf("without it: %+v", d)
	}
	if d := NewBook(Options{Dev: true}).Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Held {
		t.Errorf("undecided: %+v", d)
	}
}

func TestShippedPolicyIsBoundToShippedDigests(t *testing.T) {
	shipped := "version: 1\nmodules: {x.wasm: {grant: {kv: {}}, config: {a: b}, limits: {timeout: 5s}}}"
	o := Options{Shipped: mustParse(t, shipped), ShippedDigests: map[string]string{"x.wasm": digestA}}
	m := asking()
	m.Shipped = true
	for _, c := range []struct {
		name   string
		policy string
		change func(m *tool.Module)
		want   tool.Status
		kv     bool
	}{
		{"as shipped", "version: 1", func(*tool.Module) {}, tool.Ready, true},
		{"other bytes", "version: 1", func(m *tool.Module) { m.Digest = digestB }, tool.Held, false},
		{"no bytes", "version: 1", func(m *tool.Module) { m.Digest = "" }, tool.Held, false},
		{"the same bytes in a folder", "version: 1", func(m *tool.Module) { m.Shipped = false }, tool.Held, false},
		{"under another name", "version: 1", func(m *tool.Module) { m.Name = "y.wasm" }, tool.Held, false},
		{"with settings of the operator", "version: 1\nmodules: {x.wasm: {agents: [coder]}}", func(*tool.Module) {}, tool.Ready, true},
		{"with settings that keep it away", "version: 1\nmodules: {x.wasm: {agents: [writer]}}", func(*tool.Module) {}, tool.Held, false},
		{"granted nothing by the operator", "version: 1\nmodules: {x.wasm: {digest: 'sha256:" + digestA + "', grant: {}}}", func(*tool.Module) {}, tool.Ready, false},
		{"pinned by the operator", "version: 1\nmodules: {x.wasm: {digest: 'sha256:" + digestB + "'}}", func(*tool.Module) {}, tool.Held, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			o.Policy = mustParse(t, c.policy)
			b, m := NewBook(o), m
			c.change(&m)
			if d := b.Decide(local, m, tool.Spec{Name: "t"}); d.Status != c.want {
				t.Errorf("%+v", d)
			}
			if _, kv := b.Effective(local, m, "t").KV(); kv != c.kv {
				t.Errorf("kv is %t", kv)
			}
		})
	}
	other := m
	other.Digest = digestB
	if d := NewBook(o).Decide(local, other, tool.Spec{Name: "t"}); d.Reason != undecided {
		t.Errorf("nobody decided about other bytes: %+v", d)
	}
	without := NewBook(Options{Shipped: o.Shipped})
	if d := without.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Held {
		t.Errorf("without digests: %+v", d)
	}
}

func TestDecideKeepsReasonsShort(t *testing.T) {
	r, hosts := tool.Requests{}, []string{}
	for i := range maxItems {
		r[fmt.Sprintf("%s%03d", strings.Repeat("x", 1000), i)] = nil
		hosts = append(hosts, fmt.Sprintf(`{"host":"%s%d.test"}`, strings.Repeat("h", 50), i))
	}
	var b Book
	d := b.Decide(local, tool.Module{Requests: r}, tool.Spec{})
	if d.Status != tool.Rejected || len(d.Reason) > 500 || !strings.Contains(d.Reason, "251 more") {
		t.Errorf("Decide = %s, %d bytes: %s", d.Status, len(d.Reason), d.Reason)
	}
	d = b.Decide(local, module(map[string]string{"http": "[" + strings.Join(hosts, ",") + "]"}), tool.Spec{})
	if d.Status != tool.Held || len(d.Reason) > 500 || !strings.Contains(d.Reason, "253 more") {
		t.Errorf("Decide = %s, %d bytes: %s", d.Status, len(d.Reason), d.Reason)
	}
}

func TestCommandsQuoteNames(t *testing.T) {
	m := asking()
	m.Name = "a b'c$(x).wasm"
	var b Book
	if d := b.Decide(local, m, tool.Spec{}); !strings.HasSuffix(d.Reason, `run hutch tools grant 'a b'\''c$(x).wasm'`) {
		t.Errorf("%s", d.Reason)
	}
}

// Every gated operation asks for something that a policy can name.
func TestEveryOperationHasAKnownCapability(t *testing.T) {
	var b Book
	for _, op := range []abi.Op{abi.OpHTTP, abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete, abi.OpTracker,
		abi.OpConversation, abi.OpMCP, abi.OpA2A, abi.OpTool} {
		d := b.Decide(local, module(map[string]string{op.Capability(): `[{"reason":"imports it"}]`}), tool.Spec{})
		if d.Status != tool.Held {
			t.Errorf("%s asks for %q: %+v", op, op.Capability(), d)
		}
	}
}

// A call sees one policy from its beginning to its end, and many may decide while
// policies and pins are replaced.
func TestSwapsRaceDecisions(t *testing.T) {
	with, without := mustParse(t, granting("{kv: {}, http: [{host: a.test}]}")), mustParse(t, granting("{}"))
	b := NewBook(Options{Policy: with})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 500 {
				e := b.Effective(local, asking(), "t")
				_, kv := e.KV()
				if _, refused := e.HTTP("GET", at(t, "https://a.test/")); kv != (refused == nil) {
					t.Error("half of one policy and half of another")
					return
				}
			}
		})
	}
	wait.Go(func() {
		for range 200 {
			b.Swap(without)
			b.SetPins(map[string]Pin{"x.wasm": {Digest: digestA}})
			b.Swap(with)
		}
	})
	wait.Wait()
}

func TestRequestCacheIsBounded(t *testing.T) {
	var c requestCache
	m := asking()
	for i := range maxKept + 10 {
		m.Digest = fmt.Sprintf("%064x", i)
		if _, err := c.of(m); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.kept) > maxKept {
		t.Errorf("%d kept", len(c.kept))
	}
	// The same bytes with other definitions ask for something else.
	other := m
	other.Definitions, other.Requests = defsB, tool.Requests{"fs": json.RawMessage(`[{"reason":"r"}]`)}
	if g, err := c.of(other); err != nil || len(g.FS) != 1 || len(g.HTTP) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestF07_WideningIsHeld(t *testing.T) {
	old := Pin{Digest: digestA, Definitions: defsA, Requests: Grant{HTTP: []HTTPRule{{Host: "a.test"}}}}
	for _, c := range []struct {
		name string
		next Grant
		want string
	}{
		{"the same", old.Requests, ""},
		{"less", Grant{}, ""},
		{"fewer paths", Grant{HTTP: []HTTPRule{{Host: "a.test", Paths: []string{"/x/"}}}}, ""},
		{"one host more", Grant{HTTP: []HTTPRule{{Host: "a.test"}, {Host: "b.test"}}}, "also asks for http GET, HEAD https://b.test"},
		{"one method more", Grant{HTTP: []HTTPRule{{Host: "a.test", Methods: []string{"GET", "POST"}}}}, "also asks for http GET, POST https://a.test"},
		{"another kind", Grant{KV: &KVRule{}}, "also asks for kv"},
		{"anything", Grant{HTTP: []HTTPRule{{}}}, "also asks for http (whatever is granted)"},
	} {
		changes := old.Changes(Pin{Digest: digestB, Definitions: defsA, Requests: c.next})
		if got := textOf(changes); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func textOf(changes []Change) string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "; ")
}

func TestF08_OtherDefinitionsAreHeld(t *testing.T) {
	b := NewBook(Options{})
	b.SetPins(map[string]Pin{"x.wasm": {Digest: digestA, Definitions: defsA}})
	for _, c := range []struct {
		name, digest, defs string
		want               tool.Status
	}{
		{"the same", digestA, defsA, tool.Ready},
		{"new bytes that say the same", digestB, defsA, tool.Ready},
		{"new bytes that say something else", digestB, defsB, tool.Held},
		{"the same bytes from another server", digestA, defsB, tool.Held},
		{"not known what they say", digestB, "", tool.Held},
	} {
		m := module(nil)
		m.Digest, m.Definitions = c.digest, c.defs
		d := b.Decide(local, m, tool.Spec{Name: "t"})
		if d.Status != c.want || d.Status == tool.Held && d.Reason !=
			"its tools are described differently: look with hutch tools diff x.wasm, then: run hutch tools approve x.wasm" {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	m := module(nil)
	m.Digest, m.Definitions = digestB, defsB
	b.Swap(mustParse(t, "version: 1\nmodules: {x.wasm: {digest: 'sha256:"+digestB+"', definitions: 'sha256:"+defsB+"'}}"))
	if d := b.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Ready {
		t.Errorf("approved: %+v", d)
	}
}

func TestF09_DowngradesAreHeld(t *testing.T) {
	digestC := strings.Repeat("c", 64)
	now := Pin{Digest: digestB, Definitions: defsA, Version: "1.10.0", Before: []string{digestA}}
	for _, c := range []struct{ digest, version, want string }{
		{digestB, "1.0.0", ""}, // the bytes that serve
		{digestA, "1.10.0", "these bytes served before and were replaced"},
		{digestA, "", "these bytes served before and were replaced"},
		{digestC, "1.9.9", `version "1.9.9" comes after "1.10.0"`},
		{digestC, "v1.9", `version "v1.9" comes after "1.10.0"`},
		{digestC, "1.10.0-rc.1", `version "1.10.0-rc.1" comes after "1.10.0"`},
		{digestC, "1.10.0", ""}, {digestC, "1.10", ""}, {digestC, "2.0", ""}, {digestC, "v1.11.0", ""}, {digestC, "1.10.1-rc.1", ""},
		{digestC, "", ""}, {digestC, "unknown", ""},
	} {
		got := textOf(now.Changes(Pin{Digest: c.digest, Definitions: defsA, Version: c.version}))
		if got != c.want {
			t.Errorf("%.3s %s: got %q, want %q", c.digest, c.version, got, c.want)
		}
	}
	if got := (Pin{}).Changes(now); got != nil {
		t.Errorf("the first version of all: %v", got)
	}
	b := NewBook(Options{})
	b.SetPins(map[string]Pin{"x.wasm": now})
	if d := b.Decide(local, module(nil), tool.Spec{}); d.Status != tool.Held || !strings.HasPrefix(d.Reason, "these bytes served before") {
		t.Errorf("%+v", d)
	}
}

// BenchmarkHTTP is what one request costs in a gate: at most 3 us are asked for.
func BenchmarkHTTP(b *testing.B) {
	book := NewBook(Options{Policy: mustParse(b, granting(`{http: [{host: b.test}, {host: a.test, paths: [/repos/]}]}`))})
	e := book.Effective(local, module(map[string]string{"http": `[{"host":"a.test"}]`}), "t")
	u, err := url.Parse("https://a.test/repos/x")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := e.HTTP("GET", u); refused != nil {
			b.Fatal(refused)
		}
	}
}

// BenchmarkDecide is asked once for each tool of each list.
func BenchmarkDecide(b *testing.B) {
	book := NewBook(Options{Policy: mustParse(b, granting(`{http: [{host: a.test}]}`))})
	m := asking()
	b.ReportAllocs()
	for b.Loop() {
		if d := book.Decide(local, m, tool.Spec{Name: "t"}); d.Status != tool.Ready {
			b.Fatal(d)
		}
	}
}
