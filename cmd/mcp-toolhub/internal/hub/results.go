package hub

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// resultReader returns what reads stored results, with the rights of the settings in force.
func (h *Hub) resultReader() results.Reader {
	return results.Reader{Store: h.Results, All: h.Settings().Downstream.Auth.ReadsResults,
		Memory: h.Group.Memory().Share()}
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
	records := persist.ExpiryRecords(tool.InvocationOf(e.ID), e.Tool, &d, *e.Expired)
	if err := h.journal.Commit(context.Background(), records...); err != nil {
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
