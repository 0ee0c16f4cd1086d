//go:build e2e

package cli

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestPageTakesRules: the page shows rules from what people allowed, with the calls behind them, and adds one to the config for whom it lets answer
// approvals, and no other. The hub then goes by it.
func TestPageTakesRules(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r := openPage(t, h)
	w := p.client(rev2025).open()
	answer := func(args string, choice policy.Choice) {
		t.Helper()
		rest := w.waits(w.call("mcp.s.echo", args, `"progressToken":"p"`))
		v := p.pending(h)
		if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: choice}); err != nil {
			t.Fatal(err)
		}
		rest()
	}
	if _, text := r.get("/ui/suggestions"); !strings.Contains(text, "With 0 new rules") {
		t.Errorf("a hub without calls: %s", text)
	}
	for range 3 {
		answer(`{"text":"status"}`, policy.AllowOnce)
	}
	answer(`{"text":"<b>wipe</b>"}`, policy.DenyOnce)
	_, text := r.get("/ui/suggestions")
	id := matched(regexp.MustCompile(`(learned-[0-9a-f]+)`), text)
	if id == "" || strings.Count(text, `<a href="/ui/calls/inv_`) != 3 || !strings.Contains(text, "mcp-toolhub ui code "+r.name()) || strings.Contains(text, "Add to the config") {
		t.Fatalf("the suggestions: %s", text)
	}
	path := "/ui/suggestions/" + id
	before := readFile(t, p.file)
	if status, _ := r.send(path); status != http.StatusForbidden {
		t.Errorf("a rule without a code: %d", status)
	}
	r.unlock(h)
	if resp, _ := r.do(http.MethodPost, path, formOf("csrf", "wrong")); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another page: %d", resp.StatusCode)
	}
	if status, _ := r.send("/ui/suggestions/learned-00000000"); status != http.StatusConflict {
		t.Errorf("a rule that nobody suggests: %d", status)
	}
	if after := readFile(t, p.file); after != before {
		t.Errorf("the config has changed: %s", after)
	}
	if _, text := r.get("/ui/suggestions"); !strings.Contains(text, "Add to the config") {
		t.Errorf("the suggestions, for whom they are: %s", text)
	}
	if status, text := r.send(path); status != http.StatusOK || !strings.Contains(text, "Added to the config: "+id) {
		t.Errorf("the rule: %d %s", status, text)
	}
	if text := readFile(t, p.file); !strings.Contains(text, id) {
		t.Errorf("the config: %s", text)
	}
	eventually(t, "the hub goes by the rule", func() bool {
		_, text := r.get("/ui/policy")
		return strings.Contains(text, id)
	})
	if got := w.result("mcp.s.echo", `{"text":"status"}`, ""); !strings.Contains(got, "status") {
		t.Errorf("a call like those that were allowed: %s", got)
	}
	if _, text := r.get("/ui/suggestions"); !strings.Contains(text, "With 0 new rules, 3 of those allowed") {
		t.Errorf("nothing is left to suggest: %s", text)
	}
}
