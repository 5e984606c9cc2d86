package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/hutch-run/hutch/protocol/abi"
)

// guest is a loaded module; *dialect.Guest is one.
type guest interface {
	Describe(ctx context.Context) ([]byte, error)
	Anew() string
	Call(ctx context.Context, callID uint64, in abi.Invocation) ([]byte, abi.Usage, error)
}

// loader compiles and links a module, and says how it went. A nil guest without
// an error is what a probe gets.
type loader func(ctx context.Context, wasm []byte, head loadHead) (guest, loadReport, error)

// server is the worker's side of a pipe.
type server struct {
	out  *frameWriter
	load loader
	log  *slog.Logger

	mu    sync.Mutex
	calls map[uint64]*running
	// loading and guest are set once, in this order: one module a process.
	loading bool
	guest   guest
	// heads is the reader's own.
	heads callHeads
	// pings takes the number of the last ping; one place.
	pings chan uint64
}

// running is a call on the worker's side.
type running struct {
	cancel context.CancelFunc
	// answer takes the parent's answer to the call's one outstanding ask.
	answer chan abi.Response
}

// serve speaks to the parent until it closes its end, which is no error. Calls
// that still run then are cancelled but not waited for: the process ends.
func serve(in io.Reader, out io.Writer, load loader, log *slog.Logger) error {
	s := &server{out: newFrameWriter(out), load: load, log: log, calls: map[uint64]*running{}, pings: make(chan uint64, 1)}
	if err := s.out.write(frame{kind: kindHello, head: []byte(protocolVersion)}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.answerPings(ctx)
	r := bufio.NewReaderSize(in, firstChunk)
	for {
		h, err := readHeader(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		body, err := readBody(r, h, fromParent(h.kind))
		if err != nil {
			return err
		}
		if err := s.handle(ctx, h, body); err != nil {
			return fmt.Errorf("%v frame for call %d: %w", h.kind, h.id, err)
		}
	}
}

// fromParent is the most bytes a parent's frame may have; -1 for a kind that a
// parent does not send, which no size satisfies.
func fromParent(k kind) int {
	switch k {
	case kindLoad:
		return maxModule
	case kindCall:
		return maxCall
	case kindAnswer:
		return codeBytes + maxGated
	case kindDescribe, kindCancel, kindPing:
		return 0
	default:
		return -1
	}
}

func (s *server) handle(ctx context.Context, h header, body []byte) error {
	switch h.kind {
	case kindLoad:
		return s.handleLoad(ctx, h.id, body)
	case kindDescribe:
		return s.begin(ctx, h.id, func(ctx context.Context, g guest, _ *running) ([]byte, abi.Usage, error) {
			text, err := g.Describe(ctx)
			return text, abi.Usage{Anew: g.Anew()}, err
		}, maxDescription)
	case kindCall:
		return s.handleCall(ctx, h.id, body)
	case kindCancel:
		s.mu.Lock()
		defer s.mu.Unlock()
		if r := s.calls[h.id]; r != nil {
			r.cancel()
		}
	case kindAnswer:
		return s.handleAnswer(h.id, body)
	case kindPing:
		select {
		case s.pings <- h.id:
		default: // one before it is still unanswered; a later one will be
		}
	}
	return nil
}

// answerPings says that this process is alive, from a goroutine that waits for no
// guest. The reader does not write, so that it always reads.
func (s *server) answerPings(ctx context.Context) {
	for {
		select {
		case id := <-s.pings:
			s.send(frame{kind: kindPong, id: id})
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) handleLoad(ctx context.Context, id uint64, body []byte) error {
	if s.loading {
		return errors.New("a module is loaded already")
	}
	s.loading = true
	var head loadHead
	wasm, err := decodeHead(body, &head)
	if err != nil {
		return err
	}
	go s.finish(id, maxReport, func() ([]byte, abi.Usage, error) {
		g, report, err := s.load(ctx, wasm, head)
		if err != nil {
			return nil, abi.Usage{}, err
		}
		s.mu.Lock()
		s.guest = g
		s.mu.Unlock()
		text, err := json.Marshal(report)
		return text, abi.Usage{}, err
	})
	return nil
}

func (s *server) handleCall(ctx context.Context, id uint64, body []byte) error {
	head, arguments, err := s.heads.decode(body)
	if err != nil {
		return err
	}
	limits := head.Limits.WithDefaults()
	run := func(ctx context.Context, g guest, r *running) ([]byte, abi.Usage, error) {
		return g.Call(ctx, id, abi.Invocation{
			Tool: head.Tool, Arguments: arguments, Config: head.Config, AskConfig: head.AskConfig, Limits: limits,
			Host: s.host(head, id, r), Log: s.logger(head, id), Progress: s.progress(head, id),
		})
	}
	return s.begin(ctx, id, run, limits.OutputBytes)
}

func (s *server) handleAnswer(id uint64, body []byte) error {
	response, err := decodeAnswer(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.calls[id]
	if r == nil { // the call ended without waiting, because it was cancelled
		return nil
	}
	select {
	case r.answer <- response:
		return nil
	default:
		return errors.New("an answer to a question that was not asked")
	}
}

// begin runs one call in a goroutine of its own.
func (s *server) begin(ctx context.Context, id uint64, run func(context.Context, guest, *running) ([]byte, abi.Usage, error), limit int) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel, answer: make(chan abi.Response, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guest == nil || s.calls[id] != nil {
		cancel()
		return errors.New("no module is loaded, or the number is taken")
	}
	s.calls[id] = r
	g := s.guest
	go s.finish(id, limit, func() ([]byte, abi.Usage, error) {
		defer s.end(id, r)
		return run(ctx, g, r)
	})
	return nil
}

func (s *server) end(id uint64, r *running) {
	r.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// finish runs work and reports what came of it, a panic included. A parent that
// cannot be written to is gone, and the reader finds that out.
func (s *server) finish(id uint64, limit int, work func() ([]byte, abi.Usage, error)) {
	answer, usage, err := guarded(work)
	if err == nil && len(answer) > limit {
		err = abi.Exceeded(abi.ClassLimit, abi.LimitOutput, "result of %d bytes, at most %d", len(answer), limit)
	}
	if err != nil {
		s.fail(id, usage, err)
		return
	}
	s.send(frame{kind: kindDone, id: id, head: encodeUsage(usage), tail: answer})
}

func guarded(work func() ([]byte, abi.Usage, error)) (answer []byte, usage abi.Usage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return work()
}

func (s *server) fail(id uint64, usage abi.Usage, err error) {
	var f *abi.Failure
	if !errors.As(err, &f) {
		s.log.Error("call failed", "call", id, "err", err)
		f = abi.Failf(abi.ClassInternal, "the worker failed")
	}
	body, err := encodeFailed(f, usage)
	if err != nil { // two strings and two numbers always marshal
		s.log.Error("failure not encoded", "call", id, "err", err)
		return
	}
	s.send(frame{kind: kindFailed, id: id, tail: body})
}

// send drops f if the parent is gone; the reader ends the process then.
func (s *server) send(f frame) { _ = s.out.write(f) }
