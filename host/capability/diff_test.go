package capability

import (
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

var toolT = tool.Spec{Name: "t"}

func TestDiffGrants(t *testing.T) {
	old := Grant{
		HTTP: []HTTPRule{{Host: "a.test", Ports: []int{443, 8443}}, {Host: "2606:4700::1", Scheme: "http", MaxRequest: 1024}},
		KV:   &KVRule{Max: 1 << 20}, FS: []FSRule{{Path: "/d", Mode: "ro"}},
	}
	now := Grant{
		HTTP:    []HTTPRule{{Host: "a.test", Ports: []int{443, 8443}}, {Host: "*", Approval: Deny}, {}},
		Secrets: []SecretRule{{Name: "k", Query: "key", Host: "a.test", Paths: []string{"/x"}}, {}},
		KV:      &KVRule{Max: 1 << 20, TTL: time.Hour}, Tracker: []string{"*"},
	}
	want := []string{
		"- http GET, HEAD http://[2606:4700::1], at most 1KiB sent",
		"- kv, at most 1MiB", "- fs /d ro",
		"+ http GET, HEAD https://any public host, denied", "+ http (whatever is granted)",
		"+ secret k as query key to a.test below /x", "+ secrets (whatever is granted)",
		"+ kv, at most 1MiB, kept for 1h", "+ tracker (whatever is granted)",
	}
	if got := DiffGrants(old, now); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := DiffGrants(now, now); got != nil {
		t.Errorf("the same: %q", got)
	}
}

// Each pair: what stands left covers what stands right, or does not.
func TestWidening(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	http := func(r HTTPRule) Grant {
		if r.Host == "" {
			r.Host = "a.test"
		}
		return Grant{HTTP: []HTTPRule{r}}
	}
	for _, c := range []struct {
		name     string
		old, now Grant
		wider    bool
	}{
		{"nothing", Grant{}, Grant{}, false},
		{"from nothing", Grant{}, http(HTTPRule{}), true},
		{"to nothing", http(HTTPRule{}), Grant{}, false},
		{"methods", http(HTTPRule{}), http(HTTPRule{Methods: []string{"HEAD"}}), false},
		{"other methods", http(HTTPRule{}), http(HTTPRule{Methods: []string{"PUT"}}), true},
		{"any host", http(HTTPRule{}), http(HTTPRule{Host: "*"}), true},
		{"one of any", http(HTTPRule{Host: "*"}), http(HTTPRule{}), false},
		{"private of any", http(HTTPRule{Host: "*"}), http(HTTPRule{Host: "10.0.0.1"}), true},
		{"one label", http(HTTPRule{Host: "*.a.test"}), http(HTTPRule{Host: "b.a.test"}), false},
		{"two labels", http(HTTPRule{Host: "*.a.test"}), http(HTTPRule{Host: "c.b.a.test"}), true},
		{"scheme", http(HTTPRule{}), http(HTTPRule{Scheme: "http"}), true},
		{"port", http(HTTPRule{}), http(HTTPRule{Ports: []int{443, 22}}), true},
		{"all paths", http(HTTPRule{Paths: []string{"/a/"}}), http(HTTPRule{}), true},
		{"deeper", http(HTTPRule{Paths: []string{"/a/"}}), http(HTTPRule{Paths: []string{"/a/b"}}), false},
		{"larger", http(HTTPRule{MaxResponse: 10}), http(HTTPRule{MaxResponse: 11}), true},
		{"unbounded", http(HTTPRule{MaxResponse: 10}), http(HTTPRule{}), true},
		{"smaller", http(HTTPRule{MaxResponse: 10}), http(HTTPRule{MaxResponse: 9}), false},
		{"faster", http(HTTPRule{Rate: Rate{60, time.Hour}}), http(HTTPRule{Rate: Rate{2, time.Minute}}), true},
		{"slower", http(HTTPRule{Rate: Rate{60, time.Hour}}), http(HTTPRule{Rate: Rate{1, time.Minute}}), false},
		{"private", http(HTTPRule{}), http(HTTPRule{AllowPrivate: private}), true},
		{"no longer private", http(HTTPRule{AllowPrivate: private}), http(HTTPRule{}), false},
		{"not asked for", http(HTTPRule{Approval: Ask}), http(HTTPRule{}), true},
		{"asked for", http(HTTPRule{}), http(HTTPRule{Approval: Ask}), false},
		{"whatever", http(HTTPRule{}), Grant{HTTP: []HTTPRule{{}}}, true},
		{"of whatever", Grant{HTTP: []HTTPRule{{}}}, http(HTTPRule{Host: "*"}), false},
		{"secret elsewhere", Grant{Secrets: []SecretRule{{Name: "k", Header: "A", Host: "a.test"}}}, Grant{Secrets: []SecretRule{{Name: "k", Header: "A", Host: "b.test"}}}, true},
		{"secret below", Grant{Secrets: []SecretRule{{Name: "k", Header: "A", Host: "a.test"}}}, Grant{Secrets: []SecretRule{{Name: "k", Header: "a", Host: "a.test", Paths: []string{"/x"}}}}, false},
		{"larger kv", Grant{KV: &KVRule{Max: 1}}, Grant{KV: &KVRule{Max: 2}}, true},
		{"kept longer", Grant{KV: &KVRule{TTL: time.Hour}}, Grant{KV: &KVRule{}}, true},
		{"smaller kv", Grant{KV: &KVRule{Max: 2}}, Grant{KV: &KVRule{Max: 1}}, false},
		{"one project", Grant{Tracker: []string{"tasks:read"}}, Grant{Tracker: []string{"tasks:read@p"}}, false},
		{"all projects", Grant{Tracker: []string{"tasks:read@p"}}, Grant{Tracker: []string{"tasks:read"}}, true},
		{"another name", Grant{Tool: []string{"a"}}, Grant{Tool: []string{"a@b"}}, true},
		{"writing", Grant{FS: []FSRule{{Path: "/d", Mode: "ro"}}}, Grant{FS: []FSRule{{Path: "/d", Mode: "rw"}}}, true},
		{"below", Grant{FS: []FSRule{{Path: "/d", Mode: "rw"}}}, Grant{FS: []FSRule{{Path: "/d/e", Mode: "ro"}}}, false},
		{"beside", Grant{FS: []FSRule{{Path: "/d", Mode: "rw"}}}, Grant{FS: []FSRule{{Path: "/de", Mode: "ro"}}}, true},
	} {
		if got := Widening(c.old, c.now); (got != nil) != c.wider {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

func TestLeastRulesLetThroughWhatWasSeen(t *testing.T) {
	var seen []Request
	for _, c := range []struct{ method, url string }{
		{"GET", "https://a.test/repos/x"}, {"POST", "https://a.test/repos/x/issues?q=1"}, {"GET", "https://A.test./repos/x"},
		{"GET", "http://b.test:8080/"}, {"GET", "https://c.test/p/a%2Fb/c%20d"}, {"GET", "https://c.test/%2e%2e%2f"}, {"DELETE", "https://c.test"},
		{"GET", "https://user@d.test/"}, {"BREW", "https://d.test/"}, {"GET", "gopher://d.test/"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, Request{c.method, u})
	}
	rules := Least(seen)
	var got []string
	for _, r := range rules {
		got = append(got, r.yaml())
	}
	want := []string{
		"{host: a.test, methods: [GET, POST], paths: [/repos/x]}",
		"{host: c.test, methods: [DELETE, GET], paths: [/]}",
		"{scheme: http, host: b.test, methods: [GET], paths: [/], ports: [8080]}",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if p := mustParse(t, Render("x.wasm", Binding{Digest: digestA}, Grant{HTTP: rules})); len(p.Modules()) != 1 {
		t.Error("it does not read back")
	}
	var many []string
	for i := range 30 {
		many = append(many, "/a/"+string(rune('a'+i%26))+"/"+string(rune('a'+i/26)))
	}
	if got := fewPaths(many); !slices.Equal(got, []string{"/a/"}) {
		t.Errorf("many paths: %v", got)
	}
}
