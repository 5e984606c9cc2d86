package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/urfave/cli/v2"
)

func toolsCallCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "call",
		Usage:     "call a tool and print its answer",
		UsageText: "hutch tools call NAME [JSON | @FILE | -] [flags]",
		Flags:     append(folderFlags(), jsonFlag("the whole MCP result, or the error,"), logFlag("error"), timeoutFlag()),
		Action:    func(c *cli.Context) error { return runToolsCall(c, p) },
		Description: `The arguments are a JSON object (default: {}); @FILE reads them from a file, - from standard input.
The text of the answer goes to standard output, what the tool logs to standard error. An interrupt cancels the call.
` + exitCodeHelp + `

examples:
  $ hutch tools call text_stats '{"text":"one two three"}'
  $ hutch tools call text_stats @input.json --json --timeout 5s
  $ echo '{"text":"one two three"}' | hutch tools call text_stats -`,
	}
}

func runToolsCall(c *cli.Context, p program) error {
	if err := wantArgs(c, 1, 2, "a NAME and a JSON object"); err != nil {
		return err
	}
	name := c.Args().First()
	arguments, err := readArguments(c, p, c.Args().Get(1))
	if err != nil {
		return err
	}
	return withTools(c, p, func(ctx context.Context, a *App, say *voice) error {
		if err := a.await(ctx, say, func() bool { return a.offers(name) }); err != nil {
			return err
		}
		result, err := a.tools.Call(ctx, localCaller(""), tool.Call{Name: name, Arguments: arguments, Progress: say.progress(name)})
		say.done()
		if err != nil {
			err = a.callError(name, err)
			if c.Bool(flagJSON) {
				err = errors.Join(err, printJSON(c.App.Writer, failureOf(err)))
			}
			return err
		}
		return printResult(c, name, result)
	})
}

// maxArguments bounds what is read before the tool's own limit is known.
const maxArguments = 64 << 20

// readArguments returns a JSON object, from where arg says.
func readArguments(c *cli.Context, p program, arg string) ([]byte, error) {
	var body []byte
	var err error
	switch path, isFile := strings.CutPrefix(arg, "@"); {
	case arg == "":
		return []byte("{}"), nil
	case arg == "-":
		body, err = readAtMost(p.stdin)
	case isFile:
		body, err = readArgumentFile(path)
	default:
		body = []byte(arg)
	}
	if err != nil {
		return nil, usagef("arguments: %w", err)
	}
	if err := rawjson.Check(body, rawjson.MaxDepth); err != nil {
		if !strings.HasPrefix(arg, "@") && arg != "-" && !strings.HasPrefix(strings.TrimSpace(arg), "{") {
			err = fmt.Errorf("%s is no JSON object", quoted(arg))
		}
		return nil, usagef("arguments: %w", err).withHint("write a JSON object, in quotes: '%s'", objectLike(arg))
	}
	if trimmed := bytes.TrimSpace(body); trimmed[0] != '{' {
		return nil, usagef("arguments: %s is no JSON object", quoted(string(trimmed))).
			withHint("hutch tools inspect %s", shellWord(c.Args().First()))
	}
	return body, nil
}

// objectLike is an example of arguments: of arg itself, if that is NAME=VALUE.
func objectLike(arg string) string {
	name, value, ok := strings.Cut(arg, "=")
	if !ok || !plainWord.MatchString(name) || !plainWord.MatchString(value) {
		name, value = "text", "hello"
	}
	return fmt.Sprintf(`{"%s":"%s"}`, name, value)
}

// plainWord needs no quotes, neither in JSON nor in a shell.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,40}$`)

func readArgumentFile(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readAtMost(f)
}

func readAtMost(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxArguments+1))
	if err == nil && len(body) > maxArguments {
		err = fmt.Errorf("more than %s", formatSize(maxArguments))
	}
	return body, err
}

// failedCall is what "hutch tools call --json" prints for a call without an
// answer.
type failedCall struct {
	Error struct {
		// Status is as in hutch_calls_total, Limit as in a configuration.
		Status  string `json:"status"`
		Limit   string `json:"limit,omitempty"`
		Message string `json:"message"`
		// Allow is the command that decides about what the call needs.
		Allow string `json:"allow,omitempty"`
	} `json:"error"`
	Usage tool.Usage `json:"usage,omitzero"`
}

func failureOf(err error) (f failedCall) {
	f.Error.Status, f.Error.Limit, f.Error.Message = callStatus(tool.Result{}, err), tool.LimitOf(err), err.Error()
	f.Error.Allow, f.Usage = decidingCommandIn(err.Error()), tool.UsageOf(err)
	if refused := (*refusedCall)(nil); errors.As(err, &refused) {
		f.Error.Allow = refused.refusal.Do
	}
	return f
}

// callError says more about a tool that gave no answer than a peer would hear:
// whoever sits at this machine may know that a tool is there and is held.
func (a *App) callError(name string, err error) error {
	if !errors.Is(err, tool.ErrNotFound) {
		return err
	}
	unusable := 0
	for _, m := range a.modules.Modules() {
		if m.Serving == "" {
			unusable++
		}
		for _, t := range m.Tools {
			if t.Published.Name == name && t.Status == tool.Held {
				return hinted(fmt.Errorf("%w: tool %s: %s %s", tool.ErrHeld, name, m.Name, t.Reason), "hutch tools inspect%s %s", a.cfg.flags(), shellWord(m.Name))
			}
		}
	}
	if like := a.toolLike(name); like != "" {
		return hinted(err, "did you mean %s?", shellWord(like))
	}
	if unusable > 0 {
		return fmt.Errorf("%w: %s; %s not be loaded, see: hutch tools list%s", err, a.cfg.lookedIn(), plural(unusable, "module could", "modules could"), a.cfg.flags())
	}
	return hinted(fmt.Errorf("%w: %s", err, a.cfg.lookedIn()), "hutch tools list%s", a.cfg.flags())
}

// progress shows how far a call has come, where somebody can see it.
func (v *voice) progress(name string) func(tool.Progress) {
	if !isTerminal(v.w) {
		return nil
	}
	return func(p tool.Progress) {
		if p.Total > 0 {
			v.working("%s: %.0f%% %s", name, 100*p.Progress/p.Total, p.Message)
			return
		}
		v.working("%s: %g %s", name, p.Progress, p.Message)
	}
}

// printResult prints an answer; one that is an error goes to standard error,
// so that it is not taken for data.
func printResult(c *cli.Context, name string, r tool.Result) error {
	if c.Bool(flagJSON) {
		if err := printJSON(c.App.Writer, r); err != nil {
			return err
		}
		if r.IsError {
			return errReported
		}
		return nil
	}
	text := resultText(r)
	if r.IsError {
		return fmt.Errorf("tool %s: %s", name, text)
	}
	if isTerminal(c.App.Writer) {
		text = printable(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(c.App.Writer, text)
	return err
}

// resultText is what there is to read in a result, one block after the other.
func resultText(r tool.Result) string {
	var parts []string
	for _, block := range r.Content {
		switch {
		case block.Type == "text":
			parts = append(parts, block.Text)
		case block.URI != "":
			parts = append(parts, fmt.Sprintf("[%s %s]", block.Type, block.URI))
		default:
			parts = append(parts, fmt.Sprintf("[%s %s, %d base64 characters; --json has them]", block.Type, block.MIMEType, len(block.Data)))
		}
	}
	if len(parts) == 0 && r.Structured != nil {
		return string(r.Structured)
	}
	return strings.Join(parts, "\n")
}
