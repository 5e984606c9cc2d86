package trackerhub

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	// authMost is how large the first frame may be: it is a stranger's.
	authMost = 16 << 10
	// frameMost is how large others may be: a message of which every byte is escaped.
	frameMost = 6*tracker.MaxMessage + 64<<10
	// goodbye is how long a peer has to read why a connection ends.
	goodbye = time.Second
	// boardWithin is how long the board may take to be told that an agent has left.
	boardWithin = 5 * time.Second
)

// A conn is one connection.
type conn struct {
	h     *Hub
	r     *http.Request
	token string // of the upgrade, and then that of the auth frame
	ws    *websocket.Conn
	known bool // under the hub's lock

	ctx    context.Context
	cancel context.CancelFunc
	ending sync.Once
	code   int // why it ends, before ctx does
	text   string

	service tracker.Service
	me      tracker.MemberOut
	out     chan any    // what the writer is to send besides events
	acks    chan string // ids; who sends more at once waits
	rings   chan struct{}
	looked  chan int64
}

func newConn(h *Hub, r *http.Request, token string) *conn {
	c := &conn{
		h: h, r: r, token: token, out: make(chan any, 16), acks: make(chan string, 64),
		rings: make(chan struct{}), looked: make(chan int64, 1),
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	return c
}

// end says why a connection ends, and ends it. The first reason counts.
func (c *conn) end(code int, text string) {
	c.ending.Do(func() {
		c.code, c.text = code, text
		c.cancel()
	})
}

// lapse ends a connection whose request has ended: for a reason of its own, because what let
// it in is good no more, and otherwise because whoever serves it stops.
func (c *conn) lapse() {
	if cause := context.Cause(c.r.Context()); errors.Is(cause, context.Canceled) {
		c.end(websocket.CloseGoingAway, "the tracker stops")
		return
	}
	c.end(tracker.CloseAuth, "the token is good no more")
}

// guard ends the connection where a panic would end the program.
func (c *conn) guard() {
	if p := recover(); p != nil {
		c.h.o.Logger.Error("a connection to the tracker panicked", "panic", p, "stack", string(debug.Stack()))
		c.end(websocket.CloseInternalServerErr, "the tracker failed")
	}
}

// serve is the whole life of a connection.
func (c *conn) serve() {
	defer c.cancel()
	defer func() { _ = c.ws.Close() }()
	defer context.AfterFunc(c.r.Context(), c.lapse)()
	// Nobody but the writer writes.
	c.ws.SetCloseHandler(func(int, string) error { return nil })
	last, ok := c.admit()
	if !ok {
		c.farewell()
		c.drain()
		return
	}
	c.h.known(c)
	defer c.leave()
	var others sync.WaitGroup
	others.Go(func() { c.write(last) })
	others.Go(c.await)
	err := c.read()
	c.end(codeOf(err))
	others.Wait()
	if errors.Is(err, websocket.ErrReadLimit) {
		c.drain()
	}
}

// codeOf is what a connection ends with that cannot be read any more.
func codeOf(err error) (int, string) {
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed):
		return websocket.CloseNormalClosure, ""
	case errors.Is(err, websocket.ErrReadLimit):
		return websocket.CloseMessageTooBig, "the frame is too large"
	case timedOut(err):
		return websocket.CloseGoingAway, "nothing was heard for too long"
	}
	return websocket.CloseProtocolError, ""
}

func timedOut(err error) bool {
	var of net.Error
	return errors.As(err, &of) && of.Timeout()
}

// drain reads on for a moment: a connection that is closed with something unread is cut, and
// its peer may not see why.
func (c *conn) drain() {
	below := c.ws.NetConn()
	_ = below.SetReadDeadline(time.Now().Add(goodbye)) // a broken one ends the copy
	_, _ = io.Copy(io.Discard, io.LimitReader(below, 16<<20))
}

// farewell says why the connection ends. It is the writer's last word.
func (c *conn) farewell() {
	_ = c.ws.WriteControl(websocket.CloseMessage, closeFrame(c.code, c.text), time.Now().Add(goodbye)) // who has left does not hear it
}

func closeFrame(code int, text string) []byte {
	if code == 0 {
		code = websocket.CloseNormalClosure
	}
	return websocket.FormatCloseMessage(code, text)
}

// admit reads the first frame and lets its sender in.
func (c *conn) admit() (last int64, ok bool) {
	defer c.guard()
	stop := context.AfterFunc(c.ctx, func() { _ = c.ws.SetReadDeadline(time.Now()) }) // the hub closes
	defer stop()
	c.ws.SetReadLimit(authMost)
	_ = c.ws.SetReadDeadline(time.Now().Add(c.h.o.AuthWithin)) // a broken connection cannot be read
	kind, raw, err := c.ws.ReadMessage()
	if timedOut(err) {
		c.end(tracker.CloseAuthTimeout, "the first frame, auth, did not come in time")
		return 0, false
	}
	if err != nil {
		c.end(codeOf(err))
		return 0, false
	}
	var auth tracker.Auth
	if kind != websocket.TextMessage || !utf8.Valid(raw) || json.Unmarshal(raw, &auth) != nil || auth.Type != tracker.FrameAuth {
		return 0, c.reject(tracker.Errorf(tracker.CodeBadRequest, "the first frame is none of the type auth"))
	}
	if auth.Token != "" {
		c.token = auth.Token
	}
	return c.connect(auth)
}

