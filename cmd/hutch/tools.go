package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/urfave/cli/v2"
)

func toolsCommand(p program) *cli.Command {
	return &cli.Command{
		Name:      "tools",
		Usage:     "list, inspect and call tools, and decide what they may do",
		UsageText: "hutch tools COMMAND [flags] [arguments]",
		Subcommands: []*cli.Command{
			toolsListCommand(p), toolsInspectCommand(p), toolsCallCommand(p), toolsReleaseCommand(p),
			toolsGrantCommand(p), toolsRevokeCommand(p), toolsApproveCommand(p), toolsDiffCommand(p), toolsHistoryCommand(p),
		},
		Description: `Run "hutch help tools COMMAND" for the flags and examples of a command. Where nothing names folders or a
policy, they are those of the hutch that runs on the state folder; if none does, ./tools counts.

examples:
  $ hutch tools list
  $ hutch tools inspect text_stats
  $ hutch tools call text_stats '{"text":"one two three"}'
  $ hutch tools grant fetch --http example.org`,
	}
}

// localCaller is whoever sits at this machine.
func localCaller(callID string) tool.Caller {
	return tool.Caller{Principal: "local", Face: "cli", CallID: callID}
}

// withTools runs f while the folders are loaded, once. f waits for what it needs with
// [App.await]; what is not loaded when it returns is given up.
func withTools(c *cli.Context, p program, f func(context.Context, *App, *voice) error) error {
	cfg, err := loadJoined(c, p)
	if err != nil {
		return err
	}
	cfg.sayFollowed(&voice{w: c.App.ErrWriter})
	return cfg.withTools(c, p, f)
}

func (cfg Config) withTools(c *cli.Context, p program, f func(context.Context, *App, *voice) error) (err error) {
	say := &voice{w: c.App.ErrWriter}
	log, err := newLogger(c, say)
	if err != nil {
		return err
	}
	if err := cfg.readableFolders(say); err != nil {
		return err
	}
	app, err := NewApp(cfg, p, slog.New(newGuestLines(log.Handler(), say)), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	ctx, cancel := context.WithCancel(c.Context)
	loaded := launch(func() error {
		defer close(app.ready)
		return app.Load(ctx)
	})
	defer func() {
		cancel()
		if failed := <-loaded; !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
	}()
	return f(c.Context, app, say)
}

// await waits until enough says so, which is asked now and then, or everything has
// been loaded. It is an error if ctx ends before.
func (a *App) await(ctx context.Context, say *voice, enough func() bool) error {
	defer say.slowly("loading modules; the first time takes a moment for each")()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for !enough() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.ready:
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

const awaitEvery = 20 * time.Millisecond

// everythingLoaded is for [App.await].
func everythingLoaded() bool { return false }

// offers reports whether the tool called name can be called, and no module that came
// with hutch can still claim the name: those come first.
func (a *App) offers(name string) bool {
	found, quarantined := false, a.quarantined()
	for _, m := range a.modules.Modules() {
		if m.Shipped && isLoading(m, quarantined) {
			return false
		}
		found = found || slices.ContainsFunc(m.Tools, func(t registry.Tool) bool {
			return t.Published.Name == name && t.Status == tool.Ready
		})
	}
	return found
}

// loading counts the modules about which nothing is known yet.
func (a *App) loading() (n int) {
	quarantined := a.quarantined()
	for _, m := range a.modules.Modules() {
		if isLoading(m, quarantined) {
			n++
		}
	}
	return n
}

func isLoading(m registry.Module, quarantined map[string]bool) bool {
	return m.Serving == "" && m.Status == tool.Held && !quarantined[m.Digest]
}

// quarantined are the digests that may not even be described.
func (a *App) quarantined() map[string]bool {
	all := map[string]bool{}
	for _, q := range a.modules.Quarantined() {
		all[q.Digest] = true
	}
	return all
}

// listPatience is how long a list waits for the next module to become known. A
// module that hangs when it is described is rejected sooner.
const listPatience = 2 * patience

// outOfPatience returns whether nothing more has become known for [listPatience], so
// that what is left hangs. Before the folders have been looked at, which is when
// there are no modules, it has all the time there is.
func outOfPatience(modules func() (known, all int)) func() bool {
	before, since := -1, time.Now()
	return func() bool {
		if known, all := modules(); all == 0 || known != before {
			before, since = known, time.Now()
		}
		return time.Since(since) >= listPatience
	}
}

// known counts the modules about which something is known, and all.
func (a *App) known() (known, all int) {
	all = len(a.modules.Modules())
	return all - a.loading(), all
}

// guestLines shows what a tool logs as lines of its own, whatever the log's
// level: somebody who calls a tool by hand wants to see them.
type guestLines struct {
	slog.Handler
	say   *voice
	trace *trace
}

func newGuestLines(next slog.Handler, say *voice) guestLines { return guestLines{next, say, &trace{}} }

// trace knows which frames of a stack trace are none of the tool's author: those of
// the SDK and of the panic itself. A frame is a line, and an indented one that says
// where it is.
type trace struct {
	mu     sync.Mutex
	hidden bool // the frame whose place comes next
}

func (t *trace) hides(line string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		hidden := t.hidden
		t.hidden = false
		return hidden
	}
	t.hidden = strings.HasPrefix(line, sdkFrames) || strings.HasPrefix(line, "panic({0x")
	return t.hidden
}

// sdkFrames begins the names of the SDK's functions.
const sdkFrames = "github.com/hutch-run/hutch/guests/sdk."

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
	for line := range strings.Lines(fields["line"]) {
		if h.trace.hides(line) {
			continue
		}
		h.say.line("%s: %s", fields["tool"], strings.ReplaceAll(line, "\t", "  "))
	}
	return nil
}

// WithAttrs keeps the wrapper.
func (h guestLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guestLines{h.Handler.WithAttrs(attrs), h.say, h.trace}
}

// WithGroup keeps the wrapper.
func (h guestLines) WithGroup(name string) slog.Handler {
	return guestLines{h.Handler.WithGroup(name), h.say, h.trace}
}
