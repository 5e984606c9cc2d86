package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
)

// Where the embedded tracker answers.
const (
	trackerPath = "/api/v1"
	socketPath  = "/ws"
)

// embedded is the tracker of this program: a board on the store, and what asks it.
//
// It may be used from any goroutine. Of its own it has those of its memory, which begin with
// the first [embedded.client]; its board's is begun by [embedded.Run].
type embedded struct {
	board *board.Board
	hub   *trackerhub.Hub
	rest  *trackerrest.Server
	log   *slog.Logger
	// members are the slugs of those that are known to be there.
	members sync.Map
	// inside is for agents of this program.
	inside *memory
}

// openEmbedded opens the tracker on a store, and makes the members that a configuration
// names.
func openEmbedded(ctx context.Context, cfg Config, store board.Store, log *slog.Logger) (*embedded, error) {
	o := cfg.Tracker.board()
	o.Logger = log
	e := &embedded{board: board.New(store, o), log: log, inside: newMemory()}
	var err error
	e.rest, err = trackerrest.New(e.open, trackerrest.Options{Version: readBuildInfo().Version, Base: trackerPath, Logger: log})
	if err != nil {
		return nil, err
	}
	e.hub = trackerhub.New(e.openSocket, trackerhub.Options{Origins: cfg.Origins, Most: cfg.Tracker.Sockets, Names: cfg.Tracker.Events, Logger: log})
	if err := e.ensure(ctx, access.Local, tracker.Human); err != nil {
		return nil, err
	}
	if cfg.agentsFrom == "" {
		return e, nil // what is there without a configuration is no member of a team
	}
	for _, a := range cfg.Agents {
		if err := e.ensure(ctx, a.Name, tracker.Agent); err != nil {
			return nil, fmt.Errorf("agent %s: %w", quoted(a.Name), err)
		}
	}
	return e, nil
}

// ensure makes a member, unless there is one.
func (e *embedded) ensure(ctx context.Context, slug string, kind tracker.Kind) error {
	if _, known := e.members.Load(slug); known {
		return nil
	}
	if _, err := e.board.Ensure(ctx, tracker.CreateMember{Slug: slug, Kind: kind}); err != nil {
		return err
	}
	e.members.Store(slug, true)
	return nil
}

// A caller is who asks the tracker, and what it would be if it were new there.
type caller struct {
	tracker.Caller
	kind tracker.Kind
}

type callerKey struct{}

// as returns a context whose requests are a caller's, whoever sent them.
func (c caller) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is who sent the request that ctx belongs to.
func callerOf(ctx context.Context) (caller, bool) {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		return c, true
	}
	who, ok := access.From(ctx)
	return memberOf(who, tracker.Human), ok
}

// memberOf is who was let in at a door: whoever has no token is a person.
func memberOf(who access.Identity, kind tracker.Kind) caller {
	if who.Token == "" {
		kind = tracker.Human
	}
	return caller{tracker.Caller{Slug: who.Principal, Scopes: who.Scopes()}, kind}
}

// everything is what a person at this machine may do.
func everything() caller { return memberOf(access.Anyone(), tracker.Human) }

// open returns the board for whoever sent a request.
func (e *embedded) open(r *http.Request) (tracker.Service, error) {
	c, ok := callerOf(r.Context())
	if !ok {
		return nil, nil
	}
	return e.seat(r.Context(), c)
}

// openSocket returns it for an agent that connects. Who connects and is new is an agent.
func (e *embedded) openSocket(r *http.Request, token string) (tracker.Service, error) {
	if c, ok := r.Context().Value(callerKey{}).(caller); ok {
		return e.seat(r.Context(), c)
	}
	who, ok := access.From(r.Context())
	if !ok {
		who, ok = access.Knock(r.Context(), token)
	}
	if !ok {
		return nil, nil
	}
	return e.seat(r.Context(), memberOf(who, tracker.Agent))
}

// seat returns the board for a caller, who is a member from now on.
func (e *embedded) seat(ctx context.Context, c caller) (tracker.Service, error) {
	err := e.ensure(ctx, c.Slug, c.kind)
	if errors.Is(err, tracker.Errorf(tracker.CodeInvalid, "")) {
		err = tracker.Errorf(tracker.CodeForbidden, "%s can be no member of a tracker", tracker.Quote(c.Slug)).
			Next("use a token whose principal has lower-case letters, digits, and - and _ between them alone")
	}
	if err != nil {
		return nil, err
	}
	return e.board.For(c.Caller), nil
}

// Run does what time does to the board until ctx ends.
func (e *embedded) Run(ctx context.Context) error { return e.board.Run(ctx) }

// Close ends what is connected, if there is a tracker, and returns when it has ended or with the error of ctx.
func (e *embedded) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	return errors.Join(e.hub.Close(ctx), e.inside.close())
}

// local is the tracker for a person at this machine, to be mounted.
func (e *embedded) local() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.rest.ServeHTTP(w, r.WithContext(everything().as(r.Context())))
	})
}

// agentScopes are what the program does for an agent by itself: everything but what is
// somebody else's to decide.
func agentScopes() []string {
	return slices.DeleteFunc(access.Scopes(), func(scope string) bool {
		return slices.Contains([]string{tracker.Admin, tracker.TasksForce, tracker.TasksAssign, access.ThreadsRead}, scope)
	})
}

// client returns a client for an agent of this program, which is a member from now on: it
// reaches the tracker without a socket of the system, and knows no other. The caller closes
// it.
func (e *embedded) client(slug string) (*trackerclient.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), insideWithin)
	defer cancel()
	if err := e.ensure(ctx, slug, tracker.Agent); err != nil {
		return nil, err
	}
	token := e.inside.admit(slug, e.served())
	return trackerclient.New(insideURL+trackerPath, token, trackerclient.Options{DialContext: e.inside.dial, Logger: e.log})
}

const (
	// insideURL is where it is for clients that reach it in memory.
	insideURL = "http://localhost"
	// insideWithin is how long the board may take to take an agent in.
	insideWithin = 10 * time.Second
)

// served answers clients in memory, by their tokens.
func (e *embedded) served() http.Handler {
	routes := http.NewServeMux()
	routes.Handle(trackerPath+"/", http.StripPrefix(trackerPath, e.rest))
	routes.Handle(socketPath, e.hub)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		slug, ok := e.inside.slugOf(token)
		if !ok || scheme != "Bearer" {
			plain(w, http.StatusUnauthorized, "nobody has this token")
			return
		}
		r.Header.Del("Authorization")
		who := caller{tracker.Caller{Slug: slug, Scopes: agentScopes()}, tracker.Agent}
		routes.ServeHTTP(w, r.WithContext(who.as(r.Context())))
	})
}
