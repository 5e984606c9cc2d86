package board

import (
	"context"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// WatchTask implements [tracker.Tasks].
func (s *Seat) WatchTask(ctx context.Context, ref string, in tracker.WatchTask) (out tracker.Watching, err error) {
	err = s.watch(ctx, ref, in.AgentSlug, "watched", with, &out)
	return out, err
}

// UnwatchTask ends watching; it is harmless where nobody watches.
func (s *Seat) UnwatchTask(ctx context.Context, ref, member string) (out tracker.Watching, err error) {
	err = s.watch(ctx, ref, member, "unwatched", without, &out)
	return out, err
}

func (s *Seat) watch(ctx context.Context, ref, member, action string, change func([]string, string) []string, out *tracker.Watching) error {
	return s.update(ctx, tracker.TasksTake, func(w *work) error {
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		m, err := w.inName(member)
		if err != nil {
			return err
		}
		e := w.edit(t)
		e.Watchers = change(e.Watchers, m.Slug)
		*out = tracker.Watching{OK: true, Watchers: list(e.Watchers)}
		if len(e.Watchers) == len(t.Watchers) {
			return nil
		}
		return w.log(t.ID, action, map[string]tracker.Change{"member": {To: m.Slug}})
	})
}

// inName returns whom the caller acts for: itself, or another if it may.
func (w *work) inName(member string) (Member, error) {
	if member == "" {
		return w.me, nil
	}
	m, err := w.activeMember("agent_slug", member)
	if err == nil && m.Slug != w.me.Slug && !w.caller.Has(tracker.TasksAssign) {
		err = tracker.Errorf(tracker.CodeForbidden, "%s cannot act for %s: that needs the scope %s",
			tracker.Quote(w.me.Slug), tracker.Quote(m.Slug), tracker.TasksAssign).With("scope", tracker.TasksAssign).
			Next("leave agent_slug out: it is " + w.me.Slug)
	}
	return m, err
}
