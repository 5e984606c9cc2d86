// Package relay carries one stdio MCP client across servers that come and go.
//
// The client sees a single connection. Behind it, the process that owns the tools
// may end and another take over: the relay connects again, repeats the client's
// handshake, sends again what can be sent twice, and answers for the calls that
// were lost. It looks at no more of a message than its id and its method.
package relay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// A Server is one connection to a server of MCP, a message a line.
type Server interface {
	io.ReadWriteCloser
	// CloseWrite says that nothing more will be written. The server answers what
	// is open, and closes its side.
	CloseWrite() error
	// Check returns an error if the server does nothing any more, though its
	// connection is open. It is asked while a request waits for an answer, beside
	// everything else, and may take until ctx ends.
	Check(ctx context.Context) error
}

// Options configure a [Relay].
type Options struct {
	// Connect finds the server of the moment. It is called again when that ended,
	// and may wait until ctx ends.
	Connect func(ctx context.Context) (Server, error)
	// Patience is how long the client waits for a new server when one ended.
	// Default 15 s.
	Patience time.Duration
	// NotBegun is the code of a server's error that says that it did nothing about
	// a request, because it is about to end: the next server gets it. 0: none does.
	NotBegun int64
	// Logger gets what an operator should know, never a message. Default: nothing
	// is logged.
	Logger *slog.Logger
}

// longLine is longer than any message that a server takes, in bytes.
const longLine = 17 << 20

// Run relays until the client's input ends and its requests are answered, out
// cannot be written to, or ctx ends. It returns Connect's error if no server could
// be found.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Patience == 0 {
		o.Patience = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &relay{o: o, out: out, fail: cancel, open: map[string]pending{}, lines: make(chan []byte)}
	go r.read(ctx, in)
	for {
		again, err := r.serve(ctx)
		if !again {
			return err
		}
	}
}

// relay is the state that outlives a server.
type relay struct {
	o     Options
	out   io.Writer
	fail  context.CancelCauseFunc // ends everything with an error
	lines chan []byte             // from the client; closed when its input ends

	mu sync.Mutex
	// open are the requests that were not answered, by id; order counts them.
	open  map[string]pending
	order uint64
	// greeting is the client's initialize, and greeted what followed it, if it
	// speaks an older revision of the protocol.
	greeting, greeted []byte
	// hush is the id of a repeated greeting whose answer the client has already.
	hush string
}

// pending is a request that was not answered.
type pending struct {
	id     string
	method string
	line   []byte
	order  uint64
	// unbegun says that the server has not done anything about it.
	unbegun bool
}

// read takes the client's lines until its input ends. A read that does not end
// keeps this goroutine, and nothing else.
func (r *relay) read(ctx context.Context, in io.Reader) {
	defer r.recovered("read from the client")
	defer close(r.lines)
	from := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(from)
		if len(bytes.TrimSpace(line)) > 0 {
			select {
			case r.lines <- append(bytes.TrimRight(line, "\r\n"), '\n'):
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine returns the next line. Of one that is too long it returns so much that
// the server finds it too long as well, and says so.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part[:min(len(part), longLine-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (r *relay) recovered(doing string) {
	if v := recover(); v != nil {
		r.o.Logger.Error("relay: "+doing, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		r.fail(fmt.Errorf("relay: %s: %v", doing, v))
	}
}

// serve relays to one server. again says that it ended and the client did not.
func (r *relay) serve(ctx context.Context) (again bool, err error) {
	server, err := r.connect(ctx)
	if err != nil {
		r.hear()
		r.settle(func(p pending) []byte { return failed(p.id, "no hutch process answers") })
		return false, err
	}
	began := time.Now()
	r.tellChange()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.recovered("read from the server")
		r.forward(server)
	}()
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // wakes what waits on it
	defer stop()
	muted := r.watch(ctx, server, ended)
	r.replay(server)
	over := r.send(ctx, server, ended)
	if over { // the client has nothing more to say
		_ = server.CloseWrite() // if the server is gone, the next line returns at once
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	_ = server.Close() // its end was what we waited for
	select {
	case <-ended:
	case <-ctx.Done():
		if !within(ended, lastWords) { // a client that does not read holds it up
			return false, context.Cause(ctx)
		}
	}
	how := howEnded
	if <-muted {
		how = howMute
	}
	switch {
	case ctx.Err() != nil:
		r.settle(stopped)
		return false, context.Cause(ctx)
	case over:
		r.settle(func(p pending) []byte { return lost(p.id, p.method, how) })
		return false, nil
	}
	r.o.Logger.Info("relay: the server " + how + ", looking for another")
	r.settle(func(p pending) []byte { return giveUp(p, how) })
	rest(ctx, began)
	return true, nil
}

// How often a server is asked whether it still works, while a request waits, and
// how long it may take to say so.
const (
	checkEvery    = 3 * time.Second
	checkPatience = 10 * time.Second
)

// watch checks a server until it ended, and ends one that does nothing any more.
// Whether it did so comes out once ended is closed.
func (r *relay) watch(ctx context.Context, server Server, ended <-chan struct{}) <-chan bool {
	muted := make(chan bool, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-ended
		cancel()
	}()
	go func() {
		mute := false
		defer func() { muted <- mute }()
		defer r.recovered("check the server")
		for tick := time.NewTicker(checkEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if !r.waits() || mute {
				continue
			}
			if err := check(ctx, server); err != nil && !within(ended, lastWords) {
				r.o.Logger.Warn("relay: the server stopped responding", "error", err)
				mute = true
				_ = server.Close() // wakes what waits on it
			}
		}
	}()
	return muted
}

func check(ctx context.Context, server Server) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	return server.Check(ctx)
}

// waits reports whether there is a request without an answer.
func (r *relay) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) > 0
}

