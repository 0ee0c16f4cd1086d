package persist

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestFailedSyncIsFoundAtRotation checks that the error of a sync in the background counts, whoever meets it.
func TestFailedSyncIsFoundAtRotation(t *testing.T) {
	t.Parallel()
	f := &files{cfg: JournalConfig{Dir: t.TempDir(), MaxBytes: 100, MaxFiles: 10, SyncWithin: time.Hour},
		logger: slog.New(slog.DiscardHandler)}
	if err := f.openFirst(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.abandon)
	put := func() (int, error) {
		return f.write(&batch{bytes: []byte(strings.Repeat("x", 60) + "\n"), records: 1, durable: true})
	}
	if lost, err := put(); lost != 0 || err != nil {
		t.Fatal(lost, err)
	}
	f.settled = make(chan error, 1)
	f.settled <- errors.New("input/output error")
	if lost, err := put(); lost != 2 || err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("at rotation: %d records lost, %v", lost, err)
	}
	if lost, err := put(); lost != 0 || err != nil {
		t.Errorf("after that: %d records lost, %v", lost, err)
	}
}
