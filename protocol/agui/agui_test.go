package agui

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/transcripts.txtar anew")

// A log is what an operator reads.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// served serves an engine on a loopback address.
func served(t *testing.T, f *fake, o Options) *httptest.Server {
	t.Helper()
	if f.left == nil {
		f.left = new(atomic.Int32)
	}
	server := httptest.NewServer(New(f.open, o))
	t.Cleanup(server.Close)
	return server
}

// do sends a request that is written as a first line, headers, and a body.
func do(t *testing.T, url, request string) (*http.Response, string) {
	t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ": "); ok {
			r.Header.Set(name, value)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func post(in string) string {
	return "POST /agui\nContent-Type: application/json\n\n" + in
}

func asking(text string) string {
	return post(`{"threadId":"t-1","runId":"r-1","protocolVersion":"1.0","messages":[{"id":"u","role":"user","content":"` + text + `"}]}`)
}

// What goes over the wire, with clients of both generations.
func TestS3_001_Transcripts(t *testing.T) {
	const file = "testdata/transcripts.txtar"
	scripts, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := served(t, &fake{}, Options{})
	for i, f := range scripts.Files {
		request, want, _ := strings.Cut(string(f.Data), "=>\n")
		resp, body := do(t, server.URL, strings.TrimSpace(request))
		got := resp.Status + "\n"
		for _, name := range []string{"Content-Type", "Cache-Control", "X-Accel-Buffering", "X-Content-Type-Options", "Retry-After", "Allow"} {
			if value := resp.Header.Get(name); value != "" {
				got += name + ": " + value + "\n"
			}
		}
		got += "\n" + body
		if *update {
			scripts.Files[i].Data = []byte(request + "=>\n" + got)
		} else if got != want {
			t.Errorf("%s: got\n%swant\n%s", f.Name, got, want)
		}
		if strings.Contains(got, "secret") || strings.Contains(body, "\r") {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(scripts), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A thread of someone else is like one that does not exist, to the byte.
func TestE3_15_ThreadsOfOthersDoNotExist(t *testing.T) {
	server := served(t, &fake{}, Options{})
	for _, route := range []string{"GET /agui/threads/%s", "GET /agui/threads/%s/events", "GET /agui/threads/%s/events?runId=r-1", "POST /agui/threads/%s/cancel"} {
		var answers []string
		for _, id := range []string{"theirs", "nothere"} {
			resp, body := do(t, server.URL, fmt.Sprintf(route, id)+"\nContent-Type: application/json\nPrincipal: mine")
			resp.Header.Del("Date")
			answers = append(answers, fmt.Sprint(resp.Status, resp.Header, body))
		}
		if !strings.HasPrefix(answers[0], "404") || answers[0] != answers[1] {
			t.Errorf("%s: %q", route, answers)
		}
		if resp, body := do(t, server.URL, fmt.Sprintf(strings.Replace(route, "/events", "/events?runId=r-1", 1), "theirs")+"\nContent-Type: application/json\nPrincipal: theirs"); !strings.Contains(route, "?") && resp.StatusCode >= 300 {
			t.Errorf("%s for its owner: %s %s", route, resp.Status, body)
		}
	}
}

func TestH20_ErrorsBeforeAStream(t *testing.T) {
	var l log
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  string
	}{
		{event.ErrNotFound, 404, "not_found", ""},
		{&event.Failure{Code: "not_found", Message: "there is no agent", Cause: fmt.Errorf("secret: %w", event.ErrNotFound)}, 404, `not_found","message":"there is no agent`, ""},
		{fmt.Errorf("secret: %w", event.ErrNotRunning), 409, "not_running", ""},
		{&event.Failure{Code: event.CodeInvalid, Message: "resume: no interrupt i waits"}, 400, "invalid_input", ""},
		{&event.Failure{Code: event.CodeForbidden, Message: "the thread may only be read"}, 403, "forbidden", ""},
		{&event.Failure{Code: event.CodeBusy, Message: "16 runs are in progress", Cause: errors.New("secret")}, 429, "busy", "5"},
		{&event.Failure{Code: event.CodeUnavailable, Message: "no store"}, 503, "unavailable", "5"},
		{&event.Failure{Code: event.CodeShutdown, Message: "later"}, 503, "shutdown", "5"},
		{&event.Failure{Code: "duplicate_run_id", Message: "the run r-1 had another input"}, 200, "duplicate_run_id", ""},
		{errors.New("secret"), 200, "internal", ""},
	} {
		f := &fake{refuse: func() error { return c.err }}
		server := served(t, f, Options{Logger: l.logger()})
		resp, body := do(t, server.URL, asking("x"))
		if resp.StatusCode != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) || resp.Header.Get("Retry-After") != c.retry || strings.Contains(body, "secret") {
			t.Errorf("%v: %s %v %s", c.err, resp.Status, resp.Header, body)
		}
	}
	if n := strings.Count(l.String(), "a run failed"); n != 2 || !strings.Contains(l.String(), "error=secret") {
		t.Errorf("the log has %d failures:\n%s", n, &l)
	}
}

// A page of another site can post forms without asking its reader's browser.
func TestH03_FormsAreRefused(t *testing.T) {
	f := &fake{run: func(context.Context, event.Input) iter.Seq2[event.Event, error] {
		t.Error("a run was started")
		return failing()
	}}
	server := served(t, f, Options{})
	for _, kind := range []string{"", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/form-data; boundary=x", "Content-Type: text/plain; application/json", "Content-Type: application/json, text/plain"} {
		for _, route := range []string{"POST /agui", "POST /agui/threads/mine/cancel"} {
			resp, body := do(t, server.URL, route+"\nPrincipal: mine\n"+kind+"\n\n"+waits)
			if resp.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %q: %s %s", route, kind, resp.Status, body)
			}
		}
	}
	twice := httptest.NewRequestWithContext(t.Context(), "POST", "/agui", strings.NewReader(waits))
	twice.Header["Content-Type"] = []string{"application/json", "text/plain"}
	w := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(w, twice)
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("two kinds: %d", w.Code)
	}
}

