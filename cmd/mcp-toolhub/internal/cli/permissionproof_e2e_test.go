//go:build e2e

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// lane is a way to a hub with a policy and one scripted server "s": a revision and a transport.
type lane struct {
	t       *testing.T
	version string
	stdio   bool

	dir, state string
	config     string
	far        string // what the server has received, line by line
	hub        *runningHub
	pipe       *wire
	logs       string
}

// guardedTools are the tools of the server behind a lane. None of them is known to only read.
func guardedTools() []json.RawMessage {
	const properties = `"text":{"type":"string"},"n":{"type":"integer","maximum":10},"password":{"type":"string"},"headers":{"type":"object"}`
	var all []json.RawMessage
	for _, name := range []string{"echo", "quiet", "other"} {
		all = append(all, json.RawMessage(`{"name":"`+name+`","description":"Does it","inputSchema":{"type":"object","properties":{`+properties+`}}}`))
	}
	return all
}

// overEveryLane runs test over both generations and both transports.
func overEveryLane(t *testing.T, policy map[string]any, test func(*testing.T, *lane)) {
	t.Helper()
	for _, version := range []string{rev2025, rev2026} {
		for name, stdio := range map[string]bool{"http": false, "stdio": true} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				l := &lane{t: t, version: version, stdio: stdio, dir: t.TempDir()}
				l.state, l.far = filepath.Join(l.dir, "state"), filepath.Join(l.dir, "received")
				l.config = configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: guardedTools(), Record: l.far})},
					map[string]any{"policy": policy})
				test(t, l)
			})
		}
	}
}

// client is a client that can be asked for what can says. Over stdio it has the hub to itself.
func (l *lane) client(can string) *wire {
	l.t.Helper()
	if l.stdio {
		l.hangUp()
		l.pipe = wireHubIn(l.t, l.dir, l.config, l.version, "--state-dir", l.state, "--log-level", "debug")
		l.pipe.can = can
		l.pipe.open().ready("mcp.s.echo")
		return l.pipe
	}
	if l.hub == nil {
		file := filepath.Join(l.dir, "hub.json")
		if err := os.WriteFile(file, []byte(l.config), 0o600); err != nil {
			l.t.Fatal(err)
		}
		h, err := launch(l.dir, scratchEnv(l.dir), "--config", file, "--state-dir", l.state, "--log-level", "debug")
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { _ = h.stop() })
		l.hub = h
	}
	w := wireHTTP(l.t, l.hub.url+"/mcp", l.version)
	w.can = can
	return w.open()
}

func (l *lane) hangUp() {
	if l.pipe != nil {
		l.pipe.hangUp()
		l.logs += l.pipe.log.String()
		l.pipe = nil
	}
}

// end ends the hub and returns its records and its log.
func (l *lane) end() (records []map[string]any, log string) {
	l.t.Helper()
	l.hangUp()
	if l.hub != nil {
		if err := l.hub.stop(); err != nil {
			l.t.Error(err)
		}
		l.logs += l.hub.log()
	}
	return recordsIn(l.t, filepath.Join(l.state, "journal")), l.logs
}

