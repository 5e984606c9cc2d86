package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	questions "github.com/hutch-run/hutch/runtime/approval"
)

const (
	flagAgent  = "agent"
	flagThread = "thread"
)

func chatCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "chat",
		Usage:     "talk to an agent that uses the tools",
		UsageText: "hutch chat [TEXT | -] [flags]",
		Flags: append(folderFlags(), identityFlag(),
			&cli.StringFlag{Name: flagAgent, Usage: "`NAME`: agent of the configuration to talk to (default: the default one)"},
			&cli.StringFlag{Name: flagThread, Usage: "`ID`: thread to go on with (default: a new one)"},
			jsonFlag("every event of AG-UI, one a line,"), logFlag("error")),
		Action: func(c *cli.Context) error { return runChat(c, p) },
		Description: `Without TEXT, what is typed line by line is said; /help says what else can be, and /quit ends it. What comes
through a pipe is said as a whole, as with -. Answers go to standard output, what is called and what is asked
to standard error. A tool whose approval is ask waits for a yes at the terminal; where there is none, the
question stays in the thread.

Threads are kept in the state folder, by whoever owns it: where a "hutch serve" or a "hutch mcp" runs on it,
its agents answer. Without a configuration there is one agent, a script that shows how tools are called;
"hutch help config" says how a model takes its place.

` + exitCodeHelp + `

examples:
  $ hutch chat
  $ hutch chat "count the words: to be or not to be"
  $ git diff | hutch chat - --agent reviewer
  $ hutch chat --thread 6q3w5xk2hd7m`,
	}
}

// A talker is an agent as "hutch chat" reaches it: in this process, or through the
// owner of the state folder.
type talker interface {
	Run(context.Context, event.Input) (iterEvents, error)
	Cancel(ctx context.Context, threadID, runID string) error
	Thread(context.Context, string, agui.MessagesQuery) (agui.History, error)
	Capabilities(context.Context) (agui.Capabilities, error)
}

// A chatter is one conversation in a terminal or a pipe.
type chatter struct {
	connect func(context.Context) (talker, error)
	thread  string
	named   bool // thread is one that somebody comes back to
	show    *chatShow
	person  *terminal // nil if nobody can be asked
	// history is what a client has to send whose agent keeps nothing; nil where it does.
	history *chatHistory
	flags   string // of a command that comes back
	// interrupts end an answer where a person goes on with another message; nil elsewhere.
	interrupts *interrupts
}

func runChat(c *cli.Context, p program) (err error) {
	if err := wantArgs(c, 0, 1, "at most one TEXT, in quotes"); err != nil {
		return err
	}
	cfg, err := loadJoined(c, p)
	if err == nil {
		err = tellAny(slices.Concat(cfg.checkTelemetry(p.env), cfg.checkTracker(p.env)), configFile(c, p))
	}
	if err != nil {
		return err
	}
	if wrong := cfg.checkModels(p.env); len(wrong) > 0 {
		return tellFirst(wrong, configFile(c, p))
	}
	say := &voice{w: c.App.ErrWriter}
	log, err := newLogger(c, say)
	if err != nil {
		return err
	}
	t := &tenant{cfg: cfg, p: p, log: log, kind: ownerChat}
	defer func() { err = errors.Join(err, t.close()) }()
	ch := &chatter{
		connect: func(ctx context.Context) (talker, error) { return t.talkTo(ctx, c.String(flagAgent)) },
		thread:  c.String(flagThread), named: c.IsSet(flagThread), show: newChatShow(c.App.Writer, say, p.env("NO_COLOR") == "", c.Bool(flagJSON)), flags: comesBack(c, cfg),
	}
	if ch.thread == "" {
		ch.thread = strings.ToLower(rand.Text()[:12])
	}
	if isTerminal(p.stdin) {
		if ch.person, err = openTerminal(p); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ch.person.close()) }()
	}
	text := c.Args().First()
	switch {
	case c.NArg() == 1 && strings.TrimSpace(text) == "":
		return usagef("TEXT is empty").withHint("hutch chat, to talk line by line, or hutch chat \"TEXT\"")
	case text == "-" || text == "" && ch.person == nil:
		body, err := readAtMost(p.stdin)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if text = strings.TrimSpace(string(body)); text == "" {
			return usagef("standard input says nothing").withHint("hutch chat \"TEXT\"")
		}
	case text == "":
		ch.interrupts = p.interrupts
		return ch.talk(c.Context, say)
	}
	return ch.once(c.Context, text)
}

