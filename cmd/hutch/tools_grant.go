package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/secrets"
)

// Flags of "hutch tools grant".
const (
	flagHTTP    = "http"
	flagSecret  = "secret"
	flagKV      = "kv"
	flagSet     = "set"
	flagOnly    = "only"
	flagNothing = "nothing"
)

func toolsGrantCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "grant",
		Usage:     "let a module do what it asks for, or a part of it",
		UsageText: "hutch tools grant MODULE [flags]",
		Flags: decideFlags(
			&cli.StringSliceFlag{Name: flagHTTP, Usage: "`[METHOD,..:][SCHEME://]HOST[:PORT][/PATH]`: let requests through to this host; may be repeated (default: GET,HEAD:https, every path)"},
			&cli.StringSliceFlag{Name: flagSecret, Usage: "`NAME[@HOST]`: put this secret into requests to this host, as the module asks for it, else as a bearer token; may be repeated"},
			&cli.StringFlag{Name: flagKV, Usage: "`SIZE`: let it keep so much"},
			&cli.StringSliceFlag{Name: flagSet, Usage: "`KEY=VALUE`: what it reads as its configuration, such as api-key=secret://NAME; may be repeated"},
			&cli.StringSliceFlag{Name: flagOnly, Usage: "`KIND,..`: give these kinds alone, such as http or kv"},
			&cli.BoolFlag{Name: flagNothing, Usage: "decide that it gets nothing of what it asks for"},
		),
		Action: func(c *cli.Context) error { return runToolsGrant(c, p) },
		Description: `Shows what MODULE asks for and why, what it has and what it would get, and asks. It gets what it asks
for as it asks. What it leaves open, such as the hosts of a tool that fetches any page, flags name, or
you are asked. A module that was decided about before gets what the flags name besides. MODULE is a
file in a tool folder, with or without .wasm, or a tool. What is decided counts for this version of
the file, is written to the policy file and is in force at once.

examples:
  $ hutch tools grant notes
  $ hutch tools grant fetch --http example.org --http 'POST:https://api.example.org:8443/v1'
  $ hutch tools grant github --http api.github.com --secret github_token --set api-key=secret://github_token
  $ hutch tools grant notes --nothing`,
	}
}

// grantFlags are what somebody named.
type grantFlags struct {
	http, secrets, only []string
	kv                  int64
	set                 map[string]string
	nothing             bool
}

func (f grantFlags) names() bool {
	return len(f.http)+len(f.secrets)+len(f.set) > 0 || f.kv > 0
}

func readGrantFlags(c *cli.Context) (f grantFlags, err error) {
	f = grantFlags{http: c.StringSlice(flagHTTP), secrets: c.StringSlice(flagSecret), nothing: c.Bool(flagNothing)}
	for _, kinds := range c.StringSlice(flagOnly) {
		f.only = append(f.only, strings.Split(kinds, ",")...)
	}
	if _, err := (capability.Grant{}).Only(f.only...); err != nil {
		return f, usagef("--%s: %w", flagOnly, err)
	}
	if f.set, err = setPairs(c.StringSlice(flagSet)); err != nil {
		return f, err
	}
	if c.IsSet(flagKV) {
		if f.kv, err = parseSize(c.String(flagKV)); err != nil {
			return f, usagef("--%s: %w", flagKV, err)
		}
		if err := checkGrant(capability.Grant{KV: &capability.KVRule{Max: max(f.kv, 1)}}); err != nil || f.kv < 1 {
			return f, asFlag(flagKV, c.String(flagKV), cmp.Or(err, errors.New("nothing can be kept in that")))
		}
	}
	if f.nothing && (f.names() || len(f.only) > 0) {
		return f, usagef("--%s goes with no flag that gives something", flagNothing)
	}
	return f, nil
}

func runToolsGrant(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "a MODULE"); err != nil {
		return err
	}
	f, err := readGrantFlags(c)
	if err != nil {
		return err
	}
	return deciding(c, p, func(ctx context.Context, a *App, d *dossier, who *terminal) (*proposal, error) {
		if len(d.now.asks.Kinds()) == 0 && !f.names() {
			return nil, d.nothingToGrant()
		}
		pr := &proposal{dossier: d, action: actionGrant, binding: d.now.Binding}
		if err := pr.give(ctx, f, who); err != nil {
			return nil, err
		}
		for _, s := range pr.grant.Secrets {
			if !slices.ContainsFunc(a.vault.Names(), func(l secrets.Listed) bool { return l.Name == s.Name }) {
				pr.notes = append(pr.notes, fmt.Sprintf("the secret %s is not there yet: hutch secrets set %s", s.Name, s.Name))
			}
		}
		return pr, nil
	})
}

