package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// Flags of "hutch run".
const (
	flagObserve = "observe"
	flagAnswers = "answers"
	flagRecord  = "record"
)

func runToolCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "call a tool of one file, or find out what a call needs",
		UsageText: "hutch run FILE TOOL [JSON | @FILE | -] [flags]\n   hutch run --observe FILE | MODULE TOOL [JSON | @FILE | -] [flags]",
		Flags: append(folderFlags(), jsonFlag("the MCP result, or what was observed,"), logFlag("error"), timeoutFlag(),
			&cli.BoolFlag{Name: flagObserve, Usage: "grant nothing, and print the smallest policy that would let the call pass"},
			&cli.StringFlag{Name: flagAnswers, Usage: "`FILE`: with --observe, a recording that answers what the tool asks for"},
			&cli.StringSliceFlag{Name: flagSet, Usage: "`KEY=VALUE`: with --observe, what the tool reads as configuration; may be repeated"},
			&cli.StringFlag{Name: flagRecord, Usage: "`FILE`: without --observe, where to keep the answers that the tool gets"},
		),
		Action: func(c *cli.Context) error { return runRun(c, p) },
		Description: `A FILE need not be in a tool folder; what the policy in force grants to a file of its name and bytes
holds for it. What it keeps with kv is gone after the call; what it does in the tracker stays done.
Tools in folders: see hutch tools call.

With --observe nothing leaves this machine, also of a MODULE that is held: each thing that the tool
asks for is refused, or answered from a recording, and the policy says in comments what was asked.
A tool may stop at the first refusal. To see on, put the policy into a file, try it for real with
--policy and --record, and observe again with --answers.
` + exitCodeHelp + `

examples:
  $ hutch run ./greet.wasm greet '{"name":"World"}'
  $ hutch run --observe fetch.wasm fetch '{"url":"https://example.org"}'
  $ hutch run --observe ./greet.wasm greet '{"name":"World"}' > try.yaml
  $ hutch run ./greet.wasm greet '{"name":"World"}' --policy try.yaml --record seen.json
  $ hutch run --observe ./greet.wasm greet '{"name":"World"}' --answers seen.json`,
	}
}

// errorOfFlags says which flags make no sense together.
func errorOfFlags(c *cli.Context) error {
	observe := c.Bool(flagObserve)
	for _, name := range []string{flagAnswers, flagSet} {
		if c.IsSet(name) && !observe {
			return usagef("--%s goes with --%s", name, flagObserve).withHint("hutch help run")
		}
	}
	if c.IsSet(flagRecord) && observe {
		return usagef("--%s does not go with --%s, which gets no answers to keep", flagRecord, flagObserve).withHint("hutch help run")
	}
	return nil
}

func runRun(c *cli.Context, p program) error {
	if err := wantArgs(c, 2, 3, "a FILE, a TOOL and a JSON object"); err != nil {
		return err
	}
	if err := errorOfFlags(c); err != nil {
		return err
	}
	arguments, err := readArguments(c, p, c.Args().Get(2))
	if err != nil {
		return err
	}
	call := tool.Call{Name: c.Args().Get(1), Arguments: arguments}
	if c.Bool(flagObserve) {
		return runObserve(c, p, call)
	}
	return runFile(c, p, call)
}

// runFile makes one call of a file with the policy in force.
func runFile(c *cli.Context, p program, call tool.Call) error {
	path := c.Args().First()
	if !isFile(path) {
		return usagef("%s is no file: run takes one that may lie anywhere", quoted(path)).
			withHint("hutch tools call %s, for tools in a folder", shellWord(call.Name))
	}
	b, err := newBooth(c, p)
	if err != nil {
		return err
	}
	body, err := readModule(path)
	if err != nil {
		return err
	}
	call.Progress = b.say.progress(call.Name)
	result, err := b.try(c.Context, p, filepath.Base(path), body, call, c.String(flagRecord))
	b.say.done()
	if err != nil {
		if c.Bool(flagJSON) {
			err = errors.Join(err, printJSON(c.App.Writer, failureOf(err)))
		}
		return err
	}
	return printResult(c, call.Name, result)
}

