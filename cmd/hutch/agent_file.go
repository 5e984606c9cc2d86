package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// agentFile is an agent.json: who an agent is in a tracker, and where that is (S1-011,
// S1-059). Empty fields were not in it.
type agentFile struct {
	Slug, Name, TrackerURL string
	Token                  secrets.Value
	Tasks, Chat            string
	// Capabilities are nil if there were none.
	Capabilities []string
	// unknown are the keys that mean nothing here, in their order.
	unknown []string
}

// maxAgentFile is the largest agent.json, in bytes; it holds a few lines.
const maxAgentFile = 64 << 10

// maxFileToken is the longest token that is taken, in bytes.
const maxFileToken = 4096

// readAgentFile reads an agent.json. One with a token has to be its owner's alone.
func readAgentFile(path string) (f agentFile, err error) {
	body, err := readOwn("agent file", path, maxAgentFile, ownfile.Needs{})
	if err != nil {
		return f, err
	}
	if f, err = parseAgentFile(body); err == nil && f.Token.Reveal() != "" {
		if body, err = readOwn("agent file", path, maxAgentFile, ownfile.Needs{Private: true}); err != nil {
			return agentFile{}, err // it says what to type
		}
		f, err = parseAgentFile(body)
	}
	if err != nil {
		return agentFile{}, fmt.Errorf("agent file %s: %w", quoted(path), err)
	}
	return f, nil
}

// parseAgentFile takes the text of an agent.json. Keys that it does not know it names: other
// programs have theirs in the same file (H-18).
func parseAgentFile(body []byte) (f agentFile, err error) {
	all, err := rawjson.Parse(body, rawjson.MaxDepth)
	switch {
	case err != nil:
		return f, err
	case !all.Is(rawjson.Object):
		return f, fmt.Errorf("found %s, an object is wanted", all.Kind)
	}
	keys := agentFileKeys()
	for _, key := range keys {
		v := all.Get(key.name)
		if v == nil {
			continue
		}
		if err := key.set(&f, v); err != nil {
			return agentFile{}, fmt.Errorf("%s: %w", key.name, err)
		}
	}
	for _, m := range all.Members {
		if !slices.ContainsFunc(keys, func(k agentFileKey) bool { return k.name == m.Name }) {
			f.unknown = append(f.unknown, m.Name)
		}
	}
	return f, nil
}

// agentFileKey is one key of an agent.json.
type agentFileKey struct {
	name string
	set  func(*agentFile, *rawjson.Node) error
}

// agentFileKeys returns all that mean something here. listen is the older name of chat_listen
// (C-08), which wins where both stand, so it is looked at first.
func agentFileKeys() []agentFileKey {
	return []agentFileKey{
		{"slug", fileText(func(f *agentFile, text string) error { f.Slug = text; return checkSlug(text) })},
		{"name", fileText(func(f *agentFile, text string) error { f.Name = text; return checkName(text) })},
		{"token", fileToken},
		{"tracker_url", fileText(func(f *agentFile, text string) error { f.TrackerURL = text; return nil })},
		{"capabilities", fileTexts(func(f *agentFile, texts []string) error { f.Capabilities = texts; return checkCapabilities(texts) })},
		{"listen", fileText(func(f *agentFile, text string) error { f.Chat = text; return oneOf(text, chatListens()) })},
		{"chat_listen", fileText(func(f *agentFile, text string) error { f.Chat = text; return oneOf(text, chatListens()) })},
		{"task_listen", fileText(func(f *agentFile, text string) error { f.Tasks = text; return oneOf(text, taskListens()) })},
	}
}

// fileToken takes a token, which errors do not repeat.
func fileToken(f *agentFile, v *rawjson.Node) error {
	text, err := textOf(v)
	switch {
	case err != nil:
		return err
	case len(text) > maxFileToken || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("no token: it has 1 to %d letters, digits and signs, and no space", maxFileToken)
	}
	f.Token = secrets.Hide("token", text)
	return nil
}

func oneOf(text string, allowed []string) error {
	if !slices.Contains(allowed, text) {
		return fmt.Errorf("%s: allowed are %s", quoted(text), strings.Join(allowed, ", "))
	}
	return nil
}

func checkName(text string) error {
	if len(text) > tracker.MaxName {
		return fmt.Errorf("%d bytes: at most %d are allowed", len(text), tracker.MaxName)
	}
	return nil
}

// textOf is a text that says something.
func textOf(v *rawjson.Node) (string, error) {
	switch {
	case !v.Is(rawjson.String):
		return "", fmt.Errorf("found %s, a text is wanted", v.Kind)
	case strings.TrimSpace(v.Str()) == "":
		return "", fmt.Errorf("empty: write one, or leave the key away")
	}
	return v.Str(), nil
}

func fileText(set func(*agentFile, string) error) func(*agentFile, *rawjson.Node) error {
	return func(f *agentFile, v *rawjson.Node) error {
		text, err := textOf(v)
		if err != nil {
			return err
		}
		return set(f, text)
	}
}

func fileTexts(set func(*agentFile, []string) error) func(*agentFile, *rawjson.Node) error {
	return func(f *agentFile, v *rawjson.Node) error {
		if !v.Is(rawjson.Array) {
			return fmt.Errorf("found %s, a list of texts is wanted", v.Kind)
		}
		texts := []string{}
		for i, item := range v.Items {
			text, err := textOf(item)
			if err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
			texts = append(texts, text)
		}
		return set(f, texts)
	}
}
