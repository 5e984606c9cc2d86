package capability

import (
	"strings"
	"testing"
)

// What is named goes and nothing else, whatever the rule was written as; what no
// rule can say is refused.
func TestWithoutHTTP(t *testing.T) {
	for _, c := range []struct {
		name, has string
		what      HTTPRule
		want      string // lines, or what the error has behind "!"
	}{
		{"one of two", "{http: [{host: a.test}, {host: b.test}]}", HTTPRule{Host: "a.test"}, "http GET, HEAD https://b.test"},
		{"by every scheme", "{http: [{host: a.test}, {scheme: http, host: a.test, ports: [80, 81]}]}", HTTPRule{Host: "a.test"}, ""},
		{"by one scheme", "{http: [{host: a.test}, {scheme: http, host: a.test}]}", HTTPRule{Host: "a.test", Scheme: "https"}, "http GET, HEAD http://a.test"},
		{"one method", "{http: [{host: a.test}]}", HTTPRule{Host: "a.test", Methods: []string{"HEAD", "POST"}}, "http GET https://a.test"},
		{"one port of one method", "{http: [{host: a.test, methods: [GET, POST], ports: [443, 444]}]}", HTTPRule{Host: "a.test", Methods: []string{"GET"}, Ports: []int{444}},
			"http POST https://a.test port 443, 444; http GET https://a.test port 443"},
		{"one path", "{http: [{host: a.test, paths: [/v1, /v2/x]}]}", HTTPRule{Host: "a.test", Paths: []string{"/v2"}}, "http GET, HEAD https://a.test below /v1"},
		{"a path inside of one", "{http: [{host: a.test, paths: [/v1]}]}", HTTPRule{Host: "a.test", Paths: []string{"/v1/x"}}, "!a part of what one rule lets through: take all of it: http GET, HEAD https://a.test below /v1"},
		{"a path of all", "{http: [{host: a.test}]}", HTTPRule{Host: "a.test", Paths: []string{"/v1"}}, "!a part of what one rule lets through"},
		{"another path", "{http: [{host: a.test, paths: [/v1]}]}", HTTPRule{Host: "a.test", Paths: []string{"/v10"}}, "!no rule lets that through"},
		{"another port", "{http: [{host: a.test}]}", HTTPRule{Host: "a.test", Ports: []int{444}}, "!no rule lets that through: granted is http GET, HEAD https://a.test"},
		{"one of what a pattern is about", `{http: [{host: "*.a.test"}]}`, HTTPRule{Host: "x.a.test"}, "!no rule"},
		{"a pattern", `{http: [{host: "*.a.test"}, {host: x.a.test}]}`, HTTPRule{Host: "*.a.test"}, "http GET, HEAD https://x.a.test"},
		{"what is denied stays so", `{http: [{host: "*"}, {host: a.test, methods: [GET], approval: deny}, {host: a.test, methods: [POST]}]}`, HTTPRule{Host: "a.test"},
			"http GET, HEAD https://any public host; http GET https://a.test, denied"},
		{"with its secret", "{http: [{host: a.test}, {host: b.test}], secrets: [{name: n, header: X, host: a.test}, {name: m, header: X, host: b.test}]}", HTTPRule{Host: "a.test"},
			"http GET, HEAD https://b.test; secret m as header X to b.test"},
		{"with a secret that could go out again", `{http: [{host: "*", approval: ask}, {host: a.test}], secrets: [{name: n, header: X, host: a.test}]}`, HTTPRule{Host: "a.test"},
			"http GET, HEAD https://any public host, refused until allowed"},
		{"a secret that still goes", "{http: [{host: a.test, methods: [GET, POST]}], secrets: [{name: n, header: X, host: a.test}]}", HTTPRule{Host: "a.test", Methods: []string{"GET"}},
			"http POST https://a.test; secret n as header X to a.test"},
	} {
		got, err := grantOf(t, c.has).WithoutHTTP(c.what)
		if want, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", c.name, got.Lines(), err)
			}
			continue
		}
		if text := strings.Join(got.Lines(), "; "); err != nil || text != c.want {
			t.Errorf("%s: %q, %v", c.name, text, err)
		}
		if _, err := SetGrant("p", nil, "x.wasm", Binding{Digest: digestA}, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWithoutSecret(t *testing.T) {
	g := grantOf(t, "{http: [{host: a.test}], secrets: [{name: n, header: X, host: a.test}, {name: m, header: Y, host: a.test}]}")
	if got, err := g.WithoutSecret("n"); err != nil || len(got.Secrets) != 1 || got.Secrets[0].Name != "m" || len(g.Secrets) != 2 {
		t.Errorf("%v, %v", got.Lines(), err)
	}
	if _, err := g.WithoutSecret("k"); err == nil || !strings.Contains(err.Error(), "granted is secret n as header X to a.test; secret m") {
		t.Errorf("%v", err)
	}
}
