package board

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func FuzzMentioned(f *testing.F) {
	for _, text := range []string{"", "@", "@a", "`@a`", "``@a`@b", "```", "@a-", "é@a", "@A_b-C.", strings.Repeat("`", 100) + "@a", strings.Repeat("@", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := mentioned(text)
		if len(all) > 2*tracker.MaxMentions {
			t.Errorf("%d names", len(all))
		}
		for i, slug := range all {
			if slug == "" || len(slug) > tracker.MaxSlug || slug != strings.ToLower(slug) || strings.TrimRight(slug, "-_") != slug {
				t.Errorf("%q is no slug", slug)
			}
			if !strings.Contains(strings.ToLower(text), "@"+slug) {
				t.Errorf("%q does not stand there", slug)
			}
			for _, other := range all[:i] {
				if other == slug {
					t.Errorf("%q twice", slug)
				}
			}
		}
	})
}

// A text of many names and of many ticks takes no longer than others of its size.
func TestMentionsAreBounded(t *testing.T) {
	if got := len(mentioned(strings.Repeat("@a1 @b2 @c3 ", 5000))); got != 3 {
		t.Errorf("%d names", got)
	}
	var text strings.Builder
	for i := range 1000 {
		text.WriteString("@n" + strings.Repeat("x", i%60) + "y" + strings.Repeat("z", i/60) + " ")
	}
	if got := len(mentioned(text.String())); got != 2*tracker.MaxMentions {
		t.Errorf("%d names", got)
	}
}

func TestIDsGrow(t *testing.T) {
	var make ids
	b := New(nil, Options{})
	last := ""
	for range 10_000 {
		id := make.next(b.o.Now())
		if !isID(id) || id <= last || id[14] != '7' || !strings.Contains("89ab", id[19:20]) {
			t.Fatalf("%s behind %s", id, last)
		}
		last = id
	}
}
