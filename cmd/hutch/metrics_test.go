package main

import (
	"context"
	"errors"
	"fmt"
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
		m.call(fmt.Sprintf("unknown%d", i), "not_found", 0)
		m.call(fmt.Sprintf("tool%d", i), "ok", 0)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "hutch_calls_total" {
			continue
		}
		series := map[string]float64{}
		for _, s := range f.GetMetric() {
			name := s.GetLabel()[1].GetValue()
			if strings.HasPrefix(name, "unknown") {
				t.Errorf("a caller's name became a label: %s", name)
			}
			series[name] += s.GetCounter().GetValue()
		}
		if len(series) != maxToolLabels+1 || series[otherTool] != 3*maxToolLabels {
			t.Errorf("%d names, %v others", len(series), series[otherTool])
		}
		return
	}
	t.Error("no calls are counted")
}
