package main

import (
	"context"
	"log/slog"

	"github.com/hutch-run/hutch/host/secrets"
)

// discreet is a handler that gets nothing of a secret's value. What tools say was
// redacted before; this is for everything else that can quote them: how a worker
// ended, why a file was rejected, what a peer answered.
type discreet struct {
	slog.Handler
	redactor *secrets.Redactor
}

// Handle passes a record on without values.
func (h discreet) Handle(ctx context.Context, r slog.Record) error {
	message, _ := h.redactor.Text(r.Message)
	clean := slog.NewRecord(r.Time, r.Level, message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h discreet) attr(a slog.Attr) slog.Attr {
	a.Key, _ = h.redactor.Text(a.Key)
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(h.attrs(value.Group())...)
	case slog.KindString, slog.KindAny:
		printed := value.String()
		if raw, ok := value.Any().([]byte); ok { // which handlers print as text
			printed = string(raw)
		}
		if text, n := h.redactor.Text(printed); n > 0 {
			a.Value = slog.StringValue(text)
		}
	}
	return a
}

func (h discreet) attrs(all []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(all))
	for i, a := range all {
		clean[i] = h.attr(a)
	}
	return clean
}

// WithAttrs keeps the wrapper.
func (h discreet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return discreet{h.Handler.WithAttrs(h.attrs(attrs)), h.redactor}
}

// WithGroup keeps the wrapper.
func (h discreet) WithGroup(name string) slog.Handler {
	return discreet{h.Handler.WithGroup(name), h.redactor}
}