// comesBack are flags of a command that comes back to a thread: those of its folders, and
// its agent, to which the thread belongs.
func comesBack(c *cli.Context, cfg Config) (flags string) {
	for _, name := range []string{flagAgent, flagConfig} {
		if c.IsSet(name) {
			flags += " --" + name + " " + shellWord(c.String(name))
		}
	}
	return flags + cfg.flags()
}

// once says one thing.
func (ch *chatter) once(ctx context.Context, text string) error {
	if err := ch.begin(ctx); err != nil {
		return err
	}
	open, err := ch.turn(ctx, ch.saying(text))
	if err == nil && len(open) > 0 {
		err = hinted(fmt.Errorf("%w: nobody can be asked here: %s", tool.ErrDenied, open[0].Message), "hutch chat --%s %s%s", flagThread, shellWord(ch.thread), ch.flags)
	}
	return err
}

// begin finds out what there is to send.
func (ch *chatter) begin(ctx context.Context) error {
	var can agui.Capabilities
	err := ch.with(ctx, func(t talker) (again bool, err error) {
		can, err = t.Capabilities(ctx)
		return isOwnersEnd(err), err
	})
	if err == nil && (can.State == nil || !can.State.PersistentState) {
		ch.history = &chatHistory{}
	}
	return err
}

// slashed is what looks like a command of the conversation.
var slashed = regexp.MustCompile(`^/[a-z]{1,20}$`)

// talk says what is typed, line by line.
func (ch *chatter) talk(ctx context.Context, say *voice) error {
	if err := ch.begin(ctx); err != nil {
		return err
	}
	say.line("thread %s; /help says what can be typed, /quit ends, and \"hutch chat --%s %s%s\" comes back", ch.thread, flagThread, shellWord(ch.thread), ch.flags)
	if err := ch.resumeOpen(ctx, say); err != nil {
		return err
	}
	for {
		line, more, err := ch.person.line(ctx, "> ")
		switch {
		case err != nil:
			return err
		case !more && line == "":
			return ch.person.show("\n") // what comes next stands in a line of its own
		case line == "/quit":
			return nil
		case line == "":
			continue
		case line == "/help":
			say.line("what is typed is said to the agent, a line at a time; /quit ends, and so does Ctrl-D; Ctrl-C stops an answer, and ends where there is none")
			continue
		case slashed.MatchString(line):
			say.line("there is no %s, and it was not said: there are /help and /quit", line)
			continue
		}
		_, err = ch.turn(ctx, ch.saying(line))
		if err = ch.goesOn(ctx, say, err); err != nil {
			return err
		}
	}
}

// errStopped is how a turn ends that somebody has stopped.
var errStopped = errors.New("stopped")

// goesOn says how a turn ended, and returns what ends the conversation.
func (ch *chatter) goesOn(ctx context.Context, say *voice, err error) error {
	var failed *event.Failure
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStopped):
		say.line("stopped; Ctrl-C once more, or /quit, ends")
		return nil
	case !errors.As(err, &failed) || ctx.Err() != nil:
		return err
	}
	say.line("error: %s", err)
	return nil
}

// resumeOpen shows where a thread stands that somebody comes back to, and asks what it
// waits for.
func (ch *chatter) resumeOpen(ctx context.Context, say *voice) error {
	var h agui.History
	err := ch.with(ctx, func(t talker) (again bool, err error) {
		h, err = t.Thread(ctx, ch.thread, agui.MessagesQuery{Limit: recalled})
		return isOwnersEnd(err), err
	})
	if errors.Is(err, event.ErrNotFound) {
		if ch.named && ch.history == nil {
			say.line("nothing was said in that thread yet: it begins now")
		}
		return nil
	}
	if err != nil {
		return err
	}
	ch.show.recall(h)
	if len(h.Interrupts) == 0 {
		return nil
	}
	in, err := ch.ask(ctx, h.Interrupts)
	if err != nil {
		return err
	}
	_, err = ch.turn(ctx, in)
	return ch.goesOn(ctx, say, err)
}

// recalled is how many messages of a thread are shown again.
const recalled = 20

