package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
	"github.com/urfave/cli/v2"
)

const (
	flagCalls   = "calls"
	flagCallers = "callers"
	flagFor     = "for"
)

func benchCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure how fast a tool starts and answers on this machine",
		UsageText: "hutch bench [MODULE TOOL [JSON | @FILE | -]] [flags]",
		Flags: append(stateFlags()[1:], // it has a state of its own
			jsonFlag("the figures"),
			&cli.IntFlag{Name: flagCalls, Value: 500, Usage: "`N`: calls one after the other, 1 to 100000 (default: 500)"},
			&cli.IntFlag{Name: flagCallers, Usage: "`N`: callers at the same time, 1 to 64 (default: one for each core)"},
			&cli.DurationFlag{Name: flagFor, Value: 2 * time.Second, Usage: "`DURATION`: how long they call, 1ms to 1m (default: 2s)"}),
		Action: func(c *cli.Context) error { return runBench(c, p) },
		Description: `MODULE is a .wasm file, or the name of a module that hutch ships; without one, a shipped tool is measured.
The calls are real ones: checked, in a worker process, each from a clean state. They go neither over MCP nor
past a limit on calls a second. Nothing is granted, so a module that asks for something is refused. The first
that fails ends it, with exit code 1. What is measured is this machine with whatever else it does meanwhile, so
measure twice before you compare.
` + exitCodeHelp + `

examples:
  $ hutch bench
  $ hutch bench ./greet.wasm greet '{"name":"World"}'
  $ hutch bench ./greet.wasm greet @input.json --callers 8 --json`,
	}
}

// What is measured when nobody says what, of the modules that hutch ships.
const (
	benchModule    = "text.wasm"
	benchTool      = "text_stats"
	benchArguments = `{"text":"one two three"}`
)

// benchRun is one tool to measure, and how.
type benchRun struct {
	cfg       Config
	p         program
	module    string
	body      []byte
	tool      string
	arguments []byte
	calls     int
	callers   int
	span      time.Duration
}

func runBench(c *cli.Context, p program) error {
	b, err := newBench(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	report, err := b.measure(c.Context, say)
	say.done()
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, report)
	}
	return report.print(c.App.Writer)
}

func newBench(c *cli.Context, p program) (b benchRun, err error) {
	if c.NArg() == 1 {
		return b, usagef("bench takes nothing, or a MODULE and a TOOL, and a JSON object if that wants one: 1 given").withHint("hutch help bench")
	}
	if err := wantArgs(c, 0, 3, "at most a MODULE, a TOOL and a JSON object"); err != nil {
		return b, err
	}
	b = benchRun{p: p, calls: c.Int(flagCalls), callers: c.Int(flagCallers), span: c.Duration(flagFor)}
	if !c.IsSet(flagCallers) {
		b.callers = min(runtime.GOMAXPROCS(0), 64)
	}
	for _, bound := range []struct {
		name            string
		is, least, most int
	}{{flagCalls, b.calls, 1, 100_000}, {flagCallers, b.callers, 1, 64}} {
		if bound.is < bound.least || bound.is > bound.most {
			return b, usagef("--%s %d: allowed are %d to %d", bound.name, bound.is, bound.least, bound.most)
		}
	}
	if b.span < time.Millisecond || b.span > time.Minute {
		return b, usagef("--%s %s: allowed are 1ms to 1m", flagFor, b.span)
	}
	if b.cfg, err = loadConfig(c, p); err != nil {
		return b, err
	}
	b.cfg.Limits.PerSecond = 1 << 30 // or it would be the limit that is measured
	return b, b.choose(c)
}

// choose reads what is to be measured.
func (b *benchRun) choose(c *cli.Context) (err error) {
	if c.NArg() == 0 {
		b.tool, b.arguments = benchTool, []byte(benchArguments)
		return b.ship(benchModule)
	}
	b.tool = c.Args().Get(1)
	if b.arguments, err = readArguments(c, b.p, c.Args().Get(2)); err != nil {
		return err
	}
	named := c.Args().First()
	if !isFile(named) {
		return b.ship(named)
	}
	b.module = filepath.Base(named)
	b.body, err = readModule(named)
	if errors.Is(err, fs.ErrNotExist) {
		return hinted(fmt.Errorf("no file %s", quoted(named)), "name a file that hutch build wrote, or one in a tool folder")
	}
	return err
}

// ship takes one of the modules that come with hutch.
func (b *benchRun) ship(name string) error {
	set, err := b.p.openShipped()
	if err != nil {
		return err
	}
	shipped := set.Modules()
	i := slices.IndexFunc(shipped, func(m toolswasm.Module) bool { return m.Name == moduleName(name) })
	if i < 0 {
		return hinted(fmt.Errorf("%s is neither a file nor a module that hutch ships", quoted(name)), "name a file: hutch bench ./greet.wasm greet '{\"name\":\"World\"}'")
	}
	b.module = shipped[i].Name
	b.body, err = set.Fetch(shipped[i].Digest)
	return err
}

// openedBench is a tool that can be called.
type openedBench struct {
	*workbench
	tools *registry.Registry
}

func (o openedBench) Close() error { return errors.Join(o.tools.Close(), o.workbench.Close()) }

// open loads the module as a server would that keeps its state in a folder.
func (b benchRun) open(ctx context.Context, state string) (o openedBench, err error) {
	cfg := b.cfg
	cfg.State = state
	if o.workbench, err = openWorkbench(cfg, b.p); err != nil {
		return o, err
	}
	var m registry.Module
	if o.tools, m, err = o.mount(ctx, b.module, b.body, registry.Options{}); err != nil {
		return o, errors.Join(err, o.workbench.Close())
	}
	switch m.Status {
	case tool.Held: // also if the policy grants it all: bench has a state and a policy of its own
		err = hinted(fmt.Errorf("%w: %s %s", tool.ErrHeld, m.Name, withoutCommand(m.Reason)),
			"bench grants nothing, so that it measures only modules that ask for nothing")
	case tool.Rejected:
		err = rejection(m)
	default:
		err = b.has(m)
	}
	if err != nil {
		return o, errors.Join(err, o.Close())
	}
	return o, nil
}

// has returns an error unless the module has the tool.
func (b benchRun) has(m registry.Module) error {
	var names []string
	for _, t := range m.Tools {
		if t.Published.Name == b.tool {
			return nil
		}
		names = append(names, t.Published.Name)
	}
	err := fmt.Errorf("%s has no tool %s", b.module, quoted(b.tool))
	if like := nearest(names, b.tool, 2); like != "" {
		return hinted(err, "did you mean %s?", shellWord(like))
	}
	return hinted(err, "it has %s", strings.Join(names, ", "))
}

// call makes one call and returns the fuel it burned. An answer that is an error is
// one here: what it takes to fail is not what anybody wants to know.
func (b benchRun) call(ctx context.Context, o openedBench) (fuel int64, err error) {
	result, err := o.tools.Call(ctx, localCaller(""), tool.Call{Name: b.tool, Arguments: b.arguments})
	if err == nil && result.IsError {
		err = fmt.Errorf("tool %s: %s", b.tool, resultText(result))
	}
	return result.Usage.Fuel, err
}
