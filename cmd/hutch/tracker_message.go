package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	flagMention = "mention"
	flagChat    = "chat"
)

func trackerMessageCommand(p program) *cli.Command {
	return trackerGroup("message", "list, show and send messages: in chats, at tasks, and answers to others", `A TEXT with @SLUG in it mentions a member; TEXT - reads it from standard input.

examples:
  $ hutch tracker message comment TB-1 "@coder please look at the log first"
  $ hutch tracker message send team "The board moves on Monday"
  $ hutch tracker message list --task TB-1`,
		messageListCommand(p), messageShowCommand(p), messageSendCommand(p), messageReplyCommand(p), messageCommentCommand(p))
}

// oneOfFlags returns which of some flags was given: exactly one has to be.
func (a trackerAsk) oneOfFlags(flags ...string) (string, error) {
	found := ""
	for _, name := range flags {
		if a.String(name) == "" {
			continue
		}
		if found != "" {
			return "", usagef("--%s and --%s: one of them says where", found, name)
		}
		found = name
	}
	if found == "" {
		path := strings.Join(commandPath(a.Context), " ")
		return "", usagef("%s where: it takes --%s", path, strings.Join(flags, " or --")).withHint("hutch help %s", path)
	}
	return found, nil
}

func messageListCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "list", Usage: "list the newest messages of a chat, a task or a thread, the oldest of them first", UsageText: "hutch tracker message list [flags]",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: flagChat, Usage: "`CHAT`: those of a chat"},
			&cli.StringFlag{Name: flagTask, Usage: "`TASK`: the comments on a task"},
			&cli.StringFlag{Name: flagThread, Usage: "`MESSAGE`: the answers to a message"},
		}, pageFlags()...),
		Description: `The cursor that it tells is of older ones.

examples:
  $ hutch tracker message list --chat team
  $ hutch tracker message list --task TB-1 --json`,
	}, 0, 0, func(a trackerAsk) error {
		paging, err := a.paging()
		if err != nil {
			return err
		}
		if _, err := a.oneOfFlags(flagChat, flagTask, flagThread); err != nil {
			return err
		}
		q := tracker.MessageQuery{ChatID: a.String(flagChat), TaskID: a.String(flagTask), ParentID: a.String(flagThread), Paging: paging}
		return informPage(a, "no messages", func(ctx context.Context, s trackerService) (tracker.Page[tracker.MessageOut], error) {
			return s.ListMessages(ctx, q)
		}, func(w io.Writer, all []tracker.MessageOut) {
			for _, m := range all {
				showMessage(w, m)
			}
		})
	})
}

// showMessage writes one line about a message, and below it what it says.
func showMessage(w io.Writer, m tracker.MessageOut) {
	answers := ""
	if m.ParentID != nil {
		answers = "  answers " + *m.ParentID
	}
	printLine(w, fmt.Sprintf("%s  %s  %s%s", when(m.CreatedAt), m.AuthorSlug, m.ID, answers))
	trackerText(w, m.Content)
	for _, f := range m.Attachments {
		printLine(w, fmt.Sprintf("  + %s  %s  %s", f.ID, formatSize(f.Size), f.Filename))
	}
}

func messageShowCommand(p program) *cli.Command {
	return trackerLeaf(p, cli.Command{
		Name: "show", Usage: "show a message", UsageText: "hutch tracker message show MESSAGE [flags]",
		Description: `examples:
  $ hutch tracker message show 01890a5d-ac96-774b-bcce-b302099a8057`,
	}, 1, 1, func(a trackerAsk) error {
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MessageOut, error) {
			return s.GetMessage(ctx, a.arg(0))
		}, showMessage)
	})
}

func mentionFlags() []cli.Flag {
	return []cli.Flag{&cli.StringSliceFlag{Name: flagMention, Usage: "`MEMBER`: who is mentioned, in place of those in the text; may be repeated; all is everybody"}}
}

// mentions are those that were given; nil has the tracker look for them in the text.
func (a trackerAsk) mentions() []string {
	if !a.IsSet(flagMention) {
		return nil
	}
	return a.list(flagMention)
}

// sent is a command that sends a message, and prints its id.
func sent(p program, cmd cli.Command, send func(ctx context.Context, s trackerService, to string, r tracker.Reply) (tracker.MessageOut, error)) *cli.Command {
	cmd.Flags = mentionFlags()
	return trackerLeaf(p, cmd, 2, 2, func(a trackerAsk) error {
		content, err := a.text(a.arg(1), tracker.MaxMessage)
		if err != nil {
			return err
		}
		r := tracker.Reply{Content: content, Mentions: a.mentions(), IdempotencyKey: onceKey()}
		return inform(a, func(ctx context.Context, s trackerService) (tracker.MessageOut, error) {
			m, err := send(ctx, s, a.arg(0), r)
			if len(m.UnresolvedMentions) > 0 {
				a.say.line("warning: nobody is called %s", listedIn(m.UnresolvedMentions))
			}
			return m, err
		}, func(w io.Writer, m tracker.MessageOut) { printLine(w, m.ID) })
	})
}

func messageSendCommand(p program) *cli.Command {
	return sent(p, cli.Command{
		Name: "send", Usage: "send a message to a chat, and print its id", UsageText: "hutch tracker message send CHAT TEXT [flags]",
		Description: `examples:
  $ hutch tracker message send team "@coder are you there?"
  $ hutch tracker message send team - < notes.txt`,
	}, func(ctx context.Context, s trackerService, to string, r tracker.Reply) (tracker.MessageOut, error) {
		return s.SendMessage(ctx, tracker.SendMessage{ChatID: to, Content: r.Content, Mentions: r.Mentions, IdempotencyKey: r.IdempotencyKey})
	})
}

func messageCommentCommand(p program) *cli.Command {
	return sent(p, cli.Command{
		Name: "comment", Usage: "comment on a task, and print the comment's id", UsageText: "hutch tracker message comment TASK TEXT [flags]",
		Description: `examples:
  $ hutch tracker message comment TB-1 "the log is in the attachment"
  $ hutch tracker message comment TB-1 "please look at it" --mention coder`,
	}, func(ctx context.Context, s trackerService, to string, r tracker.Reply) (tracker.MessageOut, error) {
		return s.SendMessage(ctx, tracker.SendMessage{TaskID: to, Content: r.Content, Mentions: r.Mentions, IdempotencyKey: r.IdempotencyKey})
	})
}

func messageReplyCommand(p program) *cli.Command {
	return sent(p, cli.Command{
		Name: "reply", Usage: "answer a message where it stands, and print the answer's id", UsageText: "hutch tracker message reply MESSAGE TEXT [flags]",
		Description: `examples:
  $ hutch tracker message reply 01890a5d-ac96-774b-bcce-b302099a8057 "yes"`,
	}, func(ctx context.Context, s trackerService, to string, r tracker.Reply) (tracker.MessageOut, error) {
		return s.ReplyMessage(ctx, to, r)
	})
}
