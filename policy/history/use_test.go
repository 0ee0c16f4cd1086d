package history_test

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// TestSuggestCoversNothingElse holds that rules stay within what people allowed: the kinds of targets, places, arguments, tools and callers.
func TestSuggestCoversNothingElse(t *testing.T) {
	t.Parallel()
	s, err := history.Suggest(t.Context(), history.Past{Calls: weeks(t, developer(), 1, 4), Tools: declared(), Home: homeOf, Gate: policyOf})
	if err != nil {
		t.Fatal(err)
	}
	var rules []policy.Rule
	for _, one := range s.Suggestions {
		rules = append(rules, one.Rule)
	}
	g, err := policyOf(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		tool  tool.Name
		input string
		actor string
		runs  bool
	}{
		{"what was allowed", "mcp.fs.read_file", `{"path":"/home/ann/projects/new/x.go"}`, "ann", true},
		{"a directory that was denied", "mcp.fs.read_file", `{"path":"/home/ann/projects/clients/new/x.go"}`, "ann", false},
		{"a way around", "mcp.fs.read_file", `{"path":"/home/ann/projects/../letters/x.go"}`, "ann", false},
		{"several paths in one", "mcp.fs.read_file", `{"path":"/home/ann/projects/{a,../../letters/x}"}`, "ann", false},
		{"a directory of which nobody was asked", "mcp.fs.read_file", `{"path":"/home/ann/private/x.go"}`, "ann", false},
		{"the directory above", "mcp.fs.list_directory", `{"path":"/home/ann"}`, "ann", false},
		{"a sensitive file", "mcp.fs.read_file", `{"path":"/home/ann/projects/hub/.env"}`, "ann", false},
		{"another caller", "mcp.fs.read_file", `{"path":"/home/ann/projects/hub/x.go"}`, "eve", false},
		{"another tool", "mcp.mail.send", `{"to":"x","subject":"y","body":"z"}`, "ann", false},
		{"another host", "mcp.web.fetch", `{"url":"https://go.dev.example.com/x"}`, "ann", false},
		{"another kind of target", "mcp.web.fetch", `{"url":"https://go.dev/x","path":"/home/ann/projects/x"}`, "ann", false},
		{"no target", "mcp.web.fetch", `{}`, "ann", false},
		{"an argument that nobody used", "mcp.git.push", `{"repo_path":"/home/ann/projects/hub","branch":"feature/x","force":true}`, "ann", false},
		{"a branch in another spelling", "mcp.git.push", `{"repo_path":"/home/ann/projects/hub","branch":"feature/../main"}`, "ann", false},
		{"a branch like those allowed", "mcp.git.push", `{"repo_path":"/home/ann/projects/hub","branch":"feature/never-seen"}`, "ann", true},
		{"another project", "mcp.tracker.comment", `{"project":"kernel","issue_id":"7","body":"x"}`, "ann", false},
	} {
		r, err := g.Request(t.Context(), gate.Call{Tool: declared()(c.tool), Input: []byte(c.input), Actor: tool.Actor{Door: "http", Name: c.actor}})
		if err != nil {
			t.Fatal(err)
		}
		if d := g.Engine().Decide(t.Context(), r); (d.Behavior == tool.Allow) != c.runs {
			t.Errorf("%s: %s %v", c.name, d.Behavior, d.Reason)
		}
	}
}

// TestSuggestIsHeldBack holds what keeps a rule from being suggested.
func TestSuggestIsHeldBack(t *testing.T) {
	t.Parallel()
	call := func(id, input string, a history.Answer) history.Call {
		return history.Call{ID: tool.InvocationID(id), Tool: "mcp.web.fetch", Actor: tool.Actor{Door: "http", Name: "ann"}, Answer: a,
			Input: []byte(input), Said: tool.PermissionDecision{Behavior: tool.Ask}}
	}
	yes := call("inv_1", `{"url":"https://go.dev/a"}`, history.Allowed)
	unanswered := call("inv_2", `{"url":"https://go.dev/b"}`, history.Unanswered)
	denied := call("inv_3", `{"url":"https://go.dev/a"}`, history.Denied)
	masked := call("inv_4", "", history.Denied)
	masked.Lost = "its arguments are masked"
	suggest := func(calls ...history.Call) *history.Suggested {
		s, err := history.Suggest(t.Context(), history.Past{Calls: calls, Tools: declared(), Home: homeOf, Gate: policyOf})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := suggest(yes, yes); len(s.Suggestions) != 0 {
		t.Errorf("two answers: %v", s.Suggestions)
	}
	s := suggest(yes, yes, yes, unanswered)
	if len(s.Suggestions) != 1 || s.Spared != 3 || len(s.Suggestions[0].Calls) != 3 {
		t.Fatalf("three answers: %+v", s)
	}
	if through := s.Suggestions[0].Else; len(through) != 1 || through[0].ID != "inv_2" || through[0].Answer != history.Unanswered {
		t.Errorf("what else would have run: %+v", through)
	}
	if s := suggest(yes, yes, yes, denied); len(s.Suggestions) != 0 {
		t.Errorf("the very call was denied: %v", s.Suggestions)
	}
	if s := suggest(yes, yes, yes, masked); len(s.Suggestions) != 0 || s.Untold != 1 {
		t.Errorf("nobody knows what was denied: %v", s)
	}
	uses := history.Uses([]history.Call{{Refs: []string{"user/1"}}, {Refs: []string{"user/1", "grant/g"}}})
	if uses["user/1"].Calls != 2 || uses["grant/g"].Calls != 1 {
		t.Errorf("uses: %v", uses)
	}
}
