package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/reload"
	"github.com/hutch-run/hutch/runtime/worker"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// ready is a policy that lets everything be used.
type ready struct{}

func (ready) Decide(tool.Caller, tool.Module, tool.Spec) tool.Decision {
	return tool.Decision{Status: tool.Ready}
}

// newPool runs real workers until the test ends, over the code kept in state.
func newPool(t *testing.T, state string) *worker.Pool {
	t.Helper()
	pool, err := worker.NewPool(worker.Options{Command: workertest.Command(t), CacheDir: filepath.Join(state, "compiled")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// From files in a folder to answers of guests in worker processes: dropped,
// replaced, broken, deleted, and the same again after a restart.
func TestFolderToAnswer(t *testing.T) {
	tools, state := t.TempDir(), t.TempDir()
	pool := newPool(t, state)
	drop := func(name string, m dialecttest.Module) {
		if err := os.WriteFile(filepath.Join(tools, name), m.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	drop("echo.wasm", dialecttest.Module{})
	drop("v1.wasm", dialecttest.Module{V1: true, Tools: []tool.Spec{dialecttest.Spec("old")}, Do: []dialecttest.Step{dialecttest.Text("from v1")}})
	session(t, pool, tools, state, func(r *registry.Registry, is func(string, func() bool)) {
		is("both are listed", func() bool { return len(r.List(tool.Caller{})) == 2 })
		args := `{"n":9007199254740993,"m":12345678901234567890}`
		if got, err := call(r, "echo", args); err != nil || !strings.Contains(got, args) {
			t.Errorf("echo = %q, %v: numbers shall come back as they went", got, err)
		}
		if got, err := call(r, "old", ""); err != nil || got != "from v1" {
			t.Errorf("old = %q, %v", got, err)
		}
		drop("v1.wasm", dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec("new")}, Do: []dialecttest.Step{dialecttest.Text("replaced")}})
		is("the new version serves", func() bool { got, err := call(r, "new", ""); return err == nil && got == "replaced" })
		if err := os.WriteFile(filepath.Join(tools, "v1.wasm"), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		is("the broken version is named", func() bool {
			return strings.HasPrefix(r.Modules()[1].Reason, "serving the version before")
		})
		if got, err := call(r, "new", ""); err != nil || got != "replaced" {
			t.Errorf("new = %q, %v: the version before shall serve", got, err)
		}
		if err := os.Remove(filepath.Join(tools, "v1.wasm")); err != nil {
			t.Fatal(err)
		}
		is("its tools are gone", func() bool { _, err := call(r, "new", ""); return errors.Is(err, tool.ErrNotFound) })
	})
	started := pool.Stats()
	session(t, pool, tools, state, func(r *registry.Registry, is func(string, func() bool)) {
		is("the known one is listed", func() bool { return len(r.List(tool.Caller{})) == 1 })
		if now := pool.Stats(); now.Starts != started.Starts || now.Calls != started.Calls {
			t.Errorf("the second start used a worker: %+v, before %+v", now, started)
		}
	})
}

// session runs a registry on a watched folder. is waits for something that
// shall become true; that it takes a minute means that it never will.
func session(t *testing.T, pool *worker.Pool, tools, state string, scene func(r *registry.Registry, is func(string, func() bool))) {
	t.Helper()
	blobs, err := reload.OpenBlobs(filepath.Join(state, "modules"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.New(registry.Options{Workers: pool, Policy: ready{}, Fetch: blobs.Fetch,
		CacheDir: filepath.Join(state, "descriptions"), Limits: abi.Limits{Wall: time.Minute, Compile: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		reload.New([]string{tools}, reload.Options{Blobs: blobs}).Run(ctx, func(c []tool.Candidate) {
			r.Apply(ctx, c)
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	scene(r, func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.After(time.Minute); !holds(); {
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("never: %s; modules: %+v", what, r.Modules())
			}
		}
	})
	cancel()
	<-done
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func call(r *registry.Registry, name, args string) (string, error) {
	res, err := r.Call(context.Background(), tool.Caller{Principal: "local"}, tool.Call{Name: name, Arguments: []byte(args)})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(res.Content[0].Text), nil
}
