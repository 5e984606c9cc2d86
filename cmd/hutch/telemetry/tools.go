package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Tools are what can be called.
type Tools interface {
	List(tool.Caller) []tool.Spec
	Call(context.Context, tool.Caller, tool.Call) (tool.Result, error)
	Subscribe(func()) (stop func())
}

// Tools returns tools whose calls are told.
func (t *T) Tools(next Tools) Tools {
	if t == nil {
		return next
	}
	return toldTools{t, next}
}

type toldTools struct {
	t    *T
	next Tools
}

// List implements [Tools].
func (s toldTools) List(c tool.Caller) []tool.Spec { return s.next.List(c) }

// Subscribe implements [Tools].
func (s toldTools) Subscribe(changed func()) (stop func()) { return s.next.Subscribe(changed) }

// Statuses of calls that are looked at here.
const (
	statusOK       = "ok"
	statusAsked    = "asked"
	statusNotFound = "not_found"
)

// faceMCP is what a caller's face is over MCP: its conversation is a session, whose id is
// for its client alone.
const faceMCP = "mcp"

// Call implements [Tools].
func (s toldTools) Call(ctx context.Context, c tool.Caller, call tool.Call) (res tool.Result, err error) {
	t, began := s.t, time.Now()
	common := []attribute.KeyValue{keyOperation.String(opTool), keyProvider.String(ownProvider)}
	// Until it is found, its name is only what a caller says.
	ctx, span := t.tracer.Start(ctx, opTool, trace.WithAttributes(common...), trace.WithAttributes(t.of(c)...), t.requestOf(ctx))
	status := "panic"
	defer func() {
		failed := ""
		if status != statusOK && status != statusAsked {
			failed = status
		}
		t.over(ctx, span, began, common, failed)
	}()
	res, err = s.next.Call(ctx, c, call)
	status = t.o.Status(res, err)
	used := res.Usage
	if err != nil {
		used = tool.UsageOf(err)
	}
	span.SetAttributes(keyCallStatus.String(status), keyFuel.Int64(used.Fuel), keyHostCalls.Int(used.HostCalls))
	if status != statusNotFound {
		name := t.text(call.Name)
		span.SetName(opTool + " " + name)
		span.SetAttributes(keyTool.String(name))
	}
	if t.o.Content && span.IsRecording() {
		span.SetAttributes(t.called(call, res, err)...)
	}
	return res, err
}

// of says who calls.
func (t *T) of(c tool.Caller) []attribute.KeyValue {
	all := []attribute.KeyValue{keyToolType.String("extension"), keyCall.String(t.text(c.CallID)), keyFace.String(c.Face)}
	if c.Face == faceMCP {
		return append(all, keyMCPMethod.String("tools/call"))
	}
	return append(all, t.ofRun(Run{Agent: c.Agent, Thread: c.Conversation, ID: c.RunID})...)
}
