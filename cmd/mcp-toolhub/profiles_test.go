package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// profiled is a hub, what its journal says of its tools, and what reached its server.
type profiled struct {
	*testing.T
	w             *wire
	state, record string
}

// stated is what the records of a tool say, by member.
func (p *profiled) stated(name string) map[string]any {
	p.Helper()
	all := map[string]any{}
	_ = persist.Read(filepath.Join(p.state, "journal"), func(line json.RawMessage) bool { // a line may be written just now
		var r map[string]any
		mustDecode(p.T, string(line), &r)
		if r["execution_profile_id"] == name+"/execution" || r["scheduler_policy_id"] == name+"/scheduler" {
			for member, value := range r {
				all[member] = value
			}
		}
		return true
	})
	return all
}

// says holds what the records of a tool say against what was seen.
func (p *profiled) says(name, member string, seen any) {
	p.Helper()
	if got := p.stated(name)[member]; fmt.Sprint(got) != fmt.Sprint(seen) {
		p.Errorf("%s: %s is %v, and what happened was %v", name, member, got, seen)
	}
}

// status is the one of the last result of a tool.
func (p *profiled) status(name string) (s any) {
	c := &canceling{t: p.T, state: p.state}
	eventually(p.T, "the call has ended", func() bool { _, n, _ := c.records(name); return n > 0 })
	last, _, _ := c.records(name)
	return last[string(tool.ObjectResult)]["status"]
}

// received counts the messages with that text that have reached the server.
func (p *profiled) received(text string) int {
	all, _ := os.ReadFile(p.record)
	return strings.Count(string(all), text)
}

// TestProfilesSayWhatHappens holds what the execution profile and the scheduler policy of tools say against what the hub does.
func TestProfilesSayWhatHappens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &profiled{t, nil, filepath.Join(dir, "state"), filepath.Join(dir, "received")}
	var tools []json.RawMessage
	for _, name := range []string{"progress", "hang", "wait", "die", "sleep", "echo"} {
		tools = append(tools, upstreamtest.Tool(name))
	}
	slow := child(upstreamtest.Script{Tools: tools})
	slow["timeouts"] = map[string]any{"call": "300ms", "call_max": "300ms"}
	p.w = wireHubIn(t, dir, configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: tools, Record: p.record}), "slow": slow}, map[string]any{
		"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": ".", "allowed_write_roots": []string{"."}, "run_command": map[string]any{}}}},
		"policy": map[string]any{"mode": "accept_all", "tools": []map[string]any{{"match": "mcp.s.wait", "interrupt": "block", "concurrency": "exclusive"},
			{"match": "mcp.s.die", "idempotent": true}}},
	}), rev2025, "--state-dir", p.state)
	p.w.open().awaitTools("mcp.s.wait", "mcp.slow.sleep", "code.run_command")

	for name, arguments := range map[string]string{"mcp.s.progress": `{"n":2}`, "mcp.s.echo": `{}`, "code.write_file": `{"path":"a","content":"b"}`,
		"code.run_command": `{"argv":["sleep","5.3"]}`} {
		reports := strings.Count(strings.Join(p.w.send(p.w.call(name, arguments, `"progressToken":"p"`)), " "), `"notifications/progress"`)
		if name == "mcp.s.echo" { // this one reports nothing, and its reports would be passed on
			reports++
		}
		p.says(name, "supports_progress", reports > 0)
	}

	c := &canceling{t: t, w: p.w, state: p.state}
	hang := p.w.call("mcp.s.hang", `{"begin":true}`, `"progressToken":"p"`)
	c.cancel(hang, c.begin(hang))
	eventually(t, "the cancellation reaches the server", func() bool { return p.received("notifications/cancelled") == 1 })
	p.says("mcp.s.hang", "supports_cancel", p.status("mcp.s.hang") == "canceled")
	p.says("mcp.s.hang", "interrupt_behavior", "cancel")

	file := filepath.Join(dir, "go on")
	first, second := p.w.call("mcp.s.wait", `{"file":`+quoted(file)+`}`, ""), p.w.call("mcp.s.wait", `{"file":`+quoted(file)+`}`, `"progressToken":"q"`)
	_, end := p.w.begin(first)
	eventually(t, "the first call is at the server", func() bool { return p.received(`"name":"wait"`) == 1 })
	next, _ := p.w.begin(second)
	for !strings.Contains(next(), "queued") {
	}
	c.cancel(first, end)
	p.says("mcp.s.wait", "max_parallel", p.received(`"name":"wait"`))
	writeFile(t, file, "")
	for !strings.Contains(next(), second.id) {
	}
	p.says("mcp.s.wait", "supports_cancel", p.received("notifications/cancelled") > 1 || p.status("mcp.s.wait") != "succeeded")
	p.says("mcp.s.wait", "interrupt_behavior", "block")

	p.w.send(p.w.call("mcp.s.die", `{}`, ""))
	p.says("mcp.s.die", "supports_retries", p.received(`"name":"die"`) > 1)

	p.w.send(p.w.call("mcp.slow.sleep", `{"ms":60000}`, ""))
	if s := p.status("mcp.slow.sleep"); s != "timed_out" {
		t.Errorf("a call that takes too long is %v", s)
	}
	p.says("mcp.slow.sleep", "timeout_ms", 300)
}
