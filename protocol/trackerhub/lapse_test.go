package trackerhub_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
)

// A connection ends with the request that it began with, also of somebody who has not said
// yet who that is: for good where the request ended for a reason, and else for now.
func TestH_01_EndsWithItsRequest(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		code  int
	}{"a reason": {errors.New("revoked"), tracker.CloseAuth}, "no reason": {nil, websocket.CloseGoingAway}} {
		for _, known := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := newSite(t, trackerhub.Options{})
				end := make(chan context.CancelCauseFunc, 1)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancelCause(r.Context())
					end <- cancel
					s.hub.ServeHTTP(w, r.WithContext(ctx))
				}))
				defer server.Close()
				s.url = "ws" + strings.TrimPrefix(server.URL, "http")
				p := s.dial(nil)
				if known {
					p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)
					if g := p.next(); g.Type != tracker.FrameAuthOK {
						t.Fatalf("got %+v", g)
					}
				}
				(<-end)(c.cause)
				p.closed(c.code)
			})
		}
	}
}

// Who sent a request may be known without a token.
func TestKnownByTheRequest(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	hub := trackerhub.New(func(_ *http.Request, token string) (tracker.Service, error) {
		if token != "" {
			t.Errorf("there is a token: %q", token)
		}
		return s.as("coder"), nil
	}, trackerhub.Options{})
	server := httptest.NewServer(hub)
	defer server.Close()
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	p := s.dial(nil)
	p.send(`{"type":"auth","agent":{"slug":"coder"}}`)
	if g := p.next(); g.Type != tracker.FrameAuthOK {
		t.Fatalf("got %+v", g)
	}
	must(t, hub.Close(t.Context()))
}

func TestARevokedTokenEndsItsConnection(t *testing.T) {
	s := newSite(t, trackerhub.Options{HeartbeatEvery: 5 * time.Millisecond})
	p := s.enter("coder")
	s.mu.Lock()
	s.gone["coder"] = true
	s.mu.Unlock()
	p.closed(tracker.CloseAuth)
}

func TestCloseTellsEverybody(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	p, stranger := s.enter("coder"), s.dial(nil)
	done := make(chan error)
	go func() { done <- s.hub.Close(t.Context()) }()
	p.closed(websocket.CloseGoingAway)
	stranger.closed(websocket.CloseGoingAway)
	must(t, <-done)
	s.unavailable()
}
