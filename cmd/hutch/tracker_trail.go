package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func taskActivityCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "activity", Usage: "list who changed what of a task and when, the latest first", UsageText: "hutch tracker task activity TASK [flags]",
		Flags: pageFlags(),
		Description: `examples:
  $ hutch tracker task activity TB-1
  $ hutch tracker task activity TB-1 --limit 5 --json`,
	}, 1, 1, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		return informPage(a, "nothing has happened", func(ctx context.Context, s trackerService) (tracker.Page[tracker.Activity], error) {
			return s.TaskActivity(ctx, a.arg(0), paging)
		}, func(w io.Writer, all []tracker.Activity) {
			for _, e := range all {
				trailEntry{Activity: &e}.show(w)
			}
		})
	})
}

// trailEntry is something that happened to a task: a change of it, or a comment.
type trailEntry struct {
	Activity *tracker.Activity   `json:"activity,omitempty"`
	Message  *tracker.MessageOut `json:"message,omitempty"`
}

func (e trailEntry) id() string {
	if e.Message != nil {
		return e.Message.ID
	}
	return e.Activity.ID
}

func (e trailEntry) at() time.Time {
	if e.Message != nil {
		return e.Message.CreatedAt
	}
	return e.Activity.CreatedAt
}

// show writes an entry for people.
func (e trailEntry) show(w io.Writer) {
	if e.Message != nil {
		printLine(w, fmt.Sprintf("%s  %s: comment", when(e.Message.CreatedAt), e.Message.AuthorSlug))
		trackerText(w, e.Message.Content)
		return
	}
	printLine(w, fmt.Sprintf("%s  %s: %s", when(e.Activity.CreatedAt), e.Activity.Actor.Slug, changesOf(*e.Activity)))
}

// changesOf says in words what became of which field.
func changesOf(a tracker.Activity) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Changes)) {
		from, to := changeValue(a.Changes[name].From), changeValue(a.Changes[name].To)
		switch from {
		case to: // it is told for the record, and the title says of what
			if name == "title" {
				parts = slices.Insert(parts, 0, name+" "+to)
			}
		case "":
			parts = append(parts, name+" "+to)
		default:
			parts = append(parts, name+" "+from+" -> "+cmp.Or(to, nobody))
		}
	}
	words := strings.ReplaceAll(a.Action, "_", " ")
	if len(parts) == 0 {
		return words
	}
	return words + ": " + strings.Join(parts, ", ")
}

// mostChange is how many characters of a value are shown.
const mostChange = 100

func changeValue(v any) string {
	if v == nil {
		return ""
	}
	if list, ok := v.([]any); ok {
		parts := make([]string, len(list))
		for i := range list {
			parts[i] = fmt.Sprint(list[i])
		}
		v = listedIn(parts)
	}
	return shortened(oneLine(fmt.Sprint(v)), mostChange)
}

const (
	flagUntil  = "until"
	flagWithin = "within"
	// followEvery is how often a task is looked at.
	followEvery = time.Second
	// followPages are how many pages of a trail are read at once, at most.
	followPages = 20
)

func taskFollowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "follow", Usage: "show what happens to a task, until it has a status", UsageText: "hutch tracker task follow TASK [flags]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagUntil, Usage: "`STATUS`: end when it has this one: " + listedIn(statusNames()) + " (default: done)"},
			&cli.StringFlag{Name: flagWithin, Usage: "`DURATION`: give up after that, such as 10m (default: wait for ever)"},
		},
		Description: `What has happened before is shown first. It fails, with code 1, if the time is over, or if the task is done
or cancelled and never came to the status. With --json each line is an object with an activity or a message.

examples:
  $ hutch tracker task follow TB-1
  $ hutch tracker task follow TB-1 --until in_review --within 10m`,
	}, 1, 1, runTaskFollow)
}

// A follower shows the trail of one task.
type follower struct {
	a     trackerAsk
	until tracker.Status
	// within is how long this takes at most; 0 is for ever.
	within time.Duration
	// seen are entries that were shown.
	seen map[string]bool
	// passed: the task came to the status after this began. ever: at any time.
	passed, ever bool
	lost         bool
}

