//go:build unix

package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTaskOnlyTools holds that what a tool says of tasks counts only where its server has them: clients "MUST NOT attempt to
// use task augmentation on that server's tools, regardless of the execution.taskSupport value".
func TestTaskOnlyTools(t *testing.T) {
	t.Parallel()
	for _, has := range []bool{false, true} {
		h := start(t, stdio("s", upstreamtest.Script{Tasks: has, Tools: []json.RawMessage{upstreamtest.Tool("late")}}))
		h.ready(t, "s")
		x := execution("s", "late", `{}`)
		x.Hop.Revision = "2025-06-18"
		x.Tool.Declaration = json.RawMessage(`{"name":"late","execution":{"taskSupport":"required"}}`)
		if _, err := h.Execute(t.Context(), x); (err != nil) != has || has && !strings.Contains(err.Error(), "runs as a task only") {
			t.Errorf("with tasks %t: %v", has, err)
		}
	}
}

// TestIDsAreNotUsedAgain holds that no two requests to what goes by one name have the same id, which is their progress token:
// what is told of a task by such a token must not reach whoever had it before the configuration changed.
func TestIDsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	h := start(t, cfg)
	seen := make(map[string]bool)
	call := func() {
		t.Helper()
		h.ready(t, "s")
		for range 3 {
			reply, err := h.call(t.Context(), "s", "echo", `{}`)
			if id := reply.Mapping.JSONRPCRequestID; err != nil || seen[id] {
				t.Fatalf("the id %s comes again, or %v", id, err)
			} else {
				seen[id] = true
			}
		}
	}
	apply := func(servers ...upstream.ServerConfig) {
		t.Helper()
		if err := h.Apply(upstream.Config{Servers: servers}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	cfg.Timeouts.Call = 7 * time.Second
	apply(cfg)
	call()
	apply()
	apply(cfg)
	call()
}
