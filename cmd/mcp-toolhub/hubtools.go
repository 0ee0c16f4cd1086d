package main

import (
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// hubTools returns the table of the hub's own tools. A new tool is implemented in a package and added here.
func hubTools(h *hub) []*tool.HubTool {
	return deferred.HubTools(func() *deferred.Loader { return h.surfaces.loader })
}

// hubTool returns the entry of that name; nil if there is none.
func (h *hub) hubTool(name tool.Name) *tool.HubTool {
	if i := slices.IndexFunc(h.hubTools, func(t *tool.HubTool) bool { return t.Name == name }); i >= 0 {
		return h.hubTools[i]
	}
	return nil
}

// hubToolNames returns the names of the hub's own tools, and one that is reserved for another: rules may name them.
func hubToolNames() []string {
	names := []string{"result_read"}
	for _, t := range hubTools(&hub{}) {
		names = append(names, string(t.Name))
	}
	return names
}
