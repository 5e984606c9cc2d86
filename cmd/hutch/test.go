package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
		UsageText: "hutch test [DIR | FILE.wasm] [flags]",
		Flags: append(stateFlags(), jsonFlag("the outcome"),
			&cli.StringFlag{Name: "calls", Usage: "`DIR`: folder with example calls (default: testdata beside the module)"}),
		Action: func(c *cli.Context) error { return runTest(c, p) },
		Description: `In a DIR with Go files (default: the current folder) "go test ./..." runs first, without a sandbox.
Then the module is built and every *.json in testdata is one call in the real sandbox:
  {"tool": "greet", "arguments": {"name": "World"},
   "want": {"text": "Hello, World!"}}
want may have text (all of it), textContains, structured (as JSON) and isError (default: false).
The exit code is 1 if an answer differs.

examples:
  $ hutch test
  $ hutch test greet --json
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
	Diff   []string `json:"diff,omitempty"` // what was wanted and what was found
}

func runTest(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 1, "at most one DIR or FILE.wasm"); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	report, err := testModule(c.Context, cfg, p, say, argOr(c, "."), c.String("calls"))
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
		return errReported
	}
	return err
}

func testModule(ctx context.Context, cfg Config, p program, say *voice, arg, calls string) (r testReport, err error) {
	if info, statErr := os.Stat(arg); !isModuleFile(arg) && (statErr != nil || !info.IsDir()) {
		return r, usagef("%s is neither a folder nor a .wasm file", quoted(arg)).withHint("hutch help test")
	}
	if r.GoTest, err = goTest(ctx, p, say, arg); err != nil {
		return r, err
	}
	src, err := loadSource(ctx, p, say, arg)
	if err != nil {
		return r, err
	}
	if calls == "" {
		calls = filepath.Join(filepath.Dir(src.file), "testdata")
	}
	examples, err := readExamples(calls)
	if err != nil {
		return r, err
	}
	r.Module, r.Calls = src.name, []callReport{}
	bench, err := openWorkbench(cfg, p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	say.working("loading %s into the sandbox", src.name)
	tools, m, err := bench.mount(ctx, src.name, src.body, registry.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	if err := usable(m); err != nil {
		return r, err
	}
	r.Passed = r.GoTest != goFailed
	for _, e := range examples {
		report := e.run(ctx, tools)
		r.Calls = append(r.Calls, report)
		r.Passed = r.Passed && report.Passed
	}
	return r, ctx.Err()
}

// usable is the error for a module that cannot be called.
func usable(m registry.Module) error {
	if m.Status == tool.Held {
		return hinted(fmt.Errorf("%w: %s %s", tool.ErrHeld, m.Name, m.Reason), "test its logic with go test; calls need a grant")
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
func goTest(ctx context.Context, p program, say *voice, arg string) (string, error) {
	info, err := os.Stat(arg)
	if err != nil || !info.IsDir() {
		return goNone, nil
	}
	sources, err := filepath.Glob(filepath.Join(arg, "*.go"))
	if err != nil || len(sources) == 0 {
		return goNone, err
	}
	say.working("go test ./...")
	cmd, err := goCommand(ctx, p, goTarget{dir: arg}, []string{"GOWORK=off"}, "test", "./...")
	if err != nil {
		return "", err
	}
	cmd.Stdout = say
	cmd.Stderr = say
	switch err := runGo(ctx, cmd, ""); {
	case err == nil:
		return goPassed, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	default:
		return goFailed, nil
	}
}

// example is one call with the answer it must get.
type example struct {
	file string
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"arguments"`
	Want struct {
		Text         *string         `json:"text"`
		TextContains *string         `json:"textContains"`
		Structured   json.RawMessage `json:"structured"`
		IsError      bool            `json:"isError"`
	} `json:"want"`
}

