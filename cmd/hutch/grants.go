package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/guestlog"
	"github.com/hutch-run/hutch/host/kv"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/store"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// The store is what several packages ask for, each in its own words.
var (
	_ kv.Store      = (*store.DB)(nil)
	_ gate.Counters = (*store.DB)(nil)
)

// door gives each call what it is granted: it is where the registry and the
// packages of host meet.
type door struct {
	book *capability.Book
	gate *gate.Gate
	logs *guestlog.Log
}

// Limits implements [registry.Grants].
func (d door) Limits(m tool.Module) abi.Limits {
	return d.book.Effective(tool.Caller{}, m, "").Limits().Call
}

// Begin implements [registry.Grants].
func (d door) Begin(ctx context.Context, c tool.Caller, m tool.Module, name string, args json.RawMessage) (registry.Grant, error) {
	granted := d.book.Effective(c, m, name)
	refusal := granted.Arguments(args)
	if refusal == nil {
		refusal = d.gate.Admit(ctx, m, granted)
	}
	if refusal != nil {
		return registry.Grant{}, &refusedCall{name, refusal}
	}
	host, config, end := d.gate.Call(c, m, name, granted)
	lines := d.logs.Call(guestlog.Head{Module: m.Name, Tool: name, CallID: c.CallID, Context: ctx}, granted.Limits().Call)
	if len(m.Requests) == 0 { // it has nothing to ask with
		host = nil
	}
	return registry.Grant{Host: host, Config: config, Log: lines.Write, End: func() { lines.Close(); end() }}, nil
}

// told is a policy whose reasons end in commands that work as they stand: with the
// flags that lead to the same folders.
type told struct {
	registry.Policy
	flags string
}

// Decide implements [registry.Policy].
func (t told) Decide(c tool.Caller, m tool.Module, s tool.Spec) tool.Decision {
	d := t.Policy.Decide(c, m, s)
	if t.flags != "" && d.Status == tool.Held {
		d.Reason = decidingCommand.ReplaceAllString(d.Reason, "$0"+strings.ReplaceAll(t.flags, "$", "$$"))
	}
	return d
}

// decidingCommand is what reasons name.
var decidingCommand = regexp.MustCompile(`hutch tools (grant|approve|diff)\b`)

// refusedCall is why a call was not begun.
type refusedCall struct {
	tool    string
	refusal *capability.Refusal
}

func (e *refusedCall) Error() string { return fmt.Sprintf("tool %q: %s", e.tool, e.refusal.Text) }

// Unwrap returns what the faces know.
func (e *refusedCall) Unwrap() error {
	switch e.refusal.Code {
	case abi.Invalid:
		return tool.ErrInvalid
	case abi.Limit:
		return tool.ErrLimit
	case abi.Unavailable:
		return tool.ErrUnavailable
	case abi.Cancelled:
		return tool.ErrCancelled
	}
	return tool.ErrDenied
}

// openBook makes the book of what is granted: by the policy file, and to the
// modules that came with the program by the policy that came with them.
func (a *App) openBook(set *toolswasm.Set) (*capability.Book, error) {
	signed := &signatures{fetch: func(digest string) ([]byte, error) { return a.fetch(digest) }}
	o := capability.Options{
		Policy: a.policy.current(), Dev: a.cfg.Dev, Flags: a.cfg.decisionFlags(a.db != nil), ShippedDigests: map[string]string{}, Signed: signed.check,
	}
	text, err := set.Policy()
	if err != nil {
		return nil, err
	}
	if o.Shipped, err = readShippedPolicy(text); err != nil {
		return nil, err
	}
	for _, m := range set.Modules() {
		o.ShippedDigests[m.Name] = m.Digest
	}
	return capability.NewBook(o), nil
}

func readShippedPolicy(text []byte) (*capability.Policy, error) {
	return capability.Parse("the policy of the shipped modules", text)
}

// newDoor puts services behind the gate, and the door before it.
func (a *App) newDoor(web fetch.Options) (door, *fetch.Client) {
	client := fetch.New(web)
	o := gate.Options{Fetch: client, Secrets: a.vault, Logger: a.log}
	if a.telemetry != nil {
		o.Audit = a.telemetry
	}
	if a.db != nil {
		o.KV, o.Counters = kv.New(a.db, a.log), a.db
	} else {
		a.borrowed = &borrower{cfg: a.cfg, log: a.log}
		o.KV = a.borrowed
	}
	o.Tracker = a.trackerDoor()
	return door{book: a.book, gate: gate.New(o), logs: a.logs}, client
}
