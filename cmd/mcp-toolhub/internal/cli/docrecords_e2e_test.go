//go:build e2e

package cli

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// The command of docs/records.md says who called what yesterday.
func TestWhoCalledWhatYesterday(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the command needs jq, and date of GNU")
	}
	block := regexp.MustCompile("(?s)## Who called what yesterday\n+```sh\n(.*?)```").FindStringSubmatch(readFile(t, filepath.Join("..", "..", "..", "..", "docs", "records.md")))
	if block == nil {
		t.Fatal("no such block")
	}
	home := t.TempDir()
	j, err := persist.Open(persist.JournalConfig{Dir: filepath.Join(home, ".local", "state", "mcp-toolhub", "journal")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for name, ago := range map[tool.Name]time.Duration{"mcp.s.today": 0, "mcp.s.yesterday": 24 * time.Hour, "mcp.s.before": 72 * time.Hour} {
		var c persist.Call
		created := time.Now().Add(-ago)
		c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: name, Actor: "actor:cli/ann", Created: created}, tool.ExternalMapping{Source: "mcp"})
		if err := j.Note(t.Context(), &c); err != nil { // which is not the end, and does not count
			t.Fatal(err)
		}
		c.Move(tool.StatusSucceeded, created)
		if err := j.End(t.Context(), &c, &persist.CallEnd{At: created}); err != nil {
			t.Fatal(err)
		}
		if name == "mcp.s.yesterday" {
			want = created.UTC().Format(time.RFC3339Nano) + "\tactor:cli/ann\tmcp.s.yesterday\tsucceeded\n"
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", block[1])
	cmd.Env = append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("%v\ngot  %swant %s", err, out, want)
	}
}
