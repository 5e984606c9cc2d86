package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/urfave/cli/v2"
)

// newCLI builds the command tree. Nothing in it exits, prints an error or
// looks at the process: that is main's.
func newCLI(p program) *cli.App {
	app := &cli.App{
		Name:      "hutch",
		HelpName:  "hutch",
		Usage:     "turns a folder of untrusted .wasm files into tools that any agent can use",
		UsageText: "hutch COMMAND [flags] [arguments]",
		Description: `Run "hutch help COMMAND" for the flags and examples of a command,
and "hutch help policy" for the file that says what modules may do.

examples:
  $ hutch serve
  $ hutch tools list
  $ hutch tools call text_stats '{"text":"one two three"}'
  $ hutch new greet

` + exitCodeHelp,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "say which version this is"}},
		Commands: []*cli.Command{
			serveCommand(p), mcpCommand(p), chatCommand(p), agentCommand(p), toolsCommand(p), trackerCommand(p),
			secretsCommand(p), tokensCommand(p), newCommand(p), buildCommand(p), testCommand(p), benchCommand(p),
			runToolCommand(p), configCommand(p), doctorCommand(p), versionCommand(p),
		},
		Reader:                    p.stdin,
		Writer:                    p.stdout,
		ErrWriter:                 p.stderr,
		HideVersion:               true,
		Metadata:                  map[string]any{},
		HideHelp:                  true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
	}
	app.Action = func(c *cli.Context) error {
		if c.Bool("version") {
			return printVersion(c.App.Writer, false)
		}
		return unknownCommand(c, app.Commands)
	}
	prepare(app.Commands)
	return app
}

const exitCodeHelp = "exit codes: 0 done, 1 failed, 2 wrong usage, 3 denied or held, 130 interrupted"

// prepare sets what all commands have in common.
func prepare(commands []*cli.Command) {
	for _, cmd := range commands {
		cmd.HideHelp = true
		cmd.OnUsageError = onUsageError
		if len(cmd.Subcommands) > 0 {
			subcommands, own := cmd.Subcommands, cmd.Action
			cmd.Action = func(c *cli.Context) error {
				if own != nil && !c.Args().Present() {
					return own(c)
				}
				return unknownCommand(c, subcommands)
			}
			prepare(subcommands)
		}
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	problem := usagef("%s", flagProblem(c, err.Error()))
	if name, ok := strings.CutPrefix(err.Error(), unknownFlag); ok {
		if like := likeFlag(c, name); like != "" {
			return problem.withHint("did you mean --%s?", like)
		}
	}
	return problem.withHint("hutch help%s", prefixed(" ", strings.Join(commandPath(c), " ")))
}

// likeFlag returns which flag of a command an unknown one may have been meant for.
func likeFlag(c *cli.Context, name string) string {
	var names []string
	for _, flag := range c.Command.Flags {
		names = append(names, flag.Names()...)
	}
	return nearest(names, name, 2)
}

// unknownFlag is how package flag says it.
const unknownFlag = "flag provided but not defined: -"

// badBool is how package flag says that a switch has a value that is none.
var badBool = regexp.MustCompile(`^invalid boolean value "(.*)" for -([a-z-]+): `)

// badValue is how package flag says that a value is no number or no duration.
var badValue = regexp.MustCompile(`^invalid value "(.*)" for flag -([a-z-]+): (parse error|value out of range)$`)

// flagProblem says what package flag found, with flags as they were typed.
func flagProblem(c *cli.Context, text string) string {
	for prefix, better := range map[string]string{
		unknownFlag:                 "no flag %s",
		"flag needs an argument: -": "%s needs a value",
	} {
		if name, ok := strings.CutPrefix(text, prefix); ok {
			return fmt.Sprintf(better, typedFlag(c, name))
		}
	}
	if m := badBool.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s %s: write --%s, or --%s=false", typedFlag(c, m[2]), quoted(m[1]), m[2], m[2])
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s %s: %s", typedFlag(c, m[2]), quoted(m[1]), wantedValue(c, m[2]))
	}
	return text
}

// wantedValue is what a flag takes that is no text.
func wantedValue(c *cli.Context, name string) string {
	for _, f := range c.Command.Flags {
		if _, ok := f.(*cli.DurationFlag); ok && slices.Contains(f.Names(), name) {
			return "a duration is a number and ms, s, m or h, such as 2s"
		}
	}
	return "a whole number is wanted, such as 100"
}

// typedLine is where runCommand leaves the command line.
const typedLine = "line"

// typedFlag is how a flag stands in the command line; package flag knows its
// name alone.
func typedFlag(c *cli.Context, name string) string {
	line, _ := c.App.Metadata[typedLine].([]string)
	for _, arg := range line {
		if typed, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "-") && strings.TrimLeft(typed, "-") == name {
			return oneLine(abi.Cut(typed, 80))
		}
	}
	return "--" + name
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// commandPath returns the names of the commands that led to c, without the
// program's own.
func commandPath(c *cli.Context) []string {
	var path []string
	for _, ctx := range c.Lineage() {
		if ctx.Command != nil && ctx.Command.Name != "" && ctx.Command.Name != "hutch" {
			path = append([]string{ctx.Command.Name}, path...)
		}
	}
	return path
}

