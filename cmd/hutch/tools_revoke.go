package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/tool"
)

// flagDefault takes the operator's decision about a shipped module back.
const flagDefault = "default"

func toolsRevokeCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "take away what a module was granted",
		UsageText: "hutch tools revoke MODULE [KIND..] [flags]",
		Flags: decideFlags(
			&cli.StringSliceFlag{Name: flagHTTP, Usage: "`[METHOD,..:][SCHEME://]HOST[:PORT][/PATH]`: take requests to this host away; what is left out is all; may be repeated"},
			&cli.StringSliceFlag{Name: flagSecret, Usage: "`NAME`: take this secret away; may be repeated"},
			&cli.BoolFlag{Name: flagDefault, Usage: "take the decision about a module that came with hutch back, so that it has what it came with"},
		),
		Action: func(c *cli.Context) error { return runToolsRevoke(c, p) },
		Description: `Shows what MODULE loses and asks. With KINDs (http, secrets, kv) or flags it loses these alone. Without
any it loses all, and its configuration in the policy too: the decision is taken back, so that a
module that asks for something is held again. One that came with hutch then has nothing, also not
what it came with; --default gives that back. Calls that run keep what they were given. With
requests to a host go the secrets that nothing can carry any more, and with a secret what the
configuration has of it. With kv goes, for good, what the module has kept.

examples:
  $ hutch tools revoke weather
  $ hutch tools revoke notes kv
  $ hutch tools revoke fetch --http example.org
  $ hutch tools revoke fetch --default`,
	}
}

// revokeFlags are what is to be taken away; nothing named is all of it.
type revokeFlags struct {
	kinds, http, secrets []string
	back                 bool
}

func (f revokeFlags) names() bool { return len(f.kinds)+len(f.http)+len(f.secrets) > 0 }

func runToolsRevoke(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 9, "a MODULE and the KINDs to take away"); err != nil {
		return err
	}
	f := revokeFlags{c.Args().Tail(), c.StringSlice(flagHTTP), c.StringSlice(flagSecret), c.Bool(flagDefault)}
	if f.back && f.names() {
		return usagef("--%s goes with nothing that is taken away", flagDefault)
	}
	if _, err := (capability.Grant{}).Without(f.kinds...); err != nil {
		return usagef("%w", err)
	}
	return deciding(c, p, func(_ context.Context, a *App, d *dossier, _ *terminal) (*proposal, error) {
		pr := &proposal{dossier: d, action: actionRevoke, binding: d.decidedFor()}
		if f.back {
			return pr, pr.goBack(a.book)
		}
		return pr, pr.takeAway(f)
	})
}

// goBack leaves a module with what it came with.
func (pr *proposal) goBack(book *capability.Book) error {
	m := pr.module
	shipped, ok := book.Shipped(tool.Module{Name: m.Name, Digest: m.Digest, Shipped: m.Shipped})
	if !ok {
		return hinted(fmt.Errorf("%s did not come with hutch, so there is nothing to go back to", quoted(m.Name)), "hutch tools revoke %s takes all away", shellWord(m.Name))
	}
	pr.back, pr.grant, pr.config = true, shipped.Grant, shipped.Config
	return nil
}

// takeAway takes what was named, or everything.
func (pr *proposal) takeAway(f revokeFlags) error {
	d := pr.dossier
	if !d.entry.Decided && (f.names() || d.entry.Digest == "") {
		return fmt.Errorf("%s: nothing was granted to it", quoted(d.module.Name))
	}
	if !f.names() {
		pr.undecided = !d.module.Shipped
		return nil
	}
	pr.grant = d.entry.Grant
	if err := pr.takeKinds(f.kinds); err != nil {
		return err
	}
	for _, spec := range f.http {
		what, err := namedHost(spec)
		if err == nil {
			pr.grant, err = pr.grant.WithoutHTTP(what)
		}
		if err != nil {
			return fmt.Errorf("%s: --%s %s: %w", quoted(d.module.Name), flagHTTP, quoted(spec), err)
		}
	}
	for _, name := range f.secrets {
		var err error
		if pr.grant, err = pr.grant.WithoutSecret(name); err != nil {
			return fmt.Errorf("%s: --%s %s: %w", quoted(d.module.Name), flagSecret, quoted(name), err)
		}
	}
	pr.config = withoutSecrets(d.entry.Config, pr.grant)
	return nil
}

func (pr *proposal) takeKinds(kinds []string) (err error) {
	has := pr.grant.Kinds()
	for _, kind := range kinds {
		if !slices.Contains(has, kind) {
			return fmt.Errorf("%s: %s was not granted to it: it has %s", quoted(pr.module.Name), kind, strings.Join(orNothing(has), ", "))
		}
	}
	pr.grant, err = pr.grant.Without(kinds...)
	return err
}

// decidedFor is the version that the decision which there is counts for.
func (d *dossier) decidedFor() capability.Binding {
	return capability.Binding{Digest: d.entry.Digest, Definitions: d.entry.Definitions}
}
