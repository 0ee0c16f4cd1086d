package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestWhoCallsDoesNotAllowDangerousCalls: where several people have tokens, a question about a dangerous call, or about one beyond the limits,
// waits in the queue, and the client behind the call is not asked. It is asked about other calls, and where one person has a token.
func TestWhoCallsDoesNotAllowDangerousCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var tokens []any
	for _, name := range []string{"ann", "bob"} {
		file := filepath.Join(dir, name)
		replaceFile(t, file, name+"-token-of-the-test")
		tokens = append(tokens, map[string]any{"name": name, "token": "${file:" + file + "}"})
	}
	start := func(tokens []any, ask map[string]any) *permitted {
		return startPermitted(t, map[string]any{"ask": ask, "tools": []any{map[string]any{"match": "mcp.s.hidden", "tags": []string{"dangerous"}},
			map[string]any{"match": "mcp.s.echo", "arguments": map[string]any{"/text": "path"}}}},
			map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": tokens}}})
	}
	team, one, loose := start(tokens, nil), start(tokens[:1], nil), start(tokens, map[string]any{"not_self": false})
	key := quoted(filepath.Join(dir, ".ssh", "id_rsa"))
	for _, version := range []string{rev2025, rev2026} {
		for _, c := range []struct {
			hub        *permitted
			tool, args string
			asked      bool
		}{{team, "mcp.s.hidden", `{}`, false}, {team, "mcp.s.echo", `{"text":` + key + `}`, false}, {team, "mcp.s.echo", `{}`, true},
			{one, "mcp.s.hidden", `{}`, true}, {one, "mcp.s.echo", `{"text":` + key + `}`, true}, {loose, "mcp.s.hidden", `{}`, true}} {
			w := c.hub.client(version, "Authorization", "Bearer ann-token-of-the-test").able()
			if !w.modern() {
				w.open()
			}
			x := &exchange{w: w, answer: answerWith("allow_once", "")}
			answered := make(chan string, 1)
			go func() { answered <- x.call(c.tool, c.args) }()
			if !c.asked {
				h := c.hub.hub()
				if _, err := h.Answer(t.Context(), string(c.hub.pending(h).ID), control.Reply{Choice: policy.AllowOnce}); err != nil {
					t.Error(err)
				}
			}
			got := await(t, answered)
			if !strings.Contains(got, `"status":"succeeded"`) || len(x.asked) > 0 != c.asked {
				t.Errorf("%s, %s %s: its client was asked %d times: %s", version, c.tool, c.args, len(x.asked), got)
			}
		}
	}
}
