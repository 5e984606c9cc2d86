package trackerclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/protocol/trackerhub"
)

// An agent is a subscription that runs, and what it accepted.
type agent struct {
	*testing.T
	sub   *trackerclient.Subscription
	heard chan string // contents of messages
	ups   chan tracker.AuthOK
	ended chan outcome

	mu     sync.Mutex
	refuse int // so many events are not accepted
	lost   int // events that said that others were lost
	dials  []net.Conn
	sick   bool // nothing can be dialled
}

// An outcome is what a subscription ended with.
type outcome struct{ err error }

func (s *site) agent(token string) *agent {
	s.Helper()
	a := &agent{T: s.T, heard: make(chan string, 1000), ups: make(chan tracker.AuthOK, 100), ended: make(chan outcome, 1)}
	c := client(s.T, s.url+"/api/v1", token, trackerclient.Options{DialContext: a.dial})
	a.sub = c.Subscribe(trackerclient.Subscriber{
		Agent: tracker.AuthAgent{Slug: "coder"}, Accept: a.accept,
		Connected: func(_ context.Context, ok tracker.AuthOK) { a.ups <- ok },
		State:     func() tracker.Heartbeat { return tracker.Heartbeat{Status: tracker.Busy} },
	})
	ctx, cancel := context.WithCancel(s.Context())
	go func() { a.ended <- outcome{a.sub.Run(ctx)} }()
	s.Cleanup(func() {
		cancel()
		select {
		case <-a.ended:
		case <-time.After(liveness):
			s.Error("the subscription did not end")
		}
	})
	return a
}

func (a *agent) dial(ctx context.Context, network, address string) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sick {
		return nil, errors.New("no network")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err == nil {
		a.dials = append(a.dials, c)
	}
	return c, err
}

// cut breaks all connections, and allows new ones or not.
func (a *agent) cut(sick bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.dials {
		_ = c.Close()
	}
	a.dials, a.sick = nil, sick
}

func (a *agent) accept(_ context.Context, f tracker.EventFrame) error {
	if f.Event == tracker.EventResync {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.lost++
	}
	if f.Event != tracker.EventChatMessage {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse > 0 {
		a.refuse--
		return errors.New("not now")
	}
	var m tracker.ChatMessage
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return err
	}
	a.heard <- m.Content
	return nil
}

func (a *agent) hears(content string) {
	a.Helper()
	select {
	case got := <-a.heard:
		if got != content {
			a.Fatalf("heard %q, want %q", got, content)
		}
	case <-time.After(liveness):
		a.Fatalf("%q was not heard", content)
	}
}

func (a *agent) up() tracker.AuthOK {
	a.Helper()
	select {
	case ok := <-a.ups:
		return ok
	case <-time.After(liveness):
		a.Fatal("not connected")
	}
	return tracker.AuthOK{}
}

func (a *agent) ends(want error) {
	a.Helper()
	select {
	case end := <-a.ended:
		if !errors.Is(end.err, want) {
			a.Fatalf("ended with %v, want %v", end.err, want)
		}
		a.ended <- end // for who waits for it to end
	case <-time.After(liveness):
		a.Fatal("the subscription did not end")
	}
}

// empty waits until all messages in the queue are acknowledged.
func (s *site) empty() {
	s.Helper()
	for end := time.Now().Add(liveness); ; time.Sleep(time.Millisecond) {
		all, err := s.as("coder").Events(s.Context(), 0, tracker.MaxPage)
		must(s.T, err)
		if len(all) == 0 {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("not acknowledged: %+v", all)
		}
	}
}

func TestE0_01_EventsAreAcceptedAndAcknowledged(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	s.say("before")
	a := s.agent("coder")
	a.up()
	a.hears("before")
	s.say("after")
	a.hears("after")
	s.empty()
	m, err := s.as("ann").GetMember(t.Context(), "coder")
	must(t, err)
	if m.Presence != tracker.Online {
		t.Fatalf("got %+v", m)
	}
}

