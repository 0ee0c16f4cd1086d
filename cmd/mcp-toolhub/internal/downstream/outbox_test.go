package downstream

import (
	"encoding/json"
	"testing"
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
