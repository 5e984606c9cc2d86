package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/registry"
)

// theSecret is what nobody but the server may see.
const theSecret = "tok-5f0c1d9a7e/+=&hunter2"

// upstream is an API that lets in who has the secret, and gives it back in
// everything that it says.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // Authorization of each request
	slow chan struct{}
	in   chan struct{} // a slow request has come
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{slow: make(chan struct{}), in: make(chan struct{}, 10)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		u.mu.Lock()
		u.seen = append(u.seen, auth)
		u.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/slow") {
			u.in <- struct{}{}
			<-u.slow
		}
		w.Header().Set("Etag", `"`+auth+`"`)
		if auth != "Bearer "+theSecret {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "you are %s %q %s %s", auth, auth, url.QueryEscape(auth), base64.StdEncoding.EncodeToString([]byte("xy"+theSecret)))
	}))
	return u
}

func (u *upstream) last() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) == 0 {
		return "nothing"
	}
	return u.seen[len(u.seen)-1]
}

func (u *upstream) port(t *testing.T) string {
	at, err := url.Parse(u.URL)
	must(t, err)
	return at.Port()
}

// reaching is the policy that lets a module call an API with the secret.
func (u *upstream) reaching(t *testing.T, m registry.Module) string {
	return fmt.Sprintf(`version: 1
modules:
  %s:
    digest: sha256:%s
    definitions: sha256:%s
    grant:
      http: [{scheme: http, host: 127.0.0.1, ports: [%s], paths: [/api], allow_private: [127.0.0.1/32]}]
      secrets: [{name: api_token, header: Authorization, prefix: "Bearer ", host: 127.0.0.1}]
    config: {token: "secret://api_token"}
`, m.Name, m.Digest, m.Definitions, u.port(t))
}

// decide puts a policy in force as an operator with an editor does.
func (s *served) decide(t *testing.T, policy string) {
	t.Helper()
	must(t, os.WriteFile(s.app.cfg.Policy, []byte(policy), 0o600))
}

// transcript is everything that a served hutch logs, and what its tools log.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer // no part of the type: its other methods take no lock
}

// String returns what there is by now.
func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// startGranted is a server that has the secret, and what it logs.
func startGranted(t *testing.T) (*served, *transcript) {
	t.Helper()
	cfg, p := newTestConfig(t, nil)
	st, err := openState(cfg.State)
	must(t, err)
	must(t, os.WriteFile(st.secrets(), []byte("api_token="+theSecret+"\n"), 0o600))
	log := &transcript{}
	return startServer(t, cfg, p, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))), log
}

// hides fails if a text has the secret in any of its forms.
func hides(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{theSecret, "hunter2", url.QueryEscape(theSecret), "dG9rLTVmMGMx", "b2stNWYwYzFk", "rLTVmMGMxZD"} {
		if strings.Contains(text, form) {
			t.Errorf("%s has the secret as %q: %.600s", what, form, text)
		}
	}
}

// awaitListed waits until a tool is listed, or is not any more.
func (s *served) awaitListed(t *testing.T, name string, want bool) {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(5 * time.Millisecond); ; {
		listed := false
		for _, spec := range s.app.tools.List(tool.Caller{}) {
			listed = listed || spec.Name == name
		}
		if listed == want {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%s listed: %t, want %t; modules: %+v", name, listed, want, s.app.modules.Modules())
		}
	}
}

func (s *served) call(ctx context.Context, name string, args any) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	res, err := s.app.tools.Call(ctx, tool.Caller{Principal: "local", CallID: "7"}, tool.Call{Name: name, Arguments: raw})
	if err != nil {
		return "", err
	}
	all, err := json.Marshal(res)
	return string(all), err
}

// apiGuest is a plugin as others write them, built on the spot.
func apiGuest(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "api")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/apiguest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	body, err := os.ReadFile(out)
	must(t, err)
	return body
}

func disguised(text string) []byte {
	b := []byte(text)
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// forms are the texts that a value can be read from: as it is, in base64 wherever in a
// longer text it begins, and in hexadecimal. Each is disguised.
func forms(value string) (all [][]byte) {
	texts := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), value...))
		texts = append(texts, text[(before*8+5)/6:(before+len(value))*8/6])
	}
	for _, text := range texts {
		all = append(all, disguised(text))
	}
	return all
}

