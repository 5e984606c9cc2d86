package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hutch-run/hutch/protocol/mcp"
	"github.com/hutch-run/hutch/protocol/relay"
	"github.com/hutch-run/hutch/runtime/owner"
)

// The processes on one state directory: one owns it and runs the tools. Every
// other "hutch mcp" passes its client's messages to the owner over the socket
// there, and takes its place when it is gone.

// Kinds of owners.
const (
	ownerServe = "serve"
	ownerMCP   = "mcp"
	ownerChat  = "chat"
	// ownerTools is a command that owns the directory for a moment, and answers
	// nobody.
	ownerTools = "tools"
)

// Paths on the owner's socket.
const (
	aboutPath = "/control/v1/owner"
	stdioPath = "/control/v1/stdio"
	yieldPath = "/control/v1/yield"
)

// stdioProtocol is what a stream of one stdio client's messages is called.
const stdioProtocol = "hutch-mcp-stdio"

// joinPause is how long a process waits before it looks again for an owner that
// is about to end.
const joinPause = 50 * time.Millisecond

// joinPatience is how long a process waits for an owner that neither answers nor
// ends.
const joinPatience = 15 * time.Second

func (cfg Config) ownerInfo(kind string) owner.Info {
	return owner.Info{Kind: kind, Version: readBuildInfo().String(), Tools: cfg.realTools(), Policy: realPath(cfg.Policy)}
}

// realTools names the tool folders so that two processes that were started in
// different folders mean the same by it.
func (cfg Config) realTools() []string {
	var real []string
	for _, dir := range cfg.absolute().Tools {
		real = append(real, realPath(dir))
	}
	return real
}

// agrees says whether this process can leave its work to another: it would do the
// same with the same tools.
func (cfg Config) agrees(other owner.Info) error {
	if own := readBuildInfo().String(); other.Version != own {
		return hinted(fmt.Errorf("state %s: %v uses it, of version %s, this one is %s", quoted(cfg.State), other, oneLine(other.Version), own),
			"stop that process, or use another state folder with --%s DIR", flagState)
	}
	if other.Kind == ownerTracker {
		return nil // it has none to be the same
	}
	if !slices.Equal(other.Tools, cfg.realTools()) {
		return hinted(fmt.Errorf("state %s: %v uses it for the tools in %s", quoted(cfg.State), other, oneLine(strings.Join(other.Tools, ", "))),
			"use those tools, or another state folder with --%s DIR", flagState)
	}
	if other.Policy != realPath(cfg.Policy) {
		return hinted(fmt.Errorf("state %s: %v uses it with the policy %s", quoted(cfg.State), other, oneLine(quoted(other.Policy))),
			"use that policy, or another state folder with --%s DIR", flagState)
	}
	return nil
}

// takeOver makes this process, which serves, the owner of its state directory.
func (cfg Config) takeOver(ctx context.Context) (*owner.Owner, error) {
	st, err := openState(cfg.State)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	o, err := owner.TakeOver(ctx, st.dir, cfg.ownerInfo(ownerServe), cfg.askToLeave)
	if errors.Is(err, owner.ErrOwned) {
		return nil, hinted(fmt.Errorf("state %s: %w", quoted(cfg.State), err), "stop the process that uses it, or use another folder with --%s DIR", flagState)
	}
	return o, err
}

// askToLeave asks an owner to give its place up. One that only does so for a
// client of its own will; a server will not.
func (cfg Config) askToLeave(ctx context.Context, c *owner.Client) error {
	if c.Owner.Kind == ownerServe || c.Owner.Kind == ownerTracker {
		return hinted(fmt.Errorf("state %s: %v uses it%s", quoted(cfg.State), c.Owner, prefixed(", and serves ", cfg.servedBy(ctx))),
			"stop it, or use another folder with --%s DIR", flagState)
	}
	resp, err := c.Do(ctx, http.MethodPost, yieldPath, nil)
	if err != nil {
		return owner.ErrGone // it may be leaving already
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusAccepted {
		return errors.Join(fmt.Errorf("%v does not make room: %s", c.Owner, resp.Status), err)
	}
	return nil
}

// servedBy is the URL of the hutch that owns the state folder; empty if it does not
// tell.
func (cfg Config) servedBy(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, pinsPatience)
	defer cancel()
	var info owner.Info
	if err := askOwner(ctx, state{cfg.State}, aboutPath, &info); err != nil || info.Addr == "" {
		return ""
	}
	if info.Kind == ownerTracker {
		return schemeOf(info.TLS) + info.Addr
	}
	return schemeOf(info.TLS) + info.Addr + "/mcp"
}

// control answers on the owner's socket. leave makes room for another owner; nil
// if this one stays.
func (a *App) control(face *mcp.Server, people *aguiFace, info owner.Info, leave func()) http.Handler {
	r := chi.NewRouter()
	r.Use(identified, func(next http.Handler) http.Handler { return recovered(next, a.log) })
	r.Get(aboutPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(info) // the client may be gone
	})
	r.Mount(agentsPath, traced(a.telemetry)(people.local()))
	r.Get(linksPath, a.tellLinks)
	a.routeStore(r)
	r.Get(pinsPath, a.tellPins)
	r.Get(rankPath, a.tellRank)
	r.Get(decisionsPath, a.tellHistory)
	r.Post(decisionsPath, a.takeDecision)
	r.Get(secretsPath, a.tellSecrets)
	r.Post(stdioPath, func(w http.ResponseWriter, r *http.Request) {
		if face.Stopping() {
			plain(w, http.StatusServiceUnavailable, info.String()+" is about to end")
			return
		}
		stream, err := owner.Accept(w, r, stdioProtocol)
		if err == nil {
			err = face.ServeStdio(context.WithoutCancel(r.Context()), stream, stream)
		}
		if err != nil {
			a.log.DebugContext(r.Context(), "a stdio client of another process ended", "error", err)
		}
	})
	r.Post(yieldPath, func(w http.ResponseWriter, _ *http.Request) {
		if leave == nil {
			plain(w, http.StatusConflict, info.String()+" stays")
			return
		}
		plain(w, http.StatusAccepted, "leaving")
		leave()
	})
	return r
}

