package tool_test

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestAudience: an audience is what it may not see, whatever else there is: what is kept for it is found again, and replaced,
// when other tools come and go.
func TestAudience(t *testing.T) {
	t.Parallel()
	surface := func(digest string, names ...tool.Name) *tool.Surface {
		var listed []tool.Listed
		for _, n := range names {
			listed = append(listed, tool.Listed{Name: string(n), Tool: &tool.Tool{Name: n}})
		}
		return tool.NewSurface("srf", "p", "canonical", digest, listed, nil, nil)
	}
	hidden := map[tool.Name]string{"a": "rule", "b": "rule"}
	before, after := surface("1", "a", "b", "c").Without(hidden), surface("2", "a", "b", "c", "d").Without(hidden)
	if before.Audience != after.Audience || before.Audience == "" || before.Digest == after.Digest {
		t.Errorf("audiences %q and %q, digests %q and %q", before.Audience, after.Audience, before.Digest, after.Digest)
	}
	if other := surface("1", "a", "b", "c").Without(map[tool.Name]string{"a": "rule"}); other.Audience == before.Audience {
		t.Error("who sees more is the same audience")
	}
}
