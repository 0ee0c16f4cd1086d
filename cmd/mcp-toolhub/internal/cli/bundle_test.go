//go:build e2e

package cli

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// unzipped are the files of a bundle.
func unzipped(t *testing.T, file string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	all := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = string(text)
	}
	return all
}

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
	file := filepath.Join(running.cmd.Dir, "bundle.zip")
	said := running.command(t, "doctor", "--bundle", file, "--config", filepath.Join(running.cmd.Dir, "hub.json"))
	if !strings.Contains(said, "Look into it before you send it") {
		t.Errorf("the command said %s", said)
	}
	all := unzipped(t, file)
	for name, want := range map[string]string{"versions.json": "mcp-toolhub ", "config.json": "[masked]", "check.txt": "nothing", hub.LogFile: "call failed",
		"state.txt": "journal/"} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s has no %q: %.2000s", name, want, all[name])
		}
	}
	text := ""
	for name, one := range all {
		text += one
		if strings.HasPrefix(name, "hub-") && !strings.Contains(one, `"server": "gone"`) && !strings.Contains(one, "server is ready") {
			t.Errorf("%s has neither states nor a log:\n%s", name, one)
		}
		for _, secret := range []string{literal, colour, "header-value-88", "url-password-99", "env-value-66", private, "inner-argument"} {
			if strings.Contains(one, secret) {
				t.Errorf("%s has %s:\n%s", name, secret, one)
			}
		}
	}
	if !strings.Contains(text, `"state": "backoff"`) && !strings.Contains(text, `"state": "starting"`) || !strings.Contains(text, "call failed") {
		t.Errorf("the bundle has no states of servers, or no log:\n%s", text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the bundle: %v, %v", info.Mode(), err)
	}
}
