package main

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// scriptSuffix ends the name of a tool written in JavaScript, and scriptMain is
// the one that a folder is built from.
const (
	scriptSuffix = ".js"
	scriptMain   = "tool" + scriptSuffix
)

// javascript holds the engine of JavaScript tools, if make put it there before this
// program was built.
//
//go:embed all:javascript
var javascript embed.FS

// scriptEngine returns the embedded engine, or what to do without one.
func scriptEngine(folder fs.FS) ([]byte, error) {
	engine, err := fs.ReadFile(folder, "javascript/qjs.wasm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted(errors.New("this hutch was built without an engine for JavaScript"),
			"build one that has it with make, in hutch's sources")
	}
	if err == nil {
		err = dialect.CheckEngine(engine)
	}
	return engine, err
}

// scriptOf finds out whether arg names a JavaScript tool: a file, or a folder with
// tool.js in it and nothing of Go. It is empty if not.
func scriptOf(arg string) (string, error) {
	if strings.HasSuffix(arg, scriptSuffix) && !isFolder(arg) {
		if _, err := os.Stat(arg); err != nil {
			return "", usagef("no file %s", quoted(arg)).withHint("make a tool to start from with \"hutch new --lang js NAME\"")
		}
		return arg, nil
	}
	file := filepath.Join(arg, scriptMain)
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil
	}
	for _, pattern := range []string{"go.mod", "*.go"} {
		if found, err := filepath.Glob(filepath.Join(arg, pattern)); err != nil || found != nil {
			return "", err
		}
	}
	return file, nil
}

// scriptSource is the source of a module that a script becomes: a file's, with its
// name, and a folder's with that of the folder.
func scriptSource(arg, script string) (source, error) {
	named, dir := script, filepath.Dir(script)
	if script != arg {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return source{}, err
		}
		named = filepath.Base(abs)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(named), scriptSuffix), moduleSuffix) + moduleSuffix
	return source{name: name, file: filepath.Join(dir, name), script: script}, nil
}

// readScript makes the module of a script.
func (s source) readScript() ([]byte, error) {
	engine, err := scriptEngine(javascript)
	if err != nil {
		return nil, err
	}
	text, err := readRegular(s.script, wasmbin.MaxCustomBytes)
	if err != nil {
		return nil, err
	}
	return dialect.WithScript(engine, filepath.Base(s.script), string(text))
}
