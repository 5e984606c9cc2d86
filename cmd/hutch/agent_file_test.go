package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/secrets"
)

// S1-011, S1-059, H-18: an agent.json is read as it is.
func TestS1_011_S1_059_AgentFileIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want agentFile
	}{
		"all": {`{"slug": "coder", "name": "Coder", "token": "t0ken", "tracker_url": "https://t.example/api/v1",
			"capabilities": ["coding","review"], "chat_listen": "mentions", "task_listen": "assigned"}`,
			agentFile{Slug: "coder", Name: "Coder", Token: secrets.Hide("token", "t0ken"), TrackerURL: "https://t.example/api/v1",
				Capabilities: []string{"coding", "review"}, Chat: "mentions", Tasks: "assigned"}},
		"nothing":                {`{}`, agentFile{}},
		"the older name":         {`{"listen": "all"}`, agentFile{Chat: "all"}},
		"both names":             {`{"chat_listen": "none", "listen": "all"}`, agentFile{Chat: "none"}},
		"no capabilities":        {`{"capabilities": []}`, agentFile{Capabilities: []string{}}},
		"tabs and escapes":       {"{\n\t\"name\":\t\"\\u041a\\u043e\\u0434\"\n}", agentFile{Name: "Код"}},
		"keys of other programs": {`{"model": {"name": "x"}, "slug": "a", "anthropic_api_key": null}`, agentFile{Slug: "a", unknown: []string{"model", "anthropic_api_key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseAgentFile([]byte(c.body))
			must(t, err)
			if got.Token.Reveal() != c.want.Token.Reveal() {
				t.Errorf("token %q, want %q", got.Token.Reveal(), c.want.Token.Reveal())
			}
			got.Token, c.want.Token = secrets.Value{}, secrets.Value{}
			if g, w := shownFile(got), shownFile(c.want); g != w {
				t.Errorf("%s, want %s", g, w)
			}
		})
	}
}

func shownFile(f agentFile) string {
	text, err := json.Marshal([]any{f.Slug, f.Name, f.TrackerURL, f.Tasks, f.Chat, f.Capabilities, f.unknown})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// What is wrong is said with its key, and a token is never repeated.
func TestAgentFileThatIsWrong(t *testing.T) {
	long := strings.Repeat("x", maxFileToken+1)
	for body, want := range map[string]string{
		``:                             "",
		`[]`:                           "found array, an object is wanted",
		`"hunter2"`:                    "found string, an object is wanted",
		`{"slug": 1}`:                  "slug: found number, a text is wanted",
		`{"slug": null}`:               "slug: found null, a text is wanted",
		`{"slug": ""}`:                 "slug: empty: write one, or leave the key away",
		`{"slug": "Coder"}`:            `slug: "Coder": a member of a tracker has small letters`,
		`{"slug": "-a"}`:               `slug: "-a": a member of a tracker has small letters`,
		`{"slug": "all"}`:              `slug: "all": that has a meaning of its own in a tracker`,
		`{"slug": "a", "slug": "b"}`:   "",
		`{"token": ["hunter2"]}`:       "token: found array, a text is wanted",
		`{"token": "hunter 2"}`:        "token: no token: it has 1 to 4096",
		`{"token": "hunter2\n"}`:       "token: no token: it has 1 to 4096",
		`{"token": "` + long + `"}`:    "token: no token: it has 1 to 4096",
		`{"capabilities": "hunter2"}`:  "capabilities: found string, a list of texts is wanted",
		`{"capabilities": ["a", 2]}`:   "capabilities: 1: found number, a text is wanted",
		`{"capabilities": ["a", "a"]}`: `capabilities: "a": stands there twice`,
		`{"capabilities": ["a,b"]}`:    `capabilities: "a,b": a capability is a text of 1 to 64 bytes without a comma`,
		`{"chat_listen": "some"}`:      `chat_listen: "some": allowed are mentions, all, none`,
		`{"task_listen": "mentions"}`:  `task_listen: "mentions": allowed are assigned, all, none`,
		`{"listen": true}`:             "listen: found boolean, a text is wanted",
		`{"name": "` + strings.Repeat("n", 201) + `"}`: "name: 201 bytes: at most 200 are allowed",
		`{"slug": "a"} {}`: "",
	} {
		_, err := parseAgentFile([]byte(body))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", short(body), err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", short(body), err)
		}
	}
}

func short(text string) string { return text[:min(len(text), 60)] }

// A token is taken from a file that nobody else can read, and from no other.
func TestAgentFileWithATokenIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(body), mode))
		must(t, os.Chmod(path, mode))
		return path
	}
	f, err := readAgentFile(write("own.json", `{"slug": "coder", "token": "t0ken"}`, 0o600))
	must(t, err)
	if f.Token.Reveal() != "t0ken" || strings.Contains(f.Token.String(), "t0ken") {
		t.Errorf("token %q is shown as %q", f.Token.Reveal(), f.Token)
	}
	if _, err := readAgentFile(write("open.json", `{"slug": "coder"}`, 0o644)); err != nil {
		t.Errorf("one without a token: %v", err)
	}
	if _, err := readAgentFile(write("large.json", `{"slug": "coder"}`+strings.Repeat(" ", maxAgentFile), 0o600)); err == nil {
		t.Error("one that is too large is taken")
	}
	if runtime.GOOS == "windows" { // it has lists in place of mode bits
		return
	}
	f, err = readAgentFile(write("shared.json", `{"slug": "coder", "token": "hunter2"}`, 0o644))
	if err == nil || f.Token.Reveal() != "" || !strings.Contains(hintOf(err), "chmod") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("one that others can read: %v, hint %q", err, hintOf(err))
	}
}

func FuzzAgentFile(f *testing.F) {
	f.Add([]byte(`{"slug": "coder", "name": "Coder", "token": "t0ken", "tracker_url": "https://t.example/api/v1", "capabilities": ["coding"], "chat_listen": "mentions", "task_listen": "assigned", "listen": "all", "x": 1}`))
	f.Add([]byte(`{"capabilities": [1], "slug": "\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseAgentFile(body)
		if err != nil {
			if got.Slug != "" || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%+v, %q", got, err)
			}
			return
		}
		if got.Slug != "" && checkSlug(got.Slug) != nil || checkCapabilities(got.Capabilities) != nil || len(got.Token.Reveal()) > maxFileToken ||
			got.Chat != "" && !slices.Contains(chatListens(), got.Chat) || got.Tasks != "" && !slices.Contains(taskListens(), got.Tasks) {
			t.Fatalf("taken: %+v", got)
		}
	})
}
