package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/portable"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/urfave/cli/v2"
)

func toolsInspectCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show what hutch sees in a module",
		UsageText: "hutch tools inspect FILE | MODULE | TOOL [flags]",
		Flags:     append(folderFlags(), jsonFlag("what was found"), logFlag("error")),
		Action:    func(c *cli.Context) error { return runInspect(c, p) },
		Description: `FILE is a path to a .wasm file, MODULE a file name in a tool folder, with or without
.wasm, TOOL a tool that one of them has. A file is only looked at: it need not be in a tool folder. The
exit code is 1 if the module cannot be used.

examples:
  $ hutch tools inspect ./greet.wasm
  $ hutch tools inspect text
  $ hutch tools inspect text_stats --json`,
	}
}

// inspection is what "hutch tools inspect --json" prints.
type inspection struct {
	Module   string      `json:"module"`
	Source   string      `json:"source"`
	Digest   string      `json:"digest"`
	Size     int64       `json:"size"` // bytes
	Status   tool.Status `json:"status"`
	Reason   string      `json:"reason,omitempty"`
	Do       string      `json:"do,omitempty"`
	Dialect  string      `json:"dialect,omitempty"`
	Version  string      `json:"version,omitempty"`
	Manifest bool        `json:"manifest"` // it carries its description
	// Confirmed: its description is the one that it gives when it is asked.
	Confirmed bool             `json:"confirmed"`
	Memory    *inspectedMemory `json:"memory,omitempty"`
	// StartsAnew is why each call starts the module anew, as its bytes, the policy or a
	// start tell; empty if calls begin in the state that it has started in.
	StartsAnew string        `json:"startsAnew,omitempty"`
	Imports    []string      `json:"imports"`
	Exports    []string      `json:"exports"`
	Requests   tool.Requests `json:"requests,omitempty"`
	// Grant is what it was granted, as rows.
	Grant []string `json:"grant,omitempty"`
	// Waiting is the file as it lies there, while all that stands here is about the
	// version before, which serves.
	Waiting  *waitingVersion `json:"waiting,omitempty"`
	Warnings []string        `json:"warnings"`
	Tools    []listedTool    `json:"tools"`
}

// inspectedMemory is in bytes; Max is 0 if the module sets no limit itself.
type inspectedMemory struct {
	Min uint64 `json:"min"`
	Max uint64 `json:"max,omitempty"`
}

func runInspect(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "one FILE, MODULE or TOOL"); err != nil {
		return err
	}
	var in inspection
	var err error
	if arg := c.Args().First(); isFile(arg) {
		in, err = inspectFile(c, p, arg)
	} else {
		err = withTools(c, p, func(ctx context.Context, a *App, say *voice) error {
			if err := a.await(ctx, say, everythingLoaded); err != nil {
				return err
			}
			in, err = a.inspect(ctx, say, arg)
			return err
		})
	}
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		err = printJSON(c.App.Writer, in)
	} else {
		err = in.print(c.App.Writer)
	}
	if err == nil && in.Status == tool.Rejected {
		return errReported
	}
	return err
}

