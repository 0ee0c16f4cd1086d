package hub

import (
	"context"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/batch"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Tools returns the table of the hub's own tools. A new tool is implemented in a package and added here.
func Tools(h *Hub) []*tool.HubTool {
	return append(deferred.HubTools(func() *deferred.Loader { return h.Surfaces.loader }),
		results.HubTool(h.resultReader), batch.HubTool(batch.Options{
			Invoke: func(ctx context.Context, c *invoke.Call) invoke.Outcome { return h.pipeline.Invoke(ctx, c) },
			Reads:  func(t *tool.Tool) bool { return h.Surfaces.Now().Gate.Facts(t).ReadOnly.Value },
		}))
}

// HubTool returns the entry of that name; nil if there is none.
func (h *Hub) HubTool(name tool.Name) *tool.HubTool {
	if i := slices.IndexFunc(h.hubTools, func(t *tool.HubTool) bool { return t.Name == name }); i >= 0 {
		return h.hubTools[i]
	}
	return nil
}

// ToolNames returns the names of the hub's own tools: rules may name them.
func ToolNames() (names []string) {
	for _, t := range Tools(&Hub{}) {
		names = append(names, string(t.Name))
	}
	return names
}
