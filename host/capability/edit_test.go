package capability

import (
	"errors"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// commented is a policy that somebody cares for.
const commented = `# ours
version: 1   # the only one

modules:
  # looked at by two of us
  a.wasm:    # A
    digest: sha256:DIGEST # as of May
    prefix: a_
    # what it may do
    grant:
      http:
        # the API
        - {host: a.test, methods: [GET]}  # reading
        # the files
        - host: b.test
          methods: [GET]   # only that
          # not more

      kv: {max: 1MiB}   # enough
    # who
    agents: [coder]

  # the other one
  b.wasm:
    grant: {kv: {}}
# the end
`

func commentedText() string { return strings.ReplaceAll(commented, "DIGEST", digestA) }

func TestEditsKeepEverythingElse(t *testing.T) {
	text := commentedText()
	a, _ := mustParse(t, text).Entry("a.wasm")
	b := Binding{digestB, defsB}
	for _, c := range []struct {
		name string
		edit func() ([]byte, error)
		// cut and add are what the difference is, line by line.
		cut, add string
	}{
		{"approve", func() ([]byte, error) { return Approve("p", []byte(text), "a.wasm", b) },
			"    digest: sha256:" + digestA + " # as of May\n",
			"    digest: sha256:" + digestB + "  # as of May\n    definitions: sha256:" + defsB + "\n"},
		{"approve what has no digest", func() ([]byte, error) { return Approve("p", []byte(text), "b.wasm", b) }, "",
			"    digest: sha256:" + digestB + "\n    definitions: sha256:" + defsB + "\n"},
		{"approve what is not there", func() ([]byte, error) { return Approve("p", []byte(text), "c.wasm", Binding{Digest: digestB}) }, "",
			"  c.wasm:\n    digest: sha256:" + digestB + "\n"},
		{"grant the same", func() ([]byte, error) {
			return SetGrant("p", []byte(text), "a.wasm", Binding{Digest: digestA}, a.Grant)
		},
			"    digest: sha256:" + digestA + " # as of May\n", "    digest: sha256:" + digestA + "  # as of May\n"},
		{"one rule more", func() ([]byte, error) {
			g := a.Grant
			g.HTTP = append(g.HTTP[:2:2], HTTPRule{Host: "c.test", Ports: []int{8443}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
			return SetGrant("p", []byte(text), "a.wasm", b, g)
		}, "    digest: sha256:" + digestA + " # as of May\n",
			"    digest: sha256:" + digestB + "  # as of May\n    definitions: sha256:" + defsB + "\n" +
				"        - {host: c.test, ports: [8443], allow_private: [\"10.0.0.0/8\"]}\n"},
		{"one rule less", func() ([]byte, error) {
			g := a.Grant
			g.HTTP = g.HTTP[:1]
			return SetGrant("p", []byte(text), "a.wasm", Binding{Digest: digestA}, g)
		}, "    digest: sha256:" + digestA + " # as of May\n        - host: b.test\n          methods: [GET]   # only that\n          # not more\n",
			"    digest: sha256:" + digestA + "  # as of May\n"},
		{"another kind, one changed, one gone", func() ([]byte, error) {
			return SetGrant("p", []byte(text), "a.wasm", Binding{Digest: digestA}, Grant{HTTP: a.Grant.HTTP, Tracker: []string{"tasks:read"}})
		}, "    digest: sha256:" + digestA + " # as of May\n      kv: {max: 1MiB}   # enough\n",
			"    digest: sha256:" + digestA + "  # as of May\n      tracker: [\"tasks:read\"]\n"},
		{"revoke one kind", func() ([]byte, error) { return Revoke("p", []byte(text), "a.wasm", "kv") },
			"    digest: sha256:" + digestA + " # as of May\n      kv: {max: 1MiB}   # enough\n", "    digest: sha256:" + digestA + "  # as of May\n"},
		{"revoke all of b", func() ([]byte, error) { return Revoke("p", []byte(text), "b.wasm") }, "  b.wasm:\n    grant: {kv: {}}\n", ""},
		{"a module that is not there", func() ([]byte, error) {
			return SetGrant("p", []byte(text), "c.wasm", Binding{Digest: digestB}, Grant{KV: &KVRule{Max: 1 << 20, TTL: 720 * time.Hour}})
		}, "", "  c.wasm:\n    digest: sha256:" + digestB + "\n    grant:\n      kv: {max: 1MiB, ttl: 720h}\n"},
		{"a name that has to be quoted", func() ([]byte, error) {
			return SetGrant("p", []byte(text), "a: b.wasm", Binding{Digest: digestB}, Grant{})
		}, "", "  \"a: b.wasm\":\n    digest: sha256:" + digestB + "\n    grant: {}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, newline := range []string{"\n", "\r\n"} {
				before := text
				text = strings.ReplaceAll(text, "\n", newline)
				out, err := c.edit()
				text = before
				if err != nil {
					t.Fatal(err)
				}
				if strings.Count(string(out), newline) != strings.Count(string(out), "\n") {
					t.Error("ends of lines are mixed")
				}
				cut, add := lineDiff(text, strings.ReplaceAll(string(out), "\r\n", "\n"))
				if cut != c.cut || add != c.add {
					t.Errorf("cut\n%swant\n%sadded\n%swant\n%sin\n%s", cut, c.cut, add, c.add, out)
				}
			}
		})
	}
}

// lineDiff returns the lines that are only in a, and only in b. Lines that both
// have stand in the same order in both, or they are told too.
func lineDiff(a, b string) (cut, added string) {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(x) > 0 && len(y) > 0 && x[0] == y[0]:
			x, y = x[1:], y[1:]
		case len(x) > 0 && !slices.Contains(y, x[0]):
			cut, x = cut+x[0], x[1:]
		default:
			added, y = added+y[0], y[1:]
		}
	}
	return cut, added
}

