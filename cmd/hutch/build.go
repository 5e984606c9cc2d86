package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/urfave/cli/v2"
)

const moduleSuffix = ".wasm"

func buildCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "build a module, check it and write its description into it",
		UsageText: "hutch build [DIR | PACKAGE | FILE.js | FILE.wasm] [flags]",
		Flags: append(stateFlags(), jsonFlag("what was built"),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "`FILE`: where to write, or a folder to write into, which is made if it ends in / (default: NAME.wasm in DIR)"}),
		Action: func(c *cli.Context) error { return runBuild(c, p) },
		Description: `DIR holds a Go module or a package of one, or tool.js (default: the current folder). A FILE.js is a
tool in JavaScript, which needs no compiler: the module is an engine with the file in it. A FILE.wasm
is not built, only checked and stamped. Nothing is written if a check fails.

With the same Go version a build of Go is the same bytes wherever it is made. It is this command, with these
variables set, and those without a value unset:
  ` + strings.Join(goEnv, " ") + `
  go build ` + quotedFlags() + ` -o NAME.wasm

examples:
  $ hutch build
  $ hutch build greet -o tools/greet.wasm
  $ hutch build ./guests/text --json
  $ hutch build count.js -o tools/
  $ hutch build plugin.wasm -o tools/`,
	}
}

func quotedFlags() string {
	words := make([]string, len(goFlags))
	for i, flag := range goFlags {
		words[i] = flag
		if strings.Contains(flag, " ") {
			words[i] = "'" + flag + "'"
		}
	}
	return strings.Join(words, " ")
}

// buildReport is what "hutch build --json" prints.
type buildReport struct {
	File    string      `json:"file"`
	Digest  string      `json:"digest"`
	Size    int         `json:"size"` // bytes
	Dialect string      `json:"dialect"`
	Version string      `json:"version,omitempty"`
	Status  tool.Status `json:"status"`
	Reason  string      `json:"reason,omitempty"`
	// Next is what to do so that it can be used.
	Next     string      `json:"next,omitempty"`
	Tools    []tool.Spec `json:"tools"` // as hosts will see them
	Requests []string    `json:"requests,omitempty"`
	Warnings []string    `json:"warnings"`
}

func runBuild(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 1, "at most one DIR, PACKAGE, FILE.js or FILE.wasm"); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	report, err := build(c.Context, cfg, p, say, argOr(c, "."), c.String("out"))
	say.done()
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, report)
	}
	for _, w := range report.Warnings {
		say.line("warning: %s", w)
	}
	return report.print(c.App.Writer)
}

func argOr(c *cli.Context, fallback string) string {
	if c.NArg() == 0 {
		return fallback
	}
	return c.Args().First()
}

