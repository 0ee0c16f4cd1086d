package hub

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// resultReader returns what reads stored results, with the rights of the settings in force.
func (h *Hub) resultReader() results.Reader {
	return results.Reader{Store: h.Results, All: h.Settings().Downstream.Auth.ReadsResults,
		Memory: h.Group.Memory().Share()}
}

// readResource reads a resource of a server for a call, where the policy lets its caller.
func (h *Hub) readResource(ctx context.Context, c *invoke.Call, server, uri string) (tool.Reply, error) {
	const method = "resources/read"
	params := append(append([]byte(`{"uri":`), rawjson.Quote(uri)...), '}')
	out := h.pipeline.Invoke(ctx, &invoke.Call{Surface: c.Surface, Params: params, Arguments: params, Hop: c.Hop,
		Method: method,
		Actor:  c.Actor, Session: c.Session, Request: &invoke.Request{Method: h.Group.Method(server, method, true),
			Unasked: true,
			Send: func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
				return h.Group.Forward(ctx, &tool.Request{Server: server, Method: method, Params: params, Hop: c.Hop,
					Session: c.Session})
			}}})
	switch {
	case out.Class == tool.ClassPermissionDenied || out.Class == tool.ClassPolicyBlocked:
		return tool.Reply{}, errors.New("the policy does not allow it")
	case out.Err != nil:
		return tool.Reply{}, out.Err
	}
	return tool.Reply{Result: out.Result, Free: out.Free}, nil
}

// resultExpired records that a stored result is gone, and why: "Missing payload bytes should not
// erase the fact that the tool was selected and executed."
func (h *Hub) resultExpired(e payload.Entry) {
	if !e.ID.IsResult() {
		h.Logger.Info("a stored input has expired", "input", e.ID, "tool", e.Tool, "why", e.Reason)
		return
	}
	d := tool.ResultPersistence{Strategy: tool.StrategyDropWithReason, OriginalSize: int(e.Size), Reason: e.Reason,
		Persisted: e.Ref()}
	records := persist.DecisionRecords(tool.InvocationOf(e.ID), e.Tool, &d, true, *e.Expired)
	if err := h.journal.Append(context.Background(), records...); err != nil {
		h.Logger.Warn("the journal does not say that a stored result has expired", "result", e.ID, "error", err)
	}
	h.Logger.Info("a stored result has expired", "result", e.ID, "tool", e.Tool, "why", e.Reason)
}

// storedResult implements downstream.StoredResults.
func (h *Hub) storedResult(caller tool.Actor, id tool.ResultID, uri string) (contents json.RawMessage, free func(),
	err error) {
	free, err = h.resultReader().Read(caller, id, func(e payload.Entry, native []byte) error {
		contents = tool.ResourceContents(uri, e.MediaType, native)
		return nil
	})
	if errors.Is(err, results.ErrUnknown) {
		err = downstream.ErrNoResult
	}
	return contents, free, err
}
