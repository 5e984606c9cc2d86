package trackerclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// FuzzFrame: whatever a tracker sends, an agent is given events that have an id, each once,
// and what it waits for is answered at most once.
func FuzzFrame(f *testing.F) {
	for _, raw := range []string{
		``, `{}`, `null`, `[]`, `{"type":1}`, `{"type":"event"}`, `{"type":"event","id":"a","event":"chat.message","seq":1,"data":{"chat_id":"c","content":"x"}}`,
		`{"type":"event","id":"a","event":"message.new","data":{"task_id":"t"}}`, `{"type":"event","id":"a","event":"message.new","data":null}`,
		`{"type":"event","id":"a","seq":-1}`, `{"type":"event","id":"a","seq":9223372036854775807,"redelivery":-5}`, `{"type":"event","id":"a","seq":1.5}`,
		`{"type":"event","id":"a","event":"dance","data":"x"}`, `{"type":"chat.sent","client_msg_id":"m","message_id":"x"}`, `{"type":"chat.sent","client_msg_id":5}`,
		`{"type":"error","client_msg_id":"m","code":"invalid","message":"no"}`, `{"type":"error"}`, `{"type":"auth.ok"}`, `{"type":"from.later"}`,
		`{"type":"event","id":"` + strings.Repeat("x", 1<<16) + `"}`, strings.Repeat(`[`, 10_001),
	} {
		f.Add([]byte(raw))
	}
	up := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		for err == nil {
			_, _, err = ws.ReadMessage()
		}
	}))
	f.Cleanup(server.Close)
	ws, r, err := websocket.DefaultDialer.DialContext(f.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		f.Fatal(err)
	}
	_ = r.Body.Close()
	f.Cleanup(func() { _ = ws.Close() })
	c, err := New(server.URL, "token", Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var given []tracker.EventFrame
		s := c.Subscribe(Subscriber{Accept: func(_ context.Context, e tracker.EventFrame) error {
			given = append(given, e)
			return nil
		}})
		answer := make(chan chatting, 1)
		s.waiting["m"] = answer
		k := &socket{ws: ws, ctx: t.Context()}
		first := s.frame(k, raw)
		if again := s.frame(k, raw); (first == nil) != (again == nil) {
			t.Fatalf("first %v, then %v", first, again)
		}
		if len(given) > 1 {
			t.Fatalf("an event was given %d times", len(given))
		}
		for _, e := range given {
			if e.ID == "" || e.Event != tracker.CanonicalEvent(e.Event, e.Data) || len(e.Data) > 0 && !json.Valid(e.Data) {
				t.Fatalf("given was %+v", e)
			}
		}
		if s.waiting["m"] == nil && len(answer) != 1 {
			t.Fatal("who waits was forgotten, and not answered")
		}
	})
}
