package trackerclient

import (
	"io"
	"net/http"
)

// Do sends a request that somebody else has made, with the token that it has: it follows no
// redirect. It is tried again as calls are, where it changes nothing or has an
// Idempotency-Key, and where its body can be read again. A response that is returned may be
// a failure; its body is the caller's to close.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	again := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Idempotency-Key") != ""
	again = again && (r.Body == nil || r.Body == http.NoBody || r.GetBody != nil)
	for try := 1; ; try++ {
		answer, err := c.http.Do(r)
		if !again || try == maxTries || err == nil && !passes(answer.StatusCode) {
			return answer, err
		}
		wait := jitter(firstDelay<<(try-1), mostDelay)
		if err == nil {
			wait = max(wait, retryAfter(answer.Header.Get("Retry-After")))
		}
		if !pause(r.Context(), wait) {
			return answer, err
		}
		if err == nil {
			_, _ = io.CopyN(io.Discard, answer.Body, mostRefusal) // so that the connection may be kept
			_ = answer.Body.Close()
		}
		c.o.Logger.WarnContext(r.Context(), "the tracker is asked again", "try", try+1, "err", err)
		if r = r.Clone(r.Context()); r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// passes reports whether a status may be another the next time.
func passes(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