// What of a client is heard when there is nobody to pass it on to: so many lines,
// each of which follows the one before within so long.
const (
	hearMost = 1000
	hearTime = 50 * time.Millisecond
)

// hear takes note of what the client has said by now, so that it is answered.
func (r *relay) hear() {
	for range hearMost {
		select {
		case line, ok := <-r.lines:
			if !ok {
				return
			}
			r.note(line)
		case <-time.After(hearTime):
			return
		}
	}
}

// lastWords is how long a client may take to read what it still gets when ctx has
// ended.
const lastWords = time.Second

func within(ended <-chan struct{}, d time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(d):
		return false
	}
}

// rest keeps servers that end as soon as they are found from costing more than a
// little.
func rest(ctx context.Context, began time.Time) {
	select {
	case <-time.After(restMost - time.Since(began)):
	case <-ctx.Done():
	}
}

// restMost is how long a server has to have lived for the next to be looked for
// at once.
const restMost = 500 * time.Millisecond

// connect waits for a server, for the first as long as Connect does.
func (r *relay) connect(ctx context.Context) (Server, error) {
	if r.again() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.o.Patience)
		defer cancel()
	}
	return r.o.Connect(ctx)
}

func (r *relay) again() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order > 0
}

// tellChange says that a server after the first may offer other tools.
func (r *relay) tellChange() {
	r.mu.Lock()
	changed := r.greeted != nil
	r.mu.Unlock()
	if changed {
		r.write([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"))
	}
}

// replay tells a new server what the last one knew.
func (r *relay) replay(server Server) {
	r.mu.Lock()
	var lines [][]byte
	if r.greeting != nil {
		if id := peek(r.greeting).id; r.open[id].method != "initialize" {
			r.hush = id
			lines = append(lines, r.greeting)
		}
		if r.greeted != nil {
			lines = append(lines, r.greeted)
		}
	}
	for _, p := range r.inOrder() {
		lines = append(lines, p.line)
		p.unbegun = false
		r.open[p.id] = p
	}
	r.mu.Unlock()
	for _, line := range lines {
		if _, err := server.Write(line); err != nil {
			return // forward finds out, too
		}
	}
}

// inOrder needs the lock.
func (r *relay) inOrder() []pending {
	all := make([]pending, 0, len(r.open))
	for _, p := range r.open {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b pending) int { return int(a.order) - int(b.order) })
	return all
}

// send passes the client's lines on until there are no more (over), or the server
// or ctx ends.
func (r *relay) send(ctx context.Context, server Server, ended <-chan struct{}) (over bool) {
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				return true
			}
			r.note(line)
			if _, err := server.Write(line); err != nil {
				return false
			}
		case <-ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// note remembers what a new server would have to be told.
func (r *relay) note(line []byte) {
	m := peek(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order++
	switch {
	case m.method == "initialize" && m.id != "":
		r.greeting, r.greeted = line, nil
	case m.method == "notifications/initialized":
		r.greeted = line
	}
	if !m.request() {
		return
	}
	if _, twice := r.open[m.id]; twice {
		return // the server refuses it, and answers the first
	}
	r.open[m.id] = pending{id: m.id, method: m.method, line: line, order: r.order}
}

// forward passes a server's lines on until it ends.
func (r *relay) forward(server io.Reader) {
	from := bufio.NewReaderSize(server, 64<<10)
	for {
		line, err := from.ReadBytes('\n')
		if err != nil { // the rest of a line is nothing a client could read
			return
		}
		if !r.wanted(peek(line)) {
			continue
		}
		if !r.write(line) {
			return
		}
	}
}

// wanted takes note of an answer and reports whether the client is to see it.
func (r *relay) wanted(m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !m.answer() {
		return true
	}
	if m.id == r.hush {
		r.hush = ""
		return false
	}
	if p, open := r.open[m.id]; open && m.code != 0 && m.code == r.o.NotBegun {
		p.unbegun = true
		r.open[m.id] = p
		return false
	}
	delete(r.open, m.id)
	return true
}

// write is called from one goroutine at a time: forward's, and serve's while that
// does not run.
func (r *relay) write(line []byte) bool {
	_, err := r.out.Write(line)
	if err != nil {
		r.fail(fmt.Errorf("relay: the client cannot be written to: %w", err))
	}
	return err == nil
}

// giveUp answers what cannot be sent again: a tool's call that may have been
// begun. The rest goes to the next server.
func giveUp(p pending, how string) []byte {
	if p.method == "tools/call" && !p.unbegun {
		return lost(p.id, p.method, how)
	}
	return nil
}

// stopped answers a request that is open when the relay is told to end.
func stopped(p pending) []byte {
	if p.method == "tools/call" {
		return toolFailed(p.id, "hutch was stopped during this call")
	}
	return failed(p.id, "hutch was stopped")
}

// settle answers each open request for which answer returns something, in the
// order they came.
func (r *relay) settle(answer func(pending) []byte) {
	r.mu.Lock()
	r.hush = ""
	var answers [][]byte
	for _, p := range r.inOrder() {
		if text := answer(p); text != nil {
			delete(r.open, p.id)
			answers = append(answers, append(text, '\n'))
		}
	}
	r.mu.Unlock()
	for _, line := range answers {
		if !r.write(line) {
			return
		}
	}
}