// reject tells a peer why it does not get in.
func (c *conn) reject(err error) bool {
	var e *tracker.Error
	if !errors.As(err, &e) || e.Status() >= 500 {
		c.h.o.Logger.Error("an agent could not be let in", "err", err)
		c.end(websocket.CloseTryAgainLater, "the tracker failed")
		return false
	}
	_ = c.send(tracker.AuthError{Type: tracker.FrameAuthError, Message: e.Error()}) // the code says it as well
	c.end(tracker.CloseAuth, "not let in")
	return false
}

// connect takes the place of the agent's connection before.
func (c *conn) connect(auth tracker.Auth) (last int64, ok bool) {
	var err error
	c.service, err = c.h.open(c.r, c.token)
	if err == nil && c.service == nil {
		err = tracker.Errorf(tracker.CodeUnauthorized, "nobody has this token")
	}
	if err == nil {
		c.me, err = c.service.GetMember(c.ctx, "me")
	}
	if err != nil {
		return 0, c.reject(err)
	}
	c.h.hold(c.me.ID, func(s *slot) {
		if c.me, last, err = c.service.Connect(c.ctx, auth.Agent, auth.Resume); err != nil {
			return
		}
		if s.holder != nil {
			s.holder.end(tracker.CloseSuperseded, "superseded")
		}
		s.holder = c
	})
	if err != nil {
		return 0, c.reject(err)
	}
	return last, true
}

// leave makes the agent offline, unless it has another connection by now.
func (c *conn) leave() {
	c.h.hold(c.me.ID, func(s *slot) {
		if s.holder != c {
			return
		}
		s.holder = nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), boardWithin)
		defer cancel()
		if err := c.service.Disconnect(ctx); err != nil {
			c.h.o.Logger.Warn("the board could not be told that an agent left; it finds out by itself", "agent", c.me.Slug, "err", err)
		}
	})
}

// read does what frames say, until there are no more.
func (c *conn) read() (err error) {
	defer c.guard()
	c.ws.SetReadLimit(frameMost)
	alive := func() error { return c.ws.SetReadDeadline(time.Now().Add(c.h.o.OfflineAfter)) }
	c.ws.SetPongHandler(func(string) error { return alive() })
	c.ws.SetPingHandler(func(data string) error {
		select {
		case c.out <- pong(data):
		default: // it has enough to read
		}
		return alive()
	})
	for {
		if err := alive(); err != nil {
			return err
		}
		kind, raw, err := c.ws.ReadMessage()
		if err != nil {
			return err
		}
		switch {
		case c.ctx.Err() != nil: // it was told goodbye, and what still comes is read by nobody
		case kind != websocket.TextMessage:
			c.end(websocket.CloseUnsupportedData, "frames are text")
		case !utf8.Valid(raw):
			c.end(websocket.CloseInvalidFramePayloadData, "frames are UTF-8")
		default:
			c.take(raw)
		}
	}
}

// take does what a frame says.
func (c *conn) take(raw []byte) {
	var of tracker.FrameType
	if err := json.Unmarshal(raw, &of); err != nil {
		c.answer(c.refusal("", tracker.Errorf(tracker.CodeBadRequest, "the frame is no JSON object with a type")))
		return
	}
	switch of.Type {
	case tracker.FrameAuth:
		c.answer(tracker.AuthError{Type: tracker.FrameAuthError, Message: "this connection has authenticated already: the frame is ignored"})
	case tracker.FrameHeartbeat:
		takeFrame(c, raw, func(h tracker.Heartbeat) error { return c.service.Heartbeat(c.ctx, h) })
	case tracker.FrameAck:
		takeFrame(c, raw, c.acked)
	case tracker.FrameChatSend:
		c.chat(raw)
	default:
		c.h.unknown.Add(1)
	}
}

// takeFrame reads a frame and does what it says, and answers only if that fails.
func takeFrame[T any](c *conn, raw []byte, do func(T) error) {
	var f T
	err := error(tracker.Errorf(tracker.CodeInvalid, "the frame has a member of another type"))
	if json.Unmarshal(raw, &f) == nil {
		err = do(f)
	}
	if err != nil && c.ctx.Err() == nil {
		c.answer(c.refusal("", err))
	}
}

func (c *conn) acked(a tracker.Ack) error {
	if a.ID == "" || len(a.ID) > tracker.MaxRef {
		return nil // the id of no event
	}
	select {
	case c.acks <- a.ID:
	case <-c.ctx.Done():
	}
	return nil
}

func (c *conn) chat(raw []byte) {
	var f tracker.ChatSend
	if json.Unmarshal(raw, &f) != nil {
		c.answer(c.refusal(f.ClientMsgID, tracker.Errorf(tracker.CodeInvalid, "the frame has a member of another type")))
		return
	}
	out, err := c.service.SendMessage(c.ctx, tracker.SendMessage{
		ChatID: f.ChatID, Content: f.Content, Mentions: f.Mentions, IdempotencyKey: f.ClientMsgID,
	})
	if err != nil {
		c.answer(c.refusal(f.ClientMsgID, err))
		return
	}
	c.answer(tracker.ChatSent{Type: tracker.FrameChatSent, ClientMsgID: f.ClientMsgID, MessageID: out.ID})
}

// refusal is what a peer is told of an error.
func (c *conn) refusal(id string, err error) tracker.ErrorFrame {
	var e *tracker.Error
	if !errors.As(err, &e) {
		c.h.o.Logger.Error("a frame failed", "agent", c.me.Slug, "err", err)
		e = tracker.Errorf(tracker.CodeInternal, "the tracker failed")
	}
	return tracker.ErrorFrame{Type: tracker.FrameError, ClientMsgID: id, Error: *e}
}

// answer has the writer send a frame. Who sends without reading waits here.
func (c *conn) answer(frame any) {
	select {
	case c.out <- frame:
	case <-c.ctx.Done():
	}
}
