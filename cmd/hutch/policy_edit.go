package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/runtime/store"
)

// policyEdit returns the changed text of a policy; file is what errors call it.
type policyEdit = func(file string, text []byte) ([]byte, error)

// policyChange is a change of the policy, with what the history says of it: who made
// it, what it is called ("grant", "revoke" or "approve"), and about which version of
// which module.
type policyChange struct {
	who, action, module string
	version             capability.Binding
	edit                policyEdit
	// pin: the version is the one that others of the module are measured by.
	pin bool
}

// EditPolicy changes the text of the policy file, as a function of capability does,
// writes that down, and puts it in force.
func (a *App) EditPolicy(ctx context.Context, who, action, module string, b capability.Binding, edit policyEdit) error {
	return a.changePolicy(ctx, policyChange{who: who, action: action, module: module, version: b, edit: edit})
}

func (a *App) changePolicy(ctx context.Context, c policyChange) error {
	a.editing.Lock()
	defer a.editing.Unlock()
	rank, err := c.carryOut(ctx, a.cfg.Policy, a.db)
	if err != nil {
		return err
	}
	if c.pin {
		a.accept(c.module, c.version, rank)
	}
	if _, err := a.policy.reload(); err != nil {
		return err
	}
	a.enforcePolicy(ctx)
	return nil
}

// accept has a version of a module that asks for nothing taken for what served last.
func (a *App) accept(module string, b capability.Binding, rank int64) {
	said, _ := a.modules.Described(b.Digest) // without it the next one is not known to be older
	a.pins.accept(module, b, rank, said.Version)
}

// carryOut changes the file for whoever owns the state folder, one at a time, and
// returns the rank of the version if that is pinned.
func (c policyChange) carryOut(ctx context.Context, path string, db *store.DB) (rank int64, err error) {
	text, err := readPolicyText(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return 0, err
	}
	next, err := c.edit(path, text)
	if err != nil {
		return 0, err
	}
	parsed, err := capability.Parse(path, next)
	if err != nil {
		return 0, err
	}
	f := policyText{real: realPath(path), was: text, missing: missing}
	if db == nil {
		return 0, f.write(next)
	}
	entry, _ := parsed.Entry(c.module)
	err = db.Update(ctx, func(tx store.Tx) (err error) {
		if rank, err = c.writeDown(tx, entry); err != nil {
			return fmt.Errorf("the decision cannot be written down: %w", err)
		}
		return f.write(next) // if it fails, nothing is written down either
	})
	if err != nil {
		return 0, errors.Join(err, f.restore())
	}
	return rank, nil
}

// writeDown keeps a decision, with what the module has been granted from then on.
func (c policyChange) writeDown(tx store.Tx, now capability.Entry) (rank int64, err error) {
	grant, err := json.Marshal(now.Grant.Lines())
	if err != nil {
		return 0, err
	}
	if c.pin {
		if rank, err = tx.SetPin(c.module, c.version.Digest, c.version.Definitions); err != nil {
			return 0, err
		}
	}
	_, err = tx.Decide(store.Decision{
		Who: c.who, Action: c.action, Module: c.module, Digest: c.version.Digest, Definitions: c.version.Definitions, Grant: grant,
	})
	return rank, err
}

// policyText is a policy file that is being changed.
type policyText struct {
	real    string
	was     []byte
	missing bool // there was no file
	written bool
}

func (f *policyText) write(next []byte) error {
	if bytes.Equal(next, f.was) {
		return nil
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(f.real); err == nil {
		mode = info.Mode().Perm()
	}
	f.written = true // or perhaps not
	return writeAtomicMode(f.real, next, mode)
}

// restore puts back what there was, where what the file says now could not be written
// down.
func (f *policyText) restore() error {
	if !f.written {
		return nil
	}
	if f.missing {
		if err := os.Remove(f.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	now := policyText{real: f.real}
	if text, err := readPolicyText(f.real); err == nil {
		now.was = text
	}
	return now.write(f.was)
}
