//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/reload"
)

// A folder with more modules than are looked at is named by the two commands that
// are asked about missing tools.
func TestCrowdedFolderIsTold(t *testing.T) {
	dir := folderWith(t, nil)
	tools := filepath.Join(dir, "tools")
	for i := range reload.MaxFiles + 1 {
		must(t, os.WriteFile(filepath.Join(tools, fmt.Sprintf("%d.wasm", i)), nil, 0o600))
	}
	const want = "holds 10001 modules, at most 10000: those after the first 10000 by name are ignored"
	p := start(t, dir, "tools", "list")
	p.says(t, "^hutch: warning: tool folder tools "+want+"$")
	if got := p.exit(t); got.ExitCode() != exitOK {
		t.Error(got)
	}
	if f := checkToolFolder(tools); f.Status != verdictWarn || !strings.HasSuffix(f.Found, want) || !strings.Contains(f.Do, "--tools DIR") {
		t.Errorf("doctor: %+v", f)
	}
	must(t, os.Remove(filepath.Join(tools, "0.wasm")))
	if f := checkToolFolder(tools); f.Status != verdictOK || !strings.HasSuffix(f.Found, "10000 files") {
		t.Errorf("doctor, with room: %+v", f)
	}
}
