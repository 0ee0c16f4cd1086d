package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// filesServer offers a tool that reads files.
func filesServer(t *testing.T) map[string]any {
	t.Helper()
	return child(upstreamtest.Script{Tools: []json.RawMessage{
		json.RawMessage(`{"name":"read_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`)}})
}

// readsAndAsks are facts of that tool by which it only reads and is asked about.
var readsAndAsks = []any{map[string]any{"match": "mcp.s.read_file", "read_only": true, "network": true}}

// projectFile is an argument that names a file of its own directory below projects.
func projectFile(t *testing.T, p *permitted, n int) string {
	t.Helper()
	dir := filepath.Join(p.dir, "projects", fmt.Sprint("p", n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return `{"path":` + quoted(filepath.Join(dir, "x.txt")) + `}`
}

// TestOfferInTheForm: after the third equal answer the form has one more choice, with its rule as the title, on both generations. Whoever takes it is
// not asked any more about calls within the rule.
func TestOfferInTheForm(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{rev2025, rev2026} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			p := startPermittedWith(t, filesServer(t), map[string]any{"tools": readsAndAsks})
			x := &exchange{w: p.client(revision).able()}
			if !x.w.modern() {
				x.w.open()
			}
			x.answer = func(n int, q asked) string {
				offered := strings.Contains(q.params, "allow_offered")
				if want := n == 3; offered != want {
					t.Errorf("question %d: an offer: %t: %s", n, offered, q.params)
				}
				if !offered {
					return allowIt
				}
				title := `Always allow reads below \"` + filepath.Join(p.dir, "projects") + `\" by this tool`
				if strings.Count(q.params, title) != 2 || !strings.Contains(q.params, "you have answered so 3 times") {
					t.Errorf("the offer is not in message and form: %s", q.params)
				}
				return `{"action":"accept","content":{"answer":"allow_offered"}}`
			}
			for n := range 6 {
				if got := x.call("mcp.s.read_file", projectFile(t, p, n)); !strings.Contains(got, `"content"`) || strings.Contains(got, "not allowed") {
					t.Errorf("call %d: %s", n, got)
				}
			}
			if len(x.asked) != 4 {
				t.Errorf("%d questions, want 4", len(x.asked))
			}
		})
	}
}
