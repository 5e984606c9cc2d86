package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	flagTitle     = "title"
	flagType      = "type"
	flagPriority  = "priority"
	flagAssignee  = "assignee"
	flagParent    = "parent"
	flagLabel     = "label"
	flagBlockedBy = "blocked-by"
	flagCreator   = "creator"
	flagWatcher   = "watcher"
	flagSearch    = "search"
	flagReady     = "ready"
	flagForce     = "force"
	flagVersion   = "version"
)

func trackerTaskCommand(p program) *cli.Command {
	return trackerGroup("task", "list, show, create, change and follow tasks, and hand them over", `A TASK is named by its key, such as TB-1, by its id, or by its number where one task alone has it: #1 or 1.

examples:
  $ hutch tracker task create team-board "Write the release notes" --assignee coder
  $ hutch tracker task list --status todo,in_progress
  $ hutch tracker task show TB-1
  $ hutch tracker task follow TB-1 --until in_review`,
		taskListCommand(p), taskShowCommand(p), taskCreateCommand(p), taskUpdateCommand(p), taskDeleteCommand(p),
		taskTakeCommand(p), taskRejectCommand(p), taskReleaseCommand(p), taskAssignCommand(p), taskWatchCommand(p), taskUnwatchCommand(p),
		taskDependCommand(p), taskUndependCommand(p), taskActivityCommand(p), taskFollowCommand(p))
}

func taskListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list tasks: key, status, priority, assignee, title", UsageText: "hutch tracker task list [flags]",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: flagProject, Usage: "`PROJECT`: those of a project (default: all)"},
			&cli.StringFlag{Name: flagStatus, Usage: "`STATUS`: " + listedIn(statusNames()) + "; several with commas (default: any)"},
			&cli.StringFlag{Name: flagAssignee, Usage: "`MEMBER`: those of a member, of me, or of none (default: any)"},
			&cli.StringSliceFlag{Name: flagLabel, Usage: "`LABEL`: those with it; may be repeated, and all must be there"},
			&cli.StringFlag{Name: flagType, Usage: "`TYPE`: " + listedIn(tracker.Types()) + " (default: any)"},
			&cli.StringFlag{Name: flagPriority, Usage: "`PRIORITY`: " + listedIn(tracker.Priorities()) + " (default: any)"},
			&cli.StringFlag{Name: flagParent, Usage: "`TASK`: its subtasks (default: all)"},
			&cli.StringFlag{Name: flagCreator, Usage: "`MEMBER`: those that a member made (default: anybody)"},
			&cli.StringFlag{Name: flagWatcher, Usage: "`MEMBER`: those that a member watches (default: any)"},
			&cli.StringFlag{Name: flagSearch, Usage: "`TEXT`: those with it in title, description or key (default: any)"},
			&cli.BoolFlag{Name: flagReady, Usage: "those that can be begun: todo, and waiting for nothing"},
		}, pageFlags()...),
		Description: `The newest come first. All that is given must hold.

examples:
  $ hutch tracker task list --project team-board --assignee none --ready
  $ hutch tracker task list --status todo,in_progress --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		q := tracker.TaskQuery{Project: a.String(flagProject), Statuses: commaList(a.String(flagStatus)), Assignee: a.String(flagAssignee), Labels: a.list(flagLabel),
			Type: a.String(flagType), Priority: a.String(flagPriority), Parent: a.String(flagParent), Creator: a.String(flagCreator),
			Watcher: a.String(flagWatcher), Text: a.String(flagSearch), Ready: a.Bool(flagReady), Paging: paging}
		return informPage(a, "no tasks", func(ctx context.Context, s trackerService) (tracker.Page[tracker.TaskOut], error) {
			return s.ListTasks(ctx, q)
		}, a.taskRows)
	})
}

func statusNames() (names []string) {
	for _, s := range tracker.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func (a trackerAsk) taskRows(w io.Writer, all []tracker.TaskOut) {
	rows := make([][]string, len(all))
	for i, t := range all {
		rows[i] = []string{t.Key, string(t.Status), t.Priority, assigneeOf(t, "-"), t.Title}
	}
	trackerTable(w, a.columns(), rows)
}

// taskRow is how a task is shown that was changed.
func (a trackerAsk) taskRow(w io.Writer, t tracker.TaskOut) { a.taskRows(w, []tracker.TaskOut{t}) }

func assigneeOf(t tracker.TaskOut, nobody string) string {
	if t.AssigneeSlug == nil {
		return nobody
	}
	return *t.AssigneeSlug
}

func taskShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show a task and its steps", UsageText: "hutch tracker task show TASK [flags]",
		Description: `Comments: hutch tracker message list --task TASK. Who changed what: hutch tracker task activity TASK.

