package downstream

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestOutboxBytes holds that what waits for a client that does not read is bounded in bytes, too,
// and comes in its order.
func TestOutboxBytes(t *testing.T) {
	t.Parallel()
	o := newOutbox(nil)
	large := json.RawMessage(make([]byte, 1<<20))
	o.put(note{key: "k", method: "kept"})
	for range 3 * maxOutboxBytes / len(large) {
		o.put(note{method: "large", params: large})
	}
	o.put(note{method: "last"})
	var size int
	var methods []string
	o.drain(func(method string, params json.RawMessage) {
		size += len(params)
		methods = append(methods, method)
	}, nil)
	if size > maxOutboxBytes || size < 7<<20 || methods[0] != "kept" || methods[len(methods)-1] != "last" {
		t.Errorf("%d bytes wait, %q", size, methods)
	}
	if n := o.waiting.Len(); n != 0 {
		t.Errorf("%d notifications still wait", n)
	}
}

// TestPartsOfAResourceAreBounded holds that a server which tells of ever new parts of a resource does not fill the
// outbox of a client that does not read. What it tells of the resource itself waits once, and is not dropped.
func TestPartsOfAResourceAreBounded(t *testing.T) {
	t.Parallel()
	var subs resourceSubscriptions
	whole := &subscription{resource: resource{"a", "file:///dir"}, shown: "file:///dir", out: newOutbox(nil)}
	subs.add(whole)
	tell := func(uri string) {
		params, _ := json.Marshal(map[string]string{"uri": uri})
		subs.updated(tool.Notification{Server: "a", Method: tool.NoteUpdated, Params: params})
	}
	tell("file:///dir")
	for i := range 2 * maxOutbox {
		tell(fmt.Sprintf("file:///dir/%d", i))
		tell("file:///dir")
	}
	if n := whole.out.waiting.Len(); n != maxOutbox+1 {
		t.Errorf("%d notifications wait, want %d", n, maxOutbox+1)
	}
}
