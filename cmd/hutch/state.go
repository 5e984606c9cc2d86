package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/hutch-run/hutch/runtime/owner"
)

// defaultState returns hutch's folder inside the user's state folder:
// XDG_STATE_HOME (XDG Base Directory 0.8) or what the platform has instead.
func defaultState(env func(string) string) (string, error) {
	return stateFolder(runtime.GOOS, env)
}

func stateFolder(goos string, env func(string) string) (string, error) {
	join := func(variable string, below ...string) (string, error) {
		base := env(variable)
		if base == "" {
			return "", fmt.Errorf("no state folder: %s is not set", variable)
		}
		return filepath.Join(append([]string{base}, below...)...), nil
	}
	switch goos {
	case "windows":
		return join("LocalAppData", "hutch")
	case "darwin":
		return join("HOME", "Library", "Application Support", "hutch")
	}
	if base := env("XDG_STATE_HOME"); filepath.IsAbs(base) { // others are to be ignored
		return filepath.Join(base, "hutch"), nil
	}
	return join("HOME", ".local", "state", "hutch")
}

// state names what lies in a state directory.
type state struct{ dir string }

// modules keeps module bytes by digest.
func (s state) modules() string { return filepath.Join(s.dir, "modules") }

// quarantine holds which modules may not run any more.
func (s state) quarantine() string { return filepath.Join(s.dir, "quarantine") }

// cache holds what can be computed again: compiled code and descriptions.
func (s state) cache() string { return filepath.Join(s.dir, "cache") }

// policy says what is granted, unless another file is named.
func (s state) policy() string { return filepath.Join(s.dir, "policy.yaml") }

// secrets holds secrets; only its owner may read it.
func (s state) secrets() string { return filepath.Join(s.dir, "secrets") }

// ageSecrets holds secrets encrypted.
func (s state) ageSecrets() string { return filepath.Join(s.dir, "secrets.age") }

// database holds everything that lasts and is no file of its own.
func (s state) database() string { return filepath.Join(s.dir, "hutch.db") }

// elsewhere says which database holds that instead, if one does.
func (s state) elsewhere() string { return filepath.Join(s.dir, "store") }

// compiled holds the engine's compiled code.
func (s state) compiled() string { return filepath.Join(s.cache(), "compiled") }

// descriptions holds what modules say about themselves, by digest.
func (s state) descriptions() string { return filepath.Join(s.cache(), "descriptions") }

// openState makes the state directory if there is none, and refuses one that
// someone else could have written to: compiled code in it is run.
func openState(dir string) (state, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return state{}, hinted(fmt.Errorf("state: %w", err), "name a folder you may write to with --state DIR")
	}
	if err := checkState(dir); err != nil {
		return state{}, err
	}
	s := state{dir: dir}
	for _, below := range []string{s.modules(), s.quarantine(), s.cache(), s.compiled(), s.descriptions()} {
		if err := os.Mkdir(below, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return state{}, fmt.Errorf("state: %w", err)
		}
		if err := checkState(below); err != nil {
			return state{}, err
		}
	}
	return s, nil
}

// checkState looks at an existing directory without changing it.
func checkState(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if !info.IsDir() {
		return hinted(fmt.Errorf("state %s: not a directory", strconv.Quote(dir)), "name another folder with --state DIR")
	}
	return checkOwner(dir, info)
}

// byOwner has something done by whoever owns the state folder, or while nobody does, by
// this process alone. An owner may begin or end meanwhile: then it tries again, as long as
// its patience goes, and says what did not come of it.
func (s state) byOwner(ctx context.Context, patience time.Duration, undone string, asked, alone func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if err := asked(ctx); !errors.Is(err, owner.ErrGone) {
			return err
		}
		if err := alone(ctx); !errors.Is(err, owner.ErrOwned) {
			return err
		}
		select {
		case <-ctx.Done():
			return hinted(fmt.Errorf("state %s: its owner does not answer%s", quoted(s.dir), undone), "try again, or see with \"hutch doctor\" who it is")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
