package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
)

func logFlag(level string) cli.Flag {
	return &cli.StringFlag{Name: flagLog, Value: level,
		Usage: "log `LEVEL` and above to standard error: debug, info, warn, error (default: " + level + "; env HUTCH_LOG)"}
}

// logLevel is what the flag says, which [loadConfig] has set to what was configured.
func logLevel(c *cli.Context) (l slog.Level, err error) {
	return l, l.UnmarshalText([]byte(c.String(flagLog)))
}

// newLogger returns a logger that writes to the stream of say: in say's own
// style for somebody who looks at a terminal, else as key=value for programs.
func newLogger(c *cli.Context, say *voice) (*slog.Logger, error) {
	level, err := logLevel(c)
	if err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: level}
	if isTerminal(say.w) {
		return slog.New(newSpoken(say, o)), nil
	}
	return slog.New(slog.NewTextHandler(say, o)), nil
}

// spoken writes records as lines of a [voice]: the message, then key=value.
type spoken struct {
	say *voice
	// mu guards text, which rest writes to.
	mu   *sync.Mutex
	text *bytes.Buffer
	rest slog.Handler
}

func newSpoken(say *voice, o *slog.HandlerOptions) spoken {
	var text bytes.Buffer
	return spoken{say: say, mu: new(sync.Mutex), text: &text, rest: slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: o.Level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	})}
}

// Enabled asks the level.
func (h spoken) Enabled(ctx context.Context, l slog.Level) bool { return h.rest.Enabled(ctx, l) }

// Handle says a record.
func (h spoken) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Reset()
	if err := h.rest.Handle(ctx, r); err != nil {
		return err
	}
	mark := ""
	switch {
	case r.Level >= slog.LevelError:
		mark = "error: "
	case r.Level >= slog.LevelWarn:
		mark = "warning: "
	}
	h.say.line("%s%s%s", mark, r.Message, prefixed(" ", strings.TrimSpace(h.text.String())))
	return nil
}

// WithAttrs keeps the wrapper.
func (h spoken) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.rest = h.rest.WithAttrs(attrs)
	return h
}

// WithGroup keeps the wrapper.
func (h spoken) WithGroup(name string) slog.Handler {
	h.rest = h.rest.WithGroup(name)
	return h
}
