package capability

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// What is refused and could be granted says the one command that would, and the
// operator's copy of it is about the operator's folders.
func TestRefusalsSayTheCommand(t *testing.T) {
	b := NewBook(Options{Flags: " --state s", Policy: mustParse(t, "version: 1\nmodules:\n  x.wasm:\n    digest: sha256:"+digestA+
		"\n    grant: {http: [{host: \"*\", methods: [GET, POST], approval: ask}]}")})
	e := b.Effective(local, module(map[string]string{"http": `[{"reason":"r"}]`, "kv": "{}"}), "t")
	for _, c := range []struct{ method, url, want string }{
		{"GET", "https://a.test/x?q=1", "--http a.test"},
		{"HEAD", "https://A.test:443/", "--http a.test"},
		{"POST", "https://a.test/", "--http POST:a.test"},
		{"GET", "http://a.test:80/", "--http http://a.test"},
		{"DELETE", "http://127.0.0.1:8080/", "--http DELETE:http://127.0.0.1:8080"},
		{"GET", "https://[2001:db8::1]:8443/", "--http '[2001:db8::1]:8443'"},
		{"POST", "https://[2001:db8::1]/", "--http 'POST:[2001:db8::1]'"},
	} {
		_, refused := e.HTTP(c.method, at(t, c.url))
		want := "hutch tools grant x.wasm " + c.want
		if refused == nil || refused.Do != want+" --state s" || !strings.HasSuffix(refused.Text, "only a person can allow it, so tell them to run this in a terminal: "+want) {
			t.Errorf("%s %s: got %+v, want %s", c.method, c.url, refused, want)
		}
	}
	if refused := e.Allows("kv_get"); refused == nil || refused.Do != "hutch tools grant x.wasm --state s" {
		t.Errorf("kv: %+v", refused)
	}
	for _, c := range []struct{ method, url, want string }{
		{"GET; rm -rf ~", "https://a.test/", "no grant can name this method"},
		{"GET", "gopher://a.test:70/", "allowed are https and, where it is granted, http"},
	} {
		if _, refused := e.HTTP(c.method, at(t, c.url)); refused == nil || refused.Do != "" || !strings.HasSuffix(refused.Text, c.want) {
			t.Errorf("%s %s: got %+v", c.method, c.url, refused)
		}
	}
}

// Hosts that a person would have to be asked about are not among the granted ones.
func TestRefusalsSayWhatIsGranted(t *testing.T) {
	e := effective(t, `grant: {http: [{host: "*", approval: ask}, {host: a.test}, {host: b.test, approval: deny}]}`, map[string]string{"http": `[{}]`})
	_, refused := e.HTTP("GET", at(t, "http://127.0.0.1/"))
	if refused == nil || !strings.HasPrefix(refused.Text, "http: GET http://127.0.0.1: not granted; granted are requests to a.test with their methods, ports and paths; only a person") {
		t.Errorf("got %+v", refused)
	}
}

// What nobody can allow by a command has none: what the module never asked for, and
// what the policy denies.
func TestRefusalsWithoutACommand(t *testing.T) {
	e := effective(t, `grant: {http: [{host: a.test, approval: deny}]}`, map[string]string{"http": `[{"host":"a.test"}]`})
	for _, url := range []string{"https://a.test/", "https://b.test/"} {
		if _, refused := e.HTTP("GET", at(t, url)); refused == nil || refused.Do != "" {
			t.Errorf("%s: %+v", url, refused)
		}
	}
}

// A request may leave its hosts open and still be bounded.
func TestOpenRequestsAreBounded(t *testing.T) {
	asks := map[string]string{"http": `[{"methods":["GET"],"max_response":"2MiB","max_request":"1KiB","reason":"r"}]`}
	e := effective(t, `grant: {http: [{host: a.test, ports: [1], scheme: http, methods: [GET, POST], max_response: 4MiB}]}`, asks)
	rule, refused := e.HTTP("GET", at(t, "http://a.test:1/"))
	if refused != nil || rule.MaxResponse != 2<<20 || rule.MaxRequest != 1<<10 {
		t.Errorf("got %+v, %+v", rule, refused)
	}
	if _, refused := e.HTTP("POST", at(t, "http://a.test:1/")); refused == nil || !strings.Contains(refused.Text, "never requested") {
		t.Errorf("another method: %+v", refused)
	}
	for _, raw := range []string{`[{"methods":["GET"],"paths":["/x"]}]`, `[{"ports":[1]}]`, `[{"scheme":"http"}]`, `[{"rate":"1/s"}]`} {
		if _, err := ParseRequests(tool.Requests{"http": []byte(raw)}); err == nil || !strings.Contains(err.Error(), "http[0].host: not there") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestOpenRequestsWiden(t *testing.T) {
	open := func(methods ...string) HTTPRule { return HTTPRule{Methods: methods} }
	for _, c := range []struct {
		old, now HTTPRule
		wider    string
	}{
		{open(), open("GET"), ""},
		{open("GET"), open(), "http (whatever is granted)"},
		{open("GET"), open("GET", "POST"), "http GET, POST (whatever is granted)"},
		{open("GET", "POST"), open("POST"), ""},
		{open("GET"), HTTPRule{Host: "a.test"}, "http GET, HEAD https://a.test"},
		{open("GET", "HEAD"), HTTPRule{Host: "a.test"}, ""},
		{HTTPRule{Host: "*"}, open("GET"), "http GET (whatever is granted)"},
		{HTTPRule{MaxResponse: 1 << 20}, HTTPRule{MaxResponse: 2 << 20}, "http (whatever is granted), at most 2MiB back"},
	} {
		got := strings.Join(Widening(Grant{HTTP: []HTTPRule{c.old}}, Grant{HTTP: []HTTPRule{c.now}}), "; ")
		if got != c.wider {
			t.Errorf("%v, then %v: got %q, want %q", c.old, c.now, got, c.wider)
		}
	}
}
