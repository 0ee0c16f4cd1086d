package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Attributes of the semantic conventions.
const (
	attrMethod    = "mcp.method.name"
	attrSession   = "mcp.session.id"
	attrProtocol  = "mcp.protocol.version"
	attrTool      = "gen_ai.tool.name"
	attrPrompt    = "gen_ai.prompt.name"
	attrOperation = "gen_ai.operation.name"
	attrArguments = "gen_ai.tool.call.arguments"
	attrResult    = "gen_ai.tool.call.result"
	attrRequest   = "jsonrpc.request.id"
	attrCode      = "rpc.response.status_code"
	attrError     = "error.type"
	attrTransport = "network.transport"
)

// Attributes of this project.
const (
	attrInvocation = "toolhub.invocation.id"
	attrActor      = "toolhub.actor"
	attrProfile    = "toolhub.profile"
	attrServer     = "toolhub.server"
	attrStatus     = "toolhub.status"
	attrPhase      = "toolhub.phase"
)

const (
	methodCall   = "tools/call"
	phaseExecute = "execute"

	// other stands for a value that is not one of a known set: "_OTHER" is the conventions' word.
	other = "_OTHER"

	// maxValue bounds an attribute that strangers write, in bytes.
	maxValue = 256
)

// startTracing makes spans go to an endpoint. Which traces are sampled, OTEL_TRACES_SAMPLER says.
func (t *Telemetry) startTracing(to *endpoint, about *resource.Resource) {
	exporter := otlptrace.NewUnstarted(traceClient{t.outlet.to(to)})
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	t.tracer = provider.Tracer(scope)
	t.ends = append(t.ends, provider.Shutdown)
}

// callTrace is the trace of one call.
type callTrace struct {
	tracer trace.Tracer
	server trace.Span
	hops   []trace.Span // one for each run of the phase execute
}

// Begin implements invoke.Observer. The parent of the call's span is what the _meta of the call names.
func (t *Telemetry) Begin(ctx context.Context, c *invoke.Call) invoke.Trace {
	if t.tracer == nil {
		return nil
	}
	_, span := t.tracer.Start(extract(ctx, c.Meta), methodCall, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String(attrMethod, methodCall)))
	return &callTrace{tracer: t.tracer, server: span}
}

// Hop implements invoke.Trace.
func (c *callTrace) Hop(ctx context.Context, to *tool.Tool, meta json.RawMessage) json.RawMessage {
	name, kind := phaseExecute, trace.SpanKindInternal
	if to.Name.Source() == tool.SourceMCP {
		name, kind = spanName(methodCall, to.Native), trace.SpanKindClient
	}
	ctx, span := c.tracer.Start(trace.ContextWithSpan(ctx, c.server), name, trace.WithSpanKind(kind))
	c.hops = append(c.hops, span)
	return inject(ctx, meta)
}

// end ends the spans of a call, and returns the trace's id where the trace is sampled.
func (c *callTrace) end(ctx context.Context, e *invoke.Ended, t *Telemetry) (id trace.TraceID) {
	if sc := c.server.SpanContext(); sc.IsSampled() {
		id = sc.TraceID()
		c.phases(trace.ContextWithSpan(ctx, c.server), e)
		c.server.SetName(spanName(methodCall, toolName(e)))
		c.server.SetAttributes(serverAttributes(e)...)
		if t.content {
			c.server.SetAttributes(content(e)...)
		}
		fail(c.server, errorType(e))
	}
	c.server.End(trace.WithTimestamp(e.Began.Add(e.Took)))
	return id
}

// phases makes a span of each phase. That of the phase execute is the request to the server.
func (c *callTrace) phases(ctx context.Context, e *invoke.Ended) {
	from := e.Began
	for _, lap := range e.Laps {
		until, phase := e.Began.Add(lap.Until), lap.Phase
		var span trace.Span
		if phase == phaseExecute && len(c.hops) > 0 {
			span, c.hops = c.hops[0], c.hops[1:]
			if e.Listed.Name.Source() == tool.SourceMCP {
				span.SetAttributes(clientAttributes(e)...)
				fail(span, clientError(e))
			}
		} else {
			_, span = c.tracer.Start(ctx, phase, trace.WithTimestamp(from))
		}
		if phase == e.FailedIn {
			fail(span, errorType(e))
		}
		span.SetAttributes(attribute.String(attrPhase, phase))
		span.End(trace.WithTimestamp(until))
		from = until
	}
}

// spanName is "{mcp.method.name} {target}".
func spanName(method, target string) string {
	if target == "" || target == other {
		return method
	}
	return method + " " + target
}

// toolName is the tool of a call as telemetry calls it: by its canonical name, never by what a client wrote.
func toolName(e *invoke.Ended) string {
	if e.Listed == nil {
		return other
	}
	return string(e.Listed.Name)
}

// errorType is the conventions' error.type of a call; "" where it went well.
func errorType(e *invoke.Ended) string {
	switch {
	case e.RPC != nil:
		return rpcError(e.RPC)
	case e.Error == nil:
		return ""
	case e.Error.ErrorCode == tool.CodeToolError:
		return "tool_error"
	}
	return cmp.Or(string(e.Class), other)
}

// clientError is the error.type of the request to the call's server.
func clientError(e *invoke.Ended) string {
	if e.FailedIn == phaseExecute || e.FailedIn == "" {
		return errorType(e)
	}
	return ""
}

