package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/owner"
)

// trackerService is what commands ask of a tracker: what it answers over REST.
type trackerService interface {
	tracker.Tasks
	tracker.Steps
	tracker.Messages
	tracker.Chats
	tracker.Projects
	tracker.Members
	tracker.Files
	Heartbeat(context.Context, tracker.Heartbeat) error
	Events(ctx context.Context, after int64, limit int) (tracker.Page[tracker.EventOut], error)
	Ack(ctx context.Context, ids ...string) error
	Parked(ctx context.Context, member string, p tracker.Paging) (tracker.Page[tracker.EventOut], error)
	Redrive(ctx context.Context, member, id string) error
}

var (
	_ trackerService = (*trackerclient.Client)(nil)
	_ trackerService = trackerSeat{}
)

// trackerSeat is a board in this process that answers as it would over REST.
type trackerSeat struct{ *board.Seat }

// Events implements [trackerService].
func (s trackerSeat) Events(ctx context.Context, after int64, limit int) (tracker.Page[tracker.EventOut], error) {
	return trackerrest.Deliver(ctx, s.Seat, after, limit)
}

// Parked implements [trackerService].
func (s trackerSeat) Parked(ctx context.Context, member string, p tracker.Paging) (tracker.Page[tracker.EventOut], error) {
	return trackerrest.ParkedPage(ctx, s.Seat, member, p)
}

// withTracker has fn ask the tracker: the one elsewhere that is configured, that of whoever
// owns the state folder, or while nobody does, the one in it. Where the owner has just
// ended fn is called again.
func (cfg Config) withTracker(ctx context.Context, p program, fn func(context.Context, trackerService) error) error {
	if cfg.Tracker.URL != "" {
		return cfg.withTrackerElsewhere(ctx, p, fn)
	}
	st, err := openState(cfg.State)
	if err != nil {
		return err
	}
	err = st.byOwner(ctx, decidePatience, "", func(ctx context.Context) error {
		return cfg.withOwnersTracker(ctx, st, fn)
	}, func(ctx context.Context) error {
		return cfg.withOwnTracker(ctx, st, fn)
	})
	return trackerError(err)
}

func (cfg Config) withTrackerElsewhere(ctx context.Context, p program, fn func(context.Context, trackerService) error) error {
	if cfg.Tracker.TokenFile == "" && cfg.Tracker.TokenEnv == "" {
		return usagef("no token for the tracker at %s", quoted(cfg.Tracker.URL)).withHint("name the file that has it with --%s FILE", flagTokenFile)
	}
	c, err := cfg.Tracker.client(p.env, trackerclient.Options{})
	if err != nil {
		return usagef("%w", err)
	}
	defer c.Close()
	err = fn(ctx, c)
	told := trackerError(err)
	if isUnavailable(err) {
		return hinted(told, "%s, or see whether %s is right", hintOf(told), cfg.given[keyTrackerURL].place(keyTrackerURL))
	}
	return told
}

// withOwnersTracker asks whoever owns the state folder. Only if nothing answers there at all
// is the error [owner.ErrGone].
func (cfg Config) withOwnersTracker(ctx context.Context, st state, fn func(context.Context, trackerService) error) error {
	who, err := owner.Dial(ctx, st.dir)
	if err != nil {
		return err
	}
	if who.Owner.Kind == ownerTools {
		return owner.ErrGone // it ends in a moment, and answers nobody
	}
	if err := cfg.agrees(who.Owner); err != nil {
		return err
	}
	var gone atomic.Bool
	c, err := trackerclient.New(insideURL+trackerPath, "", trackerclient.Options{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", who.Owner.Socket)
			if err != nil {
				gone.Store(true)
			}
			return conn, err
		},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	err = fn(ctx, c)
	if gone.Load() && isUnavailable(err) {
		return owner.ErrGone
	}
	return err
}

// withOwnTracker owns the folder for a moment.
func (cfg Config) withOwnTracker(ctx context.Context, st state, fn func(context.Context, trackerService) error) (err error) {
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerTools))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	db, err := openStore(ctx, cfg, true, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	e, err := openEmbedded(ctx, cfg, db, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return fn(ctx, trackerSeat{e.board.For(everything().Caller)})
}

// trackerRefusals says which kind of error a refusal of the tracker is; without a row it
// has failed.
func trackerRefusals() []struct {
	kind  error
	codes []string
} {
	return []struct {
		kind  error
		codes []string
	}{
		{tool.ErrDenied, []string{tracker.CodeUnauthorized, tracker.CodeForbidden}},
		{errUsage, []string{tracker.CodeInvalid, tracker.CodeBadRequest, tracker.CodeTooLarge, tracker.CodeAmbiguous}},
	}
}

// trackerError is what whoever typed a command reads of a refusal: what it says and what to
// do next.
func trackerError(err error) error {
	var no *tracker.Error
	if !errors.As(err, &no) {
		return err
	}
	told := hinted(refusal{no}, "%s", asTyped(oneLine(no.Hint)))
	for _, row := range trackerRefusals() {
		if slices.Contains(row.codes, no.Code) {
			told.kind = row.kind
		}
	}
	return told
}

// asTyped is a hint for a model, who has tools, as it is for a person, who has commands.
func asTyped(hint string) string {
	hint = strings.ReplaceAll(hint, "openapi.json says which there are", "the address of the tracker is another, such as https://HOST/api/v1")
	for _, kind := range []string{"task", "step", "member", "project", "file", "message"} {
		hint = strings.ReplaceAll(hint, "list_"+kind+"s", `"hutch tracker `+kind+` list"`)
	}
	return hint
}

// refusal is one of the tracker, without the hint.
type refusal struct{ why *tracker.Error }

func (r refusal) Error() string { return oneLine(r.why.Message) }
func (r refusal) Unwrap() error { return r.why }

// isUnavailable reports that a tracker did not answer, or not now.
func isUnavailable(err error) bool {
	return errors.Is(err, tracker.Errorf(tracker.CodeUnavailable, ""))
}
