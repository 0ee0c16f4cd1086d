package upstream

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// TestSettle holds what is said of a cancellation by what its server does after it, and when.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after    time.Duration
		answer   response
		delivery tool.CancelDelivery
		outcome  tool.CancelOutcome
	}{
		"finishes": {100 * time.Millisecond, response{result: json.RawMessage(`{}`)}, tool.DeliveryAcknowledged, tool.OutcomeFinishedAnyway},
		"isError": {100 * time.Millisecond, response{result: json.RawMessage(`{"isError":true}`)}, tool.DeliveryAcknowledged,
			tool.OutcomeStoppedPartly},
		"fails":       {100 * time.Millisecond, response{err: &tool.RPCError{}}, tool.DeliveryAcknowledged, tool.OutcomeStoppedPartly},
		"dies":        {100 * time.Millisecond, response{err: transport.ErrClosed}, tool.DeliverySent, tool.OutcomeUnknown},
		"is too late": {time.Second, response{result: json.RawMessage(`{}`)}, tool.DeliverySent, tool.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, sent, over := newLaneCall("toolhub-1", methodCallTool, nil), make(chan error, 1), false
				sent <- nil
				time.AfterFunc(c.after, func() { call.finish(c.answer) })
				began := time.Now()
				facts := withdrawal{support: tool.SupportNotification, needed: true, sent: sent, over: func() { over = true }}.settle(call)
				if facts.Delivery != c.delivery || facts.Outcome != c.outcome || !over || time.Since(began) > settleWithin {
					t.Errorf("%+v after %s, over %t", facts, time.Since(began), over)
				}
				time.Sleep(time.Second) // until the last answer came
			})
		})
	}
}
