package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/runtime/owner"
)

func serveCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve the tools of a folder over HTTP at /mcp, and agents that use them at /agui",
		UsageText: "hutch serve [flags]",
		Flags:     append(folderFlags(), identityFlag(), addrFlag(), unattendedFlag(), logFlag("info")),
		Action:    func(c *cli.Context) error { return attended(c, p, runServe) },
		Description: `The folders are watched: a module that is added, replaced or removed is so without a restart.
Agents answer at /agui, and those that a configuration names at /agents/NAME/agui too; without one it is a script
that shows how tools are called. "hutch chat" talks to them, and a page does whose origin is configured.
The first interrupt lets calls that are running finish for 5s, the second ends hutch at once.

` + limitsHelp() + `

examples:
  $ hutch serve
  $ hutch serve --tools ~/tools --tools /srv/tools --addr 127.0.0.1:9000
  $ HUTCH_LIMIT_TIMEOUT=10s hutch serve
  $ HUTCH_ORIGINS=http://127.0.0.1:8000 hutch serve --config hutch.yaml
  $ curl http://127.0.0.1:8420/readyz`,
	}
}

func runServe(c *cli.Context, p program, say *voice) error {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	return cfg.owning(c, p, say, func(app *App, o *owner.Owner) error {
		var err error
		if app.crew, err = app.openCrew(app.seats(), nil); err != nil {
			return err
		}
		l, err := app.listen(c.Context)
		if err != nil {
			return err
		}
		stop := app.greet(c.Context, p, say, l.Addr())
		defer stop()
		return app.Serve(c.Context, l, o)
	})
}

// owning opens everything as the owner of the state folder, for as long as something is done
// with it.
func (cfg Config) owning(c *cli.Context, p program, say *voice, do func(*App, *owner.Owner) error) (err error) {
	wrong := slices.Concat(cfg.checkModels(p.env), cfg.checkTelemetry(p.env), cfg.checkTracker(p.env))
	if err := tellAny(wrong, configFile(c, p)); err != nil {
		return err
	}
	log, err := newLogger(c, say)
	if err != nil {
		return err
	}
	o, err := cfg.takeOver(c.Context)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	if err := cfg.openFolders(say); err != nil {
		return err
	}
	app, err := NewApp(cfg, p, log, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	return do(app, o)
}
