package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
// unknown name. Arguments must be a JSON object that fits the module's own
// schema, and reach the guest byte for byte as they came; the error for others
// says what to change. A result with a declared shape has that shape, and has
// its JSON as text too if the tool wrote no text.
//
// What the tool itself reports as wrong is a result with IsError. Errors wrap
// one of the sentinels of package tool.
func (r *Registry) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	if r.closed.Load() {
		return tool.Result{}, &callError{kind: tool.ErrUnavailable, text: "hutch is stopping"}
	}
	l := r.find(c, call.Name)
	if l == nil {
		return tool.Result{}, tool.NotFound(call.Name)
	}
	defer r.release(l.mount.def.digest)
	args, err := r.arguments(l.bound, call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	if err := r.confirm(ctx, l.mount); err != nil {
		return r.failed(l.name, err)
	}
	raw, _, err := r.o.Workers.Call(ctx, r.workerModule(l.mount.module.Name, l.mount.def.digest), abi.Invocation{
		Tool: l.bound.own.Name, Arguments: args, Limits: r.o.Limits, Line: lineOf(c),
		Log: r.logTo(ctx, l), Progress: progressTo(call.Progress),
	})
	if err != nil {
		return r.failed(l.name, err)
	}
	return r.result(l, raw)
}

// lineOf says who waits behind whom: calls of one conversation do.
func lineOf(c tool.Caller) string {
	return strings.Join([]string{c.Face, c.Principal, c.Agent, c.Conversation}, "\x00")
}

// find returns the tool of that name with one more use of its digest counted,
// nil if c cannot see one.
func (r *Registry) find(c tool.Caller, name string) *listed {
	for {
		l := r.current.Load().byName[name]
		if l == nil || r.decide(c, l.mount, l.bound).Status != tool.Ready {
			return nil
		}
		if r.holdLive(l.mount.def.digest) {
			return l
		}
		// Swapped out between the two lines: the new snapshot knows.
	}
}

// arguments checks what the caller gave and returns the bytes that were checked.
func (r *Registry) arguments(b *boundTool, given json.RawMessage) (json.RawMessage, error) {
	invalid := func(text string) *callError {
		return &callError{kind: tool.ErrInvalid,
			text: fmt.Sprintf("invalid arguments for %q: %s", b.public.Name, text)}
	}
	args := bytes.Clone(given) // the caller's bytes may change while we look
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if n := len(args); n > r.o.Limits.InputBytes {
		err := invalid(fmt.Sprintf("%d bytes, at most %d (%s)", n, r.o.Limits.InputBytes, abi.LimitInput.Key()))
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
	misfits, err := b.input.Check(args, &r.hot)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if misfits != "" {
		return nil, invalid(misfits)
	}
	return args, nil
}

// maxLoudLines is how many lines of one call are logged as warnings: a limit of
// its own, since a call may be allowed to log far more.
const maxLoudLines = 100

// logTo takes a guest's lines into our own log, marked as its. What it warns of,
// or prints as it breaks, is a warning here too, the first lines of each call; the
// rest is for who debugs.
func (r *Registry) logTo(ctx context.Context, l *listed) func(abi.LogLevel, string) {
	// The guest's lines were cut by the worker; one of its own may be longer.
	most, loud := max(r.o.Limits.WithDefaults().LogLineBytes, maxFailureText), 0
	return func(level abi.LogLevel, line string) {
		as := slog.LevelDebug
		if level >= abi.Warn && loud < maxLoudLines {
			as = slog.LevelWarn
			loud++
		}
		r.o.Logger.Log(ctx, as, "tool log", "tool", l.name, "module", l.mount.module.Name,
			"guest_level", levelName(level), "line", abi.OneLine(line, most))
	}
}

// levelName is how a guest's level is called in its own language.
func levelName(l abi.LogLevel) string {
	return [...]string{"trace", "debug", "info", "warn", "error"}[min(max(l, abi.Trace), abi.Error)]
}

// progressTo passes a guest's progress on; what is no progress is dropped.
func progressTo(told func(tool.Progress)) func(json.RawMessage) {
	if told == nil {
		return nil
	}
	return func(raw json.RawMessage) {
		var p tool.Progress
		if rawjson.Check(raw, 1) != nil || json.Unmarshal(raw, &p) != nil {
			return
		}
		p.Message = abi.OneLine(p.Message, 1000)
		told(p)
	}
}

// errNoStructure: the tool promised structuredContent.
var errNoStructure = errors.New("there is no structuredContent, though the tool declares its shape")
