package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// scrapeHub reads the metrics of a hub as Prometheus does.
func scrapeHub(t *testing.T, url, token string) (status int, values map[string]float64) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	values = make(map[string]float64)
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, values
	}
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			values[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return resp.StatusCode, values
}

// TestMetricsHaveAnAddress: with hub.metrics.listen the metrics have an address of their own, also where the hub speaks stdio. They are at
// no other.
func TestMetricsHaveAnAddress(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{})},
		map[string]any{"hub": map[string]any{"metrics": map[string]any{"listen": "127.0.0.1:0"}}})
	w := wireHub(t, config, rev2025).open()
	w.awaitTools("mcp.s.echo")
	w.result("mcp.s.echo", `{}`, "")
	const says = `"serving metrics","url":"`
	_, at, _ := strings.Cut(w.log.String(), says)
	at, _, ok := strings.Cut(at, `"`)
	if !ok {
		t.Fatal("the log does not say where the metrics are")
	}
	if _, got := scrapeHub(t, at, ""); got["toolhub_calls_total class= server=s status=succeeded tool=mcp.s.echo"] != 1 {
		t.Errorf("the metrics are %v", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example" // of a web page that has pointed its name at this machine
	if got, err := httpDo(req); err != nil || !strings.HasPrefix(got, "403 ") {
		t.Errorf("another host: %s, %v", got, err)
	}
	hub := startHub(t, "hub.json", config)
	if status, _ := scrapeHub(t, hub.url+"/metrics", ""); status != http.StatusNotFound {
		t.Errorf("at the HTTP door the status is %d", status)
	}
}

// TestTelemetryPage holds the table of docs/telemetry.md against the metrics that are registered.
func TestTelemetryPage(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for _, m := range telemetry.Metrics() {
		var labels []string
		for label := range strings.SplitSeq(m.Labels, ", ") {
			if label != "" {
				labels = append(labels, "`"+label+"`")
			}
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", m.PrometheusName(), m.Kind, strings.Join(labels, ", "), m.Help)
	}
	file := filepath.Join("..", "..", "..", "..", "docs", "telemetry.md")
	page := readFile(t, file)
	before, rest, _ := strings.Cut(page, "| --- | --- | --- | --- |\n")
	_, after, ok := strings.Cut(rest, "\nThe parts of")
	want := before + "| --- | --- | --- | --- |\n" + rows.String() + "\nThe parts of" + after
	if ok && *update {
		page = want
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page != want || !ok {
		t.Error("the table of docs/telemetry.md is not that of the metrics: renew it with -update")
	}
}

// TestDashboard: the queries of the dashboard name metrics and labels that there are.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels     []struct{ Targets []struct{ Expr string } }
		Templating struct {
			List []struct{ Query any }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join("..", "..", "..", "..", "docs", "grafana-dashboard.json"))), &dashboard); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"le": true}
	unused := make(map[string]bool)
	for _, m := range telemetry.Metrics() {
		name := m.PrometheusName()
		unused[name], known[name] = true, true
		if m.Kind == "histogram" {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		}
		for label := range strings.SplitSeq(m.Labels, ", ") {
			known[label] = true
		}
	}
	queries := []string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	if len(queries) < 10 {
		t.Fatalf("there are %d queries", len(queries))
	}
	for _, v := range dashboard.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			queries = append(queries, fmt.Sprint(q["query"]))
		}
	}
	words := regexp.MustCompile(`[a-z][a-z_]*[a-z]`)
	language := regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|\b(sum|rate|increase|histogram_quantile|by|ignoring|group_left|topk|max|label_values)\b`)
	for _, q := range queries {
		for _, word := range words.FindAllString(language.ReplaceAllString(q, " "), -1) {
			if !known[word] {
				t.Errorf("there is no metric and no label %s, which a query names: %s", word, q)
			}
			for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
				delete(unused, strings.TrimSuffix(word, suffix))
			}
		}
	}
	for name := range unused {
		t.Errorf("the dashboard does not show %s", name)
	}
}
