package main

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
)

// An embedded worker is used if it was built with this program, and else not.
func TestSlimWorker(t *testing.T) {
	worker := &fstest.MapFile{Data: []byte("ELF")}
	built := func(as string) fstest.MapFS {
		return fstest.MapFS{"slim/hutch-worker": worker, "slim/built": &fstest.MapFile{Data: []byte(as + "\n")}}
	}
	for name, test := range map[string]struct {
		folder       fstest.MapFS
		used, warned bool
	}{
		"fresh clone":          {fstest.MapFS{"slim/.gitignore": worker}, false, false},
		"built together":       {built("v1 linux amd64"), true, false},
		"another version":      {built("v2 linux amd64"), false, true},
		"another architecture": {built("v1 linux arm64"), false, true},
	} {
		var log bytes.Buffer
		open := slimWorkerIn(test.folder, "v1 linux amd64", slog.New(slog.NewTextHandler(&log, nil)))
		if (open != nil) != test.used || strings.Contains(log.String(), "run make") != test.warned {
			t.Errorf("%s: used %v, logged %q", name, open != nil, log.String())
		}
		if open == nil {
			continue
		}
		f, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); err != nil || string(text) != "ELF" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
