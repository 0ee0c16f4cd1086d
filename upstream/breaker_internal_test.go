package upstream

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestWhatCountsAsSilence: what the server has answered does not, whatever it was.
func TestWhatCountsAsSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a    response
		want int32 // of 1 before
	}{
		"a JSON-RPC error":      {response{err: &tool.RPCError{}}, 0},
		"a limit of the server": {response{err: &tool.Failure{Class: tool.ClassRateLimited}, status: 429}, 0},
		"a gateway's error":     {response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable}, status: 502}, 2},
		"a lost connection":     {response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable}}, 2},
		"a silent timeout":      {response{err: &tool.Failure{Class: tool.ClassTimeout}, silent: true}, 2},
		"call_max":              {response{err: &tool.Failure{Class: tool.ClassTimeout}}, 1},
		"a canceled call":       {response{err: &tool.Failure{Class: tool.ClassCanceled}}, 1},
	} {
		sess := testSession()
		sess.unanswered.Store(1)
		if sess.heard(c.a); sess.unanswered.Load() != c.want {
			t.Errorf("%s: %d unanswered, want %d", name, sess.unanswered.Load(), c.want)
		}
	}
	sess := testSession() // of a child that has died, whatever number of calls was open
	sess.cut = make(chan struct{})
	for range maxUnanswered {
		sess.heard(endedFailure(newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, nil), nil))
	}
	if len(sess.silent) > 0 {
		t.Error("the death of a child counts once for each call")
	}
}
