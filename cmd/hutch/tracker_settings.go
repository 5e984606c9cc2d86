package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/runtime/board"
)

// trackerConfig says which tracker there is, and of the one in this program how it behaves.
type trackerConfig struct {
	// URL is that of the routes of a tracker elsewhere; empty is the one in this program.
	URL string
	// TokenFile and TokenEnv say where the token for it is; at most one of them.
	TokenFile, TokenEnv string
	// Token is one that was read already, and goes before both.
	Token secrets.Value
	// AllowPlain lets that token go unencrypted to another machine.
	AllowPlain bool
	// Events is the set of names of events.
	Events string
	// Review forbids an agent to set its own task to done.
	Review bool
	// KeepAnswers is how long an idempotency key is known.
	KeepAnswers time.Duration
	// Sockets is how many agents may be connected.
	Sockets int
}

// Keys of the tracker.
const (
	keyTrackerURL   = "tracker.url"
	keyTrackerToken = "tracker.token_file"
	keyTrackerEnv   = "tracker.token_env"
	keyTrackerPlain = "tracker.allow_plain"

	envTrackerURL   = "HUTCH_TRACKER_URL"
	envTrackerToken = "HUTCH_TRACKER_TOKEN_FILE"
)

// maxTrackerToken is the largest file with a token, in bytes.
const maxTrackerToken = 4 << 10

func trackerSettings() []setting {
	return []setting{
		{key: keyTrackerURL, env: envTrackerURL, flag: flagURL, fallback: "the one in this program", derived: true, allowed: "where its routes are", example: "https://tracker.example.org/api/v1",
			means: "tracker that tools and agents work with", set: func(cfg *Config, values []string) error {
				cfg.Tracker.URL = values[0]
				return checkTrackerURL(values[0])
			}},
		{key: keyTrackerToken, env: envTrackerToken, flag: flagTokenFile, fallback: "none", derived: true, allowed: "a file of mode 0600", example: "tracker-token",
			means: "token for the tracker of tracker.url", path: true, set: func(cfg *Config, values []string) error { cfg.Tracker.TokenFile = values[0]; return nil }},
		{key: keyTrackerEnv, env: "HUTCH_TRACKER_TOKEN_ENV", fallback: "none", derived: true, allowed: "the name of a variable", example: "TRACKER_TOKEN",
			means: "variable that has it, in place of a file", instead: "token_file", set: func(cfg *Config, values []string) error { cfg.Tracker.TokenEnv = values[0]; return nil }},
		{key: keyTrackerPlain, env: "HUTCH_TRACKER_ALLOW_PLAIN", fallback: "false", allowed: "true, false", example: "true",
			means: "send it to another machine without TLS", set: truth(func(cfg *Config) *bool { return &cfg.Tracker.AllowPlain })},
		{key: "tracker.events", env: "HUTCH_TRACKER_EVENTS", fallback: "v1", allowed: "v1, v2", example: "v2",
			means: "names of the events that agents are sent: v2 has message.new for every message", set: func(cfg *Config, values []string) error {
				if cfg.Tracker.Events = values[0]; values[0] != "v1" && values[0] != "v2" {
					return fmt.Errorf("%s: allowed are v1 and v2", quoted(values[0]))
				}
				return nil
			}},
		{key: "tracker.require_review", env: "HUTCH_TRACKER_REQUIRE_REVIEW", fallback: "false", allowed: "true, false", example: "true",
			means: "let no agent set its own task to done", set: truth(func(cfg *Config) *bool { return &cfg.Tracker.Review })},
		{key: "tracker.keep_answers", env: "HUTCH_TRACKER_KEEP_ANSWERS", fallback: "24h", allowed: fmt.Sprintf("1ms to %dh", longest/time.Hour), example: "24h",
			means: "how long an idempotency key is known", set: func(cfg *Config, values []string) error {
				return setDurationUpTo(&cfg.Tracker.KeepAnswers, values[0], longest)
			}},
		{key: "tracker.sockets", env: "HUTCH_TRACKER_SOCKETS", fallback: "4096", allowed: "1 to 100000", example: "4096",
			means: "agents that may be connected at once; each takes one of limits.connections", set: func(cfg *Config, values []string) error { return setCount(&cfg.Tracker.Sockets, values[0], 100_000) }},
	}
}