// recordsIn are the records of a journal, each of which must be what the standard says.
func recordsIn(t *testing.T, dir string) (all []map[string]any) {
	t.Helper()
	checkRecords(t, dir, 0)
	if err := persist.Read(dir, func(line json.RawMessage) bool {
		var r map[string]any
		mustDecode(t, string(line), &r)
		all = append(all, r)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// ran are the arguments of the calls that reached the server.
func (l *lane) ran() (all []string) {
	l.t.Helper()
	text, err := os.ReadFile(l.far)
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m struct {
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		mustDecode(l.t, line, &m)
		if m.Method == "tools/call" {
			all = append(all, string(m.Params.Arguments))
		}
	}
	return all
}

// queue is the API of the lane's hub.
func (l *lane) queue() *control.Client {
	l.t.Helper()
	return (&permitted{t: l.t, state: l.state}).hub()
}

// waiting makes a call and returns the question that it waits for, and the function that waits for its messages.
func (l *lane) waiting(w *wire, name, args string) (approval.View, func() string) {
	l.t.Helper()
	rest := w.waits(w.call(name, args, `"progressToken":"p"`))
	return (&permitted{t: l.t}).pending(l.queue()), rest
}

// The acceptance scenarios of permission with a client that can be asked: what is checked before anything else, what its
// person sees, and what becomes of each answer.
func TestProofWithAPersonAtTheClient(t *testing.T) {
	t.Parallel()
	channels := map[string]any{"channels": []string{"client"}}
	overEveryLane(t, map[string]any{"mode": "default", "ask": channels, "rules": []map[string]any{{"id": "never", "match": "mcp.s.echo",
		"when": `has(arguments.text) && arguments.text == "never"`, "then": "deny", "reason": "it is never done"},
		{"match": "mcp.s.echo", "when": `has(arguments.text) && arguments.text == "free"`, "then": "allow"}}},
		func(t *testing.T, l *lane) {
			x, allowed := &exchange{w: l.client(everyCapability)}, ""
			for _, c := range []struct{ args, answer, want string }{
				{`{"text":7}`, "", `"error_class":"schema_validation_failed"`},
				{`{"text":"big","n":11}`, "", `"error_class":"schema_validation_failed"`},
				{`{"text":"never"}`, "", `it is never done`},
				{`{"text":"free"}`, "", `"status":"succeeded"`},
				{`{"text":"yes","password":"hunter2","headers":{"Authorization":"Bearer hunter2"},"apiToken":"hunter2","api_key":"hunter2"}`,
					`{"action":"accept","content":{"answer":"allow_once"}}`, `"status":"succeeded"`},
				{`{"text":"no"}`, `{"action":"accept","content":{"answer":"deny_once","message":"use staging"}}`, "says: use staging"},
				{`{"text":"declined"}`, `{"action":"decline"}`, `"isError":true`}, // at once or not, as fast as the machine is
				{`{"text":"dismissed"}`, `{"action":"cancel"}`, `"isError":true`},
			} {
				before := len(x.asked)
				x.answer = func(int, asked) string { return c.answer }
				name := "mcp.s.quiet"
				if c.answer == "" {
					name = "mcp.s.echo"
				}
				got := x.call(name, c.args)
				if strings.Contains(c.answer, "allow_once") {
					allowed = got
				}
				if isError := strings.Contains(got, `"isError":true`); !strings.Contains(got, c.want) || isError == strings.Contains(c.want, "succeeded") {
					t.Errorf("%s: %s", c.args, got)
				}
				if asked := x.asked[before:]; (len(asked) == 1) != (c.answer != "") || len(asked) == 1 && strings.Contains(asked[0].params, "hunter2") {
					t.Errorf("%s: asked %v", c.args, asked)
				}
			}
			records, log := l.end()
			if ran := l.ran(); strings.Join(ran, "") != `{"text":"free"}{"text":"yes","password":"hunter2","headers":{"Authorization":"Bearer hunter2"},"apiToken":"hunter2","api_key":"hunter2"}` {
				t.Errorf("ran %s", ran)
			}
			checkAsked(t, records, log, allowed)
		})
}

// checkAsked holds what the records say of TestProofWithAPersonAtTheClient.
// answer is the response to the call that was allowed.
func checkAsked(t *testing.T, records []map[string]any, log, answer string) {
	all, err := json.Marshal(records)
	if err != nil || strings.Contains(string(all), "hunter2") || strings.Contains(log, "hunter2") {
		t.Errorf("a secret is in the journal (%t) or in the log (%t)", strings.Contains(string(all), "hunter2"), strings.Contains(log, "hunter2"))
	}
	const ready = " planned selected arguments_ready"
	for text, want := range map[string]string{"big": " planned selected schema_parse_failed validation_failed", "never": ready + " denied",
		"free": ready + " queued running succeeded", "yes": ready + " awaiting_approval approved queued running succeeded",
		"no": ready + " awaiting_approval denied", "declined": ready + " awaiting_approval denied", "dismissed": ready + " awaiting_approval denied"} {
		if got := find(t, records, text).statuses; got != want {
			t.Errorf("%s: went through%s, want%s", text, got, want)
		}
	}
	yes := find(t, records, "yes")
	if len(yes.decisions) != 2 {
		t.Fatalf("decisions: %v", yes.decisions)
	}
	ask, allow := yes.decisions[0], yes.decisions[1]
	for _, key := range []string{"decision_id", "invocation_id", "behavior", "mode", "source", "reason", "policy_refs", "suggested_updates", "decided_at"} {
		if ask[key] == nil {
			t.Errorf("the decision that asks has no %s: %v", key, ask)
		}
	}
	if ask["behavior"] != "ask" || allow["behavior"] != "allow" || allow["source"] != "person" {
		t.Errorf("asked %v, then %v", ask, allow)
	}
	if id, _ := yes.last["invocation_id"].(string); id == "" || !strings.Contains(answer, `"invocation_id":"`+id+`"`) {
		t.Errorf("the call went on as another one than %s: %s", id, answer)
	}
	no := find(t, records, "no").decisions[1]
	if blocks, _ := json.Marshal(no["content_blocks"]); no["behavior"] != "deny" || !strings.Contains(string(blocks), "use staging") {
		t.Errorf("denied with %v", no)
	}
	if rule := find(t, records, "never").decisions[0]; rule["source"] != "user" || rule["rule_refs"].([]any)[0] != "user/never" {
		t.Errorf("denied by rule: %v", rule)
	}
}

// The scenarios with a client that cannot be asked: the call waits in the queue and says so, and the answer there counts.
func TestProofWithAPersonElsewhere(t *testing.T) {
	t.Parallel()
	overEveryLane(t, map[string]any{"mode": "default"}, func(t *testing.T, l *lane) {
		w := l.client("")
		long := strings.Repeat("x", 2*persist.InlineLimit)
		for _, c := range []struct {
			args  string
			reply control.Reply
			want  string
		}{
			{`{"text":"yes"}`, control.Reply{Choice: policy.AllowOnce, By: "op"}, `"status":"succeeded"`},
			{`{"text":"edit","password":"hunter2"}`, control.Reply{Choice: policy.AllowOnce, By: "op", Sentence: "smaller is enough",
				Arguments: json.RawMessage(`{"text":"edit","n":2,"password":"hunter3"}`)}, `"status":"succeeded"`},
			{`{"text":  "long edit"}`, control.Reply{Choice: policy.AllowOnce, Arguments: json.RawMessage(`{"text":"` + long + `"}`)}, `"status":"succeeded"`},
			{`{"n":1,"text":"` + long + `"}`, control.Reply{Choice: policy.AllowOnce, Arguments: json.RawMessage(`{"text":"short"}`)}, `"status":"succeeded"`},
			{`{"text":"no"}`, control.Reply{Choice: policy.DenyOnce, Sentence: "not today"}, "says: not today"},
		} {
			v, answered := l.waiting(w, "mcp.s.quiet", c.args)
			if strings.Contains(v.Arguments, "hunter2") {
				t.Errorf("the queue shows a secret: %s", v.Arguments)
			}
			if _, err := l.queue().Answer(t.Context(), string(v.ID), c.reply); err != nil {
				t.Fatal(err)
			}
			if got := answered(); !strings.Contains(got, c.want) || !strings.Contains(got, "waiting_for_permission") {
				t.Errorf("%.100s: %s", c.args, got)
			}
		}
		records, log := l.end()
		checkEdited(t, l, records, log)
	})
}

// checkEdited holds that the four inputs can be told apart after a person changed them.
func checkEdited(t *testing.T, l *lane, records []map[string]any, log string) {
	all, err := json.Marshal(records)
	if err != nil || strings.Contains(string(all)+log, "hunter") {
		t.Errorf("a secret is in the records or the log")
	}
	ran := l.ran()
	if len(ran) != 4 || ran[1] != `{"text":"edit","n":2,"password":"hunter3"}` || ran[3] != `{"text":"short"}` {
		t.Errorf("ran %.300s", ran)
	}
	edit := find(t, records, "edit")
	inputs, err := json.Marshal([]any{edit.last["model_input"], edit.last["observable_input"], edit.last["permission_input"], edit.last["call_input"]})
	inputs = regexp.MustCompile(`\[masked:[0-9a-f]{12}\]`).ReplaceAll(inputs, []byte("[masked]"))
	if want := `[{"password":"[masked]","text":"edit"},null,{"n":2,"password":"[masked]","text":"edit"},null]`; err != nil || string(inputs) != want {
		t.Errorf("inputs %s, want %s", inputs, want) // what is absent is as the one before it
	}
	if len(edit.mutations) != 1 || len(edit.decisions) != 2 {
		t.Fatalf("%d mutations, %d decisions", len(edit.mutations), len(edit.decisions))
	}
	m := edit.mutations[0]
	if fields, _ := json.Marshal(m["changed_fields"]); m["source_type"] != "permission_prompt" || m["source_ref"] != "queue/op" ||
		string(fields) != `["n","password"]` || m["from_input_ref"] == m["to_input_ref"] {
		t.Errorf("mutation %v", m)
	}
	d := edit.decisions[1]
	if d["user_modified"] != true || d["accept_feedback"] != "smaller is enough" || d["updated_input"] == nil {
		t.Errorf("decision %v", d)
	}
	long := find(t, records, "long edit")
	if long.last["permission_input_ref"] == nil || long.last["permission_input"] != nil || long.decisions[1]["updated_input"] != nil ||
		long.decisions[1]["updated_input_ref"] != long.last["permission_input_ref"] {
		t.Errorf("a large change: %v\n%.1000v", long.last, long.decisions[1])
	}
	short := 0
	for _, one := range livesOf(records) {
		if one.last != nil && one.last["model_input_ref"] != nil {
			if input, _ := json.Marshal(one.last["permission_input"]); string(input) == `{"text":"short"}` {
				short++
			}
		}
	}
	if short != 1 {
		t.Errorf("a small change of large arguments is in %d records", short)
	}
}

// Nobody there, and no answer in time, deny: terminal results that say so, and nothing runs.
func TestProofWithNobody(t *testing.T) {
	t.Parallel()
	t.Run("no channel", func(t *testing.T) {
		t.Parallel()
		overEveryLane(t, map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"client"}}}, func(t *testing.T, l *lane) {
			checkNobody(t, l, "nobody", "the client cannot be asked")
		})
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		overEveryLane(t, map[string]any{"mode": "default", "ask": map[string]any{"timeout": "1s"}}, func(t *testing.T, l *lane) {
			checkNobody(t, l, "timeout", "nobody allowed it in time")
		})
	})
}

