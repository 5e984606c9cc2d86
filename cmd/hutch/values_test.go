package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/owner"
)

// What a tool keeps is the same for everybody at this machine: a command by hand,
// with a server beside it and without one, and the clients of that server.
func TestCommandsKeepValues(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	requests := tool.Requests{"kv": []byte(`[{"reason":"notes"}]`)}
	s := startServer(t, cfg, p, quiet)
	s.drop(t, "note.wasm", noteModule("1", "Notes.", "one", requests))
	s.awaitModule(t, "note.wasm")
	s.approveGrant(t, "note.wasm", capability.Grant{KV: &capability.KVRule{}})
	s.awaitListed(t, "note", true)
	version := func(want string) {
		t.Helper()
		out, err := printed(t, cfg, p, "tools", "call", "note")
		if err != nil || !strings.Contains(out, `"version":`+want) {
			t.Errorf("got %s, %v, want version %s", out, err, want)
		}
	}
	version("1")
	if got, err := s.call(t.Context(), "note", map[string]any{}); err != nil || !strings.Contains(got, `\"version\":2`) {
		t.Errorf("by the server: %s, %v", got, err)
	}
	version("3")
	s.halt(t)
	version("4")
	version("5")
	s = startServer(t, cfg, p, quiet)
	defer s.end(t)
	s.awaitListed(t, "note", true)
	version("6")
}

func kvSet(b *borrower, t *testing.T) abi.Response {
	return b.Serve(t.Context(), kv.Access{Module: "a.wasm", Tenant: "local", Writer: "test"}, abi.Request{Op: abi.OpKVSet, Body: []byte(`{"key":"k","value":"v"}`)})
}

// An owner that does not answer is not waited for for ever, and the folder is free
// again when its borrower is closed.
func TestBorrowersShareTheFolder(t *testing.T) {
	cfg, _ := newTestConfig(t, nil)
	st, err := openState(cfg.State)
	must(t, err)
	silent, err := owner.Claim(st.dir, cfg.ownerInfo("tools"))
	must(t, err)
	b := &borrower{cfg: cfg, log: quiet}
	if got := kvSet(b, t); got.Code != abi.Unavailable || !strings.Contains(string(got.Body), "who keeps the values does not answer: try again") {
		t.Errorf("beside an owner that says nothing: %v %s", got.Code, got.Body)
	}
	must(t, silent.Release())
	if got := kvSet(b, t); got.Code != abi.OK {
		t.Errorf("without one: %v %s", got.Code, got.Body)
	}
	if _, err := owner.Claim(st.dir, cfg.ownerInfo("tools")); err == nil {
		t.Error("the folder has two owners")
	}
	must(t, b.Close())
	next, err := owner.Claim(st.dir, cfg.ownerInfo("tools"))
	must(t, err)
	must(t, next.Release())
}

func TestOwnersTakeOperationsOnValuesAlone(t *testing.T) {
	app := newTestApp(t, nil)
	defer func() { must(t, app.Close()) }()
	for body, want := range map[string]int{"": 400, "{": 400, `{"body":"` + strings.Repeat("A", maxLoan) + `"}`: 400} {
		w := httptest.NewRecorder()
		app.lendValues(w, httptest.NewRequest(http.MethodPost, valuesPath, strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%.20s: %d, want %d", body, w.Code, want)
		}
	}
}
