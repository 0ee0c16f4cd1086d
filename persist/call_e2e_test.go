//go:build e2e

package persist

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A caller that is made the writer at the moment when it gives up sees to it that somebody writes.
func TestGivingUpAsTheWriter(t *testing.T) {
	t.Parallel()
	for range 30 { // either comes first
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			j := journaled(t, dir)
			line, _ := begun().appendLine(nil, new(callRecord), &CallEnd{At: time.Now()})
			j.mu.Lock()
			b := j.next
			b.bytes, b.records, b.durable, j.queued = append(b.bytes, line...), 1, true, len(line)
			j.join(b)
			j.writer = true
			b.done <- struct{}{}
			j.mu.Unlock()
			if err := j.wait(j.never, ticket{batch: b, wait: true}, t.Context().Err); err != nil && b.waiters != 0 {
				t.Error(err)
			}
			if err := j.Close(); err != nil || len(objects(t, dir)[tool.ObjectResult]) != 1 {
				t.Errorf("%v, the journal holds %v", err, objects(t, dir))
			}
		})
	}
}
