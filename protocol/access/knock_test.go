package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
)

// upgrade is a request for a socket.
func upgrade(path string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.Host = "localhost"
	r.Header.Set("Upgrade", "WebSocket")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// A socket may say within who it is, and ends with the token that it shows.
func TestSocketsKnock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tok, text, err := access.New("ci", "alice", []string{access.Admin}, time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		lasting, lastingText := newToken(t, "lasting", "bob")
		keys, err := access.OpenKeys(t.Context(), &memory{all: []access.Token{tok, lasting}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var why []string
		d := access.NewDoor(keys, access.Options{Later: []string{"/ws"}, Refused: func(reason string) { why = append(why, reason) }})
		ended := make(chan string, 2)
		start := time.Now()
		for name, text := range map[string]string{"alice": text, "bob": lastingText} {
			go d.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				if _, ok := access.From(ctx); ok {
					t.Error("somebody is known before the token is shown")
				}
				for range 2 { // it is looked at again from time to time
					if who, ok := access.Knock(ctx, text); !ok || who.Principal != name || who.Has(access.Admin) != (name == "alice") {
						t.Errorf("%s knocks: %+v, %t", name, who, ok)
					}
				}
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), access.ErrEnded) {
					t.Errorf("%s ends because of %v", name, context.Cause(ctx))
				}
				ended <- name
			})).ServeHTTP(httptest.NewRecorder(), upgrade("/ws"))
		}
		if name := <-ended; name != "alice" || time.Since(start) != time.Hour {
			t.Errorf("%s ended after %s", name, time.Since(start))
		}
		spare, _ := newToken(t, "spare", "bob")
		if err := errors.Join(keys.Add(t.Context(), spare), keys.Revoke(t.Context(), "lasting", false)); err != nil {
			t.Fatal(err)
		}
		if name := <-ended; name != "bob" {
			t.Errorf("%s ended", name)
		}
		if len(why) != 0 {
			t.Errorf("refused: %q", why)
		}
	})
}

// Nobody knocks with a token that is none, and only a socket may wait, at its path.
func TestWhoMayNotKnock(t *testing.T) {
	tok, text := newToken(t, "ci", "alice")
	keys := openKeys(t, tok)
	var why []string
	d := access.NewDoor(keys, access.Options{Later: []string{"/ws"}, Refused: func(reason string) { why = append(why, reason) }})
	reached := 0
	serve := func(r *http.Request) int {
		w := httptest.NewRecorder()
		d.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached++
			if _, ok := access.Knock(r.Context(), text[:len(text)-1]+"_"); ok {
				t.Error("a wrong token is let in")
			}
			if _, ok := access.Knock(r.Context(), ""); ok {
				t.Error("no token is let in")
			}
		})).ServeHTTP(w, r)
		return w.Code
	}
	if code := serve(upgrade("/ws")); code != 200 || reached != 1 || len(why) != 2 {
		t.Errorf("a socket: %d, %d, %q", code, reached, why)
	}
	post := upgrade("/ws")
	post.Method = http.MethodPost
	for name, r := range map[string]*http.Request{
		"another path": upgrade("/mcp"), "below": upgrade("/ws/"), "escaped": upgrade("/%77s"), "another protocol": upgrade("/ws", "Upgrade", "h2c"),
		"no socket": upgrade("/ws", "Upgrade", ""), "a post": post, "a wrong token": upgrade("/ws", "Authorization", "Bearer "+text[:len(text)-1]+"_"),
	} {
		if code := serve(r); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
	}
	if reached != 1 {
		t.Errorf("%d requests came in", reached)
	}
	if _, ok := access.Knock(t.Context(), text); ok {
		t.Error("a good token is let in without a door")
	}
}