// saying is an input that says text.
func (ch *chatter) saying(text string) event.Input {
	in := event.Input{Messages: []chat.Message{{ID: rand.Text(), Role: chat.User, Content: chat.Text(text)}}}
	if ch.history != nil {
		in.Messages = ch.history.with(in.Messages...)
	}
	return in
}

// turn has an input run, and asks what it needs to know until it has ended. open are
// questions that nobody could be asked.
func (ch *chatter) turn(ctx context.Context, in event.Input) (open []event.Interrupt, err error) {
	for {
		last, err := ch.run(ctx, in)
		if err != nil || last.Outcome == nil || last.Outcome.Type != event.Interrupted {
			return nil, err
		}
		if ch.person == nil {
			return last.Outcome.Interrupts, nil
		}
		if in, err = ch.ask(ctx, last.Outcome.Interrupts); err != nil {
			return nil, err
		}
	}
}

// ask asks a person, and returns the input that answers.
func (ch *chatter) ask(ctx context.Context, open []event.Interrupt) (in event.Input, err error) {
	for _, q := range open {
		answer := event.Resume{InterruptID: q.ID, Status: event.ResumeResolved, Payload: []byte(`{"approved":true}`)}
		if err := ch.person.show(unshown(q)); err != nil {
			return in, err
		}
		err := ch.person.agree(ctx, "hutch: "+oneLine(q.Message))
		switch {
		case errors.Is(err, context.Canceled):
			return in, err
		case err != nil:
			answer.Payload = []byte(`{"approved":false}`)
		}
		in.Resume = append(in.Resume, answer)
	}
	in.Messages = []chat.Message{}
	if ch.history != nil {
		in.Messages = ch.history.with()
	}
	return in, nil
}

// unshown are the arguments of a call that a question does not show, or not to their end:
// nobody allows what they cannot see.
func unshown(q event.Interrupt) string {
	call, ok := questions.Of(q)
	if args := oneLine(call.Arguments); ok && !strings.Contains(oneLine(q.Message), args) {
		return "hutch: " + oneLine(call.Tool) + " would be called with " + args + "\n"
	}
	return ""
}

// cancelPatience is how long a chat that ends waits for its run to be ended.
const cancelPatience = 2 * time.Second

// run runs one turn, shows it, and returns how it ended.
func (ch *chatter) run(ctx context.Context, in event.Input) (last event.RunFinished, err error) {
	defer func() { err = errors.Join(err, ch.show.end()) }()
	in.ThreadID, in.RunID, in.ProtocolVersion = ch.thread, rand.Text(), event.Version
	err = ch.with(ctx, func(t talker) (again bool, err error) {
		last, again, err = ch.play(ctx, t, in)
		return again, err
	})
	return last, err
}

// play has an agent run an input, and shows it. again says that the owner of the state
// folder ended before anything came of it.
func (ch *chatter) play(ctx context.Context, t talker, in event.Input) (last event.RunFinished, again bool, err error) {
	begun := false
	part, stop := ch.interrupts.during(ctx)
	defer stop()
	waits := ch.show.waits()
	defer func() { waits() }()
	events, err := t.Run(part, in)
	if err != nil {
		events = func(yield func(event.Event, error) bool) { yield(nil, err) }
	}
	for e, err := range events {
		waits()
		if part.Err() != nil {
			break
		}
		if err != nil {
			return last, !begun && ch.maySay(err), err
		}
		begun = true
		if err := ch.show.event(e); err != nil {
			return last, false, err
		}
		ch.history.take(e)
		switch e := e.(type) {
		case event.RunFinished:
			last = e
		case event.RunError:
			return last, false, &event.Failure{Code: e.Code, Message: e.Message}
		}
		waits = ch.show.waits()
	}
	switch {
	case part.Err() != nil: // whoever interrupts does not want the rest
		waits()
		return last, false, ch.end(ctx, t, in)
	case last.RunID == "":
		return last, false, &event.Failure{Code: event.CodeUnavailable, Message: "the answer ended in the middle: look at the thread again", Cause: io.ErrUnexpectedEOF}
	}
	return last, false, nil
}

// end ends a run that somebody does not want the rest of.
func (ch *chatter) end(ctx context.Context, t talker, in event.Input) error {
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer stop()
	if err := t.Cancel(ending, in.ThreadID, in.RunID); err != nil && !errors.Is(err, event.ErrNotRunning) && !errors.Is(err, event.ErrNotFound) {
		return errors.Join(errInterrupted, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errStopped
}
