package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// metricExporter sends metrics: sums and gauges of float64, and histograms of explicit buckets. The
// hub has no others.
type metricExporter struct{ *sender }

func (*metricExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (*metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (*metricExporter) ForceFlush(context.Context) error { return nil }
func (*metricExporter) Shutdown(context.Context) error   { return nil }

func (x *metricExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	out := &metricspb.ResourceMetrics{Resource: resourceOf(all.Resource), SchemaUrl: all.Resource.SchemaURL()}
	for _, s := range all.ScopeMetrics {
		one := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: s.Scope.Name,
			Version: s.Scope.Version}}
		for i := range s.Metrics {
			one.Metrics = append(one.Metrics, metricOf(&s.Metrics[i]))
		}
		out.ScopeMetrics = append(out.ScopeMetrics, one)
	}
	return x.send(ctx, &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{out}})
}

// cumulative is the temporality of everything.
const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

func metricOf(m *metricdata.Metrics) *metricspb.Metric {
	out := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[float64]:
		out.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: cumulative,
			IsMonotonic: data.IsMonotonic,
			DataPoints:  pointsOf(data.DataPoints)}}
	case metricdata.Gauge[float64]:
		out.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: pointsOf(data.DataPoints)}}
	case metricdata.Histogram[float64]:
		h := &metricspb.Histogram{AggregationTemporality: cumulative}
		for i := range data.DataPoints {
			p := &data.DataPoints[i]
			one := &metricspb.HistogramDataPoint{Attributes: setOf(p.Attributes), StartTimeUnixNano: nanos(p.StartTime),
				TimeUnixNano: nanos(p.Time),
				Count:        p.Count, Sum: &p.Sum, ExplicitBounds: p.Bounds, BucketCounts: p.BucketCounts}
			if least, ok := p.Min.Value(); ok {
				one.Min = &least
			}
			if most, ok := p.Max.Value(); ok {
				one.Max = &most
			}
			h.DataPoints = append(h.DataPoints, one)
		}
		out.Data = &metricspb.Metric_Histogram{Histogram: h}
	}
	return out
}

func pointsOf(points []metricdata.DataPoint[float64]) (all []*metricspb.NumberDataPoint) {
	for _, p := range points {
		all = append(all, &metricspb.NumberDataPoint{Attributes: setOf(p.Attributes),
			StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
			Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: p.Value}})
	}
	return all
}

// logExporter sends the log.
type logExporter struct{ *sender }

func (*logExporter) ForceFlush(context.Context) error { return nil }
func (*logExporter) Shutdown(context.Context) error   { return nil }

func (x *logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	if len(records) == 0 {
		return nil
	}
	lines := &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: scope}}
	for i := range records {
		r := &records[i]
		one := &logspb.LogRecord{TimeUnixNano: nanos(r.Timestamp()), ObservedTimeUnixNano: nanos(r.ObservedTimestamp()),
			// of the same numbers
			SeverityNumber: logspb.SeverityNumber(r.Severity()), SeverityText: r.SeverityText(),
			Body: valueOf(r.Body())}
		r.WalkAttributes(func(kv attribute.KeyValue) bool {
			one.Attributes = append(one.Attributes, pairOf(kv))
			return true
		})
		lines.LogRecords = append(lines.LogRecords, one)
	}
	about := records[0].Resource()
	return x.send(ctx, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: resourceOf(about),
		SchemaUrl: about.SchemaURL(),
		ScopeLogs: []*logspb.ScopeLogs{lines}}}})
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}

func resourceOf(r *resource.Resource) *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: setOf(*r.Set())}
}

func setOf(set attribute.Set) (all []*commonpb.KeyValue) {
	for _, kv := range set.ToSlice() {
		all = append(all, pairOf(kv))
	}
	return all
}

func pairOf(kv attribute.KeyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: string(kv.Key), Value: valueOf(kv.Value)}
}

// valueOf is a value as OTLP has it. Lists are written as text: the hub has none.
func valueOf(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.EMPTY:
		return &commonpb.AnyValue{}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.String()}}
}
