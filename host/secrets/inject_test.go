package secrets_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
)

func rule(server *httptest.Server, header, prefix string) capability.SecretRule {
	host, _, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	return capability.SecretRule{Name: "github_token", Header: header, Prefix: prefix, Host: host}
}

// call asks the server for / with a secret put in, and returns what it answers.
func call(t *testing.T, v *secrets.Vault, server *httptest.Server, rules ...capability.SecretRule) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, server.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	i, err := v.Prepare(rules, secrets.Outbound{URL: req.URL.String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Apply(req.URL, req.Header); err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Client().CloseIdleConnections()
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(body), answer.Header
}

// A guest's request, and what becomes of it.
type injection struct {
	name   string
	url    string
	header http.Header
	body   string
	rules  []capability.SecretRule
	// want is the URL after it, and each header as "Name: value" in order.
	want []string
	code abi.Code // of the refusal, and
	text string   // what is in it
}

func githubRules() []capability.SecretRule {
	return []capability.SecretRule{{Name: "github_token", Header: "Authorization", Prefix: "Bearer ", Host: "api.github.com", Paths: []string{"/repos/"}}}
}

func weatherRules() []capability.SecretRule {
	return []capability.SecretRule{{Name: "weather", Query: "appid", Host: "*.weather.test"}}
}

func testVault(t *testing.T) *secrets.Vault {
	return vault(t, "github_token=ghp_0123456789abcdef", "weather=a b&c=0123", "slack=xoxb-0123456789", `pem="line 1\nline 2"`)
}

func runInjections(t *testing.T, tests []injection) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inject(t, testVault(t), tt)
			if tt.code == abi.OK {
				if err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("got %q, %v\nwant %q", got, err, tt.want)
				}
				return
			}
			var refusal *capability.Refusal
			if !errors.As(err, &refusal) || refusal.Code != tt.code || !strings.Contains(refusal.Text, tt.text) {
				t.Fatalf("got %q, %v\nwant %s with %q", got, err, tt.code, tt.text)
			}
			for _, value := range []string{"ghp_", "xoxb-", "a b&c"} {
				if strings.Contains(refusal.Text, value) {
					t.Errorf("the refusal shows a value: %s", refusal.Text)
				}
			}
		})
	}
}

func inject(t *testing.T, v *secrets.Vault, tt injection) ([]string, error) {
	t.Helper()
	i, err := v.Prepare(tt.rules, secrets.Outbound{URL: tt.url, Header: tt.header, Body: []byte(tt.body)})
	if err != nil {
		return nil, err
	}
	return apply(t, i, tt.url, tt.header)
}

func apply(t *testing.T, i *secrets.Injection, raw string, header http.Header) ([]string, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	err = i.Apply(u, h)
	got := []string{u.String()}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			got = append(got, name+": "+value)
		}
	}
	return got, err
}

