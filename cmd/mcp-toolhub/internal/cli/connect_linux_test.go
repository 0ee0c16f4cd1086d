//go:build e2e

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A person at the terminal sees what would change and is asked. No means that nothing has happened.
func TestCommandsAskBeforeTheyChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const cursor = `{"mcpServers": {"one": {"command": "mcp-toolhub", "args": ["demo-server"]}}}`
	for _, sub := range []string{".cursor", ".kiro/settings"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	client, config := filepath.Join(dir, ".cursor", "mcp.json"), filepath.Join(dir, "hub.yaml")
	writeFile(t, client, cursor)
	writeFile(t, filepath.Join(dir, ".kiro", "settings", "mcp.json"), strings.Replace(cursor, "[", `["--state-dir", "x", `, 1))
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(question, keys string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append(args, "--config", config)...)
		cmd.Dir, cmd.Env = dir, scratchEnv(dir)
		p := newTerminal(t)
		wait := p.start(t, cmd)
		p.sees(t, question, 1)
		p.types(t, keys)
		return wait() + p.shown()
	}
	const second = "Import the second, too, as one-kiro? [Y/n]: "
	ask(second, "n\n", "import")
	if got := readFile(t, config); !strings.Contains(got, "\n  one:\n") || strings.Contains(got, "one-kiro") {
		t.Errorf("after no: %s", got)
	}
	ask(second, "what\ny\n", "import")
	if got := readFile(t, config); !strings.Contains(got, "\n  one-kiro:\n") {
		t.Errorf("after yes: %s", got)
	}
	const add = "Add it to " // …? [Y/n]
	if got := ask(add, "n\n", "add", "https://web.example.com/mcp"); !strings.Contains(got, "example: connects to https://web.example.com/mcp") {
		t.Errorf("shown: %s", got)
	}
	if strings.Contains(readFile(t, config), "\n  example:\n") {
		t.Errorf("after no: %s", readFile(t, config))
	}
	ask(add, "y\n", "add", "https://web.example.com/mcp")
	if got := readFile(t, config); !strings.Contains(got, "\n  example:\n    url: \"https://web.example.com/mcp\"\n    trust: false\n") {
		t.Errorf("after yes: %s", got)
	}
	const change = "Change 1 client? [Y/n]: "
	if got := ask(change, "n\n", "connect", "cursor"); !strings.Contains(got, `"toolhub": {`) || readFile(t, client) != cursor {
		t.Errorf("after no: %s\n%s", got, readFile(t, client))
	}
	ask(change, "y\n", "connect", "cursor")
	if !strings.Contains(readFile(t, client), "toolhub") {
		t.Errorf("after yes: %s", readFile(t, client))
	}
	ask(change, "y\n", "undo")
	if readFile(t, client) != cursor {
		t.Errorf("after undo: %s", readFile(t, client))
	}
}

// TestConnectAllLeavesOutWhatCannotBeReplaced: a directory that is not writable, or a file of somebody else, holds no other client up.
func TestConnectAllLeavesOutWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	dir, program, attr := unprivileged(t)
	write := func(name, text string, of int, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text)
		for _, path := range []string{file, filepath.Dir(file)} {
			if err := os.Chown(path, of, of); err != nil && os.Getuid() == 0 {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Chmod(file, 0o644), os.Chmod(filepath.Dir(file), mode)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cursor, codex := write(".cursor/mcp.json", "{}", nobody, 0o755), write(".codex/config.toml", "", nobody, 0o555)
	want := []string{"Codex is left out: .*no file can be made in its directory"}
	kiro := write(".kiro/settings/mcp.json", "{}", nobody, 0o755)
	if os.Getuid() == 0 {
		if err := os.Chown(kiro, 0, 0); err != nil {
			t.Fatal(err)
		}
		want = append(want, "Kiro is left out: .*the owner of the file cannot be kept")
	}
	config := write("hub.yaml", "mcpServers: {}\n", nobody, 0o755)
	cmd := exec.Command(program, "connect", "--all", "--yes", "--config", config)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, scratchEnv(dir), attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, text := range want {
		if !regexp.MustCompile(text).Match(out) {
			t.Errorf("not said: %s: %s", text, out)
		}
	}
	if !strings.Contains(readFile(t, cursor), "toolhub") || readFile(t, codex) != "" {
		t.Errorf("Cursor: %s\nCodex: %s", readFile(t, cursor), readFile(t, codex))
	}
	for _, file := range []string{codex, kiro} {
		if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 && (file == codex || len(want) > 1) {
			t.Errorf("left behind: %v", left)
		}
	}
}
