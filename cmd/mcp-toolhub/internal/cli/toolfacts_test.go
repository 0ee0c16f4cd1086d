//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"maps"
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

// TestToolsShowIsTheSameOfAHubFarAway: whatever a client finds listed, or may call without, tools show prints of it byte for byte what it
// prints with --url.
func TestToolsShowIsTheSameOfAHubFarAway(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{"far": child(upstreamtest.Script{Tools: []json.RawMessage{
		upstreamtest.Tool("echo"), json.RawMessage(`{"name":"sum","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)}})}, map[string]any{
		"deferred": map[string]any{"mode": "always"},
		"hub":      map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": "."}}},
		"profiles": map[string]any{"default": map[string]any{"tools": []any{
			map[string]any{"match": "mcp.far.echo", "name": "say", "description": "Says it."}}}}}))
	env := make(map[string]string)
	for _, variable := range scratchEnv(hub.cmd.Dir) {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	// tools runs do as a command does, at url or in a hub of its own, and returns what it prints.
	apart := t.TempDir()
	tools := func(url string, do func(*toolsCmd, toolbox) error) string {
		var out, log bytes.Buffer
		c := &toolsCmd{url: url, profile: "default", app: &app{configPath: filepath.Join(hub.cmd.Dir, "hub.json"), stateDir: apart, format: "json", std: streams{out: &out,
			err: &log, getenv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}}}
		if err := c.with(t.Context(), "", func(box toolbox) error { return do(c, box) }); err != nil || log.Len() > 0 {
			t.Errorf("tools at %q: %v: %s", url, err, log.String())
		}
		return out.String()
	}
	eventually(t, "the server is ready", func() bool { return hub.server(t, "far").State == "ready" })
	var all struct{ Tools []struct{ Name string } }
	mustDecode(t, tools("", func(c *toolsCmd, box toolbox) error { return c.list(t.Context(), box, false) }), &all)
	names := slices.AppendSeq([]string{"mcp.far.echo", "tool_batch", "result_read"}, maps.Keys(wireHTTP(t, hub.url+"/mcp", rev2026).tools()))
	for _, one := range all.Tools {
		names = append(names, one.Name)
	}
	for _, name := range []string{"tool_search", "tool_call", "mcp.far.say", "mcp.far.sum", "code.read_file"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	show := func(url string) (shown []string) {
		for _, form := range []string{"table", "json"} {
			said := tools(url, func(c *toolsCmd, box toolbox) error {
				c.format = form
				for _, name := range names {
					if err := c.std.print([]byte("\x00" + name + ", " + form + "\n")); err != nil {
						return err
					}
					if err := c.show(t.Context(), box, name); err != nil {
						return err
					}
				}
				return nil
			})
			shown = append(shown, strings.Split(said, "\x00")[1:]...)
		}
		return shown
	}
	here, there := show(""), show(hub.url)
	if len(here) != 2*len(names) || len(there) != len(here) {
		t.Fatalf("%d tools are shown here and %d there, in two forms, of %q", len(here), len(there), names)
	}
	for i := range here {
		if here[i] != there[i] {
			t.Errorf("%s\nwith --url:\n%s", here[i], there[i])
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
