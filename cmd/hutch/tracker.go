package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/owner"
)

func trackerCommand(p program) *cli.Command {
	return &cli.Command{
		Name:        "tracker",
		Usage:       "serve a tracker of tasks alone, without tools, or ask one",
		UsageText:   "hutch tracker [flags]\n   hutch tracker COMMAND [flags] [arguments]",
		Subcommands: trackerCommands(p),
		Flags:       append(someFlags(flagState, flagConfig), addrFlag(), logFlag("info")),
		Action:      func(c *cli.Context) error { return attended(c, p, runTracker) },
		Description: `It is the tracker that "hutch serve" has too: projects, tasks with steps, messages and files, and a
socket that tells agents what happens. Its routes are at / and at /api/v1, which also has their
description, /api/v1/openapi.json; the socket is at /ws. Without tokens, whoever is on this machine is
the member local there and may do everything; with tokens, each is the member that it names as its
principal, and may do what its scopes say.

Its commands ask a tracker whatever can be asked of it: the one of a hutch that runs, the one in the
state folder while none does, or with --url another. Without a command it serves.

examples:
  $ hutch tracker
  $ hutch tracker init team-board --key TB
  $ hutch tracker --addr 127.0.0.1:9000 --state ~/team
  $ curl http://127.0.0.1:8420/projects -H 'Content-Type: application/json' -d '{"slug":"team-board"}'
  $ curl http://127.0.0.1:8420/tasks`,
	}
}

// ownerTracker is the kind of an owner that has a tracker and no tools.
const ownerTracker = "tracker"

func runTracker(c *cli.Context, p program, say *voice) (err error) {
	if err := wantArgs(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := loadConfig(c, p)
	if err != nil {
		return err
	}
	if cfg.Tracker.URL != "" {
		return usagef("%s: this is a tracker itself, and asks no other", cfg.given[keyTrackerURL].place(keyTrackerURL)).withHint("take %s away for it", keyTrackerURL)
	}
	log, err := newLogger(c, say)
	if err != nil {
		return err
	}
	o, err := cfg.takeTracker(c.Context)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Release()) }()
	app, err := newTrackerApp(c.Context, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	l, err := app.listen(c.Context)
	if err != nil {
		return err
	}
	app.greetTracker(p, say, l.Addr())
	return app.ServeTracker(c.Context, l, o)
}

// takeTracker makes this process, which serves a tracker alone, the owner of its state
// directory. It takes nobody's place: who has tools there needs it for them.
func (cfg Config) takeTracker(ctx context.Context) (*owner.Owner, error) {
	st, err := openState(cfg.State)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	info := owner.Info{Kind: ownerTracker, Version: readBuildInfo().String()}
	o, err := owner.TakeOver(ctx, st.dir, info, func(_ context.Context, c *owner.Client) error {
		if c.Owner.Kind == ownerTools {
			return owner.ErrGone // in a moment
		}
		return hinted(fmt.Errorf("state %s: %v uses it, and has a tracker there already", quoted(st.dir), c.Owner), "use that, stop it, or use another folder with --%s DIR", flagState)
	})
	if errors.Is(err, owner.ErrOwned) {
		err = hinted(fmt.Errorf("state %s: %w", quoted(st.dir), err), "stop the process that uses it, or use another folder with --%s DIR", flagState)
	}
	return o, err
}

