package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// reader is a tool whose server says that it only reads, and reaches nothing.
const reader = `{"name":"get_note","description":"Reads a note","inputSchema":{"type":"object"},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

// mixed are a trusted server and one that nobody vouches for, with tools that read, write and destroy.
func mixed() map[string]any {
	script := upstreamtest.Script{Tasks: true, Tools: []json.RawMessage{json.RawMessage(reader), upstreamtest.Tool("echo"), upstreamtest.Tool("task"),
		json.RawMessage(`{"name":"delete_all","description":"Deletes everything","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)}}
	return map[string]any{"mine": with(child(script), "trust", true), "theirs": child(script)}
}

// withCode turns the built-in toolset on.
func withCode(dir string, more map[string]any) map[string]any {
	all := map[string]any{"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": dir}}}}
	for key, value := range more {
		all[key] = value
	}
	return all
}

// Without the key policy, and with one that says nothing of a mode, tools that only read run over HTTP where their origin is
// trusted, and a person is asked about all others, whichever way they are called.
func TestDefaultsOverHTTP(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]any{"no policy": {"policy": nil}, "no mode": {"policy": map[string]any{}},
		"deferred": {"policy": nil, "deferred": map[string]any{"mode": "always"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := startHub(t, "hub.json", configText(t, mixed(), withCode(t.TempDir(), more)))
			if log := hub.log(); strings.Count(log, "permission: calls that are not known to only read") != 1 ||
				!strings.Contains(log, "policy.mode default, the default over http") {
				t.Errorf("what holds is not said: %s", log)
			}
			for _, version := range []string{rev2025, rev2026} {
				w := wireHTTP(t, hub.url+"/mcp", version).able().open()
				if name == "deferred" {
					w.refs = map[string]string{}
				}
				for tool, asks := range map[string]int{"mcp.mine.get_note": 0, "code.list_dir": 0, "mcp.theirs.get_note": 1,
					"mcp.mine.echo": 1, "mcp.theirs.delete_all": 1} {
					x := &exchange{w: w, answer: answerWith("deny_once", "")}
					got := x.call(tool, `{}`)
					if len(x.asked) != asks || strings.Contains(got, `"status":"succeeded"`) == (asks > 0) {
						t.Errorf("%s %s: asked %v, %s", version, tool, x.asked, got)
					}
				}
				if name == "deferred" {
					continue
				}
				x := &exchange{w: wireHTTP(t, hub.url+viewOf("mine"), version).able().open(), answer: answerWith("deny_once", "")}
				if got := x.call("echo", `{}`); len(x.asked) != 1 || !strings.Contains(got, "approval_rejected") {
					t.Errorf("%s on the direct view: %s", version, got)
				}
			}
			if name == "deferred" {
				return
			}
			x := &exchange{w: wireHTTP(t, hub.url+"/mcp", rev2025).able().open(), answer: answerWith("deny_once", "")}
			got := x.inSession(rawRequest{id: `"t"`, method: "tools/call", name: "mcp.mine.task",
				params: `{"name":"mcp.mine.task","arguments":{"text":"x"},"task":{"ttl":60000}}`})
			if len(x.asked) != 1 || !strings.Contains(got, "approval_rejected") {
				t.Errorf("as a task: %s", got)
			}
		})
	}
}

// Over stdio what would be asked is left to the client, which is recorded; rules that deny hold, and tools tagged dangerous
// ask all the same.
func TestDefaultsOverStdio(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]any{"no policy": nil, "no mode": map[string]any{"rules": []map[string]any{
		{"match": "mcp.theirs.get_note", "when": "!has(arguments.please)", "then": "deny", "reason": "not that one"}}}} {
		for _, version := range []string{rev2025, rev2026} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				w := wireHubIn(t, dir, configText(t, mixed(), map[string]any{"policy": policy}), version, "--state-dir", dir).able().open()
				w.awaitTools("mcp.mine.echo", "mcp.theirs.echo")
				if !strings.Contains(w.log.String(), "permission: calls that would be asked about are left to the client") {
					t.Errorf("what holds is not said: %s", w.log)
				}
				x := &exchange{w: w, answer: answerWith("deny_once", "")}
				if got := x.call("mcp.theirs.echo", `{}`); len(x.asked) != 0 || !strings.Contains(got, `"status":"succeeded"`) {
					t.Errorf("a write asked %v: %s", x.asked, got)
				}
				if got := x.call("mcp.theirs.get_note", `{}`); len(x.asked) != 0 || strings.Contains(got, "not that one") != (policy != nil) {
					t.Errorf("what is denied: %s", got)
				}
				if got := x.call("mcp.theirs.delete_all", `{}`); len(x.asked) != 1 || !strings.Contains(got, "approval_rejected") {
					t.Errorf("what is dangerous asked %v: %s", x.asked, got)
				}
				w.hangUp()
				if log := journalIn(t, dir); !strings.Contains(log, `"behavior":"passthrough"`) || !strings.Contains(log, `"mode":"client"`) {
					t.Error("what was left to the client is not recorded")
				}
			})
		}
	}
}

// journalIn is all that the journal of a hub that has ended holds.
func journalIn(t *testing.T, state string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f) // locks are none of its files
		all.Write(text)
	}
	return all.String()
}

// Who is denied because nobody could be asked is told what the person can do, and that this would help.
func TestDenialSaysTheWayOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy map[string]any
		wants  []string
	}{
		"no rule": {map[string]any{"ask": map[string]any{"channels": []string{"client"}}},
			[]string{"the client cannot be asked", "mcp-toolhub approvals", "policy.ask.channels has to name queue",
				`{match: \"mcp.s.echo\", then: allow}`, "policy.mode"}},
		"late": {map[string]any{"ask": map[string]any{"timeout": "1s"}},
			[]string{"nobody allowed it in time", "mcp-toolhub approvals", `{match: \"mcp.s.echo\", then: allow}`}},
		"a rule": {map[string]any{"ask": map[string]any{"channels": []string{"client"}}, "rules": []map[string]any{{"id": "ours", "match": "mcp.s.*", "then": "ask"}}},
			[]string{"change the rule that asks, user/ours"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startPermitted(t, c.policy, nil).client(rev2025).open()
			got := w.send(w.call("mcp.s.echo", `{}`, ""))
			for _, want := range c.wants {
				if !strings.Contains(got[len(got)-1], want) {
					t.Errorf("%s lacks %s", got, want)
				}
			}
		})
	}
}
