package mcp

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/hutch-run/hutch/protocol/abi"
)

// recovered keeps a panic from ending the process. Deferred, it logs what
// panicked and where, for whoever reads the log; nobody else is told.
func (s *Server) recovered(doing string) {
	if p := recover(); p != nil {
		s.logPanic(context.Background(), doing, p)
	}
}

func (s *Server) logPanic(ctx context.Context, doing string, p any) {
	s.o.Logger.ErrorContext(ctx, "mcp: panic", "while", doing, "type", typeName(p), "stack", string(debug.Stack()))
}

// typeName says what was thrown without its value, which could hold arguments.
func typeName(p any) string {
	if err, ok := p.(interface{ RuntimeError() }); ok {
		if text, ok := err.(error); ok {
			return text.Error()
		}
	}
	return slog.AnyValue(p).Kind().String()
}

// lower is how many levels go-sdk's log lines lose: it calls each connection
// worth knowing of, and what a client does wrong an error.
const lower = slog.LevelError - slog.LevelInfo

// sdkLogger takes go-sdk's log, without attributes, which can hold session ids
// and whole results.
func sdkLogger(to *slog.Logger) *slog.Logger { return slog.New(quiet{to.Handler()}) }

type quiet struct{ to slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.to.Enabled(ctx, level-lower)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	return q.to.Handle(ctx, slog.NewRecord(r.Time, r.Level-lower, "mcp: "+abi.Cut(r.Message, 200), r.PC))
}

func (q quiet) WithAttrs([]slog.Attr) slog.Handler { return q }
func (q quiet) WithGroup(string) slog.Handler      { return q }
