package main

import (
	"io"
	"strings"
	"testing"
)

// unclosed is what a program may close that goes on.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// runTyped runs a command line as another process of the same user would: with this
// environment alone, and what p has to read from and to complain to.
func runTyped(t *testing.T, p program, env map[string]string, line ...string) (stdout string, err error) {
	t.Helper()
	var out transcript
	p.name, p.stdout = "hutch", unclosed{&out}
	p.env = func(name string) string { return env[name] }
	p.environ = func() (entries []string) {
		for name, value := range env {
			entries = append(entries, name+"="+value)
		}
		return entries
	}
	err = runCommand(t.Context(), line, p)
	return out.String(), err
}

// typed runs a command on the state folder of a configuration, with a server beside
// it or without.
func typed(t *testing.T, cfg Config, p program, stdin string, env map[string]string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var said transcript
	p.stdin, p.stderr = io.NopCloser(strings.NewReader(stdin)), unclosed{&said}
	all := map[string]string{envState: cfg.State, envSecrets: cfg.Secrets.File}
	if cfg.Policy != (state{cfg.State}).policy() { // one that is named has to be there
		all[envPolicy] = cfg.Policy
	}
	if cfg.Secrets.opened() {
		all[envAgeFile], all[envIdentity] = cfg.Secrets.AgeFile, cfg.Secrets.AgeIdentity
	}
	for name, value := range env {
		all[name] = value
	}
	stdout, err = runTyped(t, p, all, append([]string{"hutch"}, args...)...)
	return stdout, said.String(), err
}

// printed is what a command prints that is typed for the folders of a configuration.
func printed(t *testing.T, cfg Config, p program, args ...string) (string, error) {
	t.Helper()
	out, _, err := typed(t, cfg, p, "", nil, append(args, "--tools", cfg.Tools[0])...)
	return out, err
}
