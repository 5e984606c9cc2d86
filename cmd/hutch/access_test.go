package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/owner"
)

// madeToken is a token and its text.
func madeToken(t *testing.T, name, principal string, scopes ...string) (access.Token, string) {
	t.Helper()
	tok, text, err := access.New(name, principal, scopes, time.Now(), time.Time{})
	must(t, err)
	return tok, text
}

// H-20: a route is closed unless it is known to be public, one that is added too.
func TestEveryRouteIsClosed(t *testing.T) {
	tok, text := madeToken(t, "ci", "alice")
	ops, opsText := madeToken(t, "ops", "alice", access.Admin)
	var reached atomic.Int32
	h := testHandler(t, &reached, nil, tok, ops)
	ask := func(method, path, text string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		r.Host = "localhost"
		if text != "" {
			r.Header.Set("Authorization", "Bearer "+text)
		}
		return answer(h, r)
	}
	public := []string{"/healthz", "/readyz", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"}
	routes := 0
	must(t, chi.Walk(h.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		want := http.StatusUnauthorized
		if slices.Contains(public, route) {
			want = http.StatusOK
		}
		if got := ask(method, route, "").Code; method != http.MethodConnect && got != want && (want != 200 || method == http.MethodGet) {
			t.Errorf("%s %s without a token: %d, want %d", method, route, got, want)
		}
		routes++
		return nil
	}))
	if routes < 60 || reached.Load() != 0 {
		t.Errorf("%d routes, %d requests without a token reached the face", routes, reached.Load())
	}
	for _, c := range []struct {
		route, text string
		want        int
	}{
		{"POST /mcp", text, 200}, {"POST /mcp", opsText, 200}, {"GET /metrics", text, 403}, {"GET /metrics", opsText, 200},
		{"GET /api/v1/tasks", "", 401}, {"GET /api/v1/nothing", "", 401}, {"GET /api/v1/nothing", text, 404}, {"GET /api/v1/openapi.json", text, 200},
		{"GET /ws", "", 401}, {"GET /ws", text, 400}, {"GET /nothing", "", 401}, {"GET /nothing", text, 404}, {"POST /mcp", text[:40] + "_", 401},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		if got := ask(method, path, c.text).Code; got != c.want {
			t.Errorf("%s with %.10s: %d, want %d", c.route, c.text, got, c.want)
		}
	}
	busy := testHandler(t, &reached, fmt.Errorf("loading: 3 of 5 modules are known"), tok)
	r := httptest.NewRequest("GET", "/readyz", nil)
	r.Host = "localhost"
	if w := answer(busy, r); w.Code != 503 || w.Body.String() != "loading\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// bearerOf is a client that sends a token with every request.
type bearerOf string

func (b bearerOf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (s *served) clientOf(t *testing.T, version, text string) *client {
	t.Helper()
	return newTestClient(t, version, &sdk.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearerOf(text)}, MaxRetries: -1})
}

// says calls a tool and returns what it says.
func (c *client) says(t *testing.T, name string) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
	if err != nil {
		return err.Error()
	}
	raw, err := json.Marshal(res.StructuredContent)
	must(t, err)
	return string(raw)
}

// E3-15, H15: a client with a token keeps what it keeps under the token's principal, in both
// eras, and neither tools, what they reach, nor the log see the token.
func TestE3_15_TokensOfAClient(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(sayBack))
	cfg, p := newTestConfig(t, nil)
	log := &transcript{}
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer s.end(t)
	defer upstream.Close()
	texts := map[string]string{}
	for name, principal := range map[string]string{"alice": "alice", "ci": "alice", "bob": "bob"} {
		tok, text := madeToken(t, name, principal)
		must(t, s.app.keys.Add(t.Context(), tok))
		texts[name] = text
	}
	ask := func(name string, op abi.Op, body string) []byte {
		return dialecttest.Module{
			Tools:    []tool.Spec{dialecttest.Spec(name)},
			Requests: tool.Requests{op.Capability(): []byte(`[{"reason":"It asks."}]`)},
			Do:       []dialecttest.Step{dialecttest.Op(op, 1, body)},
		}.Bytes()
	}
	// put writes only what is not there yet, so it says whether the principal has it.
	s.drop(t, "put.wasm", ask("put", abi.OpKVSet, `{"key":"mine","value":"v","ifVersion":0}`))
	s.drop(t, "reach.wasm", ask("reach", abi.OpHTTP, fmt.Sprintf(`{"method":"GET","url":%q}`, upstream.URL+"/")))
	put, reaches := s.awaitModule(t, "put.wasm"), s.awaitModule(t, "reach.wasm")
	s.decideAll(t, letting(reaches, reach(t, upstream.URL, "")), strings.Replace(letting(put, ""), "http: []", "kv: {}", 1))
	s.awaitReadyModule(t, "put.wasm", "reach.wasm")

	for _, version := range []string{"2025-11-25", "2026-07-28"} { // the first of a principal stores
		anyone := &http.Client{Transport: &http.Transport{}}
		_, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: anyone, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err == nil {
			t.Error("a client without a token came in")
		}
		for _, name := range []string{"alice", "ci", "bob"} {
			c := s.clientOf(t, version, texts[name])
			got := c.says(t, "put")
			if first := version == "2025-11-25" && name != "ci"; strings.Contains(got, `"stored":true`) != first {
				t.Errorf("%s, %s: %s", version, name, got)
			}
			if got := c.says(t, "reach"); !strings.Contains(got, `GET / for \"\"`) {
				t.Errorf("%s, %s: upstream saw %s", version, name, got)
			}
			c.close(t)
		}
	}
	for _, text := range texts {
		if strings.Contains(log.String(), text[len(text)-26:]) {
			t.Error("a token is in the log")
		}
	}
	if strings.Contains(log.String(), "Bearer hutch_") {
		t.Error("a header with a token is in the log")
	}
}

