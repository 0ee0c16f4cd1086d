package persist_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
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

// BenchmarkEndBesideStore measures how long a call waits until its record is in the journal. The record store is filled at the same time.
// Each caller pauses for 1 ms after a call, as one that does something with the result. The figures are median and 95th percentile.
func BenchmarkEndBesideStore(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchEndBesideStore(b, callers) })
	}
}

func benchEndBesideStore(b *testing.B, callers int) {
	dir := b.TempDir()
	logger := slog.New(slog.DiscardHandler)
	open := func(ctx context.Context) (store.Store, error) {
		return store.OpenSQLite(ctx, filepath.Join(dir, store.FileName))
	}
	filler := store.NewFiller(open, filepath.Join(dir, "journal"), persist.RecordsConfig{}, logger)
	j, err := persist.Open(persist.JournalConfig{Dir: filepath.Join(dir, "journal"), SyncWithin: 20 * time.Millisecond, Kept: filler}, logger)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var filling sync.WaitGroup
	filling.Go(func() { filler.Run(ctx, j) })
	waited := make([][]time.Duration, callers)
	var calling sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		calling.Go(func() {
			for range b.N/callers + 1 {
				c, end := persist.OrdinaryCall()
				persist.FinishCall(c)
				if len(waited[i])%200 == 0 {
					filler.Hurry()
				}
				began := time.Now()
				if err := j.End(ctx, c, end); err != nil {
					b.Error(err)
					return
				}
				waited[i] = append(waited[i], time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	calling.Wait()
	b.StopTimer()
	all := slices.Concat(waited...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "µs-median")
	b.ReportMetric(float64(all[len(all)*95/100].Nanoseconds())/1e3, "µs-p95")
	stop()
	filling.Wait()
	if err := errors.Join(j.Close(), filler.Healthy()); err != nil {
		b.Fatal(err)
	}
}
