package sdktest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

func TestWhatIsDeclared(t *testing.T) {
	for _, c := range []struct {
		rule        sdk.HTTP
		method, url string
		want        bool
	}{
		{sdk.HTTP{Host: "a.example"}, "GET", "https://a.example/x", true},
		{sdk.HTTP{Host: "a.example"}, "HEAD", "https://A.example", true},
		{sdk.HTTP{Host: "a.example"}, "POST", "https://a.example/", false},
		{sdk.HTTP{Host: "a.example"}, "GET", "http://a.example/", false},
		{sdk.HTTP{Host: "a.example"}, "GET", "https://a.example:8443/", false},
		{sdk.HTTP{Host: "a.example", Ports: []int{8443}}, "GET", "https://a.example:8443/", true},
		{sdk.HTTP{Host: "a.example", Ports: []int{8443}}, "GET", "https://a.example/", false},
		{sdk.HTTP{Host: "a.example", Scheme: "http"}, "GET", "http://a.example:80/", true},
		{sdk.HTTP{Host: "a.example", Methods: []string{"POST"}}, "GET", "https://a.example/", false},
		{sdk.HTTP{Host: "a.example", Methods: []string{"POST"}}, "POST", "https://a.example/", true},
		{sdk.HTTP{Host: "a.example"}, "GET", "https://b.a.example/", false},
		{sdk.HTTP{Host: "*.a.example"}, "GET", "https://b.a.example/", true},
		{sdk.HTTP{Host: "*.a.example"}, "GET", "https://a.example/", false},
		{sdk.HTTP{Host: "*.a.example"}, "GET", "https://c.b.a.example/", false},
		{sdk.HTTP{Host: "*"}, "GET", "https://b.example/", true},
		{sdk.HTTP{Host: "*", Paths: []string{"/v1/"}}, "GET", "https://a.example/v1/x", true},
		{sdk.HTTP{Host: "*", Paths: []string{"/v1"}}, "GET", "https://a.example/v1", true},
		{sdk.HTTP{Host: "*", Paths: []string{"/v1"}}, "GET", "https://a.example/v12", false},
		{sdk.HTTP{Host: "*", Paths: []string{"/v1"}}, "GET", "https://a.example/v1/../v2", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := matches(c.rule, c.method, u); got != c.want {
			t.Errorf("%+v: %s %s is %v", c.rule, c.method, c.url, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"": 7, "1KiB": 1 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30, "12B": 12, "many": 7} {
		if got := bytesOf(text, 7); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

// ask makes a request as a module that asks for these things, and returns the
// outcome, then the body or why there is none.
func ask(t *testing.T, h Host, asked sdk.Requests, body string) string {
	t.Helper()
	r := (&recorder{host: h, requests: asked}).Gated(sdk.Gated{Op: abi.OpHTTP}, []byte(body))
	var got struct {
		abi.HTTPResponse
		Error struct{ Message string }
	}
	if err := json.Unmarshal(r.Body, &got); err != nil {
		t.Fatal(err)
	}
	return r.Code.String() + " " + got.Body + got.Error.Message
}

// web redirects, and shows the secrets that reach it.
func web(w http.ResponseWriter, r *http.Request) {
	to := map[string]string{"/same": "/end", "/other": "https://b.example/end", "/loop": "/loop", "/out": "https://c.example/"}[r.URL.Path]
	switch {
	case r.URL.Path == "/see":
		http.Redirect(w, r, "/end", http.StatusSeeOther)
	case r.URL.Path == "/keep":
		http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
	case to != "":
		http.Redirect(w, r, to, http.StatusFound)
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization"), string(body)}, "|"))
	}
}

func TestRedirectsAndSecrets(t *testing.T) {
	host := Host{Web: http.HandlerFunc(web), Secrets: map[string]string{"key": "s3cret"}}
	rules := []sdk.HTTP{{Host: "a.example", Methods: []string{"GET", "POST"}}, {Host: "b.example", Methods: []string{"GET"}}}
	header := sdk.Requests{HTTP: rules, Secrets: []sdk.Secret{
		{Name: "key", Header: "Authorization", Prefix: "Bearer ", Host: "a.example", Paths: []string{"/see", "/end", "/other", "/keep", "/same"}},
	}}
	query := sdk.Requests{HTTP: rules, Secrets: []sdk.Secret{{Name: "key", Query: "k", Host: "a.example"}}}
	unset := sdk.Requests{HTTP: rules, Secrets: []sdk.Secret{{Name: "other", Query: "k", Host: "a.example"}}}
	for _, c := range []struct {
		asked      sdk.Requests
		body, want string
	}{
		{header, `{"url":"https://a.example/end"}`, "ok GET|https://a.example/end|Bearer s3cret|"},
		{header, `{"url":"https://a.example/else"}`, "ok GET|https://a.example/else||"},
		{header, `{"url":"https://b.example/end"}`, "ok GET|https://b.example/end||"},
		{header, `{"url":"https://a.example/same"}`, "ok GET|https://a.example/end|Bearer s3cret|"},
		{header, `{"url":"https://a.example/other"}`, "ok GET|https://b.example/end||"},
		{header, `{"url":"https://a.example/see","method":"POST","body":"b"}`, "ok GET|https://a.example/end|Bearer s3cret|"},
		{header, `{"url":"https://a.example/keep","method":"POST","body":"b"}`, "ok POST|https://a.example/end|Bearer s3cret|b"},
		{header, `{"url":"https://a.example/loop"}`, "limit http_request: more than 5 redirects"},
		{header, `{"url":"https://a.example/out"}`, "denied http_request: GET https://c.example/ is not in the module's Requests: declare it, or a host denies it"},
		{query, `{"url":"https://a.example/end?a=b"}`, "ok GET|https://a.example/end?a=b&k=s3cret||"},
		{unset, `{"url":"https://a.example/end"}`, "denied http_request: the secret other is not set"},
		{header, `{"url":"https://u:p@a.example/"}`, `invalid http_request: "https://u:p@a.example/" is no absolute URL with https or http and without a user`},
		{header, `{"url":"https://a.example/","method":"A B"}`, `denied http_request: A B https://a.example/ is not in the module's Requests: declare it, or a host denies it`},
		{header, `{"uri":"https://a.example/"}`, `invalid http_request: json: unknown field "uri"`},
	} {
		if got := ask(t, host, c.asked, c.body); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.body, got, c.want)
		}
	}
}

func TestPages(t *testing.T) {
	host := Host{Web: Pages{"GET https://a.example/": {Header: map[string]string{"X-A": "b"}, Body: "hi"}}}
	asked := sdk.Requests{HTTP: []sdk.HTTP{{Host: "*"}}}
	for body, want := range map[string]string{
		`{"url":"https://a.example/"}`:                 "ok hi",
		`{"url":"https://a.example/","method":"HEAD"}`: "ok ",
		`{"url":"https://a.example/x"}`:                "ok no page GET https://a.example/x; there are GET https://a.example/",
	} {
		if got := ask(t, host, asked, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// A module that leaves its hosts open is answered by all of them, with the methods
// that it asks for.
func TestOpenRequests(t *testing.T) {
	host := Host{Web: http.HandlerFunc(web)}
	asked := sdk.Requests{HTTP: []sdk.HTTP{{Methods: []string{"GET"}}}}
	for body, want := range map[string]string{
		`{"url":"http://a.example:8080/end"}`:             "ok GET|http://a.example:8080/end||",
		`{"url":"https://127.0.0.1/end"}`:                 "ok GET|https://127.0.0.1/end||",
		`{"url":"https://a.example/end","method":"POST"}`: "denied http_request: POST https://a.example/end is not in the module's Requests: declare it, or a host denies it",
	} {
		if got := ask(t, host, asked, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if got := ask(t, host, sdk.Requests{HTTP: []sdk.HTTP{{}}}, `{"url":"https://a.example/end","method":"PUT"}`); got != "ok PUT|https://a.example/end||" {
		t.Errorf("without methods: got %s", got)
	}
}

// An operation that no package of the SDK offers is refused, and not by a panic.
func TestOtherOperations(t *testing.T) {
	r := (&recorder{}).Gated(sdk.Gated{Op: abi.OpTool}, []byte(`{}`))
	if r.Code != abi.Denied || !strings.Contains(string(r.Body), "tool_call: this fake host does not have it") {
		t.Errorf("got %s %s", r.Code, r.Body)
	}
}