// isFile reports whether arg is a path: one that exists, or looks like one.
func isFile(arg string) bool {
	if strings.ContainsAny(arg, `/\`) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil && strings.HasSuffix(arg, moduleSuffix)
}

func inspectFile(c *cli.Context, p program, path string) (in inspection, err error) {
	cfg, err := loadJoined(c, p)
	if err != nil {
		return in, err
	}
	body, err := readModule(path)
	if err != nil {
		return in, err
	}
	bench, err := openWorkbench(cfg, p)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	m, book, err := bench.judged(c.Context, p, filepath.Base(path), body)
	if err != nil {
		return in, err
	}
	in = newInspection(m)
	in.decided(book, m)
	if folder := cfg.folderOf(path); folder != "" {
		in.Source = folder
	}
	checked, err := bench.check(body)
	if err == nil { // else m.Reason says so
		in.structure(checked)
		err = bench.confirm(c.Context, &in, checked)
		if err == nil {
			err = bench.start(c.Context, &in, checked)
		}
		if err != nil {
			return in, err
		}
	}
	in.Do = in.advice(body, cfg)
	return in, nil
}

// start has a module started and described, which may show that each call has to start
// it anew though its bytes do not tell.
func (w *workbench) start(ctx context.Context, in *inspection, checked *wasmbin.Module) error {
	if in.Status == tool.Rejected || in.StartsAnew != "" {
		return nil
	}
	if _, err := w.describe(ctx, in.Module, in.Digest, checked); err != nil {
		return err
	}
	in.StartsAnew = w.pool.Anew(in.Digest)
	return nil
}

// confirm asks a module that carries its description for it, since the two
// must be the same.
func (w *workbench) confirm(ctx context.Context, in *inspection, checked *wasmbin.Module) error {
	manifest, has := checked.Custom[abi.ManifestSection]
	if in.Status == tool.Rejected || !has {
		return nil
	}
	raw, err := w.describe(ctx, in.Module, in.Digest, checked)
	if err == nil {
		err = sameDescription(dialect.Kind(in.Dialect), manifest, raw)
	}
	if err != nil && ctx.Err() == nil {
		in.Status, in.Reason = tool.Rejected, err.Error()
	}
	in.Confirmed = err == nil
	return ctx.Err()
}

func sameDescription(kind dialect.Kind, manifest, raw []byte) error {
	var hashes [2]string
	for i, body := range [][]byte{manifest, raw} {
		said, err := dialect.ParseDescription(kind, body)
		if err != nil {
			return err
		}
		if hashes[i], err = portable.DefinitionHash(said); err != nil {
			return err
		}
	}
	if hashes[0] != hashes[1] {
		return errors.New(abi.ManifestSection + " does not match what the module says: run \"hutch build\" on it again")
	}
	return nil
}

// inspect looks at what a folder has under a module's or a tool's name.
func (a *App) inspect(ctx context.Context, say *voice, name string) (inspection, error) {
	m, ok := findModule(a.modules.Modules(), name)
	if !ok {
		return inspection{}, a.nothingLike(name)
	}
	in := newInspection(m)
	in.decided(a.book, m)
	if in.Waiting != nil {
		in.Do = a.wait(&in)
	} else if m.Digest == "" {
		in.Do = in.advice(nil, a.cfg)
		return in, nil
	}
	body, err := a.fetch(in.Digest)
	if err != nil {
		return in, err
	}
	in.Size = int64(len(body))
	in.Do = cmp.Or(in.Do, in.advice(body, a.cfg))
	if checked, err := wasmbin.Check(body, wasmbin.Budget{MemoryBytes: a.cfg.Limits.Call.MemoryBytes}); err == nil {
		in.structure(checked)
		if a.quarantined()[in.Digest] {
			return in, nil
		}
		defer say.eventually("starting " + in.Module)()
		bench := workbench{cfg: a.cfg, pool: a.pool}
		if err := bench.start(ctx, &in, checked); err != nil {
			in.Warnings = append(in.Warnings, err.Error()) // what is known of it is worth reading all the same
		}
	}
	return in, ctx.Err()
}

// decided adds what the policy says of the module.
func (in *inspection) decided(book *capability.Book, m registry.Module) {
	in.Grant = book.Entry(policyModule(m)).Grant.Lines()
	if book.Effective(tool.Caller{}, policyModule(m), "").Limits().Call.Fresh {
		in.StartsAnew = "the policy says checkpoint: off"
	}
}

// wait completes what is said about a version that waits, and returns what to do.
func (a *App) wait(in *inspection) string {
	if said, err := a.modules.Described(in.Waiting.Digest); err == nil {
		in.Waiting.Version = said.Version
	}
	if command := decidingCommandIn(in.Reason); command != "" {
		return listedTool{Next: command}.look() + ", then: " + command
	}
	return ""
}

func (a *App) nothingLike(name string) error {
	err := fmt.Errorf("no file, module or tool %s: %s", quoted(name), a.cfg.lookedIn())
	if like := cmp.Or(a.moduleLike(name), a.toolLike(name)); like != "" {
		return hinted(err, "did you mean %s?", shellWord(like))
	}
	return hinted(err, "hutch tools list%s", a.cfg.flags())
}

func newInspection(m registry.Module) inspection {
	in := inspection{
		Module: m.Name, Source: m.Source, Digest: m.Digest, Size: m.Size, Status: m.Status, Reason: m.Reason,
		Dialect: m.Dialect, Version: m.Version, Requests: m.Requests, Confirmed: m.Dialect != "" && !m.Unconfirmed,
		Imports: []string{}, Exports: []string{}, Warnings: toolWarnings(m), Tools: []listedTool{},
	}
	if in.Waiting = waitingOf(m); in.Waiting != nil {
		in.Digest = m.Serving
	}
	for _, t := range m.Tools {
		in.Tools = append(in.Tools, listedToolOf(m, t))
	}
	return in
}

// structure adds what the pre-check saw.
func (in *inspection) structure(m *wasmbin.Module) {
	_, in.Manifest = m.Custom[abi.ManifestSection]
	in.Imports, in.Exports = []string{}, []string{}
	for _, i := range m.Imports {
		in.Imports = append(in.Imports, i.Module+" "+i.Name)
	}
	slices.Sort(in.Imports)
	in.Imports = slices.Compact(in.Imports) // Go links some twice
	for _, e := range m.Exports {
		in.Exports = append(in.Exports, e.Kind.String()+" "+e.Name)
	}
	in.StartsAnew = cmp.Or(in.StartsAnew, dialect.Anew(m))
	if m.Memory != nil {
		in.Memory = &inspectedMemory{Min: uint64(m.Memory.Min) << 16}
		if m.Memory.HasMax {
			in.Memory.Max = uint64(m.Memory.Max) << 16
		}
	}
}