func TestEditsWriteANewPolicy(t *testing.T) {
	g := Grant{HTTP: []HTTPRule{{Host: "a.test", Methods: []string{"GET"}}}}
	want := Render("x.wasm", Binding{digestA, defsA}, g)
	for _, text := range []string{"", "version: 1\n", "version: 1\nmodules:\n", "version: 1\nmodules: {}\n", "version: 1\nmodules:", "version: 1\nmodules:\n\n\n"} {
		out, err := SetGrant("p", []byte(text), "x.wasm", Binding{digestA, defsA}, g)
		if err != nil || strings.Join(strings.Fields(string(out)), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q: %v\n%s", text, err, out)
		}
	}
	const wantText = `version: 1
modules:
  x.wasm:
    digest: sha256:` + "DIGEST" + `
    definitions: sha256:` + "DEFS" + `
    grant:
      http:
        - {host: a.test, methods: [GET]}
`
	if got := strings.NewReplacer(digestA, "DIGEST", defsA, "DEFS").Replace(want); got != wantText {
		t.Errorf("the smallest policy:\n%s", got)
	}
}

func TestEditsThatCannotBe(t *testing.T) {
	g := Grant{KV: &KVRule{}}
	b := Binding{Digest: digestA}
	set := func(text, module string, g Grant) error {
		_, err := SetGrant("p", []byte(text), module, b, g)
		return err
	}
	revoke := func(text string, kinds ...string) error {
		_, err := Revoke("p", []byte(text), "x.wasm", kinds...)
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a broken policy", set("version: 2", "x.wasm", g), `p:1: version: found "2"`},
		{"a folder", set("", "a/x.wasm", g), "a module is named by its file"},
		{"open http", set("", "x.wasm", Grant{HTTP: []HTTPRule{{}}}), "the module does not say what it asks for"},
		{"open names", set("", "x.wasm", Grant{Tracker: []string{"*"}}), "the module does not say what it asks for"},
		{"a private host", set("", "x.wasm", Grant{HTTP: []HTTPRule{{Host: "10.0.0.1"}}}), "can never match: it is not public"},
		{"a secret without http", set("", "x.wasm", Grant{Secrets: []SecretRule{{Name: "k", Header: "A", Host: "a.test"}}}), "can never be sent"},
		{"the policy in braces", set("{version: 1}", "x.wasm", g), "p:1: the policy is written in braces"},
		{"modules in braces", set("version: 1\nmodules: {y.wasm: {agents: [a]}}", "x.wasm", g), "p:2: modules is written in braces"},
		{"the module in braces", set("version: 1\nmodules:\n  x.wasm: {agents: [a]}", "x.wasm", g), "p:3: modules.x.wasm is written in braces"},
		{"behind the end", set("version: 1\nmodules:\n  y.wasm:\n    agents: [a]\n...\n", "x.wasm", g), "p"},
		{"unknown kind", revoke("version: 1", "gpio"), `"gpio": no such kind of grant`},
		{"nothing granted", revoke("version: 1", "kv"), `"x.wasm": nothing is granted to it`},
		{"a narrowed tool left over", revoke(granting("{kv: {}, tool: [a]}")+"    tools: {t: {grant: {tool: [a]}}}\n", "tool"), "tools.t.grant.tool: can never match"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, c.err, c.want)
		}
	}
}

func TestRevoke(t *testing.T) {
	text := granting("{http: [{host: a.test}], secrets: [{name: k, header: A, host: a.test}], kv: {}}")
	out, err := Revoke("p", []byte(text), "x.wasm", "http")
	e, _ := mustParse(t, string(out)).Entry("x.wasm")
	if err != nil || !reflect.DeepEqual(e.Grant.Kinds(), []string{"kv"}) || e.Digest != digestA {
		t.Errorf("http takes secrets with it: %v\n%s", err, out)
	}
	out, err = Revoke("p", []byte(text+"    config: {a: secret://k}\n    tools: {t: {grant: {http: [{host: a.test}]}}}\n"), "x.wasm")
	e, ok := mustParse(t, string(out)).Entry("x.wasm")
	if err != nil || !ok || e.Decided || e.Digest != "" || len(e.Config) != 1 || len(e.Tools) != 1 {
		t.Errorf("settings stay: %v\n%s", err, out)
	}
	if d := NewBook(Options{Policy: mustParse(t, string(out))}).Decide(local, asking(), toolT); d.Reason != undecided {
		t.Errorf("held again: %+v", d)
	}
	if out, err = Revoke("p", out, "y.wasm"); err != nil || !strings.Contains(string(out), "x.wasm") {
		t.Errorf("one that is not there: %v", err)
	}
}