// A house is an app that owns its state directory for the sake of a stdio client.
type house struct {
	app    *App
	owner  *owner.Owner
	face   *mcp.Server
	people *aguiFace
	stop   context.CancelFunc
	ran    chan error
	served chan error
	once   sync.Once
	left   chan struct{} // closed when everything has ended
	err    error         // why that was not clean
}

// openHouse runs an app for an owner, which it takes over.
func openHouse(cfg Config, p program, log *slog.Logger, o *owner.Owner) (*house, error) {
	app, err := NewApp(cfg, p, log, true)
	if err != nil {
		return nil, errors.Join(err, o.Release())
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &house{app: app, owner: o, stop: stop, left: make(chan struct{}), face: mcp.New(app.waiting(), app.mcpOptions()), people: app.newAGUI()}
	h.ran = launch(func() error { app.Run(ctx); return nil })
	handler := app.control(h.face, h.people, o.Info(), func() { launch(func() error { return h.close(grace) }) })
	h.served = launch(func() error { return o.Serve(ctx, handler, log) })
	return h, nil
}

// local is a server in this process for its own client.
func (h *house) local() relay.Server {
	server, in, out := relay.Pipe()
	launch(func() error { return h.face.ServeStdio(context.Background(), in, out) }) // ends with the face
	return server
}

// close lets running calls go on for as long as patience, ends everything, and
// gives the directory up last.
func (h *house) close(patience time.Duration) error {
	h.once.Do(func() {
		defer close(h.left)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ran := launch(func() error { return h.people.shutdown(ctx) })
		err := errors.Join(h.face.Shutdown(ctx), <-ran)
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil // what was cut off was answered
		}
		h.stop()
		h.err = errors.Join(err, <-h.ran, <-h.served, h.app.Close(), h.owner.Release())
	})
	<-h.left
	return h.err
}

// A tenant is a process with one stdio client: it finds the owner of its state
// directory, or becomes it.
type tenant struct {
	cfg Config
	p   program
	log *slog.Logger
	// kind is what this process is as an owner.
	kind string

	mu    sync.Mutex
	house *house // the last one, nil if this process never owned
}

// connect implements [relay.Options].Connect.
func (t *tenant) connect(ctx context.Context) (relay.Server, error) {
	var at guest
	h, err := t.find(ctx, func(c *owner.Client) error {
		stream, err := c.Upgrade(ctx, stdioPath, stdioProtocol)
		at = guest{stream, c}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case h != nil:
		return h.local(), nil
	}
	return at, nil
}

// find returns what this process owns, which it may do from now on, or has use called
// with another owner, again as long as that is gone.
func (t *tenant) find(ctx context.Context, use func(*owner.Client) error) (*house, error) {
	if h := t.own(); h != nil {
		return h, nil
	}
	st, err := openState(t.cfg.State)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for {
		o, c, err := owner.Join(ctx, st.dir, t.cfg.ownerInfo(t.kind))
		switch {
		case err != nil:
			return nil, hinted(fmt.Errorf("state %s: %w", quoted(t.cfg.State), err), "stop the process that uses it, or use another folder with --%s DIR", flagState)
		case o != nil:
			return t.settle(o)
		}
		if err := t.cfg.agrees(c.Owner); err != nil {
			return nil, err
		}
		if c.Owner.Kind == ownerTracker {
			return nil, hinted(fmt.Errorf("state %s: %v uses it, and runs no tools", quoted(t.cfg.State), c.Owner),
				"use another state folder with --%s DIR, and its tracker with %s", flagState, keyTrackerURL)
		}
		if err := use(c); !errors.Is(err, owner.ErrGone) {
			return nil, err
		}
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
			return nil, hinted(fmt.Errorf("state %s: %v does not respond", quoted(t.cfg.State), c.Owner),
				"end that process, or use another state folder with --%s DIR", flagState)
		}
	}
}

// A guest is a stream to the owner of the state directory.
type guest struct {
	owner.Stream
	client *owner.Client
}

// Check implements [relay.Server].
func (g guest) Check(ctx context.Context) error {
	resp, err := g.client.Do(ctx, http.MethodGet, aboutPath, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// settle makes this process the owner it was found to be.
func (t *tenant) settle(o *owner.Owner) (*house, error) {
	h, err := openHouse(t.cfg, t.p, t.log, o)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.house = h
	t.mu.Unlock()
	return h, nil
}

// own returns what this process owns, nil if it does not.
func (t *tenant) own() *house {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.house == nil {
		return nil
	}
	select {
	case <-t.house.left:
		return nil
	default:
		return t.house
	}
}

// close ends what this process owns, or has just given up. Runs of others that go on in it
// have a while to end.
func (t *tenant) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.house == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := t.house.people.drain(ctx); err != nil {
		t.log.Warn("runs of other processes were cut off", "after", grace)
	}
	return t.house.close(0)
}

// ServeStdio passes the client on standard input and output to the owner of the
// state directory until the input ends or ctx does.
func (t *tenant) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := relay.Run(ctx, in, out, relay.Options{Connect: t.connect, NotBegun: mcp.CodeNotBegun, Logger: t.log})
	if ctx.Err() != nil { // a signal is a way to end, not a failure
		err = nil
	}
	return errors.Join(err, t.close())
}
