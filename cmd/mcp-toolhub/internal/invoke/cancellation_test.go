package invoke

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestACanceledReadHasNoEffect: what a server that says no more did of a canceled call is unknown, unless its tool only reads.
func TestACanceledReadHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, tool.ValidateReject, func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
				<-ctx.Done()
				return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled", OutcomeUnknown: true,
					Cancel: &tool.Cancellation{Delivery: tool.DeliverySent, Outcome: tool.OutcomeUnknown}}
			})
			b.says(t, facts.Override{ReadOnly: &reads})
			o := b.call(canceled(t.Context(), time.Second, nil), "mcp.s.t", `{"n":1}`)
			if !o.Canceled || o.Spared != reads || o.Error == nil || o.Error.OutcomeUnknown == reads {
				t.Errorf("reads %t: canceled %t, spared %t, %+v", reads, o.Canceled, o.Spared, o.Error)
			}
		})
	}
}
