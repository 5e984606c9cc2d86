package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/hutch-run/hutch/protocol/rawjson"
)

// What is for HTML is not escaped, what is nested stays as it was, and nothing follows.
func TestMarshal(t *testing.T) {
	got, err := rawjson.Marshal(map[string]any{"text": "<&>", "raw": json.RawMessage(`"<"`)})
	if want := `{"raw":"<","text":"<&>"}`; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := rawjson.Marshal(func() {}); err == nil {
		t.Errorf("a function is %q", got)
	}
}
