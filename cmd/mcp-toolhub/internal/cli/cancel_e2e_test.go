//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// cancelServers are the ways to a server: both generations over all transports.
func cancelServers(t *testing.T) map[string]map[string]any {
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("hang")}}
	modern := script
	modern.Modern = true
	over := func(o upstreamtest.Options) map[string]any {
		entry := map[string]any{"url": fakeHTTP(t, o)}
		if o.SSE {
			entry["type"] = "sse"
		}
		return entry
	}
	return map[string]map[string]any{
		"stdio2025": child(script), "stdio2026": child(modern),
		"http2025": over(upstreamtest.Options{Script: script}),
		"http2026": over(upstreamtest.Options{Script: modern}), "sse": over(upstreamtest.Options{Script: script, SSE: true}),
	}
}

// TestTimeoutsAreCancellations holds that a call whose time is over is recorded as one that the hub cancelled, over all transports to
// servers: each server is told, and the place there is free.
func TestTimeoutsAreCancellations(t *testing.T) {
	t.Parallel()
	servers, entries, tools := cancelServers(t), map[string]any{}, []string{}
	for name, entry := range servers {
		entries[name] = with(with(entry, "max_parallel", 1), "timeout", "100ms")
		tools = append(tools, "mcp."+name+".hang")
	}
	c := &canceling{t: t, state: filepath.Join(t.TempDir(), "state")}
	c.hub = startHub(t, "hub.json", configText(t, entries, nil), "--state-dir", c.state)
	c.w = wireHTTP(t, c.hub.url+"/mcp", rev2025)
	c.w.open().awaitTools(tools...)
	for name := range servers {
		if got := c.w.result("mcp."+name+".hang", `{}`, ""); !strings.Contains(got, `"error_class":"timeout"`) {
			t.Errorf("%s: %s", name, got)
		}
		c.endedAs("mcp."+name+".hang", canceled{"timed_out", "timeout", "", "unknown"})
		c.w.result("mcp."+name+".echo", `{}`, "") // which has to wait for a place
	}
}

// TestBlockedCallsRunOutOfTime holds that a call with interrupt: block that runs out of time after its client has cancelled it, or is gone, has
// the client's request in its record. What its server was told is the end of that time.
func TestBlockedCallsRunOutOfTime(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	config := configText(t, map[string]any{"s": with(child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("hang")}}),
		"timeout", limit.String())}, map[string]any{
		"policy": map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "mcp.s.hang", "interrupt": "block"}}}})
	overCancelingClients(t, config, []string{"mcp.s.hang"}, func(c *canceling) {
		began := time.Now()
		hang := c.w.call("mcp.s.hang", `{"begin":true}`, `"progressToken":"p"`)
		end := c.begin(hang)
		c.cancel(hang, end)
		want := canceled{"timed_out", "client", "the user pressed escape", "unknown"}
		if c.closes() {
			want.by, want.reason = "closed_stream", ""
		}
		c.endedAs("mcp.s.hang", want)
		last, _, _ := c.records("mcp.s.hang")
		facts, _ := last["tool_result"]["cancellation"].(map[string]any)
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(facts["requested_at"])); err != nil || !at.Before(began.Add(limit)) {
			c.t.Errorf("the request was at %v, of a call that began at %v", facts["requested_at"], began.UTC())
		}
		if !c.closes() {
			end()
		}
		if c.w.stdin != nil {
			c.begin(c.w.call("mcp.s.hang", `{"begin":true}`, `"progressToken":"q"`))
			c.w.dies()
			c.endedAs("mcp.s.hang", canceled{"timed_out", "connection_lost", "", "unknown"})
		}
	})
}

// closes reports whether the client cancels by closing the stream of its request.
func (c *canceling) closes() bool { return c.w.stdin == nil && c.w.modern() }

