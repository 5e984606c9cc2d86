package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// openTracker opens the tracker that tools and agents work with.
func (a *App) openTracker(ctx context.Context, p program) (err error) {
	if a.cfg.Tracker.URL != "" {
		a.remote, err = newRemoteTracker(a.cfg.Tracker, p.env, trackerclient.Options{Logger: a.log})
		return err
	}
	if a.db != nil {
		a.tracker, err = openEmbedded(ctx, a.cfg, a.db, a.log)
	}
	return err
}

// trackerOf returns a client of the tracker for an agent of this program: the embedded one's
// for that member, and elsewhere one with the token that there is for it. The caller closes
// it.
func (a *App) trackerOf(agent string) (*trackerclient.Client, error) {
	switch {
	case a.remote != nil:
		return a.cfg.trackerOf(agent).client(a.remote.env, trackerclient.Options{Logger: a.log})
	case a.tracker != nil:
		return a.tracker.client(agent)
	}
	return nil, errors.New("this process has no tracker: the owner of the state folder has")
}

// trackerDoor is what asks the tracker for tools.
func (a *App) trackerDoor() gate.Tracker {
	if a.tracker == nil && a.remote == nil {
		return trackerBorrower{a.borrowed}
	}
	return a.newProxy()
}

func (a *App) newProxy() *trackerproxy.Proxy {
	account := func(ctx context.Context, of trackerproxy.Access) (trackerproxy.Account, error) {
		if a.remote != nil {
			return a.remote.account(a.cfg.trackerOf(of.Agent))
		}
		return a.tracker.account(ctx, of)
	}
	return trackerproxy.New(trackerproxy.Options{Account: account, Logger: a.log})
}

// remoteTracker is a tracker elsewhere, for tools.
type remoteTracker struct {
	cfg    trackerConfig
	env    func(string) string
	base   *url.URL
	client *trackerclient.Client
}

func newRemoteTracker(cfg trackerConfig, env func(string) string, o trackerclient.Options) (*remoteTracker, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	o.AllowPlain = cfg.AllowPlain
	client, err := trackerclient.New(cfg.URL, "", o) // each request brings the token
	return &remoteTracker{cfg, env, base, client}, err
}

// account has a token as it is now: a file may have another one.
func (o *remoteTracker) account(as trackerConfig) (trackerproxy.Account, error) {
	token, err := as.token(o.env)
	if err != nil {
		return trackerproxy.Account{}, err
	}
	return trackerproxy.Account{Base: o.base, Token: token.Reveal(), Client: o.client}, nil
}

// account asks the board as the member that a call is for, who may do no more there than its
// tool was granted.
func (e *embedded) account(_ context.Context, of trackerproxy.Access) (trackerproxy.Account, error) {
	c := caller{tracker.Caller{Slug: of.Principal, Scopes: boardScopes(of.Scopes)}, tracker.Human}
	if of.Agent != "" {
		c.Slug, c.kind = of.Agent, tracker.Agent
	}
	if c.Slug == access.Local {
		c.kind = tracker.Human
	}
	return trackerproxy.Account{Base: &url.URL{Scheme: "http", Host: "tracker", Path: "/"}, Client: direct{e.rest, c}}, nil
}

// boardScopes are scopes as the board knows them. One that is limited to a project is looked
// after by the proxy, which has to read for that what a request is about.
func boardScopes(granted []string) (scopes []string) {
	limited := false
	for _, scope := range granted {
		name, project, of := strings.Cut(scope, "@")
		limited = limited || of
		if !of || !besides(name) || within(granted, project, tracker.TasksWrite, tracker.TasksTake) {
			scopes = append(scopes, name)
		}
	}
	if limited {
		scopes = append(scopes, tracker.TasksRead, tracker.MessagesRead, tracker.ProjectsRead, tracker.MembersRead)
	}
	return scopes
}

// besides reports whether a scope has no routes of its own, but lets do more at those of
// others: then the proxy does not see to its projects.
func besides(scope string) bool { return scope == tracker.TasksAssign || scope == tracker.TasksForce }

// within reports whether scopes are granted for one project at most.
func within(granted []string, project string, scopes ...string) bool {
	return !slices.ContainsFunc(granted, func(g string) bool {
		name, of, limited := strings.Cut(g, "@")
		return slices.Contains(scopes, name) && (!limited || of != project)
	})
}

// direct sends requests of a caller straight to a handler.
type direct struct {
	to http.Handler
	as caller
}

// Do implements [trackerproxy.Client].
func (d direct) Do(r *http.Request) (*http.Response, error) {
	ctx := d.as.as(r.Context())
	// The call may have come in at a route of its own, which is none of the tracker's.
	ctx = context.WithValue(ctx, chi.RouteCtxKey, chi.NewRouteContext())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &buffered{header: http.Header{}, status: http.StatusOK}
	d.to.ServeHTTP(answer, r.WithContext(ctx))
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, ctx.Err()
}

// buffered keeps an answer.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
