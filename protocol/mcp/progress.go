package mcp

import (
	"context"
	"fmt"
	"math"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// pendingProgress is how many reports of a tool wait for a slow client before
// the oldest are dropped.
const pendingProgress = 64

// A reporter sends one call's progress from a goroutine of its own, so that a
// tool never waits for a client. A nil reporter sends nothing.
type reporter struct {
	send    func(tool.Progress) error
	every   time.Duration
	reports chan tool.Progress
	stopped chan struct{} // closed by stop
	ended   chan struct{} // closed when nothing more is sent
	sent    bool          // read after ended

	last  tool.Progress
	began time.Time
}

// startReporter returns nil if the client did not ask for progress.
func (s *Server) startReporter(ctx context.Context, req *sdk.CallToolRequest) *reporter {
	token := progressToken(req)
	if token == nil {
		return nil
	}
	r := newReporter(s.o.Heartbeat, func(p tool.Progress) error {
		return req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: abi.Cut(p.Message, maxErrorText),
		})
	})
	go func() {
		defer close(r.ended)
		defer s.recovered("send progress")
		r.run()
	}()
	return r
}

func newReporter(every time.Duration, send func(tool.Progress) error) *reporter {
	return &reporter{
		send: send, every: every, began: time.Now(),
		last:    tool.Progress{Progress: math.Inf(-1)},
		reports: make(chan tool.Progress, pendingProgress),
		stopped: make(chan struct{}), ended: make(chan struct{}),
	}
}

// progress returns what a tool reports to, nil for a nil reporter.
func (r *reporter) progress() func(tool.Progress) {
	if r == nil {
		return nil
	}
	return r.report
}

// report never blocks. Tools call it from one goroutine at a time.
func (r *reporter) report(p tool.Progress) {
	for {
		select {
		case r.reports <- p:
			return
		default:
		}
		select {
		case <-r.reports:
		default:
		}
	}
}

// stop sends what is waiting, returns when nothing more will be sent, and says
// whether anything was.
func (r *reporter) stop() bool {
	if r == nil {
		return false
	}
	close(r.stopped)
	<-r.ended
	return r.sent
}

func (r *reporter) run() {
	beat := time.NewTicker(r.every)
	defer beat.Stop()
	for {
		select {
		case p := <-r.reports:
			if r.forward(p) {
				beat.Reset(r.every)
			}
		case <-beat.C:
			r.forward(r.heartbeat())
		case <-r.stopped:
			for {
				select {
				case p := <-r.reports:
					r.forward(p)
				default:
					return
				}
			}
		}
	}
}

// heartbeat is a report that moves on by next to nothing, so that it never
// overtakes the tool.
func (r *reporter) heartbeat() tool.Progress {
	p := r.last
	if math.IsInf(p.Progress, -1) {
		p.Progress = 0
	} else {
		p.Progress = max(p.Progress+1e-6*max(1, p.Total), math.Nextafter(p.Progress, math.Inf(1)))
	}
	p.Message = fmt.Sprintf("still running after %d s", int(time.Since(r.began).Seconds()))
	return p
}

// forward sends p if it is a step forward: the specification wants each report
// to be greater than the one before.
func (r *reporter) forward(p tool.Progress) bool {
	if !(p.Progress > r.last.Progress) || math.IsInf(p.Progress, 1) {
		return false
	}
	if !(p.Total > 0) || math.IsInf(p.Total, 1) {
		p.Total = 0
	}
	r.last, r.sent = p, true
	// A client that is gone gets no result either: nobody to tell.
	return r.send(p) == nil
}