// nothingToGrant says that a module asks for nothing, so that no grant would count.
func (d *dossier) nothingToGrant() error {
	err := fmt.Errorf("%s asks for nothing, so there is nothing to decide", quoted(d.module.Name))
	if d.changed() {
		return hinted(err, "hutch tools approve %s accepts this version", shellWord(d.module.Name))
	}
	return err
}

// give works out what the module gets.
func (pr *proposal) give(ctx context.Context, f grantFlags, who *terminal) (err error) {
	asks := pr.now.asks
	pr.config = maps.Clone(pr.entry.Config)
	if f.nothing {
		pr.config = withoutSecrets(pr.config, pr.grant)
		return nil
	}
	pr.grant = pr.entry.Grant
	if !pr.entry.Decided || !f.names() {
		pr.grant = pr.grant.Plus(asks.Closed())
	}
	if who != nil && !f.names() {
		if f.http, f.secrets, err = pr.askOpen(ctx, f.only, who); err != nil {
			return err
		}
	}
	if err := pr.name(f); err != nil {
		return err
	}
	if len(f.only) > 0 {
		if pr.grant, err = pr.grant.Only(f.only...); err != nil {
			return err
		}
		pr.config = withoutSecrets(pr.config, pr.grant)
	}
	if err := pr.giveable(); err != nil {
		return err
	}
	return pr.worthwhile()
}

// giveable leaves out what no policy may say, allows the addresses that are written
// out, and notes both.
func (pr *proposal) giveable() error {
	given, why := sayable(pr.grant)
	if len(why) > 0 && len(given.Kinds()) == 0 {
		return fmt.Errorf("nothing that %s asks for can be given: %s", quoted(pr.module.Name), strings.Join(why, "; "))
	}
	for _, w := range why {
		pr.notes = append(pr.notes, "this cannot be given: "+w)
	}
	pr.grant = given
	pr.notes = append(pr.notes, ownNetwork(pr.entry.Grant, given)...)
	return nil
}

// name adds what flags name.
func (pr *proposal) name(f grantFlags) error {
	for _, spec := range f.http {
		r, err := httpRule(spec)
		if err != nil {
			return err
		}
		if r.Methods, err = pr.methods(spec, r); err != nil {
			return err
		}
		if err := pr.add(flagHTTP, spec, capability.Grant{HTTP: []capability.HTTPRule{r}}); err != nil {
			return err
		}
	}
	if len(f.set) > 0 && pr.config == nil {
		pr.config = map[string]string{}
	}
	maps.Copy(pr.config, f.set)
	for _, spec := range append(f.secrets, pr.impliedSecrets(f)...) {
		s, err := secretRule(spec, pr.now.asks, pr.grant)
		if err != nil {
			return err
		}
		if err := pr.add(flagSecret, spec, capability.Grant{Secrets: []capability.SecretRule{s}}); err != nil {
			return err
		}
	}
	if asks := pr.now.asks.KV; f.kv > 0 && asks != nil && asks.Max > 0 && f.kv > asks.Max {
		return pr.neverCounts(flagKV, formatSize(f.kv), "more than "+formatSize(asks.Max))
	}
	if f.kv > 0 {
		return pr.add(flagKV, formatSize(f.kv), capability.Grant{KV: &capability.KVRule{Max: f.kv}})
	}
	return nil
}

// methods are those that a rule which was named gives: of the ones that go without
// saying what the module asks for. One that it never asks for is not named in vain.
func (pr *proposal) methods(spec string, r capability.HTTPRule) ([]string, error) {
	asked := pr.now.asks.Methods(r)
	useless := func(method string) bool { return !slices.Contains(asked, method) }
	if never := slices.DeleteFunc(slices.Clone(r.Methods), func(m string) bool { return !useless(m) }); len(never) > 0 {
		return nil, pr.neverCounts(flagHTTP, spec, strings.Join(never, ", "))
	}
	if len(r.Methods) > 0 || !useless("GET") && !useless("HEAD") {
		return r.Methods, nil
	}
	some := slices.DeleteFunc([]string{"GET", "HEAD"}, useless)
	if len(some) == 0 {
		return nil, pr.neverCounts(flagHTTP, spec, "GET, HEAD")
	}
	return some, nil
}

