//go:build e2e && !race

package invoke

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestMemoryOfAThousandQueuedCalls: they take less than 20 MB, heap and stacks.
func TestMemoryOfAThousandQueuedCalls(t *testing.T) { // not parallel: it measures the whole process
	release := make(chan struct{})
	b := newBench(t, tool.ValidateReject, func(context.Context, *tool.Execution) (tool.Reply, error) {
		<-release
		return tool.Reply{Result: []byte(answer)}, nil
	})
	b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
	memory := func() uint64 {
		runtime.GC()
		runtime.GC() // each one halves stacks
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	var calling sync.WaitGroup
	before := memory()
	for range 1001 {
		calling.Go(func() { b.call(t.Context(), "mcp.s.t", `{"n":1}`) })
	}
	for b.Load("s").Queued < 1000 {
		runtime.Gosched()
	}
	if took := memory() - before; took > 20e6 {
		t.Errorf("1000 queued calls take %d bytes", took)
	} else {
		t.Logf("1000 queued calls take %d bytes", took)
	}
	close(release)
	calling.Wait()
	if l := b.Load("s"); l.Queued != 0 || l.Running != 0 || l.Calls != 1001 {
		t.Errorf("%+v", l)
	}
}
