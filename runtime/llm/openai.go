// Package llm talks to an OpenAI-compatible model.
//
// [OpenAI] and the models of package script, which are played, have one method in common,
// which an agent calls for each turn; requirement S3-026 calls it LlmClient:
//
//	Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error]
//
// Nothing happens before the sequence is ranged over, on the goroutine that does; each
// range is a turn of its own. An error is the last of a sequence and wraps one of
// package chat's, or is that of ctx. Models are safe for use by several goroutines, keep
// nothing of a request, start no goroutine, and write no log.
package llm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/hutch-run/hutch/protocol/chat"
)

// OpenAIOptions are what a model behind the chat completions API may be told. The zero
// value works with most providers.
type OpenAIOptions struct {
	// Model is asked when a request names none.
	Model string
	// Key is sent as a bearer token. KeyFile holds one instead, on one line, and is read
	// for each attempt, so that a key can be changed while it is in use. Neither: none
	// is sent.
	Key, KeyFile string
	// Provider is what usage calls the provider. Default: the host of the base URL.
	Provider string
	// Developer sends instructions in the role developer. Default: system, which every
	// provider takes.
	Developer bool
	// CompletionTokens sends the bound of an answer as max_completion_tokens, which some
	// models demand. Default: so for api.openai.com, else max_tokens.
	CompletionTokens bool
	// NoUsage does not ask for usage, which some providers refuse a request for.
	NoUsage bool
	// Parts are the types of parts beside text that the model takes: image, audio,
	// document. Others are replaced by a note. Nil: images; empty: none.
	Parts []string
	// Extra are further members of the request's body, such as temperature.
	Extra map[string]json.RawMessage

	// Total is the longest that a turn may take, with all its attempts. Default: 120 s.
	Total time.Duration
	// Idle is the longest that nothing may come, from the request on. Default: 60 s.
	Idle time.Duration
	// Attempts is how often a turn is tried in all, as long as nothing came. Default: 4.
	Attempts int
	// MaxAnswer is the most of one answer, in bytes: text, reasoning, and calls.
	// Default: 4 MiB.
	MaxAnswer int
	// MaxArguments is the most of the arguments of one call, in bytes. Default: 2 MiB.
	MaxArguments int
	// MaxCalls is the most calls in one answer. Default: 64.
	MaxCalls int

	// Transport makes the requests. Default: one of the model's own, with the proxies
	// that the environment names.
	Transport http.RoundTripper
	// NewID names a call that came without an id. Default: random.
	NewID func() string
	// OnRetry, if not nil, is told before an attempt is repeated.
	OnRetry func(Retry)
}

// Retry is an attempt that failed, and how long it is until the next.
type Retry struct {
	Attempt int // from 1
	Wait    time.Duration
	Err     error
}

// OpenAI is a model behind the chat completions API of OpenAI, or of one of the many
// that speak it. A request is repeated after 429, 5xx and faults of the network, as
// long as nothing of an answer was handed over.
type OpenAI struct {
	o         OpenAIOptions
	key       keySource
	service   openai.ChatCompletionService
	transport http.RoundTripper
}

// NewOpenAI returns the model behind base, an URL such as https://api.openai.com/v1. It
// makes no request.
func NewOpenAI(base string, o OpenAIOptions) (*OpenAI, error) {
	u, err := baseURL(base)
	if err != nil {
		return nil, err
	}
	key, err := newKeySource(o.Key, o.KeyFile)
	if err != nil {
		return nil, err
	}
	if err := CheckExtra(o.Extra); err != nil {
		return nil, err
	}
	m := &OpenAI{o: withDefaults(o, u), key: key}
	if m.transport = o.Transport; m.transport == nil {
		m.transport = ownTransport()
	}
	m.service = openai.NewChatCompletionService( // not NewClient, which reads the environment
		option.WithBaseURL(u.String()),
		option.WithHTTPClient(&http.Client{Transport: m.transport, CheckRedirect: stay}),
		option.WithMaxRetries(0), // see [turn.run]
		option.WithHeader("Accept", "text/event-stream"),
	)
	return m, nil
}

// maxHeader is the most of a response's header, in bytes.
const maxHeader = 64 << 10

func ownTransport() http.RoundTripper {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has put its own there
		return http.DefaultTransport
	}
	own := shared.Clone()
	own.DisableCompression = true // a compressed stream comes in lumps
	own.MaxResponseHeaderBytes = maxHeader
	return own
}

// stay leaves a redirect to [OpenAI.explainStatus]: the key is for one host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func withDefaults(o OpenAIOptions, base *url.URL) OpenAIOptions {
	o.Provider = cmp.Or(o.Provider, base.Hostname())
	o.CompletionTokens = o.CompletionTokens || base.Hostname() == "api.openai.com"
	o.Total = cmp.Or(o.Total, 120*time.Second)
	o.Idle = cmp.Or(o.Idle, 60*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 4<<20)
	o.MaxArguments = cmp.Or(o.MaxArguments, 2<<20)
	o.MaxCalls = cmp.Or(o.MaxCalls, 64)
	if o.Parts == nil {
		o.Parts = []string{"image"}
	}
	if o.NewID == nil {
		o.NewID = func() string { return "call_" + rand.Text() }
	}
	return o
}

// baseURL reads the URL that the paths of the API stand below. What could be a secret
// in it is not shown.
func baseURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base URL: not a URL: write one such as https://api.openai.com/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("base URL: scheme %q: allowed are http and https, as in https://api.openai.com/v1", u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("base URL: names no host: write one such as https://api.openai.com/v1")
	case u.User != nil:
		return nil, fmt.Errorf("base URL: has user information: give the key as a key")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("base URL: has a query or a fragment, which would be lost: leave it away")
	}
	return u, nil
}

// ours are the members of a request's body that [OpenAI] decides on.
const ours = "model messages tools stream stream_options n max_tokens max_completion_tokens functions"

// CheckExtra refuses what cannot be [OpenAIOptions].Extra: what is no JSON, and members that
// [OpenAI] decides on.
func CheckExtra(extra map[string]json.RawMessage) error {
	for name, raw := range extra {
		switch {
		case slices.Contains(strings.Fields(ours), name):
			return fmt.Errorf("extra member %q: it is set by other means", name)
		case !json.Valid(raw):
			return fmt.Errorf("extra member %q: not JSON", name)
		}
	}
	return nil
}

// Close lets go of the connections that are not in use.
func (m *OpenAI) Close() {
	if t, ok := m.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Stream asks the model for one turn.
func (m *OpenAI) Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		params, err := m.params(r)
		if err != nil {
			yield(chat.Delta{}, err)
			return
		}
		t := &turn{m: m, params: params, taken: callIDs(r), yield: yield}
		if err := t.run(ctx); err != nil && !t.left {
			yield(chat.Delta{}, err)
		}
	}
}
