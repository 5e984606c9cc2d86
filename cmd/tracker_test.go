package cmd_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const trackerPage = "docs/tracker.md"

// What docs/tracker.md says to type works, in its order, and its socket says what it says.
func TestTrackerDocument(t *testing.T) {
	p := newProgram(t)
	p.serve(t)
	keepsPromises(t, p, trackerPage)
	for _, b := range blocksOf(t, trackerPage) {
		if b.mark == "session" {
			p.playSession(t, b)
			return
		}
	}
	t.Fatalf("%s has no session", trackerPage)
}

// tokenFor makes a token with every scope of the tracker.
func (p program) tokenFor(t *testing.T, name, principal string, scopes ...string) string {
	t.Helper()
	args := []string{"tokens", "create", name, "--principal", principal}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	out, err := p.command(t, p.binary(), args...).Output()
	if err != nil {
		t.Fatal(saidBy(err))
	}
	return strings.TrimSpace(string(out))
}

func saidBy(err error) string {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
		return string(e.Stderr)
	}
	return err.Error()
}

// playSession sends what a block sends and compares what comes: what it shows has to be
// there, with "..." for any text.
func (p program) playSession(t *testing.T, b block) {
	t.Helper()
	token := p.tokenFor(t, "session", "coder", "tasks:read", "messages:read", "messages:write", "members:read", "members:self")
	p.assign(t, p.tokenFor(t, "giver", "local", "tasks:write", "tasks:assign"))
	ws, answer, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+p.addr+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	_ = answer.Body.Close()
	event, line := "", b.line
	for text := range strings.Lines(b.text) {
		line++
		text = strings.TrimSpace(text)
		said := strings.NewReplacer("TOKEN", token, "EVENT", event).Replace(text[2:])
		if text[0] == '>' {
			if err := ws.WriteMessage(websocket.TextMessage, []byte(said)); err != nil {
				t.Fatalf("%s:%d: %v", trackerPage, line, err)
			}
			continue
		}
		_ = ws.SetReadDeadline(time.Now().Add(time.Minute)) // reading says what is wrong
		_, raw, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("%s:%d: %v", trackerPage, line, err)
		}
		var got struct{ Type, ID string }
		if json.Unmarshal(raw, &got) == nil && got.Type == "event" {
			event, said = got.ID, strings.ReplaceAll(text[2:], "EVENT", got.ID)
		}
		if !shows(t, said, raw) {
			t.Errorf("%s:%d: promises\n%s\ngot\n%s", trackerPage, line, said, raw)
		}
	}
}

// assign makes the task that the session is about.
func (p program) assign(t *testing.T, token string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.addr+"/api/v1/tasks",
		strings.NewReader(`{"project_slug":"team-board","title":"Count again","assignee_slug":"coder"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("making a task is answered with %s", answer.Status)
	}
}

// shows reports whether all that is promised is there.
func shows(t *testing.T, said string, raw []byte) bool {
	t.Helper()
	var want, got any
	if err := json.Unmarshal([]byte(said), &want); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	return json.Unmarshal(raw, &got) == nil && promised(want, got)
}

func promised(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		there, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && promised(value, there[name])
		}
		return ok
	case []any:
		there, ok := got.([]any)
		return ok && slices.EqualFunc(want, there, promised)
	case string:
		text, ok := got.(string)
		return ok && (want == "..." && text != "" || want == text)
	}
	return want == got
}

func TestPromisedFindsWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{`{"a":"..."}`, `{"a":"x","b":1}`, true},
		{`{"a":"..."}`, `{"a":""}`, false},
		{`{"a":"..."}`, `{"b":"x"}`, false},
		{`{"a":{"b":[1,"x"]}}`, `{"a":{"b":[1,"x"],"c":2}}`, true},
		{`{"a":{"b":[1,"x"]}}`, `{"a":{"b":[1,"y"]}}`, false},
		{`{"a":1}`, `no JSON`, false},
	} {
		if got := shows(t, c.want, []byte(c.got)); got != c.ok {
			t.Errorf("%s within %s: %v", c.want, c.got, got)
		}
	}
}
