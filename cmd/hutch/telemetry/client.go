package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// Paths below an endpoint.
const (
	tracesPath  = "/v1/traces"
	metricsPath = "/v1/metrics"
)

const (
	// attempts is how often one thing is sent, and pause how long after the first.
	attempts = 3
	pause    = 500 * time.Millisecond
	// longestPause bounds what a collector may ask to be waited.
	longestPause = 3 * time.Second
	// mostAnswer is how much of an answer is read, which says nothing that is needed.
	mostAnswer = 64 << 10
	// tellEvery is how often the log is told that nothing is taken.
	tellEvery = time.Minute
)

// CheckEndpoint refuses what is no base of OTLP over HTTP: scheme and host, and a path at
// most. What else can stand in a URL can be a secret, and would be shown.
func CheckEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("no URL: write scheme and host, such as http://127.0.0.1:4318")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("allowed are http:// or https:// with a host, such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has more than scheme, host and path: what lets hutch in goes into headers")
	}
	return nil
}

// A client posts to one collector. It follows no redirect, uses no proxy, and takes nothing
// from the environment.
type client struct {
	base    string
	headers func() (http.Header, error)
	http    *http.Client
	log     *slog.Logger
	// life ends with the client.
	life context.Context
	end  context.CancelFunc
	// sending are posts that run.
	sending sync.WaitGroup

	mu     sync.Mutex
	closed bool
	told   time.Time // when the log was told last; zero while all is well
	lost   int       // since then
}

func newClient(o Options) (*client, error) {
	if err := CheckEndpoint(o.Endpoint); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	c := &client{base: strings.TrimSuffix(o.Endpoint, "/"), headers: o.Headers, log: o.Logger}
	c.life, c.end = context.WithCancel(context.Background())
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: sendTime}).DialContext,
			TLSHandshakeTimeout:    sendTime,
			MaxConnsPerHost:        2, // one for each kind
			MaxResponseHeaderBytes: mostAnswer,
			IdleConnTimeout:        time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// close cuts off what is being sent.
func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.sending.Wait()
	c.http.CloseIdleConnections()
}

// recovered keeps a panic of the SDK from ending the program.
func (c *client) recovered() {
	if p := recover(); p != nil {
		c.log.Error("telemetry broke", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// send posts a message, and tells the log if it cannot. It returns nothing: whoever has
// something told cannot do anything about it.
func (c *client) send(ctx context.Context, path string, m proto.Message) {
	if !c.enter() {
		return
	}
	defer c.sending.Done()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	c.tell(c.deliver(ctx, path, m))
}

// enter counts a post in, unless the client was closed.
func (c *client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.sending.Add(1)
	}
	return !c.closed
}

// deliver posts a message as often as may be of use.
func (c *client) deliver(ctx context.Context, path string, m proto.Message) error {
	body, err := packed(m)
	if err != nil {
		return err
	}
	wait := pause
	for n := 1; ; n++ {
		again, asked, err := c.post(ctx, path, body)
		if err == nil || !again || n == attempts {
			return err
		}
		timer := time.NewTimer(min(max(wait, asked), longestPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait *= 2
	}
}

func packed(m proto.Message) ([]byte, error) {
	raw, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write(raw); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// post sends once. again says that it may be of use to try again, after a time that the
// collector asked for.
func (c *client) post(ctx context.Context, path string, body []byte) (again bool, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	if c.headers != nil {
		if r.Header, err = c.headers(); err != nil {
			return false, 0, err
		}
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "hutch")
	answer, err := c.http.Do(r)
	if err != nil {
		return ctx.Err() == nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }()                          // all that matters was in the head
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mostAnswer)) // so that the connection can be used again
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))        // 0 for whatever else it is
	after = time.Duration(min(max(seconds, 0), 60)) * time.Second       // before it is multiplied out of its range
	switch code := answer.StatusCode; code {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, after, fmt.Errorf("the collector answered %d", code)
	default:
		return false, 0, fmt.Errorf("the collector answered %d", code)
	}
}

// tell logs that nothing is taken, once a minute at most, and that something is again.
func (c *client) tell(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.told.IsZero():
	case err == nil:
		c.log.Info("telemetry is taken again", "lost", c.lost)
		c.told, c.lost = time.Time{}, 0
	default:
		c.lost++
		if time.Since(c.told) > tellEvery {
			c.told = time.Now()
			c.log.Warn("telemetry is not taken, and is lost", "messages", c.lost, "error", err)
		}
	}
}