func TestH14_CursorsOutOfRange(t *testing.T) {
	server := served(t, &fake{}, Options{})
	long := strings.Repeat("x", maxID+1)
	for _, query := range []string{
		"threads?limit=-1", "threads?limit=0", "threads?limit=99999999999999999999", "threads?limit=1e3", "threads?limit=0x10", "threads?after=" + long, "threads?after=%00", "threads?after=%ff",
		"threads/mine?limit=-1", "threads/mine?limit=1001", "threads/mine?before=" + long, "threads/mine?before=%0a", "threads/" + long, "threads/%00",
		"threads/mine/events?runId=" + long, "threads/mine/events?runId=%0d", "threads/" + long + "/events",
	} {
		if resp, body := do(t, server.URL, "GET /agui/"+query+"\nPrincipal: mine"); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40s: %s %s", query, resp.Status, body)
		}
	}
	for _, body := range []string{`{"runId":"` + long + `"}`, `{"runId":"\u0000"}`, `[]`} {
		if resp, answer := do(t, server.URL, "POST /agui/threads/mine/cancel\nPrincipal: mine\nContent-Type: application/json\n\n"+body); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40s: %s %s", body, resp.Status, answer)
		}
	}
}

func TestH18_NobodyIsRefused(t *testing.T) {
	server := httptest.NewServer(New(func(*http.Request) (Engine, error) { return nil, nil }, Options{}))
	defer server.Close()
	for _, request := range []string{asking("x"), "GET /agui/threads", "GET /agui/threads/x", "GET /agui/threads/x/events", "GET /agui/capabilities", "POST /agui/threads/x/cancel"} {
		if resp, body := do(t, server.URL, request); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s %s", request, resp.Status, body)
		}
	}
}

func TestPanicsCutOff(t *testing.T) {
	var l log
	server := served(t, &fake{}, Options{Logger: l.logger()})
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/agui/capabilities", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Principal", "broken")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(r); err == nil {
		t.Errorf("%s", resp.Status)
		_ = resp.Body.Close()
	}
	if !strings.Contains(l.String(), "panic=secret") {
		t.Errorf("the log says\n%s", &l)
	}
}
