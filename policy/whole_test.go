package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// TestOneToolFromItsDeclarationOn: facts, targets, limits and rules as a hub puts them together, on a real directory. A
// person grants one directory; a link out of it, a sensitive file in it and another directory are asked about again.
func TestOneToolFromItsDeclarationOn(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "src", "out")); err != nil {
		t.Skip(err)
	}
	declaration := `{"name":"write_file","description":"Write a file.","inputSchema":{"type":"object",
		"properties":{"path":{"type":"string","description":"Path of the file"},"content":{"type":"string"}}}}`
	described := &tool.Tool{Name: "mcp.fs.write_file", Server: "fs", Native: "write_file", Declaration: json.RawMessage(declaration),
		Description: "Write a file."}
	var parts struct{ InputSchema json.RawMessage }
	if err := json.Unmarshal(described.Declaration, &parts); err != nil {
		t.Fatal(err)
	}
	described.InputSchema, described.SchemaDigest = parts.InputSchema, tool.Digest(parts.InputSchema)
	f := facts.Of(described, facts.Options{})
	plan, root := target.Find(f), target.NewRoot(dir, "")
	limits, err := target.NewLimits(target.Config{}, target.HubPaths{})
	if err != nil {
		t.Fatal(err)
	}
	e := compile(t, policy.Settings{Grants: openGrants(t, policy.GrantOptions{})})
	request := func(path string) policy.Request {
		input, err := json.Marshal(map[string]string{"path": path, "content": "x"})
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Request{Tool: described, Facts: f, Actor: tool.Actor{Name: "ann", Door: "http", Session: "s1"}, CWD: dir, Input: input}
		if r.Targets, err = plan.Resolve(t.Context(), r.Input, root); err != nil {
			t.Fatal(err)
		}
		r.Findings = limits.Judge(r.Targets, root)
		return r
	}
	decides(t, e, request("src/a.go"), tool.Ask, "default")
	if d, err := e.Settle(request("src/a.go"), policy.Settlement{Choice: policy.AllowSession}); err != nil || d.Behavior != tool.Allow {
		t.Fatalf("%+v, %v", d, err)
	}
	decides(t, e, request("src/b.go"), tool.Allow, "session_grant")
	decides(t, e, request(filepath.Join(dir, "other", "..", "src", "c.go")), tool.Allow, "session_grant")
	decides(t, e, request("src/../other/b.go"), tool.Ask, "default")
	decides(t, e, request("src/out/b.go"), tool.Ask, "default")
	if d := decides(t, e, request("src/.env"), tool.Ask, "limit"); d.BlockedPath != filepath.Join(dir, "src", ".env") {
		t.Errorf("%+v", d)
	}
	if d := decides(t, e, request("/etc/hosts"), tool.Ask, "limit"); d.BlockedPath == "" {
		t.Errorf("%+v", d)
	}
	decides(t, e, request("src/a\x00b"), tool.Deny, "limit")
	changed := *described
	changed.SchemaDigest = "another"
	r := request("src/b.go")
	r.Tool = &changed
	decides(t, e, r, tool.Ask, "default")
	changed = *described
	changed.SourceDigest = "of the file that declares it by now"
	decides(t, e, r, tool.Ask, "default")
}