examples:
  $ hutch tracker task show TB-1
  $ hutch tracker task show '#1' --json`,
	}, 1, 1, func(a trackerAsk) error {
		var steps []tracker.StepOut
		return inform(a, func(ctx context.Context, s trackerService) (t tracker.TaskOut, err error) {
			if t, err = s.GetTask(ctx, a.arg(0)); err == nil && t.StepsTotal > 0 && !a.Bool(flagJSON) {
				steps, err = s.ListSteps(ctx, t.ID)
			}
			return t, err
		}, func(w io.Writer, t tracker.TaskOut) { a.showTask(w, t, steps) })
	})
}

func (a trackerAsk) showTask(w io.Writer, t tracker.TaskOut, steps []tracker.StepOut) {
	printLine(w, t.Key+"  "+t.Title)
	parent := ""
	if t.ParentID != nil {
		parent = *t.ParentID
	}
	trackerFields(w, "status", string(t.Status), "assignee", assigneeOf(t, nobody), "project", t.Project.Slug, "type", t.Type, "priority", t.Priority,
		"labels", listedIn(t.Labels), "parent", parent, "waits for", listedIn(t.BlockedBy), "blocked", yes(t.Blocked), "creator", t.Creator.Slug,
		"watchers", listedIn(t.Watchers), "rejected by", listedIn(t.RejectedBy), "version", fmt.Sprint(t.Version), "id", t.ID,
		"created", when(t.CreatedAt), "changed", when(t.UpdatedAt))
	trackerText(w, t.Description)
	a.stepRows(w, steps)
}

// taskFields are the flags of what a task is made of, but its title.
func taskFields(fallback func(string) string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagDescription, Usage: "`TEXT`: what is to be done; - reads standard input (default: " + fallback("nothing") + ")"},
		&cli.StringFlag{Name: flagType, Usage: "`TYPE`: " + listedIn(tracker.Types()) + " (default: " + fallback("task") + ")"},
		&cli.StringFlag{Name: flagPriority, Usage: "`PRIORITY`: " + listedIn(tracker.Priorities()) + " (default: " + fallback("medium") + ")"},
		&cli.StringFlag{Name: flagAssignee, Usage: "`MEMBER`: whose it is, or none (default: " + fallback("none") + ")"},
		&cli.StringFlag{Name: flagParent, Usage: "`TASK`: the one that it is a part of, or none (default: " + fallback("none") + ")"},
		&cli.StringSliceFlag{Name: flagLabel, Usage: "`LABEL`: may be repeated (default: " + fallback("none") + ")"},
		&cli.StringSliceFlag{Name: flagBlockedBy, Usage: "`TASK`: one that it waits for; may be repeated (default: " + fallback("none") + ")"},
	}
}

// given is the value of a flag, empty for none.
func (a trackerAsk) given(flag string) string {
	if a.String(flag) == nobody {
		return ""
	}
	return a.String(flag)
}

func taskCreateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "create", Usage: "make a task, and print its key", UsageText: "hutch tracker task create PROJECT TITLE [flags]",
		Flags: append(taskFields(func(s string) string { return s }),
			&cli.StringFlag{Name: flagStatus, Usage: "`STATUS`: todo, or backlog: then nobody begins it (default: todo)"}),
		Description: `An agent to which it is assigned begins at once, unless its status is backlog.

