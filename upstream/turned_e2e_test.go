//go:build e2e

package upstream_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// A server that lets the question for its generation go unanswered is not asked at each reconnect, and is when it fails as
// what it was.
func TestServerThatDoesNotAnswerIsSparedTheQuestion(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	script := upstreamtestScript(upstreamtest.IgnoresDiscover)
	script.Record = record
	cfg := stdio("s", script)
	cfg.Timeouts.Connect = 6 * time.Second // a part of it is how long the question waits
	h := start(t, cfg)
	for i := range 3 {
		st := h.ready(t, "s")
		_, _ = h.call(t.Context(), "s", "die", `{}`)
		eventually(t, "restarted", func() bool { return h.status("s").Restarts > st.Restarts })
		if h.ready(t, "s"); i == 2 {
			break
		}
	}
	text := strings.Join(gotBy(t, nil, record), "\n")
	if asked, begun := strings.Count(text, `"server/discover"`), strings.Count(text, `"initialize"`); asked != 1 || begun < 4 { // on a busy machine it may not be in time
		t.Errorf("asked %d times in %d connections", asked, begun)
	}
}
