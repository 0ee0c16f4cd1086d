package invoke

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestHowACanceledCallEnds: what is said of it follows from what its executor says.
func TestHowACanceledCallEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end     error
		outcome tool.CancelOutcome
	}{
		"it was not sent":     {&tool.Failure{Class: tool.ClassCanceled}, tool.OutcomeNotBegun},
		"nothing came back":   {&tool.Failure{Class: tool.ClassCanceled, OutcomeUnknown: true}, tool.OutcomeUnknown},
		"it finished":         {&tool.Failure{Class: tool.ClassCanceled, Ended: true}, tool.OutcomeEndedAnyway},
		"it had its answer":   {nil, tool.OutcomeEndedAnyway},
		"it had an error":     {&tool.RPCError{Code: tool.CodeInternalError, Message: "stopped"}, tool.OutcomeUnknown},
		"nobody knows at all": {errors.New("gone"), tool.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tool.ValidateReject, func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
					<-ctx.Done()
					return tool.Reply{Result: []byte(answer)}, c.end
				})
				by := tool.CanceledBy(tool.CanceledByClient, "", "canceled")
				o := b.call(canceled(t.Context(), time.Second, by), "mcp.s.t", `{"n":1}`)
				unknown := o.Error != nil && o.Error.OutcomeUnknown
				if o.Canceled != c.outcome || unknown != (c.outcome == tool.OutcomeUnknown) {
					t.Errorf("%q, outcome unknown %t", o.Canceled, unknown)
				}
			})
		})
	}
}
