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
		finished bool
	}{
		"finishes":    {100 * time.Millisecond, response{result: json.RawMessage(`{}`)}, true},
		"isError":     {100 * time.Millisecond, response{result: json.RawMessage(`{"isError":true}`)}, false},
		"fails":       {100 * time.Millisecond, response{err: &tool.RPCError{}}, false},
		"dies":        {100 * time.Millisecond, response{err: transport.ErrClosed}, false},
		"is too late": {time.Second, response{result: json.RawMessage(`{}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, nil)
				time.AfterFunc(c.after, func() { call.finish(c.answer) })
				began := time.Now()
				finished := settle(call)
				if finished != c.finished || time.Since(began) > settleWithin {
					t.Errorf("finished %t after %s", finished, time.Since(began))
				}
				time.Sleep(time.Second) // until the last answer came
			})
		})
	}
}
