package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestReadersText: one tool is told of in the singular.
func TestReadersText(t *testing.T) {
	for want, tools := range map[string][]tool.Name{
		"s: 1 tool of this server looks as if it only reads":  {"mcp.s.get"},
		"s: 2 tools of this server look as if they only read": {"mcp.s.get", "mcp.s.list"},
	} {
		if got, _, _ := strings.Cut(readersText(&hub.Readers{Server: "s", Tools: tools}), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
