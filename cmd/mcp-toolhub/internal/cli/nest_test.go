//go:build e2e

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hub whose config starts the hub again, through a shell that hides it from check, makes one hub more. The one behind that
// starts nothing, and names the entry, however often it is tried again.
func TestHubThatStartsItselfEndsAtDepthTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, starts, log := filepath.Join(dir, newMark(t)+".json"), filepath.Join(dir, "starts"), filepath.Join(dir, "log")
	again := "echo depth=$MCP_TOOLHUB_DEPTH >> '" + starts + "'; exec mcp-toolhub serve --config '" + file + "' 2>> '" + log + "'"
	writeFile(t, file, configText(t, map[string]any{"again": map[string]any{"command": "sh", "args": []string{"-c", again}}}, nil))
	h, err := launch(dir, scratchEnv(dir), "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.stop() }()
	most, started := 0, []byte(nil)
	eventually(t, "the third hub is refused three times", func() bool {
		most = max(most, len(marked(file)))
		started, _ = os.ReadFile(starts)
		return bytes.Count(started, []byte("depth=2")) >= 3
	})
	if most > 3 {
		t.Errorf("%d hubs at the same time, want at most 3", most)
	}
	if got := string(started); !strings.HasPrefix(got, "depth=1\ndepth=2\n") || strings.Contains(got, "depth=3") {
		t.Errorf("hubs were started at these depths:\n%s", got)
	}
	said, err := os.ReadFile(log)
	if want := `by the entry "again" of ` + file; err != nil || !strings.Contains(string(said), want) {
		t.Errorf("no refusal says %s: %v\n%s", want, err, said)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is left", func() bool { return len(marked(file)) == 0 })
}
