package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// startTracker runs a tracker alone.
func startTracker(t *testing.T, change func(*Config)) *served {
	t.Helper()
	cfg, _ := newTestConfig(t, change)
	return startTrackerOn(t, cfg)
}

func startTrackerOn(t *testing.T, cfg Config) *served {
	t.Helper()
	o, err := cfg.takeTracker(t.Context())
	must(t, err)
	app, err := newTrackerApp(t.Context(), cfg, quiet)
	must(t, err)
	l, err := app.listen(t.Context())
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	s := &served{app: app, url: app.base(l.Addr()), stop: stop}
	s.done = launch(func() error { return errors.Join(app.ServeTracker(ctx, l, o), o.Release()) })
	return s
}

// A tracker alone answers at both paths, over its socket, and on the socket of its folder; it
// keeps what there is, and leaves nothing behind.
func TestTrackerAlone(t *testing.T) {
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		cfg, _ := newTestConfig(t, change)
		s := startTrackerOn(t, cfg)
		bare := person{t, s.url, "", nil}
		bare.setUp("first")
		for base, path := range map[string]string{s.url: "/", s.url + trackerPath: trackerPath} {
			p := person{t, base, "", nil}
			var tasks tracker.Page[tracker.TaskOut]
			if p.does("GET", "/tasks", nil, &tasks); len(tasks.Items) != 1 {
				t.Errorf("%s: %+v", base, tasks)
			}
			var about struct{ Servers []struct{ URL string } }
			if p.does("GET", "/openapi.json", nil, &about); len(about.Servers) != 1 || about.Servers[0].URL != path {
				t.Errorf("%s is described as %+v", base, about)
			}
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/nothing": 404, "/mcp": 404, "/agui": 404} {
			if status, text := s.get(t, path); status != want || path == "/metrics" && !strings.Contains(text, "hutch_tracker_sockets 0") {
				t.Errorf("%s: %d", path, status)
			}
		}
		token := s.admit(t, "coder", tracker.MembersRead, tracker.MembersSelf, tracker.MessagesRead, tracker.TasksRead)
		w := s.mustDial(t, "Authorization", "Bearer "+token)
		if got := w.hello("coder", ""); got["type"] != tracker.FrameAuthOK {
			t.Fatal(got)
		}
		if status := bare.ask("GET", "/tasks", nil, nil); status != 401 {
			t.Errorf("without a token: %d", status)
		}
		gone := make(chan struct{})
		go func() { defer close(gone); s.halt(t) }()
		if code := w.ends(); code != websocket.CloseGoingAway {
			t.Errorf("a tracker that stops ends with %d", code)
		}
		<-gone
		s = startTrackerOn(t, cfg)
		var task tracker.TaskOut
		if (person{t, s.url, token, nil}).does("GET", "/tasks/TB-1", nil, &task); task.Title != "first" {
			t.Errorf("%+v", task)
		}
		s.end(t)
	})
}

// Two do not own one folder, whatever they are, and a command is told why it gets nothing.
func TestTrackerOwnsItsFolder(t *testing.T) {
	s := startTracker(t, nil)
	defer s.halt(t)
	cfg, p := s.app.cfg, program{shipped: nil}
	if _, err := cfg.takeTracker(t.Context()); err == nil || !strings.Contains(err.Error(), "has a tracker there already") {
		t.Errorf("another tracker: %v", err)
	}
	if _, err := cfg.takeOver(t.Context()); err == nil || !strings.Contains(err.Error(), "and serves "+s.url) {
		t.Errorf("a serve: %v", err)
	}
	home := &tenant{cfg: cfg, p: p, log: quiet, kind: ownerMCP}
	if _, err := home.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "runs no tools") {
		t.Errorf("an mcp: %v", err)
	}
	// What is about the store alone is done.
	tok, _ := madeToken(t, "ci", "alice")
	must(t, cfg.changeTokens(t.Context(), tokensPath, tok, func(*access.Keys) error { return errors.New("alone") }))
	if s.app.keys.Len() != 1 {
		t.Error("a token did not get there")
	}
}

// A tracker takes no other's place.
func TestTrackerMakesNobodyLeave(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	if _, err := s.app.cfg.takeTracker(t.Context()); err == nil || !strings.Contains(err.Error(), "has a tracker there already") {
		t.Errorf("%v", err)
	}
}

// Whoever owns the folder serves the tracker on its socket as the person at this machine, also
// where others need a token.
func TestTrackerOnTheOwnersSocket(t *testing.T) {
	for name, start := range map[string]func(*testing.T, func(*Config)) *served{"serve": func(t *testing.T, c func(*Config)) *served { return startServe(t, c) }, "tracker": startTracker} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			defer s.end(t)
			s.admit(t, "alice")
			atOwner(t, s.app.cfg).setUp("first")
		})
	}
}

// The configured agents are members from the start, the one that is there without a
// configuration is none, and a start changes nobody that is there.
func TestMembersOfAConfiguration(t *testing.T) {
	team := func(cfg *Config) {
		cfg.agentsFrom = "hutch.yaml"
		cfg.Agents = []*agentConfig{{Name: "coder"}, {Name: "reviewer"}}
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{"none": {nil, []string{"local human"}}, "two": {team, []string{"coder agent", "local human", "reviewer agent"}}} {
		cfg, _ := newTestConfig(t, nil)
		if c.change != nil {
			c.change(&cfg)
		}
		for range 2 {
			s := startTrackerOn(t, cfg)
			var all tracker.Page[tracker.MemberOut]
			person{t, s.url, "", nil}.does("GET", "/members", nil, &all)
			var got []string
			for _, m := range all.Items {
				got = append(got, m.Slug+" "+string(m.Kind))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
			s.halt(t)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t)
}
