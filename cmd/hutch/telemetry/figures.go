package telemetry

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// figureSender is an exporter of figures, for the reason that spanSender is one.
type figureSender struct{ client *client }

// Temporality implements [sdkmetric.Exporter]: figures count from the start.
func (figureSender) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation implements [sdkmetric.Exporter].
func (figureSender) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// ForceFlush implements [sdkmetric.Exporter]: nothing is held.
func (figureSender) ForceFlush(context.Context) error { return nil }

// Shutdown implements [sdkmetric.Exporter]. The client is closed with the rest.
func (figureSender) Shutdown(context.Context) error { return nil }

// Export implements [sdkmetric.Exporter].
func (f figureSender) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	defer f.client.recovered()
	all := &otlp.ResourceMetrics{Resource: resourceOf(m.Resource), SchemaUrl: schemaURL}
	for _, s := range m.ScopeMetrics {
		one := &otlp.ScopeMetrics{Scope: scopeOf(s.Scope), SchemaUrl: schemaURL}
		for _, figure := range s.Metrics {
			if out := figureOf(figure); out != nil {
				one.Metrics = append(one.Metrics, out)
			}
		}
		if len(one.Metrics) > 0 {
			all.ScopeMetrics = append(all.ScopeMetrics, one)
		}
	}
	if len(all.ScopeMetrics) > 0 {
		f.client.send(ctx, metricsPath, &otlp.MetricsData{ResourceMetrics: []*otlp.ResourceMetrics{all}})
	}
	return nil
}

// figureOf knows the kinds of figures that are used here.
func figureOf(m metricdata.Metrics) *otlp.Metric {
	out := &otlp.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		out.Data = histogramOf(data)
	case metricdata.Histogram[int64]:
		out.Data = histogramOf(data)
	default:
		return nil
	}
	return out
}

func histogramOf[N int64 | float64](h metricdata.Histogram[N]) *otlp.Metric_Histogram {
	out := &otlp.Histogram{AggregationTemporality: otlp.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE}
	for _, p := range h.DataPoints {
		sum := float64(p.Sum)
		point := &otlp.HistogramDataPoint{
			Attributes: pairs(p.Attributes.ToSlice()), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
			Count: p.Count, Sum: &sum, BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds,
		}
		if least, ok := p.Min.Value(); ok {
			v := float64(least)
			point.Min = &v
		}
		if most, ok := p.Max.Value(); ok {
			v := float64(most)
			point.Max = &v
		}
		out.DataPoints = append(out.DataPoints, point)
	}
	return &otlp.Metric_Histogram{Histogram: out}
}
