package tool

import "testing"

func TestPureFillsWhatIsUnsaid(t *testing.T) {
	no := false
	said := &Annotations{Title: "t", ReadOnlyHint: &no}
	for _, c := range []struct {
		name     string
		in       *Annotations
		readOnly bool
	}{{"nothing said", nil, true}, {"read-only denied", said, false}} {
		got := c.in.Pure()
		if *got.ReadOnlyHint != c.readOnly || *got.DestructiveHint || !*got.IdempotentHint || *got.OpenWorldHint {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	if said.OpenWorldHint != nil {
		t.Error("the argument was changed")
	}
}
