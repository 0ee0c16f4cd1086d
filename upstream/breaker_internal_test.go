package upstream

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestRests: a silent server is tried by one call at a time, after pauses that double up to a bound, until it says anything.
func TestRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, sess, began := testServer().lifecycle, testSession(), time.Now()
		silence := func() { sess.heard(response{err: &tool.Failure{Class: tool.ClassTimeout}, silent: true}) }
		for range maxUnanswered + 5 {
			silence()
		}
		if len(sess.turned) != 1 {
			t.Fatal("nobody is told that the server is silent")
		}
		<-sess.turned
		l.setState(tool.ServerBackoff, sess, nil, time.Now().Add(time.Hour))
		l.restFor(time.Second, 5*time.Second)
		ask := func() error { _, err := l.acquire(t.Context(), nil, time.Minute); return err }
		for _, at := range []time.Duration{1, 3, 7, 12, 17} {
			time.Sleep(time.Until(began.Add(at*time.Second - 1)))
			if err := ask(); !errors.Is(err, errNotReady) {
				t.Errorf("before second %d: %v", at, err)
			}
			time.Sleep(time.Nanosecond)
			if err := ask(); err != nil {
				t.Errorf("at second %d: %v", at, err)
			}
			if err := ask(); !errors.Is(err, errNotReady) {
				t.Errorf("at second %d a second call: %v", at, err)
			}
			silence()
		}
		sess.heard(response{err: &tool.Failure{Class: tool.ClassCanceled}})
		if ask() == nil || len(sess.turned) != 0 {
			t.Error("a canceled call counts as an answer")
		}
		sess.heard(response{err: &tool.RPCError{}})
		if first, second := ask(), ask(); first != nil || second != nil || len(sess.turned) != 1 {
			t.Error("the server has spoken, and calls are refused")
		}
		if took := time.Since(began); took != 17*time.Second {
			t.Errorf("a refused call waited: %s", took)
		}
	})
}

// TestWhatCountsAsSilence: what the server has answered does not, whatever it was.
func TestWhatCountsAsSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a    response
		want int32 // of 1 before
	}{
		"an answer":             {response{}, 0},
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
		sess.heard(endedFailure(newLaneCall(1, tool.MethodToolsCall, nil), nil))
	}
	if sess.isSilent() {
		t.Error("the death of a child counts once for each call")
	}
}