// FuzzEdit: whatever stands in a policy, an edit says what was meant and changes
// nothing else, or it is refused.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{"", full, commentedText(), granting("{kv: {}}"), "version: 1\nmodules: {}", "# c\nversion: 1\nmodules:\n  x.wasm:\n    config: {a: |\n  b}"} {
		f.Add(text, "a.test", "tasks:read")
	}
	f.Fuzz(func(t *testing.T, text, host, scope string) {
		before, err := Parse("p", []byte(text))
		if err != nil {
			return
		}
		g := Grant{HTTP: []HTTPRule{{Host: host}}, Tracker: []string{scope}}
		names := append(before.Modules(), "x.wasm")
		for _, name := range names[max(0, len(names)-3):] {
			out, err := SetGrant("p", []byte(text), name, Binding{Digest: digestA}, g)
			if err == nil {
				e, _ := mustParse(t, string(out)).Entry(name)
				if canonical, _ := parseHost(host); len(e.Grant.HTTP) != 1 || e.Grant.HTTP[0].Host != canonical || len(e.Grant.Kinds()) != 2 {
					t.Errorf("%q for %s of\n%s\nbecame\n%s", host, name, text, out)
				}
				othersStay(t, before, mustParse(t, string(out)), name)
			}
			if out, err = Revoke("p", []byte(text), name); err == nil {
				if e, _ := mustParse(t, string(out)).Entry(name); e.Decided {
					t.Errorf("not revoked for %s:\n%s\nbecame\n%s", name, text, out)
				}
				othersStay(t, before, mustParse(t, string(out)), name)
			}
		}
	})
}

func othersStay(t *testing.T, before, after *Policy, name string) {
	t.Helper()
	for _, other := range before.Modules() {
		a, _ := before.Entry(other)
		b, ok := after.Entry(other)
		if a.Line, b.Line = 0, 0; other != name && (!ok || !reflect.DeepEqual(a, b)) {
			t.Errorf("%s changed too", other)
		}
	}
}

// written is a policy as the library itself reads it into plain values, to judge
// our own reading by.
type written struct {
	Modules map[string]struct {
		Grant map[string]any
	}
}

// FuzzParse: no text panics, findings have lines of the text, and nothing is
// granted that is not written.
func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add(commentedText())
	for _, c := range grantFaults {
		f.Add(granting(c.grant))
	}
	for _, s := range []string{"{http: [{host: 'a.test'}]}", `{http: [{host: "\u0061.test"}]}`, "{http: [{host: \"*\"}]}", "{tool: [a, b]}"} {
		f.Add(granting(s))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Parse("p", []byte(text))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20+1024*uint64(len(text)) {
			t.Fatalf("%d bytes of text took %d of memory:\n%s", len(text), took, text)
		}
		if err != nil {
			var bad *PolicyError
			if p != nil || !errors.As(err, &bad) || len(bad.Findings) == 0 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %q", p, err)
			}
			for _, finding := range bad.Findings {
				if finding.Line < 1 || finding.Line > strings.Count(text, "\n")+2 {
					t.Errorf("line %d of %q: %s", finding.Line, text, finding)
				}
			}
			return
		}
		var w written
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			return
		}
		for _, name := range p.Modules() {
			e, _ := p.Entry(name)
			for _, kind := range e.Grant.Kinds() {
				judge(t, text, name, kind, e.Grant, w.Modules[name].Grant[kind])
			}
		}
	})
}

// judge compares what is granted of one kind with what is written.
func judge(t *testing.T, text, name, kind string, g Grant, said any) {
	t.Helper()
	if said == nil {
		t.Fatalf("%s of %s is granted and not written:\n%s", kind, name, text)
	}
	list, _ := said.([]any)
	switch kind {
	case kindHTTP:
		if len(list) != len(g.HTTP) {
			t.Fatalf("%d rules are written, %d granted:\n%s", len(list), len(g.HTTP), text)
		}
		for i, r := range g.HTTP {
			host, _ := list[i].(map[string]any)["host"].(string)
			if canonical, _ := parseHost(host); host != "" && canonical != r.Host {
				t.Fatalf("%q is written, %q granted:\n%s", host, r.Host, text)
			}
		}
	case kindTracker, kindConversation, kindBridge, kindTool:
		if len(list) != len(*g.names(kind)) {
			t.Fatalf("%d names are written, %v granted:\n%s", len(list), *g.names(kind), text)
		}
	}
}
