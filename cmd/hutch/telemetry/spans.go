package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	about "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// spanSender is an exporter of spans. The SDK's own brings gRPC into the program with the
// type of its message; TracesData is the same on the wire.
type spanSender struct{ client *client }

// ExportSpans implements [sdktrace.SpanExporter].
func (s spanSender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer s.client.recovered()
	if len(spans) == 0 {
		return nil
	}
	all := &otlp.ScopeSpans{Scope: scopeOf(spans[0].InstrumentationScope()), SchemaUrl: schemaURL}
	for _, span := range spans {
		all.Spans = append(all.Spans, spanOf(span))
	}
	s.client.send(ctx, tracesPath, &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource: resourceOf(spans[0].Resource()), SchemaUrl: schemaURL, ScopeSpans: []*otlp.ScopeSpans{all},
	}}})
	return nil
}

// Shutdown implements [sdktrace.SpanExporter]. The client is closed with the rest.
func (s spanSender) Shutdown(context.Context) error { return nil }

func resourceOf(r *resource.Resource) *about.Resource {
	return &about.Resource{Attributes: pairs(r.Attributes())}
}

func scopeOf(s instrumentation.Scope) *common.InstrumentationScope {
	return &common.InstrumentationScope{Name: s.Name, Version: s.Version}
}

func spanOf(s sdktrace.ReadOnlySpan) *otlp.Span {
	own, parent := s.SpanContext(), s.Parent()
	traceID, spanID := own.TraceID(), own.SpanID()
	span := &otlp.Span{
		TraceId: traceID[:], SpanId: spanID[:], Flags: flagsOf(own.TraceFlags(), parent),
		Name: s.Name(), Kind: otlp.Span_SpanKind(s.SpanKind()),
		StartTimeUnixNano: nanos(s.StartTime()), EndTimeUnixNano: nanos(s.EndTime()),
		Attributes: pairs(s.Attributes()), DroppedAttributesCount: uint32(max(0, s.DroppedAttributes())),
	}
	if id := parent.SpanID(); id.IsValid() {
		span.ParentSpanId = id[:]
	}
	if s.Status().Code == codes.Error {
		span.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
	}
	for _, l := range s.Links() {
		t, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		span.Links = append(span.Links, &otlp.Span_Link{TraceId: t[:], SpanId: id[:], Flags: flagsOf(l.SpanContext.TraceFlags(), l.SpanContext)})
	}
	return span
}

// flagsOf are those of W3C, and whether the parent was another process.
func flagsOf(f trace.TraceFlags, parent trace.SpanContext) uint32 {
	flags := uint32(f) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if parent.IsRemote() {
		flags |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return flags
}

// nanos of a moment after 1970.
func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func pairs(all []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, len(all))
	for i, a := range all {
		out[i] = &common.KeyValue{Key: string(a.Key), Value: valueOf(a.Value)}
	}
	return out
}

// valueOf knows the types of values that are used here.
func valueOf(v attribute.Value) *common.AnyValue {
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	switch v.Type() {
	case attribute.INT64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRINGSLICE:
		var list common.ArrayValue
		for _, s := range v.AsStringSlice() {
			list.Values = append(list.Values, text(s))
		}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &list}}
	}
	return text(v.String())
}
