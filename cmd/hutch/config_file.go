package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/hutch-run/hutch/protocol/abi"
)

const keyJail = "require_jail"

// maxConfigFile bounds what is read before anything is known about a file.
const maxConfigFile = 1 << 20

// fileKeys are the keys of a configuration file. YAML is read as a tree and
// walked by hand so that every error can name file, line and key, and so that
// nothing unknown, repeated or aliased slips through. JSON is YAML too.
var fileKeys = []struct {
	name string
	set  func(cfg *Config, f *configFile, v ast.Node) error
}{
	{flagTools, func(cfg *Config, f *configFile, v ast.Node) (err error) {
		cfg.Tools, err = f.folders(v)
		cfg.toolsFrom = f.path
		return err
	}},
	{flagState, func(cfg *Config, f *configFile, v ast.Node) (err error) {
		cfg.State, err = f.folder(v, flagState)
		return err
	}},
	{flagAddr, func(cfg *Config, f *configFile, v ast.Node) (err error) {
		if cfg.Addr, err = f.text(v, flagAddr); err != nil {
			return err
		}
		if err := checkAddr(flagAddr, cfg.Addr); err != nil {
			return f.errorf(v, "%w", err)
		}
		cfg.addrFrom = f.path
		return nil
	}},
	{keyJail, func(cfg *Config, f *configFile, v ast.Node) error {
		text, err := f.text(v, keyJail)
		if err != nil {
			return err
		}
		if cfg.RequireJail, err = strconv.ParseBool(text); err != nil {
			return f.errorf(v, "%s: %s is neither true nor false", keyJail, quoted(text))
		}
		return nil
	}},
	{"limits", func(cfg *Config, f *configFile, v ast.Node) error {
		return f.limits(v, &cfg.Limits)
	}},
}

// configFile is a configuration file being read.
type configFile struct{ path string }

// readConfigFile sets what the file at path says in cfg. Relative folders in it
// are relative to the file, so that it means the same wherever hutch starts.
func readConfigFile(path string, cfg *Config) error {
	f := &configFile{path: path}
	body, err := f.read()
	if err != nil {
		return usagef("config %s: %w", quoted(path), err)
	}
	root, err := f.parse(body)
	if err != nil || root == nil {
		return err
	}
	names := make([]string, len(fileKeys))
	for i, key := range fileKeys {
		names[i] = key.name
	}
	return f.each(root, "", names, func(i int, v ast.Node) error {
		return fileKeys[i].set(cfg, f, v)
	})
}

func (f *configFile) read() (_ []byte, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		var bad *os.PathError
		if errors.As(err, &bad) {
			err = bad.Err // the path stands in front already
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	body, err := io.ReadAll(io.LimitReader(file, maxConfigFile+1))
	if err == nil && len(body) > maxConfigFile {
		err = fmt.Errorf("larger than %s", formatSize(maxConfigFile))
	}
	return body, err
}

// parse returns the root of the only document, or nil if the file is empty.
func (f *configFile) parse(body []byte) (ast.Node, error) {
	tree, err := parser.ParseBytes(body, 0)
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil {
			return nil, usagef("%s:%d: %s", f.path, bad.GetToken().Position.Line, bad.GetMessage())
		}
		return nil, usagef("%s: %s", f.path, oneLine(err.Error()))
	}
	var root ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, f.errorf(doc.Body, "a second document: one is read")
		}
		root = doc.Body
	}
	return root, nil
}

// each calls set for every key of a mapping, in the order of the file. at is
// the path of the mapping itself.
func (f *configFile) each(n ast.Node, at string, names []string, set func(i int, v ast.Node) error) error {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return nil
	default:
		where := strings.TrimSuffix(at, ".")
		return f.errorf(n, "%skeys and values are wanted here", suffixed(where, ": "))
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		i := slices.Index(names, name)
		if i < 0 {
			return f.errorf(pair.Key, "%s%s: no such key; there are %s", at, abi.Cut(name, 80), strings.Join(names, ", "))
		}
		if err := set(i, pair.Value); err != nil {
			return err
		}
	}
	return nil
}

// suffixed returns s and suffix, or nothing if there is no s.
func suffixed(s, suffix string) string {
	if s == "" {
		return ""
	}
	return s + suffix
}

func (f *configFile) limits(n ast.Node, l *Limits) error {
	names := limitNames()
	return f.each(n, "limits.", names, func(i int, v ast.Node) error {
		text, err := f.text(v, "limits."+names[i])
		if err != nil {
			return err
		}
		if err := limitKeys[i].set(l, text); err != nil {
			return f.errorf(v, "limits.%s: %w", names[i], err)
		}
		return nil
	})
}

func (f *configFile) folders(n ast.Node) ([]string, error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		dir, err := f.folder(n, flagTools)
		return []string{dir}, err
	}
	var dirs []string
	for i, v := range seq.Values {
		dir, err := f.folder(v, fmt.Sprintf("%s[%d]", flagTools, i))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		return nil, f.errorf(n, "%s: empty: name at least one folder", flagTools)
	}
	return dirs, nil
}

func (f *configFile) folder(n ast.Node, key string) (string, error) {
	dir, err := f.text(n, key)
	if err != nil || filepath.IsAbs(dir) {
		return dir, err
	}
	return filepath.Join(filepath.Dir(f.path), dir), nil
}

// text returns a scalar as it was written.
func (f *configFile) text(n ast.Node, key string) (string, error) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	case *ast.NullNode:
	default:
		return "", f.errorf(n, "%s: one plain value is wanted here", key)
	}
	if text == "" {
		return "", f.errorf(n, "%s: empty", key)
	}
	return text, nil
}

func (f *configFile) errorf(n ast.Node, format string, args ...any) error {
	line := 1
	if token := n.GetToken(); token != nil && token.Position != nil {
		line = token.Position.Line
	}
	return usagef("%s:%d: %w", f.path, line, fmt.Errorf(format, args...))
}