// A client whose token is revoked is cut off, with the stream that it has open.
func TestRevokedTokensOfAClient(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	tok, text := madeToken(t, "ci", "alice")
	must(t, s.app.keys.Add(t.Context(), tok))
	c := s.clientOf(t, "2026-07-28", text)
	if got := c.says(t, "none"); !strings.Contains(got, "none") {
		t.Errorf("before: %s", got)
	}
	send := func(method, session, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/mcp", strings.NewReader(body))
		must(t, err)
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		resp, err := bearerOf(text).RoundTrip(r)
		must(t, err)
		return resp
	}
	opened := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	must(t, opened.Body.Close())
	stream := send(http.MethodGet, opened.Header.Get("Mcp-Session-Id"), "")
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	other, _ := madeToken(t, "other", "bob")
	must(t, s.app.keys.Add(t.Context(), other))
	must(t, s.app.keys.Revoke(t.Context(), "ci", false))
	if _, err := io.Copy(io.Discard, stream.Body); err != nil { // it ends, or this test does not
		t.Log(err)
	}
	must(t, stream.Body.Close())
	if got := c.says(t, "none"); !strings.Contains(got, "401") && !strings.Contains(got, "Unauthorized") {
		t.Errorf("after: %s", got)
	}
	_ = c.Close() // it may not end what it has no token for
}

// The metadata is what a client of go-sdk takes, from the challenge of a refused request on.
func TestMetadataForAClient(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	tok, _ := madeToken(t, "ci", "alice")
	must(t, s.app.keys.Add(t.Context(), tok))
	resp, err := http.Post(s.url+"/mcp", "application/json", strings.NewReader("{}"))
	must(t, err)
	must(t, resp.Body.Close())
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil || len(challenges) != 1 || challenges[0].Scheme != "bearer" || resp.StatusCode != 401 {
		t.Fatalf("%d, %v, %v", resp.StatusCode, challenges, err)
	}
	meta, err := oauthex.GetProtectedResourceMetadata(t.Context(), challenges[0].Params["resource_metadata"], s.url+"/mcp", http.DefaultClient)
	if err != nil || !slices.Equal(meta.BearerMethodsSupported, []string{"header"}) || len(meta.AuthorizationServers) != 0 {
		t.Errorf("%+v, %v", meta, err)
	}
}

// awaitReadyModule waits until modules serve.
func (s *served) awaitReadyModule(t *testing.T, names ...string) {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(5 * time.Millisecond); ; {
		left := slices.Clone(names)
		for _, m := range s.app.modules.Modules() {
			if m.Status == tool.Ready {
				left = slices.DeleteFunc(left, func(name string) bool { return name == m.Name })
			}
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%q do not serve", left)
		}
	}
}

func TestDoctorLooksAtTokens(t *testing.T) {
	cfg, _ := newTestConfig(t, nil)
	st, err := openState(cfg.State)
	must(t, err)
	add := func(name string, expires time.Time) {
		tok, _, err := access.New(name, "alice", nil, time.Now().Add(-time.Hour), expires)
		must(t, err)
		must(t, cfg.changeTokensAlone(t.Context(), st, func(k *access.Keys) error { return k.Add(t.Context(), tok) }))
	}
	add("old", time.Now().Add(-time.Minute))
	if got := checkTokens(t.Context(), patient{cfg: cfg})[0]; got.Status != verdictWarn || got.Found != "1 token, all expired: nobody is let in" {
		t.Errorf("%v", got)
	}
	add("new", time.Time{})
	if got := checkTokens(t.Context(), patient{cfg: cfg})[0]; got.Status != verdictOK || got.Found != "2 tokens, 1 of them expired" {
		t.Errorf("%v", got)
	}
}

