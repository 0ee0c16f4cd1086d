//lint:file-ignore SA1019 What 2026-07-28 deprecates is what servers of older revisions are told of.

package upstream

import (
	"context"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// isServerRequest reports whether a request of this method asks the client behind a call for something.
func isServerRequest(method string) bool {
	return method == tool.MethodElicit || method == tool.MethodSample || method == tool.MethodRoots
}

// useLane makes l the session's lane, and lets the server ask through it what the hub has offered to answer. From
// 2026-07-28 on servers send no requests.
func (c *connector) useLane(sess *session, l lane) {
	sess.lane = l
	if sess.hop != nil {
		l.serverRequests().follow(refuseAll)
		return
	}
	l.serverRequests().follow(c.requestRule())
}

// refuseServerRequests keeps the SDK's client from answering for the client behind a call: it would
// say that there are no roots, and let no question on the streams of initialize pass.
func refuseServerRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if isServerRequest(method) {
			return nil, &sdkrpc.Error{Code: tool.CodeMethodNotFound, Message: errNotOffered.Message}
		}
		return next(ctx, method, req)
	}
}
