package upstream

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// TestServersThatAreNotSilent: failed calls are answers, and so are late ones; one answer ends a row.
func TestServersThatAreNotSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w := testServer(), newMemoryWire()
		conn := newStreamConn(newSession(s.entry, nil), w)
		defer conn.release()
		s.lifecycle.setState(tool.ServerReady, conn.sess, nil, time.Time{})
		go serveTools(w)
		call := func(name string) {
			x := &clientRequest{Request: tool.Request{Method: tool.MethodToolsCall, Name: name,
				Params: json.RawMessage(`{"name":"` + name + `"}`)}}
			_ = s.callOnce(t.Context(), x, &callLimits{idle: time.Minute, most: 10 * time.Minute}, 0)
		}
		for _, name := range []string{
			"hangs", "hangs", "says isError", "hangs", "hangs", "fails",
			"is late", "is late", "is late", "is late", "hangs", "hangs",
		} {
			call(name)
		}
		if len(conn.sess.silent) > 0 {
			t.Error("the server is to be asked whether it is there")
		}
		if call("hangs"); len(conn.sess.silent) == 0 {
			t.Error("after three calls in a row without an answer it is not asked whether it is there")
		}
	})
}

// serveTools is a server behind w. The name of each tool says how a call of it ends.
func serveTools(w *memoryWire) {
	late := map[int64]bool{}
	for {
		select {
		case text := <-w.out:
			var m struct {
				ID     int64
				Params struct {
					Name      string
					RequestID int64
				}
			}
			_ = json.Unmarshal(text, &m) // the hub sends JSON
			answer := func(id int64, with string) { w.in <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, id, with) }
			switch m.Params.Name {
			case "says isError":
				answer(m.ID, `"result":{"isError":true,"content":[]}`)
			case "fails":
				answer(m.ID, `"error":{"code":-32603,"message":"broken"}`)
			case "is late":
				late[m.ID] = true
			case "": // a cancellation
				if late[m.Params.RequestID] {
					answer(m.Params.RequestID, `"result":{"content":[]}`)
				}
			}
		case <-w.stop:
			return
		}
	}
}
