package capability

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestParseURL(t *testing.T) {
	base := at(t, "https://base.test/a/b?c")
	for _, c := range []struct{ raw, want string }{
		{"https://A.test", "https://a.test/"}, {"HTTPS://a.test:443/x#f", "https://a.test/x"}, {"https://a.test:/?", "https://a.test/?"},
		{"https://a.test:0443/", "https://a.test/"}, {"http://a.test:443/", "http://a.test:443/"}, {"https://a.test.:8443/", "https://a.test:8443/"},
		{"https://[2606:4700::0001]:443/", "https://[2606:4700::1]/"}, {"https://[2606:4700::1]:8443/", "https://[2606:4700::1]:8443/"},
		{"https://b%C3%BCcher.example/%C3%A9/é", "https://xn--bcher-kva.example/%C3%A9/%C3%A9"},
		{"https://a.test/x/./y/../z", "https://a.test/x/z"}, {"https://a.test/../..", "https://a.test/"}, {"https://a.test/x/..", "https://a.test/"},
		{"https://a.test//x//y", "https://a.test//x//y"}, {"https://a.test/p%2Fq%2fr/%41;v=1", "https://a.test/p%2Fq%2fr/%41;v=1"},
		{"https://a.test/p/100%25/..x/...;/.hidden", "https://a.test/p/100%25/..x/...;/.hidden"}, {`https://a.test/p\q`, "https://a.test/p%5Cq"},
		{"https://a.test/?q=a b&é=\"<>\x7f", ""}, {"https://a.test/?q=a b&é=\"<>", "https://a.test/?q=a%20b&%C3%A9=%22%3C%3E"},
		{"/x", "https://base.test/x"}, {"../../x", "https://base.test/x"}, {"?d", "https://base.test/a/b?d"}, {"//o.test/x", "https://o.test/x"},
		{"http:x", ""}, {"http:///x", ""}, {"gopher://a.test/", ""}, {"https://u@a.test/", ""}, {"https://@a.test/", ""}, {"https://a.test:0/", ""},
		{"https://a.test:65536/", ""}, {"https://:443/", ""}, {"https://a.test:+1/", ""}, {"https://a\xff.test/", ""}, {"https://127.1/", ""},
		{"https://a.test/%2e%2e/x", ""}, {"https://a.test/x/.%2E", ""}, {"https://a.test/%252e/x", ""}, {"https://a.test/..%2fx", ""},
		{"https://a.test/..%5cx", ""}, {`https://a.test/..\x`, ""}, {"https://a.test/..;/x", ""}, {"https://a.test/.;a=b/x", ""},
		{"https://a.test/%00", ""}, {"https://a.test/%0d%0a", ""}, {"https://a.test/%C2%85", ""}, {"https://a.test/a%2525252541", ""},
		{"https://" + strings.Repeat("a.", 127) + "t/", ""}, {"https://a.test/" + strings.Repeat("a", maxURLBytes), ""},
	} {
		got, refusal := ParseURL(base, c.raw)
		if (refusal != nil) != (c.want == "") || refusal == nil && got.String() != c.want {
			t.Errorf("%q: got %v, %v; want %s", c.raw, got, refusal, c.want)
		}
		if refusal != nil && (refusal.Code != abi.Denied && refusal.Code != abi.Invalid || strings.ContainsAny(refusal.Text, "\r\n\x00")) {
			t.Errorf("%q: %+v", c.raw, refusal)
		}
	}
	for _, u := range []*url.URL{
		nil, {}, {Scheme: "https", Host: "a.test", Path: "x"}, {Scheme: "https", Host: "a.test:1:443"}, {Scheme: "https", Host: "a.test:443:"},
		{Scheme: "https", Host: "[a.test]"}, {Scheme: "https", Host: "a.test/b"}, {Scheme: "https", Opaque: "//a.test/"}, {Scheme: "https", Host: "a.test", Opaque: "//b.test/"}, {Scheme: "HTTPS", Host: "a.test"},
		{Scheme: "https", Host: "::1"}, {Scheme: "https", Host: "[::1"}, {Scheme: "https", Host: "[::1]x"}, {Scheme: "https", Host: "a.test:x"},
	} {
		if got, refusal := CanonicalURL(u); refusal == nil {
			t.Errorf("%+v: %v", u, got)
		}
	}
}

// A slash inside a segment is no border between two, whether a prefix has it or the
// path, and however often it is encoded.
func TestS11_SlashesInsideSegments(t *testing.T) {
	for _, c := range []struct {
		prefix, path string
		want         bool
	}{
		{"/projects/", "/projects/a%2Fb", true}, {"/projects/", "/projects/a%2fb/issues", true}, {"/projects/", "/projects/a%252Fb", true},
		{"/projects/", "/projects/100%25", true}, {"/projects/", "/projects%2Fa", false}, {"/projects/", "/projects%252Fa", false},
		{"/projects", "/projects%2Fa", false}, {"/projects", "/projects%5Ca", false}, {"/projects/a", "/projects/a%2Fb", false},
		{"/projects/a/", "/projects/a%2Fb", false}, {"/projects/", "/%2Fprojects/a", false}, {"/projects/", "//projects/a", false},
		{"/projects/a%2Fb", "/projects/a%2Fb", true}, {"/projects/a%2Fb", "/projects/a%2fb/issues", true}, {"/projects/a%2Fb", "/projects/a/b", false},
		{"/projects/a%2Fb", "/projects/a%252Fb", false}, {"/projects/a%2Fb", "/projects/a%2Fbc", false}, {"/projects/a%2Fb/", "/projects/a%2Fb/c", true},
		{"/projects/", "/%70rojects/a", true}, {"/projects/", "/projects/a%2F..%2Fb", false}, {"/projects/", "/projects/a%5c..%5cb", false},
		{"/é/", "/%C3%A9/x", true}, {"/é/", "/é/x", true},
	} {
		rule := HTTPRule{Host: "a.test", Paths: []string{c.prefix}}
		if got := rule.Match("GET", at(t, "https://a.test"+c.path)); got != c.want {
			t.Errorf("%s under %s: %t", c.path, c.prefix, got)
		}
	}
}

