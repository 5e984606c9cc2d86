package access_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
)

// room is what stands behind a door: it says who is there, and what they have on them.
var room = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	who, _ := access.From(r.Context())
	fmt.Fprintf(w, "%s %s%s", who.Principal, who.Token, r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Proxy-Authorization"))
})

// ask sends a request to a door. Headers are "Name: value"; Host and Remote are ours.
func ask(d *access.Door, route string, headers ...string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(route, " ")
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:8420"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "Remote":
			r.RemoteAddr = value
		case "At":
			at, err := net.ResolveTCPAddr("tcp", value)
			if err != nil {
				panic(err)
			}
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		case "TLS":
			r.TLS = &tls.ConnectionState{}
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	mux := http.NewServeMux()
	mux.Handle("/", room)
	mux.Handle("/metrics", d.Need(access.Admin)(room))
	for _, path := range d.MetadataPaths() {
		mux.HandleFunc(path, d.Metadata)
	}
	d.Wrap(mux).ServeHTTP(w, r)
	return w
}

// expect wants this body, or in what is refused this message.
func expect(t *testing.T, w *httptest.ResponseRecorder, code int, body string) {
	t.Helper()
	got := w.Body.String()
	if w.Code >= 400 {
		got = refused(t, w).Message
	}
	if w.Code != code || got != body {
		t.Errorf("%d %q, want %d %q", w.Code, got, code, body)
	}
}

type refusal struct{ Code, Message, RequestID string }

// refused reads what is said of a request that was not let in.
func refused(t *testing.T, w *httptest.ResponseRecorder) refusal {
	t.Helper()
	var said struct{ Error refusal }
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%q with %v: %v", w.Body, w.Header(), err)
	}
	return said.Error
}

// Who is not let in reads that in the form which all errors outside of MCP have, with the id
// of the request.
func TestRefusalsAreJSON(t *testing.T) {
	tok, text := newToken(t, "ci", "alice")
	d := access.NewDoor(openKeys(t, tok), access.Options{})
	for range access.MaxFailures {
		ask(d, "POST /mcp", "Remote: 192.0.2.9:1", "Authorization: Bearer x")
	}
	for _, c := range []struct {
		route, header string
		status        int
		code          string
		challenge     bool
	}{
		{"POST /mcp", "Host: evil.test", 403, "forbidden", false},
		{"POST /mcp", "Origin: http://evil.test", 403, "forbidden", false},
		{"POST /mcp", "Cookie: a=b", 401, "unauthorized", true},
		{"POST /mcp", "Authorization: Bearer x", 401, "unauthorized", true},
		{"GET /metrics", "Authorization: Bearer " + text, 403, "forbidden", true},
		{"POST /mcp", "Authorization: Bearer y", 429, "too_many_requests", true},
	} {
		headers := []string{c.header}
		if c.status == 429 {
			headers = append(headers, "Remote: 192.0.2.9:1")
		}
		w := ask(d, c.route, headers...)
		got := refused(t, w)
		if w.Code != c.status || got.Code != c.code || got.Message == "" || (w.Header().Get("WWW-Authenticate") != "") != c.challenge {
			t.Errorf("%s %s: %d %+v %v", c.route, c.header, w.Code, got, w.Header())
		}
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "r1")
	d.Wrap(room).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := refused(t, w); got.RequestID != "r1" {
		t.Errorf("the id of the request: %+v", got)
	}
}

