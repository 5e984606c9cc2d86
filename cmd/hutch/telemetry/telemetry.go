// Package telemetry tells an OpenTelemetry collector what hutch does: traces of requests,
// runs, models, tools and what tools ask of the host, and figures about them.
//
// A nil [T] is telemetry that is off, and all its methods may be called: they return what
// they were given. Nothing is dialled then, no goroutine runs, and no call is wrapped.
//
// One that is on has two goroutines, of the SDK: one sends spans, one figures. Nothing that
// is observed ever waits for them: spans go into a queue of a bounded size, and what finds it
// full is dropped. Neither reads the environment for anything that decides where something
// goes; see [Options].
//
// What is said follows version 1.41.0 of the OpenTelemetry conventions, the last whose names
// for generative AI are those that most collectors know. What they have no name for begins
// with "hutch.". No text of a conversation, argument, result or error is in it, unless
// Options.Content says so.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Options say where telemetry goes, and what it says.
type Options struct {
	// Endpoint is what the paths of OTLP over HTTP stand below: see [CheckEndpoint].
	Endpoint string
	// Headers are sent with everything; asked for each time, because secrets change. An
	// error must not have a value in it. Nil is none.
	Headers func() (http.Header, error)
	// Service and Version are who tells, Attributes what else is said about it.
	Service, Version string
	Attributes       map[string]string
	// Sample is the share of traces that are told, 0 to 1.
	Sample float64
	// Content: what is said in conversations and calls is told too.
	Content bool
	// Every is how often figures are sent.
	Every time.Duration
	// Redact takes secrets out of a text; it is asked about whatever was not made up here.
	Redact func(string) string
	// RequestID is the id of the request that a context is of, or empty.
	RequestID func(context.Context) string
	// Status says in a word how a call of a tool ended: "ok" if well.
	Status func(tool.Result, error) string
	// Logger is told if nothing can be sent.
	Logger *slog.Logger
}

// T is telemetry. It is made by [Open], and may be used from any goroutine.
type T struct {
	o       Options
	client  *client
	spans   *sdktrace.TracerProvider
	figures *sdkmetric.MeterProvider
	tracer  trace.Tracer
	meters  meters
}

// scope is who made a span or a figure.
const scope = "github.com/hutch-run/hutch"

// FlushTime bounds how long [T.Close] tries to send what is left.
const FlushTime = 2 * time.Second

const (
	// queued is how many spans may wait to be sent, and batched how many go at once.
	queued  = 1024
	batched = 256
	// batchEvery is how long one waits at most while nothing is in the way.
	batchEvery = 2 * time.Second
	// sendTime bounds one attempt to send something, with what is tried again.
	sendTime = 10 * time.Second
	// mostSeries bounds how many combinations of attributes one figure has.
	mostSeries = 1000
)

// Open returns telemetry that is on. It makes no request.
func Open(o Options) (*T, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	about := resource.NewWithAttributes(schemaURL, aboutUs(o)...)
	t := &T{o: o, client: c}
	t.spans = sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sampler(o.Sample)),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeCountLimit: 64, LinkCountLimit: 1, AttributePerLinkCountLimit: 4, AttributeValueLengthLimit: 2 * mostContent}),
		sdktrace.WithSpanProcessor(sdktrace.NewBatchSpanProcessor(spanSender{c}, sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(batched),
			sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(sendTime))),
	)
	t.figures = sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(about),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter),
		sdkmetric.WithCardinalityLimit(mostSeries),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(figureSender{c}, sdkmetric.WithInterval(o.Every), sdkmetric.WithTimeout(sendTime))),
	)
	t.tracer = t.spans.Tracer(scope, trace.WithSchemaURL(schemaURL))
	if t.meters, err = newMeters(t.figures.Meter(scope)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	// The SDK has one place for what goes wrong in it, and writes to standard error without.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Logger.Debug("telemetry", "error", abi.OneLine(err.Error(), mostText))
	}))
	return t, nil
}

// sampler tells a share of the traces that begin here. What others say of theirs does not
// count: whether something is told is up to whoever configured where it goes.
func sampler(share float64) sdktrace.Sampler {
	some := sdktrace.TraceIDRatioBased(share)
	return sdktrace.ParentBased(some, sdktrace.WithRemoteParentSampled(some), sdktrace.WithRemoteParentNotSampled(some))
}

func aboutUs(o Options) []attribute.KeyValue {
	all := []attribute.KeyValue{keyService.String(o.Service), keyServiceVersion.String(o.Version)}
	for name, value := range o.Attributes {
		if name != string(keyService) {
			all = append(all, attribute.String(name, value))
		}
	}
	return all
}

// Close sends what is left, for two seconds at most, and ends everything.
func (t *T) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), FlushTime)
	defer cancel()
	flushed := make(chan error, 1)
	go func() {
		defer close(flushed)
		defer t.client.recovered()
		flushed <- t.figures.Shutdown(ctx)
	}()
	err := t.spans.Shutdown(ctx)
	err = errors.Join(err, <-flushed)
	t.client.close()
	if errors.Is(err, context.DeadlineExceeded) {
		t.o.Logger.Warn("telemetry that was left is lost: its collector did not take it in time", "after", FlushTime)
		err = nil
	}
	return err
}

// mostText bounds what is said of names and ids, mostContent what is said of contents.
const (
	mostText    = 128
	mostContent = 8 << 10
)

// text is a name or an id that was not made up here.
func (t *T) text(s string) string { return abi.OneLine(t.o.Redact(s), mostText) }
