//go:build e2e

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// A hub starts with half a file of remembered answers. It keeps the file aside, says so, and asks about a call that a rule allows: a lost answer may
// have denied it. Once the file is gone, or an answer to that call is remembered anew, the call runs as before.
func TestDamagedGrants(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	writeFile(t, r.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"policy": map[string]any{
		"mode": "default", "rules": []map[string]any{{"match": "mcp.s.*", "then": "allow"}}, "ask": map[string]any{"channels": []string{"client"}}}}))
	grants := filepath.Join(r.state, hub.GrantsFile)
	if err := os.Mkdir(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, grants, "grants:\n  - id: one\n    then: deny\n    tool: mcp.s.echo\n    act")
	writeFile(t, filepath.Join(r.state, hub.StateKey), "half a k")
	h := r.launch()
	if !strings.Contains(h.log(), "the key that seals what clients carry was damaged") {
		t.Error("the log says nothing of the damaged key")
	}
	aside, _ := filepath.Glob(grants + policy.Damaged + "*")
	if len(aside) != 1 || !strings.HasSuffix(readFile(t, aside[0]), "    act") {
		t.Fatalf("kept aside: %q", aside)
	}
	const want = "remembered answers are lost"
	if _, text := h.health(t); !strings.Contains(text, want) || !strings.Contains(h.log(), want) {
		t.Errorf("health: %s", text)
	}
	if text := h.command(t, "servers", "--config", r.config, "--state-dir", r.state); !strings.Contains(text, want) {
		t.Errorf("servers: %s", text)
	}
	if text := r.echo(h); !strings.Contains(text, "permission_denied") || !strings.Contains(text, "somebody would have to allow it") ||
		!strings.Contains(text, "remove the damaged file") {
		t.Errorf("the call is answered by %s", text)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	h = r.launch() // which finds no damaged file, and asks all the same
	if text := r.echo(h); !strings.Contains(text, "permission_denied") {
		t.Errorf("after another start the call is answered by %s", text)
	}
	writeFile(t, grants, "grants: [{id: two, then: allow, tool: mcp.s.echo, actor: 'actor:http/local'}]")
	eventually(t, "an answer that was remembered since then holds", func() bool { return strings.Contains(r.echo(h), `"succeeded"`) })
	if err := os.Remove(grants); err != nil {
		t.Fatal(err)
	}
	eventually(t, "without it the call is asked about", func() bool { return strings.Contains(r.echo(h), "permission_denied") })
	if err := os.Remove(aside[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is lost any more", func() bool { return strings.Contains(r.echo(h), `"succeeded"`) })
	if _, text := h.health(t); strings.Contains(text, want) {
		t.Errorf("health: %s", text)
	}
}

// A damaged file of secrets stops the server that needs one, and not the hub.
func TestDamagedSecrets(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	needs := with(child(upstreamtest.Script{}), "env", map[string]any{"KEY": "${secret:key}"})
	writeFile(t, r.config, configText(t, map[string]any{"s": child(upstreamtest.Script{}), "needs": needs},
		map[string]any{"policy": map[string]any{"mode": "accept_all"}}))
	if err := os.Mkdir(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(r.state, secrets.File), "half a fi")
	h := r.launch()
	r.echoed(h)
	if st := h.server(t, "needs"); st.State != tool.ServerNeedsSetup || !strings.Contains(st.LastError, "does not fit to its key") {
		t.Errorf("%+v", st)
	}
}
