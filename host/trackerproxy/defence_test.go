package trackerproxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tracker"
)

const listTasks = `{"method":"GET","path":"/tasks","query":{"q":"secret"}}`

// The token is meant for one address, even at the same tracker.
func TestNoRedirectIsFollowed(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tasks") {
			http.Redirect(w, r, "/api/v1/projects", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, `{"items":[]}`) // who asks has left
	}
	s.wants(s.ask(listTasks, "tasks:read"), abi.Unavailable, "tracker_unavailable")
	if len(s.seen) != 1 {
		t.Errorf("%d requests were sent, want 1", len(s.seen))
	}
}

func TestATrackerThatIsSilentIsNotWaitedForLong(t *testing.T) {
	s := newSite(t, trackerproxy.Options{Timeout: 50 * time.Millisecond})
	s.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	s.wants(s.ask(listTasks, "tasks:read"), abi.Unavailable, "tracker_unavailable")
}

// What a guest asked for is not what a log is for.
func TestTheLogHasNoURL(t *testing.T) {
	var lines bytes.Buffer
	s := newSite(t, trackerproxy.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	s.answer = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	s.wants(s.ask(listTasks, "tasks:read"), abi.Unavailable, "tracker_unavailable")
	if text := lines.String(); text == "" || strings.Contains(text, "secret") || strings.Contains(text, "http://") {
		t.Errorf("logged was %q", text)
	}
}

// A scope of one project ends where another project begins, by whatever way one comes there.
func TestWaysOutOfAProject(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	_, err := s.ann.CreateMember(t.Context(), tracker.CreateMember{Slug: "stranger", Projects: []string{"theirs"}})
	must(t, err)
	_, err = s.ann.CreateChat(t.Context(), tracker.CreateChat{Slug: "everywhere"})
	must(t, err)
	limited := make([]string, 0, len(scopes()))
	for _, scope := range scopes() {
		limited = append(limited, scope+"@ours")
	}
	const only = "is granted for the project ours only"
	for name, c := range map[string]struct {
		body string
		code abi.Code
		text string
	}{
		"a blocker in the path":   {`{"method":"DELETE","path":"/tasks/OURS-1/dependencies/THEIRS-1"}`, abi.Denied, only},
		"a blocker in the body":   {`{"method":"POST","path":"/tasks/OURS-1/dependencies","body":{"blocked_by":"THEIRS-1"}}`, abi.Denied, only},
		"a parent":                {`{"method":"PATCH","path":"/tasks/OURS-1","body":{"parent":"THEIRS-1"}}`, abi.Denied, only},
		"a name in capitals":      {`{"method":"PATCH","path":"/tasks/OURS-1","body":{"PARENT_ID":"THEIRS-1"}}`, abi.Invalid, "in capitals"},
		"a name in other letters": {`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","project_ſlug":"theirs","title":"t"}}`, abi.Invalid, "not ASCII"},
		"a chat of all projects":  {`{"method":"GET","path":"/chats/everywhere"}`, abi.Denied, only},
		"its messages":            {`{"method":"POST","path":"/chats/everywhere/messages","body":{"content":"x"}}`, abi.Denied, only},
		"a member of another":     {`{"method":"GET","path":"/members/stranger"}`, abi.Denied, only},
	} {
		t.Run(name, func(*testing.T) { s.wants(s.ask(c.body, limited...), c.code, c.text) })
	}
	s.seen = nil
	for _, ref := range []string{"..", ".", "a/b", `a\\b`, `\u0001`, strings.Repeat("x", abi.TrackerMaxRef+1)} {
		s.wants(s.ask(fmt.Sprintf(`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","title":"t","parent_id":"%s"}}`, ref), limited...), abi.Denied, only)
	}
	if len(s.seen) > 0 {
		t.Errorf("asked for %s", s.seen[0].URL)
	}
}

// What is changed is what was looked at, under the id that it has: a key may be another
// task's a moment later.
func TestWhatWasLookedAtIsAskedByItsID(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	task, err := s.ann.GetTask(t.Context(), "OURS-1")
	must(t, err)
	s.wants(s.ask(`{"method":"PATCH","path":"/tasks/OURS-1","body":{"title":"u"}}`, "tasks:write@ours"), abi.OK, `"title":"u"`)
	if last := s.seen[len(s.seen)-1]; last.URL.Path != "/tasks/"+task.ID {
		t.Errorf("asked was %s", last.URL.Path)
	}
}

// What the tracker refuses to show is not believed, whatever stands there.
func TestARefusalIsNoTask(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"id":"x","project":{"slug":"ours"}}`) // who asks has left
	}
	s.wants(s.ask(`{"method":"PATCH","path":"/tasks/OURS-1","body":{"title":"u"}}`, "tasks:write@ours"), abi.Denied, "the project ours only")
	if len(s.seen) != 1 {
		t.Errorf("%d requests were sent, want 1", len(s.seen))
	}
}
