package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// sheet is text in two columns: what a row is, and what was found.
type sheet struct{ bytes.Buffer }

// row writes one row; whatever is in it stays on one line.
func (b *sheet) row(key, format string, args ...any) {
	fmt.Fprintf(b, "%-9s %s\n", key, oneLine(fmt.Sprintf(format, args...)))
}

// list writes a row for each value, and the key once.
func (b *sheet) list(key string, values []string) {
	for _, v := range values {
		b.row(key, "%s", v)
		key = ""
	}
}

func (in inspection) print(w io.Writer) error {
	var b sheet
	b.row("module", "%s", in.Module)
	b.row("from", "%s", in.Source)
	in.stands(&b)
	if in.Digest != "" {
		b.row("digest", "%s", in.Digest)
		b.row("size", "%s", formatSize(in.Size))
	}
	if in.Dialect != "" {
		b.row("dialect", "%s%s", in.Dialect, prefixed(", module version ", in.Version))
	}
	if in.Manifest && in.Status != tool.Rejected && !in.Confirmed {
		b.row("manifest", "compared with what the module says at the first call")
	}
	if in.Memory != nil {
		b.row("memory", "%s to start with, %s", formatSize(int64(in.Memory.Min)), mostMemory(in.Memory.Max))
	}
	if in.Memory != nil { // it was looked at
		b.row("calls", "%s", in.beginning())
	}
	b.list("asks for", in.asks())
	b.list("has", in.Grant)
	b.list("warnings", in.Warnings)
	for _, t := range in.Tools {
		b.row("tool", "%s: %s", t.Name, summaryOf(tool.Spec{Description: t.Description}))
		b.schema("input", t.InputSchema)
		if t.OutputSchema != nil {
			b.schema("output", t.OutputSchema)
		}
		if hints := hintsOf(t.Annotations); hints != "" {
			b.row("", "hints %s", hints)
		}
	}
	b.list("imports", gathered(in.Imports))
	b.list("exports", in.exported())
	_, err := w.Write(b.Bytes())
	return err
}

// stands says whether the module can be used, and what to do. A command that follows
// is not said twice.
func (in inspection) stands(b *sheet) {
	reason := in.Reason
	if decidingCommandIn(reason) != "" && in.Do != "" {
		reason = withoutCommand(reason)
	}
	if in.Waiting != nil {
		b.row("status", "%s: the version below serves, another one waits", in.Status)
		b.row("waiting", "%s: %s", in.Waiting, in.Waiting.Reason)
	} else {
		b.row("status", "%s%s", in.Status, prefixed(": ", reason))
	}
	if in.Do != "" {
		b.row("", "-> %s", in.Do)
	}
}

// asks is what the module asks for and why, or the kinds alone if that cannot be read.
func (in inspection) asks() []string {
	asks, err := capability.ParseRequests(in.Requests)
	if err != nil {
		return slices.Sorted(maps.Keys(in.Requests))
	}
	return reasoned(asks)
}

// wideSchema is how many characters of a schema are still read on one line.
const wideSchema = 100

// schema writes a schema on a line, or if that would be a long one, indented.
func (b *sheet) schema(key string, schema json.RawMessage) {
	var lines bytes.Buffer
	if len(schema) <= wideSchema || json.Indent(&lines, schema, "", "  ") != nil {
		b.row("", "%s %s", key, schema)
		return
	}
	for i, line := range strings.Split(lines.String(), "\n") {
		if i == 0 {
			line = key + " " + line
		}
		fmt.Fprintf(b, "%-9s %s\n", "", escape(line, abi.Hidden))
	}
}

// beginning says in which state calls begin.
func (in inspection) beginning() string {
	switch {
	case in.StartsAnew != "":
		return "each starts the module anew: " + in.StartsAnew
	case slices.Contains(in.Imports, "wasi_snapshot_preview1 random_get"):
		return "begin as the module has started, with what it drew at random then; the policy's checkpoint: off has each draw anew"
	default:
		return "begin as the module has started"
	}
}

// hintsOf says annotations, with the names that they have in MCP.
func hintsOf(a *tool.Annotations) string {
	if a == nil {
		return ""
	}
	var all []string
	for _, hint := range []struct {
		name string
		is   *bool
	}{
		{"readOnly", a.ReadOnlyHint}, {"destructive", a.DestructiveHint}, {"idempotent", a.IdempotentHint}, {"openWorld", a.OpenWorldHint},
	} {
		if hint.is != nil {
			all = append(all, fmt.Sprintf("%s %t", hint.name, *hint.is))
		}
	}
	return strings.Join(all, ", ")
}

// gathered is imports with WASI's as one line: compilers link a dozen of them
// whatever a module does, and hutch answers none with anything of this machine.
func gathered(imports []string) []string {
	const wasi = "wasi_snapshot_preview1"
	rest := slices.DeleteFunc(slices.Clone(imports), func(name string) bool { return strings.HasPrefix(name, wasi+" ") })
	if n := len(imports) - len(rest); n > 0 {
		rest = append(rest, fmt.Sprintf("%s, %d functions", wasi, n))
	}
	return rest
}

// exported is the exports, or of a script how many there are: all of them are the
// engine's, the same in each.
func (in inspection) exported() []string {
	if in.Dialect != string(dialect.JS) {
		return in.Exports
	}
	return []string{fmt.Sprintf("%d, of the engine of JavaScript tools", len(in.Exports))}
}

func mostMemory(most uint64) string {
	if most == 0 {
		return "no limit of its own"
	}
	return "at most " + formatSize(int64(most))
}
