//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
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

// journaled reports whether a line of the journal has text.
func (p *profiled) journaled(text string) (has bool) {
	if err := persist.NewLines(filepath.Join(p.state, "journal"), "", make(map[string]int64), func(line json.RawMessage) bool {
		has = has || strings.Contains(string(line), text)
		return true
	}); err != nil {
		p.Error(err)
	}
	return has
}

// status is the one of the last result of a tool.
func (p *profiled) status(name string) (s any) {
	c := &canceling{t: p.T, state: p.state}
	eventually(p.T, "the call has ended", func() bool { _, n, _ := c.records(name); return n > 0 })
	last, _, _ := c.records(name)
	return last[string(tool.ObjectResult)]["status"]
}

// canceled waits until so many calls of a tool have ended, and reports whether all of them were canceled.
func (p *profiled) canceled(name string, calls int) (all bool) {
	eventually(p.T, "the calls have ended", func() bool {
		ended := 0
		all = true
		_ = persist.Read(filepath.Join(p.state, "journal"), func(line json.RawMessage) bool { // a line may be written just now
			var inv tool.Invocation
			if mustDecode(p.T, string(line), &inv); inv.Object == tool.ObjectInvocation && string(inv.ToolID) == name && inv.EndedAt != nil {
				ended++
				all = all && inv.Status == tool.StatusCanceled
			}
			return true
		})
		return ended == calls
	})
	return all
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
	slow["timeout"], slow["timeout_max"] = "300ms", "300ms"
	p.w = wireHubIn(t, dir, configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: tools, Record: p.record}), "slow": slow}, map[string]any{
		"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": ".", "allowed_write_roots": []string{"."}}}},
		"policy": map[string]any{"mode": "accept_all", "tools": []map[string]any{{"match": "mcp.s.wait", "interrupt": "block", "concurrency": "exclusive"},
			{"match": "mcp.s.die", "idempotent": true}}},
	}), rev2025, "--state-dir", p.state)
	p.w.open().awaitTools("mcp.s.wait", "mcp.slow.sleep")

	for name, arguments := range map[string]string{"mcp.s.progress": `{"n":2}`, "mcp.s.echo": `{}`, "code.write_file": `{"path":"a","content":"b"}`} {
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
	together := p.received(`"name":"wait"`)
	writeFile(t, file, "")
	for !strings.Contains(next(), second.id) {
	}
	p.says("mcp.s.wait", "concurrency", map[bool]string{true: "exclusive"}[together == 1])
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

// TestProfilesOfAllKindsSayWhatHappens is the same for tools of servers over all transports, declared ones, commands and the hub's own.
func TestProfilesOfAllKindsSayWhatHappens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var tools []json.RawMessage
	for _, name := range []string{"hang", "sleep", "die", "wait"} {
		tools = append(tools, upstreamtest.Tool(name))
	}
	servers, heard := map[string]any{"batched": child(upstreamtest.Script{Tools: tools})}, map[string]func() string{}
	serve := func(id string) (entry map[string]any, heard func() string) {
		script := upstreamtest.Script{Tools: tools, Modern: strings.HasSuffix(id, "2026")}
		if strings.Contains(id, "stdio") {
			script.Record = filepath.Join(dir, id)
			return child(script), func() string { all, _ := os.ReadFile(script.Record); return string(all) }
		}
		isSSE := strings.HasSuffix(id, "2024")
		url, far := fakeHandler(t, upstreamtest.Options{Script: script, SSE: isSSE})
		return map[string]any{"url": url, "type": map[bool]string{true: "sse", false: "http"}[isSSE]}, func() string {
			var all strings.Builder
			for _, r := range far.Requests() {
				all.Write(r.Body)
			}
			return all.String()
		}
	}
	for _, id := range []string{"stdio2025", "stdio2026", "http2025", "http2026", "sse2024"} {
		servers[id], heard[id] = serve(id)
		slow, _ := serve("slow" + id)
		servers["slow"+id] = with(with(slow, "timeout", "300ms"), "timeout_max", "300ms")
	}
	declared := filepath.Join(dir, "mcp-toolhub", "tools")
	if err := os.MkdirAll(declared, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, timeout := range map[string]int{"rest": 60_000, "nap": 400} {
		writeFile(t, filepath.Join(declared, name+".json"), fmt.Sprintf(`{"name":%q,"description":"Sleeps.","input_schema":{"type":"object","properties":{}},`+
			`"permission":"readonly","command_type":"exec","command":"sleep","args":["60"],"timeout_ms":%d}`, name, timeout))
	}
	writeFile(t, filepath.Join(declared, "count.json"), `{"name":"count","description":"Counts.","input_schema":{"type":"object","properties":{}},`+
		`"permission":"readonly","command_type":"exec","command":"seq","args":["3000"],"stdout_limit_bytes":1000}`)
	writeFile(t, filepath.Join(declared, "wait.json"), `{"name":"wait","description":"Waits for a file.","input_schema":{"type":"object","properties":`+
		`{"file":{"type":"string"}},"required":["file"]},"permission":"write","command_type":"exec","command":"sh","args":["-c","touch \"$0.begun\"; `+
		`while [ ! -e \"$0\" ]; do sleep .02; done","{{file}}"]}`)
	hub := startHubIn(t, []string{"XDG_CONFIG_HOME=" + dir}, "hub.json", configText(t, servers, map[string]any{
		"hub": map[string]any{"toolsets": map[string]any{
			"code": map[string]any{"root": dir, "allowed_write_roots": []string{dir}, "run_command": map[string]any{"timeout": "8s"}}}},
		"policy": map[string]any{"mode": "accept_all", "tools": []map[string]any{{"match": "mcp.*20*.hang", "concurrency": "exclusive"},
			{"match": "mcp.*.die", "idempotent": true}, {"match": "*.wait", "interrupt": "block"}}},
	}))
	for id := range servers {
		eventually(t, "the servers are ready", func() bool { return hub.server(t, id).State == "ready" })
	}
	part := func(name string, test func(p *profiled, c *canceling)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := filepath.Join(hub.cmd.Dir, "state", "mcp-toolhub")
			w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
			test(&profiled{t, w, state, ""}, &canceling{t: t, w: w, state: state, hub: hub})
		})
	}
	const token = `"progressToken":"p"`
	for id, messages := range heard {
		part(id, func(p *profiled, c *canceling) { p.ofServer(c, "mcp."+id+".", messages) })
	}
	part("commands", func(p *profiled, c *canceling) {
		const run, rest = "code.run_command", "declarative.rest"
		begun := filepath.Join(dir, "begun")
		runs := p.w.call(run, `{"argv":["sh","-c","seq 1 30000; touch begun; exec sleep 60"]}`, "")
		end := c.send(runs)
		eventually(p.T, "the command runs", func() bool { _, err := os.Stat(begun); return err == nil })
		c.cancel(runs, end)
		p.says(run, "supports_cancel", p.status(run) == "canceled")
		p.says(run, "interrupt_behavior", "cancel")
		made := false
		for _, refs := range statedIn(p.T, p.state).results {
			made = made || len(refs) > 0
		}
		p.says(run, "supports_artifacts", made)

		late, rests, said := p.w.call(run, `{"argv":["sleep","60"]}`, token), p.w.call(rest, `{}`, token), make(chan string, 1)
		go func() { said <- strings.Join(p.w.send(late), " ") }()
		c.cancel(rests, c.begin(rests)) // a command reports that it runs every few seconds
		p.says(rest, "supports_cancel", p.status(rest) == "canceled")
		p.says(rest, "interrupt_behavior", "cancel")
		p.says(rest, "supports_progress", true)
		all := await(p.T, said)
		p.says(run, "supports_progress", strings.Contains(all, `"notifications/progress"`))
		p.says(run, "timeout_ms", 8000*strings.Count(all, `"status":"timed_out"`))

		last := p.w.result("declarative.nap", `{}`, "")
		p.says("declarative.count", "supports_artifacts", strings.Contains(p.w.result("declarative.count", `{}`, ""), "toolhub://results/"))
		p.says("declarative.nap", "timeout_ms", 400*strings.Count(last, `"status":"timed_out"`))

		file := filepath.Join(dir, "declared")
		p.blocks(c, "declarative.wait", file, "succeeded", func() bool { _, err := os.Stat(file + ".begun"); return err == nil })
	})
	part("code", func(p *profiled, c *canceling) {
		many := filepath.Join(dir, "many")
		if err := os.Mkdir(many, 0o700); err != nil {
			p.Fatal(err)
		}
		for i := range 500 {
			writeFile(p.T, filepath.Join(many, fmt.Sprint(i)), "")
		}
		all := strings.Join(p.w.send(p.w.call("code.search", `{"query":"x","path":"many"}`, token)), " ")
		p.says("code.search", "supports_progress", strings.Contains(all, `"notifications/progress"`))
		all = strings.Join(p.w.send(p.w.call("code.list_dir", `{"path":"many"}`, token)), " ")
		p.says("code.list_dir", "supports_progress", strings.Contains(all, `"notifications/progress"`))
	})
	part("own", func(p *profiled, c *canceling) {
		batch := p.w.call("tool_batch", `{"calls":[{"id":"a","name":"mcp.batched.hang","arguments":{"begin":true}}]}`, token)
		c.cancel(batch, c.begin(batch))
		p.says("tool_batch", "supports_cancel", p.status("tool_batch") == "canceled")
		p.says("tool_batch", "supports_progress", true)
		p.w.send(p.w.call("tool_batch", `{"calls":[{"id":"a","name":"mcp.batched.none"},{"id":"b","name":"mcp.batched.none"}]}`, ""))
		p.says("tool_batch", "supports_partial_results", p.journaled(`["partial_result",`))
		forwarded := p.w.call("tool_call", `{"name":"mcp.batched.hang","arguments":{"begin":true}}`, token)
		c.cancel(forwarded, c.begin(forwarded))
		p.w.send(p.w.call("tool_call", `{}`, "")) // this one is no call of another tool
		p.says("tool_call", "supports_cancel", p.canceled("mcp.batched.hang", 2))
		p.says("tool_call", "interrupt_behavior", "cancel")
		p.says("tool_call", "supports_progress", true)
		for name, arguments := range map[string]string{"tool_search": `{"query":"sleep"}`, "tool_call": "", "result_read": `{"id":"none"}`} {
			if arguments != "" {
				reports := strings.Count(strings.Join(p.w.send(p.w.call(name, arguments, token)), " "), `"notifications/progress"`)
				p.says(name, "supports_progress", reports > 0)
			}
			p.says(name, "timeout_ms", nil)
		}
	})
}

