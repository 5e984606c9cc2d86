package mcp

import (
	"bufio"
	"bytes"
	"cmp"
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

const (
	// maxLine is the longest message that a stdio client may send, in bytes.
	maxLine = 16 << 20
	// maxUnanswered is how many requests it may have under way: those that are
	// more than MaxCalls are answered as fast as it reads.
	maxUnanswered = 1024
)

// farewell is how long a client may take to read what is answered at the end.
const farewell = time.Second

// ServeStdio speaks with one client, a JSON-RPC message a line, until its input
// ends and running calls are answered (nil), ctx or the server ends (ctx's error),
// or the client cannot be written to. Requests that are not done by then are
// answered with an error, unless the client does not read. It closes in and out.
// Several connections may be served at once. Nothing but the protocol is written
// to out.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	c := newLines(s, in, out)
	defer c.shut()
	if s.Stopping() {
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
	case <-s.life.Done():
		c.drain(farewell) // its calls were cancelled, and say so themselves
	case <-c.closed: // its input has ended
	}
	c.shut()
	select { // shutting cancelled the calls
	case <-ended:
		return cmp.Or(ctx.Err(), failed)
	case <-time.After(closeTimeout):
		return ctx.Err()
	}
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

	writing chan struct{} // holds one value while something is written

	mu      sync.Mutex
	running map[jsonrpc.ID]*request
	ending  bool            // nothing new is taken
	idle    []chan struct{} // closed when nothing runs
}

type line struct {
	text []byte
	err  error
}

// A request is one that was not answered yet.
type request struct {
	listen   bool   // a subscription: answered only when it ends
	settled  bool   // the client cancelled it or has an answer: none may follow
	answered func() // lets Shutdown go on
}

func newLines(s *Server, in io.ReadCloser, out io.WriteCloser) *lines {
	return &lines{
		s: s, in: in, out: out,
		incoming: make(chan line), closed: make(chan struct{}), writing: make(chan struct{}, 1), running: map[jsonrpc.ID]*request{},
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
		c.settle()
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
				c.drain(c.s.o.Drain)
				c.shut() // what is answered after Read has failed, go-sdk drops
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
	r := &request{listen: req.Method == "subscriptions/listen", answered: func() {}}
	switch {
	case c.ending:
		return notBegun()
	case len(c.running) >= maxUnanswered:
		return refusef(jsonrpc.CodeInternalError, "%d requests were not answered yet, the most allowed: read the answers before asking more", maxUnanswered)
	case r.listen && c.listens():
		return refusef(jsonrpc.CodeInvalidRequest, "id %v: one subscription for each connection, cancel the other first", req.ID.Raw())
	case req.Method == "tools/call":
		// A call has ended before its answer is out: Shutdown waits for both.
		if !c.s.enter() {
			return notBegun()
		}
		r.answered = sync.OnceFunc(c.s.calls.Done)
	}
	c.running[req.ID] = r
	return nil
}

// CodeNotBegun answers a request that came when the server was about
// to end and that nothing was done about: it may be sent to another. It is one of
// the codes that JSON-RPC leaves to servers.
const CodeNotBegun = -32050

func notBegun() *refusal {
	return refusef(CodeNotBegun, "the server is shutting down, the request was not begun: send it again")
}

// stopping answers what cannot be done any more.
func stopping() *refusal {
	return refusef(jsonrpc.CodeInternalError, "the server is shutting down, the request was not finished")
}

// listens needs the lock.
func (c *lines) listens() bool {
	for _, r := range c.running {
		if r.listen && !r.settled {
			return true
		}
	}
	return false
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
		r.settled = true
	}
}

// drain waits until every running call was answered, but not for ever.
func (c *lines) drain(most time.Duration) {
	idle := make(chan struct{})
	c.mu.Lock()
	c.idle = append(c.idle, idle)
	c.checkIdle()
	c.mu.Unlock()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-idle:
	case <-timeout.C:
	case <-c.closed:
	}
}

// checkIdle needs the lock.
func (c *lines) checkIdle() {
	for _, r := range c.running {
		if !r.listen {
			return
		}
	}
	for _, idle := range c.idle {
		close(idle)
	}
	c.idle = nil
}

// settle takes nothing new, and answers whoever waits with an error. It returns
// when all have it, or the client has not read for too long.
func (c *lines) settle() {
	c.mu.Lock()
	c.ending = true
	var waiting []jsonrpc.ID
	var answered []func()
	for id, r := range c.running {
		if !r.settled && !r.listen {
			waiting = append(waiting, id)
		}
		r.settled = true
		answered = append(answered, r.answered)
	}
	c.mu.Unlock()
	told := make(chan struct{})
	go func() {
		defer close(told)
		defer c.s.recovered("answer at the end")
		for _, id := range waiting {
			c.refuse(encodeID(id), stopping())
		}
		c.writing <- struct{}{} // for an answer that is on its way
		defer func() { <-c.writing }()
	}()
	timeout := time.NewTimer(farewell)
	defer timeout.Stop()
	select {
	case <-told:
	case <-timeout.C:
		c.s.o.Logger.Debug("mcp: a stdio client does not read its last answers")
	}
	for _, done := range answered {
		done()
	}
}

// encodeID returns an id as it stands in a message, nil if it cannot.
func encodeID(id jsonrpc.ID) json.RawMessage {
	raw, err := json.Marshal(id.Raw())
	if err != nil {
		return nil
	}
	return raw
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
	text, err := jsonrpc.EncodeMessage(resp)
	if err != nil {
		return err
	}
	c.writing <- struct{}{} // from before it is finished until it is out: settle waits for that
	defer func() { <-c.writing }()
	wanted, answered := c.finish(resp.ID)
	defer answered()
	if !wanted {
		return nil
	}
	return c.write(text)
}

// finish frees the id before its answer goes out: the client may use it again
// as soon as it reads that. It says whether the client wants the answer, and
// what to call when it is out. go-sdk closes nothing while an answer is being
// written.
func (c *lines) finish(id jsonrpc.ID) (wanted bool, answered func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.running[id]
	if r == nil {
		return true, func() {}
	}
	delete(c.running, id)
	c.checkIdle()
	return !r.settled, r.answered
}

func (c *lines) encode(msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.send(text)
}

func (c *lines) send(text []byte) error {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	return c.write(text)
}

// write needs writing.
func (c *lines) write(text []byte) error {
	_, err := c.out.Write(append(text, '\n'))
	return err
}

func (c *lines) refuse(id json.RawMessage, r *refusal) {
	if err := c.send(r.answer(id, "")); err != nil {
		c.s.o.Logger.Debug("mcp: answer a stdio client", "error", err)
	}
}
