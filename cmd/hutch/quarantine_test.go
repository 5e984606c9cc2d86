package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// command runs a command on the server's folders, as another process would.
func (s *served) command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	none, err := toolswasm.Open(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := program{name: "hutch", stdin: io.NopCloser(strings.NewReader("")), stdout: unclosed{&out}, stderr: unclosed{io.Discard},
		env: func(string) string { return "" }, environ: func() []string { return nil },
		worker: workertest.Command(t), shipped: none}
	err = runCommand(t.Context(), append([]string{"hutch"}, args...), p)
	return out.String(), err
}

// A module that takes its worker down is quarantined while hutch runs: clients
// are told, commands say why, and a release by another process counts.
func TestQuarantineAndRelease(t *testing.T) {
	s := startServe(t, func(c *Config) { c.Limits.Deaths, c.Limits.Call.Wall = 2, 200*time.Millisecond })
	defer s.end(t)
	s.drop(t, "e.wasm", endlessModule(`{"tools":[{"name":"e","description":"Never ends.","inputSchema":{"type":"object","properties":{}}}]}`))
	session, changed := s.connect(t)
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	listed := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(patientFor); ; {
			r, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Tools) == want {
				return
			}
			select {
			case <-changed:
			case <-time.After(time.Until(deadline)):
				t.Fatalf("%d tools are listed, want %d", len(r.Tools), want)
			}
		}
	}
	listed(1)
	for range 2 {
		if text := callText(t, session, "e"); !strings.Contains(text, "(limits.timeout)") {
			t.Errorf("an endless call: %s", text)
		}
	}
	listed(0)
	if text := callText(t, session, "e"); !strings.Contains(text, "Tool not found: e") {
		t.Errorf("a call of a quarantined module: %s", text)
	}

	here := []string{"--tools", s.tools, "--state", s.app.cfg.State}
	out, err := s.command(t, append([]string{"tools", "list"}, here...)...)
	if err != nil || !strings.Contains(out, "held") || !strings.Contains(out, "took its worker down 2 times within 10m0s (2 by timeout)") {
		t.Errorf("list: %s, %v", out, err)
	}
	_, err = s.command(t, append([]string{"tools", "call", "e"}, here...)...)
	if !errors.Is(err, tool.ErrHeld) || !strings.Contains(err.Error(), "hutch tools release e.wasm") {
		t.Errorf("call: %v", err)
	}
	out, err = s.command(t, append([]string{"tools", "inspect", "e.wasm"}, here...)...)
	if err != nil || !strings.Contains(out, "-> replace the file, or: hutch tools release e.wasm --state ") {
		t.Errorf("inspect: %s, %v", out, err)
	}
	if _, metrics := s.get(t, "/metrics"); !strings.Contains(metrics, "\nhutch_modules_quarantined 1\n") ||
		!strings.Contains(metrics, `hutch_limits_hit_total{limit="timeout"} 2`) {
		t.Errorf("metrics: %s", metrics)
	}

	for _, like := range []string{"e", "w.wasm"} {
		if _, err = s.command(t, "tools", "release", like, "--state", s.app.cfg.State); hintOf(err) != "did you mean e.wasm?" {
			t.Errorf("release of %s: %v, hint %q", like, err, hintOf(err))
		}
	}
	out, err = s.command(t, "tools", "release", "e.wasm", "--state", s.app.cfg.State)
	if err != nil || !strings.HasPrefix(out, "released e.wasm (sha256:") {
		t.Errorf("release: %q, %v", out, err)
	}
	listed(1)
}
