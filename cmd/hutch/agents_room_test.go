//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// H08: whoever watches threads for days leaves connections for runs, and both leave some for
// all that ends at once, however many ask. What is refused does not keep its connection.
func TestH08_StreamsLeaveConnections(t *testing.T) {
	t.Setenv("HUTCH_LIMIT_CONNECTIONS", "8")
	dir, args := agentFolder(t)
	_, url := serveAgents(t, dir, args)
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		for end := time.Now().Add(patientFor); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
			must(t, err)
			req.Header.Set("Content-Type", "application/json")
			client := &http.Client{Transport: &http.Transport{}}
			if resp, err := client.Do(req); err == nil {
				t.Cleanup(func() { _ = resp.Body.Close() })
				return resp
			}
			// A connection is counted for a moment after it has ended.
		}
		t.Fatalf("%s: no connection is left", path)
		return nil
	}
	refused := func(resp *http.Response, why string) {
		t.Helper()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !resp.Close || !strings.Contains(string(text), why) {
			t.Errorf("%s %v %s", resp.Status, resp.Header, text)
		}
	}
	run := func(thread string) *http.Response {
		t.Helper()
		return ask(http.MethodPost, "/agui", fmt.Sprintf(`{"threadId":%q,"runId":"r","protocolVersion":"1.0","messages":[{"id":"m","role":"user","content":"slow"}]}`, thread))
	}
	say(t, url, "t", "r", "hello", "").until(t, "RUN_FINISHED")
	for i := range 16 {
		path := []string{"/agui", "/agents/player/agui"}[i%2]
		resp := ask(http.MethodGet, path+"/threads/t/events?protocolVersion=1.0", "")
		if i >= 4 {
			refused(resp, "4 streams watch threads, at most 4: close one or try again later")
			continue
		}
		streamOf(t, resp, nil)
	}
	for i := range 2 {
		streamOf(t, run(fmt.Sprint("slow", i)), nil).until(t, "RUN_STARTED")
	}
	refused(run("more"), "6 streams are open, at most 6: close one or try again later")
	for _, c := range []struct {
		method, path, body string
		want               int
	}{{http.MethodPost, "/agui/threads/slow0/cancel", `{"runId":"r"}`, http.StatusAccepted}, {http.MethodGet, "/readyz", "", http.StatusOK}} {
		resp := ask(c.method, c.path, c.body)
		_, err := io.Copy(io.Discard, resp.Body)
		must(t, err)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s", c.path, resp.Status)
		}
	}
}

// However few connections there are, an agent can be asked.
func TestRoomForOne(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Setenv("HUTCH_LIMIT_CONNECTIONS", fmt.Sprint(n))
			dir, args := agentFolder(t)
			_, url := serveAgents(t, dir, args)
			say(t, url, "t", "r", "hello", "").until(t, "RUN_FINISHED")
		})
	}
}
