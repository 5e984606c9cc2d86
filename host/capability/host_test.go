package capability

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// spellings are ways to write a host that means, or might mean, something else
// than what it looks like (every one that net/http was measured with, and more).
// None of them may match a rule that does not name exactly this.
var spellings = []string{
	"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "[::]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]",
	"127.0.1", "127.1", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "2130706433", "0", "0.0.0.0",
	"foo.localhost", "[::127.0.0.1]", "[::1]", "[::1%25lo]", "[fe80::1%25eth0]", "[0:0:0:0:0:0:0:1]",
	"127.0.0.1.", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]",
	"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "256.0.0.1", "1.2.3.4.5", "allowed.test.0x7f",
}

func TestS01_S05_S06_SpellingsOfHosts(t *testing.T) {
	rules := mustParse(t, granting(`{http: [{host: allowed.test}, {host: "*.allowed.test"}, {host: "*"}]}`))
	e, _ := rules.Entry("x.wasm")
	for _, host := range spellings {
		u, err := url.Parse("https://" + host + "/")
		if err != nil {
			continue // no request can be made of it
		}
		for _, r := range e.Grant.HTTP {
			if r.Match("GET", u) {
				t.Errorf("%s matches %s", host, r)
			}
		}
	}
}

func TestCanonicalHost(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"example.com", "example.com"}, {"EXAMPLE.com.", "example.com"}, {"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"}, {"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example"}, {"ｅｘａｍｐｌｅ.com", "example.com"}, {"example。com", "example.com"},
		{"faß.example", "xn--fa-hia.example"}, {"a_b.example", "a_b.example"}, {"r3---sn-a.example", "r3---sn-a.example"},
		{"nas", "nas"}, {"1.2.3.4", "1.2.3.4"}, {"[2606:4700::0001]", "2606:4700::1"}, {"2606:4700:0:0::1", "2606:4700::1"},
		{"[::1]", "::1"}, {"3com.example", "3com.example"}, {"a.0xg", "a.0xg"},

		{"", ""}, {".", ""}, {"..", ""}, {"a..b", ""}, {".a", ""}, {"a.test..", ""}, {"-a.test", ""}, {"a-.test", ""},
		{"a b", ""}, {"a/b", ""}, {"a@b", ""}, {"a:80", ""}, {"a#b", ""}, {"a?b", ""}, {"a%2eb", ""}, {"a\\b", ""}, {"a\x00b", ""},
		{"a\u200bb.test", "ab.test"}, {"a\u202eb.test", ""}, {"xn--a.test", ""}, {"xn--.test", ""}, {"*.a.test", ""},
		{"1.2.3", ""}, {"1.2.3.4.", ""}, {"01.2.3.4", ""}, {"256.1.1.1", ""}, {"1", ""}, {"a.1", ""}, {"a.0x1", ""}, {"0x", ""},
		{"１.2.3.4", ""}, {"[1.2.3.4]", ""}, {"[::1", ""}, {"::1]", ""}, {"[::1%lo]", ""}, {"[::ffff:1.2.3.4]", ""}, {"[]", ""},
		{strings.Repeat("a", 64) + ".test", ""}, {strings.Repeat("a.", 127) + "test", ""},
	} {
		got, err := CanonicalHost(c.in)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: got %q, %v; want %q", c.in, got, err, c.want)
		}
		if err == nil {
			if again, err := CanonicalHost(got); err != nil || again != got {
				t.Errorf("%q: %q becomes %q, %v", c.in, got, again, err)
			}
		}
	}
}

