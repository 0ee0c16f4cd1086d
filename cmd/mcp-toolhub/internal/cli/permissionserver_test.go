package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestApprovalsAreBoundToTheServer: what a person has allowed of a server, in an open question or for good, does not hold for
// another command, other arguments or another account under the same name. It holds again once the old entry is back.
func TestApprovalsAreBoundToTheServer(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"ask": map[string]any{"channels": []string{"queue"}}}, nil)
	h, w := p.hub(), p.client(rev2026)
	call := func() <-chan string {
		answer := make(chan string, 1)
		r := w.call("mcp.s.echo", `{"text":"x"}`, "")
		go func() { got := w.send(r); answer <- got[len(got)-1] }()
		return answer
	}
	answer := func(choice policy.Choice) {
		t.Helper()
		if _, err := h.Answer(t.Context(), string(p.pending(h).ID), control.Reply{Choice: choice}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %.1500s\nwant %s", what, got, want)
		}
	}
	applied := 0
	change := func(key string, to any) (back func()) {
		t.Helper()
		entry := p.far["s"].(map[string]any)
		was := entry[key]
		write := func(v any) {
			if entry[key] = v; v == nil {
				delete(entry, key)
			}
			p.write(map[string]any{"ask": map[string]any{"channels": []string{"queue"}}}, nil)
			applied++
			eventually(t, "the config is applied", func() bool { return strings.Count(p.log(), "config is applied") == applied })
		}
		write(to)
		return func() { write(was) }
	}
	env := map[string]any{"SOME_TOKEN": "of-another-account"}
	for name, value := range p.far["s"].(map[string]any)["env"].(map[string]any) {
		env[name] = value
	}

	first := call()
	answer(policy.AllowAlways)
	wants("allowed for good", await(t, first), `"status":"succeeded"`)
	wants("remembered", await(t, call()), `"status":"succeeded"`)
	for key, other := range map[string]any{"args": []string{"--other"}, "env": env, "cwd": p.dir} {
		back := change(key, other)
		waits := call()
		p.pending(h)
		answer(policy.AllowOnce)
		wants("asked about again, with other "+key, await(t, waits), `"status":"succeeded"`)
		waits = call()
		p.pending(h)
		back()
		answer(policy.AllowOnce)
		wants("answered after "+key+" has changed back", await(t, waits), "since a person was asked about it")
		wants("remembered of the old entry", await(t, call()), `"status":"succeeded"`)
	}
}
