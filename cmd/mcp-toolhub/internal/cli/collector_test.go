//go:build e2e

package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestGarbageMayGather holds that a small hub collects seldom, unless GOGC says otherwise.
func TestGarbageMayGather(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: makes thousands of calls")
	}
	t.Parallel()
	collections := func(env ...string) int {
		h := startHubIn(t, append(env, "GODEBUG=gctrace=1"), "hub.json", configText(t, map[string]any{"up": child(upstreamtest.Script{})}, nil))
		c, err := dialHTTP(&benchIDs{}, h.url+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if err := handshake(c); err != nil {
			t.Fatal(err)
		}
		begun := len(h.log()) // the start collects as it must
		for range 3000 {
			if _, err := listAll(c); err != nil {
				t.Fatal(err)
			}
		}
		count := 0
		for line := range strings.Lines(h.log()[begun:]) {
			if strings.HasPrefix(line, "gc ") && !strings.Contains(line, "(forced)") {
				count++
			}
		}
		return count
	}
	usual, relaxed := collections("GOGC=100"), collections()
	t.Logf("%d collections, and %d with GOGC=100", relaxed, usual)
	if relaxed*2 > usual {
		t.Errorf("%d collections, and %d with GOGC=100", relaxed, usual)
	}
}
