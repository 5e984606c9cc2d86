package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestScriptEngine(t *testing.T) {
	_, err := scriptEngine(fstest.MapFS{})
	if err == nil || err.Error() != "this hutch was built without an engine for JavaScript" {
		t.Errorf("without one: %v", err)
	}
	_, err = scriptEngine(fstest.MapFS{"javascript/qjs.wasm": {Data: []byte("\x00asm")}})
	if err == nil || !strings.HasPrefix(err.Error(), "JavaScript engine has SHA-256 ") {
		t.Errorf("with another one: %v", err)
	}
}

// What is built as JavaScript, and what the module is called.
func TestScriptSources(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"a/tool.js", "b/tool.js", "b/main.go", "c/tool.js", "c/go.mod", "d/other.js", "e.wasm/tool.js", "f.js/tool.js", "g/x.wasm.js"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "h", "tool.js"), 0o700))
	for arg, want := range map[string]source{
		"a":           {name: "a.wasm", file: "a/a.wasm", script: "a/tool.js"},
		"a/tool.js":   {name: "tool.wasm", file: "a/tool.wasm", script: "a/tool.js"},
		"d/other.js":  {name: "other.wasm", file: "d/other.wasm", script: "d/other.js"},
		"e.wasm":      {name: "e.wasm", file: "e.wasm/e.wasm", script: "e.wasm/tool.js"},
		"f.js":        {name: "f.wasm", file: "f.js/f.wasm", script: "f.js/tool.js"},
		"g/x.wasm.js": {name: "x.wasm", file: "g/x.wasm", script: "g/x.wasm.js"},
		"b":           {}, "c": {}, "d": {}, "h": {},
	} {
		script, err := scriptOf(filepath.Join(dir, arg))
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		if want.script == "" || script == "" {
			if script != want.script {
				t.Errorf("%s: built from %q", arg, script)
			}
			continue
		}
		got, err := scriptSource(filepath.Join(dir, arg), script)
		want.file, want.script = filepath.Join(dir, want.file), filepath.Join(dir, want.script)
		if err != nil || got.name != want.name || got.file != want.file || got.script != want.script {
			t.Errorf("%s: got %+v, %v", arg, got, err)
		}
	}
	if _, err := scriptOf(filepath.Join(dir, "none.js")); err == nil {
		t.Error("a file that is not there is no error")
	}
}
