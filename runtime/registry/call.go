package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/schema"
)

// Call runs one tool for c. Its name is the published one, or the one that the
// module gave it. The call keeps to the version that it starts with, whatever
// Apply does meanwhile.
//
// A tool that c may not use does not exist for it: the error is that of an
// unknown name, unless the policy tells ([tool.Decision].Told). Arguments must be a JSON object that fits the module's own
// schema, and reach the guest byte for byte as they came, unless the tool has another spelling
// of one of them ([tool.Spec].Aliases); the error for others says what to change. Where the policy wants a person to be asked ([tool.Decision].Ask),
// the error is a [tool.AskError] unless the call is approved: by then its arguments have
// been checked, and nothing was started. A result with a declared shape has that shape, and has
// its JSON as text too if the tool wrote no text.
//
// What the tool itself reports as wrong is a result with IsError. Errors wrap
// one of the sentinels of package tool. What the call used up stands in the
// result, and [tool.UsageOf] reads it off an error.
func (r *Registry) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	if r.closed.Load() {
		return tool.Result{}, &callError{kind: tool.ErrUnavailable, text: "hutch is stopping"}
	}
	l, asks, why := r.find(c, call.Name)
	if l == nil {
		return tool.Result{}, why
	}
	defer r.release(l.mount.def.digest)
	args, err := r.arguments(l, call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	if asks && !call.Approved {
		return tool.Result{}, &tool.AskError{Tool: l.name, Arguments: args}
	}
	if err := r.confirm(ctx, l.mount); err != nil {
		return r.failed(ctx, l.name, err)
	}
	grant, err := r.o.Grants.Begin(ctx, c, l.mount.module, l.name, args)
	if err != nil {
		return tool.Result{}, err
	}
	defer grant.end()
	limits := l.mount.limits
	raw, used, err := r.o.Workers.Call(ctx, r.workerModule(l.mount.module.Name, l.mount.def.digest, limits), abi.Invocation{
		Tool: l.bound.own.Name, Arguments: args, Limits: limits, Line: lineOf(c),
		Host: grant.Host, Config: grant.Config, AskConfig: grant.AskConfig, Log: grant.Log, Progress: r.progressTo(call.Progress),
	})
	var res tool.Result
	if err != nil {
		res, err = r.failed(ctx, l.name, err)
	} else {
		res, err = r.result(l, raw)
	}
	return charged(res, err, tool.Usage{Fuel: used.Fuel, HostCalls: used.HostCalls})
}

// charged adds to how a call ended what it used up.
func charged(res tool.Result, err error, u tool.Usage) (tool.Result, error) {
	if err == nil {
		return tool.WithUsage(res, u), nil
	}
	if failed := (*callError)(nil); errors.As(err, &failed) {
		with := *failed
		with.usage = u
		return res, &with
	}
	return res, err
}

// lineOf says who waits behind whom: calls of one conversation do.
func lineOf(c tool.Caller) string {
	return strings.Join([]string{c.Face, c.Principal, c.Agent, c.Conversation}, "\x00")
}

// find returns the tool of that name with one more use of its digest counted, and whether
// its calls wait for a person, or why c cannot call one.
func (r *Registry) find(c tool.Caller, name string) (*listed, bool, error) {
	for {
		l := r.current.Load().byName[name]
		if l == nil {
			return nil, false, tool.NotFound(name)
		}
		d := r.decide(c, l.mount, l.bound)
		switch {
		case d.Status == tool.Ready:
		case d.Told:
			return nil, false, &callError{kind: tool.ErrDenied, text: fmt.Sprintf("tool %q %s", l.name, d.Reason)}
		default:
			return nil, false, tool.NotFound(name)
		}
		if r.holdLive(l.mount.def.digest) {
			return l, d.Ask, nil
		}
		// Swapped out between the two lines: the new snapshot knows.
	}
}

// arguments checks what the caller gave and returns the bytes that were checked.
func (r *Registry) arguments(l *listed, given json.RawMessage) (json.RawMessage, error) {
	b, most := l.bound, l.mount.limits.InputBytes
	invalid := func(text string) *callError {
		return &callError{kind: tool.ErrInvalid,
			text: fmt.Sprintf("invalid arguments for %q: %s", b.public.Name, text)}
	}
	args := bytes.Clone(given) // the caller's bytes may change while we look
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if n := len(args); n > most {
		err := invalid(fmt.Sprintf("%d bytes, at most %d (%s)", n, most, abi.LimitInput.Key()))
		err.limit = abi.LimitInput
		return nil, err
	}
	if err := rawjson.Check(args, rawjson.MaxDepth); err != nil {
		return nil, invalid(err.Error())
	}
	if bytes.TrimSpace(args)[0] != '{' {
		found, err := schema.Describe(args)
		if err != nil {
			return nil, invalid(err.Error())
		}
		return nil, invalid(fmt.Sprintf("found %s, allowed is an object", found))
	}
	args = b.aliases.Resolve(args)
	if n := len(args); n > most {
		err := invalid(fmt.Sprintf("%d bytes with other spellings resolved, at most %d (%s)", n, most, abi.LimitInput.Key()))
		err.limit = abi.LimitInput
		return nil, err
	}
	misfits, err := b.input.Check(args, &r.hot)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if misfits != "" {
		return nil, invalid(misfits)
	}
	return args, nil
}

// progressTo passes a guest's progress on; what is no progress is dropped.
func (r *Registry) progressTo(told func(tool.Progress)) func(json.RawMessage) {
	if told == nil {
		return nil
	}
	return func(raw json.RawMessage) {
		var p tool.Progress
		if rawjson.Check(raw, 1) != nil || json.Unmarshal(raw, &p) != nil {
			return
		}
		p.Message = abi.OneLine(r.redacted(p.Message), 1000)
		told(p)
	}
}

// errNoStructure: the tool promised structuredContent.
var errNoStructure = errors.New("there is no structuredContent, though the tool declares its shape")
