package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const flagReason = "reason"

func forFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: flagMember, Usage: "`MEMBER`: " + usage + " (default: who asks)"}
}

func taskTakeCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "take", Usage: "take a task that is free, and begin it", UsageText: "hutch tracker task take TASK [flags]",
		Flags: []cli.Flag{forFlag("who gets it")},
		Description: `Of many who take a task one gets it.

examples:
  $ hutch tracker task take TB-1
  $ hutch tracker task take TB-1 --member coder`,
	}, 1, 1, func(a trackerAsk) error {
		in := tracker.TakeTask{AgentSlug: a.String(flagMember), IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.TakeTask(ctx, a.arg(0), in)
		}, a.taskRow)
	})
}

func taskRejectCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "reject", Usage: "give a task back that cannot be done, for a reason", UsageText: "hutch tracker task reject TASK REASON [flags]",
		Description: `The reason stays with the task, as a comment. REASON - reads it from standard input.

examples:
  $ hutch tracker task reject TB-1 "the log that it speaks of is gone"`,
	}, 2, 2, func(a trackerAsk) error {
		reason, err := a.text(a.arg(1), tracker.MaxReason)
		if err != nil {
			return err
		}
		in := tracker.RejectTask{Reason: reason, IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.Rejected, error) {
			return s.RejectTask(ctx, a.arg(0), in)
		},
			func(w io.Writer, r tracker.Rejected) { printLine(w, "rejected "+a.arg(0)+": "+r.Reason) })
	})
}

func taskReleaseCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "release", Usage: "put a task back for others, without an opinion of it", UsageText: "hutch tracker task release TASK [flags]",
		Flags: []cli.Flag{&cli.StringFlag{Name: flagReason, Usage: "`TEXT`: why (default: none)"}},
		Description: `What was in progress becomes todo, and nobody has it. Whose it is does that, or who may assign.

examples:
  $ hutch tracker task release TB-1 --reason "on holiday"`,
	}, 1, 1, func(a trackerAsk) error {
		in := tracker.ReleaseTask{Reason: a.String(flagReason)}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.ReleaseTask(ctx, a.arg(0), in)
		}, a.taskRow)
	})
}

func taskAssignCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "assign", Usage: "give a task to a member, or to none", UsageText: "hutch tracker task assign TASK MEMBER [flags]",
		Description: `An agent is told, and begins a task that is todo. Assigning starts nothing that is backlog.

examples:
  $ hutch tracker task assign TB-1 coder
  $ hutch tracker task assign TB-1 none`,
	}, 2, 2, func(a trackerAsk) error {
		u := tracker.UpdateTask{AssigneeSlug: tracker.Some(a.arg(1))}
		if a.arg(1) == nobody {
			u.AssigneeSlug = tracker.Null[string]()
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.UpdateTask(ctx, a.arg(0), u)
		}, a.taskRow)
	})
}

func showWatchers(w io.Writer, out tracker.Watching) {
	for _, slug := range out.Watchers {
		printLine(w, slug)
	}
}

func taskWatchCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "watch", Usage: "be told of a task, and list who is", UsageText: "hutch tracker task watch TASK [flags]",
		Flags: []cli.Flag{forFlag("who is told")},
		Description: `Who makes a task, has it or speaks at it is told anyway.

examples:
  $ hutch tracker task watch TB-1
  $ hutch tracker task watch TB-1 --member tester`,
	}, 1, 1, func(a trackerAsk) error {
		in := tracker.WatchTask{AgentSlug: a.String(flagMember)}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.Watching, error) {
			return s.WatchTask(ctx, a.arg(0), in)
		}, showWatchers)
	})
}

func taskUnwatchCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "unwatch", Usage: "be told of a task no more, and list who is", UsageText: "hutch tracker task unwatch TASK [flags]",
		Flags: []cli.Flag{forFlag("who is told no more")},
		Description: `examples:
  $ hutch tracker task unwatch TB-1
  $ hutch tracker task unwatch TB-1 --member tester`,
	}, 1, 1, func(a trackerAsk) error {
		member := a.String(flagMember)
		if member == "" {
			member = "me"
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.Watching, error) {
			return s.UnwatchTask(ctx, a.arg(0), member)
		}, showWatchers)
	})
}

func taskDependCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "depend", Usage: "make a task wait for another", UsageText: "hutch tracker task depend TASK BLOCKER [flags]",
		Description: `TASK cannot be taken before BLOCKER is done or cancelled. A circle is refused.

examples:
  $ hutch tracker task depend TB-2 TB-1`,
	}, 2, 2, func(a trackerAsk) error {
		in := tracker.AddDependency{BlockedBy: a.arg(1)}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.AddDependency(ctx, a.arg(0), in)
		}, showDependencies)
	})
}

func taskUndependCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "undepend", Usage: "make a task wait for another no more", UsageText: "hutch tracker task undepend TASK BLOCKER [flags]",
		Description: `examples:
  $ hutch tracker task undepend TB-2 TB-1`,
	}, 2, 2, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.TaskOut, error) {
			return s.RemoveDependency(ctx, a.arg(0), a.arg(1))
		}, showDependencies)
	})
}

func showDependencies(w io.Writer, t tracker.TaskOut) {
	if len(t.BlockedBy) == 0 {
		printLine(w, t.Key+" waits for nothing")
		return
	}
	printLine(w, t.Key+" waits for "+listedIn(t.BlockedBy))
}