func TestInject(t *testing.T) {
	const issues = "https://api.github.com/repos/a/b/issues"
	runInjections(t, []injection{
		{name: "a header that the guest leaves out", url: issues, rules: githubRules(),
			want: []string{issues, "Authorization: Bearer ghp_0123456789abcdef"}},
		{name: "a bare placeholder", url: issues, header: http.Header{"Authorization": {"secret://github_token"}}, rules: githubRules(),
			want: []string{issues, "Authorization: Bearer ghp_0123456789abcdef"}},
		{name: "a placeholder with the guest's own prefix", url: issues, header: http.Header{"authorization": {"token secret://github_token"}}, rules: githubRules(),
			want: []string{issues, "authorization: token ghp_0123456789abcdef"}},
		{name: "other headers stay", url: issues, header: http.Header{"Accept": {"a", "b"}}, rules: githubRules(),
			want: []string{issues, "Accept: a", "Accept: b", "Authorization: Bearer ghp_0123456789abcdef"}},
		{name: "a query that the guest leaves out", url: "https://eu.weather.test/now?q=K%C3%B6ln&&x", rules: weatherRules(),
			want: []string{"https://eu.weather.test/now?q=K%C3%B6ln&&x&appid=a+b%26c%3D0123"}},
		{name: "a placeholder in a query", url: "https://eu.weather.test/now?z=1&appid=secret%3A%2F%2Fweather&a=%zz", rules: weatherRules(),
			want: []string{"https://eu.weather.test/now?z=1&appid=a+b%26c%3D0123&a=%zz"}},
		{name: "no rule, nothing asked", url: issues, header: http.Header{"Authorization": {"Bearer the guest's own"}},
			want: []string{issues, "Authorization: Bearer the guest's own"}},
		{name: "two secrets in one header", url: "https://a.test/", header: http.Header{"X-Keys": {"secret://github_token:secret://slack"}},
			rules: []capability.SecretRule{{Name: "github_token", Header: "X-Keys", Host: "a.test"}, {Name: "slack", Header: "X-Keys", Host: "a.test"}},
			want:  []string{"https://a.test/", "X-Keys: ghp_0123456789abcdef:xoxb-0123456789"}},
		{name: "a placeholder twice in a header", url: issues, header: http.Header{"Authorization": {"secret://github_token,secret://github_token"}}, rules: githubRules(),
			code: abi.Denied, text: `secret://github_token is in the header "Authorization" more than once`},
		{name: "a placeholder twice in a parameter", url: "https://eu.weather.test/?appid=secret://weather,secret://weather", rules: weatherRules(),
			code: abi.Denied, text: `secret://weather is in the query parameter "appid" more than once`},
		{name: "a part of an answer", url: issues, header: http.Header{"range": {"bytes=0-9"}}, rules: githubRules(), code: abi.Denied, text: "leave the header Range out"},
		{name: "a part of an answer without a secret", url: "https://evil.test/", header: http.Header{"Range": {"bytes=0-9"}}, rules: githubRules(),
			want: []string{"https://evil.test/", "Range: bytes=0-9"}},
		{name: "a long URL", url: "https://a.test/?" + strings.Repeat("a", 8<<10), code: abi.Invalid, text: "at most 8192 are allowed"},
		{name: "two secrets for one header", url: "https://a.test/", code: abi.Denied, text: "two secrets are granted for the header X-Keys",
			rules: []capability.SecretRule{{Name: "github_token", Header: "X-Keys", Host: "a.test"}, {Name: "slack", Header: "x-keys", Host: "a.test"}}},
		{name: "two secrets for one parameter", url: "https://a.test/", code: abi.Denied, text: "two secrets are granted for the query parameter k",
			rules: []capability.SecretRule{{Name: "github_token", Query: "k", Host: "a.test"}, {Name: "slack", Query: "k", Host: "a.test"}}},
		{name: "the guest's own value in the host's header", url: issues, header: http.Header{"Authorization": {"Bearer of somebody else"}}, rules: githubRules(),
			code: abi.Denied, text: `the header "Authorization" is set by the host: leave it out, or write secret://github_token`},
		{name: "the guest's own value in the host's parameter", url: "https://eu.weather.test/?appid=mine", rules: weatherRules(),
			code: abi.Denied, text: `the query parameter "appid" is set by the host`},
		{name: "another name that begins alike", url: issues, header: http.Header{"Authorization": {"secret://github_token2"}}, rules: githubRules(),
			code: abi.Denied, text: "secret://github_token2 is not granted"},
		{name: "in the path", url: "https://api.github.com/repos/secret:%2F%2Fgithub_token/", rules: githubRules(), code: abi.Denied, text: "is in the URL before its query"},
		{name: "in a parameter's name", url: issues + "?secret://github_token=1", rules: githubRules(), code: abi.Denied, text: "is the name of a query parameter"},
		{name: "in the body", url: issues, body: `{"t":"secret://github_token"}`, rules: githubRules(), code: abi.Denied, text: "secret://github_token is in the body"},
		{name: "in the body, of a name that nobody granted", url: issues, body: "secret://slack", rules: githubRules(),
			want: []string{issues, "Authorization: Bearer ghp_0123456789abcdef"}},
		{name: "a value of several lines in a header", url: "https://a.test/", rules: []capability.SecretRule{{Name: "pem", Header: "X-Key", Host: "a.test"}},
			code: abi.Unavailable, text: "the secret pem cannot stand in a header"},
		{name: "a value of several lines in a query", url: "https://a.test/", rules: []capability.SecretRule{{Name: "pem", Query: "k", Host: "a.test"}},
			want: []string{"https://a.test/?k=line+1%0Aline+2"}},
		{name: "a rule with no place", url: issues, rules: []capability.SecretRule{{Name: "slack", Host: "api.github.com"}}, want: []string{issues}},
		{name: "a rule with two places", url: issues, rules: []capability.SecretRule{{Name: "slack", Header: "X", Query: "x", Host: "api.github.com"}}, want: []string{issues}},
	})
}