// blocks cancels a call of a tool that waits for a file, once it runs. The call goes on to its own end, as the tool's records say.
func (p *profiled) blocks(c *canceling, name, file, end string, runs func() bool) {
	call := p.w.call(name, `{"file":`+quoted(file)+`}`, "")
	giveUp := c.send(call)
	eventually(p.T, "the call runs", runs)
	c.cancel(call, giveUp)
	writeFile(p.T, file, "")
	p.says(name, "supports_cancel", p.status(name) != end)
	last, _, _ := c.records(name)
	facts, _ := last[string(tool.ObjectResult)]["cancellation"].(map[string]any)
	if facts["outcome"] != string(tool.OutcomeEndedAnyway) {
		p.Errorf("%s: the cancellation is recorded as %v", name, facts)
	}
	p.says(name, "interrupt_behavior", "block")
}

// ofServer holds what is said of the tools of a server, whose names begin with prefix, against what the hub does, and what the server hears.
func (p *profiled) ofServer(c *canceling, prefix string, heard func() string) {
	hang, came := prefix+"hang", func(name string) int { return strings.Count(heard(), `"name":"`+name+`"`) }
	first, second := p.w.call(hang, `{"begin":true}`, `"progressToken":"p"`), p.w.call(hang, `{"begin":true}`, `"progressToken":"q"`)
	endFirst := c.begin(first)
	next, endSecond := p.w.begin(second)
	for !strings.Contains(next(), "queued") {
	}
	together := came("hang")
	c.cancel(first, endFirst)
	for came("hang") < 2 {
		next() // the server says that the second call runs
	}
	c.cancel(second, endSecond)
	p.says(hang, "supports_cancel", p.canceled(hang, 2))
	p.says(hang, "interrupt_behavior", "cancel")
	p.says(hang, "supports_progress", true)
	p.says(hang, "concurrency", map[bool]string{true: "exclusive"}[together == 1])

	sleep := "mcp.slow" + strings.TrimPrefix(prefix, "mcp.") + "sleep"
	p.w.send(p.w.call(sleep, `{"ms":60000}`, ""))
	if s := p.status(sleep); s != "timed_out" {
		p.Errorf("a call that takes too long is %v", s)
	}
	p.says(sleep, "timeout_ms", 300)
	told := strings.Count(heard(), "notifications/cancelled")
	p.blocks(c, prefix+"wait", filepath.Join(p.TempDir(), "go on"), "succeeded", func() bool { return came("wait") == 1 })
	if now := strings.Count(heard(), "notifications/cancelled"); now != told {
		p.Errorf("a call that is let finish: the server was told %d times", now-told)
	}

	p.w.send(p.w.call(prefix+"die", `{}`, ""))
	p.says(prefix+"die", "supports_retries", came("die") > 1)
}

