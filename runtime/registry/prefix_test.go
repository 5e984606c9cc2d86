package registry

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// prefixes are what the policy says stands before the tools of a file.
type prefixes struct {
	mu  sync.Mutex
	all map[string]string
}

func (p *prefixes) of(m tool.Module) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[m.Name]
}

// set makes the policy give a file a prefix, and the world hear of it.
func (p *prefixes) set(w *world, name, prefix string) {
	p.mu.Lock()
	p.all[name] = prefix
	p.mu.Unlock()
	w.Reconsider(w.Context())
}

func newPrefixed(t *testing.T) (*world, *prefixes) {
	p := &prefixes{all: map[string]string{}}
	return newWorldWith(t, func(o *Options) { o.Prefix = p.of }), p
}

// answers wants a call to reach a tool of that own name.
func (w *world) answers(name, own string) {
	w.Helper()
	got, err := w.Call(w.Context(), tool.Caller{}, tool.Call{Name: name})
	if err != nil || got.Content[0].Text != own+"{}" {
		w.Errorf("%s: %+v, %v", name, got, err)
	}
}

// Two files with a tool of one name are both there once one has a prefix, and tell
// each other apart by it.
func TestPrefixSolvesAConflict(t *testing.T) {
	w, p := newPrefixed(t)
	w.apply(w.offers("a.wasm", "1", "search"), w.offers("b.wasm", "1", "search"))
	w.lists("search")
	w.says("b.wasm", tool.Rejected, "give b.wasm a prefix in the policy")
	p.set(w, "b.wasm", "b_")
	w.lists("b_search", "search")
	w.says("b.wasm", tool.Ready, "")
	w.answers("b_search", "search")
	p.set(w, "a.wasm", "a_")
	w.lists("a_search", "b_search")
	if _, err := w.Call(w.Context(), tool.Caller{}, tool.Call{Name: "search"}); err == nil {
		t.Error("a tool with a prefix answers without it")
	}
	p.set(w, "b.wasm", "")
	w.lists("a_search", "search")
	w.answers("search", "search")
}

// A name that hosts do not take has the prefix as well.
func TestPrefixOfAnAlias(t *testing.T) {
	w, p := newPrefixed(t)
	w.apply(w.offers("a.wasm", "1", "web.search"))
	p.set(w, "a.wasm", "x_")
	w.lists("x_web_search")
	w.answers("x_web.search", "web.search")
}

// Who gets another prefix has to find the names free: a file that has them keeps
// them.
func TestPrefixTakesNoName(t *testing.T) {
	w, p := newPrefixed(t)
	for _, order := range [][2]string{{"a.wasm", "b.wasm"}, {"b.wasm", "a.wasm"}} {
		w.apply()
		p.set(w, "b.wasm", "")
		named := map[string]string{"a.wasm": "x_search", "b.wasm": "search"}
		w.apply(w.offers(order[0], "1", named[order[0]]), w.offers(order[1], "1", named[order[1]]))
		w.lists("search", "x_search")
		p.set(w, "b.wasm", "x_")
		w.lists("x_search")
		w.answers("x_search", "x_search")
		w.says("b.wasm", tool.Rejected, `tool "x_search" of b.wasm is already offered by a.wasm`)
	}
}

// A prefix that makes a name too long is told, and changes nothing for others.
func TestPrefixThatIsTooLong(t *testing.T) {
	w, p := newPrefixed(t)
	long := strings.Repeat("n", 40)
	w.apply(w.offers("a.wasm", "1", long), w.offers("b.wasm", "1", "search"))
	p.set(w, "a.wasm", "far_too_")
	w.lists("far_too_"+long, "search")
	p.set(w, "a.wasm", "far_too_l")
	w.lists("search")
	w.says("a.wasm", tool.Rejected, fmt.Sprintf(`with the prefix "far_too_l": tool name "far_too_l%s": allowed are a letter and up to 47 more`, long))
	p.set(w, "a.wasm", "")
	w.lists(long, "search")
}

// What is granted is asked for by the published name, with the prefix beside it.
func TestPrefixInGrants(t *testing.T) {
	w, o := newOperated(t)
	w.o.Prefix = func(tool.Module) string { return "p_" }
	o.accepted["a.wasm"] = ""
	w.apply(w.offers("a.wasm", "1", "take"))
	w.answers("p_take", "take")
	if want := []string{" a.wasm p_take {}"}; len(o.begun) != 1 || o.begun[0] != want[0] {
		t.Errorf("asked for %q, want %q", o.begun, want)
	}
}
