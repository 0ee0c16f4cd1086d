package limit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
)

func surface(profile string) *tool.Surface {
	listed := make([]tool.Listed, 0, 2)
	for _, name := range []string{"a", "b"} {
		d := json.RawMessage(`{"name":"` + name + `","outputSchema":{"type":"object"},"inputSchema":{}}`)
		listed = append(listed, tool.Listed{Name: name, Changed: d, Tool: &tool.Tool{Name: tool.MCPName("s", name), Declaration: d,
			OutputSchema: json.RawMessage(`{"type":"object"}`)}})
	}
	return tool.NewSurface("srf_1", profile, "short", "digest", listed, nil, map[string]int{"a": 0, "b": 1})
}

// TestLimits holds which rule counts for whom, and that an outputSchema is listed where nothing is cut.
func TestLimits(t *testing.T) {
	t.Parallel()
	rules := []limit.Rule{{Match: "mcp.s.a", MaxInlineTokens: 300}, {Match: "mcp.*.a", MaxInlineTokens: 500, Strategy: tool.StrategyInline}}
	cases := []struct {
		name, client, profile string
		settings              limit.Settings
		a, b                  tool.ResultRule
	}{
		{name: "unknown", client: "wire"},
		{name: "known", client: "claude-code", a: preview(50_000), b: preview(50_000)},
		{name: "a version of it", client: "Gemini-CLI-mcp-client", a: preview(40_000), b: preview(40_000)},
		{name: "direct view", client: "claude-code", profile: "s/s"},
		{name: "a setting is for all", client: "wire", settings: limit.Settings{MaxInlineTokens: 1000}, a: preview(4000), b: preview(4000)},
		{name: "and before the client's", client: "codex", settings: limit.Settings{MaxInlineTokens: 1000}, a: preview(4000), b: preview(4000)},
		{name: "the first that sets a field", client: "codex", settings: limit.Settings{Tools: rules},
			a: tool.ResultRule{MaxChars: 1200, Strategy: tool.StrategyInline}, b: preview(12_000)},
		{name: "opting out changes nothing without a limit", client: "wire", settings: limit.Settings{Tools: []limit.Rule{{Match: "*", Strategy: tool.StrategyInline}}}},
		{name: "nothing is kept of small results, either", client: "wire",
			settings: limit.Settings{Tools: []limit.Rule{{Match: "mcp.s.b", Strategy: tool.StrategyNeverPersist}}},
			a:        preview(0), b: tool.ResultRule{Strategy: tool.StrategyNeverPersist}},
	}
	for _, c := range cases {
		p := limit.New(limit.Config{Default: c.settings})
		full := surface(c.profile)
		out := p.Surface(full, tool.Client{Name: c.client})
		if again := p.Surface(full, tool.Client{Name: c.client}); again != out {
			t.Errorf("%s: another surface the second time", c.name)
		}
		if c.a == (tool.ResultRule{}) && c.b == (tool.ResultRule{}) {
			if out != full {
				t.Errorf("%s: %+v", c.name, out.Results)
			}
			continue
		}
		if out.ID == full.ID || out.Digest == full.Digest {
			t.Errorf("%s: the surface has the id of another", c.name)
		}
		if want := map[string]int{"codex": 12_000, "Gemini-CLI-mcp-client": 40_000}[c.client]; c.settings.MaxInlineTokens == 0 && out.Results.Preview != want {
			t.Errorf("%s: previews of %d characters, want %d", c.name, out.Results.Preview, want)
		}
		for name, want := range map[string]tool.ResultRule{"a": c.a, "b": c.b} {
			l, _ := out.Resolve(name)
			if got := out.Results.For(l.Tool.Name); got != want {
				t.Errorf("%s: %s has %+v", c.name, name, got)
			}
			if listed := strings.Contains(string(l.Declaration()), "outputSchema"); listed == want.Cuts() {
				t.Errorf("%s: %s is declared as %s", c.name, name, l.Declaration())
			}
		}
	}
}

func preview(chars int) tool.ResultRule {
	return tool.ResultRule{MaxChars: chars, Strategy: tool.StrategyPreviewAndPersist}
}
