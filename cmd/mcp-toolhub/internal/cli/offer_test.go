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

// TestOfferInTheForm: after three equal answers the form has one more choice, with its rule as the title, on both generations. A person who
// takes it is not asked any more about calls within the rule. A hub that cannot read its records soon offers it later.
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
			taken := false
			x.answer = func(n int, q asked) string {
				if !strings.Contains(q.params, "allow_offered") {
					return allowIt
				}
				title := `Always allow reads below \"` + filepath.Join(p.dir, "projects") + `\" by this tool`
				if n < 3 || strings.Count(q.params, title) != 2 || !strings.Contains(q.params, fmt.Sprintf("you have answered so %d times", n)) {
					t.Errorf("question %d: the offer is early, or not in message and form: %s", n, q.params)
				}
				taken = true
				return `{"action":"accept","content":{"answer":"allow_offered"}}`
			}
			call := func(n int) {
				if got := x.call("mcp.s.read_file", projectFile(t, p, n)); !strings.Contains(got, `"content"`) || strings.Contains(got, "not allowed") {
					t.Errorf("call %d: %s", n, got)
				}
			}
			n := 0
			for ; !taken && n < 50; n++ {
				call(n)
			}
			call(n)
			call(n + 1)
			if len(x.asked) != n || !taken {
				t.Errorf("%d questions of %d calls before the offer was taken: %t", len(x.asked), n, taken)
			}
		})
	}
}
