package toolswasm

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	digestA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	digestB = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" // of "b"
)

// built is a folder with two modules and whatever else lies there.
func built(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{
		"b.wasm":       {Data: []byte("b")},
		"a.wasm":       {Data: []byte("a")},
		"toolswasm.go": {Data: []byte("package toolswasm")},
	}
	text, err := Index(files)
	if err != nil {
		t.Fatal(err)
	}
	files[indexName] = &fstest.MapFile{Data: text}
	return files
}

func TestSet(t *testing.T) {
	s, err := Open(built(t))
	if err != nil {
		t.Fatal(err)
	}
	modules := s.Modules()
	if len(modules) != 2 || modules[0] != (Module{"a.wasm", digestA, 1}) || modules[1] != (Module{"b.wasm", digestB, 1}) {
		t.Errorf("modules are %+v", modules)
	}
	modules[0].Digest = "" // must be a copy
	if b, err := s.Fetch(digestA); err != nil || string(b) != "a" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := s.Fetch(strings.Repeat("0", 64)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown digest: %v", err)
	}
}

func TestNothingBuilt(t *testing.T) {
	s, err := Open(fstest.MapFS{"toolswasm.go": {}, "stray.wasm": {}})
	if err != nil || len(s.Modules()) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	text, err := Index(fstest.MapFS{})
	if err != nil || string(text) != "[]\n" {
		t.Errorf("index of nothing: %q, %v", text, err)
	}
}

// Bytes that are not those of the build are never handed out.
func TestFetchChecksTheBytes(t *testing.T) {
	files := built(t)
	s, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	files["a.wasm"].Data = []byte("x")
	if b, err := s.Fetch(digestA); err == nil || !strings.Contains(err.Error(), "the index says "+digestA) {
		t.Errorf("got %q, %v", b, err)
	}
	delete(files, "b.wasm")
	if b, err := s.Fetch(digestB); err == nil {
		t.Errorf("got %q of a file that is gone", b)
	}
}

func TestOpenErrors(t *testing.T) {
	entry := func(name, digest, size string) string {
		return `{"name":"` + name + `","digest":"` + digest + `","size":` + size + `}`
	}
	a := entry("a.wasm", digestA, "1")
	for index, want := range map[string]string{
		``:                      "index.json: EOF",
		`{}`:                    "cannot unmarshal object",
		`[` + a + `] []`:        "more after the list",
		`[{"nam":"a.wasm"}]`:    `unknown field "nam"`,
		`[` + a + `,` + a + `]`: "a.wasm comes after a.wasm",
		`[` + entry("../a.wasm", digestA, "1") + `]`:               `"../a.wasm" is no bare name`,
		`[` + entry("a.txt", digestA, "1") + `]`:                   `"a.txt" is no bare name`,
		`[` + entry(".wasm", digestA, "1") + `]`:                   `".wasm" is no bare name`,
		`[` + entry("a.wasm", digestA[1:], "1") + `]`:              "is no lower-case SHA-256",
		`[` + entry("a.wasm", strings.ToUpper(digestA), "1") + `]`: "is no lower-case SHA-256",
		`[` + entry("a.wasm", digestA, "2") + `]`:                  "a.wasm: has 1 bytes, index.json says 2; run make tools",
		`[` + entry("z.wasm", digestA, "1") + `]`:                  "file does not exist",
	} {
		files := built(t)
		files[indexName] = &fstest.MapFile{Data: []byte(index)}
		if s, err := Open(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v; want %s", index, s, err, want)
		}
	}
}

// What is embedded is whole, whether or not anything was built.
func TestShipped(t *testing.T) {
	s, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Modules() {
		if b, err := s.Fetch(m.Digest); err != nil || int64(len(b)) != m.Size {
			t.Errorf("%s: %d bytes, %v", m.Name, len(b), err)
		}
	}
}
