package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/runtime/owner"
)

// running starts a server, or the owner that a client of an MCP host starts.
func running(t *testing.T, cfg Config, p program, log *slog.Logger, mcp bool) (s *served, end func()) {
	if !mcp {
		s = startServer(t, cfg, p, log)
		return s, func() { s.end(t) }
	}
	o, _, err := owner.Join(t.Context(), cfg.State, cfg.ownerInfo(ownerMCP))
	must(t, err)
	h, err := openHouse(cfg, p, log, o)
	must(t, err)
	return &served{app: h.app, tools: cfg.Tools[0]}, func() { must(t, h.close(0)); goleak.VerifyNone(t) }
}

// A hutch that runs uses a secret from the next call on and refuses the first one
// after it was removed, wherever it is kept; the value is in the file of secrets and
// in what the server was sent, and nowhere else.
func TestSecretsOfAHutchThatRuns(t *testing.T) {
	for name, c := range map[string]struct{ age, mcp bool }{"serve": {}, "serve, encrypted": {age: true}, "mcp": {mcp: true}} {
		t.Run(name, func(t *testing.T) {
			cfg, p := newTestConfig(t, nil)
			_, err := openState(cfg.State)
			must(t, err)
			set := []string{"secrets", "set", "api_token"}
			if c.age {
				cfg.Secrets.AgeFile, cfg.Secrets.AgeIdentity = state{cfg.State}.ageSecrets(), filepath.Join(t.TempDir(), "identity")
				must(t, secrets.NewIdentity(cfg.Secrets.AgeIdentity))
				set = append(set, "--encrypt")
			}
			api, log := newUpstream(t), &transcript{}
			s, end := running(t, cfg, p, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), c.mcp)
			s.drop(t, "ask.wasm", native("ask", api.URL+"/api/me", ""))
			s.decide(t, api.reaching(t, s.awaitModule(t, "ask.wasm")))
			s.awaitListed(t, "ask", true)
			const unset = "the secret api_token is not set; the operator sets it with: hutch secrets set api_token"
			s.wantAnswer(t, unset)

			out, said, err := typed(t, cfg, p, theSecret+"\n", nil, set...)
			if err != nil || !strings.HasPrefix(out, "set api_token in the ") || strings.Contains(said, "warning") {
				t.Fatalf("set: %s%s%v", out, said, err)
			}
			hides(t, "what set says", out+said)
			s.wantAnswer(t, "you are Bearer [redacted:api_token]")
			if api.last() != "Bearer "+theSecret {
				t.Errorf("the server saw %s", api.last())
			}
			for _, args := range [][]string{{"secrets", "list"}, {"secrets", "list", "--json"}} {
				out, said, err := typed(t, cfg, p, "", nil, args...)
				if err != nil || !strings.Contains(out, "api_token") || !strings.Contains(out, "ask.wasm") || strings.Contains(out, "not set") {
					t.Errorf("list: %s%s%v", out, said, err)
				}
				hides(t, "the list", out+said)
			}

			_, _, err = typed(t, cfg, p, "another-token-1", nil, "secrets", "set", "api_token")
			must(t, err)
			s.wantAnswer(t, "you are Bearer [redacted:api_token]")
			if api.last() != "Bearer another-token-1" {
				t.Errorf("replaced: the server saw %s", api.last())
			}

			out, said, err = typed(t, cfg, p, "", nil, "secrets", "remove", "api_token")
			if err != nil || out != "removed api_token\n" || !strings.Contains(said, "still lets ask.wasm use it") || strings.Contains(said, "warning") {
				t.Errorf("remove: %s%s%v", out, said, err)
			}
			s.wantAnswer(t, unset)
			if !c.mcp {
				code, page := s.get(t, "/metrics")
				if code != http.StatusOK || !strings.Contains(page, "hutch_") {
					t.Errorf("/metrics: %d", code)
				}
				hides(t, "/metrics", page)
			}
			api.Close()
			end()
			hides(t, "the log", log.String())
			must(t, filepath.WalkDir(cfg.State, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				body, err := os.ReadFile(path)
				hides(t, path, string(body))
				return err
			}))
		})
	}
}

func (s *served) wantAnswer(t *testing.T, want string) {
	t.Helper()
	got, err := s.call(t.Context(), "ask", map[string]any{})
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("answered %.300s, %v, want %s", got, err, want)
	}
	hides(t, "the answer", got)
}

