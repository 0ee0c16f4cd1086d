package cli

import (
	"context"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/batch"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// hubTools returns the table of the hub's own tools. A new tool is implemented in a package and added here.
func hubTools(h *hub) []*tool.HubTool {
	return append(deferred.HubTools(func() *deferred.Loader { return h.surfaces.loader }),
		results.HubTool(h.resultReader), batch.HubTool(batch.Options{
			Invoke: func(ctx context.Context, c *invoke.Call) invoke.Outcome { return h.pipeline.Invoke(ctx, c) },
			Reads:  func(t *tool.Tool) bool { return h.surfaces.now().gate.Facts(t).ReadOnly.Value },
			Listed: func(defers, _ bool) bool { return defers || h.settings().BatchListed },
		}))
}

// hubTool returns the entry of that name; nil if there is none.
func (h *hub) hubTool(name tool.Name) *tool.HubTool {
	if i := slices.IndexFunc(h.hubTools, func(t *tool.HubTool) bool { return t.Name == name }); i >= 0 {
		return h.hubTools[i]
	}
	return nil
}

// hubToolNames returns the names of the hub's own tools: rules may name them.
func hubToolNames() (names []string) {
	for _, t := range hubTools(&hub{}) {
		names = append(names, string(t.Name))
	}
	return names
}
