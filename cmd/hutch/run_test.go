package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
)

// observing runs "hutch run --observe" and returns the policy that it prints.
func observing(t *testing.T, cfg Config, p program, args ...string) string {
	t.Helper()
	p.stdin, p.stderr = http.NoBody, unclosed{t.Output()}
	line := append([]string{"hutch", "run", "--observe", "--state", cfg.State}, args...)
	out, err := runTyped(t, p, map[string]string{"HOME": t.TempDir()}, line...)
	must(t, err)
	return out
}

// What is printed when a call of a shipped tool is observed with nothing granted is a
// policy, and put in force it lets the very call pass.
func TestObservedPoliciesWork(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".json") {
			fmt.Fprintf(w, `{"asked":%q}`, r.Method+" "+r.URL.Path)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Hutches</title><p>A hutch is a cage for rabbits.</p>")
	}))
	defer site.Close()
	for _, c := range []struct{ guest, tool, args, want string }{
		{"fetch", "fetch", fmt.Sprintf(`{"url":%q}`, site.URL+"/hutches?q=1"), "cage for rabbits"},
		{"httpjson", "http_json", fmt.Sprintf(`{"url":%q,"method":"PUT","body":{"a":1}}`, site.URL+"/v1/items.json"), "PUT /v1/items.json"},
		{"notes", "note_add", `{"title":"Hutches","text":"are cages"}`, `"id":1`},
	} {
		t.Run(c.guest, func(t *testing.T) {
			cfg, p := newTestConfig(t, nil)
			file := filepath.Join(t.TempDir(), c.guest+moduleSuffix)
			_, err := build(t.Context(), cfg, p, &voice{w: t.Output()}, filepath.Join("..", "..", "guests", c.guest), file)
			must(t, err)
			policy := observing(t, cfg, p, file, c.tool, c.args)
			_, err = capability.Parse("policy.yaml", []byte(policy))
			must(t, err)
			if strings.Contains(policy, "Note:") || !strings.Contains(policy, ": refused\n") {
				t.Errorf("the policy:\n%s", policy)
			}
			body, err := os.ReadFile(file)
			must(t, err)
			s := startServer(t, cfg, p, quiet)
			defer s.halt(t)
			s.drop(t, c.guest+moduleSuffix, body)
			s.awaitModule(t, c.guest+moduleSuffix)
			if _, err := s.call(t.Context(), c.tool, json.RawMessage(c.args)); err == nil {
				t.Fatal("it is called before anything is granted")
			}
			s.decide(t, policy)
			s.awaitListed(t, c.tool, true)
			got, err := s.call(t.Context(), c.tool, json.RawMessage(c.args))
			if err != nil || !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), c.want) || strings.Contains(got, `"isError":true`) {
				t.Errorf("put in force: %s, %v; the policy:\n%s", got, err, policy)
			}
		})
	}
}

// An unmodified guest reads a placeholder from its configuration: with the policy
// that is observed for it, its API gets the secret.
func TestObservedPolicyOfAGuestWithASecret(t *testing.T) {
	api := newUpstream(t)
	defer api.Close()
	s, _ := startGranted(t)
	defer s.halt(t)
	body := apiGuest(t)
	file := filepath.Join(t.TempDir(), "api.wasm")
	must(t, os.WriteFile(file, body, 0o600))
	cfg, p := newTestConfig(t, nil)
	args := fmt.Sprintf(`{"url":%q}`, api.URL+"/api/me")
	policy := observing(t, cfg, p, "--set", "token=secret://api_token", "--set", "unread=1", file, "call_api", args)
	for _, want := range []string{
		"\n#   config_get token: answered: ok\n#   http_request GET " + api.URL + "/api/me: refused\n",
		"\n        - {name: api_token, header: Authorization, host: \"127.0.0.1\"}\n",
		"\n    config:\n      \"token\": \"secret://api_token\"\n",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %q:\n%s", want, policy)
		}
	}
	if api.last() != "nothing" || strings.Contains(policy, "unread") || strings.Contains(policy, "Note:") {
		t.Errorf("the API saw %s; the policy:\n%s", api.last(), policy)
	}
	s.drop(t, "api.wasm", body)
	s.awaitModule(t, "api.wasm")
	s.decide(t, policy)
	s.awaitListed(t, "call_api", true)
	got, err := s.call(t.Context(), "call_api", json.RawMessage(args))
	if err != nil || !strings.Contains(got, `\"status\":200`) || api.last() != "Bearer "+theSecret {
		t.Errorf("put in force: %s, %v; the API saw %s", got, err, api.last())
	}
}

// Whatever a module asks for, what is printed is a policy: what no policy can say is
// left out, and told.
func TestObservedPoliciesCanBeSaid(t *testing.T) {
	rule := func(host string) capability.HTTPRule {
		return capability.HTTPRule{Host: host, Methods: []string{"GET"}}
	}
	key := func(name, header, host string) capability.SecretRule {
		return capability.SecretRule{Name: name, Header: header, Host: host}
	}
	g := capability.Grant{
		HTTP: []capability.HTTPRule{rule("a.example.org"), rule("100.64.0.1"), rule("x.localhost")},
		Secrets: []capability.SecretRule{
			key("fine", "X-Key", "a.example.org"), key(strings.Repeat("n", 65), "X-Key", "a.example.org"),
			key("framing", "Host", "a.example.org"), key("elsewhere", "X-Key", "b.example.org"),
		},
		KV: &capability.KVRule{},
	}
	said, why := sayable(g)
	must(t, checkGrant(said))
	if len(said.HTTP) != 2 || len(said.HTTP[1].AllowPrivate) != 1 || len(said.Secrets) != 1 || said.Secrets[0].Name != "fine" || said.KV == nil {
		t.Errorf("said %+v", said)
	}
	for i, want := range []string{"host x.localhost: ", "secret nnn", "secret framing: ", "secret elsewhere: "} {
		if i >= len(why) || !strings.HasPrefix(why[i], want) || strings.Contains(why[i], "modules.") {
			t.Errorf("why %d: %q, want %q", i, why, want)
		}
	}
	for i := range 300 {
		g.HTTP = append(g.HTTP, rule(fmt.Sprintf("h%d.example.org", i)))
	}
	said, why = sayable(g)
	must(t, checkGrant(said))
	if len(said.HTTP)+len(why) < 300 || len(said.HTTP) < 200 {
		t.Errorf("of too many: %d are said, %d are told", len(said.HTTP), len(why))
	}
}