// An unmodified guest of another kit reads its token from its configuration and
// calls an API with it, as soon as it is granted, and never holds it: not in its
// memory, its answers, its errors or its log.
func TestS17_S18_GuestsUseSecretsTheyNeverHold(t *testing.T) {
	api := newUpstream(t)
	s, log := startGranted(t)
	defer s.end(t)
	defer api.Close()
	s.drop(t, "api.wasm", apiGuest(t))
	m := s.awaitModule(t, "api.wasm")
	if m.Status != tool.Held || !strings.HasSuffix(m.Reason, "hutch tools grant api.wasm") {
		t.Fatalf("before anybody decided: %s: %s", m.Status, m.Reason)
	}
	if _, err := s.call(t.Context(), "call_api", map[string]any{}); !errors.Is(err, tool.ErrNotFound) {
		t.Errorf("called without a decision: %v", err)
	}
	s.decide(t, api.reaching(t, m))
	s.awaitListed(t, "call_api", true)
	ask := map[string]any{"url": api.URL + "/api/me", "disguised": disguised(theSecret), "forms": forms(theSecret)}
	got, err := s.call(t.Context(), "call_api", ask)
	if err != nil || !strings.Contains(got, `\"status\":200`) || !strings.Contains(got, `\"held\":0`) || api.last() != "Bearer "+theSecret {
		t.Fatalf("granted: %s, %v; the server saw %s", got, err, api.last())
	}
	if n := strings.Count(got, "[redacted:api_token]"); n < 4 || strings.Contains(got, "etag") {
		t.Errorf("%d values were taken out of the answer: %s", n, got)
	}
	hides(t, "the answer", got)
	if !strings.Contains(got, `\"handed\":0`) || !strings.Contains(got, `\"left\":0`) {
		t.Errorf("what the tool was handed has the secret, or a call before left it: %s", got)
	}
	ask["disguised"], ask["forms"] = disguised("secret://api_token"), [][]byte{disguised("secret://api_token")}
	if got, err := s.call(t.Context(), "call_api", ask); err != nil || strings.Contains(got, `\"held\":0`) || strings.Contains(got, `\"handed\":0`) {
		t.Errorf("the search does not find what is there: %s, %v", got, err)
	}
	ask["forms"] = forms(theSecret)
	ask["fail"] = true
	got, err = s.call(t.Context(), "call_api", ask)
	if err != nil || !strings.Contains(got, "[redacted:api_token]") {
		t.Errorf("the error: %s, %v", got, err)
	}
	hides(t, "the error", got)
	lines := fmt.Sprint(s.app.logs.Tail("api.wasm", 100))
	if !strings.Contains(lines, "answered you are Bearer [redacted:api_token]") {
		t.Errorf("the tool's log: %s", lines)
	}
	hides(t, "the tool's log", lines)
	ask["url"], ask["fail"] = api.URL+"/other", false
	if got, err := s.call(t.Context(), "call_api", ask); err != nil || !strings.Contains(got, `\"status\":0`) {
		t.Errorf("a path that is not granted: %s, %v", got, err)
	}
	hides(t, "the log", log.String())
}

// S18: a tool that has a value from elsewhere does not get it to a model either.
func TestS18_ToolsThatKnowASecret(t *testing.T) {
	s, _ := startGranted(t)
	defer s.end(t)
	s.drop(t, "leak.wasm", greeter("leak", theSecret))
	s.awaitListed(t, "leak", true)
	got, err := s.call(t.Context(), "leak", map[string]any{})
	if err != nil || !strings.Contains(got, "[redacted:api_token]") {
		t.Errorf("%s, %v", got, err)
	}
	hides(t, "the answer", got)
}

