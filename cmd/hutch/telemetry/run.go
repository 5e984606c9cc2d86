package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Run is a run of an agent.
type Run struct{ Agent, Thread, ID, Face string }

// Ended is how a run ended: Error is the code of what it failed with, empty if it did not,
// and Outcome a word for how it ended otherwise.
type Ended struct {
	Error, Outcome string
	Usage          []chat.Usage
}

// runKey is where the context of a run has it.
type runKey struct{}

// Run begins a run, which is over with end.
func (t *T) Run(ctx context.Context, m Model, r Run) (within context.Context, end func(Ended)) {
	if t == nil {
		return ctx, func(Ended) {}
	}
	began := time.Now()
	common := []attribute.KeyValue{keyOperation.String(opRun), keyProvider.String(m.provider())}
	if m.Name != "" {
		common = append(common, keyModel.String(t.text(m.Name)))
	}
	ctx, span := t.tracer.Start(context.WithValue(ctx, runKey{}, r), opRun+" "+r.Agent,
		trace.WithAttributes(common...), trace.WithAttributes(t.ofRun(r)...), trace.WithAttributes(keyFace.String(r.Face)), t.requestOf(ctx))
	return ctx, func(e Ended) {
		span.SetAttributes(keyOutcome.String(e.Outcome))
		span.SetAttributes(spent(e.Usage)...)
		t.over(ctx, span, began, common, e.Error)
	}
}

// ofRun are the ids of a run.
func (t *T) ofRun(r Run) []attribute.KeyValue {
	return []attribute.KeyValue{keyAgent.String(r.Agent), keyConversation.String(t.text(r.Thread)), keyRun.String(t.text(r.ID))}
}

// over ends the span of an operation of the conventions, and counts it.
func (t *T) over(ctx context.Context, span trace.Span, began time.Time, common []attribute.KeyValue, failed string) {
	if failed != "" {
		common = append(common, keyError.String(failed))
		span.SetAttributes(keyError.String(failed))
		span.SetStatus(codes.Error, "") // its text could quote anything
	}
	span.End()
	t.meters.operations.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(common...))
}

// spent are the tokens that something used; what is not known is not said.
func spent(all []chat.Usage) (attrs []attribute.KeyValue) {
	var in, out, cached, thought int64
	for _, u := range all {
		in, out = in+u.InputTokens, out+u.OutputTokens
		cached, thought = cached+u.CachedInputTokens, thought+u.ReasoningTokens
	}
	for _, n := range []struct {
		key   attribute.Key
		count int64
	}{{keyIn, in}, {keyOut, out}, {keyCached, cached}, {keyThought, thought}} {
		if n.count > 0 {
			attrs = append(attrs, n.key.Int64(n.count))
		}
	}
	return attrs
}
