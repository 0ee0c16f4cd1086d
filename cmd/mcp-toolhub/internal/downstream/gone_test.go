package downstream

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A tool that was taken away, or hidden from the caller, while its call waited is as unknown as any
// other, and nothing of the call is left.
func TestToolGoneBetweenRounds(t *testing.T) {
	t.Parallel()
	for kind, execute := range map[string]func(context.Context, *tool.Execution) (tool.Reply, error){
		"repeated":  needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`),
		"suspended": asking(tool.Question{Method: tool.MethodRoots}),
	} {
		doors(t, &far{execute: execute}, func(t *testing.T, f *far, s *Server, c *asker) {
			f.offer("echo", "slow")
			_, with := input(t, c.call("mcp.s.echo", `{"n":1}`, ""))
			answer := with(`{"q1":{"roots":[]}}`)
			if got := c.call("mcp.s.none", `{"n":1}`, answer); !strings.Contains(got, "belongs to another request") ||
				s.Health().Waiting != 1 {
				t.Errorf("%s: with the name of no tool: %s, %d wait", kind, got, s.Health().Waiting)
			}
			f.offer("slow")
			unknown := c.call("mcp.s.echo", `{"n":1}`, "")
			if got := c.call("mcp.s.echo", `{"n":2}`, answer); !strings.Contains(got, "belongs to another request") ||
				s.Health().Waiting != 1 {
				t.Errorf("%s: with other arguments: %s, %d wait", kind, got, s.Health().Waiting)
			}
			got := c.call("mcp.s.echo", `{"n":1}`, answer)
			if _, got, _ = strings.Cut(got, `"error"`); !strings.HasSuffix(unknown, got) ||
				!strings.Contains(got, "unknown tool") {
				t.Errorf("%s: answered %s, and without a state %s", kind, got, unknown)
			}
			if s.Health().Waiting != 0 {
				t.Errorf("%s: %d calls wait", kind, s.Health().Waiting)
			}
			f.offer("echo", "slow")
			if got := c.call("mcp.s.echo", `{"n":1}`, answer); !strings.Contains(got,
				"was used before, or what it continues has ended") {
				t.Errorf("%s: when it is back: %s", kind, got)
			}
		})
	}
}
