//go:build e2e

package cli

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestErasureThatIsKilled: an erasure that is killed while it removes stored results is finished by the next one. Nothing of what the caller has
// said is left.
func TestErasureThatIsKilled(t *testing.T) {
	t.Parallel()
	const results, word = 100, "zebra"
	r := newStoring(t, nil, "sqlite")
	writeFile(t, r.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"results": map[string]any{"max_inline_tokens": 250}}))
	h := r.launch()
	w := wireHTTP(t, h.url+"/mcp", rev2025).open()
	for i := range results {
		w.result("mcp.s.echo", `{"text":"`+strings.Repeat(word+string(rune('a'+i%26))+strings.Repeat("x", i/26)+" ", 200)+`"}`, "")
	}
	stored := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(r.state, "results", "bytes"), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				n++
			}
			return nil // what is being removed is gone
		})
		return n
	}
	if n := stored(); n != results {
		t.Fatalf("%d results are stored", n)
	}
	erase := func() (*exec.Cmd, *bytes.Buffer) {
		cmd, said := exec.Command("mcp-toolhub", "calls", "erase", "--actor", "actor:http/local", "--yes", "--config", r.config, "--state-dir", r.state),
			&bytes.Buffer{}
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, scratchEnv(r.dir), said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, said
	}
	cmd, _ := erase()
	eventually(t, "the first stored results are gone", func() bool { return stored() < results })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Logf("killed when %d of %d stored results were left", stored(), results)
	cmd, said := erase()
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "erased: 100 calls") {
		t.Errorf("%v: %s", err, said)
	}
	if n := stored(); n > 0 {
		t.Errorf("%d results are still stored", n)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	_ = filepath.WalkDir(r.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if raw, err := os.ReadFile(path); err != nil || bytes.Contains(raw, []byte(word)) {
			t.Errorf("%s has %q (%v)", path, word, err)
		}
		return nil
	})
}
