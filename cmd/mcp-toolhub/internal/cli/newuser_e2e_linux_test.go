//go:build e2e

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
)

// TestNewUser: three clients have six servers, of which one wants a sign-in and one is broken. One command brings all clients to the hub;
// there every question is answered with yes. Each client calls the tools of all, from its own directory, and each server runs once.
func TestNewUser(t *testing.T) {
	t.Parallel()
	auth, _ := guardedServer(t, nil)
	dir := t.TempDir()
	env := clients.Env{OS: "linux", Lookup: func(name string) (string, bool) { return map[string]string{"HOME": dir}[name], true }}
	demo := func(log string) string {
		return `{"command": "sh", "args": ["-c", "echo started >> ` + dir + "/" + log + `; exec mcp-toolhub demo-server"]}`
	}
	files := map[string]string{
		"gemini": `{"mcpServers": {"files": ` + demo("files") + `, "web": {"httpUrl": "` + auth.Resource + `"}}}`,
		"cursor": `{
  // mine
  "mcpServers": {"files": ` + demo("files") + `, "notes": ` + demo("notes") + `, "broken": {"command": "no-such-program-anywhere"}}
}`,
		"codex": "model = \"m\"\n\n[mcp_servers.notes]\ncommand = \"sh\"\nargs = [\"-c\", \"true\"]\nenabled = false\n\n[mcp_servers.tasks]\n" +
			"command = \"mcp-toolhub\"\nargs = [\"demo-server\"]\n\n[mcp_servers.tasks.env]\nTASKS_TOKEN = \"word-of-ann\"\n",
	}
	for id, text := range files {
		file := clients.ByID(id).File(env)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text)
	}
	p := newTerminal(t)
	cmd := exec.Command("mcp-toolhub", "setup")
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	wait := p.start(t, cmd)
	t.Cleanup(func() { stopShared(t, filepath.Join(dir, "state", "mcp-toolhub")) })
	for _, question := range []string{`two different servers "notes"`, "Import 6 servers", "Start a hub in the background", "Sign in to web now", "Let them run unasked?", "Change 3 clients?"} {
		p.sees(t, question, 1)
		p.types(t, "y\n")
	}
	said := wait() + p.shown()
	for _, has := range []string{"broken: ", "web: signed in at " + auth.Issuer, "A hub runs in the background"} {
		if !strings.Contains(said, has) {
			t.Errorf("%q is missing in:\n%s", has, said)
		}
	}
	if strings.Contains(said, "word-of-ann") {
		t.Error("a secret is shown")
	}
	for id := range files {
		c := clients.ByID(id)
		f, err := c.ReadClient(c.File(env))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(c.Read(f, ""), func(s clients.Server) bool { return s.Disabled }) // those stay
		stays := 0
		if id == "cursor" { // the one that is broken
			stays = 1
		}
		if len(found) != 1+stays || found[stays].Name != clients.EntryName {
			t.Fatalf("%s has %+v", id, found)
		}
		hub := exec.Command(found[stays].Command, found[stays].Args...)
		hub.Dir, hub.Env = t.TempDir(), scratchEnv(dir)
		w := wireProcess(t, hub, rev2025).open()
		w.ready("mcp.files.add", "mcp.notes.add", "mcp.tasks.add", "mcp.web.echo") // the hub notices a sign-in a moment later
		for _, name := range []string{"mcp.files.add", "mcp.notes.add", "mcp.tasks.add"} {
			if got := w.result(name, `{"a":1,"b":2}`, ""); !strings.Contains(got, `"sum":3`) {
				t.Errorf("%s calls %s: %s", id, name, got)
			}
		}
		if got := w.result("mcp.web.echo", `{"n":1}`, ""); !strings.Contains(got, `"n":1`) {
			t.Errorf("%s calls web: %s", id, got)
		}
		w.hangUp()
	}
	writeFile(t, clients.ByID("gemini").File(env), files["gemini"])
	again := exec.Command("mcp-toolhub", "import", "--yes")
	again.Dir, again.Env = dir, scratchEnv(dir)
	if got, err := again.CombinedOutput(); err != nil || !strings.Contains(string(got), "nothing to import") {
		t.Errorf("servers that the hub has given a directory are other ones: %v\n%s", err, got)
	}
	if got := readFile(t, filepath.Join(dir, "files")); strings.Count(got, "started") != 1 {
		t.Errorf("a server was started %d times", strings.Count(got, "started"))
	}
}