func checkNobody(t *testing.T, l *lane, source, why string) {
	w := l.client("")
	got := w.send(w.call("mcp.s.quiet", `{"text":"x"}`, ""))
	if last := got[len(got)-1]; !strings.Contains(last, why) || !strings.Contains(last, `"isError":true`) ||
		!strings.Contains(last, `"error_class":"permission_denied"`) {
		t.Errorf("%s", got)
	}
	records, _ := l.end()
	x := find(t, records, "x")
	if d := x.decisions[len(x.decisions)-1]; d["behavior"] != "deny" || d["source"] != source || !strings.HasSuffix(x.statuses, " denied") {
		t.Errorf("denied by %v after%s", d, x.statuses)
	}
	if ran := l.ran(); len(ran) > 0 {
		t.Errorf("ran %s", ran)
	}
}

// Rules and questions hold on every way to a tool: by the name that a list has, through tool_call, and on the direct view
// of its server.
func TestProofOnEveryWay(t *testing.T) {
	t.Parallel()
	p := startPermittedWith(t, child(upstreamtest.Script{Tools: guardedTools()}), map[string]any{"mode": "default", "rules": []map[string]any{
		{"match": "mcp.s.echo", "when": `has(arguments.text) && arguments.text == "never"`, "then": "deny", "reason": "it is never done"},
		{"match": "hub.*", "then": "allow"}}})
	for _, version := range []string{rev2025, rev2026} {
		for way, open := range map[string]func() (*wire, string){
			"list": func() (*wire, string) { return p.client(version).able(), "mcp.s.echo" },
			"tool_call": func() (*wire, string) {
				w := p.client(version).able()
				w.refs = map[string]string{}
				return w, "mcp.s.echo"
			},
			"direct view": func() (*wire, string) { return wireHTTP(t, p.url+"/mcp/s/s", version).able(), "echo" },
		} {
			w, name := open()
			x := &exchange{w: w.open(), answer: func(int, asked) string { return denyIt }}
			if got := x.call(name, `{"text":"never"}`); !strings.Contains(got, "it is never done") || len(x.asked) != 0 {
				t.Errorf("%s, %s, denied by a rule: asked %d times: %s", version, way, len(x.asked), got)
			}
			if got := x.call(name, `{"text":"x"}`); !strings.Contains(got, "a person denied this call") || len(x.asked) != 1 {
				t.Errorf("%s, %s, denied by a person: asked %d times: %s", version, way, len(x.asked), got)
			}
			x.answer = func(int, asked) string { return allowIt }
			if got := x.call(name, `{"text":"x"}`); strings.Contains(got, `"isError":true`) ||
				!strings.Contains(got, `"structuredContent"`) || len(x.asked) != 2 {
				t.Errorf("%s, %s, allowed: asked %d times: %s", version, way, len(x.asked), got)
			}
		}
	}
	if n := p.begun(); n != 6+2 { // and the searches
		t.Errorf("%d calls ran", n)
	}
}