// A secret goes to its host, below its paths, into its header, and nowhere else.
func TestS17_SecretsGoToTheirHostAlone(t *testing.T) {
	bearer := http.Header{"Authorization": {"Bearer secret://github_token"}}
	refused := func(name, raw string, h http.Header, rules ...capability.SecretRule) injection {
		return injection{name: name, url: raw, header: h, rules: append(rules, githubRules()...), code: abi.Denied, text: "is not granted in the"}
	}
	other := capability.SecretRule{Name: "slack", Header: "Authorization", Host: "slack.test"}
	runInjections(t, []injection{
		refused("another host", "https://evil.test/repos/a", bearer),
		refused("another host with a secret of its own", "https://slack.test/repos/a", bearer, other),
		refused("a longer host", "https://api.github.com.evil.test/repos/a", bearer),
		refused("a host below", "https://x.api.github.com/repos/a", bearer),
		refused("another path", "https://api.github.com/gists", bearer),
		refused("a path that begins alike", "https://api.github.com/reposx", bearer),
		refused("a path that climbs", "https://api.github.com/repos/../gists", bearer),
		refused("another header", "https://api.github.com/repos/a", http.Header{"X-Copy": {"secret://github_token"}}),
		refused("a parameter", "https://api.github.com/repos/a?q=secret://github_token", nil),
		refused("a secret of another module", "https://api.github.com/repos/a", http.Header{"Authorization": {"secret://slack"}}),
		{name: "nothing is put in where no rule is about it", url: "https://evil.test/repos/a", rules: githubRules(), want: []string{"https://evil.test/repos/a"}},
		{name: "a wildcard is one label", url: "https://a.b.weather.test/", rules: weatherRules(), want: []string{"https://a.b.weather.test/"}},
		{name: "and not none", url: "https://weather.test/", rules: weatherRules(), want: []string{"https://weather.test/"}},
		{name: "a user in the URL", url: "https://secret%3A%2F%2Fgithub_token@api.github.com/repos/a", rules: githubRules(), code: abi.Denied, text: "before its query"},
	})
}

// Where a server redirects to is its choice, and no secret goes there unless it is
// the origin that the guest asked for.
func TestS17_RedirectsElsewhereGetNoSecret(t *testing.T) {
	rules := append(githubRules(), capability.SecretRule{Name: "slack", Header: "Authorization", Host: "slack.test"},
		capability.SecretRule{Name: "weather", Query: "appid", Host: "api.github.com"})
	header := http.Header{"Authorization": {"Bearer secret://github_token"}, "Accept": {"text/plain"}}
	const start = "https://api.github.com/repos/a"
	i, err := testVault(t).Prepare(rules, secrets.Outbound{URL: start, Header: header})
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Authorization: Bearer ghp_0123456789abcdef"
	for _, hop := range []struct {
		url    string
		header http.Header
		want   []string
	}{
		{start, header, []string{start + "?appid=a+b%26c%3D0123", "Accept: text/plain", bearer}},
		{"https://api.github.com:443/repos/b?x=1&appid=a+b%26c%3D0123", header, // as the server echoes it
			[]string{"https://api.github.com:443/repos/b?x=1&appid=a+b%26c%3D0123", "Accept: text/plain", bearer}},
		{"http://api.github.com/repos/b?appid=secret://weather", header, []string{"http://api.github.com/repos/b?", "Accept: text/plain"}},
		{"https://slack.test/", header, []string{"https://slack.test/", "Accept: text/plain"}},
		{start, header, []string{start, "Accept: text/plain"}}, // it has been elsewhere
	} {
		got, err := apply(t, i, hop.url, hop.header)
		if hop.want[0] == "http://api.github.com/repos/b?" && len(got) > 0 {
			got[0] = strings.TrimSuffix(got[0], "?") + "?"
		}
		if err != nil || !slices.Equal(got, hop.want) {
			t.Errorf("%s: got %q, %v\nwant %q", hop.url, got, err, hop.want)
		}
	}
	if got := i.Used(); !slices.Equal(got, []string{"github_token", "weather"}) {
		t.Errorf("Used = %q", got)
	}
}