// build makes a checked and stamped module of what arg names and writes it.
func build(ctx context.Context, cfg Config, p program, say *voice, arg, out string) (r buildReport, err error) {
	src, err := sourceOf(arg)
	if err != nil {
		return r, err
	}
	if r.File, err = outPath(out, src.file); err != nil {
		return r, err
	}
	if err := src.load(ctx, say); err != nil {
		return r, err
	}
	bench, err := openWorkbench(cfg, p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	defer say.slowly("checking " + src.name)()
	body, err := bench.stampSource(ctx, src)
	if err != nil {
		return r, err
	}
	m, _, err := bench.judged(ctx, p, filepath.Base(r.File), body)
	if errors.Is(err, errUsage) { // a policy that is wrong keeps nobody from building
		say.line("warning: what was decided is not known: %s", err)
		m, err = bench.view(ctx, filepath.Base(r.File), body)
	}
	if err == nil {
		err = rejection(m)
	}
	if err != nil {
		return r, err
	}
	r.fill(m)
	r.Next = cfg.nextFor(r)
	names, err := p.reservedNames()
	if err != nil {
		return r, err
	}
	r.Warnings = append(r.Warnings, names.warnings(filepath.Base(r.File), m)...)
	return r, writeAtomic(r.File, body)
}

// nextFor is what lets a module be used that was built, empty if nothing has to.
func (cfg Config) nextFor(r buildReport) string {
	command := decidingCommandIn(r.Reason)
	if command == "" || cfg.folderOf(r.File) != "" {
		return command
	}
	return "once it lies in a tool folder: " + command
}

// source is a module before it is checked.
type source struct {
	name   string    // bare file name
	file   string    // where it is, or goes if nobody says otherwise
	target *goTarget // what it is compiled from; nil if that is not Go
	script string    // the file of JavaScript that goes into it; empty if there is none
	body   []byte    // once it is loaded
}

// sourceOf finds out what arg names.
func sourceOf(arg string) (src source, err error) {
	if isModuleFile(arg) {
		return source{name: filepath.Base(arg), file: arg}, nil
	}
	script, err := scriptOf(arg)
	if err != nil {
		return src, err
	}
	if script != "" {
		return scriptSource(arg, script)
	}
	target, err := targetOf(arg)
	if err != nil {
		return src, err
	}
	name, err := target.name()
	if err != nil {
		return src, err
	}
	name = strings.TrimSuffix(name, moduleSuffix) + moduleSuffix // of a folder x.wasm too
	return source{name: name, file: filepath.Join(target.dir, name), target: &target}, nil
}

// isModuleFile reports whether arg means a file to check, rather than sources:
// a folder may be called x.wasm.
func isModuleFile(arg string) bool {
	info, err := os.Stat(arg)
	return strings.HasSuffix(arg, moduleSuffix) && (err != nil || !info.IsDir())
}

// load reads a module file or compiles sources: in a folder of its own, so that
// a failed build leaves nothing behind and a watched folder never sees half a
// file.
func (s *source) load(ctx context.Context, say *voice) (err error) {
	if s.script != "" {
		s.body, err = s.readScript()
		return err
	}
	file := s.file
	if s.target != nil {
		tmp, err := os.MkdirTemp("", "hutch-build-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
		file = filepath.Join(tmp, s.name)
		if err := s.compile(ctx, say, file); err != nil {
			return err
		}
	}
	s.body, err = readModule(file)
	return err
}

// outPath is where a module goes: what -o says, inside it if it is a folder. A
// folder is made only for who wrote the slash.
func outPath(named, fallback string) (string, error) {
	if named == "" {
		return fallback, nil
	}
	inside := filepath.Join(named, filepath.Base(fallback))
	if strings.HasSuffix(named, "/") || strings.HasSuffix(named, string(filepath.Separator)) {
		return inside, nil
	}
	if isFolder(named) {
		return inside, nil
	}
	switch parent := filepath.Dir(named); {
	case filepath.Ext(named) == "":
		return "", usagef("-o: %s is no folder: write %s/ to make it, or %s", quoted(named), named, inside)
	case !strings.HasSuffix(named, moduleSuffix):
		return "", usagef("-o %s: a module's name ends in .wasm", quoted(named))
	case !isFolder(parent):
		return "", usagef("-o: %s is no folder: write %s/ to make it", quoted(parent), parent)
	}
	return named, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// stampSource is stamp with an error that says what it is about. What a script says
// of itself begins with its name.
func (w *workbench) stampSource(ctx context.Context, src source) ([]byte, error) {
	body, err := w.stamp(ctx, src.name, src.body)
	said := &abi.Failure{}
	switch {
	case err == nil:
		return body, nil
	case src.script != "" && errors.As(err, &said) && said.Class == abi.ClassGuest:
		return nil, errors.New(said.Text)
	}
	return nil, fmt.Errorf("%s: %w", src.name, err)
}

// stamp writes what the module says about itself into it, so that it is listed
// before it was ever compiled.
func (w *workbench) stamp(ctx context.Context, name string, body []byte) ([]byte, error) {
	checked, err := w.check(body)
	if err != nil {
		return nil, err
	}
	kind, err := dialect.Recognise(checked)
	if err != nil {
		return nil, err
	}
	raw, err := w.describe(ctx, name, digestOf(body), checked)
	if err != nil {
		return nil, err
	}
	if _, err := dialect.ParseDescription(kind, raw); err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	if err := json.Compact(&manifest, raw); err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	return wasmbin.AppendCustom(body, abi.ManifestSection, manifest.Bytes())
}

func (r *buildReport) fill(m registry.Module) {
	r.Digest, r.Size, r.Dialect, r.Version = m.Digest, int(m.Size), m.Dialect, m.Version
	r.Status, r.Reason = m.Status, m.Reason
	r.Requests = slices.Sorted(maps.Keys(m.Requests))
	r.Warnings = toolWarnings(m)
	for _, t := range m.Tools {
		r.Tools = append(r.Tools, t.Published)
	}
}

// toolWarnings gathers what is said about a module's tools, never nil.
func toolWarnings(m registry.Module) []string {
	all := []string{}
	for _, t := range m.Tools {
		for _, w := range t.Warnings {
			all = append(all, fmt.Sprintf("tool %s: %s", t.Published.Name, w))
		}
	}
	return all
}

func (r buildReport) print(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s  %s\n", r.File, formatSize(int64(r.Size)), r.Digest)
	for _, t := range r.Tools {
		fmt.Fprintf(&b, "  %-24s %s\n", t.Name, summaryOf(t))
	}
	if r.Status != tool.Ready {
		fmt.Fprintf(&b, "  %s: %s\n", r.Status, oneLine(withoutCommand(r.Reason)))
	}
	if r.Next != "" {
		fmt.Fprintf(&b, "  -> %s\n", oneLine(r.Next))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// summaryOf is the first line of a description, for tables.
func summaryOf(s tool.Spec) string {
	first, _, _ := strings.Cut(s.Description, "\n")
	return abi.Cut(oneLine(first), 80)
}
