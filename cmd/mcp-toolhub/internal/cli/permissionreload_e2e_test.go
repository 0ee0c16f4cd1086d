//go:build e2e

package cli

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// Files of rules and of remembered answers are read again when they change. One with a fault is refused whole, with its place,
// and what held before holds on.
func TestRuleAndGrantFilesAreWatched(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "rules.yaml") // not beside the config
	writeFile(t, rules, "rules: [{match: mcp.s.echo, then: allow}]\n")
	p := startPermitted(t, map[string]any{"rule_files": map[string]string{"managed": rules}, "ask": map[string]any{"channels": []string{"client"}}}, nil)
	call := func() string {
		w := p.client(rev2026)
		got := w.send(w.call("mcp.s.echo", `{"text":"x"}`, ""))
		return got[len(got)-1]
	}
	becomes := func(what, want string) {
		t.Helper()
		eventually(t, what, func() bool { return strings.Contains(call(), want) })
	}
	becomes("the rule allows", `"status":"succeeded"`)
	writeFile(t, rules, "rules: [{match: mcp.s.echo, when: '!has(arguments.please)', then: deny, reason: not now}]\n")
	becomes("the changed rule denies", "not now")
	writeFile(t, rules, "rules:\n  - {match: mcp.s.echo, then: allow}\n  - {match: mcp.s.echo, then: maybe}\n")
	eventually(t, "the fault is told", func() bool { return strings.Contains(p.problems(), "rules.yaml:3:") })
	if got := call(); !strings.Contains(got, "not now") {
		t.Errorf("a file with a fault is in force in part: %s", got)
	}
	eventually(t, "the fault is in the log", func() bool { return strings.Contains(p.log(), "config is not applied") })
	writeFile(t, rules, "rules: [{match: mcp.s.echo, when: '!has(arguments.please)', then: deny, reason: not now}]\n")
	eventually(t, "nothing is wrong any more", func() bool { return p.problems() == "" })
	writeFile(t, rules, "")
	eventually(t, "an emptied file is told", func() bool { return strings.Contains(p.problems(), "the file is empty") })
	if got := call(); !strings.Contains(got, "not now") {
		t.Errorf("a file that was emptied is in force: %s", got)
	}
	replaceFile(t, rules, "rules: []\n") // as editors do
	becomes("the rules are gone", "the client cannot be asked")
	eventually(t, "nothing is wrong any more", func() bool { return p.problems() == "" })

	other := filepath.Join(t.TempDir(), "other.yaml") // is never in force while it has a fault
	writeFile(t, other, "rules: [{then: maybe}]\n")
	p.write(map[string]any{"rule_files": map[string]string{"managed": other}, "ask": map[string]any{"channels": []string{"client"}}}, nil)
	eventually(t, "the fault is told", func() bool { return strings.Contains(p.problems(), "other.yaml:1:") })
	writeFile(t, other, "rules: []\n")
	eventually(t, "nothing is wrong any more", func() bool { return p.problems() == "" })

	grants := filepath.Join(p.state, hub.GrantsFile)
	entry := "  - {id: %, then: #, tool: mcp.s.echo, actor: 'actor:http/local'}\n"
	of := func(id, then string) string { return strings.NewReplacer("%", id, "#", then).Replace(entry) }
	writeFile(t, grants, "grants:\n"+of("one", "allow"))
	becomes("the grant allows", `"status":"succeeded"`)
	writeFile(t, grants, "grants:\n"+of("one", "allow")+of("two", "perhaps"))
	eventually(t, "the fault is told", func() bool { return strings.Contains(p.problems(), hub.GrantsFile+":3:") })
	if got := call(); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("a file of grants with a fault: %s", got)
	}
	eventually(t, "the fault is in the log", func() bool { return strings.Contains(p.log(), "remembered answers are not applied") })
	writeFile(t, grants, "grants:\n"+of("one", "deny"))
	becomes("the grant denies", "a person denied this for good")
	eventually(t, "nothing is wrong any more", func() bool { return p.problems() == "" })
}

