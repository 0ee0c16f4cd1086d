//go:build e2e && !race

package cli

import (
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestMemoryOfQueuedCallsOverHTTP: each call that waits in the queue of its server takes less than 32 kB of the hub's heap and stacks,
// apart from its connection, however long it waits: its stream is open. So 1,000 take less than 32 MB. The stack of such a call has
// 16 kB.
func TestMemoryOfQueuedCallsOverHTTP(t *testing.T) {
	t.Parallel() // the hub is a process of its own
	const queued = 250
	entry := child(upstreamtest.Script{})
	entry["max_parallel"] = 1
	h := startHeld(t, map[string]any{"up": entry})
	all := h.connect(t, queued+1)
	h.leaveWaiting(t, "hang", all[:1], 2)
	eventually(t, "the first call runs", func() bool { return h.server(t, "up").InFlight == 1 })
	before := h.probe.settled(t)
	for i, c := range all[1:] {
		_, text := c.ids.message("tools/call", `{"name":"mcp.up.hang","arguments":{"number":1},"_meta":{"progressToken":"p"}}`)
		if _, err := fmt.Fprintf(c.conn, "%sContent-Length: %d\r\n\r\n%s", c.head, len(text), text); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, c := range all[1:] { // by its report that it waits, it has opened its stream
		if line, err := c.in.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("a call that waits was answered with %q, %v", line, err)
		}
	}
	after := h.probe.settled(t)
	heap, stacks := (after.Heap-before.Heap)/queued, (after.Stacks-before.Stacks)/queued
	t.Logf("%d bytes of heap, %d of stacks", heap, stacks)
	if waiting := h.server(t, "up").Queued; waiting != queued || heap+stacks > 32_000 {
		t.Errorf("%d calls that wait take %d bytes each", waiting, heap+stacks)
	}
	last, err := dialHTTP(&benchIDs{}, h.url+"/mcp") // it ends the session, and so the calls: a stop of the hub would wait for them
	if err != nil {
		t.Fatal(err)
	}
	defer last.close()
	if _, err := fmt.Fprintf(last.conn, "DELETE%s\r\n", all[0].head[len("POST"):]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no call waits", func() bool { return h.server(t, "up").Queued == 0 })
}
