package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Flags that several commands about the tracker share.
const (
	flagURL       = "url"
	flagTokenFile = "token-file"
	flagLimit     = "limit"
	flagCursor    = "cursor"
	flagArchived  = "archived"
	flagName      = "name"
	flagProject   = "project"
	flagTask      = "task"
	flagMember    = "member"
)

// trackerCommands are the commands that ask a tracker, or set one up.
func trackerCommands(p program) []*cli.Command {
	return []*cli.Command{
		trackerInitCommand(p), trackerTokenCommand(p), trackerProjectCommand(p), trackerMemberCommand(p), trackerChatCommand(p),
		trackerTaskCommand(p), trackerStepCommand(p), trackerMessageCommand(p), trackerFileCommand(p), trackerEventCommand(p),
	}
}

// trackerGroup are commands about one kind of thing.
func trackerGroup(name, usage, about string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, UsageText: "hutch tracker " + name + " COMMAND [flags] [arguments]", Subcommands: commands, Description: about}
}

// trackerAsk is one command that asks a tracker: its command line, and where it asks.
type trackerAsk struct {
	*cli.Context
	p   program
	cfg Config
	say *voice
}

// trackerLeaf completes a command that asks a tracker. Between least and most arguments are
// wanted; its UsageText names them.
func trackerLeaf(p program, cmd cli.Command, least, most int, run func(trackerAsk) error) *cli.Command {
	_, names, _ := strings.Cut(strings.TrimSuffix(cmd.UsageText, " [flags]"), cmd.Name+" ")
	if least == most && most == 0 {
		names = ""
	}
	cmd.Flags = append(cmd.Flags, trackerFlags()...)
	cmd.Action = func(c *cli.Context) error {
		if err := wantArgs(c, least, most, names); err != nil {
			return err
		}
		a, err := newTrackerAsk(c, p)
		if err != nil {
			return err
		}
		return run(a)
	}
	return &cmd
}

// trackerFlags are the flags of every command that asks a tracker.
func trackerFlags() []cli.Flag {
	return append(append([]cli.Flag{jsonFlag("what the tracker answers")}, elsewhereFlags()...), someFlags(flagState, flagConfig)...)
}

// elsewhereFlags name a tracker that is not the one of the state folder.
func elsewhereFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagURL, Usage: "`URL`: where the routes of a tracker elsewhere are (default: the one of this state folder; env " + envTrackerURL + ")"},
		&cli.StringFlag{Name: flagTokenFile, Usage: "`FILE`: the token for that tracker (default: none; env " + envTrackerToken + ")"},
	}
}

func newTrackerAsk(c *cli.Context, p program) (trackerAsk, error) {
	cfg, err := loadJoined(c, p)
	if err == nil && c.IsSet(flagTokenFile) && cfg.Tracker.URL == "" {
		err = usagef("--%s: there is no --%s: a token goes with its tracker", flagTokenFile, flagURL)
	}
	return trackerAsk{Context: c, p: p, cfg: cfg, say: &voice{w: c.App.ErrWriter}}, err
}

// ctx ends when the command is to end.
func (a trackerAsk) ctx() context.Context { return a.Context.Context }

// arg is the argument of a place.
func (a trackerAsk) arg(i int) string { return a.Args().Get(i) }

// do has fn ask the tracker.
func (a trackerAsk) do(fn func(context.Context, trackerService) error) error {
	return a.cfg.withTracker(a.ctx(), a.p, fn)
}

// inform asks the tracker and prints what it answers, as JSON or as show writes it.
func inform[T any](a trackerAsk, ask func(context.Context, trackerService) (T, error), show func(io.Writer, T)) error {
	var out T
	err := a.do(func(ctx context.Context, s trackerService) (err error) {
		out, err = ask(ctx, s)
		return err
	})
	if err != nil {
		return err
	}
	if a.Bool(flagJSON) {
		return printJSON(a.App.Writer, out)
	}
	return rendered(a.App.Writer, func(w io.Writer) { show(w, out) })
}

// informPage is inform for a page of a list: one line an item, and how to see more.
func informPage[T any](a trackerAsk, nothing string, ask func(context.Context, trackerService) (tracker.Page[T], error), show func(io.Writer, []T)) error {
	return inform(a, ask, func(w io.Writer, page tracker.Page[T]) {
		if len(page.Items) == 0 {
			a.say.line("%s", nothing)
		}
		show(w, page.Items)
		if page.NextCursor != "" {
			a.say.line("hint: there are more: --%s %s", flagCursor, page.NextCursor)
		}
	})
}

// informDone is inform for a change of which nothing comes back.
func informDone(a trackerAsk, done string, ask func(context.Context, trackerService) error) error {
	return inform(a, func(ctx context.Context, s trackerService) (trackerDone, error) {
		return trackerDone{true}, ask(ctx, s)
	}, func(w io.Writer, _ trackerDone) { fmt.Fprintln(w, oneLine(done)) })
}

// trackerDone is what a command prints as JSON for which the tracker has no words.
type trackerDone struct {
	OK bool `json:"ok"`
}

