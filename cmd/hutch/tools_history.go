package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/runtime/store"
)

func toolsHistoryCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show what was decided about modules, by whom and when",
		UsageText: "hutch tools history [MODULE] [flags]",
		Flags:     append(someFlags(flagState, flagConfig), jsonFlag("the decisions")),
		Action:    func(c *cli.Context) error { return runToolsHistory(c, p) },
		Description: `Newest first, at most 1,000. What is written into the policy file by hand is not in it.

examples:
  $ hutch tools history
  $ hutch tools history weather --json`,
	}
}

// maxHistory is how many decisions are shown.
const maxHistory = 1000

// pastDecision is one element of "hutch tools history --json".
type pastDecision struct {
	At          time.Time       `json:"at"`
	Who         string          `json:"who"`
	Action      string          `json:"action"`
	Module      string          `json:"module"`
	Digest      string          `json:"digest,omitempty"`
	Definitions string          `json:"definitions,omitempty"`
	Grant       json.RawMessage `json:"grant"` // what it was granted from then on
}

func runToolsHistory(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 1, "a MODULE"); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	module := ""
	if c.NArg() > 0 {
		module = moduleName(c.Args().First())
	}
	past, err := cfg.history(c.Context, module)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, past)
	}
	table := tabwriter.NewWriter(c.App.Writer, 0, 0, tableGap, ' ', 0)
	for _, d := range past {
		var grant []string
		if err := json.Unmarshal(d.Grant, &grant); err != nil {
			return fmt.Errorf("the grant of %s cannot be read: %w", quoted(d.Module), err)
		}
		version := "-"
		if d.Digest != "" {
			version = fmt.Sprintf("sha256:%.12s", d.Digest)
		}
		row := []string{d.At.Local().Format(time.DateTime), d.Action, oneLine(d.Module), version, oneLine(d.Who), oneLine(strings.Join(orNothing(grant), "; "))}
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// history returns what was decided about a module, or about all if it is empty.
func (cfg Config) history(ctx context.Context, module string) ([]pastDecision, error) {
	past, err := lookAt(ctx, cfg, decisionsPath+"?module="+url.QueryEscape(module), func(db *store.DB) ([]pastDecision, error) {
		return pastOf(ctx, db, module)
	})
	if past == nil {
		past = []pastDecision{}
	}
	return past, err
}

func pastOf(ctx context.Context, db *store.DB, module string) (past []pastDecision, err error) {
	all, err := db.Decisions(ctx, module, 0, maxHistory)
	for _, d := range all {
		past = append(past, pastDecision{d.At, d.Who, d.Action, d.Module, d.Digest, d.Definitions, d.Grant})
	}
	return past, err
}

// tellHistory answers at decisionsPath.
func (a *App) tellHistory(w http.ResponseWriter, r *http.Request) {
	past, err := pastOf(r.Context(), a.db, r.URL.Query().Get("module"))
	tell(w, past, err)
}
