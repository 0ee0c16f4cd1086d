package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTimeoutsAreCancellations holds that a call whose time is over is recorded as one that the hub cancelled, over all transports to
// servers: each server is told, and the place there is free.
func TestTimeoutsAreCancellations(t *testing.T) {
	t.Parallel()
	servers, entries, tools := cancelServers(t), map[string]any{}, []string{}
	for name, entry := range servers {
		entries[name] = with(with(entry, "max_parallel", 1), "timeouts", map[string]any{
			"tools": []any{map[string]any{"match": "hang", "call": "100ms"}}})
		tools = append(tools, "mcp."+name+".hang")
	}
	c := &canceling{t: t, state: filepath.Join(t.TempDir(), "state")}
	c.hub = startHub(t, "hub.json", configText(t, entries, nil), "--state-dir", c.state)
	c.w = wireHTTP(t, c.hub.url+"/mcp", rev2025)
	c.w.open().awaitTools(tools...)
	for name := range servers {
		support := "notification"
		if name == "http2026" {
			support = "closed_stream"
		}
		if got := c.w.result("mcp."+name+".hang", `{}`, ""); !strings.Contains(got, `"error_class":"timeout"`) {
			t.Errorf("%s: %s", name, got)
		}
		c.endedAs("mcp."+name+".hang", canceled{"timed_out", support, "timeout", "", "sent", "unknown"})
		c.w.result("mcp."+name+".echo", `{}`, "") // which has to wait for a place
	}
}

// canceler is somebody who ends a call in some way while it runs or waits.
type canceler struct {
	name    string
	clients string // of which clients: "version door", or a part of it
	tool    string
	args    string
	begun   string // is in the message by which the test knows that the call has come as far; "" is progress
	cancel  func(c *canceling, r rawRequest, end func())
	want    canceled
}

// TestEveryCanceler ends calls in all ways but the client's own cancellation of what runs, which is TestCancelWhileItRuns: each call has one
// terminal record, which says who ended it.
func TestEveryCanceler(t *testing.T) {
	t.Parallel()
	hangUp := func(c *canceling, _ rawRequest, _ func()) { c.w.hangUp() }
	stop := func(c *canceling, _ rawRequest, _ func()) {
		if err := c.hub.stop(); err != nil {
			c.t.Error(err)
		}
	}
	withdraw := func(c *canceling, r rawRequest, end func()) { c.cancel(r, end) }
	waits := `{"key":"k","results":[{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create",` +
		`"params":{"mode":"form","message":"which?","requestedSchema":{"type":"object","properties":{}}}}}}]}`
	const unknown = "unknown"
	for _, row := range []canceler{
		{"the client is gone", "stdio", "old.hang", `{"begin":true}`, "", hangUp, canceled{"canceled", "notification", "connection_lost", "", "sent", unknown}},
		{"the hub stops", "http", "old.hang", `{"begin":true}`, "", stop, canceled{"canceled", "notification", "hub_stopping", "", "sent", unknown}},
		{"the session ends", rev2025 + " http", "old.hang", `{"begin":true}`, "", func(c *canceling, _ rawRequest, _ func()) { endSession(c.t, c.w) },
			canceled{"canceled", "notification", "session_ended", "", "sent", unknown}},
		{"a sibling fails", "http", "tool_batch", `{"sibling_failure_policy":"cancel_siblings","ordering_policy":"allow_unordered","calls":[` +
			`{"id":"h","name":"mcp.old.hang","arguments":{"begin":true}},{"id":"w","name":"mcp.old.wait","arguments":{"file":"$FILE"}},` +
			`{"id":"f","name":"mcp.old.fail","arguments":{"error":{"code":-32000,"message":"no"}},"depends_on":["w"]}]}`, "h: ",
			func(c *canceling, _ rawRequest, _ func()) { c.release() }, canceled{"canceled", "notification", "sibling", "", "sent", unknown}},
		{"the client cancels while its person is asked", rev2025, "new.rounds", waits, `"elicitation/create"`, withdraw,
			canceled{"canceled", "notification", "client", "the user pressed escape", "not_needed", unknown}},
		{"the client is gone while the call is suspended", rev2026 + " stdio", "new.rounds", waits, `"input_required"`, hangUp,
			canceled{"canceled", "notification", "connection_lost", "", "not_needed", unknown}},
		{"the hub stops while the call is suspended", rev2026 + " http", "new.rounds", waits, `"input_required"`, stop,
			canceled{"canceled", "notification", "hub_stopping", "", "not_needed", unknown}},
		{"the client cancels during a hook", "", "old.hooked", `{}`, "$FILE", withdraw,
			canceled{"canceled", "notification", "client", "the user pressed escape", "not_needed", "stopped_before_effect"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{rev2025, rev2026} {
				for _, door := range []string{"stdio", "http"} {
					if strings.Contains(version+" "+door, row.clients) {
						t.Run(version+" "+door, func(t *testing.T) { t.Parallel(); row.test(t, version, door) })
					}
				}
			}
		})
	}
}

