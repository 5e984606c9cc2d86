package trackerhub_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
)

// A bad board fails or panics where it is told to.
type bad struct {
	tracker.Service
	at    *atomic.Value // the name of a method
	panic bool
}

func (b bad) fail(method string) error {
	if b.at.Load() != method {
		return nil
	}
	if b.panic {
		panic("a secret")
	}
	return errors.New("a secret")
}

func (b bad) Connect(ctx context.Context, a tracker.AuthAgent, r *tracker.Resume) (tracker.MemberOut, int64, error) {
	if err := b.fail("Connect"); err != nil {
		return tracker.MemberOut{}, 0, err
	}
	return b.Service.Connect(ctx, a, r)
}

func (b bad) Sent(ctx context.Context, ids []string) ([]string, error) {
	if err := b.fail("Sent"); err != nil {
		return nil, err
	}
	return b.Service.Sent(ctx, ids)
}

func (b bad) Take(ctx context.Context, after int64, limit int) ([]tracker.Event, error) {
	if err := b.fail("Take"); err != nil {
		return nil, err
	}
	return b.Service.Take(ctx, after, limit)
}

func (b bad) Ack(ctx context.Context, ids ...string) error {
	if err := b.fail("Ack"); err != nil {
		return err
	}
	return b.Service.Ack(ctx, ids...)
}

func (b bad) Wait(ctx context.Context, after int64) error {
	if err := b.fail("Wait"); err != nil {
		return err
	}
	return b.Service.Wait(ctx, after)
}

func (b bad) SendMessage(ctx context.Context, m tracker.SendMessage) (tracker.MessageOut, error) {
	if err := b.fail("SendMessage"); err != nil {
		return tracker.MessageOut{}, err
	}
	return b.Service.SendMessage(ctx, m)
}

// TestABadBoardEndsTheConnectionAlone: the peer is told to come back, and nothing else.
func TestABadBoardEndsTheConnectionAlone(t *testing.T) {
	for _, panics := range []bool{false, true} {
		for _, method := range []string{"Connect", "Take", "Sent", "Ack", "Wait", "SendMessage"} {
			t.Run(map[bool]string{true: "panic in ", false: "error of "}[panics]+method, func(t *testing.T) {
				s := newSite(t, trackerhub.Options{})
				at := &atomic.Value{}
				hub := trackerhub.New(func(r *http.Request, token string) (tracker.Service, error) {
					service, err := s.open(r, token)
					return bad{Service: service, at: at, panic: panics}, err
				}, trackerhub.Options{AckWithin: 10 * time.Millisecond})
				server := httptest.NewServer(hub)
				defer server.Close()
				at.Store(method)
				s.url = "ws" + strings.TrimPrefix(server.URL, "http")
				p := s.dial(nil)
				p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)
				s.say("hello")
				want := websocket.CloseTryAgainLater
				if panics {
					want = websocket.CloseInternalServerErr
				}
				for closed := false; !closed; {
					g, err := p.read()
					var c *websocket.CloseError
					switch {
					case errors.As(err, &c):
						if c.Code != want || strings.Contains(c.Text, "secret") {
							t.Fatalf("got %v, want %d", err, want)
						}
						closed = true
					case err != nil:
						t.Fatal(err)
					case g.Type == tracker.FrameError: // a message that was not sent is answered
						if g.Code != tracker.CodeInternal || strings.Contains(g.Message, "secret") {
							t.Fatalf("got %+v", g)
						}
						closed = true
					case method == "Sent": // it comes again because it is not acknowledged
					case g.Type == tracker.FrameEvent && g.Event == tracker.EventChatMessage:
						p.ack(g.ID)
						p.send(`{"type":"chat.send","chat_id":"team","content":"hi","client_msg_id":"m"}`)
					}
				}
				must(t, p.ws.Close())
				at.Store("")
				p = s.dial(nil)
				p.send(`{"type":"auth","token":"coder","agent":{"slug":"coder"}}`)
				if g := p.next(); g.Type != tracker.FrameAuthOK {
					t.Fatalf("got %+v afterwards, want auth.ok", g)
				}
				must(t, hub.Close(t.Context()))
			})
		}
	}
}

// An eager board has its events acknowledged elsewhere before anybody reads them.
type eager struct {
	tracker.Service
	waits *atomic.Int64
}

func (e eager) Events(ctx context.Context, after int64, limit int) ([]tracker.Event, error) {
	all, err := e.Service.Events(ctx, after, limit)
	for _, event := range all {
		err = errors.Join(err, e.Ack(ctx, event.ID))
	}
	return nil, err
}

