package trackerproxy

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// FuzzPath: a path that is accepted stays below the tracker's address, and has the segments
// that were checked, however it was spelled.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"", "/", "/tasks", "/tasks/TE-15", "/tasks/%231", "/tasks/..", "/tasks/%2e%2E", "/tasks/%252e%252e", "//evil.example/tasks", "/tasks/a%2fb", `/tasks/a\b`,
		"/tasks/a;b=c", "/tasks/a?b", "/tasks/a#b", "/tasks/%", "/tasks/%00", "/tasks/\xff", "/tasks/ ", "/tasks/+", "/tasks/&", "/tasks/@me", "/tasks/:", "/%74asks",
		"/tasks/🙂", "/tasks/" + strings.Repeat("a", abi.TrackerMaxRef+1), strings.Repeat("/a", abi.TrackerMaxPath/2+1), "http://evil.example/", "/http:/x",
	} {
		f.Add(path)
	}
	base, err := url.Parse("https://tracker.example/api/v1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		segments, err := parsePath(path)
		if err != nil {
			return
		}
		joined := joinPath(segments)
		got, err := url.Parse(base.String() + joined)
		if err != nil || got.Host != base.Host || got.Scheme != base.Scheme || got.User != nil || got.RawQuery != "" || got.Fragment != "" {
			t.Fatalf("%q leads to %v, %v", path, got, err)
		}
		if parts := strings.Split(got.Path, "/")[3:]; !slices.Equal(parts, segments) {
			t.Fatalf("%q is asked as %q, checked were %q", path, parts, segments)
		}
		if clean := got.JoinPath(); clean.Path != got.Path {
			t.Fatalf("%q is %q when it is cleaned", got.Path, clean.Path)
		}
		if again, err := parsePath(joined); err != nil || !slices.Equal(again, segments) {
			t.Fatalf("%q is read as %q, %v", joined, again, err)
		}
	})
}

// FuzzRequest: what a guest sends is read as it stands there, or refused.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		``, `null`, `{}`, `{"method":"GET","path":"/tasks"}`, `{"method":"GET","path":"/tasks","query":{"q":"x"},"body":null}`, `{"Method":"GET","path":"/tasks"}`,
		`{"method":"GET","method":"POST","path":"/tasks"}`, `{"method":"POST","path":"/tasks","body":{"a":1}}`, `{"method":"POST","path":"/tasks","body":[]}`,
		`{"method":"GET","path":"/tasks","query":{"q&x":"y"}}`, `{"method":"GET","path":"/tasks","query":{"q":5}}`, `{"method":"GET","path":"/tasks"}{}`,
		`{"method":"GET\r\nX: y","path":"/tasks"}`, `{"method":"GET","path":"/tasks","token":"x"}`, `{"method":"POST","path":"/tasks","body":{"project_slug":"a","project_slug":"b"}}`,
		`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","project_ſlug":"theirs"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := decode(body)
		if err != nil {
			var known *refusal
			if !errors.As(err, &known) || known.code != abi.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		for name := range in.Query {
			if url.QueryEscape(name) != name {
				t.Fatalf("the parameter %q", name)
			}
		}
		if in.Body != nil && (!json.Valid(in.Body) || in.Method == "GET") {
			t.Fatalf("%s with the body %s", in.Method, in.Body)
		}
		s := &sending{body: in.Body, granted: grants{projects: []string{"ours"}}, route: route{scope: "tasks:write"}}
		if s.confineBody() != nil {
			return
		}
		// Whoever reads names in any case, and the last of those that are there twice, reads
		// the project that was checked.
		var read struct {
			Slug string `json:"project_slug"`
			ID   string `json:"project_id"`
			Name string `json:"project"`
		}
		if err := json.Unmarshal(in.Body, &read); err != nil {
			return // it is none for the tracker either
		}
		for _, project := range []string{read.Slug, read.ID, read.Name} {
			if project != "" && project != "ours" {
				t.Fatalf("%s was let through", in.Body)
			}
		}
	})
}
