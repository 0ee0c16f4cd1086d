//go:build e2e

package invoke

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// TestHooksThatDoNotMatchAllocateLittle: a hundred hooks that do not match cost a call what one phase of hooks costs.
func TestHooksThatDoNotMatchAllocateLittle(t *testing.T) {
	p := newBench(t, tool.ValidateReject, ok(`{"content":[]}`))
	count := func(hooks *hook.Set) float64 {
		p.around.hooks = hooks
		return testing.AllocsPerRun(200, func() { p.call(t.Context(), "mcp.s.t", `{"n":1}`) })
	}
	without, with := count(nil), count(hundredHooks(t, otherTools))
	if with > without+5 {
		t.Errorf("a call makes %v allocations, and %v with 100 hooks that do not match", without, with)
	}
}
