package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/runtime/owner"
)

func secretsListCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list secrets by name, where they are and who may use them",
		UsageText: "hutch secrets list [flags]",
		Flags:     append(secretFlags(), jsonFlag("the list")),
		Action:    func(c *cli.Context) error { return runSecretsList(c, p) },
		Description: `Nothing is said about values. Where a hutch runs on the state folder, it is its secrets that are listed;
its environment may have others than yours. A secret that the policy names and nobody has set is listed
as not set.

examples:
  $ hutch secrets list
  $ hutch secrets list --json`,
	}
}

// listedSecret is one element of "hutch secrets list --json". Source is empty for
// one that is not set.
type listedSecret struct {
	Name   string         `json:"name"`
	Set    bool           `json:"set"`
	Source secrets.Source `json:"source"`
	UsedBy []string       `json:"usedBy"`
}

func runSecretsList(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	k, err := openKeeper(c, p)
	if err != nil {
		return err
	}
	known, who, err := k.ownersSecrets(c.Context)
	if errors.Is(err, owner.ErrGone) {
		known, err = k.vault.Names(), nil
	}
	if err != nil {
		return err
	}
	for _, m := range k.cfg.problemsIn(k.vault) {
		k.say.line("warning: %s", m)
	}
	rows := listSecrets(known, k.users(p))
	unknown := k.unknownTo(known)
	if len(unknown) > 0 {
		k.say.line("warning: %v does not have what is in the encrypted file: %s", who, strings.Join(unknown, ", "))
		k.say.line("hint: %s", k.cfg.restarted())
	}
	if c.Bool(flagJSON) {
		return printJSON(c.App.Writer, rows)
	}
	if len(rows) == 0 && len(unknown) == 0 {
		k.say.line("no secrets")
		k.say.line("hint: hutch secrets set NAME sets one")
		return nil
	}
	return printSecrets(c.App.Writer, rows)
}

// unknownTo are the encrypted secrets that whoever owns the state folder does not have.
func (k keeper) unknownTo(known []secrets.Listed) (names []string) {
	for _, s := range k.vault.Names() {
		if _, has := keptIn(known, s.Name); !has && s.Source == secrets.AgeFile {
			names = append(names, s.Name)
		}
	}
	return names
}

// restarted is how a hutch that runs gets to open the encrypted secrets.
func (cfg Config) restarted() string {
	if cfg.Secrets.AgeIdentity == "" {
		return "start it again with " + envPassphrase + " set as here"
	}
	return "start it again with --" + flagIdentity + " " + shellWord(cfg.Secrets.AgeIdentity)
}

// secretFile is the path of a source that is one.
func (cfg Config) secretFile(s secrets.Source) string {
	switch s {
	case secrets.File:
		return cfg.Secrets.File
	case secrets.AgeFile:
		return cfg.Secrets.AgeFile
	}
	return ""
}

// listSecrets makes one row for each secret that is set or that somebody may use,
// sorted by name; it is never nil.
func listSecrets(known []secrets.Listed, users map[string][]string) []listedSecret {
	rows := []listedSecret{}
	listed := map[string]bool{}
	for _, s := range known {
		row := listedSecret{Name: s.Name, Set: true, Source: s.Source, UsedBy: []string{}}
		for name, modules := range users {
			if isCalled(s, name) {
				listed[name] = true
				row.UsedBy = append(row.UsedBy, modules...)
			}
		}
		slices.Sort(row.UsedBy)
		row.UsedBy = slices.Compact(row.UsedBy)
		rows = append(rows, row)
	}
	for name, modules := range users {
		if !listed[name] {
			rows = append(rows, listedSecret{Name: name, UsedBy: modules})
		}
	}
	slices.SortFunc(rows, func(a, b listedSecret) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// isCalled reports whether a policy that says name means the secret s: a variable
// stands for all spellings that it can have.
func isCalled(s secrets.Listed, name string) bool {
	if s.Source == secrets.Environment {
		name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	}
	return s.Name == name
}

func keptIn(known []secrets.Listed, name string) (secrets.Source, bool) {
	i := slices.IndexFunc(known, func(s secrets.Listed) bool { return isCalled(s, name) })
	if i < 0 {
		return "", false
	}
	return known[i].Source, true
}

func printSecrets(w io.Writer, rows []listedSecret) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, tableGap, ' ', 0)
	for _, r := range rows {
		source, users := string(r.Source), strings.Join(r.UsedBy, ", ")
		if !r.Set {
			source = "not set"
		}
		if users == "" {
			users = "no module may use it"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", oneLine(r.Name), source, oneLine(users))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// users says which modules may use which secret, by the policy file and the policy
// of the modules that came with the program. A policy that is wrong is told.
func (k keeper) users(p program) map[string][]string {
	all := map[string][]string{}
	file, err := openPolicy(k.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		k.say.line("warning: who uses what is not known: %s", err)
	} else {
		addUsers(all, file.current())
	}
	set, err := p.openShipped()
	if err != nil {
		return all
	}
	if text, err := set.Policy(); err == nil {
		if shipped, err := capability.Parse("the policy of the shipped modules", text); err == nil {
			addUsers(all, shipped)
		}
	}
	return all
}

func addUsers(all map[string][]string, p *capability.Policy) {
	for _, module := range p.Modules() {
		entry, _ := p.Entry(module)
		names := map[string]bool{}
		for _, rule := range entry.Grant.Secrets {
			names[rule.Name] = true
		}
		for _, value := range entry.Config {
			for _, name := range secrets.Placeholders(value) {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !slices.Contains(all[name], module) {
				all[name] = append(all[name], module)
			}
		}
	}
}

const (
	// secretsPath is where an owner tells which secrets it has.
	secretsPath = "/control/v1/secrets"
	// maxListed is the largest answer that is read from there.
	maxListed = 1 << 20
)

// tellSecrets answers at secretsPath, with names and sources alone.
func (a *App) tellSecrets(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.vault.Names()) // the client may be gone
}

// ownersSecrets are those of the process that owns the state folder; the error is
// [owner.ErrGone] if there is none.
func (k keeper) ownersSecrets(ctx context.Context) (known []secrets.Listed, who owner.Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, pinsPatience)
	defer cancel()
	c, err := owner.Dial(ctx, k.cfg.State)
	if err != nil {
		return nil, who, err
	}
	resp, err := c.Do(ctx, http.MethodGet, secretsPath, nil)
	if err != nil {
		return nil, who, owner.ErrGone // it is leaving
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return nil, who, fmt.Errorf("%v does not tell its secrets: %s", c.Owner, resp.Status)
	}
	return known, c.Owner, json.NewDecoder(io.LimitReader(resp.Body, maxListed)).Decode(&known)
}

// compareWithOwner warns if a hutch that runs does not have what was just written:
// it was started with other files, or has the secret from its environment.
func (k keeper) compareWithOwner(ctx context.Context, name string, wanted secrets.Source) {
	known, who, err := k.ownersSecrets(ctx)
	if errors.Is(err, owner.ErrGone) {
		return
	}
	if err != nil {
		k.say.line("warning: whether the hutch that runs uses it is not known: %s", err)
		return
	}
	switch found, _ := keptIn(known, name); found {
	case wanted:
	case secrets.Environment:
		k.say.line("warning: %v has %s from its environment, which goes first", who, name)
	case "":
		k.say.line("warning: %v does not have %s: it keeps secrets elsewhere, or cannot open them", who, name)
		if wanted == secrets.AgeFile {
			k.say.line("hint: %s", k.cfg.restarted())
		}
	default:
		k.say.line("warning: %v has %s from its %s", who, name, found)
	}
}
