package main

import (
	"log/slog"

	"github.com/urfave/cli/v2"
)

// newLogger returns a logger that writes to the stream of say.
func newLogger(c *cli.Context, p program, say *voice) (*slog.Logger, error) {
	level, err := logLevel(c, p)
	if err != nil {
		return nil, err
	}
	return slog.New(slog.NewTextHandler(say, &slog.HandlerOptions{Level: level})), nil
}
