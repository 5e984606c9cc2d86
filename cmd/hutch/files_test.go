package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch"
)

func TestReadModuleIsBounded(t *testing.T) {
	dir := t.TempDir()
	for size, want := range map[int64]string{maxModule: "", maxModule + 1: "x.wasm: larger than 16MiB"} {
		path := filepath.Join(dir, "x.wasm")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		body, err := readModule(path)
		if found := errText(err); found != want || err == nil && int64(len(body)) != size {
			t.Errorf("%d bytes: %d, %q", size, len(body), found)
		}
	}
	if _, err := readModule(dir); err == nil || !strings.HasSuffix(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A write that fails leaves the old file and nothing else.
func TestWriteAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made", "a.wasm")
	for _, body := range []string{"one", "two"} {
		if err := writeAtomic(path, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != body {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "made", "b.wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeAtomic(filepath.Join(dir, "made", "b.wasm"), []byte("x")); err == nil {
		t.Error("a folder was written over")
	}
	entries, err := os.ReadDir(filepath.Join(dir, "made"))
	if err != nil || len(entries) != 2 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestWithEnv(t *testing.T) {
	got := withEnv([]string{"GOOS=plan9", "HOME=/h", "GOFLAGS=-race", "GOEXPERIMENT=x", "GOOSX=1"}, []string{"GOOS=wasip1", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT="})
	if want := []string{"HOME=/h", "GOOSX=1", "GOOS=wasip1", "GOFLAGS=-buildvcs=false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"": "''", "a/b.wasm": "a/b.wasm", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'", "ü": "'ü'",
	} {
		if got := shellWord(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// The scaffold's SDK is the whole of it and nothing that needs more than Go.
func TestEmbeddedSources(t *testing.T) {
	files := map[string][]byte{}
	if err := copySDK(files); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"guests/sdk", "guests/sdk/fetch", "guests/sdk/kv", "guests/sdk/sdktest", "protocol/abi", "protocol/tool"} {
		onDisk, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(onDisk) == 0 {
			t.Fatal(onDisk, err)
		}
		for _, file := range onDisk {
			name := dir + "/" + filepath.Base(file)
			if _, err := fs.Stat(hutch.Sources, name); err != nil {
				t.Errorf("%s is not embedded", name)
			}
			_, copied := files[sdkFolder+"/"+name]
			if copied == strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s: copied %t", name, copied)
			}
		}
	}
	for name, body := range files {
		for line := range strings.Lines(string(body)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), `"github.com/`); ok && !strings.HasPrefix(path, "hutch-run/hutch/") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// A folder of sources may be called x.wasm; what is built from it is called that too.
func TestFolderCalledLikeAModule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.wasm")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/x\n"), 0o600))
	src, err := sourceOf(dir)
	if err != nil || src.name != "x.wasm" || src.file != filepath.Join(dir, "x.wasm") {
		t.Errorf("%+v, %v", src, err)
	}
}
