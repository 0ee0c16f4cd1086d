package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

const explained = `rules:
  - {id: other, match: mcp.git.*, then: deny}
  - {id: tagged, match: "mcp.fs.*", tags: network, then: deny}
  - {id: late, match: "mcp.fs.*", when: "time.getHours() > 20", then: deny}
  - {id: broken, match: "mcp.fs.*", when: "arguments.mode == 'w'", then: allow}
  - {id: home, match: "mcp.fs.*", when: "targets.all(t, under(t.resolved, '/home/ann'))", then: ask, reason: "Ann's home is asked about."}
  - {id: fine, match: "*", profile: review, then: allow}
`

// TestExplainText: the text names what decides an ask with a grant that does not cover it, and a denial. A name in it does not steer
// the terminal.
func TestExplainText(t *testing.T) {
	t.Parallel()
	set, err := policy.ParseRules(policy.User, "rules.yaml", []byte(explained))
	if err != nil {
		t.Fatal(err)
	}
	g := openGrants(t, policy.GrantOptions{})
	grant := grantFor("mcp.fs.write", "/srv")
	grant.ID = "grt_1"
	if _, err := g.AddSession("s1", grant); err != nil {
		t.Fatal(err)
	}
	e := compile(t, policy.Settings{Sets: []policy.Set{set}, Grants: g})
	var text strings.Builder
	r := write("/home/ann/\x1b[2Ja.txt")
	r.Profile, r.Actor.Name = "review\n", "ann\x1b[31m"
	r.Now = noon()
	x := e.Explain(t.Context(), r)
	if err := x.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	r = writer("mcp.git.push")
	r.Now = noon()
	text.WriteString("\n")
	x = e.Explain(t.Context(), r)
	if err := x.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("the text steers the terminal")
	}
	if _, err := json.Marshal(x); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"user/home", "Ann's home is asked about.", "/home/ann", "grt_1", "mcp.git.push", "user/other"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the text does not name %q:\n%s", part, text.String())
		}
	}
}

// TestHides: only what denies whatever is sent hides.
func TestHides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rule policy.Rule
		mode policy.Mode
		want string
	}{
		{"plain deny", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, Then: tool.Deny}, "", "user/d"},
		{"another tool", policy.Rule{ID: "d", Match: []string{"mcp.y.*"}, Then: tool.Deny}, "", ""},
		{"an ask", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, Then: tool.Ask}, "", ""},
		{"by arguments", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: "arguments.a == 1", Then: tool.Deny}, "", ""},
		{"by targets", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: "targets.size() == 0", Then: tool.Deny}, "", ""},
		{"by time", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: "time.getHours() >= 0", Then: tool.Deny}, "", ""},
		{"by _meta", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: "_meta.size() == 0", Then: tool.Deny}, "", ""},
		{"by session", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: `actor.session == "s1"`, Then: tool.Deny}, "", ""},
		{"by a mixture", policy.Rule{ID: "d", Match: []string{"mcp.x.*"}, When: `actor.name == "ann" && actor.client == ""`, Then: tool.Deny}, "", ""},
		{"by the tool", policy.Rule{ID: "d", When: `!tool.read_only`, Then: tool.Deny}, "", "user/d"},
		{"not by the tool", policy.Rule{ID: "d", When: `tool.read_only`, Then: tool.Deny}, "", ""},
		{"by the actor", policy.Rule{ID: "d", When: `actor.name == "ann" && profile == "p"`, Then: tool.Deny}, "", "user/d"},
		{"not this actor", policy.Rule{ID: "d", When: `actor.name == "bob"`, Then: tool.Deny}, "", ""},
		{"fails always", policy.Rule{ID: "d", When: `tool.tags[99] == ""`, Then: tool.Deny}, "", "user/d"},
		{"mode", policy.Rule{ID: "d", Match: []string{"*"}, Then: tool.Allow}, policy.ModeReadOnly, "mode/read_only"},
		{"profile", policy.Rule{ID: "d", Match: []string{"*"}, Profile: []string{"q"}, Then: tool.Deny}, "", ""},
	} {
		e := compile(t, policy.Settings{Mode: c.mode, Sets: user(c.rule)})
		r := writer("mcp.x.write")
		if rule, hidden := e.Hides(r.Tool, r.Facts, "p", r.Actor); rule != c.want || hidden != (c.want != "") {
			t.Errorf("%s: hidden %t by %q, want %q", c.name, hidden, rule, c.want)
		}
	}
	// what the operator has taken out of use is hidden and denied, whatever allows it
	allow := policy.Rule{ID: "a", Match: []string{"*"}, Then: tool.Allow}
	e := compile(t, policy.Settings{Mode: policy.ModeAcceptAll, Sets: user(allow)})
	r := writer("mcp.x.write")
	r.Facts = facts.Of(r.Tool, facts.Options{Overrides: []facts.Override{{Match: "*", Disabled: true}}})
	if rule, hidden := e.Hides(r.Tool, r.Facts, "p", r.Actor); rule != "lifecycle/disabled" || !hidden {
		t.Errorf("hidden %t by %q", hidden, rule)
	}
	d := e.Decide(r)
	if d.Behavior != tool.Deny {
		t.Errorf("%+v", d)
	}
	checkRecord(t, d)
}

