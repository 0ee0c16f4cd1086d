package invoke

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestPreviewAsTheClientsOwn: a preview is as large as what the client itself would show of a large
// result, or what the hub thinks best. A limit by hand goes before the client's.
func TestPreviewAsTheClientsOwn(t *testing.T) {
	t.Parallel()
	codex := &tool.ResultRules{Usual: tool.ResultRule{MaxChars: 12_000}, Preview: 12_000}
	claude := &tool.ResultRules{Usual: tool.ResultRule{MaxChars: 50_000}}
	for name, test := range map[string]struct {
		rules *tool.ResultRules
		most  int
		want  int
	}{
		"Codex":          {codex, 12_000, 11_000},
		"Codex, another": {codex, 4000, 2000},
		"Claude Code":    {claude, 50_000, 8000},
		"a small one":    {claude, 1000, 500},
	} {
		if got := previewFor(test.rules, tool.ResultRule{MaxChars: test.most}); got != test.want {
			t.Errorf("%s: %d characters, want %d", name, got, test.want)
		}
	}
}
