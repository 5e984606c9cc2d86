package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/host/capability"
)

func toolsApproveCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "accept the version of a module that lies in its folder now",
		UsageText: "hutch tools approve MODULE [flags]",
		Flags:     decideFlags(),
		Action:    func(c *cli.Context) error { return runToolsApprove(c, p) },
		Description: `A file that is not what was decided about waits, and the version before goes on serving. This shows what
the new one says and asks for otherwise, and asks whether to accept it. It keeps what was granted;
what it asks for besides, hutch tools grant gives.

examples:
  $ hutch tools diff weather
  $ hutch tools approve weather`,
	}
}

func runToolsApprove(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "a MODULE"); err != nil {
		return err
	}
	return deciding(c, p, func(_ context.Context, _ *App, d *dossier, _ *terminal) (*proposal, error) {
		return approval(d)
	})
}

func approval(d *dossier) (*proposal, error) {
	pr := &proposal{dossier: d, action: actionApprove, binding: d.now.Binding, grant: d.entry.Grant, config: d.entry.Config}
	name := d.module.Name
	switch asks := d.now.asks.Kinds(); {
	case !d.entry.Decided && len(asks) > 0:
		return nil, hinted(fmt.Errorf("%s asks for %s, and nothing was decided about that", quoted(name), strings.Join(asks, ", ")), "hutch tools grant %s", shellWord(name))
	case !d.entry.Decided && !d.changed() || d.shippedGrant:
		return nil, fmt.Errorf("%s: there is nothing to approve: it is the version that serves", quoted(name))
	}
	for _, wider := range capability.Widening(d.entry.Grant, d.now.asks.Closed()) {
		pr.notes = append(pr.notes, fmt.Sprintf("it asks for %s and does not get it; hutch tools grant %s gives it", wider, shellWord(name)))
	}
	return pr, nil
}

// pins reports whether an approval leaves the policy alone: that of a module that asks
// for nothing and that the policy does not pin. What is accepted then is what its
// tools say; versions that differ in their code alone go on taking its place.
func (pr *proposal) pins() bool {
	return len(pr.now.asks.Kinds()) == 0 && !pr.entry.Decided && pr.entry.Digest == ""
}
