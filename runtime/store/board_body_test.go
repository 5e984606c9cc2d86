package store_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/board"
)

// What stands in a body has the names of fields: one that is called otherwise would be empty
// in what a database has. Who changes a name brings a migration, and this file after it.
func TestBodiesKeepTheirNames(t *testing.T) {
	var got strings.Builder
	for _, v := range []any{
		board.Project{}, board.Member{}, board.Chat{}, board.Task{}, board.Step{}, board.Message{}, board.Attachment{}, board.Activity{},
	} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(raw, '\n'))
	}
	want, err := os.ReadFile(filepath.Join("testdata", "board.jsonl"))
	if err != nil || got.String() != string(want) {
		t.Errorf("%v: got\n%s, want\n%s", err, got.String(), want)
	}
}