examples:
  $ hutch tracker task create team-board "Write the release notes" --assignee coder
  $ hutch tracker task create team-board "Check them" --parent TB-1 --label docs --description - < notes.txt`,
	}, 2, 2, func(a trackerAsk) error {
		about, err := a.text(a.String(flagDescription), tracker.MaxDescription)
		if err != nil {
			return err
		}
		in := tracker.CreateTask{Project: a.arg(0), Title: a.arg(1), Description: about, Type: a.String(flagType), Priority: a.String(flagPriority),
			Status: a.String(flagStatus), AssigneeSlug: a.given(flagAssignee), ParentID: a.given(flagParent), Labels: a.list(flagLabel),
			BlockedBy: a.list(flagBlockedBy), IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) { return s.CreateTask(ctx, in) },
			func(w io.Writer, t tracker.TaskOut) { printLine(w, t.Key) })
	})
}

func taskUpdateCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "update", Usage: "change fields of a task", UsageText: "hutch tracker task update TASK [flags]",
		Flags: append(taskFields(func(string) string { return "as it is" }),
			&cli.StringFlag{Name: flagTitle, Usage: "`TEXT`: what it is called (default: as it is)"},
			&cli.StringFlag{Name: flagStatus, Usage: "`STATUS`: " + listedIn(statusNames()) + " (default: as it is)"},
			&cli.BoolFlag{Name: flagForce, Usage: "allow a change of status that is not foreseen; needs the scope " + tracker.TasksForce},
			&cli.Int64Flag{Name: flagVersion, Usage: "`N`: refuse if it has another version by now (default: any)"}),
		Description: `A list that is given takes the place of the one before; one empty value empties it.

examples:
  $ hutch tracker task update TB-1 --status done
  $ hutch tracker task update TB-1 --assignee none --priority high
  $ hutch tracker task update TB-1 --label ""`,
	}, 1, 1, func(a trackerAsk) error {
		u, err := a.taskUpdate()
		if err != nil {
			return err
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.UpdateTask(ctx, a.arg(0), u)
		}, a.taskRow)
	})
}

// taskUpdate is what the flags of an update say.
func (a trackerAsk) taskUpdate() (tracker.UpdateTask, error) {
	u := tracker.UpdateTask{Title: a.field(flagTitle), Type: a.field(flagType), Priority: a.field(flagPriority), Status: a.field(flagStatus),
		AssigneeSlug: a.noneField(flagAssignee), ParentID: a.noneField(flagParent), Labels: a.listField(flagLabel), BlockedBy: a.listField(flagBlockedBy),
		Force: a.Bool(flagForce), Version: a.Int64(flagVersion)}
	err := a.nothingToChange(flagTitle, flagDescription, flagType, flagPriority, flagStatus, flagAssignee, flagParent, flagLabel, flagBlockedBy)
	if err == nil && a.IsSet(flagVersion) && u.Version < 1 {
		err = usagef("--%s %d: a version is a number from 1 on", flagVersion, u.Version)
	}
	if err == nil {
		u.Description, err = a.textField(flagDescription, tracker.MaxDescription)
	}
	return u, err
}

func taskDeleteCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "delete", Usage: "delete a task with its steps, comments and files, for good", UsageText: "hutch tracker task delete TASK [flags]",
		Description: `To keep what was said there, cancel it instead: hutch tracker task update TASK --status cancelled.

examples:
  $ hutch tracker task delete TB-1`,
	}, 1, 1, func(a trackerAsk) error {
		return informDone(a, "deleted "+a.arg(0), func(ctx context.Context, s trackerService) error { return s.DeleteTask(ctx, a.arg(0)) })
	})
}
