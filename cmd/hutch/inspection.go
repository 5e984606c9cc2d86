package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/hutch-run/hutch/protocol/tool"
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
	b.row("status", "%s%s", in.Status, prefixed(": ", in.Reason))
	if in.Do != "" {
		b.row("", "-> %s", in.Do)
	}
	if in.Digest != "" {
		b.row("digest", "sha256:%s", in.Digest)
		b.row("size", "%s", formatSize(in.Size))
	}
	if in.Dialect != "" {
		b.row("dialect", "%s%s", in.Dialect, prefixed(", module version ", in.Version))
	}
	if in.Memory != nil {
		b.row("memory", "%s to start with, %s", formatSize(int64(in.Memory.Min)), mostMemory(in.Memory.Max))
	}
	b.list("imports", in.Imports)
	b.list("exports", in.Exports)
	b.list("requests", slices.Sorted(maps.Keys(in.Requests)))
	b.list("warnings", in.Warnings)
	for _, t := range in.Tools {
		b.row("tool", "%s: %s", t.Name, summaryOf(tool.Spec{Description: t.Description}))
		b.row("", "input %s", t.InputSchema)
		if t.OutputSchema != nil {
			b.row("", "output %s", t.OutputSchema)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func mostMemory(most uint64) string {
	if most == 0 {
		return "no limit of its own"
	}
	return "at most " + formatSize(int64(most))
}
