package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is an HTTP request that was let in.
type Request struct {
	Method, Route string
	// Header is the request's. What it says of a trace is taken off, and what is behind
	// finds the span of the request there, for [T.Within].
	Header http.Header
	// Known: who asks showed a token. Only then is the request a part of the trace that it
	// names; of others the span has a link to it.
	Known bool
}

// traceHeaders are what W3C has for traces, and what goes with them.
var traceHeaders = []string{"Traceparent", "Tracestate", "Baggage"}

// Request begins a request, which is over with end.
func (t *T) Request(ctx context.Context, r Request) (within context.Context, end func(code int)) {
	if t == nil {
		return ctx, func(int) {}
	}
	began := time.Now()
	ctx, options := t.named(ctx, r)
	common := []attribute.KeyValue{keyMethod.String(methodOf(r.Method)), keyRoute.String(r.Route)}
	options = append(options, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(common...), t.requestOf(ctx))
	ctx, span := t.tracer.Start(ctx, methodOf(r.Method)+" "+r.Route, options...)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	return ctx, func(code int) {
		how := []attribute.KeyValue{keyStatus.Int(code)}
		if code >= http.StatusInternalServerError {
			how = append(how, keyError.String(strconv.Itoa(code)))
			span.SetStatus(codes.Error, "")
		}
		span.SetAttributes(how...)
		span.End()
		t.meters.requests.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(append(common, how...)...))
	}
}

// named takes off what a request says of a trace, and makes the request a part of it or
// links it.
func (t *T) named(ctx context.Context, r Request) (context.Context, []trace.SpanStartOption) {
	said := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header)))
	for _, name := range traceHeaders {
		r.Header.Del(name)
	}
	said = said.WithTraceState(trace.TraceState{}) // which is for others, and can hold anything
	switch {
	case !said.IsValid():
		return ctx, nil
	case r.Known:
		return trace.ContextWithRemoteSpanContext(ctx, said), nil
	}
	return ctx, []trace.SpanStartOption{trace.WithLinks(trace.Link{SpanContext: said})}
}

// methodOf keeps what a caller made up out of names.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method
	}
	return "_OTHER"
}

// Within returns the context of something that a request asks for whose header
// [T.Request] had, where that is not the request's own.
func (t *T) Within(ctx context.Context, h http.Header) context.Context {
	if t == nil {
		return ctx
	}
	own := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h)))
	return trace.ContextWithSpanContext(ctx, own.WithRemote(false))
}

// A Place is where in a trace something is.
type Place struct{ in trace.SpanContext }

// PlaceOf returns where a context is, for what goes on after it.
func PlaceOf(ctx context.Context) Place { return Place{trace.SpanContextFromContext(ctx)} }

// Continue returns a context that is at p.
func (p Place) Continue(ctx context.Context) context.Context {
	if !p.in.IsValid() {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, p.in)
}

// requestOf is the id of the request that a context is of.
func (t *T) requestOf(ctx context.Context) trace.SpanStartEventOption {
	if id := t.o.RequestID(ctx); id != "" {
		return trace.WithAttributes(keyRequest.String(id))
	}
	return trace.WithAttributes()
}
