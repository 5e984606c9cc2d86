package trackerclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// ErrSuperseded ends a subscription whose agent has another connection.
var ErrSuperseded = errors.New("another connection of this agent took its place: run one at a time")

// ErrRejected ends a subscription that is not let in, or whose token counts no more.
var ErrRejected = errors.New("the tracker does not let this agent in: check its token, slug and scopes")

// A Subscriber is what an agent does with what it is sent.
type Subscriber struct {
	Agent tracker.AuthAgent
	// Accept takes an event, durably: with nil it is acknowledged and does not come again,
	// with an error it does. One call is made at a time, in the order of the events, which have
	// their canonical names. It should be quick: what follows waits.
	Accept func(context.Context, tracker.EventFrame) error
	// Connected, if not nil, is called beside that after each connect: events are a hint, and
	// the truth is in the routes. Its context ends with the connection.
	Connected func(context.Context, tracker.AuthOK)
	// State, if not nil, is what the agent does, and is asked at every heartbeat (15 s unless
	// the tracker says otherwise); the default is idle.
	State func() tracker.Heartbeat
	// Lost, if not nil, is told why there is no socket.
	Lost func(error)
}

// The times of a subscription.
const (
	firstBackoff = 500 * time.Millisecond
	mostBackoff  = 30 * time.Second
	pollFrom     = time.Second       // a shorter outage is waited for
	pollWait     = 20                // seconds that one poll waits at most
	pollAll      = tracker.AckWithin // then what was not accepted is asked for again
	remembered   = 1024              // events, so that one that comes again is accepted once
)

// A Subscription is the connection of one agent, as long as [Subscription.Run] runs.
type Subscription struct {
	c *Client
	s Subscriber

	// What follows belongs to Run.
	seen  int64 // all events up to here came on this connection or were acknowledged
	floor int64 // but none from here on counts, because this one was not accepted; 0: there is none
	known recent

	mu      sync.Mutex
	socket  *socket                  // nil while there is none
	waiting map[string]chan chatting // by client_msg_id
}

// chatting is what came of a message that was sent over the socket.
type chatting struct {
	sent tracker.ChatSent
	err  error
}

// Subscribe returns a subscription, which does nothing before it runs.
func (c *Client) Subscribe(s Subscriber) *Subscription {
	return &Subscription{c: c, s: s, known: recent{all: map[string]bool{}}, waiting: map[string]chan chatting{}}
}

// Run takes events until ctx ends, or until there is no point in coming back: then its error
// is [ErrSuperseded] or [ErrRejected]. It connects again whenever the socket is lost, later and
// later up to about 30 s with a part of that by chance, and asks for events over REST in
// between, once there was no socket for a second. An event that comes twice in the last 1,024
// is accepted once; to be sure over a restart is the subscriber's, by the event's id.
func (s *Subscription) Run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.c.o.Logger.Error("a subscription panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("a subscription panicked: %v", p)
		}
	}()
	for failed := 0; ; failed++ {
		lasted, err := s.session(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrSuperseded) || errors.Is(err, ErrRejected) {
			return err
		}
		s.c.o.Logger.WarnContext(ctx, "the tracker's socket is lost", "err", err)
		if s.s.Lost != nil {
			s.s.Lost(err)
		}
		if lasted >= tracker.HeartbeatEvery {
			failed = 0
		}
		if err := s.without(ctx, firstBackoff/5+jitter(firstBackoff<<min(failed, 10), mostBackoff)); err != nil {
			return err
		}
	}
}

// without lives without a socket for a while.
func (s *Subscription) without(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	if d >= pollFrom {
		if err := s.poll(ctx, end); err != nil {
			return err
		}
	}
	if !pause(ctx, time.Until(end)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		<-ctx.Done() // it ends before the pause does
		return ctx.Err()
	}
	return nil
}

// poll asks for events until a time, or until that fails.
func (s *Subscription) poll(ctx context.Context, end time.Time) error {
	var beat, all time.Time
	for {
		left := time.Until(end)
		if left < pollFrom || ctx.Err() != nil {
			return nil
		}
		if time.Since(beat) >= tracker.HeartbeatEvery {
			if err := s.c.Heartbeat(ctx, s.state()); err != nil {
				return fatal(err)
			}
			beat = time.Now()
		}
		after, wait := s.seen, min(int(left/time.Second), pollWait)
		if time.Since(all) >= pollAll {
			after, wait, all = 0, 0, time.Now()
		}
		began, had := time.Now(), s.seen
		page, err := s.c.events(ctx, after, tracker.MaxPage, wait)
		if err != nil {
			return fatal(err)
		}
		if err := s.takeAll(ctx, page.Items); err != nil {
			return fatal(err)
		}
		if wait > 0 && s.seen == had && time.Since(began) < pollFrom && !pause(ctx, pollFrom) { // a tracker that does not wait
			return nil
		}
	}
}

