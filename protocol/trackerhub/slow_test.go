package trackerhub_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// pipes are a listener in memory: what is written waits until it is read.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l pipes) Close() error   { close(l); return nil }
func (l pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Who reads too late is told so; who reads much too late finds the connection cut.
func TestE0_08_LateReadersAreToldWhy(t *testing.T) {
	for late, code := range map[time.Duration]int{
		9 * time.Second: 0, 15 * time.Second: tracker.CloseSlow, 21 * time.Second: websocket.CloseAbnormalClosure,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{T: t, b: board.New(&boardtest.Memory{}, board.Options{}), gone: map[string]bool{}}
			for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent} {
				_, err := s.b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
				must(t, err)
			}
			_, err := s.as("ann").CreateChat(t.Context(), tracker.CreateChat{Slug: "team"})
			must(t, err)
			s.hub = trackerhub.New(s.open, trackerhub.Options{
				WriteWithin: 10 * time.Second, HeartbeatEvery: time.Hour, OfflineAfter: time.Hour, AckWithin: time.Hour,
			})
			l := make(pipes)
			server := &http.Server{Handler: s.hub}
			ended := make(chan error)
			go func() { ended <- server.Serve(l) }()
			here, there := net.Pipe()
			go func() { l <- there }()
			d := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
			ws, r, err := d.DialContext(t.Context(), "ws://tracker", nil)
			must(t, err)
			_ = r.Body.Close()
			p := &peer{T: t, ws: ws}
			p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)
			p.next()
			s.say("hello")
			time.Sleep(late)
			synctest.Wait()
			_, _, err = ws.ReadMessage()
			if err == nil {
				_ = ws.SetReadDeadline(time.Now().Add(time.Minute)) // the read says if it broke
				_, _, err = ws.ReadMessage()
			}
			var closed *websocket.CloseError
			if got := 0; errors.As(err, &closed) {
				if got = closed.Code; got != code {
					t.Errorf("read after %v: closed with %d, want %d", late, got, code)
				}
			} else if code != 0 {
				t.Errorf("read after %v: %v, want it closed with %d", late, err, code)
			}
			_ = ws.Close()
			must(t, s.hub.Close(t.Context()))
			must(t, server.Close())
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
}
