package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/strictyaml"
)

func configCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "config",
		Usage:       "check what is configured, and see where each value comes from",
		UsageText:   "hutch config COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{configCheckCommand(p), configShowCommand(p)},
		Description: `A flag goes before a variable, and that before the file that --config or HUTCH_CONFIG names; none is read
unless it is named. JSON will do as well. Folders and files in it are relative to it.

every key there is, as a file that works:
` + settingsHelp() + `

by their flags alone: --dev
what tools may do stands in the policy file: see "hutch help policy"

examples:
  $ hutch config check hutch.yaml
  $ hutch config show --config hutch.yaml`,
	}
}

// settingsHelp is a configuration file with every key, and what each is for.
func settingsHelp() string {
	return nested(append(settings(), agentSettings("helper")...), "  ", func(s setting, indent string) string {
		ways := []string{"default: " + s.fallback}
		if s.env != "" {
			ways = append(ways, s.env)
		}
		if s.flag != "" {
			ways = append(ways, "--"+s.flag)
		}
		text := fmt.Sprintf("%s# %s: %s (%s)\n", indent, s.means, s.allowed, strings.Join(ways, "; "))
		name := s.key[strings.LastIndex(s.key, ".")+1:]
		if s.apart != "" {
			return text + fmt.Sprintf("%s# %s: not in this file\n", indent, name)
		}
		if s.instead != "" {
			return text + fmt.Sprintf("%s# %s: %s (in place of %s)\n", indent, name, s.example, s.instead)
		}
		return text + fmt.Sprintf("%s%s: %s\n", indent, name, s.example)
	})
}

// nested writes settings as they stand in a configuration file that is indented by
// margin, each as write says for its indentation; what write leaves out is not there.
func nested(all []setting, margin string, write func(s setting, indent string) string) string {
	var b strings.Builder
	var open []string
	for _, s := range all {
		above := strings.Split(s.key, ".")
		above = above[:len(above)-1]
		text := write(s, margin+strings.Repeat("  ", len(above)))
		if text == "" {
			continue
		}
		for i, key := range above {
			if i >= len(open) || !slices.Equal(open[:i+1], above[:i+1]) {
				fmt.Fprintf(&b, "%s%s%s:\n", margin, strings.Repeat("  ", i), key)
			}
		}
		open = above
		b.WriteString(text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// configFlags are all flags that a setting has, so that they can be looked at as well.
func configFlags() []cli.Flag {
	return append(folderFlags(), identityFlag(), addrFlag(), timeoutFlag(), logFlag("error"))
}

func configCheckCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "find everything that is wrong with the configuration, the policy and the secrets",
		UsageText: "hutch config check [FILE] [flags]",
		Flags:     append(configFlags(), jsonFlag("values and mistakes")),
		Action:    func(c *cli.Context) error { return runConfigCheck(c, p) },
		Description: `FILE is a configuration, as with --config. Every value is listed with where it comes from: a flag, the
environment, the file or the default. Then the policy, the secrets and the certificate are read that it leads
to. All mistakes are told, each with file, line and key; with any, the exit code is 1.

examples:
  $ hutch config check hutch.yaml
  $ HUTCH_LIMIT_TIMEOUT=10s hutch config check --json`,
	}
}

func configShowCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the configuration that would be in force, as a file",
		UsageText: "hutch config show [flags]",
		Flags:     configFlags(),
		Action:    func(c *cli.Context) error { return runConfigShow(c, p) },
		Description: `Each value has a comment that says where it comes from. A passphrase is not shown.

examples:
  $ hutch config show > hutch.yaml`,
	}
}

// shownSetting is one value in "hutch config check --json". Values are empty if
// nobody gave one and the default depends on something else; Default says on what.
// At is the flag, the variable, or file and line; empty for a default.
type shownSetting struct {
	Key     string   `json:"key"`
	Values  []string `json:"values"`
	Source  string   `json:"source"`
	At      string   `json:"at"`
	Default string   `json:"default"`
}