// fatal is the error of a call if it ends the subscription.
func fatal(err error) error {
	if errors.Is(err, &tracker.Error{Code: tracker.CodeUnauthorized}) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return nil
}

func (s *Subscription) takeAll(ctx context.Context, events []tracker.EventOut) error {
	var ids []string
	for _, e := range events {
		f := tracker.EventFrame{
			Type: tracker.FrameEvent, ID: e.ID, Event: e.Event, Data: e.Data, Seq: e.Seq, TS: e.TS, Redelivery: e.Redelivery,
		}
		if s.take(ctx, f) {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return s.c.Ack(ctx, ids...)
}

// take has an event accepted, if it was not, and reports whether it is.
func (s *Subscription) take(ctx context.Context, f tracker.EventFrame) bool {
	s.seen = max(s.seen, f.Seq)
	if s.known.all[f.ID] {
		return true
	}
	f.Event = tracker.CanonicalEvent(f.Event, f.Data)
	if err := s.s.Accept(ctx, f); err != nil {
		s.c.o.Logger.WarnContext(ctx, "an event was not accepted and will come again", "event", f.ID, "err", err)
		if s.floor == 0 || f.Seq < s.floor {
			s.floor = f.Seq
		}
		return false
	}
	s.known.add(f.ID)
	return true
}

// resume is what the next connection need not send again. It begins there.
func (s *Subscription) resume() *tracker.Resume {
	if s.floor > 0 {
		s.seen, s.floor = min(s.seen, s.floor-1), 0
	}
	if s.seen <= 0 {
		return nil
	}
	return &tracker.Resume{LastSeq: s.seen}
}

func (s *Subscription) state() tracker.Heartbeat {
	h := tracker.Heartbeat{Status: tracker.Idle}
	if s.s.State != nil {
		h = s.s.State()
	}
	h.Type = tracker.FrameHeartbeat
	if h.CurrentTasks == nil {
		h.CurrentTasks = []string{}
	}
	return h
}

// recent remembers the last ids.
type recent struct {
	all   map[string]bool
	order []string
}

func (r *recent) add(id string) {
	if len(r.order) == remembered {
		delete(r.all, r.order[0])
		r.order = r.order[1:]
	}
	r.all[id] = true
	r.order = append(r.order, id)
}

// ChatSend sends a message to a chat, once: over the socket, or over REST if there is none or
// if it is lost before the answer.
func (s *Subscription) ChatSend(ctx context.Context, m tracker.ChatSend) (tracker.ChatSent, error) {
	m.Type = tracker.FrameChatSend
	if m.ClientMsgID == "" {
		m.ClientMsgID = rand.Text()
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.o.Timeout)
	defer cancel()
	if sent, err, ok := s.overSocket(ctx, m); ok {
		return sent, err
	}
	out, err := s.c.SendMessage(ctx, tracker.SendMessage{
		ChatID: m.ChatID, Content: m.Content, Mentions: m.Mentions, IdempotencyKey: m.ClientMsgID,
	})
	return tracker.ChatSent{Type: tracker.FrameChatSent, ClientMsgID: m.ClientMsgID, MessageID: out.ID}, err
}

func (s *Subscription) overSocket(ctx context.Context, m tracker.ChatSend) (_ tracker.ChatSent, _ error, ok bool) {
	answer := make(chan chatting, 1)
	s.mu.Lock()
	socket := s.socket
	busy := s.waiting[m.ClientMsgID] != nil
	if socket != nil && !busy {
		s.waiting[m.ClientMsgID] = answer
	}
	s.mu.Unlock()
	if socket == nil || busy {
		return tracker.ChatSent{}, nil, false
	}
	defer func() {
		s.mu.Lock()
		delete(s.waiting, m.ClientMsgID)
		s.mu.Unlock()
	}()
	if socket.send(m) != nil {
		return tracker.ChatSent{}, nil, false
	}
	select {
	case a := <-answer:
		return a.sent, a.err, true
	case <-socket.ctx.Done():
		return tracker.ChatSent{}, nil, false
	case <-ctx.Done():
		return tracker.ChatSent{}, ctx.Err(), true
	}
}

// answered gives what came of a message to who sent it.
func (s *Subscription) answered(id string, a chatting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.waiting[id]; answer != nil {
		answer <- a // it has room for one
		delete(s.waiting, id)
	}
}
