//go:build e2e

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestBundle greps the bundle of a hub that runs, and of one whose config is broken, for what must not be in it: secrets of the config, of
// calls and of servers' output, and arguments, results and errors of calls.
func TestBundle(t *testing.T) {
	t.Parallel()
	const literal, colour = "literal-value-77", "a-colour-that-nobody-may-know" // the name of the second tells nothing
	const header, private = "Bearer header-value-88", "ghp_" + "Zk3mQ9vX7bT2wL5nR8cJ4hF6dS1aG0yPuE2i"
	server := child(upstreamtest.Script{Stderr: []string{"I was told inner-argument-1", "my key is " + private}})
	server["env"].(map[string]any)["DEMO_API_KEY"] = literal
	server["env"].(map[string]any)["DEMO_COLOUR"] = colour
	config := configText(t, map[string]any{"s": server,
		"gone": map[string]any{"type": "http", "url": "http://ann:url-password-99@127.0.0.1:1/mcp", "headers": map[string]any{"X-Auth": header}}}, nil)
	running := startHubIn(t, []string{"ALSO_SECRET=env-value-66"}, "hub.json", strings.Replace(config, `"mcpServers"`, `"$schema":"x","mcpServers"`, 1))
	w := wireHTTP(t, running.url+"/mcp", rev2025).open()
	w.result("mcp.s.echo", `{"text":"inner-argument-2 `+private+`"}`, "")
	w.send(w.call("mcp.s.answer", `{"text":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32603,\"message\":\"inner-argument-3\"}}"}`, ""))
	eventually(t, "the call that failed is in the log", func() bool { return strings.Contains(running.log(), "inner-argument-3") })
	old := `{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"inner-argument-4","server":"s","stream":"stderr"}` + "\n" +
		`{"time":"2026-01-01T00:00:01Z","level":"WARN","msg":"call failed","cause":"inner-argument-5","note":"` + literal + `"}` + "\n"
	if err := os.WriteFile(filepath.Join(running.cmd.Dir, "state", "mcp-toolhub", hub.LogFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(running.cmd.Dir, "report.txt")
	said := running.command(t, "doctor", "--bundle", file, "--config", filepath.Join(running.cmd.Dir, "hub.json"))
	if !strings.Contains(said, "Look into it before you send it") {
		t.Errorf("the command said %s", said)
	}
	text := readFile(t, file)
	for _, want := range []string{"mcp-toolhub ", "==== config\n", "[masked]", "==== faults of the config\nnone\n", "call failed",
		`"server": "gone"`, "server is ready"} {
		if !strings.Contains(text, want) {
			t.Errorf("the bundle has no %q:\n%s", want, text)
		}
	}
	for _, secret := range []string{literal, colour, "header-value-88", "url-password-99", "env-value-66", private, "inner-argument"} {
		if strings.Contains(text, secret) {
			t.Errorf("the bundle has %s:\n%s", secret, text)
		}
	}
	if !strings.Contains(text, `"state": "backoff"`) && !strings.Contains(text, `"state": "starting"`) || !strings.Contains(text, "call failed") {
		t.Errorf("the bundle has no states of servers, or no log:\n%s", text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the bundle: %v, %v", info.Mode(), err)
	}
}
