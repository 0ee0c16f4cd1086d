// Package telemetry tells the outside how the hub is doing: metrics for Prometheus; traces, metrics
// and logs for a collector of OpenTelemetry; and the latest calls, phase by phase, for the hub's
// own commands.
//
// All that it says of a call it takes from one invoke.Ended, when the call has ended and is
// recorded. What is sent to a collector waits in bounded queues beside the calls: a collector that
// is slow or gone costs telemetry, and no call.
//
// The names of spans, attributes and metrics are those of the OpenTelemetry semantic conventions
// for MCP and GenAI, which have the status of development:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md. Others
// begin with "toolhub".
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
)

// scope is the name of the instrumentation.
const scope = "github.com/mcp-toolhub/mcp-toolhub"

// Options say what telemetry there is.
type Options struct {
	Version string // of the hub
	// has the contract of os.LookupEnv; the OTEL_* variables are looked up
	Getenv func(name string) (value string, ok bool)

	Metrics bool // somebody may ask for the metrics by ServeHTTP
	Content bool // arguments and results of calls stand in spans, masked
}

// Telemetry is the telemetry of one hub. It implements invoke.Observer. All methods are safe for concurrent use.
type Telemetry struct {
	content bool
	recent  recent
	lines   lines
	tracer  trace.Tracer            // nil where nobody traces
	logs    *sdklog.LoggerProvider  // nil where logs are not sent
	metrics *metrics                // nil where nobody wants any
	read    *sdkmetric.ManualReader // nil where nobody may ask for metrics
	state   atomic.Pointer[func() State]
	outlet  outlet
	ends    []func(context.Context) error
	once    sync.Once
}

// New returns the telemetry that the options and the environment want. problems say what of the
// environment is not done, and what to do about it: the hub runs without that.
func New(ctx context.Context, o Options) (t *Telemetry, problems []string) {
	t = &Telemetry{content: o.Content}
	env := environment{lookup: o.Getenv}
	traces, metricsOut, logs := env.endpoint(signalTraces), env.endpoint(signalMetrics), env.endpoint(signalLogs)
	var about *resource.Resource
	if traces != nil || metricsOut != nil || logs != nil {
		about = describe(ctx, o.Version, &env)
	}
	if traces != nil {
		t.startTracing(traces, about)
	}
	if o.Metrics || metricsOut != nil {
		t.startMetrics(o, metricsOut, about)
	}
	if logs != nil {
		batches := sdklog.NewBatchProcessor(&logExporter{t.outlet.to(logs)})
		t.logs = sdklog.NewLoggerProvider(sdklog.WithProcessor(batches), sdklog.WithResource(about))
		t.ends = append(t.ends, t.logs.Shutdown)
	}
	return t, env.problems
}

// Tell makes logger hear of a collector that cannot be reached, and of its return. It is called
// once, before the first call.
func (t *Telemetry) Tell(logger *slog.Logger) {
	t.outlet.logger.Store(logger)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { // otherwise the SDK writes to stderr
		logger.Debug("telemetry", "error", err)
	}))
}

// Observe makes metrics say what state returns. It is asked when somebody asks for metrics.
func (t *Telemetry) Observe(state func() State) { t.state.Store(&state) }

// Log returns the latest lines of the log, oldest first.
func (t *Telemetry) Log() []string { return t.lines.all() }

// closeWithin bounds the time that telemetry may take to be sent at the end.
const closeWithin = 3 * time.Second

// Close sends what is left, for closeWithin at most. Calling it again does nothing.
func (t *Telemetry) Close(ctx context.Context) (err error) {
	t.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, closeWithin)
		defer cancel()
		for _, end := range t.ends {
			err = errors.Join(err, end(ctx))
		}
	})
	return err
}

// End implements invoke.Observer.
func (t *Telemetry) End(ctx context.Context, e invoke.Ended) {
	var id trace.TraceID
	if tr, ok := e.Trace.(*callTrace); ok {
		id = tr.end(ctx, &e, t)
	}
	t.recent.add(&e, id)
	if t.metrics != nil {
		t.metrics.call(ctx, &e)
	}
}
