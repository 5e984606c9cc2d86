package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/hutch-run/hutch"
)

// scaffoldFiles are the templates of a new module.
//
//go:embed scaffold
var scaffoldFiles embed.FS

// sdkFolder is where a scaffold keeps the SDK.
const sdkFolder = "hutch-sdk"

// scaffoldGo is the language version of a scaffold: the SDK's own.
const scaffoldGo = "1.26.0"

// scaffold is what the templates are filled with.
type scaffold struct {
	Name string // of the folder, the module and the .wasm file
	Tool string // of the tool
	Lang string // langGo or langJS
	// Build and Call are the commands that build the module and call its tool.
	Build, Call string
}

// main is the file to start with.
func (s scaffold) main() string {
	if s.Lang == langJS {
		return scriptMain
	}
	return "main.go"
}

// Go and SDK are read by the templates.
func (s scaffold) Go() string  { return scaffoldGo }
func (s scaffold) SDK() string { return sdkFolder }

// The languages that a scaffold can be written in.
const (
	langGo = "go"
	langJS = "js"
)

// scaffoldPaths says which template becomes which file, for each language.
var scaffoldPaths = map[string][]scaffoldPath{langGo: {
	{".gitignore", "gitignore.tmpl"},
	{"README.md", "README.md.tmpl"},
	{"go.mod", "go.mod.tmpl"},
	{"main.go", "main.go.tmpl"},
	{"main_test.go", "main_test.go.tmpl"},
	{"testdata/plain.json", "plain.json.tmpl"},
	{"testdata/blank.json", "blank.json.tmpl"},
	{sdkFolder + "/go.mod", "sdk.mod.tmpl"},
}, langJS: {
	{".gitignore", "gitignore.tmpl"},
	{"README.md", "js.README.md.tmpl"},
	{scriptMain, "tool.js.tmpl"},
	{"testdata/plain.json", "plain.json.tmpl"},
	{"testdata/blank.json", "blank.json.tmpl"},
}}

type scaffoldPath struct{ path, template string }

// write makes the folder dir, which must not exist, and returns the files below
// it in order. If it fails, nothing of dir is left.
func (s scaffold) write(dir string) (_ []string, err error) {
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, hinted(fmt.Errorf("%s exists already", quoted(dir)), "choose another name, or remove %s", dir)
	} else if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	files := map[string][]byte{}
	if err := s.render(files); err != nil {
		return nil, err
	}
	if s.Lang == langGo {
		if err := copySDK(files); err != nil {
			return nil, err
		}
	}
	var names []string
	for name, body := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, body, 0o644); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (s scaffold) render(files map[string][]byte) error {
	all, err := template.ParseFS(scaffoldFiles, "scaffold/*.tmpl")
	if err != nil {
		return fmt.Errorf("scaffold: %w", err)
	}
	for _, f := range scaffoldPaths[s.Lang] {
		var body bytes.Buffer
		if err := all.ExecuteTemplate(&body, f.template, s); err != nil {
			return fmt.Errorf("scaffold: %w", err)
		}
		files[f.path] = body.Bytes()
	}
	return nil
}

// copySDK adds the embedded sources without their tests, which may need
// libraries that a scaffold does not have.
func copySDK(files map[string][]byte) error {
	return fs.WalkDir(hutch.Sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		body, err := fs.ReadFile(hutch.Sources, name)
		if err != nil {
			return err
		}
		files[path.Join(sdkFolder, name)] = body
		return nil
	})
}