// checkTrackerURL refuses what is not the address of a tracker. Whether a token may go there
// is looked at when it does.
func checkTrackerURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("it is no address of a tracker: write https://HOST/api/v1")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("it has more than a host and a path: write https://HOST/api/v1")
	}
	return nil
}

// checkTracker returns what is wrong with a tracker elsewhere, which is not asked for that.
func (cfg Config) checkTracker(env func(string) string) (wrong []error) {
	c, given := cfg.Tracker, cfg.given
	named := cmp.Or(given[keyTrackerToken].at, given[keyTrackerEnv].at)
	switch {
	case c.TokenFile != "" && c.TokenEnv != "":
		return []error{usagef("%s: there is %s too, and one of them has the token: take one away", given[keyTrackerEnv].place(keyTrackerEnv), keyTrackerToken)}
	case c.URL == "" && named != "":
		return []error{usagef("%s: there is no %s: a token goes with its tracker", named, keyTrackerURL)}
	case c.URL == "":
		return nil
	}
	place := cmp.Or(given[keyTrackerURL].place(keyTrackerURL), keyTrackerURL)
	all := c.hasToken()
	if all {
		wrong = append(wrong, prefixedAll(place, c.reachable(env))...)
	}
	for _, a := range cfg.Agents {
		if a.Tracker.hasToken() {
			all = true
			wrong = append(wrong, prefixedAll(agentKey(a.Name, "tracker"), cfg.trackerOf(a.Name).reachable(env))...)
		}
	}
	if !all {
		wrong = append(wrong, usagef("%s: %w", place, errNoToken))
	}
	return wrong
}

// errNoToken says that a tracker elsewhere has been named without a token for it.
var errNoToken = errors.New("there is no token for it: name a file in " + keyTrackerToken)

func (c trackerConfig) hasToken() bool {
	return c.TokenFile != "" || c.TokenEnv != "" || c.Token.Reveal() != ""
}

func prefixedAll(place string, err error) []error {
	if err == nil {
		return nil
	}
	return []error{usagef("%s: %w", place, err)}
}

// reachable is why there is no client of a tracker elsewhere; nil if there is one.
func (c trackerConfig) reachable(env func(string) string) error {
	client, err := c.client(env, trackerclient.Options{})
	if err == nil {
		client.Close()
	}
	return err
}

// token reads the token. Its error has nothing of it.
func (c trackerConfig) token(env func(string) string) (secrets.Value, error) {
	switch {
	case !c.hasToken():
		return secrets.Value{}, errNoToken
	case c.Token.Reveal() != "":
		return c.Token, nil
	}
	var text []byte
	if c.TokenFile == "" {
		text = []byte(env(c.TokenEnv))
	} else {
		var err error
		if text, err = readOwn(keyTrackerToken, c.TokenFile, maxTrackerToken, ownfile.Needs{Private: true}); err != nil {
			return secrets.Value{}, err
		}
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return secrets.Value{}, fmt.Errorf("the token for the tracker in %s is empty", cmp.Or(quotedIf(c.TokenFile), c.TokenEnv))
	}
	if bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return secrets.Value{}, fmt.Errorf("the token for the tracker in %s has characters that no token has", cmp.Or(quotedIf(c.TokenFile), c.TokenEnv))
	}
	return secrets.Hide("tracker token", string(text)), nil
}

func quotedIf(text string) string {
	if text == "" {
		return ""
	}
	return quoted(text)
}

// client returns a client of the tracker elsewhere.
func (c trackerConfig) client(env func(string) string, o trackerclient.Options) (*trackerclient.Client, error) {
	token, err := c.token(env)
	if err != nil {
		return nil, err
	}
	o.AllowPlain = c.AllowPlain
	client, err := trackerclient.New(c.URL, token.Reveal(), o)
	if err != nil && !c.AllowPlain {
		err = fmt.Errorf("%w with %s", err, keyTrackerPlain)
	}
	return client, err
}

func (c trackerConfig) board() board.Options {
	return board.Options{RequireReview: c.Review, AnswersFor: c.KeepAnswers}
}
