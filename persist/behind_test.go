package persist

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// progress returns how much of the current file was written, and how much of that is on the disk for certain.
func (j *Journal) progress() (written, synced int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.files.size, j.files.synced
}

// note queues a record as Note does.
func (j *Journal) note(ctx context.Context, r tool.Record) error {
	line, err := appendChecked(nil, r)
	if err != nil {
		return err
	}
	t, err := j.put(ctx, false, entry{lines: endLine(line, 0), records: 1})
	if t.write {
		go j.write()
	}
	return err
}

// TestSyncFollows checks that what was committed is written at once and synced within the time given, several commits
// with one sync.
func TestSyncFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const within = 5 * time.Millisecond
		j, err := Open(JournalConfig{Dir: dir, SyncWithin: within}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			for i := range 4 {
				if err := j.Commit(t.Context(), tool.Event{Subject: fmt.Sprint(round, i)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if written, synced := j.progress(); written == synced {
				t.Errorf("round %d: synced too early", round)
			}
			n := 0
			if err := Read(dir, func(json.RawMessage) bool { n++; return true }); err != nil || n != 4*(round+1) {
				t.Errorf("%d records are written, %v", n, err)
			}
			time.Sleep(within)
			synctest.Wait()
			if written, synced := j.progress(); written != synced {
				t.Errorf("round %d: %d of %d bytes are synced after %s", round, synced, written, within)
			}
		}
		if err := j.note(t.Context(), tool.Event{Subject: "last"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(within)
		synctest.Wait()
		if written, synced := j.progress(); written != synced {
			t.Error("what was noted is never synced")
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSyncFails takes the file away before the sync: health says so, a new file is begun, and all is well after its first
// sync. What was written stays.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const within = 5 * time.Millisecond
		var log strings.Builder
		j, err := Open(JournalConfig{Dir: dir, SyncWithin: within}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		commit := func(subject string) {
			t.Helper()
			if err := j.Commit(t.Context(), tool.Event{Subject: subject}); err != nil {
				t.Fatal(err)
			}
		}
		commit("a")
		j.files.current.Close()
		time.Sleep(within)
		synctest.Wait()
		if err := j.Healthy(); err == nil || !strings.Contains(err.Error(), "sync journal") {
			t.Errorf("health after a failed sync: %v", err)
		}
		commit("b")
		if j.Healthy() == nil {
			t.Error("a write is taken for a sync")
		}
		time.Sleep(within)
		synctest.Wait()
		if err := j.Healthy(); err != nil {
			t.Errorf("health after a good sync: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		n := 0
		if err := Read(dir, func(json.RawMessage) bool { n++; return true }); err != nil || n != 2 {
			t.Errorf("%d records, %v", n, err)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "lost=1") {
			t.Errorf("the log says %s", &log)
		}
	})
}
