//go:build unix

package persist_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// BenchmarkJournalAndStore measures the CPU time that a call costs in journal and record store, with 16 callers: of an ordinary
// call, and of one that is announced before it runs. Words are indexed afterwards, which is a figure of its own.
func BenchmarkJournalAndStore(b *testing.B) {
	for _, announced := range []bool{false, true} {
		b.Run(fmt.Sprintf("announced=%t", announced), func(b *testing.B) { benchJournalAndStore(b, announced) })
	}
}

func benchJournalAndStore(b *testing.B, announced bool) {
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
	var filling, calling sync.WaitGroup
	filling.Go(func() { filler.Run(ctx, j) })
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for i := range 16 {
		calling.Go(func() {
			for n := i; n < b.N; n += 16 {
				c, end := persist.OrdinaryCall()
				if announced {
					if err := j.Announce(ctx, c); err != nil {
						b.Error(err)
					}
				}
				persist.FinishCall(c)
				if err := j.End(ctx, c, end); err != nil {
					b.Error(err)
				}
				time.Sleep(10 * time.Millisecond) // as the hub does other things, too
			}
		})
	}
	calling.Wait()
	stop()
	filling.Wait()
	if err := errors.Join(j.Close(), filler.Close(b.Context())); err != nil {
		b.Fatal(err)
	}
	filled := cpuTime(b)
	b.StopTimer()
	s, err := open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for more := true; more; {
		if more, err = s.Index(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((filled-before).Microseconds())/float64(b.N), "µs-CPU/op")
	b.ReportMetric(float64((cpuTime(b)-filled).Microseconds())/float64(b.N), "µs-CPU-to-index/op")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