// begin sends a request, and returns when it has reported progress.
func (c *canceling) begin(r rawRequest) (end func()) {
	c.t.Helper()
	next, end := c.w.begin(r)
	for !strings.Contains(next(), `"notifications/progress"`) {
	}
	return end
}

// cancel cancels the request r that was begun, and end closes its stream.
func (c *canceling) cancel(r rawRequest, end func()) {
	c.t.Helper()
	c.cancelWith(r, end, "")
}

// cancelWith is cancel with further members of the notification.
func (c *canceling) cancelWith(r rawRequest, end func(), members string) {
	c.t.Helper()
	if c.closes() {
		end()
		return
	}
	note := rawRequest{method: "notifications/cancelled", params: `{"requestId":` + r.id + `,"reason":"the user pressed escape"` + members + `}`}
	if c.w.stdin != nil {
		c.w.write(note.text())
	} else {
		c.w.post(note)
	}
}

// records are the records of the last invocation of a tool, by kind; the last of each kind counts.
func (c *canceling) records(name string) (last map[string]map[string]any, results, requests int) {
	last, id := map[string]map[string]any{}, ""
	var all []map[string]any
	_ = persist.Read(filepath.Join(c.state, "journal"), func(line json.RawMessage) bool { // a line may be written just now
		var r map[string]any
		mustDecode(c.t, string(line), &r)
		if (r["object"] == "tool_invocation" || r["event_type"] == "tool.invocation.selected") && r["tool_id"] == name {
			id, _ = r["invocation_id"].(string)
		}
		all = append(all, r)
		return true
	})
	for _, r := range all {
		if r["invocation_id"] != id || id == "" {
			continue
		}
		kind, _ := r["object"].(string)
		last[kind] = r
		if kind == "tool_result" {
			results++
		}
		if r["event_type"] == "tool.invocation.cancel_requested" {
			requests++
		}
	}
	return last, results, requests
}

// canceled is what the records say of a call that was cancelled.
type canceled struct{ status, by, reason, outcome string }

// ended waits for the end of the last invocation of a tool, which its client has cancelled, and checks what is said of that.
func (c *canceling) ended(name, outcome string) {
	c.t.Helper()
	want := canceled{"canceled", "client", "the user pressed escape", outcome}
	if c.closes() {
		want.by, want.reason = "closed_stream", ""
	}
	c.endedAs(name, want)
}

// endedAs waits for the end of the last invocation of a tool, and checks what is said of its cancellation.
func (c *canceling) endedAs(name string, want canceled) {
	c.t.Helper()
	eventually(c.t, "the call has ended", func() bool { _, n, _ := c.records(name); return n > 0 })
	last, results, requests := c.records(name)
	if results != 1 || requests != 1 {
		c.t.Errorf("%d results and %d requests; the result is %v", results, requests, last["tool_result"])
	}
	for _, kind := range []string{"tool_result", "tool_invocation"} {
		facts, _ := last[kind]["cancellation"].(map[string]any)
		fact := func(key string) string { text, _ := facts[key].(string); return text }
		got := canceled{fmt.Sprint(last[kind]["status"]), fact("requested_by"), fact("reason"), fact("outcome")}
		late := want
		late.outcome = "unknown"
		if want.outcome == "ended_anyway" && got == late { // the machine was too busy for the server to answer in time
			c.t.Logf("%s of %s says %+v", kind, name, got)
		} else if got != want || facts["requested_at"] == nil {
			c.t.Errorf("%s of %s says %+v, want %+v", kind, name, got, want)
		}
	}
}

// send sends a request that nothing comes back of before its end. giveUp closes its stream.
func (c *canceling) send(r rawRequest) (giveUp func()) {
	c.t.Helper()
	if c.w.stdin != nil {
		c.w.write(r.text())
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	request := c.w.newRequest(r).WithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.DefaultClient.Do(request); err == nil {
			_ = resp.Body.Close()
		}
	}()
	c.t.Cleanup(func() { cancel(); <-done })
	return cancel
}
