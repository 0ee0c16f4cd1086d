package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestWhatWaitsIsSmall holds that a notification which waits for a client holds no more memory than it says: a server may
// send it in a message of many megabytes.
func TestWhatWaitsIsSmall(t *testing.T) {
	t.Parallel()
	const params = `{"level":"info","progressToken":1,"data":1}`
	message := func(method string) (raw []byte, e jsonrpc.Message) {
		raw = fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s,"more":"%s"}`, method, params, strings.Repeat("x", 1<<10))
		e = jsonrpc.Read(raw)
		if e.Kind != jsonrpc.Notification {
			t.Fatal(e.Kind)
		}
		return raw, e
	}
	s := testSession()
	raw, e := message(tool.NoteMessage)
	n, ok := s.check(tool.NoteMessage, e)
	clear(raw) // what is kept must not be a part of it
	if !ok || string(n.Params) != params {
		t.Errorf("a log message is kept as %q", n.Params)
	}
	c := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, nil)
	raw, e = message(tool.NoteProgress)
	var got tool.Progress
	c.Progress = func(p tool.Progress) { got = p }
	c.report(e.Params, s.redact)
	clear(raw)
	if string(got.Params) != params {
		t.Errorf("progress is passed on as %q", got.Params)
	}
}