// readExamples reads the calls of a folder in order of their names. A folder
// that is not there has none.
func readExamples(dir string) ([]example, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []example
	for _, file := range files {
		e := example{file: filepath.Base(file)}
		body, err := readArgumentFile(file)
		if err == nil {
			err = e.parse(body)
		}
		if err != nil {
			return nil, usagef("%s: %w", file, err).withHint("hutch help test")
		}
		out = append(out, e)
	}
	return out, nil
}

func (e *example) parse(body []byte) error {
	if err := tool.CheckJSON(body, tool.MaxDepth); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return err
	}
	if e.Tool == "" {
		return errors.New("no tool is named")
	}
	if w := e.Want; w.Text == nil && w.TextContains == nil && w.Structured == nil && !w.IsError {
		return errors.New("want is empty: it would accept any answer")
	}
	return nil
}

func (e example) run(ctx context.Context, tools *registry.Registry) callReport {
	r := callReport{File: e.file, Tool: e.Tool}
	result, err := tools.Call(ctx, localCaller(""), tool.Call{Name: e.Tool, Arguments: e.Args})
	if err != nil {
		result = tool.Failed(err.Error()) // as a host would see it
	}
	r.Diff = e.compare(result)
	r.Passed = len(r.Diff) == 0
	return r
}

// compare says what differs, in lines that name what was wanted first.
func (e example) compare(r tool.Result) (diff []string) {
	text := resultText(r)
	if r.IsError != e.Want.IsError {
		diff = append(diff, fmt.Sprintf("isError: want %t, found %t", e.Want.IsError, r.IsError))
		if r.IsError {
			diff = append(diff, "error: "+text)
		}
	}
	if want := e.Want.Text; want != nil && text != *want {
		diff = append(diff, textDiff(*want, text)...)
	}
	if want := e.Want.TextContains; want != nil && !strings.Contains(text, *want) {
		diff = append(diff, fmt.Sprintf("text: %q is not in %q", *want, cut(text, 500)))
	}
	if want := e.Want.Structured; want != nil && !sameJSON(want, r.Structured) {
		diff = append(diff, "structured:", "- "+compactJSON(want), "+ "+compactJSON(r.Structured))
	}
	return diff
}

// textDiff shows the first line that differs, and where.
func textDiff(want, found string) []string {
	w, f := strings.Split(want, "\n"), strings.Split(found, "\n")
	for i := range max(len(w), len(f)) {
		if i < len(w) && i < len(f) && w[i] == f[i] {
			continue
		}
		diff := []string{fmt.Sprintf("text, line %d of %d:", i+1, len(w))}
		if i < len(w) {
			diff = append(diff, fmt.Sprintf("- %q", w[i]))
		}
		if i < len(f) {
			diff = append(diff, fmt.Sprintf("+ %q", f[i]))
		}
		return diff
	}
	return nil
}

// sameJSON compares as JSON: the order of keys and white space do not count,
// the digits of numbers do.
func sameJSON(a, b json.RawMessage) bool {
	x, err := canonicalJSON(a)
	if err != nil {
		return false
	}
	y, err := canonicalJSON(b)
	return err == nil && bytes.Equal(x, y)
}

func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v) // sorts keys
}

func compactJSON(raw json.RawMessage) string {
	if raw == nil {
		return "(none)"
	}
	if c, err := canonicalJSON(raw); err == nil {
		return string(c)
	}
	return string(raw)
}

func (r testReport) print(w io.Writer) error {
	var b bytes.Buffer
	if r.GoTest != goNone {
		fmt.Fprintf(&b, "%-4s  go test\n", okOr(r.GoTest == goPassed))
	}
	for _, c := range r.Calls {
		fmt.Fprintf(&b, "%-4s  %s: %s\n", okOr(c.Passed), oneLine(c.File), oneLine(c.Tool))
		for _, line := range c.Diff {
			fmt.Fprintf(&b, "      %s\n", oneLine(line))
		}
	}
	if len(r.Calls) == 0 {
		fmt.Fprintf(&b, "%-4s  %s loads; there are no example calls\n", okOr(true), r.Module)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func okOr(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}
