package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/urfave/cli/v2"
)

func testCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "test a module: as Go, then with example calls in the sandbox",
		UsageText: "hutch test [DIR | FILE.js | FILE.wasm] [flags]",
		Flags: append(append(policyFlags(), stateFlags()...), jsonFlag("the outcome"),
			&cli.StringFlag{Name: "calls", Usage: "`DIR`: folder with example calls (default: testdata beside the module)"},
			&cli.BoolFlag{Name: flagRecord, Usage: "make the calls as the policy lets them, and keep what they are answered"}),
		Action: func(c *cli.Context) error { return runTest(c, p) },
		Description: `A DIR (default: the current folder) or a FILE.js is built, and with Go files in it "go test ./..." runs, without a
sandbox. Then every *.json in testdata is one call in the real sandbox:
  {"tool": "greet", "arguments": {"name": "World"},
   "want": {"text": "Hello, World!"}}
want may have text (all of it), textContains, structured (as JSON) and isError (default: false).
The exit code is 1 if an answer differs.

Nothing is granted to these calls, and no network is used: answers to what a tool asks for come from
testdata/answers/NAME.json, and a call that asks for something else fails. With --record the calls are
made for real, as the policy in force lets them, and those files are written, without secrets.

examples:
  $ hutch test
  $ hutch test greet --json
  $ hutch test weather --record --policy policy.yaml
  $ hutch test plugin.wasm --calls calls/`,
	}
}

// testReport is what "hutch test --json" prints.
type testReport struct {
	Module string       `json:"module"`
	GoTest string       `json:"goTest"` // passed, failed, or none without Go files
	Calls  []callReport `json:"calls"`
	Passed bool         `json:"passed"`
}

// callReport is the outcome of one example call.
type callReport struct {
	File   string   `json:"file"`
	Tool   string   `json:"tool,omitempty"`
	Passed bool     `json:"passed"`
	Fuel   int64    `json:"fuel,omitempty"` // burned by the call
	Diff   []string `json:"diff,omitempty"` // what was wanted and what was found
	// Recorded is how many answers were kept.
	Recorded int `json:"recorded,omitempty"`

	unanswered bool // something was asked for that no recording has
}

func runTest(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 1, "at most one DIR, FILE.js or FILE.wasm"); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	report, err := testModule(c.Context, cfg, p, say, argOr(c, "."), testOptions{calls: c.String("calls"), record: c.Bool(flagRecord)})
	say.done()
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		err = printJSON(c.App.Writer, report)
	} else {
		err = report.print(c.App.Writer)
	}
	if err == nil && !report.Passed {
		return report.failure(argOr(c, "."))
	}
	return err
}

// failure says what to do about a report that was shown.
func (r testReport) failure(arg string) error {
	if slices.ContainsFunc(r.Calls, func(c callReport) bool { return c.unanswered }) {
		return hinted(errReported, "record what is missing with hutch test%s --%s", prefixed(" ", strings.TrimPrefix(shellWord(arg), ".")), flagRecord)
	}
	return errReported
}

// testOptions say which calls are made, and how.
type testOptions struct {
	calls  string // folder; empty is the one beside the module
	record bool
}

func testModule(ctx context.Context, cfg Config, p program, say *voice, arg string, o testOptions) (r testReport, err error) {
	src, err := sourceOf(arg)
	if err != nil {
		return r, err
	}
	if src.target != nil && src.target.dir == "" {
		return r, usagef("%s is neither a folder nor a .wasm or .js file", quoted(arg)).withHint("hutch help test")
	}
	dir, examples, err := src.examples(say, o.calls)
	if err != nil {
		return r, err
	}
	if err := src.load(ctx, say); err != nil {
		return r, err
	}
	r.Module = src.name
	if r.GoTest, err = src.goTest(ctx, say); err != nil {
		return r, err
	}
	defer say.slowly("loading " + src.name + " into the sandbox")()
	if r.Calls, err = perform(ctx, cfg, p, say, src, dir, examples, o.record); err != nil {
		return r, err
	}
	failed := func(c callReport) bool { return !c.Passed }
	r.Passed = r.GoTest != goFailed && !slices.ContainsFunc(r.Calls, failed)
	return r, nil
}

