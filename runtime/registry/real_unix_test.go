//go:build unix

package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/registry"
)

// Whatever becomes of the kept bytes of a module whose file is whole, no call
// fails for it, though each has to start a worker.
func TestDamagedModulesCostNoCall(t *testing.T) {
	damages := map[string]func(path string) error{
		"gone":        os.Remove,
		"truncated":   func(path string) error { return os.Truncate(path, 100) },
		"overwritten": func(path string) error { return overwrite(path) },
		"directory":   func(path string) error { return errors.Join(os.Remove(path), os.MkdirAll(path+"/in", 0o700)) },
		"pipe":        func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"symlink":     func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
	}
	tools, state := t.TempDir(), t.TempDir()
	pool := newPool(t, state)
	if err := os.WriteFile(filepath.Join(tools, "echo.wasm"), dialecttest.Module{}.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	session(t, pool, tools, state, func(r *registry.Registry, is func(string, func() bool)) {
		is("it is listed", func() bool { return len(r.List(tool.Caller{})) == 1 })
		digest := r.Modules()[0].Digest
		for name, damage := range damages {
			if err := damage(filepath.Join(state, "modules", digest+".wasm")); err != nil {
				t.Fatal(err)
			}
			pool.Retire(digest)
			if got, err := call(r, "echo", `{"n":1}`); err != nil || !strings.Contains(got, `{"n":1}`) {
				t.Errorf("%s: echo = %q, %v", name, got, err)
			}
		}
	})
	if starts := pool.Stats().Starts; starts < uint64(len(damages)) {
		t.Errorf("%d workers were started, want one for each damage", starts)
	}
}

// overwrite replaces a file's bytes by as many others.
func overwrite(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, make([]byte, fi.Size()), 0o600)
}
