package main

import (
	"os"
	"path/filepath"
	"testing"
)

// write makes a file below the current folder.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Whatever is compiled into a module, or embedded, makes it another one, and nothing
// else does.
func TestMadeOf(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "go.mod", "module example.test\n\ngo 1.26\n")
	write(t, "guest/main.go", "package main\n\nimport (\n\t_ \"embed\"\n\n\t\"example.test/dep\"\n)\n\n//go:embed words.txt\nvar words string\n\nfunc main() { dep.Say(words) }\n")
	write(t, "guest/words.txt", "one")
	write(t, "dep/dep.go", "package dep\n\nfunc Say(string) {}\n")
	write(t, "dep/dep_wasip1.go", "package dep\n")
	made := func(with string) string {
		t.Helper()
		sum, err := madeOf("guest", with)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := made("with")
	for _, same := range []struct{ file, text string }{
		{"guest/main_test.go", "package main\n"}, {"dep/dep_windows.go", "package dep\n"}, {"other/other.go", "package other\n"}, {"guest/README.md", "text"},
	} {
		write(t, same.file, same.text)
		if made("with") != before {
			t.Errorf("%s is no part of it", same.file)
		}
	}
	for _, changed := range []struct{ file, text string }{
		{"guest/words.txt", "two"}, {"dep/dep.go", "package dep\n\n// Say says it.\nfunc Say(string) {}\n"}, {"dep/dep_wasip1.go", "package dep\n\nconst more = 1\n"},
		{"dep/new.go", "package dep\n"}, {"go.mod", "module example.test\n\ngo 1.25\n"}, {"go.sum", "\n"},
	} {
		write(t, changed.file, changed.text)
		now := made("with")
		if now == before {
			t.Errorf("%s makes no difference", changed.file)
		}
		before = now
	}
	if made("another") == before {
		t.Error("what it is built with makes no difference")
	}
	write(t, "dep/dep.go", "package dep\n\nimport \"example.test/none\"\n")
	if sum, err := madeOf("guest", "with"); err == nil {
		t.Errorf("%s of what cannot be built", sum)
	}
}

// Only what was built, as it was built, is left as it is.
func TestFresh(t *testing.T) {
	t.Chdir(t.TempDir())
	const out = "tools-wasm/a.wasm"
	write(t, out, "built")
	if fresh(out, "from") {
		t.Error("fresh without a stamp")
	}
	if err := keep(out, "from"); err != nil {
		t.Fatal(err)
	}
	if !fresh(out, "from") {
		t.Error("not fresh")
	}
	if fresh(out, "other") || fresh("bin/examples/a.wasm", "from") {
		t.Error("fresh, though it is made of something else")
	}
	write(t, out, "changed")
	if fresh(out, "from") {
		t.Error("fresh, though it is not what was built")
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if fresh(out, "from") {
		t.Error("fresh, and not there")
	}
}