// What an owner is told about tokens is checked as if it came from anyone.
func TestTokensOverTheSocket(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t) // the server lingers over a body that it did not read
	c, err := owner.Dial(t.Context(), s.app.cfg.State)
	must(t, err)
	send := func(method, path string, body []byte) (int, string) {
		t.Helper()
		resp, err := c.Do(t.Context(), method, path, bytes.NewReader(body))
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		return resp.StatusCode, string(text)
	}
	token := func(name string, change func(*access.Token)) []byte {
		tok, _ := madeToken(t, name, "alice")
		change(&tok)
		raw, err := json.Marshal(tok)
		must(t, err)
		return raw
	}
	as := func(*access.Token) {}
	for _, step := range []struct {
		name, path string
		body       []byte
		code       int
		says       string
	}{
		{"no JSON", tokensPath, []byte("nothing"), 400, "the token cannot be read"},
		{"unknown field", tokensPath, []byte(`{"name":"a","text":"hutch_"}`), 400, "unknown field"},
		{"too large", tokensPath, []byte(`{"name":"` + strings.Repeat("n", maxToken) + `"}`), 400, "too large"},
		{"no name", tokensPath, token("a", func(t *access.Token) { t.Name = "" }), 422, "name of 0 characters"},
		{"no hash", tokensPath, token("a", func(t *access.Token) { t.Hash = nil }), 422, "a hash that is none"},
		{"unknown scope", tokensPath, token("a", func(t *access.Token) { t.Scopes = []string{"root"} }), 422, "there are admin, "},
		{"good", tokensPath, token("a", as), 204, ""},
		{"the same name", tokensPath, token("a", as), 409, "there is a token of that name"},
		{"nobody's", revokedPath, []byte(`{"name":"b"}`), 404, "there is no token of that name"},
		{"the last", revokedPath, []byte(`{"name":"a"}`), 409, "it is the last token"},
		{"revoked", revokedPath, []byte(`{"name":"a","open":true}`), 204, ""},
		{"again", revokedPath, []byte(`{"name":"a"}`), 404, "there is no token of that name"},
		{"none", revokedPath, []byte(`[]`), 400, "the token cannot be read"},
	} {
		if code, text := send(http.MethodPost, step.path, step.body); code != step.code || !strings.Contains(text, step.says) {
			t.Errorf("%s: %d %s", step.name, code, text)
		}
		if code, text := send(http.MethodGet, tokensPath, nil); code != 200 || strings.Contains(text, `"hash":"`) || strings.Contains(text, `"name":"a"`) != (step.name == "good" || step.code == 409 || step.name == "nobody's") {
			t.Errorf("after %s: %d %s", step.name, code, text)
		}
	}
}

// H-20: others than this machine reach nothing without a token.
func TestWithoutTokensNoStrangers(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	o, err := cfg.takeOver(t.Context())
	must(t, err)
	defer func() { must(t, o.Release()) }()
	app, err := NewApp(cfg, p, quiet, true)
	must(t, err)
	defer func() { must(t, app.Close()) }()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "[::ffff:10.0.0.1]:0", "192.0.2.1:0"} {
		app.cfg.Addr = addr
		l, err := app.listen(t.Context())
		if err == nil {
			t.Errorf("%s: listens at %s", addr, l.Addr())
			must(t, l.Close())
		} else if want := "not loopback, and without tokens"; !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%s: %v", addr, err)
		}
	}
	// Nor through a proxy that is before us.
	app.cfg.Addr = "127.0.0.1:0"
	for key, c := range map[string]Config{
		keyURL:   {URL: "https://hutch.example.org"},
		keyHosts: {Hosts: []string{"127.0.0.1", "hutch.example.org"}},
		"":       {URL: "http://localhost:8420", Hosts: []string{"::1", "localhost"}},
	} {
		app.cfg.URL, app.cfg.Hosts = c.URL, c.Hosts
		l, err := app.listen(t.Context())
		if err == nil {
			must(t, l.Close())
		}
		if got := app.cfg.exposed(); got != key || (err == nil) != (key == "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if closed := app.door(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}).Closed(); closed != (key != "") {
			t.Errorf("%+v: closed %t", c, closed)
		}
	}
	app.cfg.URL, app.cfg.Hosts = "", nil
	tok, text := madeToken(t, "ci", "alice")
	must(t, app.keys.Add(t.Context(), tok))
	app.cfg.Addr = "0.0.0.0:0"
	l, err := app.listen(context.Background())
	must(t, err)
	must(t, l.Close())
	// Closed for good: also if the token goes.
	must(t, app.keys.Revoke(t.Context(), "ci", true))
	fresh, err := access.OpenKeys(t.Context(), app.db, nil)
	must(t, err)
	app.keys = fresh
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/mcp", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+text)
	app.door(&net.TCPAddr{IP: net.IPv4zero}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") })).ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
