package invoke

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestASlowServerHoldsTheAnswerForTenSeconds has a server never answer resources/read: the call waits 10 s for all that its result names.
func TestASlowServerHoldsTheAnswerForTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Sources{Resource: func(ctx context.Context, _ *Call, _, _ string) (tool.Reply, error) {
			<-ctx.Done()
			return tool.Reply{}, ctx.Err()
		}}
		inv := &invocation{listed: &tool.Listed{Tool: &tool.Tool{Server: "s"}}}
		inv.outcome.Result = []byte(`{"content":[{"type":"resource_link","uri":"a:1"},{"type":"resource_link","uri":"a:2"}]}`)
		begin := time.Now()
		taken := s.takeIn(t.Context(), inv, &tool.TakeIn{Resources: true}, true)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		for _, a := range taken {
			if !errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("%+v", a)
			}
		}
		if len(taken) != 2 {
			t.Errorf("%+v", taken)
		}
	})
}
