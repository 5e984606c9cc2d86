package text

import "testing"

func TestResults(t *testing.T) {
	for name, f := range map[string]func() bool{"json": JSON, "regexp": Regexp, "echo": Echo} {
		if !f() {
			t.Errorf("%s: not the result it should have", name)
		}
	}
}
