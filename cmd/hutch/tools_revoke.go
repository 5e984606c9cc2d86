package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
)

func toolsRevokeCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "take away what a module was granted",
		UsageText: "hutch tools revoke MODULE [KIND..] [flags]",
		Flags:     decideFlags(),
		Action:    func(c *cli.Context) error { return runToolsRevoke(c, p) },
		Description: `Shows what MODULE loses and asks. Without a KIND it takes the decision back, so that a module that asks for
something is held again; one that came with hutch then gets nothing. Calls that run keep what they
were given. With http go the secrets, which nothing can carry any more.

examples:
  $ hutch tools revoke weather
  $ hutch tools revoke notes kv`,
	}
}

func runToolsRevoke(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 9, "a MODULE and the KINDs to take away"); err != nil {
		return err
	}
	kinds := c.Args().Tail()
	return deciding(c, p, func(_ context.Context, _ *App, d *dossier, _ *terminal) (*proposal, error) {
		return revocation(d, kinds)
	})
}

// revocation takes kinds away, or everything.
func revocation(d *dossier, kinds []string) (*proposal, error) {
	pr := &proposal{dossier: d, action: actionRevoke, binding: d.decidedFor()}
	if _, err := d.entry.Grant.Without(kinds...); err != nil {
		return nil, usagef("%w", err)
	}
	if !d.entry.Decided {
		return nil, fmt.Errorf("%s: nothing was granted to it", quoted(d.module.Name))
	}
	has := d.entry.Grant.Kinds()
	for _, kind := range kinds {
		if !slices.Contains(has, kind) {
			return nil, fmt.Errorf("%s: %s was not granted to it: it has %s", quoted(d.module.Name), kind, strings.Join(orNothing(has), ", "))
		}
	}
	var err error
	switch {
	case len(kinds) > 0:
		pr.grant, err = d.entry.Grant.Without(kinds...)
	case !d.module.Shipped:
		pr.undecided = true
	}
	if pr.config = d.entry.Config; !pr.undecided {
		pr.config = withoutSecrets(d.entry.Config, pr.grant)
	}
	return pr, err
}

// decidedFor is the version that the decision which there is counts for.
func (d *dossier) decidedFor() capability.Binding {
	return capability.Binding{Digest: d.entry.Digest, Definitions: d.entry.Definitions}
}