// release lets the tool wait of a server go on.
func (c *canceling) release() {
	if err := os.WriteFile(c.file(), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *canceling) file() string { return filepath.Join(filepath.Dir(c.state), "file") }

func (row canceler) test(t *testing.T, version, door string) {
	if row.begun == "$FILE" && runtime.GOOS == "windows" {
		t.Skip("the hook is a shell script")
	}
	dir := t.TempDir()
	c := &canceling{t: t, state: filepath.Join(dir, "state")}
	mark := fmt.Sprintf("mark-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(dir)))
	script := upstreamtest.Script{Tools: []json.RawMessage{readsOnly("hang"), readsOnly("wait"), readsOnly("fail"), upstreamtest.Tool("rounds"),
		upstreamtest.Tool("hooked")}}
	modern := script
	modern.Modern = true
	config := configText(t, map[string]any{"old": with(child(script, mark), "trust", true), "new": child(modern, mark)}, map[string]any{
		"hub": map[string]any{"http": map[string]any{"drain_timeout": "100ms"}},
		"hooks": []any{map[string]any{"name": "slow", "event": "pre_tool_use", "match": "mcp.old.hooked", "timeout": "60s",
			"command": []string{"sh", "-c", "touch '" + c.file() + "'; exec sleep 60 # " + mark}}}})
	if door == "stdio" {
		c.w = wireHubIn(t, dir, config, version, "--state-dir", c.state)
	} else {
		c.hub = startHub(t, "hub.json", config, "--state-dir", c.state)
		c.w = wireHTTP(t, c.hub.url+"/mcp", version)
	}
	c.w.able().open().awaitTools("mcp.old.hang", "mcp.new.rounds")
	name, id := "mcp."+row.tool, "mcp."+row.tool
	if row.tool == "tool_batch" {
		name, id = row.tool, "mcp.old.hang"
	}
	r := c.w.call(name, strings.ReplaceAll(row.args, "$FILE", c.file()), `"progressToken":"p"`)
	var end func()
	switch row.begun {
	case "$FILE":
		end = c.send(r)
		eventually(t, "the hook runs", func() bool { _, err := os.Stat(c.file()); return err == nil })
	default:
		next, finish := c.w.begin(r)
		end = finish
		for m := next(); row.begun == "" && !strings.Contains(m, `"notifications/progress"`) || !strings.Contains(m, row.begun); m = next() {
		}
	}
	row.cancel(c, r, end)
	if want := row.want; c.closes() && want.by == "client" {
		want.by, want.reason = "closed_stream", ""
		c.endedAs(id, want)
	} else {
		c.endedAs(id, want)
	}
	if c.hub != nil && c.hub.cmd.ProcessState == nil {
		eventually(t, "nothing is left of the call", func() bool { st := c.hub.server(t, "old"); return st.InFlight+st.Queued == 0 })
	}
	if row.begun == "$FILE" {
		eventually(t, "the hook has ended", func() bool { return len(marked("sleep 60 # "+mark)) == 0 })
	}
	if !c.closes() {
		end()
	}
}
