package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestCallStatus(t *testing.T) {
	for _, c := range []struct {
		result tool.Result
		err    error
		want   string
	}{
		{tool.Text("x"), nil, "ok"},
		{tool.Failed("x"), nil, "tool_error"},
		{tool.Result{}, tool.NotFound("x"), "not_found"},
		{tool.Result{}, fmt.Errorf("%w: x", tool.ErrTimeout), "timeout"},
		{tool.Result{}, context.Canceled, "cancelled"},
		{tool.Result{}, errors.New("x"), "internal"},
	} {
		if got := callStatus(c.result, c.err); got != c.want {
			t.Errorf("%v %v: %s, want %s", c.result, c.err, got, c.want)
		}
	}
}

// However many names come by, there are as many time series as were agreed on.
func TestToolLabelsAreBounded(t *testing.T) {
	m := newMetrics()
	for i := range 2 * maxToolLabels {
		m.call(fmt.Sprintf("unknown%d", i), "not_found", 0, 0)
		m.call(fmt.Sprintf("tool%d", i), "ok", 0, 0)
	}
	series := countersOf(t, m, "hutch_calls_total")
	for name := range series {
		if strings.HasPrefix(name, "unknown") {
			t.Errorf("a caller's name became a label: %s", name)
		}
	}
	if len(series) != maxToolLabels+1 || series[otherTool] != 3*maxToolLabels {
		t.Errorf("%d names, %v others", len(series), series[otherTool])
	}
}

// countersOf returns the sums of a metric by tool.
func countersOf(t *testing.T, m *metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			for _, label := range s.GetLabel() {
				if label.GetName() == "tool" {
					series[label.GetValue()] += s.GetCounter().GetValue()
				}
			}
		}
	}
	return series
}

// burning is a toolset whose tools burn fuel, and one of them to no end.
type burning struct{ toolset }

func (burning) Call(_ context.Context, _ tool.Caller, call tool.Call) (tool.Result, error) {
	if call.Name == "trap" {
		return tool.Result{}, burntError{}
	}
	return tool.WithUsage(tool.Text("x"), tool.Usage{Fuel: 20}), nil
}

type burntError struct{}

func (burntError) Error() string     { return "trapped" }
func (burntError) Usage() tool.Usage { return tool.Usage{Fuel: 7} }

// Fuel counts for its tool, whether there was an answer or not.
func TestFuelIsCounted(t *testing.T) {
	m := newMetrics()
	metered := meteredTools{next: burning{}, metrics: m, log: slog.New(slog.DiscardHandler)}
	for _, name := range []string{"a", "a", "trap"} {
		if _, err := metered.Call(t.Context(), tool.Caller{}, tool.Call{Name: name}); (err != nil) != (name == "trap") {
			t.Fatal(name, err)
		}
	}
	if got, want := countersOf(t, m, "hutch_fuel_total"), map[string]float64{"a": 40, "trap": 7}; !maps.Equal(got, want) {
		t.Errorf("burned %v, want %v", got, want)
	}
}