// examples reads the calls in the folder named, or beside the module. All that
// is wrong with any is said at once, before something is built.
func (s source) examples(say *voice, named string) (dir string, _ []example, _ error) {
	dir = filepath.Join(filepath.Dir(s.file), "testdata")
	if named != "" {
		dir = named
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", nil, usagef("--calls %s: no such folder", quoted(dir)).withHint("hutch help test")
		}
	}
	examples, bad, err := readExamples(dir)
	if err != nil || len(bad) == 0 {
		return dir, examples, err
	}
	for _, err := range bad {
		say.line("error: %s", err)
	}
	said := &commandError{err: errReported, kind: errUsage}
	return "", nil, said.withHint("a call has %s", exampleFields)
}

// perform makes the calls in a sandbox of its own and returns what became of each,
// never nil.
func perform(ctx context.Context, cfg Config, p program, say *voice, src source, dir string, examples []example, record bool) (out []callReport, err error) {
	bench, err := openWorkbench(cfg, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	if src.script != "" { // what is wrong with it is said as a build says it
		if src.body, err = bench.stampSource(ctx, src); err != nil {
			return nil, err
		}
	}
	on, err := bench.stageFor(ctx, p, &src, record)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	tools, m, err := bench.mount(ctx, src.name, src.body, on.options())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	if err := usable(m); err != nil {
		return nil, err
	}
	if err := on.open(ctx, m); err != nil {
		return nil, err
	}
	if err := warnOfNames(p, say, m); err != nil {
		return nil, err
	}
	out = []callReport{}
	for _, e := range examples {
		r, err := on.perform(ctx, answersOf(dir, e), e, tools)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, ctx.Err()
}

func warnOfNames(p program, say *voice, m registry.Module) error {
	names, err := p.reservedNames()
	if err != nil {
		return err
	}
	for _, w := range names.warnings(m.Name, m) {
		say.line("warning: %s", w)
	}
	return nil
}

// usable is the error for a module that cannot be called.
func usable(m registry.Module) error {
	if m.Status == tool.Held {
		return hinted(fmt.Errorf("%w: %s %s", tool.ErrHeld, m.Name, m.Reason),
			"grant it what its calls need in a policy: hutch run --%s says what that is", flagObserve)
	}
	return rejection(m)
}

// What became of "go test".
const (
	goPassed = "passed"
	goFailed = "failed"
	goNone   = "none"
)

// goTest runs a module's own tests. That they failed is no error: the calls
// are worth seeing as well.
func (s source) goTest(ctx context.Context, say *voice) (string, error) {
	if s.target == nil {
		return goNone, nil
	}
	sources, err := filepath.Glob(filepath.Join(s.target.dir, "*.go"))
	if err != nil || s.target.dir == "" || len(sources) == 0 {
		return goNone, err
	}
	cmd, err := goCommand(ctx, say, *s.target, []string{"GOWORK=off", "GO111MODULE=on"}, "test", "./...")
	if err != nil {
		return "", err
	}
	defer say.eventually("go test ./...; the first time takes a while")()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return goFailed, nil
	case err != nil:
		return "", fmt.Errorf("go test: %w", err)
	}
	return goPassed, nil
}

func (r testReport) print(w io.Writer) error {
	var b bytes.Buffer
	if r.GoTest != goNone {
		fmt.Fprintf(&b, "%-4s  go test\n", okOr(r.GoTest == goPassed))
	}
	for _, c := range r.Calls {
		fmt.Fprintf(&b, "%-4s  %s: %s%s\n", okOr(c.Passed), oneLine(c.File), oneLine(c.Tool), c.kept())
		for _, line := range c.Diff {
			fmt.Fprintf(&b, "      %s\n", oneLine(line))
		}
	}
	if len(r.Calls) == 0 {
		fmt.Fprintf(&b, "warn  %s loads; there are no example calls\n", r.Module)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// kept says what was recorded.
func (c callReport) kept() string {
	if c.Recorded == 0 {
		return ""
	}
	return ", " + plural(c.Recorded, "answer", "answers") + " recorded"
}

func okOr(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}
