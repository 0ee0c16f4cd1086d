package telemetry

import (
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// ServeHTTP answers with all metrics, in the text format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var now metricdata.ResourceMetrics
	if t.read == nil {
		http.Error(w, "this hub has no metrics", http.StatusNotFound)
		return
	}
	if err := t.read.Collect(r.Context(), &now); err != nil {
		http.Error(w, "the metrics cannot be collected", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	for _, s := range now.ScopeMetrics {
		for i := range s.Metrics {
			if f := family(&s.Metrics[i]); f != nil {
				if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
					return // who asked has gone
				}
			}
		}
	}
}

// PrometheusName is the name that a metric has at /metrics: https://prometheus.io/docs/practices/naming/.
func (m Metric) PrometheusName() string {
	name := underscored(m.Name)
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if m.Kind == kindCounter {
		name += "_total"
	}
	return name
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }

// family is a metric as Prometheus has it; nil for one that has counted nothing.
func family(m *metricdata.Metrics) *dto.MetricFamily {
	f := &dto.MetricFamily{Help: &m.Description}
	about := Metric{Name: m.Name, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[float64]:
		about.Kind, f.Type = kindCounter, dto.MetricType_COUNTER.Enum()
		for _, p := range data.DataPoints {
			f.Metric = append(f.Metric, &dto.Metric{Label: labels(p.Attributes),
				Counter: &dto.Counter{Value: &p.Value}})
		}
	case metricdata.Gauge[float64]:
		f.Type = dto.MetricType_GAUGE.Enum()
		for _, p := range data.DataPoints {
			f.Metric = append(f.Metric, &dto.Metric{Label: labels(p.Attributes), Gauge: &dto.Gauge{Value: &p.Value}})
		}
	case metricdata.Histogram[float64]:
		f.Type = dto.MetricType_HISTOGRAM.Enum()
		for i := range data.DataPoints {
			f.Metric = append(f.Metric, &dto.Metric{Label: labels(data.DataPoints[i].Attributes),
				Histogram: histogram(&data.DataPoints[i])})
		}
	}
	if len(f.Metric) == 0 {
		return nil
	}
	f.Name = new(about.PrometheusName())
	return f
}

// histogram is a histogram as Prometheus has it: each bucket counts those below it, too.
func histogram(p *metricdata.HistogramDataPoint[float64]) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &p.Count, SampleSum: &p.Sum}
	below := uint64(0)
	for i, bound := range p.Bounds {
		below += p.BucketCounts[i]
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(below)})
	}
	return h
}

func labels(set attribute.Set) (all []*dto.LabelPair) {
	for _, kv := range set.ToSlice() {
		all = append(all, &dto.LabelPair{Name: new(underscored(string(kv.Key))), Value: new(kv.Value.String())})
	}
	return all
}
