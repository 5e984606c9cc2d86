package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func trackerChatCommand(p program) *cli.Command {
	return trackerGroup("chat", "list, show, create and change chats", `Messages of a chat: hutch tracker message.

examples:
  $ hutch tracker chat create team --project team-board
  $ hutch tracker chat list`,
		chatListCommand(p), chatShowCommand(p), chatCreateCommand(p), chatUpdateCommand(p))
}

func chatListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list the chats that you may read: slug, project, archived, members, name", UsageText: "hutch tracker chat list [flags]",
		Flags: append(pageFlags(), archivedFlag(), &cli.StringFlag{Name: flagProject, Usage: "`PROJECT`: those of a project (default: all)"}),
		Description: `examples:
  $ hutch tracker chat list
  $ hutch tracker chat list --project team-board --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		q := tracker.ChatQuery{Project: a.String(flagProject), Archived: a.Bool(flagArchived), Paging: paging}
		return informPage(a, "no chats: hutch tracker init makes the first one", func(ctx context.Context, s trackerService) (tracker.Page[tracker.ChatOut], error) {
			return s.ListChats(ctx, q)
		}, a.chatRows)
	})
}

func (a trackerAsk) chatRows(w io.Writer, all []tracker.ChatOut) {
	rows := make([][]string, len(all))
	for i, c := range all {
		rows[i] = []string{c.Slug, chatProject(c, "-"), archived(c.Archived), chatMembers(c), c.Name}
	}
	trackerTable(w, a.columns(), rows)
}

func chatProject(c tracker.ChatOut, none string) string {
	if c.Project == nil {
		return none
	}
	return c.Project.Slug
}

func chatMembers(c tracker.ChatOut) string {
	if len(c.Members) == 0 {
		return "everybody"
	}
	return listedIn(c.Members)
}

func showChat(w io.Writer, c tracker.ChatOut) {
	trackerFields(w, "slug", c.Slug, "name", c.Name, "project", chatProject(c, ""), "members", chatMembers(c), "archived", yes(c.Archived),
		"id", c.ID, "created", when(c.CreatedAt))
}

func chatShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show a chat", UsageText: "hutch tracker chat show CHAT [flags]",
		Description: `CHAT is the slug or the id of one. What is said there: hutch tracker message list.

examples:
  $ hutch tracker chat show team`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ChatOut, error) { return s.GetChat(ctx, a.arg(0)) }, showChat)
	})
}

func chatCreateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "create", Usage: "make a chat, and print its slug", UsageText: "hutch tracker chat create SLUG [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagName, Usage: "`TEXT`: what it is called (default: the slug)"},
			&cli.StringFlag{Name: flagProject, Usage: "`PROJECT`: the one that it belongs to (default: none)"},
			&cli.StringSliceFlag{Name: flagMember, Usage: "`MEMBER`: one who may read it; may be repeated (default: everybody)"},
		},
		Description: `examples:
  $ hutch tracker chat create team --project team-board
  $ hutch tracker chat create two --member alice --member coder`,
	}, 1, 1, func(a trackerAsk) error {
		in := tracker.CreateChat{Slug: a.arg(0), Name: a.String(flagName), Project: a.String(flagProject), Members: a.list(flagMember), IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ChatOut, error) { return s.CreateChat(ctx, in) },
			func(w io.Writer, c tracker.ChatOut) { printLine(w, c.Slug) })
	})
}

func chatUpdateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "update", Usage: "change a chat, or archive it", UsageText: "hutch tracker chat update CHAT [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagName, Usage: "`TEXT`: what it is called (default: as it is)"},
			&cli.StringSliceFlag{Name: flagMember, Usage: "`MEMBER`: one who may read it, in place of those before; may be repeated (default: as they are)"},
			&cli.BoolFlag{Name: flagArchived, Usage: "archive it, or with --archived=false take it up again (default: as it is)"},
		},
		Description: `One empty member opens it to everybody.

examples:
  $ hutch tracker chat update two --member alice --member coder --member tester
  $ hutch tracker chat update two --member ""
  $ hutch tracker chat update two --archived`,
	}, 1, 1, func(a trackerAsk) error {
		if err := a.nothingToChange(flagName, flagMember, flagArchived); err != nil {
			return err
		}
		u := tracker.UpdateChat{Name: a.field(flagName), Members: a.listField(flagMember), Archived: a.truthField(flagArchived)}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ChatOut, error) {
			return s.UpdateChat(ctx, a.arg(0), u)
		}, showChat)
	})
}
