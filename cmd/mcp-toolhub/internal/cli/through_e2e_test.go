//go:build e2e

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestReplicas: hubs that share keys take each other's refs, in the order of a key that is replaced; one without the key
// takes none.
func TestReplicas(t *testing.T) {
	t.Parallel()
	servers := map[string]any{"far": farScript(farSchema)}
	replica := func(keys ...byte) *wire {
		v := &vault{t: t, dir: t.TempDir()}
		v.keep(map[string]string{"ann": annToken, "bob": bobToken}, keys...)
		v.configure(servers, map[string]any{"deferred": map[string]any{"mode": "always"}})
		v.start()
		return v.modernPerson(t, "/mcp", annToken)
	}
	one, two, next, other := replica('1'), replica('1'), replica('2', '1'), replica('2')
	ref := one.load("mcp.far.change").Matches[0].Ref
	fresh := next.load("mcp.far.change").Matches[0].Ref
	if again := two.load("mcp.far.change").Matches[0].Ref; again != ref {
		t.Errorf("replicas give the refs %s and %s", ref, again)
	}
	for what, c := range map[string]struct {
		w    *wire
		ref  string
		good bool
	}{"its own": {one, ref, true}, "the other's": {two, ref, true}, "of the key before": {next, ref, true}, "of no key": {other, ref, false},
		"of the new key": {other, fresh, true}, "of a key to come": {one, fresh, false}} {
		response := c.w.callWith("mcp.far.change", `{}`, c.ref)
		if ran := strings.Contains(response, `"text":"changed"`); ran != c.good || !ran && !strings.Contains(response, "selection_ref_invalid") {
			t.Errorf("%s: %s", what, response)
		}
	}
}

// keep writes files for the hub, and its keys: that in force, and the one before it.
func (v *vault) keep(files map[string]string, keys ...byte) {
	v.t.Helper()
	state := filepath.Join("state", "mcp-toolhub")
	if err := os.MkdirAll(filepath.Join(v.dir, state), 0o700); err != nil {
		v.t.Fatal(err)
	}
	for i, name := range []string{hub.StateKey, hub.PreviousKey}[:len(keys)] {
		files[filepath.Join(state, name)] = strings.Repeat(string(keys[i]), seal.KeySize)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
}

// TestHiddenServersShowNowhere: what a caller is answered is the same, byte for byte, with and without a server that it may
// not see: hits, names of more, nearest names, notes, refusals, lists.
func TestHiddenServersShowNowhere(t *testing.T) {
	t.Parallel()
	answers := func(hidden bool) (all []string) {
		servers := map[string]any{"far": farScript(farSchema)}
		if hidden {
			servers["zebra"] = child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("raw"),
				json.RawMessage(`{"name":"gallop","description":"changes raw things and echoes, changing kinds","inputSchema":{"type":"object"}}`)}})
		}
		v := &vault{t: t, dir: t.TempDir()}
		v.keep(map[string]string{"ann": annToken, "bob": bobToken}, '1')
		v.configure(servers, map[string]any{"deferred": map[string]any{"mode": "always"},
			"profiles": map[string]any{"default": map[string]any{"servers": []string{"far"}}}})
		v.start()
		if hidden {
			eventually(t, "the hidden server is up", func() bool { return v.statusOf(t, "zebra").Tools > 0 })
		}
		w := v.modernPerson(t, "/mcp", annToken)
		ask := func(name, args string) {
			messages := w.send(w.call(name, args, ""))
			all = append(all, anonymous(messages[len(messages)-1], "-"))
		}
		for _, query := range []string{"change things", "raw zebra", "galop", "gallop", "mcp.zebra.echo", "echos of kinds", "select:gallop,zebra_echo,ecko",
			"regex:.", "regex:gallop|change", "change on the zebra server"} {
			for _, more := range []string{``, `,"limit":1`, `,"servers":["zebra","far"]`} {
				ask("tool_search", `{"query":`+quoted(query)+more+`}`)
			}
		}
		ask("tool_search", `{"query":"echo","servers":["zebra"]}`)
		ask("tool_call", `{"name":"mcp.zebra.gallop","arguments":{}}`)
		ask("mcp.zebra.gallop", `{}`)
		messages := w.send(rawRequest{id: `1`, method: "tools/list", params: w.params("", "")})
		return append(all, anonymous(messages[len(messages)-1], "-"))
	}
	with, without := answers(true), answers(false)
	for i := range with {
		if with[i] != without[i] {
			t.Errorf("%d shows what is hidden:\n%s\n%s", i, with[i], without[i])
		}
	}
}
