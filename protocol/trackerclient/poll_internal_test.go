package trackerclient

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// hasty is a tracker that answers at once, whatever it was to wait for.
type hasty struct {
	asked int
	stop  func()
	body  string
}

func (h *hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.asked++; h.asked > 1000 {
		h.stop()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(h.body)), Request: r}, nil
}

// A tracker that does not wait for events is not asked without a pause, be it that it has
// none, or that it sends those again that were sent.
func TestATrackerThatDoesNotWaitIsNotFlooded(t *testing.T) {
	for _, body := range []string{`{"items":[]}`, `{"items":[{"id":"e1","event":"chat.message","data":{},"seq":1}]}`} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New("http://localhost/api/v1", "token", Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := &hasty{stop: cancel, body: body}
			c.http.Transport = h
			s := c.Subscribe(Subscriber{Accept: func(context.Context, tracker.EventFrame) error { return nil }})
			if err := s.poll(ctx, time.Now().Add(20*time.Second)); err != nil {
				t.Error(err)
			}
			if h.asked > 60 {
				t.Errorf("%d requests in 20 s", h.asked)
			}
		})
	}
}
