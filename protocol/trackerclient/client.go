// Package trackerclient asks a tracker: its routes with [Client], and the events of an
// agent's queue with [Subscription], over a socket or, while there is none, by asking for them.
//
// A [Client] may be used from any goroutine and has none of its own.
package trackerclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Options are what may be changed of a [Client]. The zero value works.
type Options struct {
	// Socket is the URL of the socket; default /ws at the host of the routes.
	Socket string
	// Timeout is how long a call may take with all its tries; default 30 s.
	Timeout time.Duration
	// AllowPlain lets the token go unencrypted to other machines.
	AllowPlain bool
	// DialContext, TLS and Proxy are those of [http.Transport].
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	TLS         *tls.Config
	Proxy       func(*http.Request) (*url.URL, error)
	// Logger is told what goes wrong and is tried again; nil is nobody.
	Logger *slog.Logger
}

const (
	maxTries    = 3
	firstDelay  = 200 * time.Millisecond
	mostDelay   = 5 * time.Second
	mostAnswer  = 64 << 20
	mostRefusal = 64 << 10
)

// Client asks a tracker over REST with one token. What the tracker refuses is a
// [*tracker.Error]; so is a tracker that does not answer, with [tracker.CodeUnavailable].
//
// What changes nothing, or is recognised when it comes twice, is tried three times in all, where
// the tracker did not answer or said 429, 502, 503 or 504, within [Options.Timeout]: after up to
// 200 ms, 400 ms and so on to 5 s by chance, or as long as Retry-After says. No redirect is
// followed. An answer has at most 64 MiB.
type Client struct {
	base, socket *url.URL
	token        string
	o            Options
	http         *http.Client
}

// Seats of a client: of a [tracker.Service] it lacks the queue, which is a [Subscription]'s.
var (
	_ tracker.Tasks    = (*Client)(nil)
	_ tracker.Steps    = (*Client)(nil)
	_ tracker.Messages = (*Client)(nil)
	_ tracker.Chats    = (*Client)(nil)
	_ tracker.Projects = (*Client)(nil)
	_ tracker.Members  = (*Client)(nil)
	_ tracker.Files    = (*Client)(nil)
)

// New returns a client for the routes below base, such as https://tracker.example/api/v1. It is
// refused if base is no such URL, or if the token would go unencrypted to another machine
// without [Options.AllowPlain]. Nothing is asked yet.
func New(base, token string, o Options) (*Client, error) {
	c := &Client{token: token, o: o}
	var err error
	if c.base, err = c.address(base, "http"); err != nil {
		return nil, err
	}
	if o.Socket == "" {
		at := url.URL{Scheme: "ws" + strings.TrimPrefix(c.base.Scheme, "http"), Host: c.base.Host, Path: "/ws"}
		o.Socket = at.String()
	}
	if c.socket, err = c.address(o.Socket, "ws"); err != nil {
		return nil, err
	}
	if c.o.Timeout <= 0 {
		c.o.Timeout = 30 * time.Second
	}
	if c.o.Logger == nil {
		c.o.Logger = slog.New(slog.DiscardHandler)
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: o.DialContext, TLSClientConfig: o.TLS, Proxy: o.Proxy, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 8,
		},
		// The token is for one host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// address checks a URL of a scheme, or of the same with an s.
func (c *Client) address(text, scheme string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != scheme && u.Scheme != scheme+"s":
		return nil, fmt.Errorf("the tracker's address %s is none: use %ss://HOST/PATH", tracker.Quote(text), scheme)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the tracker's address has more than a host and a path: use %ss://HOST/PATH", scheme)
	case u.Scheme == scheme && !c.o.AllowPlain && !here(u.Hostname()):
		return nil, fmt.Errorf("the token would go to %s unencrypted: use %ss, or allow plain text", tracker.Quote(u.Host), scheme)
	}
	return u, nil
}

