package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// killWorkers kills the workers of this process now and then, until it is stopped.
// Only Linux tells of them.
func killWorkers(t testing.TB, stop <-chan struct{}) {
	for tick := time.Tick(300 * time.Millisecond); ; {
		select {
		case <-stop:
			return
		case <-tick:
		}
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Error(err)
			return
		}
		for _, path := range stats {
			text, _ := os.ReadFile(path) // it may be gone
			var pid, parent int
			var name, state string
			if n, _ := fmt.Sscan(string(text), &pid, &name, &state, &parent); n < 4 || parent != os.Getpid() || !strings.Contains(name, "worker") {
				continue
			}
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended
			}
		}
	}
}

// A module that takes its worker down is quarantined while hutch runs: clients
// are told, commands say why, and a release by another process counts.
func TestQuarantineAndRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes are workers")
	}
	s := startServe(t, func(c *Config) { c.Limits.Deaths = 2 })
	defer s.end(t)
	s.drop(t, "e.wasm", dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("e")}, Do: []dialecttest.Step{dialecttest.Sleep(time.Minute)}}.Bytes())
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
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() { killWorkers(t, stop) })
	if text := callText(t, session, "e"); !strings.Contains(text, "process ended") {
		t.Errorf("a call whose worker ended, twice: %s", text)
	}
	close(stop)
	killer.Wait()
	listed(0)
	if text := callText(t, session, "e"); !strings.Contains(text, "Tool not found: e") {
		t.Errorf("a call of a quarantined module: %s", text)
	}

	_, p := newTestConfig(t, nil)
	command := func(args ...string) (string, error) {
		return printed(t, s.app.cfg, p, append(args, "--state", s.app.cfg.State)...)
	}
	out, err := command("tools", "list")
	if err != nil || !strings.Contains(out, "held") || !strings.Contains(out, "took its worker down 2 times within 10m0s (2 by crash)") {
		t.Errorf("list: %s, %v", out, err)
	}
	_, err = command("tools", "call", "e")
	if !errors.Is(err, tool.ErrHeld) || !strings.Contains(err.Error(), "hutch tools release e.wasm") {
		t.Errorf("call: %v", err)
	}
	out, err = command("tools", "inspect", "e.wasm")
	if err != nil || !strings.Contains(out, "-> replace the file, or: hutch tools release e.wasm --state ") {
		t.Errorf("inspect: %s, %v", out, err)
	}
	if _, metrics := s.get(t, "/metrics"); !strings.Contains(metrics, "\nhutch_modules_quarantined 1\n") {
		t.Errorf("metrics: %s", metrics)
	}

	for _, like := range []string{"e", "w.wasm"} {
		if _, _, err = typed(t, s.app.cfg, p, "", nil, "tools", "release", like); hintOf(err) != "did you mean e.wasm?" {
			t.Errorf("release of %s: %v, hint %q", like, err, hintOf(err))
		}
	}
	out, _, err = typed(t, s.app.cfg, p, "", nil, "tools", "release", "e.wasm")
	if err != nil || !strings.HasPrefix(out, "released e.wasm (sha256:") {
		t.Errorf("release: %q, %v", out, err)
	}
	listed(1)
}
