package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
)

// A failure is why an attempt gave no answer. It crosses the library as an error.
type failure struct {
	err   error
	again bool          // another attempt may help
	asked time.Duration // how long the provider wants to be left alone; 0 does not say
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// after is the error to tell when n attempts were made.
func (f *failure) after(n int) error {
	if n == 1 {
		return f.err
	}
	return fmt.Errorf("%w (tried %d times)", f.err, n)
}

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 60 * time.Second
)

// wait is how long to leave the provider alone after attempt n: what it asked for, else
// twice as long each time, with some chance in it, so that those who failed together do
// not come back together.
func (f *failure) wait(n int) time.Duration {
	base := firstWait << min(n-1, 10)
	if f.asked > 0 {
		return min(f.asked+rand.N(f.asked/10+1), mostWait)
	}
	base = min(base, mostWait)
	return base/2 + rand.N(base/2+1)
}

// explain says why no stream was answered.
func (m *OpenAI) explain(ctx context.Context, err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	if f := m.timedOut(ctx); f != nil {
		return f
	}
	return &failure{err: fmt.Errorf("%w: %s", chat.ErrUnavailable, networkText(err)), again: !permanent(err)}
}

// explainCut says why a stream ended before its answer did.
func (m *OpenAI) explainCut(ctx context.Context, err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	if f := m.timedOut(ctx); f != nil {
		return f
	}
	switch {
	case errors.Is(err, errLongEvent):
		return &failure{err: fmt.Errorf("%w: an event of its stream has more than %d bytes", chat.ErrLimit, m.maxEvent())}
	case errors.Is(err, errLongStream):
		return &failure{err: fmt.Errorf("%w: its stream has more than %d bytes", chat.ErrLimit, m.maxWire())}
	case errors.Is(err, io.EOF):
		return &failure{err: fmt.Errorf("%w: its stream ended without a finish_reason", chat.ErrCut), again: true}
	case errors.Is(err, chat.ErrMalformed), errors.Is(err, chat.ErrLimit):
		return &failure{err: err}
	}
	return &failure{err: fmt.Errorf("%w: %s", chat.ErrCut, networkText(err)), again: true}
}

// timedOut says which time is over, nil if none is.
func (m *OpenAI) timedOut(ctx context.Context) *failure {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, errIdle):
		return &failure{err: fmt.Errorf("%w: nothing came for %v, the limit idle of the model", chat.ErrTimeout, m.o.Idle), again: true}
	case errors.Is(cause, errTotal):
		return &failure{err: fmt.Errorf("%w: no whole answer within %v, the limit total of the model", chat.ErrTimeout, m.o.Total)}
	default:
		return &failure{err: cause}
	}
}

// permanent reports faults of a connection that stay.
func permanent(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		plain       tls.RecordHeaderError
		authority   x509.UnknownAuthorityError
		name        *net.DNSError
	)
	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.As(err, &authority) ||
		errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &name) && name.IsNotFound
}

// networkText says what is wrong with a connection, without an address or an URL.
func networkText(err error) string {
	var (
		certificate *tls.CertificateVerificationError
		plain       tls.RecordHeaderError
		name        *net.DNSError
		code        syscall.Errno
		timeout     net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted: check the base URL and this machine's authorities"
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS: check whether the base URL begins with http"
	case errors.As(err, &name) && name.IsNotFound:
		return "its host does not exist: check the base URL"
	case errors.As(err, &name):
		return "its host could not be looked up"
	case errors.As(err, &code):
		return code.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the connection timed out"
	}
	return "the connection failed"
}

// explainResponse says why a response is no event stream, nil if it is one.
func (m *OpenAI) explainResponse(res *http.Response) *failure {
	if res.StatusCode != http.StatusOK {
		return m.explainStatus(res.StatusCode, res.Header, m.errorIn(res.Body))
	}
	kind := res.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(kind)
	switch {
	case kind == "", err == nil && (media == "text/event-stream" || media == "text/plain" || media == "application/octet-stream"):
		return nil
	case media == "application/json":
		if said := m.errorIn(res.Body); said.found {
			return m.explainStatus(said.status, res.Header, said)
		}
	}
	return &failure{err: fmt.Errorf("%w: it is %.60q instead of an event stream: check that the base URL is the one that /chat/completions stands below", chat.ErrMalformed, m.key.scrub(kind))}
}

// explainStatus says what a status and what was said with it mean. A status of 0 is an
// error that came in place of an answer and did not say.
func (m *OpenAI) explainStatus(status int, h http.Header, said providerError) *failure {
	if o := overflowIn(status, said); o != nil {
		return &failure{err: o}
	}
	text := said.text(status)
	switch {
	case status == http.StatusUnauthorized && m.key == (keySource{}):
		return &failure{err: fmt.Errorf("%w: 401: it wants a key and was sent none: name one as key_env or key_file of the model", chat.ErrRefused)}
	case status == http.StatusUnauthorized:
		return &failure{err: fmt.Errorf("%w: 401: check the key", chat.ErrRefused)}
	case status == http.StatusNotFound:
		return &failure{err: fmt.Errorf("%w: %s: check the model's name and the base URL", chat.ErrRefused, text)}
	case status >= 300 && status < 400:
		return &failure{err: fmt.Errorf("%w: it redirects, which is not followed: check the base URL", chat.ErrRefused)}
	case status == http.StatusTooManyRequests:
		f := &failure{err: fmt.Errorf("%w: %s", chat.ErrUnavailable, text), asked: retryAfter(h, time.Now())}
		f.again = !said.quota() && h.Get("X-Should-Retry") != "false"
		return f
	case status >= 400 && status < 500:
		return &failure{err: fmt.Errorf("%w: %s", chat.ErrRefused, text)}
	case status > 0 && status < 300:
		return &failure{err: fmt.Errorf("%w: status %d and no stream", chat.ErrMalformed, status)}
	}
	return &failure{
		err:   fmt.Errorf("%w: %s", chat.ErrUnavailable, text),
		again: h.Get("X-Should-Retry") != "false",
		asked: retryAfter(h, time.Now()),
	}
}

// retryAfter is how long the provider wants to be left alone, at most [mostWait]; 0 if
// it does not say (RFC 9110, 10.2.3; the milliseconds are OpenAI's).
func retryAfter(h http.Header, now time.Time) time.Duration {
	if wait, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait
	}
	said := h.Get("Retry-After")
	if wait, ok := number(said, time.Second); ok {
		return wait
	}
	if at, err := http.ParseTime(said); err == nil {
		return min(max(at.Sub(now), 0), mostWait)
	}
	return 0
}

func number(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(mostWait))), true
}