// newTrackerApp builds what a tracker alone needs of an [App]: the store, who may come in,
// and the tracker. It has no modules and no engine.
func newTrackerApp(ctx context.Context, cfg Config, log *slog.Logger) (_ *App, err error) {
	a := &App{cfg: cfg, log: slog.New(numbered{log.Handler()}), metrics: newMetrics(), ready: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.db, err = openStore(ctx, cfg, true, a.log); err != nil {
		return nil, err
	}
	if a.keys, err = access.OpenKeys(ctx, a.db, nil); err != nil {
		return nil, err
	}
	if a.tracker, err = openEmbedded(ctx, cfg, a.db, a.log); err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	a.metrics.registry.MustRegister(newTrackerCollector(a.tracker.hub))
	close(a.ready)
	return a, nil
}

// greetTracker says where the tracker is, and what to try.
func (a *App) greetTracker(p program, say *voice, addr net.Addr) {
	base, header := a.base(addr), ""
	if a.keys.Needed() {
		header = ` -H "Authorization: Bearer $TOKEN"`
	}
	say.line("serving a tracker at %s, and what happens there at %s", base, socketURL(base))
	if !isLoopback(addr) && a.certificate == nil {
		say.line("warning: tokens go over the network as they are, unless a proxy with TLS stands before: set %s and %s", keyCert, keyKey)
	}
	here, flags := shellWord(p.name), a.cfg.stateFlag()
	say.text("\ntry:\n\n" +
		"  curl" + header + " -H 'Content-Type: application/json' " + base + `/projects -d '{"slug":"team-board"}'` + "\n" +
		"  curl" + header + " -H 'Content-Type: application/json' " + base + `/tasks -d '{"project_slug":"team-board","title":"Write it down"}'` + "\n" +
		"  curl" + header + " " + base + "/tasks\n" +
		"  " + here + " tracker init" + flags + "\n\n")
}

// ServeTracker answers on l, and on the socket of the owner that it is, until ctx ends. It
// closes l, and leaves it to the caller to release o.
func (a *App) ServeTracker(ctx context.Context, l net.Listener, o *owner.Owner) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	handler, err := a.trackerHandler(l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	info := o.Info()
	info.Addr, info.TLS = l.Addr().String(), a.certificate != nil
	srv := newServer(base, handler, a.log)
	served := launch(func() error { return a.answer(srv, capped(l, a.cfg.Limits.Connections, a.metrics.refused.Inc)) })
	controlled := launch(func() error { return o.Serve(base, a.trackerControl(info), a.log) })
	ran := launch(func() error { return unlessCut(a.tracker.Run(base)) })
	select {
	case err = <-served:
		served <- nil
	case err = <-controlled:
		controlled <- nil
	case err = <-ran:
		ran <- nil
	case <-ctx.Done():
	}
	a.log.Info("stopping", "grace", grace)
	err = errors.Join(err, a.endTracker(base, srv))
	end()
	return errors.Join(err, srv.Close(), unlessClosed(<-served), <-controlled, <-ran)
}

// endTracker lets requests finish that run, and sends agents away.
func (a *App) endTracker(base context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(base, grace)
	defer cancel()
	left := launch(func() error { return a.tracker.Close(ctx) })
	return errors.Join(unlessCut(srv.Shutdown(ctx)), unlessCut(<-left))
}

// trackerHandler builds the routes of a listener that has a tracker alone.
func (a *App) trackerHandler(addr net.Addr) (http.Handler, error) {
	o := a.doorOptions(addr)
	o.Resources = nil // nobody looks for MCP here
	f := faces{door: access.NewDoor(a.keys, o), metrics: a.metrics.handler(), ready: a.Ready, counted: a.metrics.request}
	bare, err := trackerrest.New(a.tracker.open, trackerrest.Options{Version: readBuildInfo().Version, Base: "/", Logger: a.log})
	if err != nil {
		return nil, err
	}
	r := newRoutes(a.cfg, f, a.log)
	r.Mount(trackerPath, a.tracker.rest)
	r.Method(http.MethodGet, socketPath, a.tracker.hub)
	r.Mount("/", bare)
	return r, nil
}

// trackerControl answers on the owner's socket.
func (a *App) trackerControl(info owner.Info) http.Handler {
	r := chi.NewRouter()
	r.Use(identified, func(next http.Handler) http.Handler { return recovered(next, a.log) })
	r.Get(aboutPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(info) // the client may be gone
	})
	a.routeStore(r)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusNotFound, info.String()+" runs no tools")
	})
	return r
}

// routeStore routes what commands ask the owner of a state folder about its store alone.
func (a *App) routeStore(r chi.Router) {
	r.Post(valuesPath, a.lendValues)
	r.Get(keptPath, a.tellKept)
	r.Get(tokensPath, a.tellTokens)
	r.Post(tokensPath, a.takeToken)
	r.Post(revokedPath, a.takeRevocation)
	r.Post(trackerLoanPath, a.lendTracker)
	if a.tracker != nil {
		r.Mount(trackerPath, a.tracker.local())
	}
}
