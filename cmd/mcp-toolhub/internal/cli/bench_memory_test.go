//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// BenchmarkHeld is the memory that the hub holds for one thing more: heap and stacks of goroutines, and what is resident.
// Iterations and time say nothing here. It is measured in a hub of its own, before and after many of the thing.
func BenchmarkHeld(b *testing.B) {
	few := upstreamtest.Script{Tools: upstreamtest.DefaultTools()[:3]}
	stdio := func(*testing.B) map[string]any { return child(few) }
	overHTTP := func(b *testing.B) map[string]any {
		return map[string]any{"type": "http", "url": fakeHTTP(b, upstreamtest.Options{Script: few})}
	}
	long := func(b *testing.B) map[string]any {
		return map[string]any{"type": "http", "url": startBenchProcess(b, benchSpec{Role: "raw", Door: "http", Tools: 1000}).url}
	}
	b.Run("session", func(b *testing.B) {
		const sessions = 1000
		h := startHeld(b, map[string]any{"up": child(upstreamtest.Script{})})
		b.Run("idle", func(b *testing.B) { h.report(b, sessions, "session", func() { h.visit(b, sessions) }) })
		b.Run("standing-stream", func(b *testing.B) { h.report(b, sessions, "session", func() { h.visitAndListen(b, sessions) }) })
	})
	for name, entry := range map[string]func(*testing.B) map[string]any{"stdio": stdio, "http": overHTTP} {
		b.Run("upstream/"+name, func(b *testing.B) {
			const servers = 40
			all := map[string]any{"first": entry(b)}
			h := startHeld(b, all)
			h.report(b, servers, "upstream", func() {
				for i := range servers {
					all[benchServerID(i)] = entry(b)
				}
				h.apply(b, all)
			})
		})
	}
	b.Run("10-servers", func(b *testing.B) {
		h := startHeld(b, map[string]any{"up": child(upstreamtest.Script{})})
		all := make(map[string]any)
		for i := range 10 {
			all[benchServerID(i)] = benchEntry(b, benchSpec{Role: "raw", Door: "stdio", Tools: 50, First: 50 * i})
		}
		h.report(b, 1, "all", func() { h.apply(b, all); h.visit(b, 1) })
	})
	const pending = 200 // of one caller, who may have a quarter of 1,000 questions
	together := map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "*", "concurrency": "safe"}}}
	roomy := func() map[string]any { // so that no call waits for another
		entry := child(upstreamtest.Script{})
		entry["max_parallel"] = 2 * pending
		return entry
	}
	b.Run("waiting-call", func(b *testing.B) {
		h := startHeldWith(b, map[string]any{"up": roomy()}, together)
		var all []*httpClient
		b.Run("connection", func(sub *testing.B) { h.report(sub, pending, "connection", func() { all = h.connect(b, pending) }) })
		b.Run("small", func(sub *testing.B) { h.report(sub, pending, "call", func() { h.leaveWaiting(b, "hang", all, 2) }) })
	})
	b.Run("queued-call", func(b *testing.B) {
		const queued = 1000
		entry := child(upstreamtest.Script{})
		entry["max_parallel"] = 1
		h := startHeld(b, map[string]any{"up": entry})
		var all []*httpClient
		b.Run("connection", func(sub *testing.B) { h.report(sub, queued, "connection", func() { all = h.connect(b, queued) }) })
		b.Run("small", func(sub *testing.B) {
			h.report(sub, queued, "call", func() {
				h.leaveWaiting(b, "hang", all, 2)
				eventually(b, "all calls wait", func() bool { return h.server(b, "up").Queued == queued-1 })
			})
		})
	})
	b.Run("waiting-large-call", func(b *testing.B) {
		h := startHeldWith(b, map[string]any{"up": roomy()}, together)
		all := h.connect(b, pending)
		h.report(b, pending, "call", func() { h.leaveWaiting(b, "hang", all, 500) })
	})
	b.Run("pending-approval", func(b *testing.B) {
		h := startHeldWith(b, map[string]any{"up": child(upstreamtest.Script{})}, map[string]any{"mode": "default",
			"ask":   map[string]any{"channels": []string{"queue"}},
			"rules": []any{map[string]any{"match": "*", "then": "allow", "when": "!has(arguments.text)"}}})
		h.report(b, pending, "approval", func() {
			h.leaveWaiting(b, "hang", h.connect(b, pending), 500)
			h.awaitQuestions(b, pending)
		})
	})
	thousands := func(b *testing.B, policy map[string]any) {
		const thousands = 5
		all := map[string]any{"first": overHTTP(b)}
		h := startHeldWith(b, all, policy)
		h.report(b, thousands, "1000-tools", func() {
			for i := range thousands {
				all[benchServerID(i)] = long(b)
			}
			h.apply(b, all)
			h.visit(b, 1)
		})
	}
	b.Run("1000-tools", func(b *testing.B) { thousands(b, nil) })
	b.Run("1000-tools-rules", func(b *testing.B) { thousands(b, hundredRules()) })
}

// heldHub is a hub with a probe.
type heldHub struct {
	*runningHub
	probe    *probe
	settings map[string]any
}

func startHeld(b testing.TB, servers map[string]any) *heldHub { return startHeldWith(b, servers, nil) }

