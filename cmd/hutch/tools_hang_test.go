//go:build unix

package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// A module that hangs when it is asked what it has keeps nobody from calling the
// others, and is rejected before anybody who lists them loses patience.
func TestToolsBesideAModuleThatHangs(t *testing.T) {
	hangs := dialecttest.Module{Describe: []dialecttest.Step{dialecttest.Loop()}}.Bytes()
	app := newTestApp(t, nil)
	defer func() { must(t, app.Close()) }()
	for name, body := range map[string][]byte{"a.wasm": hangs, "hi.wasm": greeter("hi", "hello"), "z.wasm": nil} {
		must(t, writeAtomic(filepath.Join(app.cfg.Tools[0], name), body))
	}
	ctx, cancel := context.WithCancel(t.Context())
	loaded := launch(func() error {
		defer close(app.ready)
		return app.Load(ctx)
	})
	must(t, app.await(ctx, &voice{w: t.Output()}, func() bool { return app.offers("hi") }))
	if n, all := app.known(); n != 2 || all != 3 || app.loading() != 1 {
		t.Errorf("%d of %d modules are known, %d are loading", n, all, app.loading())
	}
	if r, err := app.tools.Call(ctx, localCaller(""), tool.Call{Name: "hi"}); err != nil || resultText(r) != "hello" {
		t.Errorf("hi says %v, %v", r, err)
	}
	if app.offers("no") {
		t.Error("a tool that is not there is offered")
	}
	cancel()
	if err := <-loaded; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := app.await(ctx, &voice{w: t.Output()}, everythingLoaded); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for what was cancelled: %v", err)
	}
}

// A list waits as long as something becomes known, and then not much longer.
func TestOutOfPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, all := 0, 0
		given := outOfPatience(func() (int, int) { return known, all })
		for _, c := range []struct {
			after      time.Duration
			known, all int
			want       bool
		}{
			{0, 0, 0, false}, {time.Hour, 0, 0, false}, {0, 0, 3, false}, {listPatience - 1, 1, 3, false},
			{listPatience - 1, 2, 3, false}, {listPatience - 1, 2, 3, false}, {1, 2, 3, true},
		} {
			time.Sleep(c.after)
			known, all = c.known, c.all
			if got := given(); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
	})
}

func TestNotFoundSaysWhatCouldNotBeLoaded(t *testing.T) {
	dir := folderWith(t, map[string][]byte{"y.wasm": nil, "z.wasm": nil})
	p := start(t, dir, "tools", "call", "no")
	p.says(t, `^hutch: error: Tool not found: no: looked in tools and among the tools that come with hutch; 2 modules could not be loaded, see: hutch tools list --state \S+$`)
	if got := p.exit(t); got.ExitCode() != exitFailed {
		t.Error(got)
	}
}
