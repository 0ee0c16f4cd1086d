package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Names of the metrics. Those of the semantic conventions begin with "mcp".
const (
	MetricServerDuration = "mcp.server.operation.duration"
	MetricClientDuration = "mcp.client.operation.duration"
	MetricCalls          = "toolhub.calls"
	MetricParts          = "toolhub.call.part.duration"
	MetricTokens         = "toolhub.tokens.kept"
	MetricServerState    = "toolhub.server.state"
	MetricRestarts       = "toolhub.server.restarts"
	MetricRunning        = "toolhub.calls.running"
	MetricQueued         = "toolhub.calls.queued"
	MetricApprovals      = "toolhub.approvals.open"
	MetricJournal        = "toolhub.journal.queue"
	MetricStoreLag       = "toolhub.store.lag"
	MetricSurplus        = "toolhub.store.surplus"
	MetricRefused        = "toolhub.callers.refused"
)

// Metric describes a metric, for the documentation.
type Metric struct {
	Name, Kind, Unit, Labels, Help string
}

// Metrics are all metrics, in the order of the documentation.
func Metrics() []Metric {
	return []Metric{
		{MetricCalls, kindCounter, "{call}", "server, tool, status, class", "Calls that have ended."},
		{MetricParts, kindHistogram, "s", "server, part",
			"What the time of a call was spent on: waiting in the queue, permission, hooks, the upstream server, " +
				"and the hub itself."},
		{MetricServerDuration, kindHistogram, "s", "mcp_method_name, gen_ai_tool_name, error_type",
			"Requests of clients, from their arrival to the answer."},
		{MetricClientDuration, kindHistogram, "s", "mcp_method_name, gen_ai_tool_name, error_type, server",
			"Requests to servers, from sending to the answer."},
		{MetricTokens, kindCounter, "{token}", "by",
			"Tokens that models were spared, by previews of large results and by deferred tools."},
		{MetricServerState, kindGauge, "1", "server, state",
			"1 for the state that a server is in, and 0 for the others."},
		{MetricRestarts, kindCounter, "{start}", "server", "Starts of a server after its first."},
		{MetricRunning, kindGauge, "{call}", "server", "Calls that run at a server."},
		{MetricQueued, kindGauge, "{call}", "server", "Calls that wait for their turn at a server."},
		{MetricApprovals, kindGauge, "{approval}", "", "Questions that wait for a person."},
		{MetricJournal, kindGauge, "By", "", "Records that wait to be written to the journal."},
		{MetricStoreLag, kindGauge, "s", "", "How long the oldest record of the journal waits for the record store."},
		{MetricSurplus, kindCounter, "{call}", "",
			"Calls that were removed before their time because the record store was too large."},
		{MetricRefused, kindCounter, "{request}", "", "Requests without a valid token."},
	}
}

const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// durations are the buckets of histograms in seconds: those of the conventions, and finer ones
// below, where most of the hub's parts are.
func durations() []float64 {
	return []float64{0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

const (
	// maxPerServer bounds the tools of a server that are counted by name: the server chooses the
	// names, and may choose new ones at any time. Those beyond it are counted as "_OTHER".
	maxPerServer = 500

	// maxSeries bounds the combinations that one metric has: the SDK counts those beyond it as one,
	// otel_metric_overflow.
	maxSeries = 10_000
)

// State is what metrics say of this moment.
type State struct {
	Servers      []tool.ServerStatus
	Approvals    int
	JournalBytes int
	StoreLag     time.Duration
	Surplus      int64
	Refused      int64
}

// metrics count calls.
type metrics struct {
	calls          metric.Float64Counter
	parts          metric.Float64Histogram
	server, client metric.Float64Histogram
	tokens         metric.Float64Counter
	state          func() State

	mu    sync.Mutex
	names map[tool.Name]bool // of tools that are counted by name
	tools map[string]int     // how many those are, by server
}

// The parts of a call's time.
const (
	partQueue = iota
	partPermission
	partHooks
	partUpstream
	partHub
	parts
)

// partOf is the part that a phase belongs to. Where a call waits for its client's next request, it
// waits for what its server asked.
func partOf(phase string) int {
	switch phase {
	case "schedule":
		return partQueue
	case "permission":
		return partPermission
	case "pre_hooks", "post_hooks":
		return partHooks
	case phaseExecute, string(tool.StatusNeedsInput):
		return partUpstream
	}
	return partHub
}

// startMetrics makes metrics, for whoever asks, and for an endpoint where that is not nil.
func (t *Telemetry) startMetrics(o Options, to *endpoint, about *resource.Resource) {
	options := []sdkmetric.Option{sdkmetric.WithCardinalityLimit(maxSeries),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter)}
	if about != nil {
		options = append(options, sdkmetric.WithResource(about))
	}
	if o.Metrics {
		t.read = sdkmetric.NewManualReader()
		options = append(options, sdkmetric.WithReader(t.read))
	}
	if to != nil {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&metricExporter{t.outlet.to(to)})))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.ends = append(t.ends, provider.Shutdown)
	t.metrics = newMetrics(provider.Meter(scope), func() State {
		if state := t.state.Load(); state != nil {
			return (*state)()
		}
		return State{}
	})
}

