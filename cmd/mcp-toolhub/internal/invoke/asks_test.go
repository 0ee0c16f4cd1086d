package invoke

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// TestAListOfCanceledCalls: where all calls of a list are canceled before the question leaves, nobody is asked.
func TestAListOfCanceledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Asks{}
		a.Begin()
		a.Begin() // so that the first one waits for this one
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan listAnswer, 1)
		c := &Call{Member: &Member{Asks: a}}
		go func() {
			answer <- a.ask(ctx, c, func() gate.Asked {
				return gate.Asked{Request: &policy.Request{Tool: &tool.Tool{Name: "mcp.s.t"}}, Decision: &tool.PermissionDecision{}}
			}, func() { t.Error("the question has left") })
		}()
		synctest.Wait()
		cancel()
		if got := <-answer; got.err == nil {
			t.Errorf("answered: %+v", got)
		}
		synctest.Wait()
	})
}