// mistake is one finding there. Line is 0, and Key empty, if it is about none.
type mistake struct {
	Where string `json:"where"`
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Found string `json:"found"`
	Do    string `json:"do"`
}

// String returns a mistake on one line.
func (m mistake) String() string {
	at := m.Where
	if m.Line > 0 {
		at = fmt.Sprintf("%s:%d", m.Where, m.Line)
	}
	return strings.Join(withoutEmpty(at, m.Key, m.Found), ": ")
}

func withoutEmpty(all ...string) (some []string) {
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// configReport is "hutch config check --json".
type configReport struct {
	File     string         `json:"file"`
	Settings []shownSetting `json:"settings"`
	Mistakes []mistake      `json:"mistakes"`
}

func runConfigCheck(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 1, "at most one FILE"); err != nil {
		return err
	}
	if c.NArg() == 1 {
		if err := c.Set(flagConfig, c.Args().First()); err != nil {
			return err
		}
	}
	cfg, wrong := gatherConfig(c, p)
	r := configReport{File: configFile(c, p), Settings: cfg.shown(), Mistakes: []mistake{}}
	for _, err := range wrong {
		r.Mistakes = append(r.Mistakes, mistakesIn(err)...)
	}
	if cfg.Policy != "" && cfg.State != "" {
		r.Mistakes = append(r.Mistakes, cfg.policyMistakes()...)
		r.Mistakes = append(r.Mistakes, cfg.secretMistakes(p)...)
		for _, err := range cfg.checkModels(p.env) {
			r.Mistakes = append(r.Mistakes, mistakesIn(err)...)
		}
		for _, err := range slices.Concat(cfg.checkStore(), cfg.checkTelemetry(p.env), cfg.checkTracker(p.env)) {
			r.Mistakes = append(r.Mistakes, mistakesIn(err)...)
		}
		r.Mistakes = append(r.Mistakes, cfg.certificateMistakes()...)
	}
	if c.Bool(flagJSON) {
		if err := printJSON(c.App.Writer, r); err != nil {
			return err
		}
	} else if err := r.print(c.App.Writer, &voice{w: c.App.ErrWriter}); err != nil {
		return err
	}
	if len(r.Mistakes) > 0 {
		return errReported
	}
	return nil
}