func runTaskFollow(a trackerAsk) error {
	until, err := tracker.ParseStatus(cmp.Or(a.String(flagUntil), string(tracker.Done)))
	if err != nil {
		return usagef("--%s: %w", flagUntil, err)
	}
	f := &follower{a: a, until: until, seen: map[string]bool{}}
	ctx := a.ctx()
	if a.IsSet(flagWithin) {
		if err := setDurationUpTo(&f.within, a.String(flagWithin), longest); err != nil {
			return usagef("--%s: %w", flagWithin, err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.within)
		defer cancel()
	}
	return f.run(ctx)
}

func (f *follower) run(ctx context.Context) error {
	key, status := f.a.arg(0), tracker.Status("")
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		t, err := f.look()
		if err != nil {
			return err
		}
		if t != nil {
			key, status = t.Key, t.Status
			if end, err := f.ended(*t); end {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err := f.a.ctx().Err(); err != nil {
				return err
			}
			return hinted(fmt.Errorf("%s is %s, not %s, after %s", oneLine(key), cmp.Or(string(status), "unknown"), f.until, f.within),
				"hutch tracker task show %s", shellWord(key))
		}
	}
}

// ended says whether there is nothing to wait for, and whether that is as it should be.
func (f *follower) ended(t tracker.TaskOut) (bool, error) {
	if t.Status == f.until || f.passed {
		return true, nil
	}
	if !t.Status.Closed() {
		return false, nil
	}
	if f.ever {
		return true, nil
	}
	return true, hinted(fmt.Errorf("%s is %s and was never %s", oneLine(t.Key), t.Status, f.until), "hutch tracker task activity %s", shellWord(t.Key))
}

// look shows what is new. A tracker that is away for a while is waited for.
func (f *follower) look() (*tracker.TaskOut, error) {
	var t tracker.TaskOut
	var fresh []trailEntry
	err := f.a.do(func(ctx context.Context, s trackerService) (err error) {
		if t, err = s.GetTask(ctx, f.a.arg(0)); err == nil {
			fresh, err = f.fresh(ctx, s, t.ID)
		}
		return err
	})
	if isUnavailable(err) {
		if !f.lost {
			f.a.say.line("warning: %s; trying on", err)
		}
		f.lost = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first := len(f.seen) == 0
	f.lost = false
	for _, e := range fresh {
		f.seen[e.id()] = true
		f.note(e, first)
		if err := f.print(e); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

// note remembers that the task came to the status.
func (f *follower) note(e trailEntry, before bool) {
	if e.Activity == nil || changeValue(e.Activity.Changes["status"].To) != string(f.until) {
		return
	}
	f.ever, f.passed = true, f.passed || !before
}

func (f *follower) print(e trailEntry) error {
	if e.Activity != nil && e.Activity.Action == "commented" {
		return nil // the comment itself is shown
	}
	if !f.a.Bool(flagJSON) {
		return rendered(f.a.App.Writer, e.show)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line := string(raw)
	if isTerminal(f.a.App.Writer) {
		line = printable(line)
	}
	return rendered(f.a.App.Writer, func(w io.Writer) { fmt.Fprintln(w, line) })
}

// fresh are the entries that were not shown, the oldest first.
func (f *follower) fresh(ctx context.Context, s trackerService, task string) ([]trailEntry, error) {
	changes, err := unseen(f.seen, func(p tracker.Paging) (tracker.Page[tracker.Activity], error) { return s.TaskActivity(ctx, task, p) },
		func(a *tracker.Activity) trailEntry { return trailEntry{Activity: a} })
	if err != nil {
		return nil, err
	}
	comments, err := unseen(f.seen, func(p tracker.Paging) (tracker.Page[tracker.MessageOut], error) {
		return s.ListMessages(ctx, tracker.MessageQuery{TaskID: task, Paging: p})
	}, func(m *tracker.MessageOut) trailEntry { return trailEntry{Message: m} })
	all := append(changes, comments...)
	slices.SortStableFunc(all, func(a, b trailEntry) int { return cmp.Or(a.at().Compare(b.at()), cmp.Compare(a.id(), b.id())) })
	return all, err
}

// unseen reads pages, the newest first, as far as something was not seen.
func unseen[T any](seen map[string]bool, page func(tracker.Paging) (tracker.Page[T], error), entry func(*T) trailEntry) (out []trailEntry, err error) {
	paging := tracker.Paging{Limit: tracker.MaxPage}
	for range followPages {
		some, err := page(paging)
		if err != nil {
			return nil, err
		}
		known := false
		for i := range some.Items {
			e := entry(&some.Items[i])
			if known = known || seen[e.id()]; !seen[e.id()] {
				out = append(out, e)
			}
		}
		if paging.Cursor = some.NextCursor; known || paging.Cursor == "" {
			break
		}
	}
	return out, nil
}
