package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	flagKey         = "key"
	flagDescription = "description"
)

func trackerProjectCommand(p program) *cli.Command {
	return trackerGroup("project", "list, show, create and change projects", `A project has tasks, whose keys begin with its own: TB-1 is the first one of TB.

examples:
  $ hutch tracker project create team-board
  $ hutch tracker project list`,
		projectListCommand(p), projectShowCommand(p), projectCreateCommand(p), projectUpdateCommand(p))
}

func projectListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list projects: slug, key, archived, name", UsageText: "hutch tracker project list [flags]",
		Flags: append(pageFlags(), archivedFlag()),
		Description: `examples:
  $ hutch tracker project list
  $ hutch tracker project list --archived --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		return informPage(a, "no projects: hutch tracker init makes the first one", func(ctx context.Context, s trackerService) (tracker.Page[tracker.ProjectOut], error) {
			return s.ListProjects(ctx, tracker.ProjectQuery{Archived: a.Bool(flagArchived), Paging: paging})
		}, a.projectRows)
	})
}

func (a trackerAsk) projectRows(w io.Writer, all []tracker.ProjectOut) {
	rows := make([][]string, len(all))
	for i, o := range all {
		rows[i] = []string{o.Slug, o.Key, archived(o.Archived), o.Name}
	}
	trackerTable(w, a.columns(), rows)
}

// archived is a cell that says whether something is.
func archived(yes bool) string {
	if yes {
		return "archived"
	}
	return "-"
}

func showProject(w io.Writer, o tracker.ProjectOut) {
	trackerFields(w, "slug", o.Slug, "key", o.Key, "name", o.Name, "archived", yes(o.Archived), "id", o.ID, "created", when(o.CreatedAt))
	trackerText(w, o.Description)
}

// yes is a value that is shown only where it is true.
func yes(on bool) string {
	if on {
		return "yes"
	}
	return ""
}

func projectShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show a project", UsageText: "hutch tracker project show PROJECT [flags]",
		Description: `PROJECT is the slug or the id of one.

examples:
  $ hutch tracker project show team-board`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ProjectOut, error) {
			return s.GetProject(ctx, a.arg(0))
		}, showProject)
	})
}

func projectCreateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "create", Usage: "make a project, and print its slug", UsageText: "hutch tracker project create SLUG [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagKey, Usage: "`KEY`: what the keys of its tasks begin with (default: made of the slug)"},
			&cli.StringFlag{Name: flagName, Usage: "`TEXT`: what it is called (default: the slug)"},
			&cli.StringFlag{Name: flagDescription, Usage: "`TEXT`: what it is about; - reads standard input (default: nothing)"},
		},
		Description: `examples:
  $ hutch tracker project create team-board --key TB --name "Team board"`,
	}, 1, 1, func(a trackerAsk) error {
		about, err := a.text(a.String(flagDescription), tracker.MaxDescription)
		if err != nil {
			return err
		}
		in := tracker.CreateProject{Slug: a.arg(0), Key: a.String(flagKey), Name: a.String(flagName), Description: about, IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ProjectOut, error) {
			return s.CreateProject(ctx, in)
		},
			func(w io.Writer, o tracker.ProjectOut) { printLine(w, o.Slug) })
	})
}

func projectUpdateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "update", Usage: "change a project, or archive it", UsageText: "hutch tracker project update PROJECT [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagName, Usage: "`TEXT`: what it is called (default: as it is)"},
			&cli.StringFlag{Name: flagDescription, Usage: "`TEXT`: what it is about; - reads standard input (default: as it is)"},
			&cli.BoolFlag{Name: flagArchived, Usage: "archive it, or with --archived=false take it up again (default: as it is)"},
		},
		Description: `Slug and key stay what they are: tasks are known by them.

examples:
  $ hutch tracker project update team-board --name "The board"
  $ hutch tracker project update team-board --archived`,
	}, 1, 1, func(a trackerAsk) error {
		if err := a.nothingToChange(flagName, flagDescription, flagArchived); err != nil {
			return err
		}
		u := tracker.UpdateProject{Name: a.field(flagName), Archived: a.truthField(flagArchived)}
		var err error
		if u.Description, err = a.textField(flagDescription, tracker.MaxDescription); err != nil {
			return err
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.ProjectOut, error) {
			return s.UpdateProject(ctx, a.arg(0), u)
		}, showProject)
	})
}