func (r configReport) print(w io.Writer, say *voice) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, tableGap, ' ', 0)
	for _, s := range r.Settings {
		value := cmp.Or(strings.Join(s.Values, ", "), s.Default)
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Key, oneLine(value), oneLine(strings.Join(withoutEmpty(s.Source, s.At), " ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	for _, m := range r.Mistakes {
		say.line("error: %s", m)
		if m.Do != "" {
			say.line("hint: %s", m.Do)
		}
	}
	if len(r.Mistakes) == 0 {
		say.line("nothing is wrong with the configuration, the policy and the secrets")
	}
	return nil
}

// settings are all there are, with those of each agent that go with its model.
func (cfg Config) settings() []setting {
	all := settings()
	for _, a := range cfg.Agents {
		for _, s := range agentSettings(a.Name) {
			if a.Model.takes(strings.TrimPrefix(s.key, agentKey(a.Name, ""))) {
				all = append(all, s)
			}
		}
	}
	return all
}

// shown lists what all settings are, in the order of the help. A secret one is there
// or not.
func (cfg Config) shown() (all []shownSetting) {
	for _, s := range cfg.settings() {
		g, ok := cfg.given[s.key]
		if !ok {
			g = given{[]string{}, sourceDefault, ""}
		}
		if s.secret && ok {
			g.values = []string{"(not shown)"}
		}
		all = append(all, shownSetting{s.key, g.values, g.source, g.at, s.fallback})
	}
	return all
}

// mistakesIn takes an error of a configuration apart.
func mistakesIn(err error) (all []mistake) {
	for _, f := range strictyaml.Findings(err) {
		all = append(all, mistake{f.Document, f.Line, f.Key, f.Err.Error(), hintOf(f.Err)})
	}
	if len(all) == 0 {
		all = append(all, mistake{Found: err.Error(), Do: hintOf(err)})
	}
	return all
}

// policyMistakes says what is wrong with the policy file.
func (cfg Config) policyMistakes() (all []mistake) {
	_, err := openPolicy(cfg, slog.New(slog.DiscardHandler))
	var bad *capability.PolicyError
	if !errors.As(err, &bad) {
		if err != nil {
			all = append(all, mistake{Found: err.Error(), Do: hintOf(err)})
		}
		return all
	}
	for _, f := range bad.Findings {
		all = append(all, mistake{Where: bad.Name, Line: f.Line, Found: f.String()})
		if f.Key != "" {
			all[len(all)-1].Key, all[len(all)-1].Found = f.Key, strings.TrimPrefix(f.String(), f.Key+": ")
		}
	}
	if bad.More > 0 {
		all = append(all, mistake{Where: bad.Name, Found: fmt.Sprintf("%d more mistakes", bad.More)})
	}
	return all
}

// secretMistakes says what is wrong with the secrets, and nothing of a value.
func (cfg Config) secretMistakes(p program) (all []mistake) {
	if cfg.Secrets.AgeIdentity != "" && cfg.Secrets.Passphrase.Reveal() != "" { // which was told
		return nil
	}
	if cfg.sealed() {
		all = append(all, mistake{Where: cfg.Secrets.AgeFile, Found: "nothing opens it", Do: "name an identity as " + keyIdentity + ", or set " + envPassphrase})
	}
	vault, err := secrets.Open(cfg.secretOptions(p, nil))
	if vault == nil {
		return append(all, mistake{Found: err.Error()})
	}
	return append(all, cfg.problemsIn(vault)...)
}

// certificateMistakes says what is wrong with the files of TLS, if both are named.
func (cfg Config) certificateMistakes() []mistake {
	if cfg.TLS.Cert == "" || cfg.TLS.Key == "" {
		return nil
	}
	if _, err := cfg.TLS.read(); err != nil {
		return mistakesIn(err)
	}
	return nil
}

func (cfg Config) problemsIn(v *secrets.Vault) (all []mistake) {
	for _, p := range v.Problems() {
		all = append(all, mistake{Where: cfg.secretFile(p.Source), Line: p.Line, Found: p.Text})
	}
	return all
}

func runConfigShow(c *cli.Context, p program) error {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, wrong := gatherConfig(c, p)
	if len(wrong) > 0 {
		return tellFirst(wrong, configFile(c, p))
	}
	var failed error
	text := nested(cfg.settings(), "", func(s setting, indent string) string {
		g, ok := cfg.given[s.key]
		if !ok || s.apart != "" {
			return ""
		}
		name := s.key[strings.LastIndex(s.key, ".")+1:]
		if s.secret {
			return fmt.Sprintf("%s# %s: not shown # %s\n", indent, name, oneLine(strings.Join(withoutEmpty(g.source, g.at), " ")))
		}
		value, err := written(s, g.values)
		failed = errors.Join(failed, err)
		return fmt.Sprintf("%s%s: %s # %s\n", indent, name, value, oneLine(strings.Join(withoutEmpty(g.source, g.at), " ")))
	})
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintln(c.App.Writer, text)
	return err
}

// written is how values stand in a configuration file, wherever that is.
func written(s setting, values []string) (string, error) {
	var all []string
	for _, v := range values {
		if s.path {
			abs, err := filepath.Abs(v)
			if err != nil {
				return "", err
			}
			v = abs
		}
		if strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
			all = append(all, v)
			continue
		}
		quoted, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		all = append(all, string(quoted))
	}
	if s.many {
		return "[" + strings.Join(all, ", ") + "]", nil
	}
	return all[0], nil
}
