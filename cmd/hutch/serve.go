package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/urfave/cli/v2"
)

func serveCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve the tools of a folder over HTTP at /mcp",
		UsageText: "hutch serve [flags]",
		Flags:     append(folderFlags(), addrFlag(), logFlag("info")),
		Action:    func(c *cli.Context) error { return runServe(c, p) },
		Description: `The folders are watched: a module that is added, replaced or removed is so without a restart.
The first interrupt lets calls that are running finish for 5s, the second ends hutch at once.

` + limitsHelp() + `

examples:
  $ hutch serve
  $ hutch serve --tools ~/tools --tools /srv/tools --addr 127.0.0.1:9000
  $ HUTCH_LIMIT_TIMEOUT=10s hutch serve
  $ curl http://127.0.0.1:8420/readyz`,
	}
}

func logFlag(level string) cli.Flag {
	return &cli.StringFlag{Name: "log", Value: level,
		Usage: "log `LEVEL` and above to standard error: debug, info, warn, error (default: " + level + ")"}
}

// newLogger returns a logger that writes to the stream of say.
func newLogger(say *voice, level string) (*slog.Logger, error) {
	var l slog.Level
	switch level {
	case "debug", "info", "warn", "error":
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, err
		}
	default:
		return nil, usagef("--log %s: allowed are debug, info, warn, error", quoted(level))
	}
	return slog.New(slog.NewTextHandler(say, &slog.HandlerOptions{Level: l})), nil
}

func runServe(c *cli.Context, p program) (err error) {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	say := &voice{w: c.App.ErrWriter}
	log, err := newLogger(say, c.String("log"))
	if err != nil {
		return err
	}
	if err := makeDefaultFolder(c, cfg, say); err != nil {
		return err
	}
	app, err := NewApp(cfg, p, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	l, err := listen(c.Context, cfg.Addr)
	if err != nil {
		return err
	}
	stop := app.greet(c.Context, p, say, l.Addr().String())
	defer stop()
	return app.Serve(c.Context, l)
}

// makeDefaultFolder makes ./tools if nobody named another folder, so that there
// is one to drop a file into.
func makeDefaultFolder(c *cli.Context, cfg Config, say *voice) error {
	if len(cfg.Tools) != 1 || cfg.Tools[0] != defaultTools {
		return nil
	}
	err := os.Mkdir(defaultTools, 0o755)
	if err == nil {
		say.line("made the folder %s for modules", defaultTools)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return hinted(fmt.Errorf("tools: %w", err), "name a folder with --tools DIR")
	}
	return nil
}

// listen opens the one listener. A name may resolve to anything, so the address
// is looked at again.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, hinted(err, "stop what listens there, or use another address with --addr HOST:PORT")
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("addr %s: resolves to %s, which is not loopback", quoted(addr), l.Addr()), l.Close())
	}
	return l, nil
}