func (e eager) Take(ctx context.Context, after int64, limit int) ([]tracker.Event, error) {
	return e.Events(ctx, after, limit)
}

func (e eager) Wait(ctx context.Context, after int64) error {
	e.waits.Add(1)
	return e.Service.Wait(ctx, after)
}

// TestEventsThatWereTakenElsewhere: the hub does not ask for them for ever.
func TestEventsThatWereTakenElsewhere(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	waits := &atomic.Int64{}
	hub := trackerhub.New(func(r *http.Request, token string) (tracker.Service, error) {
		service, err := s.open(r, token)
		return eager{Service: service, waits: waits}, err
	}, trackerhub.Options{})
	server := httptest.NewServer(hub)
	defer server.Close()
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	p := s.enter("coder")
	const said, fences = 3, 200
	for range said {
		s.say("x")
	}
	for range fences {
		p.send(`{"type":"auth"}`)
		p.next()
	}
	// One to begin with, and for each message, and for the agent's own presence, two at most.
	if n := waits.Load(); n > 2*(said+2) {
		t.Fatalf("%d waits for %d events", n, said)
	}
	must(t, p.ws.Close())
	must(t, hub.Close(t.Context()))
}

// A slow board takes its time with the first acknowledgement, and then looks at the time.
type slow struct {
	tracker.Service
	entered, release chan struct{}
	once             *sync.Once
}

func (b slow) Ack(ctx context.Context, ids ...string) error {
	b.once.Do(func() { close(b.entered); <-b.release })
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.Service.Ack(ctx, ids...)
}

// TestH_03_AcknowledgementsOutliveTheirConnection: what was read before the end counts, also
// where the board is told of it later.
func TestH_03_AcknowledgementsOutliveTheirConnection(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	b := slow{entered: make(chan struct{}), release: make(chan struct{}), once: &sync.Once{}}
	hub := trackerhub.New(func(r *http.Request, token string) (tracker.Service, error) {
		service, err := s.open(r, token)
		b.Service = service
		return b, err
	}, trackerhub.Options{})
	server := httptest.NewServer(hub)
	defer server.Close()
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	p := s.enter("coder")
	const many = 50
	ids := make([]string, many)
	for n := range ids {
		s.say("x")
		ids[n] = p.said("x").ID
	}
	for n, id := range ids {
		if p.ack(id); n == 0 {
			<-b.entered // the others wait behind it
		}
	}
	p.send(`{"type":"dance"}`)
	eventually(t, "the last frame", func() bool { return hub.Stats().Unknown == 1 })
	done := make(chan error)
	go func() { done <- hub.Close(t.Context()) }()
	eventually(t, "the end for new ones", func() bool {
		ws, r, err := websocket.DefaultDialer.DialContext(t.Context(), s.url, nil)
		if err == nil {
			_ = ws.Close()
		}
		if r != nil {
			_ = r.Body.Close()
		}
		return r != nil && r.StatusCode == http.StatusServiceUnavailable
	})
	close(b.release)
	must(t, <-done)
	all, err := s.as("coder").Events(t.Context(), 0, tracker.MaxPage)
	must(t, err)
	if len(all) > 0 {
		t.Fatalf("%d of %d acknowledgements were lost", len(all), many)
	}
}

// TestManySendAtOnce: the connection has one writer, whoever has something to say.
func TestManySendAtOnce(t *testing.T) {
	s := newSite(t, trackerhub.Options{HeartbeatEvery: time.Millisecond})
	p := s.enter("coder")
	const many = 100
	var all sync.WaitGroup
	for range many {
		all.Go(func() { s.say("x") })
	}
	all.Go(func() {
		for range many {
			_ = p.ws.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(time.Second)) // a ping more or less
		}
	})
	for range many {
		p.said("x")
	}
	all.Wait()
}

// TestIdleConnectionsAreSmall: 60 KiB each, with their peers' goroutine and buffers in it.
func TestIdleConnectionsAreSmall(t *testing.T) {
	if raced {
		t.Skip("the race detector's books are measured too")
	}
	s := newSite(t, trackerhub.Options{Strangers: 1000})
	const many = 200
	for n := range many {
		_, err := s.b.Ensure(t.Context(), tracker.CreateMember{Slug: slugOf(n)})
		must(t, err)
	}
	before := inUse()
	for n := range many {
		s.enter(slugOf(n))
	}
	if each := (inUse() - before) / many; each > 60<<10 {
		t.Fatalf("%d bytes each, at most %d are allowed", each, 60<<10)
	} else {
		t.Logf("%d bytes each", each)
	}
}

func slugOf(n int) string { return "agent" + strings.Repeat("x", n%26) + string(rune('a'+n/26)) }

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
