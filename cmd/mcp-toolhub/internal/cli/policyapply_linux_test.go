//go:build e2e

package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestSuggestAppliesRules: --apply asks about each rule, adds those that are taken, and leaves all else in the file as it is.
func TestSuggestAppliesRules(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	w := p.client(rev2025).open()
	for _, name := range []string{"echo", "hidden"} {
		for range 3 {
			rest := w.waits(w.call("mcp.s."+name, `{}`, `"progressToken":"p"`))
			if _, err := h.Answer(t.Context(), string(p.pending(h).ID), control.Reply{Choice: policy.AllowOnce}); err != nil {
				t.Fatal(err)
			}
			rest()
		}
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	commented := "// mine\n" + readFile(t, p.file)
	replaceFile(t, p.file, commented)
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	apply := func(answers ...string) string {
		t.Helper()
		tty := newTerminal(t)
		cmd := exec.Command(program, "policy", "suggest", "--apply", "--config", p.file, "--state-dir", p.state)
		cmd.Dir, cmd.Env = p.dir, scratchEnv(p.dir)
		wait := tty.start(t, cmd)
		for i, answer := range answers {
			tty.sees(t, "[y/N]", i+1)
			tty.types(t, answer+"\n")
		}
		out := wait()
		if !strings.Contains(tty.shown(), "6 calls that people allowed") {
			t.Errorf("the evidence is not shown: %s", tty.shown())
		}
		return out
	}
	if out := apply("n"); !strings.Contains(out, "0 suggestions added, 1 left out") || readFile(t, p.file) != commented {
		t.Errorf("no: %s\n%s", out, readFile(t, p.file))
	}
	out := apply("y")
	text := readFile(t, p.file)
	if !strings.Contains(out, "1 suggestion added, 0 left out") || !strings.HasPrefix(text, "// mine\n") || !strings.Contains(text, `"then": "allow"`) {
		t.Errorf("yes: %s\n%s", out, text)
	}
}
