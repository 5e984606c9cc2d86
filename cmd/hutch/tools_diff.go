package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
)

func toolsDiffCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what a module changed, asks for and has",
		UsageText: "hutch tools diff MODULE [flags]",
		Flags:     append(folderFlags(), jsonFlag("the differences"), logFlag("error")),
		Action:    func(c *cli.Context) error { return runToolsDiff(c, p) },
		Description: `Compares the version that lies in the folder with the one that was decided about, or that served last: what
its tools say, and what it asks for. Then what it asks for and has not (+), and what it was granted
and does not ask for (-).

examples:
  $ hutch tools diff weather
  $ hutch tools diff weather --json`,
	}
}

// moduleDiff is what "hutch tools diff --json" prints.
type moduleDiff struct {
	Module string      `json:"module"`
	Status tool.Status `json:"status"`
	Reason string      `json:"reason,omitempty"`
	// Before is null if nothing was decided and nothing served.
	Before *versionLine `json:"before"`
	Now    versionLine  `json:"now"`
	// Older: now was replaced by before once, or calls itself older.
	Older bool `json:"older"`
	// Says and Asks are how definitions and requests changed; null if that cannot be
	// told any more.
	Says []sayingLine `json:"says"`
	Asks []string     `json:"asks"`
	// Grant is what is granted, Missing what is asked for besides, Unasked what is
	// granted and never counts.
	Grant   []string `json:"grant"`
	Missing []string `json:"missing"`
	Unasked []string `json:"unasked"`
}

type versionLine struct {
	Version     string `json:"version,omitempty"`
	Digest      string `json:"digest"`
	Definitions string `json:"definitions,omitempty"`
}

type sayingLine struct {
	Tool string `json:"tool,omitempty"`
	What string `json:"what"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

func runToolsDiff(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "a MODULE"); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	if _, err := cfg.adopt(c.Context); err != nil {
		return err
	}
	return aboutModule(c, p, cfg, func(_ context.Context, _ *App, _ *voice, d *dossier) error {
		if c.Bool(flagJSON) {
			return printJSON(c.App.Writer, d.diff())
		}
		_, err := io.WriteString(c.App.Writer, d.diffText())
		return err
	})
}

func (d *dossier) diff() moduleDiff {
	out := moduleDiff{
		Module: d.module.Name, Status: d.module.Status, Reason: d.module.Reason,
		Older: d.older,
		Now:   versionLine{d.now.said.Version, d.now.Digest, d.now.Definitions},
		Grant: orEmpty(d.entry.Grant.Lines()), Missing: orEmpty(d.missing()), Unasked: orEmpty(d.now.asks.Unasked(d.entry.Grant)),
	}
	if d.before.Digest != "" {
		out.Before = &versionLine{d.before.said.Version, d.before.Digest, d.before.Definitions}
	}
	if !d.changed() || d.before.known {
		out.Says, out.Asks = []sayingLine{}, orEmpty(d.requested())
		for _, change := range d.saysChanged() {
			out.Says = append(out.Says, sayingLine{change.Tool, change.What, change.Old, change.New})
		}
	}
	return out
}

// missing is what the module asks for and has not.
func (d *dossier) missing() (rows []string) {
	if !d.entry.Decided {
		return d.now.asks.Lines()
	}
	rows = capability.Widening(d.entry.Grant, d.now.asks.Closed())
	has, left := d.entry.Grant, d.now.asks
	for _, kind := range left.Open() {
		if rest, err := has.Only(kind); err == nil && len(rest.Kinds()) == 0 {
			rows = append(rows, kind+" (whatever is granted)")
		}
	}
	return rows
}

func (d *dossier) diffText() string {
	var b sheet
	d.about(&b)
	b.row("status", "%s%s", d.module.Status, prefixed(": ", d.module.Reason))
	switch {
	case d.before.Digest == "":
		b.row("before", "nothing was decided about it, and no version of it served")
	case !d.changed():
		b.row("before", "this version")
	default:
		b.row("before", "%s%s", d.before, d.before.unknown())
		d.direction(&b)
	}
	b.list("says new", d.sayings())
	b.list("asks new", d.requested())
	b.list("asks for", orNothing(reasoned(d.now.asks)))
	b.list("has", orNothing(d.entry.Grant.Lines()))
	b.list("has not", marked("+ ", d.missing()))
	b.list("unasked", marked("- ", d.now.asks.Unasked(d.entry.Grant)))
	return b.String()
}

func marked(mark string, rows []string) (out []string) {
	for _, row := range rows {
		out = append(out, mark+row)
	}
	return out
}

// sayings are how what the tools say changed, as rows.
func (d *dossier) sayings() (rows []string) {
	for _, change := range d.saysChanged() {
		rows = append(rows, change.String())
	}
	return rows
}