// TestNothingIsKnown: without facts and without a tool, nothing is allowed.
func TestNothingIsKnown(t *testing.T) {
	t.Parallel()
	e := compile(t, policy.Settings{})
	decides(t, e, policy.Request{Actor: tool.Actor{Door: "http"}}, tool.Ask, "default")
	known := policy.Request{Tool: &tool.Tool{Name: "code.read_file", Server: "code"}}
	decides(t, e, known, tool.Ask, "default")
	known.Facts = facts.Of(known.Tool, facts.Options{})
	known.Targets = []target.Target{{Kind: target.Path, Resolved: "/p"}}
	decides(t, e, known, tool.Ask, "default")
}

func TestTheLoudModeIsLoud(t *testing.T) {
	t.Parallel()
	for _, m := range policy.Modes() {
		if loud := strings.Contains(m.Warning(), "EVERY CALL"); loud != (m == policy.ModeAcceptAll) {
			t.Errorf("%s: %q", m, m.Warning())
		}
	}
	d := decides(t, compile(t, policy.Settings{Mode: policy.ModeAcceptAll}), writer("mcp.x.y"), tool.Allow, "default")
	if d.Mode != "accept_all" || !strings.Contains(d.Reason["mode"].(string), "WITHOUT ASKING") {
		t.Errorf("%+v", d)
	}
}

// TestCallsThroughAnotherTool: without a mode, a call on stdio passes to the client, but for one through a tool of the hub:
// the client asks about that one tool, and perhaps no more.
func TestCallsThroughAnotherTool(t *testing.T) {
	t.Parallel()
	for mode, want := range map[policy.Mode]tool.Behavior{"": tool.Ask, policy.ModeClient: tool.Passthrough, policy.ModeAcceptAll: tool.Allow} {
		e, r := compile(t, policy.Settings{Mode: mode}), writer("mcp.x.y")
		r.Actor.Door = "stdio"
		if d := e.Decide(r); mode == "" && d.Behavior != tool.Passthrough {
			t.Errorf("by its name: %+v", d)
		}
		r.Via = "tool_call"
		if d := e.Decide(r); d.Behavior != want {
			t.Errorf("mode %q: %+v, want %s", mode, d, want)
		}
		if x := e.Explain(t.Context(), r); x.Decision.Behavior != want {
			t.Errorf("mode %q is explained as %+v", mode, x.Decision)
		}
	}
}

// TestExplanationReadsWell: what a rule says stands in an explanation as it was written, but for what steers terminals.
func TestExplanationReadsWell(t *testing.T) {
	t.Parallel()
	e := compile(t, policy.Settings{Sets: user(policy.Rule{Match: []string{"*"}, Then: tool.Deny, Reason: "say \"please\" \\ \x1b[2J"})})
	x := e.Explain(t.Context(), writer("mcp.x.y"))
	var text strings.Builder
	if err := x.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(text.String(), "\n"); first != `DENY: say "please" \\ \x1b[2J` {
		t.Errorf("%s", first)
	}
}