// startHeldWith is startHeld with permission, where policy is not nil.
func startHeldWith(b testing.TB, servers, policy map[string]any) *heldHub {
	b.Helper()
	p, variable := newProbe(b)
	settings := heldSettings()
	if policy != nil {
		settings["policy"] = policy
	}
	hub := startHubIn(b, []string{variable}, "hub.json", configText(b, servers, settings))
	p.pid = hub.cmd.Process.Pid
	h := &heldHub{hub, p, settings}
	h.visit(b, 10) // pools and caches fill
	return h
}

func heldSettings() map[string]any {
	return map[string]any{"deferred": neverDeferred()["deferred"], "hub": map[string]any{"http": map[string]any{"max_sessions": 10_000}}}
}

// report measures what the hub holds before and after more, which makes n of the unit.
func (h *heldHub) report(b *testing.B, n int, unit string, more func()) {
	b.Helper()
	before := h.probe.settled(b)
	more()
	after := h.probe.settled(b)
	each := func(before, after uint64) float64 { return (float64(after) - float64(before)) / float64(n) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each(before.Heap, after.Heap), "kB-heap/"+unit)
	b.ReportMetric(each(before.Stacks, after.Stacks), "kB-stack/"+unit)
	b.ReportMetric(each(before.Resident, after.Resident), "kB-rss/"+unit)
	b.ReportMetric(float64(after.Goroutines-before.Goroutines)/float64(n), "goroutines/"+unit)
	if dir := os.Getenv(benchProfileDir); dir != "" {
		name := filepath.Join(dir, filepath.Base(b.Name())+".heap.txt")
		if err := os.WriteFile(name, []byte(h.probe.get(b, "profile/heap")), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// visit lets n clients open a session, list, call and go away for as long as the session lives.
func (h *heldHub) visit(b testing.TB, n int) {
	b.Helper()
	for range n {
		c := h.open(b)
		c.close()
	}
}

// visitAndListen is visit by clients that keep their standing stream open.
func (h *heldHub) visitAndListen(b *testing.B, n int) {
	b.Helper()
	for range n {
		c := h.open(b)
		b.Cleanup(c.close)
		if _, err := fmt.Fprint(c.conn, "GET"+c.head[len("POST"):]+"\r\n"); err != nil {
			b.Fatal(err)
		}
		if line, err := c.in.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			b.Fatalf("a standing stream was answered with %q, %v", line, err)
		}
	}
}

// connect opens n connections of one session that have carried a call.
func (h *heldHub) connect(b testing.TB, n int) (all []*httpClient) {
	b.Helper()
	first := h.open(b)
	b.Cleanup(first.close)
	for range n {
		c, err := dialHTTP(first.ids, h.url+"/mcp")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.close)
		c.head = first.head
		if _, err := c.request("tools/call", benchCall("mcp.up.echo", `{}`)); err != nil {
			b.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// leaveWaiting makes a call of a tool on each connection, with that many times 21 bytes of arguments, and reads no answer.
func (h *heldHub) leaveWaiting(b testing.TB, tool string, all []*httpClient, times int) {
	b.Helper()
	for i, c := range all {
		arguments := fmt.Sprintf(`{"number":%d,"text":%q}`, i, strings.Repeat("all work and no play ", times))
		_, text := c.ids.message("tools/call", benchCall("mcp.up."+tool, arguments))
		if _, err := fmt.Fprintf(c.conn, "%sContent-Length: %d\r\n\r\n%s", c.head, len(text), text); err != nil {
			b.Fatal(err)
		}
	}
}

// awaitQuestions waits until a person is asked about n calls.
func (h *heldHub) awaitQuestions(b *testing.B, n int) {
	b.Helper()
	eventually(b, "all questions are open", func() bool {
		hubs, err := control.Find(b.Context(), filepath.Join(h.cmd.Dir, "state", "mcp-toolhub"))
		if err != nil || len(hubs) != 1 {
			return false
		}
		open, err := hubs[0].Approvals(b.Context())
		return err == nil && len(open) == n
	})
}

// open opens a session that has listed and called.
func (h *heldHub) open(b testing.TB) *httpClient {
	b.Helper()
	c, err := dialHTTP(&benchIDs{}, h.url+"/mcp")
	if err != nil {
		b.Fatal(err)
	}
	if err := handshake(c); err != nil {
		b.Fatal(err)
	}
	pages, err := listAll(c)
	if err != nil {
		b.Fatal(err)
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(pages[0], &list); err != nil || len(list.Tools) == 0 {
		b.Fatalf("%v: %.300s", err, pages[0])
	}
	if _, err := c.request("tools/call", benchCall(list.Tools[0].Name, `{}`)); err != nil {
		b.Fatal(err)
	}
	return c
}

// apply makes these the hub's servers and waits until all are ready.
func (h *heldHub) apply(b *testing.B, servers map[string]any) {
	b.Helper()
	file := filepath.Join(h.cmd.Dir, "hub.json")
	if err := os.WriteFile(file+".new", []byte(configText(b, servers, h.settings)), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		b.Fatal(err)
	}
	eventually(b, "all servers are ready", func() bool {
		health, _ := h.health(b)
		return len(health.Servers) == len(servers) && health.Status == "ready"
	})
}