// H-20: a token is needed as soon as there is one, everywhere but where it is public.
func TestDoorIsClosedByAToken(t *testing.T) {
	tok, text := newToken(t, "ci", "alice")
	keys := openKeys(t)
	d := access.NewDoor(keys, access.Options{Public: []string{"/healthz"}})
	expect(t, ask(d, "POST /mcp"), 200, "local ")
	expect(t, ask(d, "GET /metrics", "Authorization: Bearer what", "Cookie: a=b", "Proxy-Authorization: x"), 200, "local ")
	if err := keys.Add(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	none := "a token is needed: send the header Authorization: Bearer TOKEN"
	for _, route := range []string{"POST /mcp", "GET /mcp", "OPTIONS /mcp", "DELETE /mcp", "GET /", "GET /metrics", "GET /healthz/", "GET /%68ealthz", "GET /any"} {
		expect(t, ask(d, route), 401, none)
	}
	expect(t, ask(d, "GET /healthz"), 200, " ")
	expect(t, ask(d, "POST /mcp", "Authorization: Bearer "+text, "Cookie: a=b", "Proxy-Authorization: x"), 200, "alice ci")
	expect(t, ask(d, "GET /healthz", "Authorization: Bearer "+text), 200, " ")
	other, _ := newToken(t, "other", "bob")
	if err := errors.Join(keys.Add(t.Context(), other), keys.Revoke(t.Context(), "ci", false)); err != nil {
		t.Fatal(err)
	}
	expect(t, ask(d, "POST /mcp", "Authorization: Bearer "+text), 401, "the token is not known, or was revoked")
	if err := keys.Revoke(t.Context(), "other", true); err != nil {
		t.Fatal(err)
	}
	expect(t, ask(d, "POST /mcp"), 200, "local ")
	expect(t, ask(access.NewDoor(keys, access.Options{Closed: true}), "POST /mcp"), 401, none)
	expect(t, ask(access.NewDoor(openKeys(t), access.Options{Closed: true}), "POST /mcp"), 401, none)
}

// E3-14: what is no token that is known is 401, with what a client needs to find out more.
func TestE3_14_WrongTokens(t *testing.T) {
	tok, text := newToken(t, "ci", "alice")
	old, oldText := newToken(t, "old", "alice")
	old.Expires = noon
	old.Created = noon.Add(-time.Hour)
	other, _ := newToken(t, "other", "bob")
	d := access.NewDoor(openKeys(t, tok, old, other), access.Options{Resources: []string{"/mcp"}})
	meta := `resource_metadata="http://localhost:8420/.well-known/oauth-protected-resource/mcp"`
	none := `Bearer realm="hutch", ` + meta
	unknown := `Bearer realm="hutch", error="invalid_token", error_description="the token is not known", ` + meta
	for i, c := range []struct {
		headers   []string
		code      int
		challenge string
	}{
		{nil, 401, none},
		{[]string{"Authorization: Basic YTpi"}, 401, none},
		{[]string{"Authorization: "}, 401, none},
		{[]string{"Authorization: " + text}, 401, none},
		{[]string{"Authorization: Bearer"}, 401, unknown},
		{[]string{"Authorization: Bearer  "}, 401, unknown},
		{[]string{"Authorization: Bearer a b"}, 401, unknown},
		{[]string{"Authorization: Bearer " + text + "\x00"}, 401, unknown},
		{[]string{"Authorization: Bearer " + text + "="}, 401, unknown},
		{[]string{"Authorization: Bearer " + text[:40]}, 401, unknown},
		{[]string{"Authorization: Bearer " + strings.ToLower(text)}, 401, unknown},
		{[]string{"Authorization: Bearer hutch_" + other.ID + text[14:]}, 401, unknown},
		{[]string{"Authorization: Bearer hutch_aaaaaaaa" + text[14:]}, 401, unknown},
		{[]string{"Authorization: Bearer " + strings.Repeat("x", 257)}, 401, unknown},
		{[]string{"Authorization: Bearer " + strings.Repeat("A", 60<<10)}, 401, unknown},
		{[]string{"Authorization: Bearer " + oldText}, 401, `Bearer realm="hutch", error="invalid_token", error_description="the token has expired", ` + meta},
		{[]string{"Authorization: Bearer " + text, "Authorization: Bearer " + text}, 400, `Bearer realm="hutch", error="invalid_request", error_description="two tokens", ` + meta},
		{[]string{"Authorization: Bearer " + text}, 200, ""},
		{[]string{"Authorization: bearer   " + text}, 200, ""},
	} {
		w := ask(d, "POST /mcp", append(c.headers, fmt.Sprintf("Remote: 192.0.2.%d:1", i))...)
		if w.Code != c.code || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%.60q: %d %s\nwant %d %s", c.headers, w.Code, w.Header().Get("WWW-Authenticate"), c.code, c.challenge)
		}
	}
	expect(t, ask(d, "POST /mcp?access_token="+text), 401, "a token is needed: send the header Authorization: Bearer TOKEN")
}

