package capability

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

var local = tool.Caller{Principal: "local", Agent: "coder", Face: "cli"}

// module is x.wasm with what it requests, as JSON by kind.
func module(requests map[string]string) tool.Module {
	m := tool.Module{Name: "x.wasm", Digest: digestA, Definitions: defsA}
	for kind, raw := range requests {
		if m.Requests == nil {
			m.Requests = tool.Requests{}
		}
		m.Requests[kind] = json.RawMessage(raw)
	}
	return m
}

// effective is what a call of tool t of x.wasm may do, under a policy whose entry
// is digest and these lines.
func effective(t *testing.T, lines string, requests map[string]string) Effective {
	t.Helper()
	b := NewBook(Options{Policy: mustParse(t, "version: 1\nmodules:\n  x.wasm:\n    digest: sha256:"+digestA+"\n    "+lines)})
	if d := b.Decide(local, module(requests), tool.Spec{Name: "t"}); d.Status != tool.Ready {
		t.Fatalf("not ready: %+v", d)
	}
	return b.Effective(local, module(requests), "t")
}

func at(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Each kind: requested and granted is given; only one of the two is not.
func TestEffectiveIsRequestedAndGranted(t *testing.T) {
	http := `[{"host":"a.test","methods":["GET","POST"],"reason":"r"}]`
	for _, c := range []struct {
		name, kind, requests, grant string
		has                         func(e Effective) bool
	}{
		{"http", kindHTTP, http, `{http: [{host: a.test, methods: [GET, DELETE]}]}`, func(e Effective) bool {
			_, refused := e.HTTP("GET", at(t, "https://a.test/x"))
			return refused == nil
		}},
		{"secrets", kindSecrets, `[{"name":"k","header":"A","host":"a.test"}]`, `{http: [{host: a.test}], secrets: [{name: k, header: A, host: a.test}]}`,
			func(e Effective) bool { return len(e.Secrets()) == 1 }},
		{"kv", kindKV, `{"max":"2MiB"}`, `{kv: {max: 1MiB}}`, func(e Effective) bool { _, ok := e.KV(); return ok }},
		{"tracker", kindTracker, `["tasks:read"]`, `{tracker: [tasks:read]}`, func(e Effective) bool { return len(e.Tracker()) == 1 }},
		{"conversation", kindConversation, `["send"]`, `{conversation: [send]}`, func(e Effective) bool { return len(e.Conversation()) == 1 }},
		{"bridge", kindBridge, `["a2a:r"]`, `{bridge: ["a2a:r"]}`, func(e Effective) bool { return len(e.Bridge()) == 1 }},
		{"tool", kindTool, `["w"]`, `{tool: [w]}`, func(e Effective) bool { return len(e.Tool()) == 1 }},
		{"fs", kindFS, `[{"path":"/d","mode":"ro"}]`, `{fs: [{path: /d, mode: rw}]}`, func(e Effective) bool { return len(e.FS()) == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			asks := map[string]string{c.kind: c.requests}
			grant := strings.ReplaceAll(c.grant, "[tasks:read]", `["tasks:read"]`)
			if !c.has(effective(t, "grant: "+grant, asks)) {
				t.Error("requested and granted, and not there")
			}
			if c.has(effective(t, "grant: {}", asks)) {
				t.Error("not granted")
			}
			if c.has(effective(t, "grant: "+grant, nil)) {
				t.Error("not requested")
			}
			if c.has(effective(t, "grant: "+grant, map[string]string{otherKind(c.kind): "[]"})) {
				t.Error("something else requested")
			}
			if !c.has(effective(t, "grant: "+grant, map[string]string{c.kind: `[{"reason":"imports it"}]`})) {
				t.Error("requested without saying what, and granted")
			}
			none := "[]"
			if c.kind == kindKV {
				none = "{max: 0B}"
			}
			narrowed := "tools: {t: {grant: {" + c.kind + ": " + none + "}}}"
			if c.has(effective(t, "grant: "+grant+"\n    "+narrowed, asks)) {
				t.Error("taken from the tool")
			}
			if other := "tools: {u: {grant: {" + c.kind + ": " + none + "}}}"; !c.has(effective(t, "grant: "+grant+"\n    "+other, asks)) {
				t.Error("taken from another tool")
			}
			if c.has(Effective{}) {
				t.Error("the zero value has it")
			}
		})
	}
}

func otherKind(kind string) string {
	if kind == kindTool {
		return kindBridge
	}
	return kindTool
}

func TestS01_HTTPIsDeniedByDefault(t *testing.T) {
	asks := map[string]string{"http": `[{"host":"a.test","methods":["GET","POST"],"max_request":"1KiB","max_response":"9MiB","rate":"61/min"},{"host":"b.test"},{"host":"c.test"},{"host":"*"}]`}
	e := effective(t, `grant:
      http:
        - {host: "*", approval: ask}
        - {host: a.test, methods: [GET], paths: [/repos/], max_response: 4MiB, rate: 60/min}
        - {host: a.test, methods: [POST], approval: deny}
        - {host: b.test, methods: [GET, PUT]}
        - {host: "*.w.test"}
    tools:
      t: {grant: {http: [{host: a.test, paths: [/repos/x/], max_response: 1MiB}, {host: b.test}, {host: d.w.test}]}}
`, asks)
	for _, c := range []struct{ method, url, want string }{
		{"GET", "https://a.test/repos/x/y", ""},
		{"GET", "https://a.test/repos/y", "not granted to this tool"},
		{"GET", "https://a.test/other", "not allowed yet"},
		{"POST", "https://a.test/repos/x/y", "http: POST https://a.test: denied by the policy"},
		{"PUT", "https://a.test/repos/x/y", "the module never requested it"},
		{"HEAD", "https://e.test/", "http: HEAD https://e.test: not allowed yet; only a person can allow it, so tell them to run this in a terminal: hutch tools grant x.wasm --http e.test"},
		{"GET", "https://b.test/", ""},
		{"PUT", "https://b.test/", "the module never requested it"},
		{"GET", "https://c.test/", "not allowed yet"},
		{"GET", "https://d.w.test/", ""},
		{"GET", "https://d.e.w.test/", "not allowed yet"},
		{"GET", "http://b.test/", "the module never requested it"},
		{"GET", "https://b.test:22/", "http: GET https://b.test:22: the module never requested it"},
		{"GET", "https://u@b.test/", "a user in the URL"},
		{"GET", "https://2130706433/", "no name ends in a number"},
		{"GET", "https://169.254.169.254/", "the module never requested it"},
	} {
		rule, refused := e.HTTP(c.method, at(t, c.url))
		got := ""
		if refused != nil {
			got = refused.Text
		}
		if c.want == "" && refused != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %q, want %q", c.method, c.url, got, c.want)
		}
		if refused != nil && (refused.Code != abi.Denied || strings.Contains(got, "\n") || !reflect.DeepEqual(rule, HTTPRule{})) {
			t.Errorf("%s %s: %+v, %+v", c.method, c.url, refused, rule)
		}
	}
	rule, _ := e.HTTP("GET", at(t, "https://a.test/repos/x/y"))
	if rule.MaxResponse != 1<<20 || rule.MaxRequest != 1<<10 || rule.Rate.N != 60 {
		t.Errorf("the narrowest of the bounds: %+v", rule)
	}
}

