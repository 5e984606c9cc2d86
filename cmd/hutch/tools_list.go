package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/urfave/cli/v2"
)

func toolsListCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list tools, and modules that cannot be used and why",
		UsageText: "hutch tools list [flags]",
		Flags:     append(folderFlags(), jsonFlag("the list"), logFlag("error")),
		Action: func(c *cli.Context) error {
			if err := wantArgs(c, 0, 0, ""); err != nil {
				return err
			}
			return withTools(c, p, func(ctx context.Context, a *App, say *voice) error {
				if err := a.await(ctx, say, outOfPatience(a.known)); err != nil {
					return err
				}
				return a.list(c, say)
			})
		},
		Description: `A tool is ready, held (its module asks for something that nobody has granted) or rejected. One that
asks waits for a person before each call: "hutch chat" and pages at /agui ask, over MCP it is held.
A module without a usable tool has one line, with the reason. Modules that take long to say what they
have are waited for as long as others become known, and 10s more.

examples:
  $ hutch tools list
  $ hutch tools list --tools ~/tools --json`,
	}
}

// asks is the status of a tool that some faces can ask a person about, and others hold.
const asks tool.Status = "asks"

// listedTool is one element of "hutch tools list --json". Name is empty for a
// module that offers nothing.
type listedTool struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Module      string      `json:"module"`
	Digest      string      `json:"digest"`
	Status      tool.Status `json:"status"`
	Reason      string      `json:"reason"`
	// Waiting is the file as it lies there, while the version before serves.
	Waiting *waitingVersion `json:"waiting,omitempty"`
	// Next is the command that decides about the module, if that is what it needs.
	Next         string            `json:"next,omitempty"`
	InputSchema  json.RawMessage   `json:"inputSchema"` // null without a tool
	OutputSchema json.RawMessage   `json:"outputSchema,omitempty"`
	Annotations  *tool.Annotations `json:"annotations,omitempty"`
}

// waitingVersion is a file that does not serve, though the version before it does.
type waitingVersion struct {
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest"` // empty if the file cannot be read
	Reason  string `json:"reason"`
}

// String names it as moduleVersion does.
func (v waitingVersion) String() string {
	if v.Digest == "" {
		return "the file"
	}
	return strings.TrimSpace(v.Version + fmt.Sprintf(" sha256:%.12s", v.Digest))
}

// waitingOf returns what waits at the place of m; nil if nothing does.
func waitingOf(m registry.Module) *waitingVersion {
	if m.Waits == "" {
		return nil
	}
	return &waitingVersion{Digest: m.Digest, Reason: withoutCommand(strings.TrimPrefix(m.Waits, "held: "))}
}

func (a *App) list(c *cli.Context, say *voice) error {
	rows, loading := listTools(a.modules.Modules()), a.loading()
	if loading > 0 {
		say.line("warning: %s still being read: list again to see what they have", plural(loading, "module is", "modules are"))
	}
	if missing, err := a.cfg.checkFolders(); err == nil && a.cfg.toolsFrom == "" && len(missing) > 0 {
		say.line("hint: no folder %s here: hutch serve makes it, --tools DIR names another", defaultTools)
	}
	for _, folder := range a.watcher.Crowded() {
		say.line("warning: tool folder %s", folder)
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, rows)
	}
	if len(rows) == 0 {
		say.line("no modules in %s", strings.Join(a.cfg.Tools, ", "))
		say.line("hint: hutch new NAME makes a tool to start from")
		return nil
	}
	return printTools(c.App.Writer, rows, widthOf(c.App.Writer))
}

// listTools makes one row for each tool, and one for each module without, in
// the order of the modules; it is never nil.
func listTools(modules []registry.Module) []listedTool {
	rows := []listedTool{}
	for _, m := range modules {
		if len(m.Tools) == 0 {
			rows = append(rows, listedTool{Module: m.Name, Digest: m.Digest, Status: m.Status, Reason: m.Reason, Next: decidingCommandIn(m.Reason)})
		}
		for _, t := range m.Tools {
			rows = append(rows, listedToolOf(m, t))
		}
	}
	return rows
}

func listedToolOf(m registry.Module, t registry.Tool) listedTool {
	status, reason := t.Status, t.Reason
	if t.Asks {
		status, reason = asks, `waits for a person before each call: "hutch chat" and pages at /agui ask, over MCP it is held`
	}
	return listedTool{
		Name: t.Published.Name, Title: t.Published.Title, Description: t.Published.Description,
		Module: m.Name, Digest: m.Serving, Status: status, Reason: reason, Waiting: waitingOf(m), Next: decidingCommandIn(cmp.Or(t.Reason, m.Waits)),
		InputSchema: t.Published.InputSchema, OutputSchema: t.Published.OutputSchema, Annotations: t.Published.Annotations,
	}
}

// plural is n and what it counts.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// printTools writes a table: what can be called first, what is wrong last. Names
// and a description that would not fit into width columns are cut, a reason never
// is.
func printTools(w io.Writer, rows []listedTool, width int) error {
	names := max((width-len(tool.Rejected)-3*tableGap-minSummary)/2, minName)
	left := 0 // of the last column
	for i := range 3 {
		column := 0
		for _, r := range rows {
			column = max(column, utf8.RuneCountInString(r.columns(names)[i]))
		}
		left += column + tableGap
	}
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, tableGap, ' ', 0)
	for _, part := range []bool{true, false} {
		for _, r := range rows {
			if (r.Status == tool.Ready) == part {
				fmt.Fprintln(table, strings.Join(append(r.columns(names), r.says(max(width-left, minSummary))), "\t"))
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

const (
	// tableGap is between two columns.
	tableGap = 2
	// minSummary is what is left of a description on the narrowest terminal.
	minSummary = 20
	// minName is what is left of a name there.
	minName = 8
)

// columns are the first three of a row, with names of at most so many characters.
func (r listedTool) columns(most int) []string {
	name := r.Name
	if name == "" {
		name = "-"
	}
	return []string{shortened(oneLine(name), most), shortened(oneLine(r.Module), most), string(r.Status)}
}

// shortened returns s, or its first characters and an ellipsis.
func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// says is the last column: why a tool cannot be used, or what it does.
func (r listedTool) says(most int) string {
	if r.Status != tool.Ready {
		return oneLine(r.Reason)
	}
	note := r.waits()
	most = max(most-utf8.RuneCountInString(note), minSummary)
	summary := summaryOf(tool.Spec{Description: r.Description})
	if utf8.RuneCountInString(summary) <= most {
		return summary + note
	}
	return abi.Cut(summary, most) + note
}

// waits is what a row says besides about a version that waits.
func (r listedTool) waits() string {
	switch {
	case r.Waiting == nil:
		return ""
	case r.Next != "":
		return " (a changed version waits: " + oneLine(r.look()) + ")"
	}
	return " (the version before serves: " + oneLine(r.Waiting.Reason) + ")"
}

// look is the command that shows what there is to decide about.
func (r listedTool) look() string {
	return strings.Replace(strings.Replace(r.Next, "tools approve", "tools diff", 1), "tools grant", "tools diff", 1)
}
