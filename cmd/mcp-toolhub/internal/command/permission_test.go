//go:build unix

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// place is a project with a few programs, and a gate that knows where commands run.
type place struct {
	dir  string
	gate *gate.Gate
	tool *tool.Tool
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"sub", "bin", "state"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"bin/lister", "bin/other", "bin/bash", "sub/lister"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin/alias": "lister", "bin/innocent": "bash", "key": ".env"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	bounds, err := command.NewBounds(command.Config{Root: dir, Environ: []string{"PATH=" + filepath.Join(dir, "bin")}})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(t.TempDir(), "grants.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir}
	p.gate, err = gate.New(gate.Config{}, gate.Options{Dir: dir, Grants: grants, State: filepath.Join(dir, "state"),
		Sources: map[string]gate.ToolSource{"code": {Trust: true, Dir: dir, Commands: bounds,
			Env: map[tool.Name][]string{"code.run_command": {"HOME", "PATH"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"}},"cwd":{"type":"string"}}}`)
	p.tool = &tool.Tool{Name: "code.run_command", Server: "code", Native: "run_command", InputSchema: schema, SchemaDigest: tool.Digest(schema),
		Declaration: json.RawMessage(`{"name":"run_command","inputSchema":` + string(schema) + `}`), Tags: []string{"dangerous"}}
	return p
}

func (p *place) request(t *testing.T, cwd string, argv ...string) policy.Request {
	t.Helper()
	arguments := map[string]any{"argv": argv}
	if cwd != "" {
		arguments["cwd"] = cwd
	}
	input, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.gate.Request(t.Context(), policy.Request{Tool: p.tool, Input: input,
		Actor: tool.Actor{Name: "ann", Door: "http", Session: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A decision about a command is about the file that it runs and the directory where it runs.
func TestCommands(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, c := range []struct {
		cwd, program string
		want, in     string
	}{
		{"", "lister", "bin/lister", ""},
		{"sub", "lister", "bin/lister", "sub"},
		{"sub", "./lister", "sub/lister", "sub"},
		{"", "sub/lister", "sub/lister", ""},
		{"", "alias", "bin/lister", ""},
		{"sub", "../bin/alias", "bin/lister", "sub"},
	} {
		r := p.request(t, c.cwd, c.program, "-l")
		got := gate.PermittedBy(&r).Command
		if got == nil || got.Program != filepath.Join(p.dir, c.want) || got.Dir != filepath.Join(p.dir, c.in) || r.CWD != got.Dir {
			t.Errorf("%+v: %+v in %s", c, got, r.CWD)
		}
	}
	for _, c := range [][]string{{"", "nope"}, {"..", "lister"}, {"/", "lister"}, {"none", "lister"}, {"", ""}} {
		r := p.request(t, c[0], c[1])
		d := p.gate.Engine.Decide(r)
		if d.Behavior != tool.Deny || gate.PermittedBy(&r).Command != nil {
			t.Errorf("%q: %s %v", c, d.Behavior, d.Reason)
		}
	}
	r := p.request(t, "", "lister")
	d := p.gate.Engine.Decide(r)
	if text := gate.Message(gate.Asked{Request: &r, Decision: &d}); !strings.Contains(text, "\nGets of the environment: HOME PATH\n") || strings.Contains(text, "server's own") {
		t.Errorf("the question is\n%s", text)
	}
	if r := p.request(t, "", "innocent"); !r.Targets[0].Has(target.Wrapper) {
		t.Errorf("a link to a shell is no shell: %+v", r.Targets)
	}
	mcp := &policy.Request{Tool: &tool.Tool{Name: "mcp.a.b"}, Targets: []target.Target{{Kind: target.Command, Executable: "ls"}}}
	if gate.PermittedBy(mcp).Command != nil {
		t.Error("the command of a server was found here")
	}
}

// A word that leads to what the hub keeps to itself denies the command, whoever has allowed it.
func TestCommandsAndTheHubsSecrets(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := os.Symlink("state", filepath.Join(p.dir, "sub", "near")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../state", filepath.Join(p.dir, "sub", "up")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.gate.Engine.Settle(p.request(t, "", "lister"),
		policy.Settlement{Choice: policy.AllowAlways, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"lister", "state/run/1.json"}, {"lister", p.dir + "/state/state.key"}, {"lister", "state"}, {"lister", "sub/../state/x"},
		{"lister", "sub/up/grants.yaml"}, {"lister", "--file=state/x"}, {"lister", "-fstate/x"}, {"lister", "-d", "@state/x"}, {"lister", "--data=@state/x"},
		{"lister", "if=" + p.dir + "/state/x"}, {"lister", "file://" + p.dir + "/state/x"}, {"lister", "a", "b", "STATE/run"}, {"lister", "--", "state/x"},
	} {
		d := p.gate.Engine.Decide(p.request(t, "", argv...))
		if d.Behavior != tool.Deny || d.BlockedPath == "" {
			t.Errorf("%q: %s %v", argv, d.Behavior, d.Reason)
		}
	}
	if d := p.gate.Engine.Decide(p.request(t, "state", "lister", "run/1.json")); d.Behavior != tool.Deny {
		t.Errorf("in the directory itself: %s %v", d.Behavior, d.Reason)
	}
	for _, word := range []string{"statement", "sub/near/x", "-state", "a=b", "@", "-", "="} {
		if d := p.gate.Engine.Decide(p.request(t, "", "lister", word)); d.Behavior != tool.Allow {
			t.Errorf("%q: %s %v", word, d.Behavior, d.Reason)
		}
	}
	// what cannot be told is asked about where it reads like something sensitive
	for _, word := range []string{"/proc/self/root" + p.dir + "/state/x", "/proc/1/environ", "$X/.env"} {
		if d := p.gate.Engine.Decide(p.request(t, "", "lister", word)); d.Behavior != tool.Ask {
			t.Errorf("%q: %s %v", word, d.Behavior, d.Reason)
		}
	}
}

// What a person has allowed for a session is one program in one directory, and no sensitive file.
func TestCommandGrants(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.request(t, "", "lister", "-l")
	if d := p.gate.Engine.Decide(first); d.Behavior != tool.Ask {
		t.Fatalf("%s %v", d.Behavior, d.Reason)
	}
	if _, err := p.gate.Engine.Settle(first, policy.Settlement{Choice: policy.AllowSession, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cwd  string
		argv []string
		want tool.Behavior
	}{
		{"other arguments", "", []string{"lister", "-a", "x"}, tool.Allow},
		{"the same program by its path", "", []string{"./bin/../bin/lister"}, tool.Allow},
		{"the same file by another name", "", []string{"alias"}, tool.Ask},
		{"another program", "", []string{"other", "-l"}, tool.Ask},
		{"another directory", "sub", []string{"lister", "-l"}, tool.Ask},
		{"a program of that name elsewhere", "", []string{"./sub/lister"}, tool.Ask},
		{"a sensitive file", "", []string{"lister", ".env"}, tool.Ask},
		{"a sensitive file behind an option", "", []string{"lister", "--file=.env"}, tool.Ask},
		{"a link to a sensitive file", "", []string{"lister", "key"}, tool.Ask},
		{"a directory of keys", "", []string{"lister", "sub/../.ssh/id"}, tool.Ask},
	} {
		if d := p.gate.Engine.Decide(p.request(t, c.cwd, c.argv...)); d.Behavior != c.want {
			t.Errorf("%s: %s %v", c.name, d.Behavior, d.Reason)
		}
	}
	// by another name it may be another program, and is remembered as that
	if _, err := p.gate.Engine.Settle(p.request(t, "", "alias"),
		policy.Settlement{Choice: policy.AllowAlways, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if d := p.gate.Engine.Decide(p.request(t, "", "bin/alias", "-x")); d.Behavior != tool.Allow {
		t.Errorf("%s %v", d.Behavior, d.Reason)
	}
	// a shell runs anything: only this very call is remembered
	shell := p.request(t, "", "innocent", "-c", "x")
	if _, err := p.gate.Engine.Settle(shell, policy.Settlement{Choice: policy.AllowSession, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if d := p.gate.Engine.Decide(p.request(t, "", "innocent", "-c", "y")); d.Behavior != tool.Ask {
		t.Errorf("a shell was allowed for whatever it is given: %v", d.Reason)
	}
	// the file behind the name is another one by now
	if err := os.Remove(filepath.Join(p.dir, "bin/lister")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", filepath.Join(p.dir, "bin/lister")); err != nil {
		t.Fatal(err)
	}
	if d := p.gate.Engine.Decide(p.request(t, "", "lister", "-l")); d.Behavior != tool.Ask {
		t.Errorf("another program was allowed: %v", d.Reason)
	}
}