func TestS17_SecretsAreBoundToHosts(t *testing.T) {
	grant := `grant: {http: [{host: a.test}, {host: b.test}], secrets: [{name: k, header: A, host: a.test, paths: [/x/]}]}`
	for _, c := range []struct {
		name, requests string
		config         string
		want           int
	}{
		{"same host", `[{"name":"k","header":"A","host":"a.test"}]`, "", 1},
		{"other host", `[{"name":"k","header":"A","host":"b.test"}]`, "", 0},
		{"other secret", `[{"name":"other","header":"A","host":"a.test"}]`, "", 0},
		{"by placeholder", ``, "\n    config: {key: secret://k}", 1},
		{"no placeholder", ``, "\n    config: {key: k}", 0},
	} {
		asks := map[string]string{"http": `[{"reason":"imports http_request"}]`}
		if c.requests != "" {
			asks["secrets"] = c.requests
		}
		got := effective(t, grant+c.config, asks).Secrets()
		if len(got) != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
		if c.want == 1 && !reflect.DeepEqual(got[0].Paths, []string{"/x/"}) {
			t.Errorf("%s: paths %v", c.name, got[0].Paths)
		}
	}
	e := effective(t, grant+"\n    tools: {t: {grant: {secrets: [{name: k, header: A, host: a.test, paths: [/x/y/, /z/]}]}}}",
		map[string]string{"http": `[{}]`, "secrets": `[{}]`})
	if got := e.Secrets(); len(got) != 1 || !reflect.DeepEqual(got[0].Paths, []string{"/x/y/"}) {
		t.Errorf("narrowed: %v", got)
	}
}

