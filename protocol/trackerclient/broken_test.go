package trackerclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/protocol/trackerhub"
)

// An agent whose process ends after it has an event and before that is acknowledged is sent
// it again, under the same id, once.
func TestE0_01_KilledBetweenEventAndAck(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	had := make(chan tracker.EventFrame, 10)
	var mu sync.Mutex
	var conns []net.Conn
	kill := true
	c := client(t, s.url+"/api/v1", "coder", trackerclient.Options{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, conn)
		return conn, err
	}})
	process := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- c.Subscribe(trackerclient.Subscriber{Agent: tracker.AuthAgent{Slug: "coder"}, Accept: func(_ context.Context, f tracker.EventFrame) error {
				had <- f
				mu.Lock()
				defer mu.Unlock()
				if kill {
					for _, conn := range conns {
						_ = conn.Close()
					}
					cancel()
				}
				return nil
			}}).Run(ctx)
		}()
		return func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		}
	}
	next := func() tracker.EventFrame {
		t.Helper()
		select {
		case f := <-had:
			return f
		case <-time.After(liveness):
			t.Fatal("no event came")
		}
		return tracker.EventFrame{}
	}
	end := process()
	s.say("hello")
	first := next()
	end()
	mu.Lock()
	kill = false
	mu.Unlock()
	defer process()()
	if again := next(); again.ID != first.ID || again.Seq != first.Seq || again.Redelivery != 1 || first.Redelivery != 0 {
		t.Fatalf("got %+v, before that %+v", again, first)
	}
	s.empty()
	if len(had) > 0 {
		t.Fatalf("and %+v again", <-had)
	}
}

// A silent conn passes nothing on and breaks nothing, until it is closed.
type silent struct {
	net.Conn
	quiet <-chan struct{} // closed when nothing passes any more
	gone  chan struct{}
	once  *sync.Once
}

func (c silent) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.quiet:
		<-c.gone
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c silent) Write(b []byte) (int, error) {
	select {
	case <-c.quiet:
		return len(b), nil // it is lost on its way
	default:
		return c.Conn.Write(b)
	}
}

func (c silent) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// A network that is silent looks like a connection that stands. Mentions that were made
// meanwhile come after it, in order and once, also those that were sent into the silence.
func TestE0_03_ASilentNetworkLosesNothing(t *testing.T) {
	s := newSite(t, trackerhub.Options{HeartbeatEvery: 20 * time.Millisecond, OfflineAfter: 150 * time.Millisecond})
	quiet := make(chan struct{})
	var mu sync.Mutex
	var conns []net.Conn
	down := false
	heard, ups := make(chan string, 100), make(chan tracker.AuthOK, 10)
	a := &agent{T: t, heard: heard, ups: ups, ended: make(chan outcome, 1)}
	c := client(t, s.url+"/api/v1", "coder", trackerclient.Options{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return nil, fmt.Errorf("no route to %s", address)
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		of := silent{Conn: conn, quiet: quiet, gone: make(chan struct{}), once: &sync.Once{}}
		conns = append(conns, of)
		return of, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); <-a.ended }()
	go func() {
		a.ended <- outcome{c.Subscribe(trackerclient.Subscriber{
			Agent: tracker.AuthAgent{Slug: "coder"}, Accept: a.accept, Connected: func(_ context.Context, ok tracker.AuthOK) { ups <- ok },
		}).Run(ctx)}
	}()
	a.up()
	s.say("@coder 0")
	a.hears("@coder 0")
	mu.Lock()
	down = true
	mu.Unlock()
	close(quiet)
	const many = 30
	for n := range many {
		s.say(fmt.Sprint("@coder ", n+1))
	}
	for end := time.Now().Add(liveness); s.hub.Stats().Connections > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the tracker takes the silence for an agent")
		}
	}
	s.say("@coder last")
	mu.Lock()
	down, quiet = false, make(chan struct{})
	for _, conn := range conns {
		_ = conn.Close()
	}
	mu.Unlock()
	for n := range many {
		a.hears(fmt.Sprint("@coder ", n+1))
	}
	a.hears("@coder last")
	s.empty()
	if len(heard) > 0 {
		t.Fatalf("%q was heard twice", <-heard)
	}
}