// A policy that hides other tools than before is told to those callers whose list it changes, and to nobody else.
func TestHiddenByAReload(t *testing.T) {
	t.Parallel()
	tokens := map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": []map[string]string{
		{"name": "ann", "token": "${env:ANN}"}, {"name": "bob", "token": "${env:BOB}"}}}}}
	p := startTokens(t, tokens["hub"].(map[string]any)["auth"].(map[string]any)["tokens"].([]map[string]string))
	for i, version := range []string{rev2025, rev2026} {
		ann := p.client(version, "Authorization", "Bearer ann-ann-ann-ann-ann").open()
		bob := p.client(version, "Authorization", "Bearer bob-bob-bob-bob-bob").open()
		toAnn, toBob := ann.changes(), bob.changes()
		then := []string{"deny", "allow"}[i]
		p.write(map[string]any{"rules": []map[string]any{{"match": "mcp.s.echo", "actor": "bob", "then": then}}}, tokens)
		if got := await(t, toBob); !strings.Contains(got, `"notifications/tools/list_changed"`) {
			t.Errorf("%s: bob is told %s", version, got)
		}
		if (bob.tools()["mcp.s.echo"] == "") != (then == "deny") || ann.tools()["mcp.s.echo"] == "" {
			t.Errorf("%s: the lists are not those of the rule %s", version, then)
		}
		p.write(map[string]any{"rules": []map[string]any{{"match": "mcp.s.echo", "actor": "bob", "then": then}, {"match": "mcp.x.*", "then": "deny"}}}, tokens)
		eventually(t, "the config is applied again", func() bool { return strings.Count(p.log(), "config is applied") == 2*i+2 })
		if got := append(drained(toAnn), drained(toBob)...); len(got) > 0 {
			t.Errorf("%s: told without a change: %q", version, got)
		}
	}
}

// What is no tool call is under the policy too: deny rules hold for prompts, resources and methods that the hub does not know,
// and the last are asked about as a tool is of which nothing is known.
func TestForwardedAreUnderThePolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		policy map[string]any
		passes map[string]bool // by method
	}{
		{"default", map[string]any{"ask": map[string]any{"channels": []string{"client"}}}, map[string]bool{"resources/read": true, "acme/do": false}},
		{"allowed", map[string]any{"rules": []map[string]any{{"match": "mcp.s.acme/*", "then": "allow"}}}, map[string]bool{"resources/read": true, "acme/do": true}},
		{"client", map[string]any{"mode": "client"}, map[string]bool{"resources/read": true, "acme/do": true}},
		{"server denied", map[string]any{"mode": "accept_all", "rules": []map[string]any{{"server": "s", "then": "deny"}}}, map[string]bool{}},
		{"method denied", map[string]any{"mode": "accept_all", "rules": []map[string]any{{"match": "mcp.s.acme/*", "then": "deny"}}}, map[string]bool{"resources/read": true}},
		{"by arguments", map[string]any{"mode": "accept_all", "rules": []map[string]any{{"match": "mcp.s.*", "when": "arguments.?x.orValue(0) == 1", "then": "deny"}}},
			map[string]bool{"resources/read": true}},
		{"read only", map[string]any{"mode": "read_only"}, map[string]bool{"resources/read": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("noted")}}
			script.Features.Resources = []json.RawMessage{json.RawMessage(`{"uri":"file:///a","name":"a"}`)}
			hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(script)}, map[string]any{"policy": c.policy}))
			for _, version := range []string{rev2025, rev2026} {
				w := wireHTTP(t, hub.url+viewOf("s"), version).open()
				for method, r := range map[string]rawRequest{
					"resources/read": {id: "7", method: "resources/read", params: w.params(`"uri":"file:///a"`, ""), name: "file:///a"},
					"acme/do":        {id: "8", method: "acme/do", params: w.params(`"answer":{},"x":1`, "")},
				} {
					got := w.send(r)
					_, isResult := memberOf(t, got[len(got)-1], "result")
					if isResult != c.passes[method] || !isResult && !strings.Contains(got[len(got)-1], `this call is not allowed`) {
						t.Errorf("%s %s: %s", version, method, got)
					}
				}
				if c.passes["acme/do"] || version == rev2026 {
					continue
				}
				if status, _, _ := w.post(rawRequest{method: "acme/happened", params: `{}`}); status != 202 {
					t.Errorf("the notification was answered with %d", status)
				}
			}
			if log := hub.log(); !c.passes["acme/do"] && !strings.Contains(log, `"call failed","tool":"mcp.s.acme/do"`) {
				t.Error("it is not in the log")
			}
		})
	}
}

// problems is what the hub says is wrong with itself.
func (p *permitted) problems() string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/health/ready", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	got, err := httpDo(req)
	if err != nil {
		p.t.Fatal(err)
	}
	_, body, _ := strings.Cut(got, "{")
	problems, _ := memberOf(p.t, "{"+body, "problems")
	return problems
}