// booth is what both kinds of run have in common: somebody sits before it.
type booth struct {
	cfg Config
	say *voice
	log *slog.Logger
}

func newBooth(c *cli.Context, p program) (b booth, err error) {
	if b.cfg, err = loadJoined(c, p); err != nil {
		return b, err
	}
	b.say = &voice{w: c.App.ErrWriter}
	log, err := newLogger(c, b.say)
	if err != nil {
		return b, err
	}
	b.log = slog.New(newGuestLines(log.Handler(), b.say))
	return b, nil
}

// try makes a call, and keeps what it was answered at record, if that is named.
func (b booth) try(ctx context.Context, p program, name string, body []byte, call tool.Call, record string) (result tool.Result, err error) {
	t, err := openTrial(ctx, b.cfg, p, name, body, b.log)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if record != "" {
		t.keep = &tape{}
	}
	err = b.mount(ctx, p, name, body, t.options(), func(tools *registry.Registry, m registry.Module) error {
		if m.Status == tool.Held {
			return hinted(fmt.Errorf("%w: %s %s", tool.ErrHeld, name, m.Reason), "find out what the call needs with hutch run --%s", flagObserve)
		}
		call.Name = unprefixed(m, call.Name, t.book.Prefix(policyModule(m)))
		if result, err = tools.Call(ctx, localCaller(""), call); err != nil {
			return trialError(m, call.Name, err)
		}
		if record == "" {
			return nil
		}
		kept, _ := t.keep.recording()
		return kept.write(record, t.vault.Redactor())
	})
	return result, err
}

// mount runs f while a registry serves body.
func (b booth) mount(ctx context.Context, p program, name string, body []byte, o registry.Options, f func(*registry.Registry, registry.Module) error) (err error) {
	bench, err := openWorkbench(b.cfg, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	loaded := b.say.slowly("loading " + name)
	tools, m, err := bench.mount(ctx, name, body, o)
	loaded()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	if err := rejection(m); err != nil {
		return err
	}
	return f(tools, m)
}

// unprefixed is the name of a tool of m without what the policy puts before it, for
// who typed it as it is listed.
func unprefixed(m registry.Module, name, prefix string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(m.Tools, func(t registry.Tool) bool { return t.Published.Name == name })
	}
	if own := strings.TrimPrefix(name, prefix); !has(name) && has(own) {
		return own
	}
	return name
}

// specimen is a module as it lies somewhere.
type specimen struct {
	name, prefix string
	body         []byte
}

// find returns what arg names: a file, or a module in a tool folder, whatever is held
// against it.
func find(c *cli.Context, p program, arg string) (f specimen, err error) {
	if isFile(arg) {
		f.name = filepath.Base(arg)
		f.body, err = readModule(arg)
		return f, err
	}
	err = withTools(c, p, func(ctx context.Context, a *App, say *voice) error {
		if err := a.await(ctx, say, func() bool { return a.lying(arg) != nil }); err != nil {
			return err
		}
		m := a.lying(arg)
		if m == nil {
			return hinted(fmt.Errorf("no file or module %s: %s", quoted(arg), a.cfg.lookedIn()), "hutch tools list%s", a.cfg.flags())
		}
		f.name, f.prefix = m.Name, a.book.Prefix(policyModule(*m))
		f.body, err = a.fetch(m.Digest)
		return err
	})
	return f, err
}

// lying returns the module of a name, with or without .wasm, whose file is known.
func (a *App) lying(name string) *registry.Module {
	for _, m := range a.modules.Modules() {
		if (m.Name == name || m.Name == name+moduleSuffix) && m.Digest != "" {
			return &m
		}
	}
	return nil
}
