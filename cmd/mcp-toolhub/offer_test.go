package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// filesServer offers a tool that reads files.
func filesServer(t *testing.T) map[string]any {
	t.Helper()
	return child(upstreamtest.Script{Tools: []json.RawMessage{
		json.RawMessage(`{"name":"read_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`)}})
}

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
			p := startPermittedWith(t, filesServer(t), map[string]any{})
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

// TestOfferInTheQueue: the queue and the page have the offer, too, for denials as well. It is taken once it is there, and not before.
func TestOfferInTheQueue(t *testing.T) {
	t.Parallel()
	p := startPermittedWith(t, filesServer(t), map[string]any{"ask": map[string]any{"channels": []string{"queue"}}})
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	w := p.client(rev2025).open()
	for n := range 4 {
		rest := w.waits(w.call("mcp.s.read_file", projectFile(t, p, n), `"progressToken":"p"`))
		v := p.pending(h)
		_, text := r.get("/ui/approvals/" + string(v.ID))
		if n < 3 {
			if v.Offer != "" || strings.Contains(text, "deny_offered") {
				t.Errorf("question %d offers %q", n, v.Offer)
			}
			if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOffered}); err == nil {
				t.Errorf("question %d: what was not offered was taken", n)
			}
			if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err != nil {
				t.Fatal(err)
			}
			rest()
			continue
		}
		want := `Always deny reads below "` + filepath.Join(p.dir, "projects") + `" by this tool`
		if v.Offer != want || !strings.Contains(text, "deny_offered") {
			t.Fatalf("question %d offers %q: %s", n, v.Offer, text)
		}
		if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "deny_offered"); status != http.StatusOK {
			t.Errorf("the offer: %d %s", status, text)
		}
		rest()
	}
	if got := w.result("mcp.s.read_file", projectFile(t, p, 9), ""); !strings.Contains(got, "a person denied this for good") {
		t.Errorf("a call within the rule: %s", got)
	}
}
