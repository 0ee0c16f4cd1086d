package store_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// stopped is a store that is stopped while it is filled, and says so as database/sql may: of the statement alone.
type stopped struct {
	store.Store
	began chan struct{}
}

func (s *stopped) Fill(ctx context.Context, _ string, _ []persist.Written) (bool, error) {
	s.began <- struct{}{}
	<-ctx.Done()
	return false, errors.New("sql: statement is closed")
}

func (s *stopped) Close() error { return sql.ErrConnDone }

// A store that is stopped while it is filled is not behind: the journal would be full, and the hub would end with an error.
func TestFillerStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), persist.JournalConfig{})
		j.write(t, did{tool: "mcp.a.b"})
		s := &stopped{began: make(chan struct{})}
		open := func(context.Context) (store.Store, error) { return s, nil }
		f := store.NewFiller(open, j.dir, persist.RecordsConfig{}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(ctx, j.Journal)
		}()
		<-s.began
		stop()
		<-done
		if err := f.Healthy(); err != nil {
			t.Errorf("it is behind: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
}

// failing is a store that cannot be written at first. Then it takes in a part each time, and has never all.
type failing struct {
	store.Store
	fills chan error // what the next one ends with
}

func (s *failing) Fill(context.Context, string, []persist.Written) (bool, error) {
	return true, <-s.fills
}

func (s *failing) Close() error { return nil }

// A store that is written again is healthy, although it has not caught up.
func TestFillerCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), persist.JournalConfig{})
		j.write(t, did{tool: "mcp.a.b"})
		s := &failing{fills: make(chan error)}
		f := store.NewFiller(func(context.Context) (store.Store, error) { return s, nil }, j.dir, persist.RecordsConfig{}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(ctx, j.Journal)
		}()
		full := errors.New("the disk is full")
		s.fills <- full
		if synctest.Wait(); !errors.Is(f.Healthy(), full) {
			t.Errorf("with a full disk it says %v", f.Healthy())
		}
		s.fills <- nil
		if synctest.Wait(); f.Healthy() != nil || f.Lag() == 0 {
			t.Errorf("once it is written it says %v, and is %s behind", f.Healthy(), f.Lag())
		}
		stop()
		close(s.fills)
		<-done
		if err := j.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
	})
}
