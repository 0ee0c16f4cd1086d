package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Request is told of a request of a client that is no tools/call, with the _meta that goes on to a
// server. end is to be called with the error that the client gets, or nil. What is done for the
// request is done with the context.
func (t *Telemetry) Request(ctx context.Context, method string, meta json.RawMessage) (_ context.Context,
	end func(*tool.RPCError)) {
	if t.tracer == nil && t.metrics == nil {
		return ctx, func(*tool.RPCError) {}
	}
	began, span := time.Now(), trace.Span(nil)
	if t.tracer != nil {
		ctx, span = t.tracer.Start(extract(ctx, meta), knownMethod(method), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String(attrMethod, knownMethod(method))))
	}
	return ctx, func(refused *tool.RPCError) {
		kind := ""
		if refused != nil {
			kind = rpcError(refused)
		}
		if span != nil {
			fail(span, kind)
			span.End()
		}
		if t.metrics != nil {
			t.metrics.request(ctx, t.metrics.server, method, time.Since(began), kind)
		}
	}
}

// Forward is told of such a request on its way to a server. It returns the request as it goes on:
// with the context of the trace that ctx belongs to.
func (t *Telemetry) Forward(ctx context.Context, r *tool.Request) (_ *tool.Request, end func(tool.Reply, error)) {
	if t.tracer == nil && t.metrics == nil {
		return r, func(tool.Reply, error) {}
	}
	began, span := time.Now(), trace.Span(nil)
	if t.tracer != nil {
		method := knownMethod(r.Method)
		all := attributes{attribute.String(attrMethod, method)}
		all.add(attrServer, r.Server)
		target := ""
		if r.Method == "prompts/get" {
			target = rawjson.Text(r.Params, "name")
			all.add(attrPrompt, target)
		}
		var inner context.Context
		inner, span = t.tracer.Start(ctx, spanName(method, target), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(all...))
		onward := *r
		onward.Meta = inject(inner, r.Meta)
		r = &onward
	}
	return r, func(reply tool.Reply, err error) {
		kind := kindOf(err)
		if span != nil {
			all := attributes{}
			all.add(attrSession, reply.Mapping.SessionID)
			all.add(attrProtocol, reply.Mapping.ProtocolVersion)
			span.SetAttributes(all...)
			fail(span, kind)
			span.End()
		}
		if t.metrics != nil {
			t.metrics.request(ctx, t.metrics.client, r.Method, time.Since(began), kind,
				attribute.String("server", r.Server))
		}
	}
}

// Ask is told of a request that the hub sends to a server on its own. end is to be called with the
// error of the answer, or nil.
func (t *Telemetry) Ask(ctx context.Context, server, method string) (end func(error)) {
	_, ended := t.Forward(ctx, &tool.Request{Server: server, Method: method})
	return func(err error) { ended(tool.Reply{}, err) }
}

// kindOf is the error.type of the error of a server, or of the way to it; "" for nil.
func kindOf(err error) string {
	if err == nil {
		return ""
	}
	if rpc, ok := errors.AsType[*tool.RPCError](err); ok {
		return rpcError(rpc)
	}
	if f, ok := errors.AsType[*tool.Failure](err); ok && f.Class != "" {
		return string(f.Class)
	}
	return other
}