// TestOwnToolsAreCancelled holds what is said of the hub's own tools that take a moment: each is cancelled when it has just begun to run.
func TestOwnToolsAreCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &app{std: streams{err: &syncBuffer{}, getenv: func(string) (string, bool) { return "", false }},
		configPath: filepath.Join(dir, "hub.yaml"), stateDir: filepath.Join(dir, "state")}
	writeFile(t, a.configPath, "mcpServers: {}")
	s, err := a.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logger, err := newLogger(a, "error", "text")
	if err != nil {
		t.Fatal(err)
	}
	var begun func() // of the call
	h, err := hub.New(s, logger, func(h *hub.Hub) []*tool.HubTool {
		own := hub.Tools(h)
		for _, t := range own {
			run := t.Run
			t.Run = func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
				begun()
				return run(ctx, e)
			}
		}
		return own
	}, nil, &a.known, configFile{})
	if err != nil {
		t.Fatal(err)
	}
	const stored tool.ResultID = "res_1"
	if _, err := h.Results.Put(payload.Entry{ID: stored}, []byte(`{"content":[{"type":"text","text":"a"}]}`)); err != nil {
		t.Fatal(err)
	}
	own, calls := hub.OwnTools{Hub: h, Profile: namespace.DefaultProfile}, map[string]string{"tool_search": `{"query":"select:a"}`,
		"result_read": `{"id":"res_1"}`, "tool_batch": `{"calls":[{"id":"a","name":"tool_search","arguments":{"query":"a"}}]}`}
	for name, arguments := range calls {
		ctx, cancel := context.WithCancel(t.Context())
		begun = cancel
		_, _ = own.Call(ctx, name, json.RawMessage(arguments), func(tool.Progress) {})
		cancel()
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &profiled{t, nil, a.stateDir, ""}
	for name := range calls {
		p.says(name, "supports_cancel", p.status(name) == "canceled")
		p.says(name, "interrupt_behavior", "cancel")
	}
}
