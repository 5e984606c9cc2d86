package trackerhub

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// FuzzFrame: whatever an agent sends, what it is answered is a frame, and never that the
// tracker failed.
func FuzzFrame(f *testing.F) {
	for _, raw := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{"type":1}`, `{"type":"ack"}`, `{"type":"ack","id":"x"}`, `{"type":"ack","id":["x"]}`, `{"type":"auth"}`,
		`{"type":"heartbeat","status":"busy","current_tasks":["TE-1"]}`, `{"type":"heartbeat","current_tasks":[null]}`, `{"type":"dance"}`,
		`{"type":"chat.send","chat_id":"team","content":"@ann hello","mentions":["ann"],"client_msg_id":"m"}`, `{"type":"chat.send","chat_id":"../x"}`,
		`{"TYPE":"chat.send","Chat_ID":"team","content":"\ud800"}`, `{"type":"ack","type":"auth","id":"x"}`, `{"type":"chat.send","content":"\u0000"}`,
		`{"type":"ack","id":"` + strings.Repeat("x", tracker.MaxRef+1) + `"}`, strings.Repeat(`{"a":`, 10_001), `{"type":"ack","id":"x"}{}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !utf8.Valid(raw) {
			t.Skip("who reads ends the connection before")
		}
		seat := seatOfCoder(t)
		h := New(func(*http.Request, string) (tracker.Service, error) { return seat, nil }, Options{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(h, r, "")
		defer c.cancel()
		c.service = seat
		c.take(raw)
		if answers := len(c.out); answers > 1 || answers+len(c.acks)+int(h.unknown.Load()) > 1 {
			t.Fatalf("%d answers, %d acknowledgements, %d unknown", answers, len(c.acks), h.unknown.Load())
		}
		select {
		case frame := <-c.out:
			checkAnswer(t, frame)
		case id := <-c.acks:
			if id == "" || len(id) > tracker.MaxRef {
				t.Fatalf("the acknowledgement of %q", id)
			}
		default:
		}
	})
}

func seatOfCoder(t *testing.T) tracker.Service {
	t.Helper()
	b := board.New(&boardtest.Memory{}, board.Options{})
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent} {
		if _, err := b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	seat := b.For(tracker.Caller{Slug: "coder", Scopes: []string{
		tracker.TasksRead, tracker.MessagesRead, tracker.MessagesWrite, tracker.MembersRead, tracker.MembersSelf, tracker.Admin,
	}})
	if _, err := seat.CreateChat(t.Context(), tracker.CreateChat{Slug: "team"}); err != nil {
		t.Fatal(err)
	}
	return seat
}

func checkAnswer(t *testing.T, frame any) {
	t.Helper()
	text, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	var of tracker.FrameType
	if err := json.Unmarshal(text, &of); err != nil || of.Type == "" {
		t.Fatalf("%s: %v", text, err)
	}
	var e *tracker.Error
	if refused, ok := frame.(tracker.ErrorFrame); ok && (!errors.As(error(&refused.Error), &e) || e.Status() >= 500 || e.Message == "") {
		t.Fatalf("%s", text)
	}
}
