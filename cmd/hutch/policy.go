package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/protocol/definition"
	"github.com/hutch-run/hutch/runtime/registry"
)

// policyFile is the file that says what is granted, followed while hutch runs. A
// file that is wrong changes nothing: what was in force stays.
type policyFile struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex // guards what is below
	policy  *capability.Policy
	taken   stamp // of the file that was read last
	seen    stamp // of the file at the last look
	problem error
}

// stamp tells one state of a file from another without reading it.
type stamp struct {
	there bool
	size  int64
	mod   time.Time
	real  string // where links lead
}

// openPolicy reads the policy a first time. That there is no file grants nothing,
// unless somebody named it; one that is wrong is an error, since nothing else could
// be in force.
func openPolicy(cfg Config, log *slog.Logger) (*policyFile, error) {
	f := &policyFile{path: cfg.Policy, log: log}
	f.seen = f.look()
	if !f.seen.there && cfg.policyFrom != "" {
		return nil, usagef("%s %s: there is no such file", cfg.policyFrom, quoted(cfg.Policy)).
			withHint("make it with the line \"version: 1\", which grants nothing, or leave it away")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	if f.problem != nil {
		return nil, usagef("%w", f.problem).withHint("%s", cmp.Or(hintOf(f.problem), "correct the file; a hutch that runs goes on with the policy it had"))
	}
	return f, nil
}

// look says how the file is now.
func (f *policyFile) look() (s stamp) {
	var err error
	if s.real, err = filepath.EvalSymlinks(f.path); err != nil {
		return stamp{there: !errors.Is(err, fs.ErrNotExist)}
	}
	info, err := os.Stat(s.real)
	if err != nil {
		return stamp{there: !errors.Is(err, fs.ErrNotExist)}
	}
	s.there, s.size, s.mod = true, info.Size(), info.ModTime()
	return s
}

// refresh takes in what changed, once it is the same at two looks, so that a file
// that is being written is not read, and reports whether another policy is to be
// put in force.
func (f *policyFile) refresh() (changed bool) {
	now := f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	settled := now == f.seen
	// Whose a file is, and who can write to it, can be mended without a new stamp.
	unsafe := (*ownfile.Refusal)(nil)
	if f.seen = now; !settled || now == f.taken && !errors.As(f.problem, &unsafe) {
		return false
	}
	return f.read()
}

// reload takes in what there is at once, for who has just written it.
func (f *policyFile) reload() (changed bool, err error) {
	now := f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = now
	changed = f.read()
	return changed, f.problem
}

// read parses the file that was seen. The lock is held.
func (f *policyFile) read() (changed bool) {
	before := f.problem
	f.taken = f.seen
	next, err := readPolicy(f.path, f.seen)
	if f.problem = err; err != nil {
		if f.policy != nil && (before == nil || before.Error() != err.Error()) {
			f.log.Warn("the policy stays as it was, for the file is wrong", "error", err)
		}
		return false
	}
	changed = f.policy == nil || f.policy.Digest() != next.Digest()
	if f.policy != nil && changed {
		f.log.Info("policy changed", "file", f.path, "modules", len(next.Modules()))
	}
	if !f.seen.there && f.policy != nil && changed {
		f.log.Warn("the policy file is gone: nothing is granted", "file", f.path)
	}
	f.policy = next
	return changed
}

func readPolicy(path string, s stamp) (*capability.Policy, error) {
	if !s.there {
		return capability.Parse(path, nil)
	}
	body, err := readPolicyText(path)
	if err != nil {
		return nil, err
	}
	return capability.Parse(path, body)
}

// readPolicyText returns the text of a policy file that nobody else can write.
func readPolicyText(path string) ([]byte, error) {
	return readOwn("policy", path, capability.MaxPolicyBytes, ownfile.Needs{OneName: true})
}

// readOwn returns a file of the operator that nobody else can write or replace; what
// is what errors call it.
func readOwn(what, path string, most int64, needs ownfile.Needs) ([]byte, error) {
	body, err := ownfile.Read(path, most, needs)
	if err == nil {
		return body, nil
	}
	err = fmt.Errorf("%s %s: %w", what, quoted(path), err)
	if unsafe := (*ownfile.Refusal)(nil); errors.As(err, &unsafe) && unsafe.Do != "" {
		return nil, hinted(err, "%s %s", unsafe.Do, shellWord(unsafe.At))
	}
	return nil, err
}

func withoutPath(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// current returns the policy that is to be in force.
func (f *policyFile) current() *capability.Policy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.policy
}

// Err says what is wrong with the file as it is, nil if nothing is.
func (f *policyFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// followPolicy puts the policy in force that the file has now. Calls that run keep
// what they were given; what is listed and what is called from now on is decided
// anew.
func (a *App) followPolicy(ctx context.Context) {
	if a.policy.refresh() {
		a.enforcePolicy(ctx)
	}
}

func (a *App) enforcePolicy(ctx context.Context) {
	a.book.Swap(a.policy.current())
	a.modules.Reconsider(ctx)
	a.note(ctx)
}

// Binding is what a decision about a module is made for: its file as it is now.
func (a *App) Binding(m registry.Module) (capability.Binding, error) {
	said, err := a.modules.Described(m.Digest)
	if err != nil {
		return capability.Binding{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	hash, err := definition.Hash(said)
	return capability.Binding{Digest: m.Digest, Definitions: hash}, err
}

// checkPolicyPlace refuses a policy file in a folder that modules are dropped into:
// who may offer tools must not decide what they may do.
func (cfg Config) checkPolicyPlace() error {
	dir, err := cfg.toolFolderOf(cfg.Policy)
	if err != nil || dir == "" {
		return err
	}
	return usagef("policy %s: lies in the tool folder %s, whose files never decide what they may do", quoted(cfg.Policy), quoted(dir)).
		withHint("move it elsewhere, such as to the state folder, where it is found without being named")
}

// checkConfigPlace refuses a configuration in a folder that modules are dropped into:
// it would say where the policy is, and whether a person has to decide.
func (cfg Config) checkConfigPlace(file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return usagef("config %s: %w", quoted(file), err)
	}
	dir, err := cfg.toolFolderOf(abs)
	if err != nil || dir == "" {
		return err
	}
	return usagef("config %s: lies in the tool folder %s, where others put files", quoted(file), quoted(dir)).
		withHint("move it elsewhere, such as to the folder above")
}

// toolFolderOf returns the tool folder that a file lies in, empty if it lies in none.
func (cfg Config) toolFolderOf(file string) (string, error) {
	file = realPath(file)
	for _, dir := range cfg.Tools {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(realPath(dir), file)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return dir, nil
		}
	}
	return "", nil
}

// realPath follows links as far as there is something.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}