func TestE0_03_ABrokenConnectionLosesNothing(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	a := s.agent("coder")
	a.up()
	n := 0
	say := func() { n++; s.say(fmt.Sprint(n)) }
	for range 3 {
		say()
		a.cut(true)
		for range 20 {
			say()
		}
		a.cut(false)
		a.up()
		say()
	}
	for i := 1; i <= n; i++ { // in order, and once
		a.hears(fmt.Sprint(i))
	}
	s.empty()
	if len(a.heard) > 0 {
		t.Fatalf("%d were heard twice", len(a.heard))
	}
}

func TestWhatIsNotAcceptedComesAgain(t *testing.T) {
	s := newSite(t, trackerhub.Options{AckWithin: 10 * time.Millisecond})
	a := s.agent("coder")
	a.up()
	a.mu.Lock()
	a.refuse = 2
	a.mu.Unlock()
	s.say("one")
	a.hears("one")
	s.empty()
}

// TestACursorSparesWhatWasNotAccepted: what came behind it is not lost to the next connection.
func TestACursorSparesWhatWasNotAccepted(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	a := s.agent("coder")
	a.up()
	a.mu.Lock()
	a.refuse = 1
	a.mu.Unlock()
	s.say("refused")
	s.say("accepted")
	a.hears("accepted")
	a.cut(false)
	a.up()
	a.hears("refused")
	s.empty()
}

func TestH_04_ATrackerThatBeganAnew(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	a := s.agent("coder")
	a.up()
	for n := range 10 {
		s.say(fmt.Sprint(n))
		a.hears(fmt.Sprint(n))
	}
	s.anew()
	for range 3 { // it is told at the first of these connects, and then it knows
		a.cut(false)
		a.up()
		s.say("new")
		a.hears("new")
		s.empty()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != 1 {
		t.Fatalf("it was told %d times that events were lost, want once", a.lost)
	}
}

func TestFatalCodesEndIt(t *testing.T) {
	t.Run("superseded", func(t *testing.T) {
		s := newSite(t, trackerhub.Options{})
		first := s.agent("coder")
		first.up()
		second := s.agent("coder")
		second.up()
		first.ends(trackerclient.ErrSuperseded)
		s.say("hello")
		second.hears("hello")
	})
	t.Run("a token of nobody", func(t *testing.T) {
		newSite(t, trackerhub.Options{}).agent("nobody").ends(trackerclient.ErrRejected)
	})
	t.Run("a token of another", func(t *testing.T) {
		newSite(t, trackerhub.Options{}).agent("ann").ends(trackerclient.ErrRejected)
	})
}

func TestH_12_PollsWhileThereIsNoSocket(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	s.noSocket.Store(true)
	a := s.agent("coder")
	s.say("one")
	a.hears("one")
	s.say("two")
	a.hears("two")
	s.empty()
	if m, err := s.as("ann").GetMember(t.Context(), "coder"); err != nil || m.Presence != tracker.Online || m.Activity != tracker.Busy {
		t.Fatalf("got %+v %v", m, err)
	}
	s.noSocket.Store(false)
	a.up()
	s.say("three")
	a.hears("three")
	s.empty()
}

func TestH_12_ATrackerThatIsAwayIsWaitedFor(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	s.noSocket.Store(true)
	s.noRoutes.Store(true)
	a := s.agent("coder")
	s.say("one")
	s.noRoutes.Store(false)
	s.noSocket.Store(false)
	a.hears("one")
}

func TestC_07_ChatSend(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	a := s.agent("coder")
	a.up()
	m := tracker.ChatSend{ChatID: "team", Content: "hi", ClientMsgID: "one"}
	first, err := a.sub.ChatSend(t.Context(), m)
	must(t, err)
	s.noSocket.Store(true)
	a.cut(false)
	again, err := a.sub.ChatSend(t.Context(), m) // over REST, or over a socket that breaks
	must(t, err)
	if first.MessageID == "" || again.MessageID != first.MessageID {
		t.Fatalf("got %+v and %+v, want the same", first, again)
	}
	_, err = a.sub.ChatSend(t.Context(), tracker.ChatSend{ChatID: "nowhere", Content: "hi"})
	refused(t, err, tracker.CodeNotFound)
	_, err = a.sub.ChatSend(t.Context(), tracker.ChatSend{ChatID: "team", Content: strings.Repeat("x", tracker.MaxMessage+1)})
	if err == nil {
		t.Fatal("a message that is too long was sent")
	}
}