// newMetrics registers what Metrics lists. Registration fails for names that are no names.
func newMetrics(meter metric.Meter, state func() State) *metrics {
	m := &metrics{state: state, names: make(map[tool.Name]bool), tools: make(map[string]int)}
	observed := make(map[string]metric.Float64Observable)
	for _, d := range Metrics() {
		unit, help := metric.WithUnit(d.Unit), metric.WithDescription(d.Help)
		switch {
		case d.Kind == kindHistogram:
			h, _ := meter.Float64Histogram(d.Name, unit, help, metric.WithExplicitBucketBoundaries(durations()...))
			*map[string]*metric.Float64Histogram{MetricParts: &m.parts, MetricServerDuration: &m.server,
				MetricClientDuration: &m.client}[d.Name] = h
		case d.Name == MetricCalls:
			m.calls, _ = meter.Float64Counter(d.Name, unit, help)
		case d.Name == MetricTokens:
			m.tokens, _ = meter.Float64Counter(d.Name, unit, help)
		case d.Kind == kindCounter:
			observed[d.Name], _ = meter.Float64ObservableCounter(d.Name, unit, help)
		default:
			observed[d.Name], _ = meter.Float64ObservableGauge(d.Name, unit, help)
		}
	}
	var all []metric.Observable
	for _, one := range observed {
		all = append(all, one)
	}
	_, _ = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.observe(o, observed)
		return nil
	}, all...)
	return m
}

// observe says what is at this moment.
func (m *metrics) observe(o metric.Observer, observed map[string]metric.Float64Observable) {
	now := m.state()
	for _, st := range now.Servers {
		server := attribute.String("server", st.Server)
		for _, state := range tool.ServerStates() {
			in := 0.0
			if st.State == state {
				in = 1
			}
			o.ObserveFloat64(observed[MetricServerState], in,
				metric.WithAttributes(server, attribute.String("state", string(state))))
		}
		o.ObserveFloat64(observed[MetricRestarts], float64(st.Restarts), metric.WithAttributes(server))
		o.ObserveFloat64(observed[MetricRunning], float64(st.InFlight), metric.WithAttributes(server))
		o.ObserveFloat64(observed[MetricQueued], float64(st.Queued), metric.WithAttributes(server))
	}
	o.ObserveFloat64(observed[MetricApprovals], float64(now.Approvals))
	o.ObserveFloat64(observed[MetricJournal], float64(now.JournalBytes))
	o.ObserveFloat64(observed[MetricStoreLag], now.StoreLag.Seconds())
	o.ObserveFloat64(observed[MetricSurplus], float64(now.Surplus))
	o.ObserveFloat64(observed[MetricRefused], float64(now.Refused))
}

// call counts a call.
func (m *metrics) call(ctx context.Context, e *invoke.Ended) {
	name, id := other, ""
	if e.Listed != nil {
		id = e.Listed.Server
		name = m.nameOf(e.Listed.Name, id)
	}
	server := attribute.String("server", id)
	m.calls.Add(ctx, 1, metric.WithAttributes(server, attribute.String("tool", name),
		attribute.String("status", string(e.Status)), attribute.String("class", string(e.Class))))
	asked := []attribute.KeyValue{attribute.String(attrMethod, methodCall), attribute.String(attrTool, name)}
	if kind := errorType(e); kind != "" {
		asked = append(asked, attribute.String(attrError, kind))
	}
	m.server.Record(ctx, e.Took.Seconds(), metric.WithAttributes(asked...))
	var took [parts]time.Duration
	from := time.Duration(0)
	for _, lap := range e.Laps {
		phase := lap.Phase
		took[partOf(phase)] += lap.Until - from
		if phase == phaseExecute && e.Executor.Role != "" {
			m.client.Record(ctx, (lap.Until - from).Seconds(), metric.WithAttributes(append(asked, server)...))
		}
		from = lap.Until
	}
	for part, name := range [parts]string{"queue", "permission", "hooks", "upstream", "hub"} {
		if t := took[part]; t > 0 {
			m.parts.Record(ctx, t.Seconds(), metric.WithAttributes(server, attribute.String("part", name)))
		}
	}
	if e.KeptChars > 0 {
		m.tokens.Add(ctx, float64(e.KeptChars/charsPerToken), metric.WithAttributes(attribute.String("by", "preview")))
	}
	if e.Member {
		return // its caller's model has read no list for it
	}
	if tokens := e.Surface.DeferredTokens; tokens > 0 {
		m.tokens.Add(ctx, float64(tokens), metric.WithAttributes(attribute.String("by", "deferral")))
	}
}

// charsPerToken is how long a token of a result counts, as in the record store.
const charsPerToken = 4

// nameOf is the name by which a tool is counted.
func (m *metrics) nameOf(name tool.Name, server string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[name] {
		if m.tools[server] >= maxPerServer {
			return other
		}
		m.names[name] = true
		m.tools[server]++
	}
	return string(name)
}

// request counts in h a request besides calls.
func (m *metrics) request(ctx context.Context, h metric.Float64Histogram, method string, took time.Duration,
	errorType string, more ...attribute.KeyValue) {
	all := append(more, attribute.String(attrMethod, knownMethod(method)))
	if errorType != "" {
		all = append(all, attribute.String(attrError, errorType))
	}
	h.Record(ctx, took.Seconds(), metric.WithAttributes(all...))
}
