// Package guestlog takes guests' log lines, capped and cleaned, into slog, and
// keeps the last ones of each module.
//
// The worker counted and cut the lines before. It runs code of strangers, so this
// is done again here, and what only the host knows is taken out: secrets.
//
// A [Log] may be used from any goroutine; a [Call] belongs to one call.
package guestlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Options bounds what is kept. The zero value works.
type Options struct {
	// Logger gets every line that is kept. What a guest warns of, or prints as it
	// breaks, is a warning there too, the first lines of each call; the rest is at
	// level debug. Default: none does.
	Logger *slog.Logger
	// Redact takes secrets out of a text and counts them. Default: nothing is
	// taken out.
	Redact func(string) (string, int)
	// Lines and Bytes are how much is kept of a module, at most. Defaults 500
	// lines and 256 KiB.
	Lines, Bytes int
	// Modules is of how many modules lines are kept: those that wrote last.
	// Default 256.
	Modules int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Redact == nil {
		o.Redact = func(s string) (string, int) { return s, 0 }
	}
	orDefault(&o.Lines, 500)
	orDefault(&o.Bytes, 256<<10)
	orDefault(&o.Modules, 256)
	return o
}

func orDefault(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

// Line is one line that a guest wrote, or the one that says how many were dropped.
type Line struct {
	Time  time.Time
	Level abi.LogLevel
	// Tool and CallID say which call wrote it.
	Tool, CallID string
	// Text is one line without hidden characters and secrets.
	Text string
}

// Log keeps lines. It is made by [New].
type Log struct {
	o Options

	mu    sync.Mutex // guards what is below
	rings map[string]*ring
	clock int64 // counts lines, to know which module wrote last
}

// New returns an empty log.
func New(o Options) *Log { return &Log{o: o.withDefaults(), rings: map[string]*ring{}} }

// Head says whose lines they are.
type Head struct {
	// Module is the bare file name, Tool the published name.
	Module, Tool, CallID string
	// Context is that of the call, for whoever handles the log; nil is none. It may have
	// ended.
	Context context.Context
}

// Call takes the lines of one call. Close it when the call has ended.
type Call struct {
	log    *Log
	head   Head
	most   int // lines
	length int // bytes of one

	mu     sync.Mutex
	lines  int // written so far, dropped ones included
	loud   int // of them, logged as warnings
	closed bool
}

// spare is for what the worker says about lines that it dropped itself.
const spare = 1

// Call begins a call under limits, of which a zero field is its default.
func (l *Log) Call(h Head, limits abi.Limits) *Call {
	limits = limits.WithDefaults()
	if h.Context == nil {
		h.Context = context.Background()
	}
	return &Call{log: l, head: h, most: limits.LogLines + spare, length: limits.LogLineBytes}
}

// window is how far behind the end of a line is looked for a secret that begins
// before it.
const window = 64 << 10

// Write takes one line. It has the type of [abi.Invocation].Log.
func (c *Call) Write(level abi.LogLevel, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines++; c.closed || c.lines > c.most {
		return
	}
	clean, n := c.log.o.Redact(abi.OneLine(text, c.length+window))
	clean = abi.Cut(clean, c.length)
	c.keep(level, clean, n)
}

// maxLoud is how many lines of one call are logged as warnings: a limit of its
// own, since a call may be allowed to log far more.
const maxLoud = 100

// keep logs a clean line, from which redacted secrets were taken, and keeps it. The
// lock is held.
func (c *Call) keep(level abi.LogLevel, text string, redacted int) {
	level = min(max(level, abi.Trace), abi.Error)
	as := slog.LevelDebug
	if level >= abi.Warn && c.loud < maxLoud {
		as = slog.LevelWarn
		c.loud++
	}
	c.log.o.Logger.Log(c.head.Context, as, "tool log", "tool", c.head.Tool, "module", c.head.Module, "call", c.head.CallID,
		"guest_level", levelName(level), "line", text, "redacted", redacted)
	c.log.add(c.head.Module, Line{Time: time.Now(), Level: level, Tool: c.head.Tool, CallID: c.head.CallID, Text: text})
}

// levelName is how a guest's level is called in its own language.
func levelName(l abi.LogLevel) string {
	return [...]string{"trace", "debug", "info", "warn", "error"}[l]
}

// Close says in one more line how many were dropped, if any were. Lines that come
// later are dropped.
func (c *Call) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := c.lines - c.most
	told := c.closed || dropped <= 0
	c.closed = true
	if told {
		return
	}
	text := fmt.Sprintf("... %d more lines dropped: at most %d are kept of one call (%s)", dropped, c.most, abi.LimitLogLines.Key())
	c.keep(abi.Warn, text, 0)
}

// add keeps a line of a module, and forgets the module that has been silent for
// longest if there are too many.
func (l *Log) add(module string, line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rings[module]
	if r == nil {
		if len(l.rings) >= l.o.Modules {
			l.forgetOldest()
		}
		r = &ring{}
		l.rings[module] = r
	}
	l.clock++
	r.last = l.clock
	r.add(line, l.o.Lines, l.o.Bytes)
}

func (l *Log) forgetOldest() {
	oldest, last := "", int64(0)
	for module, r := range l.rings {
		if last == 0 || r.last < last {
			oldest, last = module, r.last
		}
	}
	delete(l.rings, oldest)
}

// Tail returns the last lines of a module, at most n of them, oldest first; they
// are the caller's.
func (l *Log) Tail(module string, n int) []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.rings[module]; r != nil {
		return r.tail(n)
	}
	return nil
}

// Forget drops what is kept of a module that is gone.
func (l *Log) Forget(module string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.rings, module)
}
