package registry

import (
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestF13_PathOrderDecidesOnAFreshStart(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("a.wasm", "1", "search"), w.offers("b.wasm", "1", "search", "other"), w.offers("c.wasm", "1", "third"))
	w.lists("search", "third")
	w.says("a.wasm", tool.Ready, "")
	w.says("b.wasm", tool.Rejected, `tool "search" of b.wasm is already offered by a.wasm from tools`)
}

func TestShippedNamesAreReserved(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("a.wasm", "1", "hash"), w.offers("shipped/text.wasm", "2", "hash"))
	w.says("shipped/text.wasm", tool.Ready, "")
	w.says("a.wasm", tool.Rejected, `tool "hash" of a.wasm belongs to hutch: choose another name`)
	w.apply(w.offers("text.wasm", "1", "other"), w.offers("shipped/text.wasm", "2", "hash"))
	w.says("tools/text.wasm", tool.Rejected, `a file named "text.wasm" belongs to hutch: choose another name`)
}

func TestLiveOwnerKeepsItsName(t *testing.T) {
	w := newWorld(t)
	b := w.offers("b.wasm", "1", "search")
	w.apply(b)
	a := w.offers("a.wasm", "1", "search")
	w.apply(a, b)
	w.says("a.wasm", tool.Rejected, "b.wasm")
	w.says("b.wasm", tool.Ready, "")
	b2 := w.offers("b.wasm", "2", "search")
	w.apply(a, b2)
	w.says("a.wasm", tool.Rejected, "b.wasm")
	w.start() // a fresh start forgets who had it
	w.apply(a, b2)
	w.says("a.wasm", tool.Ready, "")
	w.says("b.wasm", tool.Rejected, "a.wasm")
}

func TestNameIsFreeOnceItsOwnerIsGone(t *testing.T) {
	w := newWorld(t)
	a, b := w.offers("a.wasm", "1", "search"), w.offers("b.wasm", "1", "search")
	w.apply(a, b)
	w.apply(b)
	w.lists("search")
	w.says("b.wasm", tool.Ready, "")
}

// Names change hands within one Apply, whatever the order of the files.
func TestNameChangesHandsAtOnce(t *testing.T) {
	for _, names := range [][2]string{{"a.wasm", "b.wasm"}, {"b.wasm", "a.wasm"}} {
		w := newWorld(t)
		giver, taker := names[0], names[1]
		w.apply(w.offers(giver, "1", "search", "keep"), w.offers(taker, "1", "find"))
		w.apply(w.offers("a.wasm", "2", next(giver == "a.wasm")...), w.offers("b.wasm", "2", next(giver == "b.wasm")...))
		w.says(giver, tool.Ready, "")
		w.says(taker, tool.Ready, "")
		w.lists("find", "keep", "search")
	}
}

func next(giver bool) []string {
	if giver {
		return []string{"keep"}
	}
	return []string{"find", "search"}
}

// A new version that wants a name of another live module is refused, and the
// version before serves on, under all of its names.
func TestGreedyNewVersionKeepsTheOldOne(t *testing.T) {
	w := newWorld(t)
	a, b := w.offers("a.wasm", "1", "one", "two"), w.offers("b.wasm", "1", "three")
	w.apply(a, b)
	w.apply(w.offers("a.wasm", "2", "one", "three"), b)
	w.lists("one", "three", "two")
	w.says("a.wasm", tool.Ready, "serving the version before (sha256:"+a.Digest[:12]+`…): tool "three" of a.wasm is already offered by b.wasm`)
}

// A name that an owner may want back is not given away: b drops "two" only if
// its new version is taken, which it is not.
func TestNameOfARefusedVersionIsNotGivenAway(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.offers("a.wasm", "1", "one"), w.offers("b.wasm", "1", "two"), w.offers("c.wasm", "1", "three")
	w.apply(a, b, c)
	w.apply(w.offers("a.wasm", "2", "one", "two"), w.offers("b.wasm", "2", "three"), c)
	w.lists("one", "three", "two")
	w.says("a.wasm", tool.Ready, "b.wasm")
	w.says("b.wasm", tool.Ready, "c.wasm")
}

func TestSameFileNameInTwoFolders(t *testing.T) {
	w := newWorld(t)
	first, second := w.offers("one/x.wasm", "1", "a"), w.offers("two/x.wasm", "2", "b")
	w.apply(first, second)
	w.lists("a")
	w.says("two/x.wasm", tool.Rejected, `a file named "x.wasm" serves already, from one`)
	w.apply(second)
	w.lists("b")
}

func TestSameFileTwiceCountsOnce(t *testing.T) {
	w := newWorld(t)
	c := w.offers("x.wasm", "1", "x")
	w.apply(c, c)
	if n := len(w.Modules()); n != 1 {
		t.Errorf("%d modules", n)
	}
	w.says("x.wasm", tool.Ready, "")
}
