package telemetry

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Gated implements [gate.Audit]: it tells of an operation that a tool asked of the host. Its
// span is made when it is over, with the time at which it began.
func (t *T) Gated(ctx context.Context, r gate.Record) {
	if t == nil {
		return
	}
	ended := time.Now()
	common := []attribute.KeyValue{keyOp.String(string(r.Op)), keyCode.String(r.Code.String())}
	kind := trace.SpanKindInternal
	if r.Op == abi.OpHTTP {
		kind = trace.SpanKindClient
	}
	_, span := t.tracer.Start(ctx, "host_call "+string(r.Op), trace.WithTimestamp(ended.Add(-r.Took)), trace.WithSpanKind(kind),
		trace.WithAttributes(common...), trace.WithAttributes(t.about(r)...), t.requestOf(ctx))
	if r.Code != abi.OK {
		common = append(common, keyError.String(r.Code.String()))
		span.SetAttributes(keyError.String(r.Code.String()))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(ended))
	t.meters.hostCalls.Record(ctx, r.Took.Seconds(), metric.WithAttributes(common...))
}

// about says whose operation it was, and where it went: never with what.
func (t *T) about(r gate.Record) []attribute.KeyValue {
	all := []attribute.KeyValue{
		keyModule.String(t.text(r.Module)), keyDigest.String(r.Digest), keySent.Int64(r.Sent), keyReceived.Int64(r.Received), keyRedactions.Int(r.Redactions),
	}
	if r.Host != "" {
		host, port := r.Host, ""
		if h, p, err := net.SplitHostPort(r.Host); err == nil {
			host, port = h, p
		}
		all = append(all, keyServer.String(t.text(strings.Trim(host, "[]"))))
		if n, err := strconv.Atoi(port); err == nil {
			all = append(all, keyServerPort.Int(n))
		}
	}
	if r.Addr.IsValid() {
		all = append(all, keyPeer.String(r.Addr.String()))
	}
	return all
}
