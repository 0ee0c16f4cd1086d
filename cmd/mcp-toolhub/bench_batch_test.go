package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// BenchmarkBatch is the time of a batch of 50 equal reads, 8 at a time, beside that of seven reads one after the other, which is what
// its slowest place has to do. A read takes 20 ms.
func BenchmarkBatch(b *testing.B) {
	const reads, parallel = 50, 8
	hub := startHub(b, "hub.json", configText(b, map[string]any{"up": child(upstreamtest.Script{})}, map[string]any{
		"policy": map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "mcp.up.sleep", "read_only": true}}}}))
	w := wireHTTP(b, hub.url+"/mcp", rev2025).open()
	w.awaitTools("mcp.up.sleep")
	const args = `{"ms":20}`
	members := make([]string, reads)
	for i := range members {
		members[i] = fmt.Sprintf(`{"id":"r%d","name":"mcp.up.sleep","arguments":%s}`, i, args)
	}
	batch := fmt.Sprintf(`{"max_parallel":%d,"calls":[%s]}`, parallel, strings.Join(members, ","))
	var alone, together time.Duration
	for b.Loop() {
		began := time.Now()
		for range (reads + parallel - 1) / parallel {
			w.result("mcp.up.sleep", args, "")
		}
		alone += time.Since(began)
		began = time.Now()
		if got := w.result("tool_batch", batch, ""); strings.Count(got, `"status":"succeeded"`) < reads {
			b.Fatal(got)
		}
		together += time.Since(began)
	}
	b.ReportMetric(together.Seconds()*1e3/float64(b.N), "ms-batch")
	b.ReportMetric(together.Seconds()/alone.Seconds(), "times-7-reads")
}
