package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// aliasing is a module whose tool take has other spellings for the values of status.
func aliasing(name, value string) dialecttest.Module {
	return dialecttest.Module{Tools: []tool.Spec{{
		Name: name, Description: "takes",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"status":{"type":"string","enum":["todo","in_review"]}}}`),
		Aliases:     map[string]map[string]string{"status": {"review": value}},
	}}}
}

// C-01: another spelling is resolved before the arguments are checked, so that the module,
// its receipt and whoever approves the call see one value.
func TestC_01_SpellingsAreResolvedBeforeTheCheck(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("take.wasm", aliasing("take", "in_review")), w.module("asks.wasm", aliasing("asks", "in_review")))
	if list := w.List(tool.Caller{}); len(list) == 0 || list[0].Aliases != nil {
		t.Errorf("listed %+v", list)
	}
	seen := func(args string) json.RawMessage {
		t.Helper()
		l, _, err := w.find(tool.Caller{}, "take")
		if err != nil {
			t.Fatal(err)
		}
		defer w.release(l.mount.def.digest)
		got, err := w.arguments(l, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := string(seen(`{"status": "Review"}`)); got != `{"status":"in_review"}` {
		t.Errorf("got %s", got)
	}
	if got := string(seen(`{"status": "todo"}`)); got != `{"status": "todo"}` {
		t.Errorf("got %s", got)
	}
	if _, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "take", Arguments: json.RawMessage(`{"status":"reviewed"}`)}); !errors.Is(err, tool.ErrInvalid) ||
		!strings.Contains(err.Error(), `allowed are "todo", "in_review"`) {
		t.Errorf("got %v", err)
	}
	var ask *tool.AskError
	_, err := w.Call(t.Context(), tool.Caller{Asks: true}, tool.Call{Name: "asks", Arguments: json.RawMessage(`{"status":"review"}`)})
	if !errors.As(err, &ask) || string(ask.Arguments) != `{"status":"in_review"}` {
		t.Errorf("got %v, %+v", err, ask)
	}
}

// What it grows to is held to the same limit.
func TestResolvedArgumentsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("take.wasm", aliasing("take", "in_review")))
	l, _, err := w.find(tool.Caller{}, "take")
	if err != nil {
		t.Fatal(err)
	}
	defer w.release(l.mount.def.digest)
	small := *l.mount
	small.limits.InputBytes = len(`{"status":"review"}`)
	bounded := *l
	bounded.mount = &small
	if _, err := w.arguments(&bounded, json.RawMessage(`{"status":"review"}`)); !errors.Is(err, tool.ErrInvalid) || !strings.Contains(err.Error(), "22 bytes with other spellings resolved, at most 19") {
		t.Errorf("got %v", err)
	}
}

// An alias of what is no value of the enum makes the module unusable.
func TestAliasesOfNothingAreRejected(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("take.wasm", aliasing("take", "done")))
	if m := w.Modules()[0]; m.Status != tool.Rejected || !strings.Contains(m.Reason, `"review" stands for "done", which is no value of the enum`) {
		t.Errorf("got %s, %s", m.Status, m.Reason)
	}
}