func TestS22_WildcardsAreOneLabel(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		want          bool
	}{
		{"*.x.test", "a.x.test", true}, {"*.x.test", "x.test", false}, {"*.x.test", "a.b.x.test", false},
		{"*.x.test", "ax.test", false}, {"*.x.test", ".x.test", false}, {"*.x.test", "evilx.test", false},
		{"x.test", "secret.x.test", false}, {"*", "secret.evil.test", true}, {"*", "localhost", false},
		{"*", "a.localhost", false}, {"*", "8.8.8.8", true}, {"*", "10.1.2.3", false}, {"*", "2606:4700::1", true},
	} {
		r := HTTPRule{Host: c.pattern}
		if got := r.Match("GET", &url.URL{Scheme: "https", Host: bracketed(c.host), Path: "/"}); got != c.want {
			t.Errorf("%s under %s: %t", c.host, c.pattern, got)
		}
	}
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func TestS10_UserInformation(t *testing.T) {
	r := HTTPRule{Host: "allowed.test"}
	for _, text := range []string{
		"https://allowed.test@evil.test/", "https://allowed.test:443@evil.test/", "https://evil.test#@allowed.test",
		"https://evil.test/@allowed.test", "https://evil.test?@allowed.test", "https://user@allowed.test/",
		"https://user:password@allowed.test/", "https://@allowed.test/", "https://evil.test%40allowed.test/",
		"https:allowed.test", "https:///allowed.test", "//allowed.test/",
		`https://allowed.test\@evil.test/`, `https://evil.test\.allowed.test/`,
	} {
		if u, err := url.Parse(text); err == nil && r.Match("GET", u) {
			t.Errorf("%s matches", text)
		}
	}
	for _, u := range []*url.URL{
		nil, {}, {Scheme: "https", Host: "allowed.test", User: url.User("")}, {Scheme: "https", Opaque: "//allowed.test/"},
		{Scheme: "https", Host: "allowed.test:1:443"}, {Scheme: "https", Host: "evil.test/allowed.test"},
		{Scheme: "https", Host: "allowed.test:443:"}, {Scheme: "https", Host: "allowed.test:-443"}, {Scheme: "https", Host: "[allowed.test]"},
		{Scheme: "HTTPS", Host: "allowed.test"},
	} {
		if r.Match("GET", u) {
			t.Errorf("%+v matches", u)
		}
	}
}

func TestS11_SchemesAndPorts(t *testing.T) {
	for _, c := range []struct {
		rule HTTPRule
		url  string
		want bool
	}{
		{HTTPRule{}, "https://a.test/", true}, {HTTPRule{}, "https://a.test:443/", true}, {HTTPRule{}, "http://a.test/", false},
		{HTTPRule{}, "https://a.test:22/", false}, {HTTPRule{}, "https://a.test:80/", false}, {HTTPRule{}, "http://a.test:443/", false},
		{HTTPRule{}, "https://a.test:99999/", false}, {HTTPRule{}, "gopher://a.test:443/", false}, {HTTPRule{}, "file://a.test/", false},
		{HTTPRule{}, "dict://a.test:443/", false}, {HTTPRule{}, "ftp://a.test:443/", false}, {HTTPRule{}, "data:text/plain,a.test", false},
		{HTTPRule{}, "ws://a.test/", false}, {HTTPRule{}, "wss://a.test:443/", false}, {HTTPRule{}, "HTTPS://A.test/", true},
		{HTTPRule{Scheme: "http"}, "http://a.test/", true}, {HTTPRule{Scheme: "http"}, "http://a.test:80/", true},
		{HTTPRule{Scheme: "http"}, "https://a.test/", false},
		{HTTPRule{Ports: []int{8443}}, "https://a.test:8443/", true}, {HTTPRule{Ports: []int{8443}}, "https://a.test/", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			if c.want {
				t.Error(err)
			}
			continue
		}
		c.rule.Host = "a.test"
		if got := c.rule.Match("GET", u); got != c.want {
			t.Errorf("%s under %+v: %t", c.url, c.rule, got)
		}
	}
}

