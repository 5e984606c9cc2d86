package main

import (
	"context"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	flagKind       = "kind"
	flagCapability = "capability"
	flagStatus     = "status"
	flagBusy       = "busy"
)

func trackerMemberCommand(p program) *cli.Command {
	return trackerGroup("member", "list, show, create and change members: people and agents", `A member is a person or an agent. Its token comes from "hutch tracker token create".

examples:
  $ hutch tracker member create coder --capability coding
  $ hutch tracker member create alice --kind human
  $ hutch tracker member list`,
		memberListCommand(p), memberShowCommand(p), memberCreateCommand(p), memberUpdateCommand(p), memberStatusCommand(p), memberHeartbeatCommand(p))
}

func memberListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list members: slug, kind, presence, activity, archived, status, name", UsageText: "hutch tracker member list [flags]",
		Flags: append(pageFlags(), archivedFlag(),
			&cli.StringFlag{Name: flagProject, Usage: "`PROJECT`: those of a project (default: all)"},
			&cli.StringFlag{Name: flagKind, Usage: "`KIND`: human or agent (default: both)"}),
		Description: `examples:
  $ hutch tracker member list --kind agent
  $ hutch tracker member list --project team-board --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		q := tracker.MemberQuery{Project: a.String(flagProject), Kind: a.String(flagKind), Archived: a.Bool(flagArchived), Paging: paging}
		return informPage(a, "no members", func(ctx context.Context, s trackerService) (tracker.Page[tracker.MemberOut], error) {
			return s.ListMembers(ctx, q)
		}, a.memberRows)
	})
}

func (a trackerAsk) memberRows(w io.Writer, all []tracker.MemberOut) {
	rows := make([][]string, len(all))
	for i, m := range all {
		rows[i] = []string{m.Slug, string(m.Kind), string(m.Presence), m.Activity, archived(m.Archived), orDash(m.Status), m.Name}
	}
	trackerTable(w, a.columns(), rows)
}

func showMember(w io.Writer, m tracker.MemberOut) {
	seen := ""
	if m.SeenAt != nil {
		seen = when(*m.SeenAt)
	}
	trackerFields(w, "slug", m.Slug, "name", m.Name, "kind", string(m.Kind), "presence", string(m.Presence), "activity", m.Activity, "status", m.Status,
		"capabilities", listedIn(m.Capabilities), "tasks", listedIn(m.CurrentTasks), "projects", listedIn(m.Projects), "archived", yes(m.Archived),
		"seen", seen, "id", m.ID, "created", when(m.CreatedAt))
}

func memberShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show a member; me is who asks", UsageText: "hutch tracker member show MEMBER [flags]",
		Description: `examples:
  $ hutch tracker member show coder
  $ hutch tracker member show me --json`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MemberOut, error) {
			return s.GetMember(ctx, a.arg(0))
		}, showMember)
	})
}

// memberFlags are those of what a member is made of.
func memberFlags(fallback string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagName, Usage: "`TEXT`: what it is called (default: " + fallback + ")"},
		&cli.StringSliceFlag{Name: flagCapability, Usage: "`TEXT`: what it can do; may be repeated"},
		&cli.StringSliceFlag{Name: flagProject, Usage: "`PROJECT`: one that it belongs to; may be repeated (default: all)"},
	}
}

func memberCreateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "create", Usage: "make a member, and print its slug", UsageText: "hutch tracker member create SLUG [flags]",
		Flags: append(memberFlags("the slug"), &cli.StringFlag{Name: flagKind, Usage: "`KIND`: human or agent (default: agent)"}),
		Description: `examples:
  $ hutch tracker member create coder --capability coding --capability review
  $ hutch tracker member create alice --kind human --name "Alice A."`,
	}, 1, 1, func(a trackerAsk) error {
		in := tracker.CreateMember{Slug: a.arg(0), Name: a.String(flagName), Kind: tracker.Kind(a.String(flagKind)), Capabilities: a.list(flagCapability),
			Projects: a.list(flagProject), IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MemberOut, error) { return s.CreateMember(ctx, in) },
			func(w io.Writer, m tracker.MemberOut) { printLine(w, m.Slug) })
	})
}

func memberUpdateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "update", Usage: "change a member, or archive it", UsageText: "hutch tracker member update MEMBER [flags]",
		Flags: append(memberFlags("as it is"),
			&cli.StringFlag{Name: flagStatus, Usage: "`TEXT`: what it says of itself (default: as it is)"},
			&cli.BoolFlag{Name: flagArchived, Usage: "archive it, or with --archived=false take it up again (default: as it is)"}),
		Description: `A list that is given takes the place of the one before; one empty value empties it.

examples:
  $ hutch tracker member update coder --capability coding
  $ hutch tracker member update coder --project ""
  $ hutch tracker member update coder --archived`,
	}, 1, 1, func(a trackerAsk) error {
		if err := a.nothingToChange(flagName, flagCapability, flagProject, flagStatus, flagArchived); err != nil {
			return err
		}
		u := tracker.UpdateMember{Name: a.field(flagName), Capabilities: a.listField(flagCapability), Projects: a.listField(flagProject),
			Archived: a.truthField(flagArchived), Status: a.field(flagStatus)}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MemberOut, error) {
			return s.UpdateMember(ctx, a.arg(0), u)
		}, showMember)
	})
}

func memberStatusCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "status", Usage: "say what you are about, and print it", UsageText: "hutch tracker member status TEXT [flags]",
		Description: `It is the status of who asks: the member of the token, and local without one.

examples:
  $ hutch tracker member status "at lunch"`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MyStatus, error) {
			return s.UpdateMyStatus(ctx, tracker.MyStatus{Status: a.arg(0)})
		}, func(w io.Writer, my tracker.MyStatus) { printLine(w, my.Status) })
	})
}

func memberHeartbeatCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "heartbeat", Usage: "stay online without a socket, and say what you do", UsageText: "hutch tracker member heartbeat [flags]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagBusy, Usage: "say that you are at work (default: idle)"},
			&cli.StringSliceFlag{Name: flagTask, Usage: "`TASK`: one that you are at; may be repeated"},
		},
		Description: `Who is not heard of for ` + tracker.OfflineAfter.Round(time.Second).String() + ` is offline.

examples:
  $ hutch tracker member heartbeat --busy --task TB-1`,
	}, 0, 0, func(a trackerAsk) error {
		h := tracker.Heartbeat{Status: tracker.Idle, CurrentTasks: a.list(flagTask)}
		if a.Bool(flagBusy) {
			h.Status = tracker.Busy
		}
		return informDone(a, h.Status, func(ctx context.Context, s trackerService) error { return s.Heartbeat(ctx, h) })
	})
}