// native is a guest of our own kind that makes one request and gives back what it
// got.
func native(name, target, header string) []byte {
	body, err := json.Marshal(abi.HTTPRequest{URL: target})
	if err != nil {
		panic(err)
	}
	if header != "" {
		body = bytes.Replace(body, []byte(`{`), []byte(`{"headers":{"Authorization":"`+header+`"},`), 1)
	}
	return dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec(name)}, Do: []dialecttest.Step{dialecttest.Op(abi.OpHTTP, 1, string(body))}}.Bytes()
}

// A policy that takes a grant away does so while hutch runs: calls that run are
// not cut off, later ones are refused.
func TestRevokingWhileCallsRun(t *testing.T) {
	api := newUpstream(t)
	s, log := startGranted(t)
	defer s.end(t)
	defer api.Close()
	session, changed := s.connect(t)
	defer closeSession(t, session)
	s.drop(t, "ask.wasm", native("ask", api.URL+"/api/slow", ""))
	granted := api.reaching(t, s.awaitModule(t, "ask.wasm"))
	s.decide(t, granted)
	await(t, changed)
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	begin := func() {
		go func() {
			r, err := session.CallTool(context.WithoutCancel(t.Context()), &sdk.CallToolParams{Name: "ask"})
			raw, _ := json.Marshal(r)
			answers <- answer{string(raw), err}
		}()
		<-api.in
	}
	begin()
	s.decide(t, "version: 1\nmodules:\n  ask.wasm:\n    nonsense: here\n")
	s.awaitProblem(t, true)
	if got := s.app.policy.Err().Error(); !strings.Contains(got, "policy.yaml:4: ") {
		t.Errorf("a broken policy is told as %s", got)
	}
	s.awaitListed(t, "ask", true)
	s.decide(t, "version: 1\n")
	s.awaitProblem(t, false)
	await(t, changed)
	api.slow <- struct{}{}
	if got := <-answers; got.err != nil || !strings.Contains(got.text, `[redacted:api_token]`) || api.last() != "Bearer "+theSecret {
		t.Errorf("the call that ran: %s, %v", got.text, got.err)
	}
	if got := callText(t, session, "ask"); !strings.Contains(got, "Tool not found") {
		t.Errorf("a call after it was taken away: %s", got)
	}
	s.decide(t, strings.Replace(granted, "paths: [/api]", "paths: [/other]", 1))
	await(t, changed)
	if got := callText(t, session, "ask"); !strings.Contains(got, `"code":"denied"`) || !strings.Contains(got, "not granted") {
		t.Errorf("another path is granted: %s", got)
	}
	if !strings.Contains(log.String(), "the policy stays as it was, for the file is wrong") {
		t.Error("the log does not tell of the broken policy")
	}
}

func (s *served) awaitProblem(t *testing.T, want bool) {
	t.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(5 * time.Millisecond); (s.app.policy.Err() != nil) != want; {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("policy wrong: %v, want %t", s.app.policy.Err(), want)
		}
	}
}

// A guest's own request with a value in it is not sent, nor one to another place.
func TestS19_NativeGuests(t *testing.T) {
	api := newUpstream(t)
	s, _ := startGranted(t)
	defer s.end(t)
	defer api.Close()
	for i, tt := range []struct{ url, header, want string }{
		{api.URL + "/api", "secret://api_token", `"status":200`},
		{api.URL + "/api", "Bearer secret://api_token", `"status":200`},
		{api.URL + "/api", "Bearer " + theSecret, `"code":"denied","message":"the header holds the value of a secret`},
		{api.URL + "/api?q=secret://api_token", "", "is not granted in the query parameter"},
		{"http://localhost:" + api.port(t) + "/api", "", "not granted"},
	} {
		name := fmt.Sprintf("ask%d", i)
		s.drop(t, name+".wasm", native(name, tt.url, tt.header))
		s.decide(t, api.reaching(t, s.awaitModule(t, name+".wasm")))
		s.awaitListed(t, name, true)
		got, err := s.call(t.Context(), name, map[string]any{})
		if err != nil || !strings.Contains(got, strings.ReplaceAll(tt.want, `"`, `\"`)) && !strings.Contains(got, tt.want) {
			t.Errorf("%d: %s, %v, want %s", i, got, err, tt.want)
		}
		hides(t, "the answer", got)
	}
}