// What is denied, or asked about, stays so in every notation that some server takes
// for it.
func TestS11_DeniedPathsInEveryNotation(t *testing.T) {
	e := effective(t, `grant: {http: [{host: a.test, paths: [/admin/], approval: deny}, {host: a.test, paths: [/ask/a%2Fb], approval: ask}, {host: a.test}]}`,
		map[string]string{"http": `[{"host":"a.test"}]`})
	for _, path := range []string{"/admin/", "/admin/x", "/x/../admin/x", "/admin%2Fx", "/admin%252fx", "/admin%25252Fx", "//admin//x", "/%61dmin/x", "/admin;v=1/x",
		`/admin\x`, "/admin%5Cx", "/%5Cadmin%5Cx", "/ADMIN/x", "/%2Fadmin/x", "/admin%2F", "/admin;/x"} {
		if _, refusal := e.HTTP("GET", at(t, "https://a.test"+path)); refusal == nil || !strings.Contains(refusal.Text, "denied by the policy") {
			t.Errorf("%s: %v", path, refusal)
		}
	}
	for _, path := range []string{"/ask/a%2Fb", "/ask/a%2fb/c", "/ask/a/b", "/ask/a%252Fb"} {
		if _, refusal := e.HTTP("GET", at(t, "https://a.test"+path)); refusal == nil || !strings.Contains(refusal.Text, "not allowed yet") {
			t.Errorf("%s: %v", path, refusal)
		}
	}
	for _, path := range []string{"/", "/adm", "/admins", "/x/admin/y", "/ask/a", "/ask/a%2Fbc"} {
		if _, refusal := e.HTTP("GET", at(t, "https://a.test"+path)); refusal != nil {
			t.Errorf("%s: %v", path, refusal)
		}
	}
}

// FuzzURL: the canonical form is one, it is read again as it is, and rules say the
// same about it as about what it was made of.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/", "http://a@b", "HTTP://EXAMPLE.com:080/a/../b;c?d e#f", "http://[::1]:80/", "http://ü.de/%2e%2e",
		"//x", "/x", "?", "http://x/%25%32%65", "http://127.1/", "http://x\\y/", "http://x/a//..//b", "http:x", "http://[fe80::1%25a]/", "http://%41/",
		"http://%A00000", "http://xn--0000-u70y/", "http://a\u2024b/", "https://a.test/p/a%2Fb", "https://a.test/p/%252F..;x"} {
		f.Add(seed, "")
		f.Add("https://a.test/p/q", seed)
	}
	rules := []HTTPRule{{Host: "a.test", Paths: []string{"/p/", "/q%2Fr"}}, {Host: "a.test", Paths: []string{"/p/"}, Approval: Deny}, {Host: "*"}}
	f.Fuzz(func(t *testing.T, first, second string) {
		u, refusal := ParseURL(nil, first)
		if (u == nil) == (refusal == nil) {
			t.Fatalf("%v, %v", u, refusal)
		}
		parsed, err := url.Parse(first)
		for _, r := range rules {
			matched := err == nil && len(first) <= maxURLBytes && utf8.ValidString(first) && r.Match("GET", parsed)
			if matched != (refusal == nil && r.Match("GET", u)) {
				t.Fatalf("%q: %s matches it: %t, and not so %v", first, r, matched, u)
			}
		}
		if refusal != nil {
			checkRefusal(t, refusal)
			return
		}
		checkCanonical(t, u)
		if next, refusal := ParseURL(u, second); refusal == nil {
			checkCanonical(t, next)
		} else {
			checkRefusal(t, refusal)
		}
	})
}

// checkCanonical holds what every URL must be that the rules decide about.
func checkCanonical(t *testing.T, u *url.URL) {
	t.Helper()
	again, refusal := CanonicalURL(u)
	if refusal != nil || *again != *u {
		t.Fatalf("%#v is read again as %#v: %v", u, again, refusal)
	}
	if text := u.String(); len(text) <= maxURLBytes {
		if again, refusal = ParseURL(nil, text); refusal != nil || again.String() != text {
			t.Fatalf("%q is read again as %v: %v", u, again, refusal)
		}
	}
	if host, err := CanonicalHost(u.Hostname()); err != nil || host != u.Hostname() {
		t.Fatalf("%q: host is canonically %q, %v", u, host, err)
	}
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		t.Fatalf("%#v", u)
	}
	line := u.RequestURI()
	if !strings.HasPrefix(line, "/") || strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		t.Fatalf("request line %q", line)
	}
	path := u.EscapedPath()
	for range 6 {
		for segment := range strings.FieldsFuncSeq(path, isSeparator) {
			if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
				t.Fatalf("path %q", u.Path)
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			break
		}
		path = decoded
	}
}

// checkRefusal holds that what a stranger wrote cannot break a line, or fill one.
func checkRefusal(t *testing.T, r *Refusal) {
	t.Helper()
	if r.Code <= 0 || r.Text == "" || len(r.Text) > 1000 || strings.ContainsAny(r.Text, "\r\n\x00") {
		t.Fatalf("%d %q", r.Code, r.Text)
	}
}
