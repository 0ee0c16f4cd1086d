//go:build unix

package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

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
