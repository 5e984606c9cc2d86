package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamesAreShownEscaped(t *testing.T) {
	for name, want := range map[string]string{
		"ok.wasm":                                "ok.wasm",
		"größe 2.wasm":                           "größe 2.wasm",
		"a\tb.wasm":                              `a\tb.wasm! file name has characters`,
		"red\x1b[31m.wasm":                       `red\x1b[31m.wasm! file name has characters`,
		"bidi\u202e.wasm":                        `bidi\u202e.wasm! file name has characters`,
		`a\tb.wasm`:                              `a\\tb.wasm! file name has characters`,
		"\xff\xfe.wasm":                          `\xff\xfe.wasm! file name is not valid UTF-8`,
		"cut\xe2\x82.wasm":                       `cut\xe2\x82.wasm! file name is not valid UTF-8`,
		strings.Repeat("n", maxName-5) + ".wasm": strings.Repeat("n", maxName-5) + ".wasm",
		strings.Repeat("n", maxName-4) + ".wasm": strings.Repeat("n", maxName-4) + ".wasm! file name of 201 bytes, at most 200",
	} {
		shown, err := named(name)
		if err != nil {
			shown += "! " + err.Error()
		}
		if !strings.HasPrefix(shown, want) || err == nil && shown != want {
			t.Errorf("%+q: %s, want %s", name, shown, want)
		}
	}
}

func FuzzNamed(f *testing.F) {
	f.Add("a\xff\\\n\u202e.wasm")
	f.Fuzz(func(t *testing.T, name string) {
		shown, err := named(name)
		if again, bad := named(shown); err == nil && (again != name || bad != nil) {
			t.Errorf("%q is fine, but shown as %q", name, shown)
		}
		for _, r := range shown {
			if r < ' ' || r == 0x7f || r == 0x202e {
				t.Errorf("%q is shown with %U", name, r)
			}
		}
		if folded(folded(name)) != folded(name) {
			t.Errorf("%q folds to %q, and that to another name", name, folded(name))
		}
	})
}

// Of two names that macOS or Windows would take for one file, the one that was
// there first is loaded, and keeps the name until it goes.
func TestNamesThatSomeFileSystemsTakeForOne(t *testing.T) {
	const composed, decomposed = "caf\u00e9.wasm", "cafe\u0301.wasm"
	reason := func(owner string) string {
		return "!differs from " + owner + " only in case or in how accents are encoded: rename one of them"
	}
	onStage(t, func(dir string) {
		for _, name := range []string{"tool.wasm", composed, decomposed, "Two.wasm", "two.wasm"} {
			write(t, filepath.Join(dir, name), name)
		}
	}, func(s *stage) {
		fresh := []string{"Two.wasm=Two.wasm", decomposed + "=" + decomposed, composed + reason(decomposed),
			"tool.wasm=tool.wasm", "two.wasm" + reason("Two.wasm")}
		s.holds(fresh...)
		write(t, s.path("TOOL.wasm"), "T") // sorts first, but comes later
		s.touched("TOOL.wasm")
		s.pass(time.Second)
		s.holds(append([]string{"TOOL.wasm" + reason("tool.wasm")}, fresh...)...)
		must(t, os.Remove(s.path("tool.wasm")), os.Remove(s.path("Two.wasm")))
		s.touched("tool.wasm")
		s.pass(time.Second)
		s.holds("TOOL.wasm=T", decomposed+"="+decomposed, composed+reason(decomposed), "two.wasm=two.wasm")
	})
}

// What is read is one open file: another one put in its place between our steps
// is another version, and what is handed on is one of the two, whole (F05).
func TestF05_FileSwappedBetweenTheSteps(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	write(t, filepath.Join(dir, "x.wasm"), "good")
	write(t, filepath.Join(dir, "evil"), "evil")
	synctest.Test(t, func(t *testing.T) {
		swaps := 0
		o := Options{Blobs: blobs, step: func(string) {
			if swaps++; swaps == 1 {
				must(t, os.Rename(filepath.Join(dir, "evil"), filepath.Join(dir, "x.wasm")))
			}
		}}
		w := New([]string{dir}, o)
		set := w.Scan(t.Context())
		if len(set) != 1 || set[0].Err != nil || swaps == 0 {
			t.Fatalf("after %d swaps: %+v", swaps, set)
		}
		raw, err := blobs.Fetch(set[0].Digest)
		if text := string(raw); err != nil || text != "good" && text != "evil" || sum(text) != set[0].Digest {
			t.Errorf("loaded %q, %v, but %.12s was verified", raw, err, set[0].Digest)
		}
		if set = w.Scan(t.Context()); set[0].Digest != sum("evil") {
			t.Errorf("the next look: %+v, want the file that is there now", set)
		}
	})
}

// The same with bytes that change in the open file: that is no version at all.
func TestF05_FileRewrittenBetweenTheSteps(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	write(t, filepath.Join(dir, "x.wasm"), "good")
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		w := New([]string{dir}, Options{Blobs: blobs, step: func(string) {
			if writes++; writes == 1 {
				write(t, filepath.Join(dir, "x.wasm"), "evil, and longer")
			}
		}})
		set := w.Scan(t.Context())
		if len(set) != 1 || set[0].Digest != sum("evil, and longer") || set[0].Size != 16 {
			t.Errorf("Scan = %+v, want the file as it is now", set)
		}
		if writes < 2 {
			t.Error("the file that changed while it was read was not read again")
		}
	})
}

// Files that come and go by the thousand are told a few times, and what is left
// is right (F14).
func TestF14_MassChangesAreToldAFewTimes(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		before := s.count()
		for i := range 1000 {
			write(t, s.path(fmt.Sprintf("%03d.wasm", i)), "X")
			s.touched("x.wasm")
			s.pass(time.Millisecond)
		}
		for i := range 999 {
			must(t, os.Remove(s.path(fmt.Sprintf("%03d.wasm", i))))
		}
		s.touched("x.wasm")
		s.pass(3 * time.Second)
		if n := s.count() - before; n > 6 {
			t.Errorf("told %d times in four seconds, at most 6", n)
		}
		s.holds("999.wasm=X")
	})
}
