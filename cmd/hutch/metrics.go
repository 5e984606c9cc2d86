package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxToolLabels is how many tool names become time series of their own; what
// comes after them is counted as "other". Names come from modules and callers,
// so their number must not be up to either.
const maxToolLabels = 200

// otherTool is the label of a tool that has none of its own.
const otherTool = "other"

// callStatuses say how a call ended, for labels; the first row that matches
// decides, and an error without a row is "internal".
var callStatuses = []struct {
	err  error
	name string
}{
	{tool.ErrNotFound, "not_found"},
	{tool.ErrInvalid, "invalid"},
	{tool.ErrDenied, "denied"},
	{tool.ErrHeld, "held"},
	{tool.ErrTimeout, "timeout"},
	{tool.ErrCancelled, "cancelled"},
	{tool.ErrLimit, "limit"},
	{tool.ErrBusy, "busy"},
	{tool.ErrFailed, "failed"},
	{tool.ErrUnavailable, "unavailable"},
	{tool.ErrRejected, "rejected"},
	{context.Canceled, "cancelled"},
}

func callStatus(r tool.Result, err error) string {
	if err == nil {
		if r.IsError {
			return "tool_error"
		}
		return "ok"
	}
	if ask := (*tool.AskError)(nil); errors.As(err, &ask) {
		return "asked"
	}
	for _, row := range callStatuses {
		if errors.Is(err, row.err) {
			return row.name
		}
	}
	return "internal"
}

// metrics are the program's own figures. Each [App] has its own set, so that
// two can live in one process.
type metrics struct {
	registry   *prometheus.Registry
	calls      *prometheus.CounterVec
	limits     *prometheus.CounterVec
	fuel       *prometheus.CounterVec
	duration   prometheus.Histogram
	requests   *prometheus.CounterVec
	refused    prometheus.Counter
	turnedAway *prometheus.CounterVec
	reloads    prometheus.Counter
	turns      *prometheus.CounterVec
	mu         sync.Mutex
	toolLabels map[string]bool
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hutch_calls_total", Help: "Calls of tools, by tool and by how they ended.",
		}, []string{"tool", "status"}),
		limits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hutch_limits_hit_total", Help: "Calls that a limit ended or refused, by the limit's name.",
		}, []string{"limit"}),
		fuel: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hutch_fuel_total", Help: "Fuel that calls burned, by tool: what their guests computed.",
		}, []string{"tool"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hutch_call_duration_seconds", Help: "How long calls took, waiting included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hutch_http_requests_total", Help: "Answered HTTP requests, by route and status code.",
		}, []string{"route", "code"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hutch_http_connections_refused_total", Help: "Connections closed at once because too many were open.",
		}),
		turnedAway: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hutch_http_refused_total", Help: "HTTP requests that were not let in, by why: host, origin, none, twice, malformed, unknown, expired, slowed, scope.",
		}, []string{"reason"}),
		reloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hutch_reloads_total", Help: "Times that the published tools changed.",
		}),
		turns:      newTurns(),
		toolLabels: map[string]bool{},
	}
	m.registry.MustRegister(m.calls, m.limits, m.fuel, m.duration, m.requests, m.refused, m.turnedAway, m.reloads, m.turns,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) request(route string, code int) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
}

func (m *metrics) call(name, status string, took time.Duration, fuel int64) {
	label := m.toolLabel(name, status)
	m.calls.WithLabelValues(label, status).Inc()
	m.fuel.WithLabelValues(label).Add(float64(max(0, fuel)))
	m.duration.Observe(took.Seconds())
}

// toolLabel returns the name of a tool that exists, as long as there are few.
func (m *metrics) toolLabel(name, status string) string {
	if status == "not_found" {
		return otherTool
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.toolLabels[name] {
		if len(m.toolLabels) >= maxToolLabels {
			return otherTool
		}
		m.toolLabels[name] = true
	}
	return name
}

// toolset is what a face needs of the registry; protocol/mcp declares the same.
type toolset interface {
	List(tool.Caller) []tool.Spec
	Call(context.Context, tool.Caller, tool.Call) (tool.Result, error)
	Subscribe(func()) (stop func())
}

// meteredTools counts the calls of a toolset, and logs those that broke.
type meteredTools struct {
	next    toolset
	metrics *metrics
	log     *slog.Logger
}

// brokenCalls are the statuses of calls that an operator should know of.
// Arguments and answers are nobody's but the caller's, so they are not told.
var brokenCalls = []string{"timeout", "limit", "failed", "unavailable", "rejected", "internal"}

func (t meteredTools) List(c tool.Caller) []tool.Spec      { return t.next.List(c) }
func (t meteredTools) Subscribe(tell func()) (stop func()) { return t.next.Subscribe(tell) }

func (t meteredTools) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	start := time.Now()
	result, err := t.next.Call(ctx, c, call)
	took, status := time.Since(start), callStatus(result, err)
	t.metrics.call(call.Name, status, took, max(result.Usage.Fuel, tool.UsageOf(err).Fuel))
	if limit := tool.LimitOf(err); limit != "" { // a name of ours, so they are few
		t.metrics.limits.WithLabelValues(limit).Inc()
	}
	if slices.Contains(brokenCalls, status) {
		t.log.WarnContext(ctx, "call failed", "tool", abi.Cut(call.Name, 80), "status", status, "after", took.Round(time.Millisecond), "reason", reasonOf(call.Name, err))
	}
	return result, err
}

// maxReason bounds a failed call's reason in the log.
const maxReason = 400

// reasonOf is what an error says besides whose it is.
func reasonOf(name string, err error) string {
	if err == nil {
		return ""
	}
	return abi.OneLine(strings.TrimPrefix(err.Error(), fmt.Sprintf("tool %q: ", name)), maxReason)
}

// watch adds the figures that are read off a when somebody asks.
func (m *metrics) watch(a *App) {
	m.registry.MustRegister(newAppCollector(a))
	if a.tracker != nil {
		m.registry.MustRegister(newTrackerCollector(a.tracker.hub))
	}
	a.modules.Subscribe(m.reloads.Inc)
}
