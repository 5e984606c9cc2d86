package telemetry

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Model says which model something is of.
type Model struct {
	// Provider is whose interface it has; empty is hutch's own.
	Provider string
	// Name is as the provider knows it, and may be empty.
	Name string
	// URL is where it is; empty for one within hutch.
	URL string
}

func (m Model) provider() string {
	if m.Provider == "" {
		return ownProvider
	}
	return m.Provider
}

// server is where the model is.
func (m Model) server() []attribute.KeyValue {
	u, err := url.Parse(m.URL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{keyServer.String(u.Hostname()), keyServerPort.Int(port)}
}

// Streamer is what answers a conversation.
type Streamer interface {
	Stream(context.Context, chat.Request) iter.Seq2[chat.Delta, error]
}

// Model returns a model whose answers are told.
func (t *T) Model(next Streamer, m Model) Streamer {
	if t == nil {
		return next
	}
	return toldModel{t, next, m}
}

type toldModel struct {
	t    *T
	next Streamer
	m    Model
}

// Stream implements [Streamer].
func (m toldModel) Stream(ctx context.Context, r chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		a := m.begin(ctx, r)
		defer a.end()
		for d, err := range m.next.Stream(a.ctx, r) {
			if a.take(d, err); !yield(d, err) {
				a.left = err == nil && a.stop == ""
				return
			}
		}
	}
}

// An answer is one of a model, as far as it has come.
type answer struct {
	t      *T
	ctx    context.Context
	span   trace.Span
	began  time.Time
	common []attribute.KeyValue

	first bool // something came
	stop  chat.Stop
	usage chat.Usage
	err   error
	left  bool // nobody wanted the rest
	text  strings.Builder
	calls []chat.ToolCall
	at    map[int]int // the index of a call -> its place in calls
}

func (m toldModel) begin(ctx context.Context, r chat.Request) *answer {
	a := &answer{t: m.t, began: time.Now(), at: map[int]int{}}
	a.common = append(m.m.server(), keyOperation.String(opChat), keyProvider.String(m.m.provider()))
	name, kind := opChat, trace.SpanKindInternal
	if r.Model != "" {
		model := m.t.text(r.Model)
		name += " " + model
		a.common = append(a.common, keyModel.String(model))
	}
	if m.m.URL != "" {
		kind = trace.SpanKindClient
	}
	a.ctx, a.span = m.t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(a.common...), m.t.requestOf(ctx))
	if run, ok := ctx.Value(runKey{}).(Run); ok {
		a.span.SetAttributes(m.t.ofRun(run)...)
	}
	if r.MaxTokens > 0 {
		a.span.SetAttributes(keyMaxTokens.Int(r.MaxTokens))
	}
	if m.t.o.Content && a.span.IsRecording() {
		a.span.SetAttributes(m.t.asked(r.Messages)...)
	}
	return a
}

func (a *answer) take(d chat.Delta, err error) {
	if a.err = err; err != nil {
		return
	}
	if !a.first {
		a.first = true
		a.span.SetAttributes(keyFirst.Float64(time.Since(a.began).Seconds()))
	}
	if d.Usage != nil {
		a.usage = *d.Usage
	}
	if d.Stop != "" {
		a.stop = d.Stop
	}
	if a.t.o.Content {
		a.keep(d)
	}
}

// mostKept bounds how much of an answer is kept to be told: secrets are looked for in all
// of it before it is cut.
const mostKept = 1 << 20

// keep takes a piece of what is said.
func (a *answer) keep(d chat.Delta) {
	if a.text.Len()+len(d.Text) <= mostKept {
		a.text.WriteString(d.Text)
	}
	if d.Call == nil {
		return
	}
	i, known := a.at[d.Call.Index]
	switch {
	case !known && len(a.calls) < mostMessages:
		a.at[d.Call.Index] = len(a.calls)
		a.calls = append(a.calls, chat.ToolCall{ID: d.Call.ID, Function: chat.FunctionCall{Name: d.Call.Name, Arguments: d.Call.Arguments}})
	case known && len(a.calls[i].Function.Arguments) < mostKept:
		a.calls[i].Function.Arguments += d.Call.Arguments
	}
}

func (a *answer) end() {
	if a.stop != "" {
		a.span.SetAttributes(keyFinish.StringSlice([]string{finishOf(a.stop)}))
	}
	if a.usage.Model != "" {
		a.span.SetAttributes(keyAnswered.String(a.t.text(a.usage.Model)))
	}
	a.span.SetAttributes(spent([]chat.Usage{a.usage})...)
	if a.t.o.Content && a.span.IsRecording() {
		a.span.SetAttributes(a.t.answered(a.text.String(), a.calls, finishOf(a.stop)))
	}
	for _, n := range []struct {
		kind  string
		count int64
	}{{"input", a.usage.InputTokens}, {"output", a.usage.OutputTokens}} {
		if n.count > 0 {
			a.t.meters.tokens.Record(a.ctx, n.count, metric.WithAttributes(append(a.common[:len(a.common):len(a.common)], keyTokenType.String(n.kind))...))
		}
	}
	a.t.over(a.ctx, a.span, a.began, a.common, a.failed())
}

// failed is the kind of what went wrong, empty if nothing did.
func (a *answer) failed() string {
	switch {
	case a.err == nil && a.left:
		return "cancelled"
	case a.err == nil && a.stop == "":
		return "cut"
	case a.err == nil:
		return ""
	}
	for _, known := range modelErrors {
		if errors.Is(a.err, known.is) {
			return known.name
		}
	}
	return "_OTHER"
}

// modelErrors are searched in order.
var modelErrors = []struct {
	is   error
	name string
}{
	{context.Canceled, "cancelled"},
	{context.DeadlineExceeded, "timeout"},
	{chat.ErrOverflow, "overflow"},
	{chat.ErrRefused, "refused"},
	{chat.ErrUnavailable, "unavailable"},
	{chat.ErrTimeout, "timeout"},
	{chat.ErrLimit, "limit"},
	{chat.ErrCut, "cut"},
	{chat.ErrMalformed, "malformed"},
}

// finishOf is what the conventions call why a model stopped.
func finishOf(s chat.Stop) string {
	switch s {
	case chat.StopEnd:
		return "stop"
	case chat.StopCalls:
		return "tool_call"
	case chat.StopFilter:
		return "content_filter"
	case chat.StopLength:
		return "length"
	}
	return "error"
}
