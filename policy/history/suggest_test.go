package history_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// TestSuggest holds which rules are suggested, and what holds them back.
func TestSuggest(t *testing.T) {
	t.Parallel()
	n := 0
	calls := func(name tool.Name, a history.Answer, inputs ...string) (all []history.Call) {
		for _, input := range inputs {
			n++
			all = append(all, history.Call{ID: tool.InvocationID(fmt.Sprint("inv_", n)), Tool: name, Answer: a,
				Actor: tool.Actor{Door: "http", Name: "ann"}, Input: []byte(input), Said: tool.PermissionDecision{Behavior: tool.Ask}})
		}
		return all
	}
	const comment, restart, shell, fetch, read tool.Name = "mcp.tracker.comment", "mcp.cluster.restart", "mcp.shell.run", "mcp.web.fetch", "mcp.fs.read_file"
	three := []string{`{"issue_id":"1"}`, `{"issue_id":"2"}`, `{"issue_id":"3"}`}
	same := slices.Repeat([]string{`{"namespace":"test"}`}, 3)
	masked := calls(comment, history.Denied, `{}`)
	masked[0].Lost = "its arguments are masked"
	for name, c := range map[string]struct {
		calls   []history.Call
		tools   []string // that the rule names
		when    string
		through int
	}{
		"two answers":   {calls(comment, history.Allowed, three[:2]...), nil, "", 0},
		"three answers": {calls(comment, history.Allowed, three...), []string{string(comment)}, "", 0},
		"what nobody answered": {slices.Concat(calls(comment, history.Allowed, three...), calls(comment, history.Unanswered, `{}`)),
			[]string{string(comment)}, "", 1},
		"two tools of a server": {slices.Concat(calls(restart, history.Allowed, same...), calls("mcp.cluster.scale", history.Allowed, same...)),
			[]string{string(restart), "mcp.cluster.scale"}, "", 0},
		"denied as well": {slices.Concat(calls(restart, history.Allowed, same...), calls(restart, history.Denied, `{"namespace":"prod"}`)),
			[]string{string(restart)}, `arguments in [{"namespace":"test"}]`, 0},
		"the very call was denied":                  {slices.Concat(calls(restart, history.Denied, same[0]), calls(restart, history.Allowed, same...)), nil, "", 0},
		"nobody knows what was denied":              {slices.Concat(calls(comment, history.Allowed, three...), masked), nil, "", 0},
		"a dangerous tool":                          {calls(shell, history.Allowed, slices.Repeat([]string{`{"command":"df -h"}`}, 3)...), nil, "", 0},
		"a tool that is named for what it destroys": {calls("mcp.crm.delete_customer", history.Allowed, slices.Repeat([]string{`{}`}, 3)...), nil, "", 0},
		"hosts": {calls(fetch, history.Allowed, slices.Repeat([]string{`{"url":"https://go.dev/x"}`}, 3)...), nil, "", 0},
		"paths": {calls(read, history.Allowed, slices.Repeat([]string{`{"path":"/home/ann/x"}`}, 3)...), nil, "", 0},
	} {
		s, err := history.Suggest(t.Context(), history.Past{Calls: c.calls, Tools: declared(), Gate: policyOf})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Suggestions) == 0 || c.tools == nil {
			if len(s.Suggestions) != 0 || c.tools != nil {
				t.Errorf("%s: %+v", name, s)
			}
			continue
		}
		one := s.Suggestions[0]
		if len(s.Suggestions) != 1 || !slices.Equal(one.Rule.Match, c.tools) || !slices.Equal(one.Rule.Actor, []string{"ann"}) ||
			one.Rule.Then != tool.Allow || one.Rule.When != c.when || len(one.Else) != c.through || s.Spared != len(one.Calls) || s.Spared != 3*len(c.tools) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestUses(t *testing.T) {
	t.Parallel()
	uses := history.Uses([]history.Call{{Refs: []string{"user/1"}}, {Refs: []string{"user/1", "grant/g"}}})
	if uses["user/1"].Calls != 2 || uses["grant/g"].Calls != 1 {
		t.Errorf("uses: %v", uses)
	}
}
