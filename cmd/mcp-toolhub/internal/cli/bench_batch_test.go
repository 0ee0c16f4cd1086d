//go:build e2e

package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// A batch of equal reads, and the single reads that its slowest place has to make.
const (
	batchReads, batchParallel = 50, 8
	batchAlone                = (batchReads + batchParallel - 1) / batchParallel
)

// batchedReads starts a hub whose server needs the time each for a read. It returns two functions. alone makes batchAlone reads, one after
// the other. together makes batchReads reads in one batch. Both return the time that they took.
func batchedReads(tb testing.TB, each time.Duration) (alone, together func() time.Duration) {
	hub := startHub(tb, "hub.json", configText(tb, map[string]any{"up": child(upstreamtest.Script{})}, map[string]any{
		"policy": map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "mcp.up.sleep", "read_only": true}}}}))
	w := wireHTTP(tb, hub.url+"/mcp", rev2025).open()
	w.awaitTools("mcp.up.sleep")
	args := fmt.Sprintf(`{"ms":%d}`, each.Milliseconds())
	members := make([]string, batchReads)
	for i := range members {
		members[i] = fmt.Sprintf(`{"id":"r%d","name":"mcp.up.sleep","arguments":%s}`, i, args)
	}
	batch := fmt.Sprintf(`{"max_parallel":%d,"calls":[%s]}`, batchParallel, strings.Join(members, ","))
	alone = func() time.Duration {
		began := time.Now()
		for range batchAlone {
			if got := w.result("mcp.up.sleep", args, ""); !strings.Contains(got, `"status":"succeeded"`) {
				tb.Fatal(got)
			}
		}
		return time.Since(began)
	}
	return alone, func() time.Duration {
		began := time.Now()
		if got := w.result("tool_batch", batch, ""); strings.Count(got, `"status":"succeeded"`) < batchReads {
			tb.Fatal(got)
		}
		return time.Since(began)
	}
}

// BenchmarkBatch is the time of a batch of equal reads beside that of the single reads. A read takes 20 ms.
func BenchmarkBatch(b *testing.B) {
	alone, together := batchedReads(b, 20*time.Millisecond)
	var singles, batches time.Duration
	for b.Loop() {
		singles += alone()
		batches += together()
	}
	b.ReportMetric(batches.Seconds()*1e3/float64(b.N), "ms-batch")
	b.ReportMetric(batches.Seconds()/singles.Seconds(), fmt.Sprintf("times-%d-reads", batchAlone))
}

// maxBatch bounds the time of a batch: together may take 1.3 times as long as alone.
const maxBatch = 1.3

// guardBatch fails if a batch takes longer than maxBatch allows. A read takes 100 ms. The server sleeps for that time, so a slow processor
// changes little.
func guardBatch(t *testing.T) {
	alone, together := batchedReads(t, 100*time.Millisecond)
	best := math.Inf(1)
	for range measurements { // a busy machine can make a batch slower, but hardly faster
		ratio := together().Seconds() / alone().Seconds()
		t.Logf("a batch of %d reads, %d at a time: %.2f times %d reads; baseline %.1f", batchReads, batchParallel, ratio, batchAlone, maxBatch)
		if best = min(best, ratio); best <= maxBatch {
			return
		}
	}
	t.Errorf("a batch of %d reads takes %.2f times as long as %d reads, not at most %.1f times", batchReads, best, batchAlone, maxBatch)
}
