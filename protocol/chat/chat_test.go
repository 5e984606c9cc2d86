package chat

import (
	"encoding/json"
	"testing"
)

func TestContent(t *testing.T) {
	for wire, want := range map[string]struct {
		text  string
		parts int
	}{
		`"hi"`: {"hi", 1},
		`""`:   {"", 1},
		`[]`:   {"", 0},
		`[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"https://example.org/x.png"}},{"type":"text","text":"b"}]`: {"a\nb", 3},
	} {
		var c Content
		if err := json.Unmarshal([]byte(wire), &c); err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		back, err := json.Marshal(c)
		if err != nil || string(back) != wire || c.String() != want.text || len(c.Parts()) != want.parts || c.IsZero() {
			t.Errorf("%s: back as %s, text %q, %d parts, %v", wire, back, c, len(c.Parts()), err)
		}
	}
}

func TestContentThatIsNone(t *testing.T) {
	m := Message{ID: "m", Role: Assistant}
	if b, err := json.Marshal(m); err != nil || string(b) != `{"id":"m","role":"assistant"}` {
		t.Errorf("%s, %v", b, err)
	}
	for _, wrong := range []string{`1`, `{}`, `true`, `[1]`, `"`} {
		if err := json.Unmarshal([]byte(wrong), new(Content)); err == nil {
			t.Errorf("%s is content", wrong)
		}
	}
}
