//go:build e2e

package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestStuckServer checks that a server which accepts a call and never answers holds neither the caller nor Close.
func TestStuckServer(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if strings.Contains(string(body), "initialize") || strings.Contains(string(body), "discover") || strings.Contains(string(body), "tools/list") {
			return false
		}
		<-r.Context().Done() // calls, cancellations, DELETE
		return true
	}})
	cfg.Timeouts.Call = 50 * time.Millisecond
	h := start(t, cfg)
	h.ready(t, "s")
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassTimeout {
		t.Errorf("failure %+v", f)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