// rpcError is the error.type of a JSON-RPC error: its code. Servers choose codes: those that
// neither JSON-RPC nor MCP knows are "_OTHER".
func rpcError(e *tool.RPCError) string {
	switch e.Code {
	case tool.CodeParseError, tool.CodeInvalidRequest, tool.CodeMethodNotFound, tool.CodeInvalidParams,
		tool.CodeInternalError,
		tool.CodeHeaderMismatch, tool.CodeMissingCapabilities, tool.CodeUnsupportedProtocol,
		tool.CodeURLElicitationRequired, -32000, -32002:
		return strconv.FormatInt(e.Code, 10)
	}
	return other
}

// knownMethod is a method as telemetry calls it. Clients choose methods: those that MCP does not know are "_OTHER".
func knownMethod(method string) string {
	switch method {
	case "initialize", "server/discover", "ping", methodCall, "tools/list", "prompts/get", "prompts/list",
		"resources/list", "resources/read",
		"resources/templates/list", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"completion/complete",
		"logging/setLevel", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update":
		return method
	}
	return other
}

// fail gives a span the status of an error. What an error says can hold arguments, so it is left out.
func fail(span trace.Span, errorType string) {
	if errorType != "" {
		span.SetAttributes(attribute.String(attrError, errorType))
		span.SetStatus(codes.Error, "")
	}
}

func serverAttributes(e *invoke.Ended) []attribute.KeyValue {
	all := attributes{
		attribute.String(attrTool, toolName(e)), attribute.String(attrOperation, "execute_tool"),
		attribute.String(attrInvocation, string(e.ID)), attribute.String(attrStatus, string(e.Status)),
		attribute.String(attrTransport, transportOf(e.Actor.Door)),
	}
	all.add(attrRequest, strings.Trim(string(e.NativeCallID), `"`))
	all.add(attrSession, e.Actor.Session)
	all.add(attrProtocol, e.Actor.Client.ProtocolVersion)
	all.add(attrActor, e.Actor.Ref())
	all.add(attrProfile, e.Surface.Profile)
	if e.Listed != nil {
		all.add(attrServer, e.Listed.Server)
	}
	if e.RPC != nil {
		all.add(attrCode, strconv.FormatInt(e.RPC.Code, 10))
	}
	return all
}

func clientAttributes(e *invoke.Ended) []attribute.KeyValue {
	all := attributes{attribute.String(attrMethod, methodCall), attribute.String(attrOperation, "execute_tool")}
	all.add(attrTool, e.Executor.ToolName)
	all.add(attrServer, e.Executor.ServerID)
	all.add(attrSession, e.Executor.SessionID)
	all.add(attrProtocol, e.Executor.ProtocolVersion)
	all.add(attrRequest, strings.Trim(e.Executor.JSONRPCRequestID, `"`))
	if e.RPC != nil {
		all.add(attrCode, strconv.FormatInt(e.RPC.Code, 10))
	}
	return all
}

// attributes are those that have a value.
type attributes []attribute.KeyValue

// add adds an attribute, unless its value is "".
func (a *attributes) add(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, strings.ToValidUTF8(value[:min(len(value), maxValue)], "")))
	}
}

// content are the arguments and the result of a call, as its record has them: without secrets.
func content(e *invoke.Ended) (all []attribute.KeyValue) {
	if e.Arguments != nil {
		all = append(all, attribute.String(attrArguments, string(e.Arguments)))
	}
	if e.Result != nil {
		all = append(all, attribute.String(attrResult, string(e.Result)))
	}
	return all
}

// transportOf is the conventions' network.transport of a door.
func transportOf(door string) string {
	if door == "http" {
		return "tcp"
	}
	return "pipe"
}

// propagator reads and writes the context of a trace as W3C Trace Context has it. Baggage is not
// read: it passes as it is.
func propagator() propagation.TraceContext { return propagation.TraceContext{} }

// The members of _meta with the context of a trace:
// https://modelcontextprotocol.io/community/seps/414-request-meta
const (
	memberParent = "traceparent"
	memberState  = "tracestate"
)

// extract returns ctx with the parent that _meta names. One that is malformed counts as none.
func extract(ctx context.Context, meta json.RawMessage) context.Context {
	carrier := propagation.MapCarrier{}
	for _, name := range []string{memberParent, memberState} {
		if text, ok := rawjson.GetString(meta, name); ok {
			carrier[name] = text
		}
	}
	return propagator().Extract(ctx, carrier)
}

// inject returns _meta with the context of the span in ctx in the place of what it had. Every other byte stays.
func inject(ctx context.Context, meta json.RawMessage) json.RawMessage {
	carrier := propagation.MapCarrier{}
	propagator().Inject(ctx, carrier)
	out := []byte(meta)
	if rawjson.IsNull(meta) {
		out = []byte("{}")
	}
	out, err := rawjson.Set(out, memberParent, rawjson.Quote(carrier[memberParent]))
	if err != nil {
		return meta // it is no object, and whoever gets it finds out
	}
	if state := carrier[memberState]; state != "" {
		out, err = rawjson.Set(out, memberState, rawjson.Quote(state))
	} else {
		out, _, err = rawjson.Delete(out, memberState) // that of a parent which was malformed
	}
	if err != nil {
		return meta
	}
	return out
}
