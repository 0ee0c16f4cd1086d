package telemetry

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// scrape reads the metrics as Prometheus does.
func scrape(t testing.TB, from *Telemetry) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	from.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// ended is a call of a tool that has ended well.
func ended(server, name string) invoke.Ended {
	return invoke.Ended{Call: &invoke.Call{Surface: &tool.Surface{}}, Status: tool.StatusSucceeded,
		Listed: &tool.Tool{Name: tool.Name("mcp." + server + "." + name), Native: name, Server: server}}
}

// TestLabelsAreBounded counts calls of 10,000 names that hostile clients and servers have chosen, on 1,000 servers.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m, problems := New(t.Context(), Options{Metrics: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i := range 10_000 {
		e := ended("s", fmt.Sprintf("name_%d\"\n{}", i))
		m.End(t.Context(), e)
		e = ended(fmt.Sprint("server", i%1000), fmt.Sprint("name", i))
		e.RPC, e.Error = &tool.RPCError{Code: int64(i)}, &tool.Error{}
		m.End(t.Context(), e)
		unknown := ended("s", "")
		unknown.Listed, unknown.Name = nil, fmt.Sprint("made-up-", i)
		m.End(t.Context(), unknown)
		m.metrics.request(t.Context(), m.metrics.server, fmt.Sprint("method/", i), 1, "")
	}
	families := scrape(t, m)
	calls := 0.0
	for name, f := range families {
		if n := len(f.Metric); n > maxSeries {
			t.Errorf("%s has %d series", name, n)
		}
		values := make(map[string]map[string]bool)
		for _, one := range f.Metric {
			for _, l := range one.Label {
				if values[l.GetName()] == nil {
					values[l.GetName()] = make(map[string]bool)
				}
				values[l.GetName()][l.GetValue()] = true
				if strings.HasPrefix(l.GetValue(), "made-up-") || strings.HasPrefix(l.GetValue(), "method/") {
					t.Fatalf("%s has a label that a client has chosen: %v", name, l)
				}
			}
			if name == "toolhub_calls_total" {
				calls += one.Counter.GetValue()
			}
		}
		for label, all := range values {
			if label == "error_type" && len(all) > 20 {
				t.Errorf("%s has %d values of %s", name, len(all), label)
			}
		}
	}
	if calls != 30_000 {
		t.Errorf("%v calls are counted, want 30000", calls)
	}
	if n := m.metrics.tools["s"]; n != maxPerServer {
		t.Errorf("%d names of a server are kept in memory", n)
	}
}

// TestMetricsAreThoseDocumented holds Metrics, from which the documentation is made, against what a hub offers.
func TestMetricsAreThoseDocumented(t *testing.T) {
	t.Parallel()
	m, _ := New(t.Context(), Options{Metrics: true})
	m.Observe(func() State { return State{Servers: []tool.ServerStatus{{Server: "s", State: tool.ServerReady}}} })
	e := ended("s", "a")
	e.KeptChars, e.Executor.Role = 100, "upstream"
	e.Error, e.RPC, e.Laps = &tool.Error{}, &tool.RPCError{Code: -32603}, twelveLaps()
	m.End(t.Context(), e)
	families := scrape(t, m)
	for _, d := range Metrics() {
		f := families[d.PrometheusName()]
		if f == nil {
			t.Errorf("%s is not at /metrics", d.PrometheusName())
			continue
		}
		delete(families, d.PrometheusName())
		if f.GetHelp() != d.Help || strings.ToLower(f.GetType().String()) != d.Kind {
			t.Errorf("%s is a %s: %q", d.Name, f.GetType(), f.GetHelp())
		}
		has := make(map[string]bool)
		for _, one := range f.Metric {
			for _, l := range one.Label {
				has[l.GetName()] = true
			}
		}
		for label := range strings.SplitSeq(d.Labels, ", ") {
			if label != "" && !has[label] {
				t.Errorf("%s has no label %s: %v", d.Name, label, has)
			}
			delete(has, label)
		}
		if len(has) > 0 {
			t.Errorf("%s has labels that are not documented: %v", d.Name, has)
		}
	}
	for name := range families {
		t.Errorf("%s is not documented", name)
	}
}

func BenchmarkEnd(b *testing.B) {
	for _, metrics := range []bool{false, true} {
		b.Run(fmt.Sprintf("metrics=%v", metrics), func(b *testing.B) {
			m, _ := New(b.Context(), Options{Metrics: metrics})
			e := ended("s", "a")
			e.Executor.Role, e.Laps = "upstream", twelveLaps()
			b.ReportAllocs()
			for b.Loop() {
				m.End(b.Context(), e)
			}
		})
	}
}

func twelveLaps() (all []invoke.Lap) {
	for i, phase := range []string{"resolve_tool", "parse_schema", "validate_values", "prepare_observable_input", "pre_hooks", "permission",
		"schedule", "execute", "map_result", "post_hooks", "persist_result", "emit_terminal"} {
		all = append(all, invoke.Lap{Phase: phase, Until: time.Duration(i+1) * time.Millisecond})
	}
	return all
}

// TestLatestCalls: the latest 1,000 calls have their spans, also those that went through more phases than usual; others have none.
func TestLatestCalls(t *testing.T) {
	t.Parallel()
	m, _ := New(t.Context(), Options{})
	for i := range 2*kept + 10 {
		e := ended("s", "a")
		e.ID, e.Laps = tool.InvocationID(fmt.Sprint("inv_", i)), twelveLaps()
		if i%7 == 0 {
			e.Laps = append(e.Laps, e.Laps...)
		}
		m.End(t.Context(), e)
	}
	for i := range 2*kept + 10 {
		spans := m.Spans(tool.InvocationID(fmt.Sprint("inv_", i)))
		want := 0
		if i >= kept+10 {
			if want = 13; i%7 == 0 {
				want = 25
			}
		}
		if got := 0; spans != nil {
			got = len(spans.All)
			if got != want || spans.All[1].Took != time.Millisecond || spans.All[0].Took != 12*time.Millisecond {
				t.Fatalf("call %d has %d spans, want %d: %+v", i, got, want, spans)
			}
		} else if want > 0 {
			t.Fatalf("call %d has no spans", i)
		}
	}
	if m.Spans("") != nil {
		t.Error("no call has spans")
	}
}
