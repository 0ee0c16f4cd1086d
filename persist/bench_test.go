package persist_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// BenchmarkCommit measures the time of a durable call's records, by how many callers there are at once: with the default,
// where no answer waits for the sync, and with one where every answer does. What matters is that more callers share a
// sync: ns/op is the time per Commit of all of them together.
func BenchmarkCommit(b *testing.B) {
	for _, within := range []time.Duration{5 * time.Millisecond, 0} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("within=%s/callers=%d", within, callers), func(b *testing.B) { benchCommit(b, within, callers) })
		}
	}
}

func benchCommit(b *testing.B, within time.Duration, callers int) {
	j, err := persist.Open(persist.JournalConfig{Dir: b.TempDir(), SyncWithin: within}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	commit := func() error {
		c, end := persist.OrdinaryCall()
		if err := j.Announce(b.Context(), c); err != nil {
			return err
		}
		persist.FinishCall(c)
		return j.End(b.Context(), c, end)
	}
	b.ReportAllocs()
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	if callers == 1 {
		for b.Loop() {
			if err := commit(); err != nil {
				b.Fatal(err)
			}
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := commit(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}
