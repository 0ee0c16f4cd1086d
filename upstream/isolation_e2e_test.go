//go:build e2e && unix

package upstream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCanceledWhileWaitingForRoom checks that a call which waits for another session's process to end can be canceled.
func TestCanceledWhileWaitingForRoom(t *testing.T) {
	t.Parallel()
	cfg := isolated(stdio("s", withNotes(upstreamtestScript(upstreamtest.Stubborn))))
	cfg.MaxSessions = 1
	h := start(t, cfg)
	h.reaches(t, "s", tool.ServerStopped)
	ann := newVisitor("ann")
	ann.note(t, h, "a")
	ann.end()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	_, err := newVisitor("bob").call(ctx, h, "note", `{"text":"b"}`)
	if f := failure(t, err); f.Class != tool.ClassTimeout && f.Class != tool.ClassCanceled && f.Class != tool.ClassRateLimited {
		t.Errorf("failure %+v", f)
	}
}
