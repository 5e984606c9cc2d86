package tracker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func TestFieldsTellOmittedFromNull(t *testing.T) {
	for in, want := range map[string]tracker.Field[string]{
		`{}`:             {},
		`{"title":null}`: tracker.Null[string](),
		`{"title":""}`:   tracker.Some(""),
		`{"title":"x"}`:  tracker.Some("x"),
	} {
		var u tracker.UpdateTask
		must(t, json.Unmarshal([]byte(in), &u))
		out, err := json.Marshal(u)
		must(t, err)
		if u.Title != want || string(out) != in {
			t.Errorf("%s is read as %+v and written as %s", in, u.Title, out)
		}
	}
}

func TestC_01_StatusesInEverySpelling(t *testing.T) {
	for text, want := range map[string]tracker.Status{
		"review": tracker.InReview, "inreview": tracker.InReview, "In Review": tracker.InReview, "in-review": tracker.InReview,
		"inprogress": tracker.InProgress, "IN_PROGRESS": tracker.InProgress, "canceled": tracker.Cancelled, "done": tracker.Done,
	} {
		if got, err := tracker.ParseStatus(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "open", "done ", "in_progress\x00"} {
		_, err := tracker.ParseStatus(text)
		if !errors.Is(err, &tracker.Error{Code: tracker.CodeInvalid}) || !strings.Contains(err.Error(), "backlog, todo, in_progress") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestH_10_Vocabularies(t *testing.T) {
	if got, err := tracker.ParsePriority(""); got != "medium" || err != nil {
		t.Errorf("no priority is %s, %v", got, err)
	}
	if got, err := tracker.ParseType("Bug"); got != "bug" || err != nil {
		t.Errorf("Bug is %s, %v", got, err)
	}
	for _, parse := range []func(string) (string, error){tracker.ParseType, tracker.ParsePriority} {
		_, err := parse("other")
		var e *tracker.Error
		if !errors.As(err, &e) || e.Status() != 422 || e.Details["allowed"] == nil {
			t.Errorf("another word: %v", err)
		}
	}
}

// C-08, C-09: an event has one name on the wire, and is known by all that it has had.
func TestC_08_C_09_NamesOfEvents(t *testing.T) {
	for _, c := range []struct{ set, name, wire, data string }{
		{"v1", tracker.EventChatMessage, "chat.message", `{"chat_id":"c"}`},
		{"v1", tracker.EventTaskComment, "task.comment_added", `{"task_id":"t"}`},
		{"v2", tracker.EventChatMessage, "message.new", `{"chat_id":"c"}`},
		{"v2", tracker.EventTaskComment, "message.new", `{"task_id":"t"}`},
		{"v2", tracker.EventTaskStatus, "task.status_changed", `{}`},
		{"", tracker.EventChatMessage, "chat.message", `{}`},
	} {
		if got := tracker.EventName(c.set, c.name); got != c.wire {
			t.Errorf("%s in %s is %s", c.name, c.set, got)
		}
		if got := tracker.CanonicalEvent(c.wire, json.RawMessage(c.data)); got != c.name {
			t.Errorf("%s with %s is %s", c.wire, c.data, got)
		}
	}
	for old, want := range map[string]string{"task.status": tracker.EventTaskStatus, "task.comment": tracker.EventTaskComment, "x": "x"} {
		if got := tracker.CanonicalEvent(old, nil); got != want {
			t.Errorf("%s is %s", old, got)
		}
	}
}

// The frames as the document of the protocol spells them.
func TestS0_005_S0_018_Frames(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, frame := range map[string]any{
		`{"type":"auth","token":"t","agent":{"name":"n","slug":"s","capabilities":["c"]}}`: tracker.Auth{
			Type: tracker.FrameAuth, Token: "t", Agent: tracker.AuthAgent{Name: "n", Slug: "s", Capabilities: []string{"c"}}},
		`{"type":"heartbeat","status":"idle","current_tasks":[]}`: tracker.Heartbeat{Type: tracker.FrameHeartbeat, Status: "idle", CurrentTasks: []string{}},
		`{"type":"ack","id":"i"}`:                                 tracker.Ack{Type: tracker.FrameAck, ID: "i"},
		`{"type":"auth.ok","agent_id":"a","seq":3}`:               tracker.AuthOK{Type: tracker.FrameAuthOK, AgentID: "a", Seq: 3},
		`{"type":"auth.error","message":"m"}`:                     tracker.AuthError{Type: tracker.FrameAuthError, Message: "m"},
		`{"type":"chat.send","chat_id":"c","content":"x","mentions":["s"]}`: tracker.ChatSend{
			Type: tracker.FrameChatSend, ChatID: "c", Content: "x", Mentions: []string{"s"}},
		`{"type":"chat.sent","client_msg_id":"k","message_id":"m"}`: tracker.ChatSent{Type: tracker.FrameChatSent, ClientMsgID: "k", MessageID: "m"},
		`{"type":"error","client_msg_id":"k","code":"invalid","message":"m"}`: tracker.ErrorFrame{
			Type: tracker.FrameError, ClientMsgID: "k", Error: *tracker.Errorf(tracker.CodeInvalid, "m")},
		`{"type":"event","id":"i","event":"message.new","data":{},"seq":7,"ts":"2026-01-02T03:04:05Z","redelivery":2}`: tracker.Event{
			ID: "i", Name: tracker.EventChatMessage, Data: json.RawMessage(`{}`), Seq: 7, At: at, Tries: 2}.Frame("v2"),
	} {
		got, err := json.Marshal(frame)
		must(t, err)
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestForeignValuesAreCut(t *testing.T) {
	got := tracker.Quote(strings.Repeat("é", 100) + "\x1b")
	if len(got) > 80 || !utf8.ValidString(got) {
		t.Errorf("%s", got)
	}
	for status, code := range map[int]string{404: tracker.CodeNotFound, 409: tracker.CodeConflict, 418: tracker.CodeBadRequest, 502: tracker.CodeUnavailable} {
		if got := tracker.CodeOfStatus(status); got != code {
			t.Errorf("%d is %s", status, got)
		}
	}
	if got := (&tracker.Error{Code: "new"}).Status(); got != 500 {
		t.Errorf("an unknown code has status %d", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