// rendered writes what show writes, at once.
func rendered(w io.Writer, show func(io.Writer)) error {
	var b bytes.Buffer
	show(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// onceKey is an idempotency key: what is asked again under it is done once.
func onceKey() string { return rand.Text() }

// pageFlags are those of commands that list.
func pageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: flagLimit, Usage: fmt.Sprintf("`N`: how many at most, 1 to %d (default: %d)", tracker.MaxPage, tracker.DefaultPage)},
		&cli.StringFlag{Name: flagCursor, Usage: "`CURSOR`: go on where the page before ended (default: begin)"},
	}
}

// paging is what pageFlags say.
func (a trackerAsk) paging() (tracker.Paging, error) {
	n := a.Int(flagLimit)
	if a.IsSet(flagLimit) && (n < 1 || n > tracker.MaxPage) {
		return tracker.Paging{}, usagef("--%s %d: 1 to %d", flagLimit, n, tracker.MaxPage)
	}
	return tracker.Paging{Limit: n, Cursor: a.String(flagCursor)}, nil
}

func archivedFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagArchived, Usage: "those too that are archived"}
}

// field is the value of a flag as a field of a partial update: left out unless it was given.
func (a trackerAsk) field(flag string) (f tracker.Field[string]) {
	if a.IsSet(flag) {
		f = tracker.Some(a.String(flag))
	}
	return f
}

// noneField is field for what may be nobody or nothing.
func (a trackerAsk) noneField(flag string) tracker.Field[string] {
	if a.String(flag) == nobody {
		return tracker.Null[string]()
	}
	return a.field(flag)
}

// nobody is how a person types that there is to be none.
const nobody = "none"

// truthField is field for a switch.
func (a trackerAsk) truthField(flag string) (f tracker.Field[bool]) {
	if a.IsSet(flag) {
		f = tracker.Some(a.Bool(flag))
	}
	return f
}

// listField is field for a list, which one empty value alone empties.
func (a trackerAsk) listField(flag string) (f tracker.Field[[]string]) {
	if a.IsSet(flag) {
		f = tracker.Some(a.list(flag))
	}
	return f
}

// list is the values of a flag but empty ones.
func (a trackerAsk) list(flag string) []string {
	values := []string{}
	for _, v := range a.StringSlice(flag) {
		if v != "" {
			values = append(values, v)
		}
	}
	return values
}

// nothingToChange refuses an update that was given nothing to change.
func (a trackerAsk) nothingToChange(flags ...string) error {
	for _, name := range flags {
		if a.IsSet(name) {
			return nil
		}
	}
	path := strings.Join(commandPath(a.Context), " ")
	return usagef("%s was given nothing to change", path).withHint("hutch help %s", path)
}

// stdinText stands for a text that comes on standard input.
const stdinText = "-"

// text returns a text that was typed, or for "-" that on standard input, of at most so many
// bytes.
func (a trackerAsk) text(typed string, most int) (string, error) {
	if typed != stdinText {
		return typed, nil
	}
	raw, err := io.ReadAll(io.LimitReader(a.p.stdin, int64(most)+1))
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	if len(raw) > most {
		return "", usagef("standard input: at most %d bytes are allowed", most)
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}

// trackerTable writes one line a row. What comes from others stays in its cell; where a
// terminal is, the last cell is cut to what is left of the line.
func trackerTable(w io.Writer, width int, rows [][]string) {
	left := 0
	for i := range rows {
		for j, cell := range rows[i] {
			rows[i][j] = oneLine(cell)
		}
	}
	for column := 0; len(rows) > 0 && column < len(rows[0])-1; column++ {
		most := 0
		for _, row := range rows {
			most = max(most, len([]rune(row[column])))
		}
		left += most + tableGap
	}
	table := tabwriter.NewWriter(w, 0, 0, tableGap, ' ', 0)
	for _, row := range rows {
		last := len(row) - 1
		row[last] = shortened(row[last], max(width-left, minSummary))
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // w keeps what it is given in memory
}

// columns is how wide the terminal is.
func (a trackerAsk) columns() int { return widthOf(a.App.Writer) }

// trackerFields writes names and values below each other, without those that are empty.
func trackerFields(w io.Writer, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "  %-12s %s\n", pairs[i], oneLine(pairs[i+1]))
		}
	}
}

// trackerText writes a text of others, indented so that none of it looks like ours.
func trackerText(w io.Writer, text string) {
	for line := range strings.Lines(strings.ReplaceAll(printable(text), "\t", "    ")) {
		fmt.Fprintln(w, strings.TrimRight("  | "+strings.TrimRight(line, "\n"), " "))
	}
}

// when is a time as people read it.
func when(t time.Time) string { return t.Local().Format(time.DateTime) }

// orDash is s, or what stands for nothing in a table.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// listedIn is a list in one cell.
func listedIn(values []string) string { return strings.Join(values, ", ") }

// textField is field for a text that may come on standard input.
func (a trackerAsk) textField(flag string, most int) (f tracker.Field[string], err error) {
	if !a.IsSet(flag) {
		return f, nil
	}
	text, err := a.text(a.String(flag), most)
	return tracker.Some(text), err
}

// printLine writes one line of its own.
func printLine(w io.Writer, s string) { fmt.Fprintln(w, oneLine(s)) }

// commaList is a list that was typed with commas.
func commaList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
