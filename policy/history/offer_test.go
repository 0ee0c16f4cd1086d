package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// TestOffer holds after which answers a question offers a grant, for what, and where it offers none.
func TestOffer(t *testing.T) {
	t.Parallel()
	read := func(paths ...string) (all []string) {
		for _, p := range paths {
			all = append(all, fmt.Sprintf(`{"path":%q}`, p))
		}
		return all
	}
	fetch := func(hosts ...string) (all []string) {
		for _, h := range hosts {
			all = append(all, fmt.Sprintf(`{"url":"https://%s/x"}`, h))
		}
		return all
	}
	const reads, writes, fetches = "mcp.fs.read_file", "mcp.fs.write_file", "mcp.web.fetch"
	in := homeOf + "/projects/"
	three := read(in+"a/1", in+"b/2", in+"c/3")
	for name, c := range map[string]struct {
		tool    tool.Name
		allowed []string
		denied  []string
		asked   string
		under   string // or the host; "" where nothing is offered
		choice  policy.Choice
	}{
		"three alike":                       {reads, three, nil, read(in + "d/4")[0], homeOf + "/projects", policy.AllowOffered},
		"two alike":                         {reads, three[:2], nil, read(in + "d/4")[0], "", ""},
		"three in the same directory":       {reads, read(in+"a/1", in+"a/2", in+"a/3"), nil, read(in + "a/4")[0], homeOf + "/projects/a", policy.AllowOffered},
		"one of them denied":                {reads, three, read(in + "e/5"), read(in + "d/4")[0], "", ""},
		"denied elsewhere":                  {reads, three, read(homeOf + "/letters/x"), read(in + "d/4")[0], homeOf + "/projects", policy.AllowOffered},
		"with the home directory in common": {reads, read(homeOf+"/a/1", homeOf+"/b/2", homeOf+"/c/3"), nil, read(homeOf + "/d/4")[0], "", ""},
		"three denied":                      {writes, nil, three, read(in + "d/4")[0], homeOf + "/projects", policy.DenyOffered},
		"a sensitive path":                  {reads, three, nil, read(in + "d/.env")[0], "", ""},
		"a write beyond the limits":         {writes, read("/srv/data/a/1", "/srv/data/a/2", "/srv/data/a/3"), nil, read("/srv/data/a/4")[0], "", ""},
		"the same host":                     {fetches, fetch("go.dev", "go.dev", "go.dev"), nil, fetch("go.dev")[0], "go.dev", policy.AllowOffered},
		"three hosts":                       {fetches, fetch("a.example", "b.example", "c.example"), nil, fetch("d.example")[0], "", ""},
		"a dangerous tool":                  {"mcp.shell.run", slices.Repeat([]string{`{"command":"df -h"}`}, 3), nil, `{"command":"df -h"}`, "", ""},
		"a tool that sends, without target": {"mcp.mail.send", slices.Repeat([]string{`{"to":"x"}`}, 3), nil, `{"to":"x"}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := policyOf(nil)
			if err != nil {
				t.Fatal(err)
			}
			var calls []history.Call
			for answer, inputs := range map[history.Answer][]string{history.Allowed: c.allowed, history.Denied: c.denied} {
				for _, in := range inputs {
					calls = append(calls, history.Call{Tool: c.tool, Input: json.RawMessage(in), Answer: answer, Actor: tool.Actor{Door: "http", Name: "ann"}})
				}
			}
			calls = append(calls, history.Call{Tool: c.tool, Input: json.RawMessage(c.asked), Answer: history.Allowed, Remembered: true},
				history.Call{Tool: c.tool, Input: json.RawMessage(c.asked), Answer: history.Unanswered})
			r, err := g.Request(t.Context(), policy.Request{Tool: declared()(c.tool), Input: json.RawMessage(c.asked),
				Actor: tool.Actor{Door: "http", Name: "ann"}})
			if err != nil {
				t.Fatal(err)
			}
			o := history.Offer(t.Context(), calls, &r, g, homeOf)
			if o == nil {
				if c.under != "" {
					t.Fatal("nothing is offered")
				}
				return
			}
			if c.under == "" || len(o.Targets) != 1 || o.Targets[0].Under+o.Targets[0].Host != c.under || o.Choice != c.choice || o.Answers < history.Least {
				t.Fatalf("offered: %+v", o)
			}
		})
	}
}

// TestOfferIsTaken holds that the grant of an offer covers what it said, and no more.
func TestOfferIsTaken(t *testing.T) {
	t.Parallel()
	grants, err := policy.OpenGrants(policy.GrantOptions{File: t.TempDir() + "/grants.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Limits: target.Config{}, Tools: readers()}, gate.Options{Dir: homeOf, Home: homeOf, Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	request := func(path, actor string) policy.Request {
		r, err := g.Request(t.Context(), policy.Request{Tool: declared()("mcp.fs.read_file"),
			Input: json.RawMessage(fmt.Sprintf(`{"path":%q}`, path)),
			Actor: tool.Actor{Door: "http", Name: actor}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	offered := []policy.Scope{{Kind: target.Path, Under: homeOf + "/projects"}}
	for name, c := range map[string]struct {
		path    string
		offered []policy.Scope
	}{"another call than was asked about": {homeOf + "/letters/x", offered}, "nothing was offered": {homeOf + "/projects/x", nil}} {
		d, err := g.Engine.Settle(request(c.path, "ann"), policy.Settlement{Choice: policy.AllowOffered, Offered: c.offered})
		if err == nil || d.Behavior != tool.Allow || len(grants.List()) != 0 {
			t.Errorf("%s: %v %v", name, d, err)
		}
	}
	if _, err := g.Engine.Settle(request(homeOf+"/projects/a/1", "ann"),
		policy.Settlement{Choice: policy.AllowOffered, Offered: offered}); err != nil {
		t.Fatal(err)
	}
	for path, runs := range map[string]bool{"/projects/b/2": true, "/projects/c/.env": false, "/letters/x": false} {
		if d := g.Engine.Decide(request(homeOf+path, "ann")); (d.Behavior == tool.Allow) != runs {
			t.Errorf("%s: %s", path, d.Behavior)
		}
	}
	if d := g.Engine.Decide(request(homeOf+"/projects/b/2", "eve")); d.Behavior == tool.Allow {
		t.Error("another caller")
	}
}