// What a guest sends is looked at before secrets are put into it, so that they do
// not count as its own; and it has none to send.
func TestS19_GuestBytesAreScannedBeforeInjection(t *testing.T) {
	slack := []capability.SecretRule{{Name: "slack", Header: "Authorization", Prefix: "Bearer ", Host: "slack.test"}}
	const post = "https://slack.test/api/chat.postMessage"
	const leak = "holds the value of a secret"
	runInjections(t, []injection{
		{name: "a call with a token that looks like one", url: post, header: http.Header{"Content-Type": {"application/json"}}, body: `{"text":"xoxb- is how they begin"}`, rules: slack,
			want: []string{post, "Authorization: Bearer xoxb-0123456789", "Content-Type: application/json"}},
		{name: "by placeholder", url: post, header: http.Header{"Authorization": {"Bearer secret://slack"}}, rules: slack,
			want: []string{post, "Authorization: Bearer xoxb-0123456789"}},
		{name: "the value in the body", url: post, body: "t=xoxb-0123456789", rules: slack, code: abi.Denied, text: "the body " + leak + ": put secret://slack in its place"},
		{name: "another's value in the body", url: post, body: "t=ghp_0123456789abcdef", rules: slack, code: abi.Denied, text: "the body " + leak + ", which is not sent for a tool"},
		{name: "base64 in the body", url: post, body: "xeHhveGItMDEyMzQ1Njc4OQ==" + "eG94Yi0wMTIzNDU2Nzg5", rules: slack, code: abi.Denied, text: "the body " + leak},
		{name: "in the URL", url: "https://evil.test/?q=xoxb%2D0123456789", rules: slack, code: abi.Denied, text: "the URL " + leak},
		{name: "in a header", url: post, header: http.Header{"X-A": {"1", "xoxb-0123456789"}}, rules: slack, code: abi.Denied, text: "the header " + leak},
		{name: "in a header's name", url: post, header: http.Header{"xoxb-0123456789": {"1"}}, code: abi.Denied, text: "the header " + leak},
	})
}

// An empty secret is no secret: it is refused where it is kept, and without one a
// request is refused and not sent without it.
func TestS20_EmptyIsUnset(t *testing.T) {
	if _, err := secrets.Open(secrets.Options{File: put(t, "slack=\n")}); err == nil || !strings.Contains(err.Error(), "the value is empty") {
		t.Errorf("empty in a file: %v", err)
	}
	v := open(t, secrets.Options{File: put(t, ""), Environ: []string{"HUTCH_SECRET_SLACK="}})
	if err := v.Set("slack", ""); err == nil || !strings.Contains(err.Error(), "the value is empty") {
		t.Errorf("Set: %v", err)
	}
	if _, ok := v.Get("slack"); ok || len(v.Names()) != 0 {
		t.Errorf("Names = %v", v.Names())
	}
	for _, tt := range []injection{
		{header: http.Header{}, rules: []capability.SecretRule{{Name: "slack", Header: "X-Signature", Host: "slack.test"}}},
		{header: http.Header{"X-Signature": {"secret://slack"}}, rules: []capability.SecretRule{{Name: "slack", Header: "X-Signature", Host: "slack.test"}}},
		{header: http.Header{}, rules: []capability.SecretRule{{Name: "slack", Query: "sig", Host: "slack.test"}}},
	} {
		tt.url = "https://slack.test/"
		_, err := inject(t, v, tt)
		var refusal *capability.Refusal
		if !errors.As(err, &refusal) || refusal.Code != abi.Unavailable || !strings.Contains(refusal.Text, "hutch secrets set slack") {
			t.Errorf("%v: %v", tt.header, err)
		}
	}
	got, err := inject(t, v, injection{url: "https://slack.test/", header: http.Header{"X-Signature": {""}}, rules: []capability.SecretRule{{Name: "slack", Header: "X-Signature", Host: "slack.test"}}})
	if err == nil {
		t.Errorf("an empty header stands for an empty secret: %q", got)
	}
}

// A secret that was revoked during a call is not used by its next request.
func TestRevokedSecretIsNotInjected(t *testing.T) {
	v := testVault(t)
	asked := injection{url: "https://api.github.com/repos/a", rules: githubRules()}
	if _, err := inject(t, v, asked); err != nil {
		t.Fatal(err)
	}
	if err := v.Remove("github_token"); err != nil {
		t.Fatal(err)
	}
	if got, err := inject(t, v, asked); err == nil {
		t.Errorf("got %q", got)
	}
}

// What another process writes counts for requests 50 ms later at the latest; what this
// one writes, at once.
func TestInjectionLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := put(t, "github_token=first-value\n")
		v := open(t, secrets.Options{File: file})
		sends := func(when, want string) {
			t.Helper()
			rules := []capability.SecretRule{{Name: "github_token", Header: "X-Token", Host: "a.test"}}
			got, err := inject(t, v, injection{url: "https://a.test/", header: http.Header{}, rules: rules})
			if text := fmt.Sprint(got, err); !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %s", when, text, want)
			}
		}
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sends("as it was", "first-value")
		write("github_token=second-value\n")
		time.Sleep(49 * time.Millisecond)
		sends("looked at a moment ago", "first-value")
		time.Sleep(time.Millisecond)
		sends("set elsewhere", "second-value")
		write("")
		time.Sleep(50 * time.Millisecond)
		sends("removed elsewhere", "the secret github_token is not set")
		set(t, v, "github_token", "third-value")
		sends("set here", "third-value")
		if err := v.Remove("github_token"); err != nil {
			t.Fatal(err)
		}
		sends("removed here", "the secret github_token is not set")
	})
}

