package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
)

// agentsPath is where an owner lets commands talk to agents: the name of one and /agui
// follow, as at the listener.
const agentsPath = "/control/v1/agents"

// aguiPaths are the routes of agents at the listener, the default one's first.
var aguiPaths = []string{"/agui", "/agui/*", "/agents/{agent}/agui", "/agents/{agent}/agui/*"}

// aguiFace is AG-UI in front of the engine, for whom the listener lets in and for
// commands on the owner's socket.
type aguiFace struct {
	engine             *engine
	known              agentList
	root, named, chats *agui.Server
}

func (a *App) newAGUI() *aguiFace {
	web := roomFor(a.cfg.Limits.Connections)
	serve := func(prefix, face string, room *agui.Room) *agui.Server {
		return agui.New(a.engine.opener(face), agui.Options{Prefix: prefix, MaxBody: a.cfg.Limits.Body, Room: room, Logger: a.log})
	}
	return &aguiFace{
		engine: a.engine, known: a.knownAgents(), root: serve("/agui", faceAGUI, web), named: serve("/agents/{agent}/agui", faceAGUI, web), chats: serve(agentsPath+"/{agent}/agui", faceChat, nil),
	}
}

// roomFor is how many streams there may be over so many connections: whatever streams are
// open, a quarter is left for health, cancelling and all else that ends at once, and of what
// streams may have, a third for those that bring runs.
func roomFor(connections int) *agui.Room {
	return agui.NewRoom(max(1, connections*3/4), max(1, connections/2))
}

// web answers at aguiPaths.
func (f *aguiFace) web() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first, _, _ := strings.Cut(r.URL.Path[1:], "/"); first == "agui" {
			f.root.ServeHTTP(w, r)
			return
		}
		f.named.ServeHTTP(w, r)
	})
}

// local answers on the owner's socket. Whoever gets there is the user that hutch runs as.
func (f *aguiFace) local() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == agentsPath {
			tell(w, f.known, nil)
			return
		}
		f.chats.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Anyone())))
	})
}

// closing is how long runs may take to end before their streams are ended without them.
const closing = grace - time.Second

// drain lets the runs of other commands end, and be told, until ctx does; new ones are refused,
// which those commands take to the next owner.
func (f *aguiFace) drain(ctx context.Context) error {
	return errors.Join(f.chats.Drain(ctx), f.engine.quiet(ctx))
}

// shutdown ends all runs, with the code shutdown, and then what streams are left.
func (f *aguiFace) shutdown(ctx context.Context) (err error) {
	ended := launch(f.engine.Close)
	late := time.NewTimer(closing)
	defer late.Stop()
	select {
	case err = <-ended:
	case <-late.C:
	case <-ctx.Done():
	}
	return errors.Join(err, f.root.Shutdown(ctx), f.named.Shutdown(ctx), f.chats.Shutdown(ctx))
}
