//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// bounded is what the records of a tool say of its limits and credentials. Nil is a member that is not there.
type bounded struct {
	TimeoutMS   *int64   `json:"timeout_ms"`
	Required    []string `json:"required_credentials"`
	Credentials []string `json:"credential_refs"`
}

// The records of a tool say how long a call may take, and by name what its server is given to sign in with; where the hub knows
// nothing of it they say nothing. All of them are the standard's.
func TestToolsShowWhatBoundsThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	declared := filepath.Join(dir, "config", "mcp-toolhub", "tools")
	if err := os.MkdirAll(declared, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(declared, "greet.json"), `{"name":"greet","description":"Greets","input_schema":{"type":"object","properties":{}},"permission":"readonly",
		"command_type":"exec","command":"true","args":[],"timeout_ms":7000,"env_allowlist":["GREET_TOKEN"]}`)
	server := child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})
	server["env"].(map[string]any)["API_TOKEN"] = "${env:FAR_TOKEN}"
	server["timeout"], server["timeout_max"] = "5s", "9s"
	file := filepath.Join(dir, "hub.json")
	writeFile(t, file, configText(t, map[string]any{"s": server}, map[string]any{"hub": map[string]any{"toolsets": map[string]any{
		"code": map[string]any{"root": ".", "allowed_write_roots": []string{"."}, "run_command": map[string]any{"timeout": "4s",
			"env": []string{"RUN_SECRET", "GOPATH"}}}}}}))
	n := func(v int64) *int64 { return &v }
	for name, want := range map[string]bounded{
		"code.read_file":    {nil, nil, nil},
		"code.search":       {n(20_000), nil, nil},
		"code.run_command":  {n(4000), []string{"env:RUN_SECRET"}, nil},
		"declarative.greet": {n(7000), []string{"env:GREET_TOKEN"}, nil},
		"mcp.s.echo":        {n(9000), []string{"env:FAR_TOKEN"}, nil},
	} {
		want.Credentials = want.Required
		records := toolRecords(t, dir, name, "--config", file)
		execution, permission := records["tool_execution_profile"], records["tool_permission_profile"]
		face := records["tool_interface"]
		if !same(execution.TimeoutMS, want.TimeoutMS) || !same(face.TimeoutMS, want.TimeoutMS) {
			t.Errorf("%s: timeout_ms %v, %v, want %v", name, shownInt(execution.TimeoutMS), shownInt(face.TimeoutMS), shownInt(want.TimeoutMS))
		}
		if !slices.Equal(face.Required, want.Required) || !slices.Equal(permission.Credentials, want.Credentials) {
			t.Errorf("%s: credentials %q, %q, want %q", name, face.Required, permission.Credentials, want.Required)
		}
	}
}

func shownInt(n *int64) any {
	if n == nil {
		return "none"
	}
	return *n
}

// toolRecords are what tools show prints of a tool, each held against the standard's schema of it.
func toolRecords(t *testing.T, dir, name string, args ...string) map[string]bounded {
	t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"tools", "show", name, "-o", "json"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(scratchEnv(dir), "FAR_TOKEN=hunter2", "GREET_TOKEN=hunter2", "RUN_SECRET=hunter2")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil || strings.Contains(out.String()+log.String(), "hunter2") {
		t.Fatalf("tools show %s: %v\n%s\n%s", name, err, out.String(), log.String())
	}
	var raw map[string]json.RawMessage
	mustDecode(t, out.String(), &raw)
	schemas, err := recordSchemas()
	if err != nil {
		t.Fatal(err)
	}
	records := make(map[string]bounded)
	for object, text := range raw {
		if !strings.HasPrefix(object, "tool_") {
			continue
		}
		var b bounded
		mustDecode(t, string(text), &b)
		records[object] = b
		schema := schemas[tool.Object(object)]
		if schema == nil {
			continue // the standard is not at hand
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s of %s: %v", object, name, err)
		}
	}
	return records
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