// Whoever sets a secret that the hutch that runs will not use is told.
func TestSecretsThatTheOwnerDoesNotUse(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	owned := p
	owned.environ = func() []string { return []string{"HUTCH_SECRET_FROM_ENV=hunter2hunter2"} }
	s, end := running(t, cfg, owned, quiet, false)
	defer end()
	elsewhere := cfg
	elsewhere.Secrets.File = filepath.Join(t.TempDir(), "mine")
	for _, c := range []struct {
		cfg  Config
		name string
		want string
	}{
		{cfg, "from_env", "has from_env from its environment, which goes first"},
		{elsewhere, "token", "does not have token: it keeps secrets elsewhere, or cannot open them"},
	} {
		_, said, err := typed(t, c.cfg, p, "hunter3hunter3", nil, "secrets", "set", c.name)
		if err != nil || !strings.Contains(said, "hutch: warning: hutch serve (process ") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %s%v", c.name, said, err)
		}
	}
	out, _, err := typed(t, cfg, p, "", nil, "secrets", "list")
	if err != nil || !strings.HasPrefix(out, "from_env  environment  no module may use it\n") {
		t.Errorf("the owner's environment is not listed: %s%v", out, err)
	}
	if _, ok := s.app.vault.Get("from_env"); !ok {
		t.Error("the owner has no secret")
	}
}

// Many that set secrets at once lose none.
func TestSecretsSetAtOnce(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	const n = 20
	done := make(chan error, n)
	for i := range n {
		go func() {
			_, _, err := typed(t, cfg, p, "hunter2hunter2", nil, "secrets", "set", "token"+string(rune('a'+i)))
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	raw, err := os.ReadFile(cfg.Secrets.File)
	if got := bytes.Count(raw, []byte("\n")); err != nil || got != n {
		t.Errorf("%d secrets are kept, want %d: %v", got, n, err)
	}
}

// A variable stands for each spelling that it can have, and a secret that only the
// configuration of a module names is used as well.
func TestListSecrets(t *testing.T) {
	got := listSecrets([]secrets.Listed{{Name: "a_b", Source: secrets.Environment}, {Name: "c_d", Source: secrets.File}},
		map[string][]string{"a-b": {"x.wasm", "y.wasm"}, "a_b": {"x.wasm"}, "c-d": {"z.wasm"}})
	if len(got) != 3 || !slices.Equal(got[0].UsedBy, []string{"x.wasm", "y.wasm"}) || got[1].Name != "c-d" || got[1].Set || len(got[2].UsedBy) != 0 {
		t.Errorf("%+v", got)
	}
	cfg, p := newTestConfig(t, nil)
	must(t, os.MkdirAll(cfg.State, 0o700))
	must(t, os.WriteFile(cfg.Policy, []byte("version: 1\nmodules: {a.wasm: {config: {key: 'Bearer secret://token'}}}\n"), 0o600))
	out, _, err := typed(t, cfg, p, "", nil, "secrets", "list")
	if err != nil || out != "token  not set  a.wasm\n" {
		t.Errorf("%q, %v", out, err)
	}
	must(t, os.WriteFile(cfg.Policy, []byte("nonsense"), 0o600))
	_, said, err := typed(t, cfg, p, "", nil, "secrets", "list")
	if err != nil || !strings.Contains(said, "warning: who uses what is not known: ") {
		t.Errorf("a broken policy: %q, %v", said, err)
	}
}

// A value that is too long, from an input that never ends, is not read for ever.
func TestSecretsThatNeverEnd(t *testing.T) {
	k := keeper{say: &voice{w: io.Discard}}
	_, err := k.readValue(t.Context(), endlessText{}, "token")
	if err == nil || err.Error() != "standard input: more than 65536 bytes, which no secret may have" {
		t.Error(err)
	}
	long := strings.Repeat("x", secrets.MaxValue)
	if got, err := k.readValue(t.Context(), strings.NewReader(long+"\r\n"), "token"); err != nil || got != long {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	if _, err := k.readValue(t.Context(), brokenInput{}, "token"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

type endlessText struct{}

func (endlessText) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

type brokenInput struct{}

func (brokenInput) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Whatever is logged, nothing of it is a value: not in a message, an error, a group or
// what a logger was given before.
func TestSecretsAreNotLogged(t *testing.T) {
	s, log := startGranted(t)
	defer s.end(t)
	inner := errors.New("dial " + theSecret)
	s.app.log.With("before", theSecret).WithGroup("g").Warn("look: "+theSecret, "text", theSecret, "error", fmt.Errorf("call: %w", inner),
		slog.Group("group", "bytes", []byte(theSecret), "query", url.QueryEscape(theSecret)), "list", []string{theSecret}, "count", 7, theSecret, "key")
	s.drop(t, "broken.wasm", []byte("\x00asm\x01\x00\x00\x00"+theSecret))
	s.awaitModule(t, "broken.wasm")
	text := log.String()
	hides(t, "the log", text)
	if n := strings.Count(text, "[redacted:api_token]"); n < 6 || !strings.Contains(text, "g.count=7") || !strings.Contains(text, "dial [redacted:api_token]") {
		t.Errorf("%d values were taken out: %s", n, text)
	}
}
