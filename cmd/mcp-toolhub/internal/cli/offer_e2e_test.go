//go:build e2e

package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestOfferInTheQueue: the queue and the page have the offer, too, for denials as well. It is taken once it is there, and not before.
func TestOfferInTheQueue(t *testing.T) {
	t.Parallel()
	p := startPermittedWith(t, filesServer(t), map[string]any{"tools": readsAndAsks, "ask": map[string]any{"channels": []string{"queue"}}})
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