// H16: what a token may not do is 403, and says which scope it takes.
func TestH16_MissingScope(t *testing.T) {
	plain, plainText := newToken(t, "ci", "alice", access.ThreadsRead)
	admin, adminText := newToken(t, "ops", "alice", access.Admin)
	d := access.NewDoor(openKeys(t, plain, admin), access.Options{})
	w := ask(d, "GET /metrics", "Authorization: Bearer "+plainText)
	expect(t, w, 403, "the token lacks the scope admin")
	want := `Bearer realm="hutch", error="insufficient_scope", error_description="the token lacks a scope", scope="admin", resource_metadata="http://localhost:8420/.well-known/oauth-protected-resource"`
	if got := w.Header().Get("WWW-Authenticate"); got != want {
		t.Error(got)
	}
	expect(t, ask(d, "GET /metrics", "Authorization: Bearer "+adminText), 200, "alice ops")
	// H18: without an identity there is no scope.
	w = httptest.NewRecorder()
	d.Need(access.Admin)(room).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	expect(t, w, 403, "the token lacks the scope admin")
}

func TestMetadata(t *testing.T) {
	tok, _ := newToken(t, "ci", "alice")
	keys := openKeys(t)
	d := access.NewDoor(keys, access.Options{Resources: []string{"/mcp"}})
	if w := ask(d, "GET /.well-known/oauth-protected-resource/mcp"); w.Code != 404 {
		t.Errorf("metadata without tokens: %d", w.Code)
	}
	if err := keys.Add(t.Context(), tok); err != nil {
		t.Fatal(err)
	}
	proxied := access.NewDoor(keys, access.Options{Resources: []string{"/mcp"}, URL: "https://hutch.example.org"})
	for _, c := range []struct {
		door             *access.Door
		path, host, want string
	}{
		{d, "", "Host: LOCALHOST:8420", "http://localhost:8420"},
		{d, "/mcp", "Host: 127.0.0.1:8420", "http://127.0.0.1:8420/mcp"},
		{d, "/mcp", "TLS: yes", "https://localhost:8420/mcp"},
		{proxied, "/mcp", "Host: hutch.example.org", "https://hutch.example.org/mcp"},
	} {
		w := ask(c.door, "GET /.well-known/oauth-protected-resource"+c.path, c.host)
		var got struct {
			Resource string   `json:"resource"`
			Methods  []string `json:"bearer_methods_supported"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%d %v", w.Code, err)
		}
		if got.Resource != c.want || len(got.Methods) != 1 || len(got.Scopes) != len(access.Scopes()) {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
	if w := ask(d, "GET /.well-known/oauth-protected-resource/other"); w.Code != 401 {
		t.Errorf("metadata of what there is not: %d", w.Code)
	}
}

// A good token is let in from where many wrong ones came.
func TestWrongTokensAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tok, text := newToken(t, "ci", "alice")
		var log strings.Builder
		why := map[string]int{}
		keys, err := access.OpenKeys(t.Context(), &memory{all: []access.Token{tok}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := access.NewDoor(keys, access.Options{Refused: func(w string) { why[w]++ }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		wrong := func(from string) int {
			return ask(d, "POST /mcp", "Authorization: Bearer "+text[:40]+"_", "Remote: "+from).Code
		}
		for range access.MaxFailures {
			if code := wrong("[2001:db8::1]:1"); code != 401 {
				t.Fatalf("%d", code)
			}
		}
		time.Sleep(time.Second)
		for range 3 {
			w := ask(d, "POST /mcp", "Authorization: Bearer wrong", "Remote: [2001:db8::2]:2")
			if w.Code != 429 || w.Header().Get("Retry-After") != "59" {
				t.Errorf("%d, wait %s", w.Code, w.Header().Get("Retry-After"))
			}
		}
		if code := wrong("[2001:db8:0:1::1]:1"); code != 401 {
			t.Errorf("another network: %d", code)
		}
		if code := ask(d, "POST /mcp", "Remote: [2001:db8::1]:1").Code; code != 401 {
			t.Errorf("no token: %d", code)
		}
		expect(t, ask(d, "POST /mcp", "Authorization: Bearer "+text, "Remote: [2001:db8::1]:1"), 200, "alice ci")
		time.Sleep(access.FailureWindow)
		if code := wrong("[2001:db8::1]:1"); code != 401 {
			t.Errorf("a minute later: %d", code)
		}
		if why["slowed"] != 3 || why["malformed"] != 22 || why["none"] != 1 || strings.Count(log.String(), "many wrong tokens") != 1 {
			t.Errorf("%v, log %s", why, &log)
		}
		if strings.Contains(log.String(), text[15:40]) {
			t.Error("a token is in the log")
		}
		for i := range 2000 { // more addresses than are told apart
			wrong(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250))
		}
		if code := wrong("10.1.0.1:1"); code != 429 {
			t.Errorf("an address that nobody tells apart: %d", code)
		}
	})
}

// A stream ends with the token that opened it, whether that is revoked or expires.
func TestStreamsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tok, text, err := access.New("ci", "alice", nil, time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		lasting, lastingText := newToken(t, "lasting", "alice")
		keys, err := access.OpenKeys(t.Context(), &memory{all: []access.Token{tok, lasting}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := access.NewDoor(keys, access.Options{})
		ended := map[string]time.Time{}
		start := time.Now()
		done := make(chan string, 2)
		for name, text := range map[string]string{"ci": text, "lasting": lastingText} {
			r := httptest.NewRequest("GET", "/stream", nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+text)
			go d.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				done <- name
			})).ServeHTTP(httptest.NewRecorder(), r)
		}
		time.AfterFunc(2*time.Hour, func() {
			if err := keys.Revoke(t.Context(), "lasting", false); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			ended[<-done] = time.Now()
		}
		if ended["ci"].Sub(start) != time.Hour || ended["lasting"].Sub(start) != 2*time.Hour {
			t.Errorf("%v", ended)
		}
	})
}

// What was let in without a token is cut off when there is the first one.
func TestStreamsEndWithTheOpenDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := openKeys(t)
		was, _ := newToken(t, "was", "alice") // a door that was opened again is as one that never was closed
		if err := errors.Join(keys.Add(t.Context(), was), keys.Revoke(t.Context(), "was", true)); err != nil {
			t.Fatal(err)
		}
		d := access.NewDoor(keys, access.Options{})
		done := make(chan struct{})
		r := httptest.NewRequest("GET", "/stream", nil)
		r.Host = "localhost"
		go d.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(done)
		})).ServeHTTP(httptest.NewRecorder(), r)
		synctest.Wait()
		tok, _ := newToken(t, "ci", "alice")
		if err := keys.Add(t.Context(), tok); err != nil {
			t.Fatal(err)
		}
		<-done
	})
}

// H01, H02: names that could have been rebound, and pages of others.
func TestH01_H02_HostsAndOrigins(t *testing.T) {
	o := access.Options{
		Hosts: []string{"hutch.example.org", "kiwi.example.org", "203.0.113.5", "::ffff:127.0.0.2"}, Origins: []string{"https://app.example.org"}, URL: "https://public.example.org",
	}
	d := access.NewDoor(openKeys(t), o)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8420": 200, "localhost:1": 200, "127.0.0.1:8420": 200, "[::1]:8420": 200, "[0:0:0:0:0:0:0:1]": 200, "::1": 200,
		"kiwi.example.org": 200, "\u212aiwi.example.org": 403, "hutch.example.org": 200, "Hutch.Example.org:443": 200, "public.example.org": 200, "203.0.113.5:8420": 200, "127.0.0.2:8420": 200,
		"evil.test": 403, "localhost.": 403, "hutch.example.org.": 403, "sub.hutch.example.org": 403, "example.org": 403, "localhost:": 403, "localhost:65536": 403,
		"localhost:http": 403, "localhost:1:1": 403, "[::1": 403, "[::1%25lo]:8420": 403, "[localhost]": 403, "loCalho\u017ft": 403, "127.1": 403, "0177.0.0.1": 403,
		"[::ffff:127.0.0.1]": 403, "": 403, ":8420": 403, "localhost@evil.test": 403, "192.0.2.1": 403,
	} {
		if got := ask(d, "GET /mcp", "Host: "+host, "At: 127.0.0.1:8420").Code; got != want {
			t.Errorf("host %q: %d, want %d", host, got, want)
		}
	}
	for at, want := range map[string]int{"192.0.2.1:8420": 200, "[::ffff:192.0.2.1]:8420": 200, "192.0.2.2:8420": 403} {
		if got := ask(d, "GET /mcp", "Host: 192.0.2.1:8420", "At: "+at).Code; got != want {
			t.Errorf("the address that came in at %s: %d, want %d", at, got, want)
		}
	}
	for origin, want := range map[string]int{
		"http://localhost:8420": 200, "http://LOCALHOST:8420": 200, "https://app.example.org": 200, "https://public.example.org": 200,
		"null": 403, "": 403, "http://evil.test": 403, "https://app.example.org.evil.test": 403, "https://sub.app.example.org": 403, "http://app.example.org": 403,
		"https://app.example.org:8443": 403, "https://app.example.org/": 403, "http://localhost": 403, "http://localhost:8421": 403, "https://localhost:8420": 403,
		"http://127.0.0.1:8420": 403, "http://localho\u017ft:8420": 403, "http://x@localhost:8420": 403, "file://": 403, "HTTPS://APP.example.org": 403,
	} {
		if got := ask(d, "GET /mcp", "Origin: "+origin).Code; got != want {
			t.Errorf("origin %q: %d, want %d", origin, got, want)
		}
	}
	for _, first := range []string{"https://app.example.org", "http://localhost:8420"} {
		if got := ask(d, "GET /mcp", "Origin: "+first, "Origin: "+first).Code; got != 403 {
			t.Errorf("two origins: %d", got)
		}
	}
	if got := ask(d, "GET /mcp", "Origin: https://localhost:8420", "TLS: yes").Code; got != 200 {
		t.Errorf("our own page over TLS: %d", got)
	}
}

func TestCORS(t *testing.T) {
	tok, _ := newToken(t, "ci", "alice")
	d := access.NewDoor(openKeys(t, tok), access.Options{Origins: []string{"https://app.example.org"}})
	w := ask(d, "OPTIONS /mcp", "Origin: https://app.example.org", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: authorization, Mcp-Param-Place, x-evil, mcp-param-a:b, mcp-param-place")
	h := w.Header()
	if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "https://app.example.org" || h.Get("Access-Control-Allow-Methods") == "" ||
		!strings.HasSuffix(h.Get("Access-Control-Allow-Headers"), "Mcp-Session-Id, mcp-param-place") || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", w.Code, h)
	}
	long := strings.Repeat("mcp-param-a,", 400)
	if h := ask(d, "OPTIONS /mcp", "Origin: https://app.example.org", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: "+long).Header(); strings.Contains(h.Get("Access-Control-Allow-Headers"), "mcp-param") {
		t.Error("a list over the limit was looked at")
	}
	// The page can read why it was refused; another one learns nothing, and no preflight
	// goes past the door.
	w = ask(d, "POST /mcp", "Origin: https://app.example.org")
	if w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.org" || !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, headers := range [][]string{
		{"Origin: https://evil.test", "Access-Control-Request-Method: POST"},
		{"Origin: https://app.example.org", "Host: evil.test", "Access-Control-Request-Method: POST"},
	} {
		if w := ask(d, "OPTIONS /mcp", headers...); w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %d %v", headers, w.Code, w.Header())
		}
	}
	for _, headers := range [][]string{{"Access-Control-Request-Method: POST"}, {"Origin: http://localhost:8420", "Access-Control-Request-Method: POST"}} {
		if w := ask(d, "OPTIONS /mcp", headers...); w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %d %v", headers, w.Code, w.Header())
		}
	}
	if v := w.Header().Values("Vary"); len(v) == 0 || v[0] != "Origin" {
		t.Errorf("vary %q", v)
	}
}

func TestCheckAddresses(t *testing.T) {
	for _, c := range []struct {
		check func(string) error
		good  []string
		bad   []string
	}{
		{access.CheckOrigin, []string{"https://a.example", "http://localhost:3000", "http://[::1]:3000", "moz-extension://abc"},
			[]string{"", "*", "null", "https://a.example/", "https://A.example", "a.example", "https://a.example:443", "http://a.example:80", "https://u@a.example", "https://a.example?x"}},
		{access.CheckHost, []string{"hutch", "hutch.example.org", "10.0.0.1", "::1", "Hutch_1"},
			[]string{"", "hutch:8420", "https://hutch", "*.example.org", "a..b", "hutch.", "-a", "a b", "[::1]", strings.Repeat("a", 64)}},
		{access.CheckURL, []string{"https://hutch.example.org", "http://10.0.0.1:8420", "https://[2001:db8::1]"},
			[]string{"", "hutch.example.org", "https://hutch.example.org/", "https://hutch.example.org/x", "ftp://hutch", "https://a b", "https://*.example.org"}},
	} {
		for _, text := range c.good {
			if err := c.check(text); err != nil {
				t.Error(err)
			}
		}
		for _, text := range c.bad {
			if err := c.check(text); err == nil {
				t.Errorf("%q is accepted", text)
			}
		}
	}
}
