package main

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/hutch-run/hutch/host/strictyaml"
)

const keyJail = "require_jail"

// fileKeys are the keys of a configuration file. Every error names file, line and
// key, and nothing unknown, repeated or aliased slips through.
var fileKeys = []struct {
	name string
	set  func(cfg *Config, path string, v *strictyaml.Node) error
}{
	{flagTools, func(cfg *Config, path string, v *strictyaml.Node) (err error) {
		cfg.Tools, err = foldersIn(path, v)
		cfg.toolsFrom = path
		return err
	}},
	{flagState, func(cfg *Config, path string, v *strictyaml.Node) (err error) {
		cfg.State, err = folderIn(path, v)
		return err
	}},
	{flagPolicy, func(cfg *Config, path string, v *strictyaml.Node) (err error) {
		cfg.Policy, err = folderIn(path, v)
		cfg.policyFrom = path
		return err
	}},
	{flagAddr, func(cfg *Config, path string, v *strictyaml.Node) (err error) {
		if cfg.Addr, err = v.Text(); err != nil {
			return err
		}
		if err := checkAddr(fmt.Sprintf("%s:%d: %s", path, v.Line(), flagAddr), cfg.Addr); err != nil {
			return err
		}
		cfg.addrFrom = path
		return nil
	}},
	{keyJail, func(cfg *Config, _ string, v *strictyaml.Node) error {
		text, err := v.Text()
		if err != nil {
			return err
		}
		if cfg.RequireJail, err = strconv.ParseBool(text); err != nil {
			return v.Errorf("%s is neither true nor false", quoted(text))
		}
		return nil
	}},
	{"limits", func(cfg *Config, _ string, v *strictyaml.Node) error {
		return v.Each(limitNames(), func(i int, v *strictyaml.Node) error {
			text, err := v.Text()
			if err != nil {
				return err
			}
			if err := limitKeys[i].set(&cfg.Limits, text); err != nil {
				return v.Errorf("%w", err)
			}
			return nil
		})
	}},
}

// readConfigFile sets what the file at path says in cfg. Relative folders in it
// are relative to the file, so that it means the same wherever hutch starts.
func readConfigFile(path string, cfg *Config) error {
	body, err := strictyaml.ReadFile(path)
	if err != nil {
		return usagef("config %s: %w", quoted(path), err)
	}
	root, err := strictyaml.Parse(path, body)
	if err != nil {
		return usagef("%w", err)
	}
	names := make([]string, len(fileKeys))
	for i, key := range fileKeys {
		names[i] = key.name
	}
	err = root.Each(names, func(i int, v *strictyaml.Node) error { return fileKeys[i].set(cfg, path, v) })
	if err != nil {
		return usagef("%w", err)
	}
	return nil
}

// foldersIn returns the folders that a file at path names, one or a list.
func foldersIn(path string, v *strictyaml.Node) ([]string, error) {
	if !v.IsList() {
		dir, err := folderIn(path, v)
		return []string{dir}, err
	}
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, item := range items {
		dir, err := folderIn(path, item)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

func folderIn(path string, v *strictyaml.Node) (string, error) {
	dir, err := v.Text()
	if err != nil || filepath.IsAbs(dir) || atHome(dir) {
		return dir, err
	}
	if dir = filepath.Join(filepath.Dir(path), dir); atHome(dir) {
		dir = "." + string(filepath.Separator) + dir // it was written so, to mean a folder called ~
	}
	return dir, nil
}
