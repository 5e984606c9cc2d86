package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// age makes an empty file that was last used so long ago.
func age(t *testing.T, path string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	f, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err = errors.Join(err, f.Close(), os.Chtimes(path, at, at)); err != nil {
		t.Fatal(err)
	}
}

func left(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestOldRecordsAreTidied(t *testing.T) {
	w := newWorld(t)
	wanted := w.offers("x.wasm", "1", "x")
	w.apply(wanted)
	for _, name := range []string{strings.Repeat("a", 64) + ".json", recordTemp + "123", "notes.txt", wanted.Digest + ".json"} {
		age(t, filepath.Join(w.cache, name), cacheTTL+time.Hour)
	}
	w.Tidy()
	if got := left(t, w.cache); got != wanted.Digest+".json notes.txt" {
		t.Errorf("left: %s, want the record of the module that is there, and the foreign file", got)
	}
}

func TestOldQuarantineRecordsAreTidied(t *testing.T) {
	w := newWorld(t)
	there, gone := w.offers("there.wasm", "1", "a"), strings.Repeat("b", 64)
	age(t, filepath.Join(w.jail, there.Digest+".json"), quarantineTTL+time.Hour)
	age(t, filepath.Join(w.jail, gone+".json"), quarantineTTL-time.Hour)
	<-w.Refresh(t.Context())
	w.apply(there)
	w.Tidy()
	if n := len(strings.Fields(left(t, w.jail))); n != 2 {
		t.Errorf("left: %d records, want one that is not old and one whose module is there", n)
	}
	age(t, filepath.Join(w.jail, gone+".json"), quarantineTTL+time.Hour)
	w.Tidy()
	if got := left(t, w.jail); got != there.Digest+".json" {
		t.Errorf("left: %s", got)
	}
	if _, err := tidy(w.jail, recordName, quarantineTTL, maxOrphans, nil); err != nil || left(t, w.jail) == "" {
		t.Errorf("a process that looks at other folders dropped the record: %v", err)
	}
	<-w.Refresh(t.Context())
	w.says("there.wasm", tool.Held, "hutch tools release")
	if held := w.Quarantined(); len(held) != 1 {
		t.Errorf("held: %v", held)
	}
}

func TestTidyKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		age(t, filepath.Join(dir, fmt.Sprintf("%064x.json", i)), time.Duration(i)*time.Minute)
	}
	removed, err := tidy(dir, recordName, time.Hour, 3, map[string]bool{fmt.Sprintf("%064x", 9): true})
	if removed != 6 || err != nil {
		t.Errorf("removed %d, %v", removed, err)
	}
	if got := left(t, dir); got != fmt.Sprintf("%064x.json %064x.json %064x.json %064x.json", 0, 1, 2, 9) {
		t.Errorf("left: %s", got)
	}
	if _, err := tidy(filepath.Join(dir, "missing"), recordName, 1, 1, nil); err == nil {
		t.Error("a folder that cannot be read is no error")
	}
}
