package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/guestlog"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// trial serves the calls of one module that is in no tool folder, as the policy in
// force says and with the secrets there are. Its storage is one of its own; the tracker is
// the one that there is.
type trial struct {
	book    *capability.Book
	vault   *secrets.Vault
	client  *fetch.Client
	scratch *scratch
	// app has the tracker, and what reaches it where another process has it.
	app  *App
	door door
	log  *slog.Logger
	// keep takes the exchanges of the call that runs; nil keeps none.
	keep *tape
}

// openTrial prepares for calls of the module that is called name and has these bytes.
func openTrial(ctx context.Context, cfg Config, p program, name string, body []byte, log *slog.Logger) (_ *trial, err error) {
	set, err := p.openShipped()
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, log: log, fetch: func(string) ([]byte, error) { return body, nil }, borrowed: &borrower{cfg: cfg, log: log}}
	if a.policy, err = openPolicy(cfg, log); err != nil {
		return nil, err
	}
	if err := a.openTracker(ctx, p); err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	t := &trial{log: log, app: a, client: fetch.New(p.web)}
	if t.book, err = a.openBook(set); err != nil {
		return nil, err
	}
	if t.vault, err = openVault(cfg, p, log); err != nil {
		return nil, err
	}
	if t.scratch, err = openScratch(ctx, name); err != nil {
		return nil, err
	}
	t.door = t.newDoor()
	return t, nil
}

// Close ends what it opened.
func (t *trial) Close() error {
	t.client.Close()
	return errors.Join(t.scratch.Close(), t.app.Close())
}

// options are those of a registry that serves the module.
func (t *trial) options() registry.Options {
	return registry.Options{Policy: t.book, Grants: t, Redactor: t.vault.Redactor(), Logger: t.log}
}

// newDoor is that of an app, but for quotas: what counts days is not here, so that
// a module with a quota gets nothing, and not past it.
func (t *trial) newDoor() door {
	logs := guestlog.New(guestlog.Options{Logger: t.log, Redact: t.vault.Redactor().Text})
	o := gate.Options{Fetch: t.client, Secrets: t.vault, Logger: t.log, KV: kv.New(t.scratch.db, t.log), Tracker: t.app.trackerDoor()}
	return door{book: t.book, gate: gate.New(o), logs: logs}
}

// Limits implements [registry.Grants].
func (t *trial) Limits(m tool.Module) abi.Limits { return t.door.Limits(m) }

// Begin implements [registry.Grants].
func (t *trial) Begin(ctx context.Context, c tool.Caller, m tool.Module, name string, args json.RawMessage) (registry.Grant, error) {
	g, err := t.door.Begin(ctx, c, m, name, args)
	if err == nil && t.keep != nil {
		g.Host, g.AskConfig = t.keep.around(g.Host, g.Config), true
	}
	return g, err
}

// policyModule is m as a policy sees it.
func policyModule(m registry.Module) tool.Module {
	return tool.Module{Name: m.Name, Digest: m.Digest, Source: m.Source, Shipped: m.Shipped, Requests: m.Requests,
		Definitions: m.Definitions, Version: m.Version}
}

// playback serves calls from recordings: nothing is granted, nothing leaves the
// machine, and what is asked for is remembered.
type playback struct {
	logs *guestlog.Log
	// observer is that of the call that is made next.
	observer *gate.Observer
}

func newPlayback(log *slog.Logger) *playback {
	return &playback{logs: guestlog.New(guestlog.Options{Logger: log})}
}

// options are those of a registry that offers whatever its module has.
func (p *playback) options(log *slog.Logger) registry.Options {
	return registry.Options{Policy: everythingReady{}, Grants: p, Logger: log}
}

// Limits implements [registry.Grants].
func (p *playback) Limits(tool.Module) abi.Limits { return abi.Limits{} }

// Begin implements [registry.Grants].
func (p *playback) Begin(_ context.Context, c tool.Caller, m tool.Module, name string, _ json.RawMessage) (registry.Grant, error) {
	lines := p.logs.Call(guestlog.Head{Module: m.Name, Tool: name, CallID: c.CallID}, abi.Limits{})
	return registry.Grant{Host: p.observer.Host, AskConfig: true, Log: lines.Write, End: lines.Close}, nil
}

// everythingReady offers tools whose calls are given nothing.
type everythingReady struct{}

// Decide implements [registry.Policy].
func (everythingReady) Decide(tool.Caller, tool.Module, tool.Spec) tool.Decision {
	return tool.Decision{Status: tool.Ready}
}

// trialError says more about a call that the policy did not let through: who sits
// at this machine may know why.
func trialError(m registry.Module, name string, err error) error {
	if !errors.Is(err, tool.ErrNotFound) {
		return err
	}
	var names []string
	for _, t := range m.Tools {
		names = append(names, t.Published.Name)
		if t.Published.Name == name && t.Status == tool.Held {
			return fmt.Errorf("%w: tool %s: %s %s", tool.ErrHeld, name, m.Name, t.Reason)
		}
	}
	if like := nearest(names, name, 2); like != "" {
		return hinted(err, "did you mean %s?", shellWord(like))
	}
	return hinted(err, "hutch tools inspect ./%s", shellWord(m.Name))
}