// here reports whether a host is this machine.
func here(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Close gives up connections that are kept for the next call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A request is one call of a route.
type request struct {
	method string
	path   []string // in parts
	query  url.Values
	body   any
	key    string // of idempotency
	match  int64  // the version that the task must have, if it is not 0
	again  bool   // it may be sent twice
	longer time.Duration
}

func get(path ...string) request {
	return request{method: http.MethodGet, path: path, again: true}
}

func remove(path ...string) request { return request{method: http.MethodDelete, path: path} }

func patch(body any, path ...string) request {
	return request{method: http.MethodPatch, path: path, body: body}
}

// post makes something. It has a key, so that it makes it once.
func post(body any, key string, path ...string) request {
	if key == "" {
		key = rand.Text()
	}
	return request{method: http.MethodPost, path: path, body: body, key: key, again: true}
}

// once is a change that no key is known of.
func once(body any, path ...string) request {
	return request{method: http.MethodPost, path: path, body: body}
}

func (q request) with(query url.Values) request { q.query = query; return q }

// ask does a call and returns its answer.
func ask[T any](ctx context.Context, c *Client, q request) (out T, err error) {
	raw, err := c.do(ctx, q)
	if err == nil && json.Unmarshal(raw, &out) != nil {
		err = tracker.Errorf(tracker.CodeUnavailable, "what answered is no tracker").Next("check the address of the tracker")
	}
	return out, err
}

// tell does a call that has no answer.
func tell(ctx context.Context, c *Client, q request) error {
	_, err := c.do(ctx, q)
	return err
}

// do sends a request until there is an answer.
func (c *Client) do(ctx context.Context, q request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout+q.longer)
	defer cancel()
	at, err := c.at(q)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(q.body)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		raw, err := c.try(ctx, q, at, body)
		var f *failure
		if err == nil || !errors.As(err, &f) {
			return raw, err
		}
		if !q.again || try == maxTries || !pause(ctx, max(f.wait, jitter(firstDelay<<(try-1), mostDelay))) {
			return nil, f.err
		}
		c.o.Logger.WarnContext(ctx, "the tracker is asked again", "try", try+1, "err", f.err)
	}
}

// at is the URL of a call. No part of it leads elsewhere.
func (c *Client) at(q request) (string, error) {
	u := *c.base
	raw := strings.TrimSuffix(u.EscapedPath(), "/")
	for _, part := range q.path {
		if part == "" || part == "." || part == ".." || len(part) > tracker.MaxFilename {
			return "", tracker.Errorf(tracker.CodeNotFound, "%s refers to nothing", tracker.Quote(part))
		}
		raw += "/" + url.PathEscape(part)
	}
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return "", err
	}
	u.Path, u.RawPath, u.RawQuery = plain, raw, q.query.Encode()
	return u.String(), nil
}

// A failure is one that may be none the next time.
type failure struct {
	err  *tracker.Error
	wait time.Duration // what the tracker asks for
}

func (f *failure) Error() string { return f.err.Error() }

func (c *Client) try(ctx context.Context, q request, at string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if q.body == nil {
		r.Body, r.GetBody, r.ContentLength = http.NoBody, nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json")
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	if q.match > 0 {
		r.Header.Set("If-Match", `"`+strconv.FormatInt(q.match, 10)+`"`)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read as far as it is wanted
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return nil, refusal(answer)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if len(raw) > mostAnswer {
		return nil, tracker.Errorf(tracker.CodeTooLarge, "the answer is larger than %d bytes", mostAnswer).Next("ask for less")
	}
	return raw, nil
}

// lost is a tracker that did not answer. Why is for the log: an address says too much.
func (c *Client) lost(ctx context.Context, err error) error {
	c.o.Logger.WarnContext(ctx, "the tracker did not answer", "err", err)
	return &failure{err: tracker.Errorf(tracker.CodeUnavailable, "the tracker did not answer").Next("try again in a moment")}
}

// refusal is an answer that is none.
func refusal(answer *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, mostRefusal)) // what is missing makes it unreadable
	var body struct{ Error *tracker.Error }
	if json.Unmarshal(raw, &body) != nil || body.Error == nil || body.Error.Code == "" {
		body.Error = tracker.Errorf(tracker.CodeOfStatus(answer.StatusCode), "the tracker answered %d", answer.StatusCode)
	}
	if passes(answer.StatusCode) {
		return &failure{err: body.Error, wait: retryAfter(answer.Header.Get("Retry-After"))}
	}
	return body.Error
}

// retryAfter reads seconds or a date.
func retryAfter(text string) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// jitter is some time up to the smaller of two.
func jitter(up, most time.Duration) time.Duration {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(min(up, most))+1))
	if err != nil {
		return min(up, most)
	}
	return time.Duration(n.Int64())
}

// pause waits, unless the time ends before.
func pause(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