// neverCounts refuses to give what the module could not use, with what it asks for.
func (pr *proposal) neverCounts(flag, spec, what string) error {
	return hinted(fmt.Errorf("--%s %s: %s does not ask for that, so it could never use it: %s; it asks for: %s",
		flag, quoted(spec), quoted(pr.module.Name), what, strings.Join(orNothing(pr.now.asks.Lines()), "; ")),
		"hutch tools diff %s", shellWord(pr.module.Name))
}

// impliedSecrets are those for which a configuration that is set has placeholders.
func (pr *proposal) impliedSecrets(f grantFlags) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(f.set)) {
		name, ok := strings.CutPrefix(f.set[key], secretPlaceholder)
		named := slices.ContainsFunc(f.secrets, func(spec string) bool { n, _, _ := strings.Cut(spec, "@"); return n == name })
		if ok && !named && !hasSecret(pr.grant, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// add gives what a flag names. What the module did not ask for would never count;
// one that is foreign to hutch asks for a secret by its configuration.
func (pr *proposal) add(flag, spec string, more capability.Grant) error {
	asks := pr.now.asks
	for _, value := range pr.config {
		if name, ok := strings.CutPrefix(value, secretPlaceholder); ok {
			asks.Secrets = append(slices.Clone(asks.Secrets), capability.SecretRule{Name: name, Host: "*"})
		}
	}
	if never := asks.Unasked(more); len(never) > 0 {
		return pr.neverCounts(flag, spec, strings.Join(never, ", "))
	}
	pr.grant = pr.grant.Plus(more)
	return nil
}

// askOpen asks for what the module leaves open.
func (pr *proposal) askOpen(ctx context.Context, only []string, who *terminal) (hosts, named []string, err error) {
	for _, kind := range pr.now.asks.Open() {
		if len(only) > 0 && !slices.Contains(only, kind) || pr.answers(kind) {
			continue
		}
		question, into := "", (*[]string)(nil)
		switch kind {
		case "http":
			question, into = "%s asks for http and leaves open where to. Which hosts, such as example.org or POST:https://api.example.org/v1? (none)", &hosts
		case "secrets":
			question, into = "%s asks for secrets and leaves open which. Which, as NAME@HOST? (none)", &named
		default:
			continue
		}
		answer, err := who.ask(ctx, fmt.Sprintf(question, quoted(pr.module.Name)))
		if err != nil {
			return nil, nil, err
		}
		*into = strings.Fields(strings.ReplaceAll(answer, ", ", " "))
	}
	return hosts, named, nil
}

// answers reports whether something was named already of a kind that is left open.
// To be asked each time is no answer.
func (pr *proposal) answers(kind string) bool {
	if kind == "http" {
		return slices.ContainsFunc(pr.entry.Grant.HTTP, func(r capability.HTTPRule) bool { return r.Approval != capability.Ask })
	}
	return slices.Contains(pr.entry.Grant.Kinds(), kind)
}

// worthwhile refuses to decide about a module that leaves open all that it asks for
// without anything being named, and notes what was left.
func (pr *proposal) worthwhile() error {
	has := pr.grant.Kinds()
	left := slices.DeleteFunc(pr.now.asks.Open(), func(kind string) bool { return slices.Contains(has, kind) })
	if len(left) == 0 {
		return nil
	}
	named := strings.Join(left, ", ")
	if len(has) == 0 && len(pr.now.asks.Closed().Kinds()) == 0 {
		return hinted(fmt.Errorf("%s asks for %s and leaves open what: name what it gets, or decide with --%s that it gets nothing", quoted(pr.module.Name), named, flagNothing),
			"%s", howToName(pr.module.Name, left[0]))
	}
	pr.notes = append(pr.notes, fmt.Sprintf("it leaves open what it wants of %s, so it gets nothing of that; see: hutch help tools grant", named))
	return nil
}

// howToName is a command that names what is left open of a kind.
func howToName(module, kind string) string {
	command := "hutch tools grant " + shellWord(module)
	switch kind {
	case "http":
		return command + " --http HOST"
	case "secrets":
		return command + " --http HOST --secret NAME@HOST"
	}
	return "write " + kind + " into its grant in the policy file"
}
