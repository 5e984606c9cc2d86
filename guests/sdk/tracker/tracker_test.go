package tracker_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// asked is a tracker that answers with what it was asked.
func asked(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, 100)
	n, _ := r.Body.Read(body)
	_, _ = fmt.Fprintf(w, `{"asked":%q}`, r.Method+" "+r.URL.EscapedPath()+" "+r.URL.RawQuery+" "+r.Header.Get("Content-Type")+" "+string(body[:n]))
}

// within runs do as a tool of a module that asks for a scope.
func within(t *testing.T, h http.HandlerFunc, scopes []sdk.Scope, do func(c *sdk.Call) error) sdktest.Result {
	t.Helper()
	m := &sdk.Module{Requests: sdk.Requests{Tracker: scopes}, Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{Name: "do", Description: "Does."}, func(c *sdk.Call, _ struct{}) (string, error) { return "", do(c) }),
	}}
	host := sdktest.Host{}
	if h != nil {
		host.Tracker = h
	}
	return host.Call(t, m, "do", nil)
}

func some() []sdk.Scope { return []sdk.Scope{{Name: "tasks:read", Reason: "Tests."}} }

func TestRequests(t *testing.T) {
	var out struct{ Asked string }
	for want, ask := range map[string]func(*sdk.Call) error{
		"GET /tasks/%2315 q=a+b%26c  ": func(c *sdk.Call) error {
			return tracker.Get(c, tracker.Path("tasks", " #15 "), map[string]string{"q": "a b&c", "status": ""}, &out)
		},
		`POST /a%2Fb  application/json {"x":1}`: func(c *sdk.Call) error { return tracker.Post(c, tracker.Path("a/b"), map[string]int{"x": 1}, &out) },
		`PATCH /a  application/json {}`:         func(c *sdk.Call) error { return tracker.Patch(c, "/a", struct{}{}, &out) },
		"DELETE /a   ":                          func(c *sdk.Call) error { return tracker.Delete(c, "/a", &out) },
	} {
		if got := within(t, asked, some(), ask); got.IsError || out.Asked != want {
			t.Errorf("got %q, %s, want %q", out.Asked, got.Text, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	get := func(c *sdk.Call) error { return tracker.Get(c, "/tasks", nil, &struct{}{}) }
	for want, h := range map[string]http.HandlerFunc{
		"no: do so": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"error":{"code":"c","message":"no","hint":"do so"}}`))
		},
		"the tracker answered with status 404":                            http.NotFound,
		"the tracker gave an answer that cannot be read":                  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[]`)) },
		"tracker_request: tracker_unavailable: no tracker is set up here": nil,
	} {
		if got := within(t, h, some(), get); !got.IsError || got.Text != want {
			t.Errorf("got %q, want %q", got.Text, want)
		}
	}
	if got := within(t, asked, nil, get); !strings.Contains(got.Text, "Requests have no Tracker") {
		t.Errorf("got %q", got.Text)
	}
	within(t, http.NotFound, some(), func(c *sdk.Call) error {
		var e *tracker.Error
		if err := get(c); !errors.As(err, &e) || e.Status != http.StatusNotFound {
			t.Errorf("got %v", err)
		}
		return nil
	})
}

// A list has 50 lines, and says how many there are besides.
func TestLists(t *testing.T) {
	long := tracker.Page[string]{NextCursor: "next"}
	for range 51 {
		long.Items = append(long.Items, strings.Repeat("a ", 100))
	}
	list := func(*sdk.Call, struct{}) (tracker.Page[string], error) { return long, nil }
	m := &sdk.Module{Requests: sdk.Requests{Tracker: some()}, Tools: []sdk.Tool{
		sdk.Define(sdk.Spec{Name: "do", Description: "Does."}, tracker.Listed(list, tracker.Text{En: "There are %d", Ru: "Всего %d"}, tracker.Cut)),
	}}
	for lang, ends := range map[string][2]string{
		"":   {"There are 51\n- a a", "…\nand 1 more here\nThere are more: call again with cursor next"},
		"RU": {"Всего 51\n- a a", "…\nи ещё 1 здесь\nЕсть ещё: повтори вызов с cursor next"},
	} {
		got := sdktest.Host{Config: map[string]string{"lang": lang}}.Call(t, m, "do", nil)
		var items []string
		got.Into(t, &items)
		if !strings.HasPrefix(got.Text, ends[0]) || !strings.HasSuffix(got.Text, ends[1]) || strings.Count(got.Text, "\n- ") != 50 || len(items) != 51 {
			t.Errorf("%s: got %d items, %q", lang, len(items), got.Text)
		}
	}
	long = tracker.Page[string]{}
	if got := sdktest.Call(t, m, "do", nil); string(got.Structured) != "[]" || got.Text != "There are 0" {
		t.Errorf("got %s, %q", got.Structured, got.Text)
	}
	if d, err := m.Describe(); err != nil || strings.Contains(string(d), "outputSchema") {
		t.Errorf("described as %s, %v", d, err)
	}
}
