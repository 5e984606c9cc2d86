package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/hutch-run/hutch/protocol/abi"
)

// receive handles what the worker says until it ends, which is no error, or says
// something that ours would not.
func (p *process) receive(r io.Reader) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if err := p.greet(r); err != nil {
		return err
	}
	for {
		h, err := readHeader(r)
		if err != nil { // killed in the middle of a frame, or just gone
			return nil
		}
		if h.kind == kindPong {
			if h.size != 0 || !p.pulse.answered(h.id) {
				return fmt.Errorf("pong %d of %d bytes, which was not asked for", h.id, h.size)
			}
			continue
		}
		c := p.find(h.id)
		if c == nil {
			return fmt.Errorf("%v frame for call %d, which is not pending", h.kind, h.id)
		}
		body, err := readBody(r, h, fromWorker(h.kind, c))
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == nil {
			err = p.accept(h, c, body)
		}
		if err != nil {
			return err
		}
	}
}

func (p *process) greet(r io.Reader) error {
	h, err := readHeader(r)
	if err != nil {
		return nil // whoever waits for the hello says so
	}
	if h.kind != kindHello || h.id != 0 {
		return fmt.Errorf("first frame is a %v, not a hello", h.kind)
	}
	body, err := readBody(r, h, maxHello)
	if err != nil {
		return err
	}
	if string(body) != protocolVersion {
		return fmt.Errorf("worker speaks %q, we speak %q: is it of the same release?", body, protocolVersion)
	}
	close(p.hello)
	return nil
}

// fromWorker is the most bytes a worker's frame for c may have; -1 for a kind
// that is not a worker's, or not allowed for this call.
func fromWorker(k kind, c *call) int {
	switch {
	case k == kindDone:
		return usageBytes + maxAnew + c.max
	case k == kindFailed:
		return maxFailed
	case c.kind != kindCall:
		return -1
	case k == kindAsk && c.inv.Host != nil:
		return 1 + maxOpName + maxGated
	case k == kindLog && c.inv.Log != nil:
		return levelBytes + c.inv.Limits.LogLineBytes + spareLogBytes
	case k == kindProgress && c.inv.Progress != nil:
		return maxProgress
	default:
		return -1
	}
}

func (p *process) accept(h header, c *call, body []byte) error {
	switch h.kind {
	case kindDone:
		answer, usage, err := decodeDone(body)
		if err != nil {
			return err
		}
		if len(answer) > c.max { // the frame could have been one with a reason
			return fmt.Errorf("answer of %d bytes, at most %d", len(answer), c.max)
		}
		p.answered(c, outcome{body: answer, usage: usage})
	case kindFailed:
		failure, usage, err := decodeFailed(body)
		if err != nil {
			return err
		}
		p.answered(c, outcome{failure: failure, usage: usage})
	case kindAsk:
		return p.acceptAsk(c, body)
	case kindLog:
		return p.acceptLog(c, body)
	case kindProgress:
		return p.acceptProgress(c, body)
	}
	return nil
}

func (p *process) answered(c *call, o outcome) {
	if p.take(c.id) == nil {
		return // its caller gave up before it was sent
	}
	if c.kind != kindLoad {
		p.served.Store(true)
	}
	if c.settle(o) {
		p.o.count.late.Add(1)
	}
}

func (p *process) acceptAsk(c *call, body []byte) error {
	op, request, err := decodeAsk(body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.left: // it was told so, and waits no longer
		return nil
	case op == abi.OpConfig && !c.inv.AskConfig:
		return errors.New("a question about configuration, which it was given")
	case c.asking:
		return errors.New("a second question before the first was answered")
	case c.asked >= c.inv.Limits.HostCalls:
		return fmt.Errorf("more than %d host calls", c.inv.Limits.HostCalls)
	}
	c.asked++
	c.asking = true
	p.gated.Add(1)
	go p.serveAsk(c, abi.Request{CallID: c.id, Op: op, Body: request})
	return nil
}

// serveAsk runs one gated operation. Operations that outlive their call, because
// a service is slow to notice its context, hold a turn of this worker's.
func (p *process) serveAsk(c *call, request abi.Request) {
	defer p.gated.Done()
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-c.ctx.Done():
		return
	}
	response := p.hosted(c, request)
	if len(response.Body) > maxGated {
		response = abi.Refuse(abi.Limit, fmt.Sprintf("the result has %d bytes, at most %d", len(response.Body), maxGated))
	}
	c.mu.Lock()
	c.asking = false
	c.mu.Unlock()
	select {
	case p.out <- frame{kind: kindAnswer, id: c.id, head: encodeCode(response.Code), tail: response.Body}:
	case <-c.ctx.Done():
	case <-p.ended:
	}
}

func (p *process) hosted(c *call, request abi.Request) (response abi.Response) {
	defer func() {
		if v := recover(); v != nil {
			p.o.log.Error("gated operation panicked", "op", string(request.Op), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			response = abi.Refuse(abi.Unavailable, "the operation failed")
		}
	}()
	return c.inv.Host(c.ctx, request)
}

func (p *process) acceptLog(c *call, body []byte) error {
	if len(body) < levelBytes || abi.LogLevel(body[0]) > abi.Error {
		return errors.New("log line without a level")
	}
	line := abi.OneLine(string(body[levelBytes:]), c.inv.Limits.LogLineBytes+spareLogBytes)
	return p.listen(c, &c.lines, c.inv.Limits.LogLines+spareLogLines, func() {
		c.inv.Log(abi.LogLevel(body[0]), line)
	})
}

func (p *process) acceptProgress(c *call, body []byte) error {
	var step struct {
		Progress *float64 `json:"progress"`
	}
	if err := json.Unmarshal(body, &step); err != nil || step.Progress == nil {
		return errors.New("progress without a number")
	}
	return p.listen(c, &c.steps, maxProgressRun, func() { c.inv.Progress(body) })
}

// listen runs a caller's callback, unless the caller has left.
func (p *process) listen(c *call, count *int, limit int, tell func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *count >= limit {
		return fmt.Errorf("more than %d frames of a kind for one call", limit)
	}
	*count++
	if c.left {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			p.o.log.Error("callback panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	tell()
	return nil
}