// lives are the invocations in records: the last record, the statuses that it went through, its decisions and its results.
type life struct {
	last      map[string]any
	statuses  string
	decisions []map[string]any
	mutations []map[string]any
	results   []map[string]any
}

func livesOf(records []map[string]any) map[string]*life {
	all := map[string]*life{}
	for _, r := range records {
		id, _ := r["invocation_id"].(string)
		if all[id] == nil {
			all[id] = &life{}
		}
		l := all[id]
		switch r["object"] {
		case "tool_invocation":
			l.last, l.statuses = r, ""
			transitions, _ := r["status_transitions"].([]any)
			for _, s := range transitions {
				l.statuses += " " + s.(map[string]any)["status"].(string)
			}
		case "tool_permission_decision":
			l.decisions = append(l.decisions, r)
		case "tool_input_mutation":
			l.mutations = append(l.mutations, r)
		case "tool_result":
			l.results = append(l.results, r)
		}
	}
	return all
}

// find is the life of the one invocation whose first arguments have this text.
func find(t *testing.T, records []map[string]any, text string) *life {
	t.Helper()
	var found []*life
	for _, l := range livesOf(records) {
		if l.last == nil {
			continue
		}
		if input, _ := l.last["model_input"].(map[string]any); input["text"] == text {
			if len(l.results) != 1 || l.results[0]["status"] != l.last["status"] {
				t.Errorf("%s: ended %v with %d results", text, l.last["status"], len(l.results))
			}
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d invocations have the text %q", len(found), text)
	}
	return found[0]
}
