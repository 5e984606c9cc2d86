package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/protocol/strictyaml"
)

// fromFile takes what the file at path says. Relative folders in it are relative to
// the file, so that it means the same wherever hutch starts. Every error names file,
// line and key, and nothing unknown, repeated or aliased slips through.
func (cfg *Config) fromFile(all []setting, path string, env func(string) string) (wrong []error) {
	body, err := readOwn("config", path, strictyaml.MaxBytes, ownfile.Needs{})
	if err != nil {
		return []error{usagef("%w", err)}
	}
	root, err := strictyaml.Parse(path, body)
	if err == nil {
		err = cfg.fromMapping(all, root, "", path, env)
	}
	for _, f := range strictyaml.Findings(err) {
		wrong = append(wrong, usagef("%w", f))
	}
	return wrong
}

// fromMapping takes what stands below the keys that begin with prefix.
func (cfg *Config) fromMapping(all []setting, n *strictyaml.Node, prefix, path string, env func(string) string) error {
	var names []string
	for _, s := range all {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	names = slices.Compact(names)
	if prefix == "" {
		names = append(names, keyAgents)
	}
	return n.Each(names, func(i int, v *strictyaml.Node) error {
		key := prefix + names[i]
		if key == keyAgents {
			return cfg.fromAgents(v, path, env)
		}
		at := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
		if at < 0 {
			return cfg.fromMapping(all, v, key+".", path, env)
		}
		return cfg.fromValue(all[at], v, path, env)
	})
}

func (cfg *Config) fromValue(s setting, v *strictyaml.Node, path string, env func(string) string) error {
	if s.apart != "" {
		return v.Errorf("%s", s.apart)
	}
	values, err := valuesOf(s, v, path)
	if err != nil {
		return err
	}
	if err := cfg.put(s, given{values, sourceFile, fmt.Sprintf("%s:%d", path, v.Line())}, env); err != nil {
		return v.Errorf("%w", err)
	}
	return nil
}

// valuesOf returns what stands at the key of a setting: one value, or a list if it
// takes many.
func valuesOf(s setting, v *strictyaml.Node, path string) (values []string, err error) {
	items := []*strictyaml.Node{v}
	if s.many && v.IsList() {
		if items, err = v.Items(); err != nil {
			return nil, err
		}
	}
	for _, item := range items {
		text, err := item.Text()
		if s.text && item.Kind() == strictyaml.Block {
			text, err = item.Raw(), nil
		}
		if err != nil {
			return nil, err
		}
		if s.path {
			text = besideFile(path, text)
		}
		values = append(values, text)
	}
	return values, nil
}

// besideFile returns a file or folder that is named in the file at path.
func besideFile(path, name string) string {
	if filepath.IsAbs(name) || atHome(name) {
		return name
	}
	if name = filepath.Join(filepath.Dir(path), name); atHome(name) {
		name = "." + string(filepath.Separator) + name // it was written so, to mean a folder called ~
	}
	return name
}