func TestMatchMethodsAndPaths(t *testing.T) {
	for _, c := range []struct {
		methods, paths []string
		method, path   string
		want           bool
	}{
		{nil, nil, "GET", "/x", true}, {nil, nil, "HEAD", "", true}, {nil, nil, "POST", "/x", false}, {nil, nil, "get", "/x", false},
		{[]string{"POST"}, nil, "POST", "/x", true}, {[]string{"POST"}, nil, "GET", "/x", false}, {nil, nil, "", "/x", false},
		{nil, []string{"/"}, "GET", "", true}, {nil, []string{"/"}, "GET", "/a/b", true},
		{nil, []string{"/repos/"}, "GET", "/repos/a", true}, {nil, []string{"/repos/"}, "GET", "/repos", false},
		{nil, []string{"/repos/"}, "GET", "/repos/", true}, {nil, []string{"/repos"}, "GET", "/repos", true},
		{nil, []string{"/repos"}, "GET", "/repos/a", true}, {nil, []string{"/repos"}, "GET", "/reposx", false},
		{nil, []string{"/repos/"}, "GET", "/repos/../admin", false}, {nil, []string{"/repos/"}, "GET", "/repos/%2e%2e/admin", false},
		{nil, []string{"/repos/"}, "GET", "/repos/%2E%2E%2Fadmin", false}, {nil, []string{"/repos/"}, "GET", "/repos/%252e%252e/admin", false},
		{nil, []string{"/repos/"}, "GET", "/x/../repos/a", true}, {nil, []string{"/repos/"}, "GET", "//repos/a", false},
		{nil, []string{"/repos/"}, "GET", "/repos/..;/admin", false}, {nil, []string{"/repos/"}, "GET", `/repos/..%5cadmin`, false},
		{nil, []string{"/repos/"}, "GET", "/REPOS/a", false}, {nil, []string{"/repos/"}, "GET", "/repos//a", true},
		{nil, []string{"/repos/"}, "GET", "/repos/a%20b", true}, {nil, []string{"/a/", "/b"}, "GET", "/b", true},
		{nil, []string{"/repos/"}, "GET", "/repos/a%00", false},
	} {
		u, err := url.Parse("https://a.test" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		r := HTTPRule{Host: "a.test", Methods: c.methods, Paths: c.paths}
		if got := r.Match(c.method, u); got != c.want {
			t.Errorf("%s %s under %v %v: %t", c.method, c.path, c.methods, c.paths, got)
		}
	}
}

func TestTheZeroRuleMatchesNothing(t *testing.T) {
	for _, host := range []string{"", "a.test"} {
		if (HTTPRule{}).Match("GET", &url.URL{Scheme: "https", Host: host}) {
			t.Errorf("host %q", host)
		}
	}
}

// "*" is for public addresses alone, also where a host is written as an address:
// then nothing is looked up that could be refused later.
func TestS05_SpecialAddresses(t *testing.T) {
	rule := HTTPRule{Host: "*"}
	for _, host := range []string{
		"0.0.0.0", "[::]", "[::1]", "127.0.0.1", "[::ffff:7f00:1]", "[::ffff:808:808]", "[::7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]",
		"[2001::1]", "0.1.2.3", "10.0.0.1", "100.64.0.1", "168.63.129.16", "169.254.169.254", "172.31.255.255", "192.168.0.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[100::1]", "[2001:db8::1]",
	} {
		if rule.Match("GET", at(t, "https://"+host+"/")) {
			t.Errorf("%s is taken for public", host)
		}
	}
	for _, host := range []string{"1.1.1.1", "172.32.0.1", "100.128.0.1", "192.1.0.1", "223.255.255.255", "[2606:4700::1]", "[2a00:1450::1]"} {
		if !rule.Match("GET", at(t, "https://"+host+"/")) {
			t.Errorf("%s is not taken for public", host)
		}
	}
}

// FuzzMatch: whatever a URL looks like, a rule for one host lets no other through.
func FuzzMatch(f *testing.F) {
	for _, host := range spellings {
		f.Add("https://" + host + "/")
	}
	f.Add("https://a.test/x/../y")
	f.Add("https://a.test:443")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		if (HTTPRule{Host: "a.test", Paths: []string{"/x/"}}).Match("GET", u) {
			host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
			if canonical, _ := CanonicalHost(host); canonical != "a.test" || u.User != nil || u.Scheme != "https" || !strings.HasPrefix(u.Path, "/x/") {
				t.Errorf("%q matches", text)
			}
		}
		if (HTTPRule{Host: "*"}).Match("GET", u) {
			if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (addr.IsPrivate() || addr.IsLoopback() || addr.IsUnspecified() || addr.Is4In6()) {
				t.Errorf("%q matches", text)
			}
		}
	})
}
