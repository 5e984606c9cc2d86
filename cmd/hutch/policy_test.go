package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/runtime/owner"
)

// The file is followed: what is wrong with it changes nothing, what is half written
// is not read, and one that is gone grants nothing.
func TestPolicyFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	var log bytes.Buffer
	f, err := openPolicy(Config{Policy: path}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || len(f.current().Modules()) != 0 {
		t.Fatalf("no file: %v", err)
	}
	write := func(text string) func() {
		return func() { must(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	granted := "version: 1\nmodules:\n  a.wasm: {grant: {kv: {}}}\n"
	for i, step := range []struct {
		do      func()
		changed bool
		modules int
		problem string
	}{
		{write(granted), true, 1, ""},
		{write(granted[:len(granted)-4]), false, 1, "policy.yaml:3: "},
		{write(strings.Repeat("#", capability.MaxPolicyBytes+1)), false, 1, "policy.yaml"},
		{write(granted), false, 1, ""},
		{write(granted + "  b.wasm: {grant: {}}\n"), true, 2, ""},
		{func() { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) }, false, 2, "policy.yaml"},
		{func() { must(t, os.Remove(path)) }, true, 0, ""},
	} {
		step.do()
		if f.refresh() {
			t.Errorf("step %d: read at the first look, when it may still be written", i)
		}
		if got := f.refresh(); got != step.changed || len(f.current().Modules()) != step.modules {
			t.Errorf("step %d: changed %t, %d modules; want %t, %d", i, got, len(f.current().Modules()), step.changed, step.modules)
		}
		if err := f.Err(); (err != nil) != (step.problem != "") || err != nil && !strings.Contains(err.Error(), step.problem) {
			t.Errorf("step %d: %v, want %q", i, err, step.problem)
		}
		if f.refresh() {
			t.Errorf("step %d: changed again", i)
		}
	}
	for _, words := range []string{"the policy stays as it was", "policy changed", "the policy file is gone: nothing is granted"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log does not say %q:\n%s", words, log.String())
		}
	}
}

func TestPolicyFileMustBeSafe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(path, []byte("version: 1\n"), 0o600))
	if runtime.GOOS != "windows" {
		must(t, os.Chmod(path, 0o622))
		_, err := openPolicy(Config{Policy: path}, quiet)
		wantUsage(t, err, "policy "+quoted(path)+": others can write to it")
	}
	link := filepath.Join(t.TempDir(), "link.yaml")
	must(t, os.Symlink(path, link))
	for _, policy := range []string{path, link, filepath.Join(dir, "below", "new.yaml")} {
		wantUsage(t, Config{Policy: policy, Tools: []string{dir}}.checkPolicyPlace(),
			"policy "+quoted(policy)+": lies in the tool folder "+quoted(dir)+", whose files never decide what they may do")
	}
	if err := (Config{Policy: path, Tools: []string{filepath.Join(dir, "tools")}}).checkPolicyPlace(); err != nil {
		t.Error(err)
	}
}

// Who would have other grants does not go through another process.
func TestAnotherPolicyIsAnotherHutch(t *testing.T) {
	cfg := Config{Policy: "/a/policy.yaml", State: "/s"}
	info := owner.Info{Version: readBuildInfo().String(), Policy: "/b/policy.yaml"}
	if err := cfg.agrees(info); err == nil || !strings.Contains(err.Error(), `with the policy "/b/policy.yaml"`) {
		t.Errorf("got %v", err)
	}
	info.Policy = cfg.Policy
	if err := cfg.agrees(info); err != nil {
		t.Error(err)
	}
}

// An edit that makes no policy leaves the file and what is in force.
func TestEditsThatAreNoPolicy(t *testing.T) {
	app := newTestApp(t, nil)
	defer func() { must(t, app.Close()) }()
	edit := func(text string) error {
		return app.EditPolicy(t.Context(), "somebody", "grant", "a.wasm", capability.Binding{}, func(string, []byte) ([]byte, error) {
			return []byte(text), nil
		})
	}
	must(t, edit("version: 1\nmodules: {a.wasm: {grant: {}}}\n"))
	if err := edit("version: 2\n"); err == nil {
		t.Error("accepted")
	}
	if got := app.book.Policy().Modules(); len(got) != 1 || app.policy.Err() != nil {
		t.Errorf("in force: %q, %v", got, app.policy.Err())
	}
}
