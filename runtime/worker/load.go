package worker

import (
	"context"
	"errors"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// helloWait bounds a start until the worker's first word. It takes milliseconds
// on a quiet machine; a crowded one may swap.
const helloWait = 20 * time.Second

// load waits for the hello and has the module loaded, for at most compile from
// then on. After a failure the worker is gone or going.
func (p *process) load(ctx context.Context, head, wasm []byte, compile time.Duration) (loadReport, *abi.Failure) {
	if !p.greeted(ctx) {
		p.end(endStart)
		if p.reason() == endCrash {
			return loadReport{}, abi.Failf(abi.ClassWorkerLost, "the tool's process ended as soon as it started; hutch's log has details")
		}
		return loadReport{}, abi.Failf(abi.ClassInternal, "the tool's process did not start; hutch's log has details")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, compile, &wallError{compile})
	defer cancel()
	r := request{kind: kindLoad, head: head, tail: wasm, max: maxReport}
	o := p.do(&call{request: r, ctx: ctx, free: func() {}}, overCompile)
	switch {
	case o.lost && p.reason() == endMemory:
		return loadReport{}, abi.Failf(abi.ClassLimit, "compiling the module needs more memory than a worker may use")
	case o.lost:
		return loadReport{}, abi.Failf(abi.ClassWorkerLost, "the tool's process ended while it loaded the module; hutch's log has details")
	case o.failure != nil:
		p.end(endCompile)
		return loadReport{}, o.failure
	}
	report, err := decodeReport(o.body)
	if err != nil {
		p.o.log.Error("worker said nonsense", "err", err)
		p.end(endProtocol)
		return loadReport{}, abi.Failf(abi.ClassInternal, "the tool's process answered with nonsense; hutch's log has details")
	}
	p.loaded.Store(true)
	return report, nil
}

func (p *process) greeted(ctx context.Context) bool {
	timer := time.NewTimer(helloWait)
	defer timer.Stop()
	select {
	case <-p.hello:
		return true
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func overCompile(ctx context.Context) (*abi.Failure, reason) {
	if limit := (*wallError)(nil); errors.As(context.Cause(ctx), &limit) {
		return abi.Exceeded(abi.ClassTimeout, abi.LimitCompile, "compiling the module took longer than %v, the limit", limit.wall), endCompile
	}
	return closedFailure(), endClosed
}

func closedFailure() *abi.Failure {
	return abi.Failf(abi.ClassWorkerLost, "hutch is stopping")
}
