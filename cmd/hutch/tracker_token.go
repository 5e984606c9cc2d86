package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
)

func trackerTokenCommand(p program) *cli.Command {
	const below = "hutch tracker token"
	return trackerGroup("token", "create, list and revoke the tokens that members come in with", `They are those of "hutch tokens", with what a member needs at the tracker of this state folder. As soon as
there is one, nobody comes in without.

examples:
  $ hutch tracker token create coder > coder.token
  $ hutch tracker token list
  $ hutch tracker token revoke coder`,
		trackerTokenCreateCommand(p), tokensListCommand(p, below), tokensRevokeCommand(p, below))
}

func trackerTokenCreateCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "make a token for a member and show it, this once",
		UsageText: "hutch tracker token create MEMBER [flags]",
		Flags: append(tokenFlags(),
			&cli.StringFlag{Name: flagName, Usage: "`NAME`: what the token is called (default: as the member)"},
			&cli.StringSliceFlag{Name: flagScope, Usage: "`SCOPE`: what it may do, in place of the usual; may be repeated"},
			expiresFlag(),
			jsonFlag("the token and what is kept of it")),
		Action: func(c *cli.Context) error { return runTrackerTokenCreate(c, p) },
		Description: `The token is the one line on standard output. Nothing but a hash of it is kept.
Usual are, for an agent,
  ` + strings.Join(wrapped(strings.Join(memberScopes(tracker.Agent), ", "), 96), "\n  ") + `
and for a person ` + tracker.TasksAssign + ` besides. With --scope ` + tracker.Admin + ` a token makes projects, members and chats.

examples:
  $ hutch tracker token create coder > coder.token
  $ hutch tracker token create alice --name alice-phone --expires 90d
  $ hutch tracker token create watcher --scope tasks:read --scope projects:read`,
	}
}

// memberScopes are what a member of a kind needs to do its work.
func memberScopes(kind tracker.Kind) []string {
	return slices.DeleteFunc(trackerScopes(), func(scope string) bool {
		return scope == tracker.TasksForce || scope == tracker.TasksAssign && kind != tracker.Human
	})
}

func runTrackerTokenCreate(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 1, "the slug of a MEMBER"); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	if cfg.Tracker.URL != "" {
		return usagef("%s: the tokens of a tracker elsewhere are made where it runs", cfg.given[keyTrackerURL].place(keyTrackerURL))
	}
	name := cmp.Or(c.String(flagName), c.Args().First())
	if err := access.CheckName(name); err != nil {
		return usagef("name %w", err)
	}
	var m tracker.MemberOut
	err = cfg.withTracker(c.Context, p, func(ctx context.Context, s trackerService) error {
		m, err = s.GetMember(ctx, c.Args().First())
		return err
	})
	if errors.Is(err, tracker.Errorf(tracker.CodeNotFound, "")) {
		return hinted(err, "hutch tracker member create %s", shellWord(c.Args().First()))
	}
	if err != nil {
		return err
	}
	scopes := c.StringSlice(flagScope)
	if len(scopes) == 0 {
		scopes = memberScopes(m.Kind)
	}
	return createToken(c, cfg, name, m.Slug, scopes)
}