// S18: the names of parameters may come from a server that redirects. A value in one is
// taken out before the name is cut.
func TestS18_ErrorsAreCleanedBeforeTheyAreCut(t *testing.T) {
	value := strings.Repeat("0123456789", 12)
	v := vault(t, "token="+value)
	rules := []capability.SecretRule{{Name: "token", Query: "k", Host: "a.test"}}
	i, err := v.Prepare(rules, secrets.Outbound{URL: "https://a.test/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply(t, i, "https://a.test/", nil); err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{"https://a.test/?x" + value + "=secret://token"} {
		if _, err := apply(t, i, next, nil); err == nil || strings.Contains(err.Error(), value[:20]) || !strings.Contains(err.Error(), "[redacted:token]") {
			t.Errorf("%s: %v", next, err)
		}
	}
}

// A body is looked at when its request was decided about, and in little memory.
func TestBodiesAreLookedAtAfterTheDecision(t *testing.T) {
	v := vault(t, "slack=xoxb-0123456789")
	rules := []capability.SecretRule{{Name: "slack", Header: "Authorization", Host: "slack.test"}}
	out := secrets.Outbound{URL: "https://slack.test/", Body: []byte(strings.Repeat(`%41 secret://other&amp;\n`, 1<<15)), Header: map[string][]string{"X": {"xoxb-0123456789"}}}
	var i *secrets.Injection
	if got := allocated(func() { i, _ = v.Prepare(rules, out) }); i == nil || got > 16<<10 {
		t.Errorf("%d bytes for a request that nobody decided about", got)
	}
	if _, err := apply(t, i, out.URL, nil); err == nil || !strings.Contains(err.Error(), "the header holds the value") {
		t.Errorf("applied: %v", err)
	}
	out.Header = nil
	i, _ = v.Prepare(rules, out)
	if got := allocated(func() {
		if _, err := apply(t, i, out.URL, nil); err != nil {
			t.Error(err)
		}
	}); got > 2*int64(len(out.Body)) {
		t.Errorf("%d bytes for a body of %d", got, len(out.Body))
	}
}

func TestPlaceholders(t *testing.T) {
	if got := secrets.Placeholders("secret://b secret://a,secret://b-c secret://_x secret://b"); !slices.Equal(got, []string{"b", "a", "b-c"}) {
		t.Errorf("Placeholders = %q", got)
	}
	if got := secrets.Placeholder("a"); got != "secret://a" {
		t.Errorf("Placeholder = %q", got)
	}
}

// Whatever a guest asks for, a value stands in its own place or nowhere.
func FuzzInject(f *testing.F) {
	f.Add("https://api.github.com/repos/a?q=secret://github_token", "Authorization", "Bearer secret://github_token", "secret://slack")
	f.Add("https://eu.weather.test/?appid=secret%3a//weather&appid=1", "X", "secret://weather", "")
	f.Add("http://u@eu.weather.test:8080/%2e%2e/#secret://weather", "authorization", "", "{}")
	v, err := secrets.Open(secrets.Options{Environ: []string{"HUTCH_SECRET_GITHUB_TOKEN=ghp_0123456789abcdef", "HUTCH_SECRET_WEATHER=a b&c=0123"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw, name, value, body string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		h := http.Header{name: {value}}
		i, err := v.Prepare(append(githubRules(), weatherRules()...), secrets.Outbound{URL: raw, Header: h, Body: []byte(body)})
		if err == nil {
			err = i.Apply(u, h)
		}
		if err != nil {
			if _, n := v.Redactor().Text(err.Error()); n > 0 {
				t.Fatalf("the refusal shows a value: %v", err)
			}
			return
		}
		for key, values := range h {
			if strings.EqualFold(key, "Authorization") && u.Hostname() == "api.github.com" {
				continue
			}
			if _, n := v.Redactor().Text(key + ": " + strings.Join(values, "\n")); n > 0 {
				t.Fatalf("%s: the header %q has a value: %q", u, key, values)
			}
		}
		if strings.HasSuffix(u.Hostname(), ".weather.test") {
			query := u.Query()
			query.Del("appid")
			u.RawQuery = query.Encode()
		}
		if clean, n := v.Redactor().Text(u.String()); n > 0 {
			t.Fatalf("the URL has a value: %s", clean)
		}
	})
}
