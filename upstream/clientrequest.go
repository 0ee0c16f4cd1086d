package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
)

// clientRequest is what a client wants of one server: a tools/call, another request, or a subscription. All go the same way,
// with the same limits, the same waiting for servers that start, and the same second try.
type clientRequest struct {
	tool.Request
	call *tool.Execution // what it was made from, for a tools/call; nil otherwise
	name string          // of the tool, prompt or resource that it is about; "" for none

	// over does it over a session, where it is more than one request. Nil otherwise.
	over func(ctx context.Context, c *caller, sess *session, limits callLimits) answer
}

// callRequest is the request for a tools/call.
func callRequest(x *tool.Execution) *clientRequest {
	return &clientRequest{call: x, name: x.Tool.Native, Request: tool.Request{
		Server: x.Tool.Server, Method: methodCallTool, Params: x.Params, Meta: x.Meta, Hop: x.Hop, Session: x.Session,
		Ask: x.Ask, InRounds: x.InRounds, Notify: x.Notify, Progress: x.Progress,
	}}
}

// about names what the request is about, for messages.
func (x *clientRequest) about() string { return orText(x.name, x.Method) }

// params returns the params of the request.
func (x *clientRequest) params(token string, h *hop.Hop) (json.RawMessage, error) {
	if x.call != nil {
		call := *x.call
		call.Params = x.Params // with the client's answers
		return h.CallParams(&call, token)
	}
	return h.RequestParams(&x.Request, token)
}

// ownMethods are requests that are not forwarded: the group sends them itself, or they have a door of their own.
func ownMethods() []string {
	return []string{methodCallTool, methodSubscribe, methodUnsubscribe, methodSetLevel, methodListen, methodDiscover, "initialize"}
}

// Forward sends a request other than tools/call to its server and returns what the server answered, byte for byte. It goes
// the way of a call, and Execute says what holds for both: errors, timeouts, progress, the second try, the end of ctx.
// Subscriptions and the log level have methods of their own.
func (g *Group) Forward(ctx context.Context, r *tool.Request) (tool.Reply, error) {
	if slices.Contains(ownMethods(), r.Method) || r.Method == "" {
		return tool.Reply{}, &tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not forwarded", r.Method)}
	}
	if !fitsHeader(r.Method) {
		return tool.Reply{}, errNoMethod(r.Method)
	}
	x := &clientRequest{Request: *r}
	if x.Progress == nil {
		x.Progress = ignoreProgress
	}
	switch r.Method {
	case methodRead:
		x.name = rawjson.Text(r.Params, "uri")
	case methodGetPrompt:
		x.name = rawjson.Text(r.Params, "name")
	case tool.MethodTaskGet, tool.MethodTaskCancel, tool.MethodTaskUpdate, tool.MethodTaskResult:
		x.name = rawjson.Text(r.Params, "taskId")
	}
	if r.Unknown {
		x.name = r.Name
	}
	return g.dispatch(ctx, x)
}