func unknownCommand(c *cli.Context, commands []*cli.Command) error {
	path := commandPath(c)
	name := c.Args().First()
	err := usagef("no command %s", quoted(strings.Join(append(path, name), " ")))
	if len(path) == 0 && name == topicPolicy {
		return err.withHint("hutch help %s", topicPolicy)
	}
	if like := likeCommand(commands, name); like != "" {
		return err.withHint("did you mean \"hutch %s\"?", strings.Join(append(path, like), " "))
	}
	return err.withHint("hutch help%s", prefixed(" ", strings.Join(path, " ")))
}

// likeCommand returns what name may have been meant for: the command spelt
// nearly like it, or one of that name a level below.
func likeCommand(commands []*cli.Command, name string) string {
	var names []string
	for _, cmd := range commands {
		if commandNamed(cmd.Subcommands, name) != nil {
			return cmd.Name + " " + name
		}
		names = append(names, cmd.Name)
	}
	return nearest(names, name, 2)
}

// nearest returns which of names is at most so many edits from name, and less
// than half of it.
func nearest(names []string, name string, most int) string {
	best, found := min(most, len(name)/2)+1, ""
	for _, known := range names {
		if d := editDistance(known, name); d < best {
			best, found = d, known
		}
	}
	return found
}

// similar returns which of names is meant by one that somebody made up elsewhere: the
// first that goes on where name ends, or one that is spelt nearly like it. Two short
// names are easily two edits apart and nothing to do with each other.
func similar(names []string, name string) string {
	for _, known := range names {
		if len(name) >= 3 && strings.HasPrefix(known, name) {
			return known
		}
	}
	return nearest(names, name, min(2, len(name)/3))
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// wantArgs checks how many arguments a command got; names says what they are.
func wantArgs(c *cli.Context, least, most int, names string) error {
	n := c.NArg()
	if n >= least && n <= most {
		return nil
	}
	found := "none given"
	if n > 0 {
		found = fmt.Sprintf("%d given", n)
	}
	if names == "" {
		return usagef("%s takes no arguments: %s", strings.Join(commandPath(c), " "), found).
			withHint("hutch help %s", strings.Join(commandPath(c), " "))
	}
	return usagef("%s takes %s: %s", strings.Join(commandPath(c), " "), names, found).
		withHint("hutch help %s", strings.Join(commandPath(c), " "))
}

// runCommand runs one command line.
func runCommand(ctx context.Context, args []string, p program) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = errors.Join(err, fmt.Errorf("hutch broke: %v", x))
		}
	}()
	app := newCLI(p)
	if slices.Equal(args[1:], []string{"help", topicPolicy}) {
		_, err := io.WriteString(p.stdout, policyHelp())
		return err
	}
	line, help := arrange(app, args[1:])
	if help {
		return printHelp(p.stdout, app, line)
	}
	app.Metadata[typedLine] = line
	return app.RunContext(ctx, append([]string{"hutch"}, line...))
}

// arrange puts the flags of a command in front of its arguments, so that they
// may be typed in any order. After "--" everything is an argument. help says
// that help is wanted, about the command that line names.
func arrange(app *cli.App, args []string) (line []string, help bool) {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	commands, flags := app.Commands, app.Flags
	for len(args) > 0 && len(commands) > 0 {
		next := commandNamed(commands, args[0])
		if next == nil {
			break
		}
		line, args = append(line, next.Name), args[1:]
		commands, flags = next.Subcommands, next.Flags
	}
	options, rest, help := splitFlags(flags, args)
	unknown := len(commands) > 0 && len(rest) > 0
	if help && !unknown || len(commands) > 0 && len(args) == 0 && !acts(line, flags) {
		return line, true
	}
	line = append(line, options...)
	if len(rest) > 0 && !lacking(flags, options) {
		line = append(append(line, "--"), rest...)
	}
	return line, false
}

// acts reports whether a group of commands does something itself: then it has flags for that.
func acts(line []string, flags []cli.Flag) bool { return len(line) > 0 && len(flags) > 0 }

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, cmd := range commands {
		if cmd.HasName(name) {
			return cmd
		}
	}
	return nil
}

// splitFlags tells the flags among args, with their values, from the rest. A
// flag that is not known stays a flag, so that the parser complains about it.
func splitFlags(flags []cli.Flag, args []string) (options, rest []string, help bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return options, append(rest, args[i+1:]...), help
		case arg == "-h" || arg == "--help" || arg == "-help":
			help = true
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			rest = append(rest, arg)
		default:
			options = append(options, arg)
			if takesValue(flags, arg) && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		}
	}
	return options, rest, help
}

// lacking reports whether the last of some flags lacks its value. Nothing may stand
// behind it then, or the parser would take that for the value.
func lacking(flags []cli.Flag, options []string) bool {
	lacks := false
	for _, arg := range options {
		lacks = !lacks && takesValue(flags, arg)
	}
	return lacks
}

func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, flag := range flags {
		for _, known := range flag.Names() {
			if known == name {
				doc, ok := flag.(cli.DocGenerationFlag)
				return ok && doc.TakesValue()
			}
		}
	}
	return false
}