func TestP13_TrackerScopesMeet(t *testing.T) {
	asks := map[string]string{"tracker": `["tasks:read","steps:write@p",{"name":"tasks:take","reason":"takes tasks"}]`}
	e := effective(t, "grant:\n      tracker: ['tasks:read@q', 'tasks:read@r', 'steps:write', 'tasks:assign']\n    tools:\n      t: {grant: {tracker: ['tasks:read@q', 'steps:write']}}", asks)
	if got := e.Tracker(); !slices.Equal(got, []string{"steps:write@p", "tasks:read@q"}) {
		t.Errorf("got %v", got)
	}
}

func TestModulesMayAskForLess(t *testing.T) {
	asks := map[string]string{"http": `[{"host":"*"},{"host":"b.test","approval":"deny"}]`}
	e := effective(t, `grant: {http: [{host: a.test}, {host: b.test}]}`, asks)
	if _, refused := e.HTTP("GET", at(t, "https://a.test/")); refused != nil {
		t.Error(refused)
	}
	if _, refused := e.HTTP("GET", at(t, "https://b.test/")); refused == nil {
		t.Error("b.test is let through, and the module said that it does not ask for it")
	}
}

func TestListsAreBounded(t *testing.T) {
	list := func(n int, item string) string {
		var items []string
		for i := range n {
			items = append(items, strings.ReplaceAll(item, "N", strconv.Itoa(i+1)))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for _, c := range []struct{ kind, before, item, after string }{
		{"http", ``, `{"host":"hN.test"}`, ``}, {"tool", ``, `"tN"`, ``}, {"http", `[{"host":"a.test","ports":`, `N`, `}]`},
		{"http", `[{"host":"a.test","paths":`, `"/pN"`, `}]`}, {"fs", ``, `{"path":"/dN","mode":"ro"}`, ``},
	} {
		for n, ok := range map[int]bool{maxItems: true, maxItems + 1: false} {
			raw := c.before + list(n, c.item) + c.after
			_, err := ParseRequests(tool.Requests{c.kind: json.RawMessage(raw)})
			if (err == nil) != ok {
				t.Errorf("%d of %s %s: %v", n, c.kind, c.item, err)
			}
		}
	}
}

func TestFoldersMeet(t *testing.T) {
	for _, c := range []struct {
		requests, grant string
		want            []FSRule
	}{
		{`[{"path":"/d","mode":"ro"}]`, `{path: /d, mode: rw}`, []FSRule{{Path: "/d", Mode: "ro"}}},
		{`[{"path":"/d","mode":"rw"}]`, `{path: /d, mode: ro}`, []FSRule{{Path: "/d", Mode: "ro"}}},
		{`[{"path":"/d/e","mode":"rw"}]`, `{path: /d, mode: rw}`, []FSRule{{Path: "/d/e", Mode: "rw"}}},
		{`[{"path":"/d","mode":"rw"}]`, `{path: /d/e, mode: rw}`, []FSRule{{Path: "/d/e", Mode: "rw"}}},
		{`[{"path":"/de","mode":"rw"}]`, `{path: /d, mode: rw}`, nil},
	} {
		if got := effective(t, "grant: {fs: ["+c.grant+"]}", map[string]string{"fs": c.requests}).FS(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s and %s: got %v", c.requests, c.grant, got)
		}
	}
}

func TestAllowsByOperation(t *testing.T) {
	asks := map[string]string{"http": `[{"host":"a.test"}]`, "kv": `{}`, "bridge": `["a2a:r"]`}
	e := effective(t, `grant: {http: [{host: a.test}], kv: {}}`, asks)
	for _, op := range []abi.Op{abi.OpHTTP, abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete} {
		if r := e.Allows(op); r != nil {
			t.Errorf("%s: %v", op, r)
		}
	}
	for _, op := range []abi.Op{abi.OpTracker, abi.OpConversation, abi.OpMCP, abi.OpA2A, abi.OpTool, "gpio"} {
		if r := e.Allows(op); r == nil || !strings.HasSuffix(r.Text, "hutch tools grant x.wasm") {
			t.Errorf("%s: %v", op, r)
		}
		if r := (Effective{}).Allows(op); r == nil {
			t.Errorf("%s: the zero value has it", op)
		}
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	e := effective(t, "tools: {t: {args: {title: {max_length: 3}}}}", nil)
	for args, ok := range map[string]bool{
		``: true, `{}`: true, `{"title":"äöü"}`: true, `{"title":"four"}`: false, `{"title":"\u0061bcd"}`: false,
		`{"other":"four"}`: true, `{"title":[1,2]}`: false, `{"title":1}`: true, `{"title":"a","title":"b"}`: false, `{`: false,
	} {
		if r := e.Arguments(json.RawMessage(args)); (r == nil) != ok {
			t.Errorf("%s: %v", args, r)
		}
	}
	if r := effective(t, "tools: {u: {args: {title: {max_length: 3}}}}", nil).Arguments(json.RawMessage(`{"title":"four"}`)); r != nil {
		t.Errorf("another tool's: %v", r)
	}
}

func TestEffectiveSettings(t *testing.T) {
	b := NewBook(Options{Policy: mustParse(t, "version: 1\ndefaults: {limits: {timeout: 20s, output: 2MiB}}\nmodules: {x.wasm: {limits: {timeout: 1s}, config: {a: b}}}")})
	e := b.Effective(local, module(nil), "t")
	if l := e.Limits(); l.Call.Wall.String() != "1s" || l.Call.OutputBytes != 2<<20 || l.Call.MemoryBytes != 0 {
		t.Errorf("limits %+v", l)
	}
	if e.Config()["a"] != "b" {
		t.Errorf("%v", e.Config())
	}
	e.Config()["a"] = "changed"
	if e.Config()["a"] != "b" {
		t.Error("the configuration is shared")
	}
	m := module(nil)
	m.Name = "y.wasm"
	if e := b.Effective(local, m, "t"); e.Limits().Call.OutputBytes != 2<<20 {
		t.Errorf("without an entry: %+v", e)
	}
}

func TestParseRequestsRefuses(t *testing.T) {
	for _, c := range []struct{ kind, raw, want string }{
		{"telepathy", `{}`, `requests: asks for "telepathy": known capabilities are http, secrets, kv, tracker, conversation, bridge, tool, fs`},
		{"http", `{}`, `requests: http: found keys and values: a list is wanted here`},
		{"http", `null`, `requests: http: found nothing`},
		{"http", ``, `requests: http: json:`},
		{"http", `[{"host":"a","host":"b"}]`, `key host stands twice`},
		{"http", `[{"paths":["/x"]}]`, `requests: http[0].host: not there`},
		{"http", `[{"host":"https://a"}]`, `http[0].host: found "https://a"`},
		{"http", `[{"host":"a.test","reasons":"x"}]`, `http[0].reasons: no such key`},
		{"http", `[{"host":"a.test","reason":"` + strings.Repeat("x", 301) + `"}]`, `http[0].reason`},
		{"kv", `[{},{}]`, `kv: found a list`},
		{"kv", `"1MiB"`, `kv: found "1MiB"`},
		{"tracker", `["*"]`, `tracker[0]: found "*"`},
		{"tracker", `[{"name":"*"}]`, `tracker[0].name: found "*"`},
		{"tracker", `[["tasks:read"]]`, `tracker[0]: found a list`},
		{"tracker", strings.Repeat("[", 17) + strings.Repeat("]", 17), `nested deeper than 16`},
	} {
		_, err := ParseRequests(tool.Requests{c.kind: json.RawMessage(c.raw)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %s", c.kind, c.raw, err, c.want)
		}
	}
}

func TestParseRequestsKeepsReasons(t *testing.T) {
	g, err := ParseRequests(tool.Requests{
		"http":    json.RawMessage(`[{"host":"API.test.","reason":"reads issues"}]`),
		"tracker": json.RawMessage(`["tasks:read",{"name":"steps:read","reason":"shows steps"}]`),
		"kv":      json.RawMessage(`{"max":"1MiB","reason":"remembers"}`),
	})
	if err != nil || g.HTTP[0].Host != "api.test" || g.HTTP[0].Reason != "reads issues" || g.KV.Reason != "remembers" ||
		g.Reasons["tracker steps:read"] != "shows steps" || len(g.Tracker) != 2 {
		t.Errorf("%+v, %v", g, err)
	}
}

// FuzzParseRequests: no JSON panics, and no host is asked for that is not written.
func FuzzParseRequests(f *testing.F) {
	for _, kind := range kinds() {
		f.Add(kind, `[{"host":"a.test","name":"n","reason":"r"}]`)
		f.Add(kind, `[{"reason":"r"}]`)
	}
	f.Fuzz(func(t *testing.T, kind, raw string) {
		g, err := ParseRequests(tool.Requests{kind: json.RawMessage(raw)})
		if err != nil {
			if !reflect.DeepEqual(g, Grant{}) {
				t.Error("an error, and something is asked for")
			}
			return
		}
		var written []struct{ Host string }
		if kind != kindHTTP || json.Unmarshal([]byte(raw), &written) != nil {
			return
		}
		if len(written) != len(g.HTTP) {
			t.Fatalf("%d rules from %s", len(g.HTTP), raw)
		}
		for i, w := range written {
			if host, _ := parseHost(w.Host); host != g.HTTP[i].Host {
				t.Errorf("rule %d of %s asks for %q", i, raw, g.HTTP[i].Host)
			}
		}
	})
}
