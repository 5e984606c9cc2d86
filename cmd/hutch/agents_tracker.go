package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/tracker"
)

// agentTracker is how an agent takes part in a tracker.
type agentTracker struct {
	// Tasks and Chat say of what it is told.
	Tasks, Chat string
	// Parallel is how many tasks it works on at once.
	Parallel int
	// Capabilities are what it says that it can do.
	Capabilities []string
	// Lang is the language in which it is told of its tasks.
	Lang string
	// TokenFile and TokenEnv say where its token for a tracker elsewhere is, where it has one
	// of its own. Token is one that was read already.
	TokenFile, TokenEnv string
	Token               secrets.Value `json:"-"`
}

// What an agent hears of tasks and chats.
const (
	listenAssigned = "assigned"
	listenMentions = "mentions"
	listenAll      = "all"
	listenNone     = "none"
)

func taskListens() []string { return []string{listenAssigned, listenAll, listenNone} }
func chatListens() []string { return []string{listenMentions, listenAll, listenNone} }

// langs are the languages that there are prompts in.
func langs() []string { return []string{"en", "ru"} }

// mostTasksAtOnce is how many tasks an agent can be given at once.
const mostTasksAtOnce = 64

// listens reports whether the agent hears anything of a tracker.
func (t agentTracker) listens() bool { return t.Tasks != listenNone || t.Chat != listenNone }

// tracker are what it does in a tracker.
func (f agentField) tracker() []setting {
	return []setting{
		{key: "tracker.tasks", fallback: listenAssigned, allowed: strings.Join(taskListens(), ", "), example: listenAssigned,
			means: "tasks that it works on: those assigned to it, also free ones that it can do, none", set: f.word(func(a *agentConfig) *string { return &a.Tracker.Tasks }, taskListens()...)},
		{key: "tracker.chat", fallback: listenMentions, allowed: strings.Join(chatListens(), ", "), example: listenMentions,
			means: "messages that it hears: those that name it, all, none", set: f.word(func(a *agentConfig) *string { return &a.Tracker.Chat }, chatListens()...)},
		{key: "tracker.parallel", fallback: "2", allowed: fmt.Sprintf("1 to %d", mostTasksAtOnce), example: "2",
			means: "tasks that it works on at once", set: f.take(func(a *agentConfig, text string) error { return setCount(&a.Tracker.Parallel, text, mostTasksAtOnce) })},
		{key: "tracker.capabilities", fallback: "none", derived: true, allowed: "words", example: "[coding, review]",
			means: "what it can do, as others read it", many: true, set: func(cfg *Config, values []string) error {
				cfg.agent(string(f)).Tracker.Capabilities = values
				return checkCapabilities(values)
			}},
		{key: "tracker.lang", fallback: "en", allowed: strings.Join(langs(), ", "), example: "en",
			means: "language in which it is told of its tasks", set: f.word(func(a *agentConfig) *string { return &a.Tracker.Lang }, langs()...)},
		{key: "tracker.token_file", fallback: "that of all tools and agents", derived: true, allowed: "a file of mode 0600", example: "coder-token",
			means: "its own token for the tracker of tracker.url", path: true, set: f.word(func(a *agentConfig) *string { return &a.Tracker.TokenFile })},
		{key: "tracker.token_env", fallback: "none", derived: true, allowed: "the name of a variable", instead: "token_file", example: "CODER_TOKEN",
			means: "variable that has it", set: f.checked(func(a *agentConfig) *string { return &a.Tracker.TokenEnv }, checkVariable)},
	}
}

// trackerOf is how an agent reaches a tracker elsewhere: with its own token if it has one.
func (cfg Config) trackerOf(agent string) trackerConfig {
	c := cfg.Tracker
	for _, a := range cfg.Agents {
		if own := a.Tracker; a.Name == agent && own.hasToken() {
			c.TokenFile, c.TokenEnv, c.Token = own.TokenFile, own.TokenEnv, own.Token
		}
	}
	return c
}

func (t agentTracker) hasToken() bool {
	return t.TokenFile != "" || t.TokenEnv != "" || t.Token.Reveal() != ""
}

// checkCapabilities refuses what a tracker would not take as one.
func checkCapabilities(words []string) error {
	if len(words) > tracker.MaxLabels {
		return fmt.Errorf("%d capabilities: at most %d are allowed", len(words), tracker.MaxLabels)
	}
	for i, w := range words {
		switch {
		case strings.TrimSpace(w) == "" || len(w) > tracker.MaxLabel || strings.Contains(w, ",") || !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl):
			return fmt.Errorf("%s: a capability is a text of 1 to %d bytes without a comma", quoted(w), tracker.MaxLabel)
		case slices.Contains(words[:i], w):
			return fmt.Errorf("%s: stands there twice", quoted(w))
		}
	}
	return nil
}

// memberSlug is what members of a tracker are called, and reservedSlugs mean something else.
var (
	memberSlug    = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$`)
	memberID      = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	reservedSlugs = regexp.MustCompile(`^(?:me|all|none)$`)
)

// checkSlug refuses what no member can be called.
func checkSlug(slug string) error {
	if !memberSlug.MatchString(slug) || memberID.MatchString(slug) {
		return fmt.Errorf("%s: a member of a tracker has small letters, digits, and - and _ between them, at most 64, and no id for a name", quoted(slug))
	}
	if reservedSlugs.MatchString(slug) {
		return fmt.Errorf("%s: that has a meaning of its own in a tracker", quoted(slug))
	}
	return nil
}
