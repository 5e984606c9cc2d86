package board

import (
	"context"
	"slices"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Connect implements [tracker.Queue], as the methods below do.
func (s *Seat) Connect(ctx context.Context, a tracker.AuthAgent, resume *tracker.Resume) (out tracker.MemberOut, last int64, err error) {
	if err := s.listens(); err != nil {
		return out, 0, err
	}
	err = s.update(ctx, tracker.MembersSelf, func(w *work) error {
		if out, err = w.connect(a); err != nil {
			return err
		}
		last, err = w.resume(resume)
		return err
	})
	return out, last, err
}

func (w *work) connect(a tracker.AuthAgent) (out tracker.MemberOut, err error) {
	m := w.me
	if a.Slug != "" && a.Slug != m.Slug {
		return out, tracker.Errorf(tracker.CodeForbidden, "the token is that of %s, not of %s", tracker.Quote(m.Slug), tracker.Quote(a.Slug))
	}
	if m.Kind != tracker.Agent {
		return out, tracker.Errorf(tracker.CodeForbidden, "%s is no agent: events are for agents", tracker.Quote(m.Slug))
	}
	if a.Name != "" {
		if m.Name, err = checkLine("name", a.Name, tracker.MaxName); err != nil {
			return out, err
		}
	}
	if a.Capabilities != nil {
		if m.Capabilities, err = checkWords("capabilities", a.Capabilities); err != nil {
			return out, err
		}
	}
	if !m.Online || m.Name != w.me.Name || !slices.Equal(m.Capabilities, w.me.Capabilities) {
		m.Announce, m.Changed = true, w.now
	}
	m.Online, m.Seen = true, w.now
	w.me = m
	w.setMember(m)
	return w.memberOut(m)
}

// resume drops what the agent says that it has, or tells it that it has what never was.
func (w *work) resume(resume *tracker.Resume) (last int64, err error) {
	if err := w.learnQueues(w.me.Slug); err != nil {
		return 0, err
	}
	last = w.queues[w.me.Slug].Last
	if resume == nil || resume.LastSeq <= 0 {
		return last, nil
	}
	if resume.LastSeq > last {
		return last, w.drop(w.me.Slug, nil, "unknown_cursor")
	}
	had, err := w.r.Deliveries(DeliveryQuery{Member: w.me.Slug, UpTo: resume.LastSeq})
	for _, d := range had {
		w.c.Left = append(w.c.Left, d.Place)
	}
	return last, err
}

// Heartbeat writes no more than it must: what others see, and how fresh that is.
func (s *Seat) Heartbeat(ctx context.Context, h tracker.Heartbeat) error {
	return s.update(ctx, tracker.MembersSelf, func(w *work) error {
		if h.Status != "" && h.Status != tracker.Idle && h.Status != tracker.Busy {
			return invalid("status", "unknown activity %s", tracker.Quote(h.Status)).Next("use one of: idle, busy")
		}
		tasks, err := checkList("current_tasks", h.CurrentTasks, tracker.MaxCurrent, tracker.MaxRef)
		if err != nil {
			return err
		}
		m := w.me
		m.Busy, m.CurrentTasks, m.Online = h.Status == tracker.Busy, tasks, true
		if m.Busy != w.me.Busy || !w.me.Online || !slices.Equal(m.CurrentTasks, w.me.CurrentTasks) {
			m.Announce, m.Changed = true, w.now
		} else if w.now.Sub(m.Seen) < tracker.HeartbeatEvery/2 {
			return nil
		}
		m.Seen = w.now
		w.setMember(m)
		return nil
	})
}

// Disconnect makes the agent offline.
func (s *Seat) Disconnect(ctx context.Context) error {
	return s.update(ctx, tracker.MembersSelf, func(w *work) error {
		if w.me.Online {
			w.leave(w.me)
		}
		return nil
	})
}

// leave makes a member offline.
func (w *work) leave(m Member) {
	m.Online, m.Busy, m.CurrentTasks = false, false, nil
	m.Announce, m.Changed = true, w.now
	w.setMember(m)
}
