package trackerclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/trackerclient"
)

// A request of somebody else's is tried again where that is safe, each time whole, and its
// last answer is returned whatever it is.
func TestH_12_RequestsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		method, key string
		fails       int // how many answers are failures
		with        int
		tries, code int
	}{
		"get":               {"GET", "", 1, 503, 2, 200},
		"get, always":       {"GET", "", 9, 502, 3, 502},
		"post with a key":   {"POST", "k", 1, 429, 2, 200},
		"post without one":  {"POST", "", 1, 503, 1, 503},
		"patch":             {"PATCH", "", 1, 503, 1, 503},
		"what is final":     {"GET", "", 1, 500, 1, 500},
		"a redirect":        {"GET", "", 1, 302, 1, 302},
		"delete with a key": {"DELETE", "k", 2, 504, 3, 200},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tries++
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != "whole" || r.Header.Get("Authorization") != "Bearer theirs" || r.Header.Get("Idempotency-Key") != c.key {
					t.Errorf("try %d: %q, %v, %v", tries, body, err, r.Header)
				}
				if tries <= c.fails {
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(c.with)
				}
				_, _ = io.WriteString(w, "answer")
			}))
			defer server.Close()
			client, err := trackerclient.New(server.URL, "", trackerclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+"/tasks", strings.NewReader("whole"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer theirs")
			if c.key != "" {
				r.Header.Set("Idempotency-Key", c.key)
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil || string(text) != "answer" || resp.StatusCode != c.code || tries != c.tries {
				t.Errorf("%d %q after %d tries, %v; want %d after %d", resp.StatusCode, text, tries, err, c.code, c.tries)
			}
		})
	}
}

// It ends with its context, and a body that can be read once is sent once.
func TestRequestsOfOthersEnd(t *testing.T) {
	tries := 0
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Header.Get("Cancel") != "" {
			cancel()
		}
	}))
	defer server.Close()
	client, err := trackerclient.New(server.URL, "", trackerclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"once", "cancelled"} {
		var body io.Reader
		if name == "once" {
			body = io.MultiReader(strings.NewReader(name))
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		if tries = 0; name == "cancelled" {
			r.Header.Set("Cancel", "yes")
		}
		if resp, err := client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
		if tries != 1 {
			t.Errorf("%s: %d tries", name, tries)
		}
	}
}
