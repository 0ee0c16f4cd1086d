package cli

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vault is a hub in a directory of its own that can be stopped, changed and started again.
type vault struct {
	t   *testing.T
	dir string
	*runningHub
}

// newVault starts a hub for ann and bob with these servers, and more top-level keys.
func newVault(t *testing.T, servers, more map[string]any) *vault {
	t.Helper()
	v := &vault{t: t, dir: t.TempDir()}
	for name, token := range map[string]string{"ann": annToken, "bob": bobToken} {
		if err := os.WriteFile(filepath.Join(v.dir, name), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.configure(servers, more)
	v.start()
	return v
}

func (v *vault) configure(servers, more map[string]any) {
	v.t.Helper()
	all := map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": []any{
		map[string]any{"name": "ann", "token": "${file:ann}"}, map[string]any{"name": "bob", "token": "${file:bob}"}}}}}
	for key, value := range more {
		all[key] = value
	}
	replaceFile(v.t, filepath.Join(v.dir, "hub.json"), configText(v.t, servers, all))
}

func (v *vault) start() {
	v.t.Helper()
	h, err := launch(v.dir, scratchEnv(v.dir), "--config", filepath.Join(v.dir, "hub.json"))
	if err != nil {
		v.t.Fatal(err)
	}
	v.runningHub = h
	v.t.Cleanup(func() {
		if err := h.stop(); err != nil {
			v.t.Errorf("the hub ended with %v", err)
		}
		if v.t.Failed() {
			v.t.Logf("the hub's log:\n%s", h.log())
		}
	})
	// What a ready server has is shown a moment later: several that become ready together are shown at once.
	ann := v.modernPerson(v.t, "/mcp", annToken)
	eventually(v.t, "the server's tools are shown", func() bool {
		tools := ann.tools()
		if tools["tool_search"] != "" {
			found := ann.load("mcp.far.echo")
			return !slices.Contains(found.Pending, "far") && found.Total > 0
		}
		return slices.ContainsFunc(slices.Collect(maps.Keys(tools)), func(name string) bool { return strings.HasPrefix(name, "mcp.far.") })
	})
}

// neverDeferred is for tests of what large lists hold.
func neverDeferred() map[string]any {
	return map[string]any{"deferred": map[string]any{"mode": "never"}}
}

var alwaysDeferred = map[string]any{"deferred": map[string]any{"mode": "always"}}

// TestDeferredCancel: a call through tool_call is cancelled like any other.
func TestDeferredCancel(t *testing.T) {
	t.Parallel()
	g := newTurnstile(t)
	hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry()}, alwaysDeferred))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	w.refs = map[string]string{}
	name, args := w.through("mcp.g.gate", `{"who":"a"}`)
	w.refs = nil
	answer := make(chan string, 1)
	go func() {
		r := w.call(name, args, `"progressToken":1`)
		r.id = "7"
		_, _, messages := w.post(r)
		answer <- strings.Join(messages, "\n")
	}()
	await(t, g.reached)
	if status, _, _ := w.post(rawRequest{method: "notifications/cancelled", params: `{"requestId":7}`}); status != http.StatusAccepted {
		t.Errorf("cancelled: HTTP %d", status)
	}
	if who := await(t, g.left); who != "a" {
		t.Errorf("the call of %q was given up", who)
	}
	if got := await(t, answer); !strings.Contains(got, `"status":"canceled"`) {
		t.Errorf("the client got %s", got)
	}
}
