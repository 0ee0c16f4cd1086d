//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestNamesByHand: an address, and serve --names, choose the naming style whatever the profile and the client say.
func TestNamesByHand(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{
		"profiles": map[string]any{"short": map[string]any{"style": "short"}}})
	hub := startHub(t, "hub.json", config)
	for _, version := range []string{rev2025, rev2026} {
		for path, want := range map[string]string{"/mcp": "mcp.s.echo", "/mcp?names=safe": "mcp__s__echo", "/mcp/p/short": "s__echo",
			"/mcp/p/short?names=canonical": "mcp.s.echo"} {
			w := wireHTTP(t, hub.url+path, version).open()
			if w.tools()[want] == "" {
				t.Errorf("%s %s does not list %s", version, path, want)
			}
			if result := w.result(want, `{"a":1}`, ""); !strings.Contains(result, `"arguments":{"a":1}`) {
				t.Errorf("%s %s: %s answered %s", version, path, want, result)
			}
		}
	}
	w := wireHTTP(t, hub.url+"/mcp?names=dotless", rev2025)
	status, _, answer := w.post(w.initialize("any"))
	if text := fmt.Sprint(answer); status != http.StatusBadRequest || !strings.Contains(text, "canonical, safe, short, native") {
		t.Errorf("an unknown style is answered with %d %s", status, text)
	}

	over := wireHub(t, config, rev2025, "--names", "safe", "--profile", "short").open()
	over.ready("mcp__s__echo")
	cmd := exec.Command("mcp-toolhub", "serve", "--names", "dotless")
	out, err := cmd.CombinedOutput()
	if exitCode(cmd.ProcessState.ExitCode()) != exitUsage || !strings.Contains(string(out), "canonical, safe, short, native") {
		t.Errorf("serve --names dotless: %v, %s", err, out)
	}
}
