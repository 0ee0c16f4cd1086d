package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// aimed makes a bench whose tool takes a path, and notes what its executor is told about it.
func aimed(t *testing.T, native string, told *[]tool.Aim) *bench {
	t.Helper()
	b := newBench(t, "", func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		*told = e.Aims
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	})
	input := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","maxLength":200}},"required":["path"],"additionalProperties":false}`)
	name := tool.Name("mcp.s." + native)
	b.surface = tool.NewSurface("srf_x", "default", "canonical", "x", []tool.Listed{{Name: string(name), Tool: &tool.Tool{Name: name, Server: "s",
		Native: native, InputSchema: input, SchemaDigest: tool.Digest(input), Description: "One file."}}}, nil, map[string]int{"mcp.s.t": 0})
	return b
}

func (b *bench) aimAt(ctx context.Context, path string) Outcome {
	c := b.callInRounds(ctx, `{"name":"x"}`)
	c.Arguments = json.RawMessage(fmt.Sprintf(`{"path":%q}`, path))
	return b.Invoke(ctx, c)
}

// An executor is told where the paths of a call led when it was permitted: by a rule, by a person, or after a person has put
// another path in the place of the caller's, which is validated and resolved like the first.
func TestExecutorsKnowWhatWasPermitted(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link, other := filepath.Join(dir, "link"), filepath.Join(dir, "other")
	if err := os.Symlink(filepath.Join(dir, "real"), link); err != nil {
		t.Skip(err)
	}
	want := func(told []tool.Aim, path string) {
		t.Helper()
		if !slices.Equal(told, []tool.Aim{{Argument: "/path", Path: path}}) {
			t.Errorf("told %v, want %s", told, path)
		}
	}
	var told []tool.Aim
	b := aimed(t, "read_text", &told)
	reads := facts.Config{Tools: []facts.Override{{Match: "*", ReadOnly: new(true)}}}
	allow := policy.Rule{Match: []string{"mcp.*"}, Then: tool.Allow}
	g, err := gate.New(gate.Config{Tools: reads, Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{allow}}}}, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.guarded(t).Store(g)
	if o := b.aimAt(t.Context(), link); o.Status != tool.StatusSucceeded {
		t.Fatalf("%s %s", o.Status, o.Result)
	}
	want(told, filepath.Join(dir, "real"))

	told = nil
	b = aimed(t, "write_text", &told)
	b.guarded(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Allow}) // and yet it is asked about: it lies outside
	b.around.open = true
	changes := b.opts.Approvals.Watch(t.Context())
	answer := func(a approval.Answer) Outcome {
		a.By = "queue/op"
		go func() {
			for e := range changes {
				if b.opts.Approvals.Answer(e.Question.ID, a) == nil {
					return
				}
			}
		}()
		return b.aimAt(t.Context(), link)
	}
	if o := answer(approval.Answer{Choice: policy.AllowOnce}); o.Status != tool.StatusSucceeded {
		t.Fatalf("%s %s", o.Status, o.Result)
	}
	want(told, filepath.Join(dir, "real"))
	edited := json.RawMessage(fmt.Sprintf(`{"path":%q}`, other))
	if o := answer(approval.Answer{Choice: policy.AllowOnce, Arguments: edited}); o.Status != tool.StatusSucceeded {
		t.Fatalf("%s %s", o.Status, o.Result)
	}
	want(told, other)
	told = nil
	go func() { // what the tool does not take is no answer: the person hears so, and the call waits for another one
		for e := range changes {
			wrong := approval.Answer{Choice: policy.AllowOnce, By: "queue/op", Arguments: json.RawMessage(`{"path":"x","mode":1}`)}
			if e.Kind == approval.Asked {
				err := b.opts.Approvals.Answer(e.Question.ID, wrong)
				if err == nil || !strings.Contains(err.Error(), "the call still waits: ") {
					t.Errorf("arguments that are invalid once edited: %v", err)
				}
				_ = b.opts.Approvals.Answer(e.Question.ID, approval.Answer{Choice: policy.DenyOnce, By: "queue/op"})
				return
			}
		}
	}()
	if o := b.aimAt(t.Context(), link); o.Class != tool.ClassApprovalRejected || told != nil {
		t.Errorf("%s %s, told %v", o.Status, o.Result, told)
	}
}

// A path that leads elsewhere once the call has its turn is judged again: the call runs where it may go there, too, and no answer of a
// person holds for it.
func TestTargetsAreJudgedAgain(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var told []tool.Aim
	b := aimed(t, "write_text", &told)
	g := gateIn(t, root, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Allow})
	b.around.gate = func() *gate.Gate { return g }
	outside := t.TempDir()
	for i, c := range []struct{ to, code string }{{filepath.Join(root, "inner"), ""}, {outside, "path_changed"}, {"", ""}} {
		link := filepath.Join(root, fmt.Sprint("link", i))
		call := b.callOf("mcp.s.t", fmt.Sprintf(`{"path":%q}`, filepath.Join(link, "x")))
		call.Member = &Member{Parent: "inv_batch", Turn: func(context.Context) error {
			if c.to == "" { // it is there by now, and leads nowhere else
				return os.Mkdir(link, 0o700)
			}
			return os.Symlink(c.to, link)
		}}
		told = nil
		o := b.Invoke(t.Context(), call)
		switch {
		case c.code != "" && (o.Error == nil || o.Error.ErrorCode != c.code || told != nil):
			t.Errorf("link to %s: %s %+v, told %v", c.to, o.Status, o.Error, told)
		case c.code == "" && (o.Status != tool.StatusSucceeded || c.to != "" && told[0].Path != filepath.Join(c.to, "x")):
			t.Errorf("link to %s: %s %+v, told %v", c.to, o.Status, o.Error, told)
		}
	}
}
