package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
)

// maxLine is the longest message that a stdio client may send, in bytes.
const maxLine = 16 << 20

// ServeStdio speaks with one client, a JSON-RPC message a line, until its input
// ends and running calls are answered (nil), ctx ends (its error), or the
// client cannot be written to. It closes in and out. Several connections may be
// served at once. Nothing but the protocol is written to out.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	c := newLines(s, in, out)
	defer c.shut()
	if s.stopped() {
		return errors.New("mcp: the server is shutting down")
	}
	session, err := s.sdk.Connect(ctx, c, nil)
	if err != nil {
		return fmt.Errorf("mcp: stdio: %w", err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer s.recovered("wait for a stdio client")
		failed = session.Wait()
	}()
	select {
	case <-ended:
		return failed
	case <-ctx.Done():
		c.shut()
	}
	select { // shutting cancelled the calls
	case <-ended:
	case <-time.After(closeTimeout):
	}
	return ctx.Err()
}

// lines is a connection of newline-delimited JSON, both a [sdk.Transport] and
// the [sdk.Connection] it makes. Unlike go-sdk's own it survives lines that are
// no message, answers a second request under an id in use, and lets running
// calls end when the input does.
type lines struct {
	s   *Server
	in  io.ReadCloser
	out io.WriteCloser

	incoming chan line
	closing  sync.Once
	closed   chan struct{}
	closeErr error

	writing sync.Mutex

	mu      sync.Mutex
	running map[jsonrpc.ID]*request
	idle    chan struct{} // closed when nothing runs; nil unless someone waits
}

type line struct {
	text []byte
	err  error
}

// A request is one that was not answered yet.
type request struct {
	listen    bool // a subscription: answered only when it ends
	cancelled bool // by the client, who wants no answer then
}

func newLines(s *Server, in io.ReadCloser, out io.WriteCloser) *lines {
	return &lines{
		s: s, in: in, out: out,
		incoming: make(chan line), closed: make(chan struct{}), running: map[jsonrpc.ID]*request{},
	}
}

// Connect implements [sdk.Transport].
func (c *lines) Connect(context.Context) (sdk.Connection, error) {
	go c.scan()
	return c, nil
}

// SessionID implements [sdk.Connection]: there is none over stdio.
func (c *lines) SessionID() string { return "" }

// Close implements [sdk.Connection].
func (c *lines) Close() error {
	c.shut()
	return c.closeErr
}

func (c *lines) shut() {
	c.closing.Do(func() {
		close(c.closed)
		c.closeErr = errors.Join(c.in.Close(), c.out.Close())
	})
}

// errLong marks a line over maxLine, of which nothing was kept.
var errLong = errors.New("line too long")

// scan reads lines until the input ends. A read that does not end when in is
// closed keeps this goroutine.
func (c *lines) scan() {
	defer c.s.recovered("read from a stdio client")
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		text, err := readLine(r, maxLine)
		select {
		case c.incoming <- line{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLong) {
			return
		}
	}
}

// readLine returns the next line without its end. A last line without an end
// counts. A line longer than most is skipped and reported as errLong.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > most+2; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		case err == nil, errors.Is(err, io.EOF) && len(text) > 0:
			return bytes.TrimRight(text, "\r\n"), nil
		default:
			return nil, err
		}
	}
}

// Read implements [sdk.Connection]. Only messages that were checked come out.
func (c *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.incoming:
			switch {
			case errors.Is(l.err, errLong):
				c.refuse(nil, refusef(jsonrpc.CodeInvalidRequest, "a line of more than %d bytes, the most allowed", maxLine))
			case l.err != nil:
				c.drain(ctx)
				return nil, io.EOF
			case len(bytes.TrimSpace(l.text)) > 0:
				if msg := c.message(l.text); msg != nil {
					return msg, nil
				}
			}
		}
	}
}

// message returns what a line says, or answers it and returns nil.
func (c *lines) message(text []byte) jsonrpc.Message {
	m, refused := readMessage(text)
	if refused != nil {
		if m.id != nil || m.method == "" { // notifications are never answered
			c.refuse(m.id, refused)
		}
		return nil
	}
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		c.refuse(m.id, refusef(jsonrpc.CodeInvalidRequest, "not a JSON-RPC message"))
		return nil
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok:
		return msg
	case req.IsCall():
		if refused := c.begin(req); refused != nil {
			c.refuse(m.id, refused)
			return nil
		}
	case req.Method == "notifications/cancelled":
		c.cancelled(req)
	}
	return msg
}

// begin takes note of a request. It refuses one whose id is in use, which
// go-sdk would not answer at all. And it refuses a second subscription, because
// go-sdk knows only one for each connection, and would end both with either.
func (c *lines) begin(req *jsonrpc.Request) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[req.ID] != nil {
		return refusef(jsonrpc.CodeInvalidRequest, "id %v is in use by a request that was not answered yet", req.ID.Raw())
	}
	r := &request{listen: req.Method == "subscriptions/listen"}
	if r.listen {
		for _, other := range c.running {
			if other.listen && !other.cancelled {
				return refusef(jsonrpc.CodeInvalidRequest, "id %v: one subscription for each connection, cancel the other first", req.ID.Raw())
			}
		}
	}
	c.running[req.ID] = r
	return nil
}

func (c *lines) cancelled(req *jsonrpc.Request) {
	var p struct {
		ID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.ID)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[id]; r != nil {
		r.cancelled = true
	}
}

// drain waits until every running call was answered.
func (c *lines) drain(ctx context.Context) {
	idle := make(chan struct{})
	c.mu.Lock()
	c.idle = idle
	c.checkIdle()
	c.mu.Unlock()
	timeout := time.NewTimer(c.s.o.Drain)
	defer timeout.Stop()
	select {
	case <-idle:
	case <-timeout.C:
	case <-c.closed:
	case <-c.s.life.Done():
	case <-ctx.Done():
	}
}

// checkIdle needs the lock.
func (c *lines) checkIdle() {
	if c.idle == nil {
		return
	}
	for _, r := range c.running {
		if !r.listen {
			return
		}
	}
	close(c.idle)
	c.idle = nil
}

// Write implements [sdk.Connection].
func (c *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		return c.encode(msg)
	}
	var coded *jsonrpc.Error
	if resp.Error != nil && !errors.As(resp.Error, &coded) { // go-sdk would send code 0
		resp.Error = rpcError(jsonrpc.CodeInvalidRequest, abi.Cut(resp.Error.Error(), maxErrorText))
	}
	if !c.finish(resp.ID) {
		return nil
	}
	return c.encode(resp)
}

// finish frees the id before its answer goes out: the client may use it again
// as soon as it reads that. It returns false if the client wants no answer.
// go-sdk closes nothing while an answer is being written.
func (c *lines) finish(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.running[id]
	delete(c.running, id)
	c.checkIdle()
	return r == nil || !r.cancelled
}

func (c *lines) encode(msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.send(text)
}

func (c *lines) send(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}

func (c *lines) refuse(id json.RawMessage, r *refusal) {
	if err := c.send(r.answer(id)); err != nil {
		c.s.o.Logger.Debug("mcp: answer a stdio client", "error", err)
	}
}
