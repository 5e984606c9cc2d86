//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What decides is taken only while nobody else can write it or take its place.
func TestPolicyOfOthersIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		alter      func(path string) error
		want, hint string
		asAdmin    bool
	}{
		"writable":     {func(p string) error { return os.Chmod(p, 0o646) }, "others can write to it", "chmod go-w ", false},
		"open folder":  {func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, "others can write to the folder it is in", "chmod go-w ", false},
		"two names":    {func(p string) error { return os.Link(p, filepath.Join(t.TempDir(), "x")) }, "1 other names (hard links) lead to it", "", false},
		"of another":   {func(p string) error { return os.Chown(p, 12345, 12345) }, "it belongs to user 12345", "chown 0 ", true},
		"their folder": {func(p string) error { return os.Chown(filepath.Dir(p), 12345, 12345) }, "its folder belongs to user 12345", "chown 0 ", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.asAdmin && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			path := filepath.Join(t.TempDir(), "policy.yaml")
			must(t, errors.Join(os.WriteFile(path, []byte("version: 1\nmodules:\n  a.wasm: {grant: {kv: {}}}\n"), 0o644), c.alter(path)))
			_, err := openPolicy(Config{Policy: path}, quiet)
			if err == nil || !strings.HasPrefix(err.Error(), "policy "+quoted(path)+": "+c.want) || !strings.HasPrefix(hintOf(err), c.hint) {
				t.Errorf("%v, hint %q", err, hintOf(err))
			}
		})
	}
}

// A file that is mended without being written is taken by a hutch that runs.
func TestPolicyIsTakenOnceItIsMended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(path, []byte("version: 1\n"), 0o600))
	f, err := openPolicy(Config{Policy: path}, quiet)
	must(t, err)
	must(t, errors.Join(os.Chmod(path, 0o622), os.WriteFile(path, []byte("version: 1\nmodules:\n  a.wasm: {grant: {kv: {}}}\n"), 0o600)))
	f.refresh()
	if f.refresh() || f.Err() == nil {
		t.Errorf("taken though others can write to it: %v", f.Err())
	}
	must(t, os.Chmod(path, 0o600))
	if !f.refresh() || f.Err() != nil {
		t.Errorf("not taken though mended: %v", f.Err())
	}
}

func TestConfigurationOfOthersIsRefused(t *testing.T) {
	const body = "allow_unattended_grants: true\npolicy: p.yaml\n"
	if _, err := readConfig(t, body, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		alter   func() error
		want    string
		asAdmin bool
	}{
		{func() error { return os.Chmod("hutch.yaml", 0o666) }, "others can write to it", false},
		{func() error { return os.Chmod(".", 0o777) }, "others can write to the folder it is in, and so put another file in its place", false},
		{func() error { return os.Chown("hutch.yaml", 12345, 12345) }, "it belongs to user 12345, who can write to it; allowed are root alone", true},
	} {
		if c.asAdmin && os.Geteuid() != 0 {
			continue // only root can give files away
		}
		t.Chdir(t.TempDir())
		must(t, errors.Join(os.WriteFile("hutch.yaml", []byte(body), 0o644), c.alter()))
		_, err := configOf(t, nil, "--config", "hutch.yaml")
		wantUsage(t, err, `config "hutch.yaml": `+c.want)
		if hintOf(err) == "" {
			t.Errorf("no hint: %v", err)
		}
	}
}

func TestConfigurationInAToolFolderIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, errors.Join(os.Mkdir("tools", 0o755), os.WriteFile("tools/hutch.yaml", []byte("log: info\n"), 0o600), os.Symlink("tools/hutch.yaml", "link.yaml")))
	dir, err := os.Getwd()
	must(t, err)
	for _, file := range []string{"tools/hutch.yaml", "link.yaml"} {
		_, err := configOf(t, nil, "--config", file)
		wantUsage(t, err, "config "+quoted(file)+": lies in the tool folder "+quoted(filepath.Join(dir, "tools"))+", where others put files")
	}
}
