package trackerclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	dialWithin  = 15 * time.Second
	writeWithin = 10 * time.Second
	frameMost   = 8 << 20
)

// A socket is one connection that was let in.
type socket struct {
	ws  *websocket.Conn
	ctx context.Context // ends with it

	mu sync.Mutex // who has it writes
}

func (k *socket) send(frame any) error {
	raw, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ws.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	return k.ws.WriteMessage(websocket.TextMessage, raw)
}

// session is one connection from its beginning to its end. It returns how long it stood.
func (s *Subscription) session(ctx context.Context) (lasted time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, ok, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	s.guarded(&others, cancel, func() { s.beats(k, ok) })
	if s.s.Connected != nil {
		s.guarded(&others, cancel, func() { s.s.Connected(ctx, ok) })
	}
	s.use(k)
	defer s.use(nil)
	return time.Since(begin), s.read(k)
}

// guarded runs fn beside the session. If it panics the session ends, and the program does not.
func (s *Subscription) guarded(others *sync.WaitGroup, cancel func(), fn func()) {
	others.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.c.o.Logger.Error("a subscription panicked", "panic", p, "stack", string(debug.Stack()))
				cancel()
			}
		}()
		fn()
	})
}

func (s *Subscription) use(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket = k
}

// connect dials and is let in. The socket is closed when ctx ends.
func (s *Subscription) connect(ctx context.Context) (*socket, tracker.AuthOK, error) {
	o := s.c.o
	dialer := websocket.Dialer{NetDialContext: o.DialContext, TLSClientConfig: o.TLS, Proxy: o.Proxy, HandshakeTimeout: dialWithin}
	within, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	ws, answer, err := dialer.DialContext(within, s.c.socket.String(), http.Header{"Authorization": {"Bearer " + s.c.token}})
	if answer != nil && err != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return nil, tracker.AuthOK{}, fmt.Errorf("%w (the tracker answered %d)", ErrRejected, answer.StatusCode)
	}
	if err != nil {
		return nil, tracker.AuthOK{}, fmt.Errorf("connect: %w", err)
	}
	ws.SetReadLimit(frameMost)
	k := &socket{ws: ws, ctx: ctx}
	context.AfterFunc(ctx, func() {
		bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // who has left does not hear it
		_ = ws.Close()
	})
	ok, err := s.enter(k)
	return k, ok, err
}

// enter says who connects.
func (s *Subscription) enter(k *socket) (ok tracker.AuthOK, err error) {
	resume := s.resume()
	if err := k.send(tracker.Auth{Type: tracker.FrameAuth, Token: s.c.token, Agent: s.s.Agent, Resume: resume}); err != nil {
		return ok, fmt.Errorf("authenticate: %w", err)
	}
	_ = k.ws.SetReadDeadline(time.Now().Add(dialWithin)) // a broken connection cannot be read
	_, raw, err := k.ws.ReadMessage()
	if err != nil {
		return ok, fmt.Errorf("authenticate: %w", reason(err))
	}
	var refused tracker.AuthError
	if json.Unmarshal(raw, &refused) == nil && refused.Type == tracker.FrameAuthError {
		return ok, fmt.Errorf("%w: %s", ErrRejected, tracker.Quote(refused.Message))
	}
	if json.Unmarshal(raw, &ok) != nil || ok.Type != tracker.FrameAuthOK {
		return ok, errors.New("authenticate: what answered is no tracker")
	}
	if resume != nil && ok.Seq < resume.LastSeq {
		s.seen = ok.Seq // the queue is another one
	}
	return ok, nil
}

// reason finds out whether a connection that ended should be made again.
func reason(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return err
	}
	switch closed.Code {
	case tracker.CloseSuperseded:
		return ErrSuperseded
	case tracker.CloseAuth:
		return ErrRejected
	}
	return err
}

// beats sends heartbeats as often as the tracker wants.
func (s *Subscription) beats(k *socket, ok tracker.AuthOK) {
	every := time.Duration(ok.HeartbeatIntervalMS) * time.Millisecond
	if every <= 0 || every > tracker.HeartbeatEvery {
		every = tracker.HeartbeatEvery
	}
	t := time.NewTicker(max(every, 100*time.Millisecond))
	defer t.Stop()
	for {
		if k.send(s.state()) != nil {
			return // reading fails too
		}
		select {
		case <-t.C:
		case <-k.ctx.Done():
			return
		}
	}
}

// read takes frames until there are no more.
func (s *Subscription) read(k *socket) error {
	alive := func() error { return k.ws.SetReadDeadline(time.Now().Add(tracker.OfflineAfter)) }
	answer := k.ws.PingHandler()
	k.ws.SetPingHandler(func(data string) error { return errors.Join(alive(), answer(data)) })
	for {
		if err := alive(); err != nil {
			return err
		}
		_, raw, err := k.ws.ReadMessage()
		if err != nil {
			return reason(err)
		}
		if err := s.frame(k, raw); err != nil {
			return err
		}
	}
}

// frame does what one says. Unknown ones are from a later tracker.
func (s *Subscription) frame(k *socket, raw []byte) error {
	var of tracker.FrameType
	if err := json.Unmarshal(raw, &of); err != nil {
		return errors.New("what was received is no frame")
	}
	switch of.Type {
	case tracker.FrameEvent:
		var f tracker.EventFrame
		if json.Unmarshal(raw, &f) != nil || f.ID == "" {
			return errors.New("what was received is no event")
		}
		if s.take(k.ctx, f) {
			return k.send(tracker.Ack{Type: tracker.FrameAck, ID: f.ID})
		}
	case tracker.FrameChatSent:
		var f tracker.ChatSent
		if json.Unmarshal(raw, &f) == nil {
			s.answered(f.ClientMsgID, chatting{sent: f})
		}
	case tracker.FrameError:
		var f tracker.ErrorFrame
		if json.Unmarshal(raw, &f) == nil {
			s.c.o.Logger.WarnContext(k.ctx, "the tracker refused a frame", "err", &f.Error)
			s.answered(f.ClientMsgID, chatting{err: &f.Error})
		}
	}
	return nil
}
