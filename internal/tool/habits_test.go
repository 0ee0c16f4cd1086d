package tool_test

import (
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestWhoSearches: Codex searches with the models that can, and others whatever their model.
func TestWhoSearches(t *testing.T) {
	t.Parallel()
	for client, want := range map[tool.Client]bool{
		{Name: "claude-code"}:                                 true,
		{Name: "claude-code", Model: "gpt-4.1"}:               true,
		{Name: "qwen-cli-mcp-client-toolhub"}:                 true,
		{Name: "codex-mcp-client"}:                            true,
		{Name: "codex-mcp-client", Model: "gpt-5.5"}:          true,
		{Name: "codex-mcp-client", Model: "gpt-5.10-codex"}:   true,
		{Name: "codex-mcp-client", Model: "gpt-6"}:            true,
		{Name: "codex-mcp-client", Model: "openai/gpt-5.6-x"}: true,
		{Name: "codex-mcp-client", Model: "gpt-5.1-codex"}:    false,
		{Name: "codex-mcp-client", Model: "gpt-5"}:            false,
		{Name: "codex-mcp-client", Model: "gpt-4o"}:           false,
		{Name: "codex-mcp-client", Model: "gpt-oss-120b"}:     false,
		{Name: "codex-mcp-client", Model: "o4-mini"}:          false,
		{Name: "gemini-cli-mcp-client"}:                       false,
		{}:                                                    false,
	} {
		if got := client.Habits().Searches; got != want {
			t.Errorf("%+v: searches by itself: %v, want %v", client, got, want)
		}
	}
}

// TestWhoListsOnce: a client that lists once waits for servers that start, but not for longer than for
// a server of its own.
func TestWhoListsOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]time.Duration{
		"codex-mcp-client": 25 * time.Second, "@cline/core": 25 * time.Second, "Cline": 25 * time.Second,
		"qwen-cli-mcp-client-toolhub": 25 * time.Second, "continue-cli-client": 25 * time.Second,
		"continue-client": 15 * time.Second, "claude-code": 0, "gemini-cli-mcp-client": 0, "c": 0,
	} {
		if got := (tool.Client{Name: name}).Habits().ListsWithin; got != want {
			t.Errorf("%s waits for %s, want %s", name, got, want)
		}
	}
}
