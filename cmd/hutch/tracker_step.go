package main

import (
	"context"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const flagIndex = "index"

func trackerStepCommand(p program) *cli.Command {
	return trackerGroup("step", "list, add, complete, move and delete the steps of a task", `A STEP is named by its place, from 0 on, or by its id.

examples:
  $ hutch tracker step add TB-1 "Read the log"
  $ hutch tracker step done TB-1 0
  $ hutch tracker step list TB-1`,
		stepListCommand(p), stepShowCommand(p), stepAddCommand(p), stepDoneCommand(p), stepUndoCommand(p), stepRenameCommand(p), stepMoveCommand(p), stepDeleteCommand(p))
}

// stepRows writes steps as a checklist.
func (a trackerAsk) stepRows(w io.Writer, all []tracker.StepOut) {
	rows := make([][]string, len(all))
	for i, s := range all {
		box, by := "[ ]", "-"
		if s.Done {
			box = "[x]"
		}
		if s.DoneBy != nil {
			by = s.DoneBy.Slug
		}
		rows[i] = []string{strconv.Itoa(s.Index), box, by, s.Title}
	}
	trackerTable(w, a.columns(), rows)
}

func (a trackerAsk) stepRow(w io.Writer, s tracker.StepOut) { a.stepRows(w, []tracker.StepOut{s}) }

func stepListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list the steps of a task: place, done, by whom, title", UsageText: "hutch tracker step list TASK [flags]",
		Description: `examples:
  $ hutch tracker step list TB-1`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) ([]tracker.StepOut, error) {
			return s.ListSteps(ctx, a.arg(0))
		},
			func(w io.Writer, all []tracker.StepOut) {
				if len(all) == 0 {
					a.say.line("no steps")
				}
				a.stepRows(w, all)
			})
	})
}

func stepShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show one step of a task", UsageText: "hutch tracker step show TASK STEP [flags]",
		Description: `examples:
  $ hutch tracker step show TB-1 0 --json`,
	}, 2, 2, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.StepOut, error) {
			return s.GetStep(ctx, a.arg(0), a.arg(1))
		}, a.stepRow)
	})
}

func stepAddCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "add", Usage: "add a step to a task", UsageText: "hutch tracker step add TASK TITLE [flags]",
		Flags: []cli.Flag{&cli.IntFlag{Name: flagIndex, Usage: "`PLACE`: where it goes, from 0 on (default: behind the others)"}},
		Description: `examples:
  $ hutch tracker step add TB-1 "Read the log"
  $ hutch tracker step add TB-1 "Make a copy first" --index 0`,
	}, 2, 2, func(a trackerAsk) error {
		in := tracker.AddStep{Title: a.arg(1), IdempotencyKey: onceKey()}
		if a.IsSet(flagIndex) {
			at := a.Int(flagIndex)
			in.Index = &at
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.StepOut, error) {
			return s.AddStep(ctx, a.arg(0), in)
		}, a.stepRow)
	})
}

// stepChange is a command that changes a step.
func stepChange(p program, cmd cli.Command, args int, change func(trackerAsk) (tracker.UpdateStep, error)) *cli.Command {
	return trackerLeaf(p, cmd, args, args, func(a trackerAsk) error {
		u, err := change(a)
		if err != nil {
			return err
		}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.StepOut, error) {
			return s.UpdateStep(ctx, a.arg(0), a.arg(1), u)
		}, a.stepRow)
	})
}

func stepDoneCommand(p program) *cli.Command {
	return stepChange(p, cli.Command{
		Name: "done", Usage: "complete a step", UsageText: "hutch tracker step done TASK STEP [flags]",
		Description: `Completing it once more changes nothing.

examples:
  $ hutch tracker step done TB-1 0`,
	}, 2, func(trackerAsk) (tracker.UpdateStep, error) { return tracker.UpdateStep{Done: tracker.Some(true)}, nil })
}

func stepUndoCommand(p program) *cli.Command {
	return stepChange(p, cli.Command{
		Name: "undo", Usage: "say that a step is not done after all", UsageText: "hutch tracker step undo TASK STEP [flags]",
		Description: `examples:
  $ hutch tracker step undo TB-1 0`,
	}, 2, func(trackerAsk) (tracker.UpdateStep, error) {
		return tracker.UpdateStep{Done: tracker.Some(false)}, nil
	})
}

func stepRenameCommand(p program) *cli.Command {
	return stepChange(p, cli.Command{
		Name: "rename", Usage: "give a step another title", UsageText: "hutch tracker step rename TASK STEP TITLE [flags]",
		Description: `examples:
  $ hutch tracker step rename TB-1 0 "Read both logs"`,
	}, 3, func(a trackerAsk) (tracker.UpdateStep, error) {
		return tracker.UpdateStep{Title: tracker.Some(a.arg(2))}, nil
	})
}

func stepMoveCommand(p program) *cli.Command {
	return stepChange(p, cli.Command{
		Name: "move", Usage: "put a step at another place", UsageText: "hutch tracker step move TASK STEP PLACE [flags]",
		Description: `examples:
  $ hutch tracker step move TB-1 2 0`,
	}, 3, func(a trackerAsk) (tracker.UpdateStep, error) {
		to, err := strconv.Atoi(a.arg(2))
		if err != nil || to < 0 {
			return tracker.UpdateStep{}, usagef("place %s: a number from 0 on", quoted(a.arg(2)))
		}
		return tracker.UpdateStep{Index: tracker.Some(to)}, nil
	})
}

func stepDeleteCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "delete", Usage: "delete a step", UsageText: "hutch tracker step delete TASK STEP [flags]",
		Description: `examples:
  $ hutch tracker step delete TB-1 0`,
	}, 2, 2, func(a trackerAsk) error {
		return informDone(a, "deleted step "+a.arg(1)+" of "+a.arg(0), func(ctx context.Context, s trackerService) error {
			return s.DeleteStep(ctx, a.arg(0), a.arg(1))
		})
	})
}
