package main

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/urfave/cli/v2"
)

func toolsCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "tools",
		Usage:       "list, inspect and call tools without a server",
		UsageText:   "hutch tools COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{toolsListCommand(p), toolsInspectCommand(p), toolsCallCommand(p)},
		Description: "Run \"hutch help tools COMMAND\" for the flags and examples of a command.",
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
	log, err := newLogger(say, c.String("log"))
	if err != nil {
		return err
	}
	app, err := NewApp(cfg, p, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	if err := app.Load(c.Context); err != nil {
		return err
	}
	say.done()
	return f(c.Context, app, say)
}
