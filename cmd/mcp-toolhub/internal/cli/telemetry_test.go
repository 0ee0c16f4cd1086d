package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// collector receives OTLP over HTTP.
type collector struct {
	t   testing.TB
	url string

	mu      sync.Mutex
	spans   []*tracepb.Span
	about   map[string]string // the resource of what came last
	metrics map[string]int    // points, by name of the metric
	lines   []string
	headers http.Header
	all     bytes.Buffer // of all that came
}

// startCollector runs a collector. broken, where it is not nil, answers in its place.
func startCollector(t testing.TB) *collector {
	c := &collector{t: t, metrics: make(map[string]int)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// env makes a hub send to the collector, soon.
func (c *collector) env(more ...string) []string {
	return append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_BLRP_SCHEDULE_DELAY=20",
		"OTEL_METRIC_EXPORT_INTERVAL=50"}, more...)
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // a hub that ends cuts off a request that is still being sent
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		var unpacked *gzip.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, err = io.ReadAll(unpacked)
		}
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s: %s, %v", r.URL, r.Header.Get("Content-Type"), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	c.all.Write(text)
	switch r.URL.Path {
	case "/v1/traces":
		var data tracepb.TracesData
		err = proto.Unmarshal(text, &data)
		for _, of := range data.ResourceSpans {
			c.about = texts(of.Resource.Attributes)
			for _, s := range of.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	case "/v1/metrics":
		var data metricspb.MetricsData
		err = proto.Unmarshal(text, &data)
		for _, of := range data.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m.Name] = max(len(m.GetSum().GetDataPoints()), len(m.GetGauge().GetDataPoints()), len(m.GetHistogram().GetDataPoints()))
				}
			}
		}
	case "/v1/logs":
		var data logspb.LogsData
		err = proto.Unmarshal(text, &data)
		for _, of := range data.ResourceLogs {
			for _, s := range of.ScopeLogs {
				for _, l := range s.LogRecords {
					c.lines = append(c.lines, l.SeverityText+" "+l.Body.GetStringValue()+fmt.Sprint(texts(l.Attributes)))
				}
			}
		}
	default:
		c.t.Errorf("somebody posts to %s", r.URL)
	}
	if err != nil {
		c.t.Errorf("%s: %v", r.URL, err)
	}
}

func texts(all []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, kv := range all {
		out[kv.Key] = kv.Value.GetStringValue()
	}
	return out
}

// TestMetricsAndLogsAreSent: the other two signals come, too, and the log without secrets.
func TestMetricsAndLogsAreSent(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	w.result("mcp.s.echo", `{}`, "")
	eventually(t, "metrics and logs have come", func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		return to.metrics["toolhub.calls"] > 0 && to.metrics["mcp.server.operation.duration"] > 0 && to.metrics["toolhub.store.lag"] > 0 &&
			to.metrics["mcp.client.operation.duration"] > 0 && to.metrics["toolhub.server.state"] > 0 &&
			strings.Contains(strings.Join(to.lines, "\n"), "INFO server is ready")
	})
}
