package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// programs finds every program but "none".
type programs struct{ dir string }

func (p programs) Dir(string) (string, error) { return p.dir, nil }

func (p programs) Find(name, dir string) (string, error) {
	if name == "none" {
		return "", errors.New("there is no such program")
	}
	return dir + "/" + name, nil
}

// An executor is told which program was permitted, by a rule or by a person, and what a person has put in its place.
func TestPermittedCommand(t *testing.T) {
	t.Parallel()
	allow := policy.Rule{Match: []string{"code.run"}, Then: tool.Allow}
	for _, c := range []struct {
		name   string
		rules  []policy.Rule
		argv   string
		edited string
		want   *tool.Command
	}{
		{"by a rule", []policy.Rule{allow}, `["a","b"]`, "", &tool.Command{Program: "/p/a", Dir: "/p"}},
		{"by a person", nil, `["a","b"]`, "", &tool.Command{Program: "/p/a", Dir: "/p"}},
		{"changed by a person", nil, `["a","b"]`, `{"argv":["c"]}`, &tool.Command{Program: "/p/c", Dir: "/p"}},
		{"not found", []policy.Rule{allow}, `["none"]`, "", nil},
	} {
		var seen []tool.Execution
		b := newBench(t, "", nil)
		b.opts.Executors = map[string]Executor{"code": executorFunc(func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			seen = append(seen, *e)
			return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
		})}
		g, err := gate.New(gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: c.rules}}},
			gate.Options{Sources: map[string]gate.ToolSource{"code": {Trust: true, Dir: "/p", Commands: programs{"/p"}}}})
		if err != nil {
			t.Fatal(err)
		}
		b.around.gate, b.opts.Approvals = func() *gate.Gate { return g }, approval.New(approval.Options{})
		input := json.RawMessage(`{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"}}}}`)
		run := &tool.Tool{Name: "code.run", Server: "code", Native: "run", InputSchema: input, SchemaDigest: tool.Digest(input)}
		call := b.callInRounds(t.Context(), `{"name":"code.run"}`)
		call.Surface = tool.NewSurface("srf_x", "default", "canonical", "x", []tool.Listed{{Name: "code.run", Tool: run}}, nil, map[string]int{"code.run": 0})
		call.Name, call.Arguments = "code.run", json.RawMessage(`{"argv":`+c.argv+`}`)
		call.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
			if c.edited == "" {
				return said("allow_once"), nil
			}
			for _, q := range b.opts.Approvals.List() {
				edited := approval.Answer{Choice: policy.AllowOnce, Arguments: json.RawMessage(c.edited), By: "bob"}
				if err := b.opts.Approvals.Answer(q.ID, edited); err != nil {
					t.Error(err)
				}
			}
			return nil, context.Canceled
		}
		o := b.Invoke(t.Context(), call)
		switch {
		case c.want == nil && (len(seen) > 0 || o.Class != tool.ClassPolicyBlocked):
			t.Errorf("%s: %+v %s", c.name, o, o.Result)
		case c.want != nil && (len(seen) != 1 || seen[0].Command == nil || *seen[0].Command != *c.want):
			t.Errorf("%s: %+v %s", c.name, seen, o.Result)
		}
	}
}
