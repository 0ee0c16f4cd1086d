//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// clientsDir names a directory whose node_modules holds clients and frameworks.
const clientsDir = "TOOLHUB_CLIENTS_DIR"

// npmClients is the directory of the clients from npm. The test is skipped where there is none.
func npmClients(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(clientsDir)
	if dir == "" {
		t.Skip(clientsDir + " names no directory with the clients from npm that .ci/run installs")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// node runs a script of testdata/clients with the packages of clients, or a program of theirs, and returns what it printed.
func node(t *testing.T, clients, script string, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := nodeCommand(t, clients, script, args...)
	var said, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaints
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%s %w: %.3000s", filepath.Base(script), err, complaints.String())
	}
	return said.String(), err
}

// nodeCommand is the command of node.
func nodeCommand(t *testing.T, clients, script string, args ...string) *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	if !filepath.IsAbs(script) {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "clients", script))
		if err != nil {
			t.Fatal(err)
		}
		script = filepath.Join(home, script)
		if err := os.WriteFile(script, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(clients, "node_modules"), filepath.Join(home, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = home, scratchEnv(home)
	return cmd
}

// TestFrameworksFromNPM: frameworks that hand tools' names to a model's API as they are get names that OpenAI and Anthropic
// take, and their calls arrive.
func TestFrameworksFromNPM(t *testing.T) {
	t.Parallel()
	clients := npmClients(t)
	long := "a.tool-with.dots_and-a-name-that.is-longer-than-any-model-takes.it"
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}},
		"fake": child(upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool(long))}),
	}, neverDeferred()))
	for _, framework := range []string{"ai-sdk", "langchain", "agents", "mastra"} {
		for _, vendor := range []string{"openai", "anthropic"} {
			if only := framework == "agents" || framework == "mastra"; only && (vendor != "openai" || os.Getenv("TOOLHUB_LONG") == "") {
				continue // .ci/long installs them
			}
			t.Run(framework+"/"+vendor, func(t *testing.T) {
				t.Parallel()
				out, err := node(t, clients, framework+".mjs", hub.url+"/mcp", vendor, modelAPI(t, modelCall{"demo__add", given(`{"a":3,"b":4}`)}))
				if err != nil {
					t.Fatal(err)
				}
				var got struct {
					Tools []string
					Text  string
				}
				mustDecode(t, out, &got)
				if !strings.Contains(got.Text, `sum`) || !strings.Contains(got.Text, `7`) {
					t.Errorf("the model says %s", got.Text)
				}
				checkNames(t, framework, got.Tools, true)
			})
		}
	}
}

// given returns arguments that depend on no result.
func given(args string) func(string) string { return func(string) string { return args } }

// third returns the arguments of tool_call for the third hit of a search, which has to be report_c: hits that fit alike are in
// the order of their names.
func third(last string) string {
	hits := strings.SplitN(last, "selection_ref: ", 5)
	if len(hits) < 4 || !strings.Contains(hits[2], "mcp__fake__report_c") {
		return `{"name":"none"}`
	}
	ref := regexp.MustCompile(`^[\w-]+`).FindString(hits[3])
	return fmt.Sprintf(`{"name":"mcp__fake__report_c","arguments":{},"selection_ref":%q}`, ref)
}

// TestFrameworksSearchFromNPM: the model of a framework searches and calls the third hit, is told that nothing fits, and gets
// a declaration by its name.
func TestFrameworksSearchFromNPM(t *testing.T) {
	t.Parallel()
	clients := npmClients(t)
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}},
		"fake": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("report_a"), upstreamtest.Tool("report_b"),
			upstreamtest.Tool("report_c"), upstreamtest.Tool("report_d")}}),
	}, alwaysDeferred))
	search := func(query string) modelCall {
		return modelCall{"tool_search", given(fmt.Sprintf(`{"query":%q}`, query))}
	}
	for what, c := range map[string]struct {
		calls []modelCall
		want  string
	}{
		"third hit":     {[]modelCall{search("fake report"), {"tool_call", third}}, `\bok\b`},
		"no match":      {[]modelCall{search("Book a hotel room")}, `Nothing fits|No tool was found`},
		"a declaration": {[]modelCall{search("select:mcp.demo.add")}, `inputSchema.*selection_ref: `},
	} {
		for framework, vendor := range map[string]string{"ai-sdk": "anthropic", "langchain": "openai"} {
			t.Run(framework+"/"+what, func(t *testing.T) {
				t.Parallel()
				out, err := node(t, clients, framework+".mjs", hub.url+"/mcp", vendor, modelAPI(t, c.calls...))
				if err != nil {
					t.Fatal(err)
				}
				var got struct{ Text string }
				mustDecode(t, out, &got)
				if !regexp.MustCompile(c.want).MatchString(got.Text) {
					t.Errorf("the model says %s", got.Text)
				}
			})
		}
	}
}

// TestInspectorFromNPM: the Inspector, which lists or calls as soon as it has started the hub, gets the tools of servers that
// are still starting. It is shown canonical names.
func TestInspectorFromNPM(t *testing.T) {
	t.Parallel()
	clients := npmClients(t)
	inspector := filepath.Join(clients, "node_modules", "@modelcontextprotocol", "inspector", "cli", "build", "cli.js")
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	for method, more := range map[string][]string{
		"tools/list": nil,
		"tools/call": {"--tool-name", "mcp.demo.add", "--tool-arg", "a=3", "--tool-arg", "b=4"},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "hub.json")
			if err := os.WriteFile(config, []byte(configText(t, map[string]any{
				"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}},
			}, nil)), 0o600); err != nil {
				t.Fatal(err)
			}
			servers := filepath.Join(dir, "inspector.json")
			if err := os.WriteFile(servers, []byte(`{"mcpServers":{"toolhub":{"command":`+quoted(program)+`,"args":["serve","--config",`+
				quoted(config)+`,"--state-dir",`+quoted(filepath.Join(dir, "state"))+`]}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := node(t, clients, inspector, append([]string{"--cli", "--config", servers, "--server", "toolhub", "--method", method}, more...)...)
			if err != nil {
				t.Fatal(err)
			}
			want := regexp.MustCompile(`"name": "mcp\.demo\.add"`)
			if method == "tools/call" {
				want = regexp.MustCompile(`"sum": 7`)
			}
			if !want.MatchString(out) {
				t.Errorf("%s printed %.2000s", method, out)
			}
		})
	}
}
