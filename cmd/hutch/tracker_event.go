package main

import (
	"context"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const flagAfter = "after"

func trackerEventCommand(p program) *cli.Command {
	return trackerGroup("event", "see the events that wait for an agent, and send again what it never accepted", `An agent is sent events until it has accepted them; one that was sent `+strconv.Itoa(tracker.MaxTries)+` times is parked.

examples:
  $ hutch tracker event parked coder
  $ hutch tracker event redrive coder 01890a5d-ac96-774b-bcce-b302099a8057`,
		eventListCommand(p), eventAckCommand(p), eventParkedCommand(p), eventRedriveCommand(p))
}

func (a trackerAsk) eventRows(w io.Writer, all []tracker.EventOut) {
	rows := make([][]string, len(all))
	for i, e := range all {
		rows[i] = []string{strconv.FormatInt(e.Seq, 10), when(e.TS), e.Event, e.ID}
	}
	trackerTable(w, a.columns(), rows)
}

func eventListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list your own events that wait: seq, time, name, id", UsageText: "hutch tracker event list [flags]",
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: flagAfter, Usage: "`SEQ`: those behind it (default: all)"},
			&cli.IntFlag{Name: flagLimit, Usage: "`N`: how many at most, 1 to " + strconv.Itoa(tracker.MaxPage) + " (default: " + strconv.Itoa(tracker.DefaultPage) + ")"},
		},
		Description: `They are those of the member of the token. Each time counts as sent. What they say: --json.

examples:
  $ hutch tracker event list --json --url https://tracker.example.org/api/v1 --token-file coder.token`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		if a.Int64(flagAfter) < 0 {
			return usagef("--%s %d: a number from 0 on", flagAfter, a.Int64(flagAfter))
		}
		return informPage(a, "no events wait", func(ctx context.Context, s trackerService) (tracker.Page[tracker.EventOut], error) {
			return s.Events(ctx, a.Int64(flagAfter), paging.Limit)
		}, a.eventRows)
	})
}

func eventAckCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "ack", Usage: "accept your own events: they do not come again", UsageText: "hutch tracker event ack EVENT... [flags]",
		Description: `examples:
  $ hutch tracker event ack 01890a5d-ac96-774b-bcce-b302099a8057`,
	}, 1, tracker.MaxPage, func(a trackerAsk) error {
		return informDone(a, "accepted", func(ctx context.Context, s trackerService) error { return s.Ack(ctx, a.Args().Slice()...) })
	})
}

func eventParkedCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "parked", Usage: "list the events that an agent never accepted: seq, time, name, id", UsageText: "hutch tracker event parked MEMBER [flags]",
		Flags: pageFlags(),
		Description: `examples:
  $ hutch tracker event parked coder
  $ hutch tracker event parked coder --json`,
	}, 1, 1, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		return informPage(a, "no events are parked", func(ctx context.Context, s trackerService) (tracker.Page[tracker.EventOut], error) {
			return s.Parked(ctx, a.arg(0), paging)
		}, a.eventRows)
	})
}

func eventRedriveCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "redrive", Usage: "send a parked event again", UsageText: "hutch tracker event redrive MEMBER EVENT [flags]",
		Description: `It counts as if it had never been sent.

examples:
  $ hutch tracker event redrive coder 01890a5d-ac96-774b-bcce-b302099a8057`,
	}, 2, 2, func(a trackerAsk) error {
		return informDone(a, "sent again to "+a.arg(0)+": "+a.arg(1), func(ctx context.Context, s trackerService) error {
			return s.Redrive(ctx, a.arg(0), a.arg(1))
		})
	})
}
