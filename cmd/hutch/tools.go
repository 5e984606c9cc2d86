package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/urfave/cli/v2"
)

func toolsCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "tools",
		Usage:       "list, inspect, call and release tools without a server",
		UsageText:   "hutch tools COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{toolsListCommand(p), toolsInspectCommand(p), toolsCallCommand(p), toolsReleaseCommand(p)},
		Description: `Run "hutch help tools COMMAND" for the flags and examples of a command.

examples:
  $ hutch tools list
  $ hutch tools inspect text_stats
  $ hutch tools call text_stats '{"text":"one two three"}'`,
	}
}

// localCaller is whoever sits at this machine.
func localCaller(callID string) tool.Caller {
	return tool.Caller{Principal: "local", Face: "cli", CallID: callID}
}

// withTools runs f with the folders loaded once.
func withTools(c *cli.Context, p program, f func(context.Context, *App, *voice) error) (err error) {
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	log, err := newLogger(c, p, say)
	if err != nil {
		return err
	}
	if err := cfg.readableFolders(say); err != nil {
		return err
	}
	app, err := NewApp(cfg, p, slog.New(guestLines{log.Handler(), say}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	loaded := say.slowly("loading modules; the first time takes a moment for each")
	err = app.Load(c.Context)
	loaded()
	if err != nil {
		return err
	}
	return f(c.Context, app, say)
}

// guestLines shows what a tool logs as lines of its own, whatever the log's
// level: somebody who calls a tool by hand wants to see them.
type guestLines struct {
	slog.Handler
	say *voice
}

// guestMessage is the message under which the registry logs what tools log.
const guestMessage = "tool log"

// Enabled lets everything through, to be looked at by Handle.
func (h guestLines) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes a tool's line, or hands a record on that passes the level.
func (h guestLines) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != guestMessage {
		if h.Handler.Enabled(ctx, r.Level) {
			return h.Handler.Handle(ctx, r)
		}
		return nil
	}
	fields := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.String()
		return true
	})
	for line := range strings.Lines(fields["line"]) { // a panic has many
		h.say.line("%s: %s", fields["tool"], strings.ReplaceAll(line, "\t", "  "))
	}
	return nil
}

// WithAttrs keeps the wrapper.
func (h guestLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guestLines{h.Handler.WithAttrs(attrs), h.say}
}

// WithGroup keeps the wrapper.
func (h guestLines) WithGroup(name string) slog.Handler {
	return guestLines{h.Handler.WithGroup(name), h.say}
}
