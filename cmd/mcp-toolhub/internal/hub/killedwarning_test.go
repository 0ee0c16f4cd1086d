package hub

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAWarningOfKilledHubsIsLoggedOnce has the journal's directory be a file for a while, then a
// directory, and then a file again.
func TestAWarningOfKilledHubsIsLoggedOnce(t *testing.T) {
	dir, logged := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		log, err := os.Create(logged)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		h := &Hub{Logger: slog.New(slog.NewTextHandler(log, nil))}
		warned := func(want int, when string) {
			t.Helper()
			time.Sleep(3 * lookForKilled)
			synctest.Wait()
			text, err := os.ReadFile(logged)
			if got := strings.Count(string(text), "calls of a killed hub may have no last record"); got != want {
				t.Errorf("%s: it is logged %d times, want %d: %s (%v)", when, got, want, text, err)
			}
		}
		be := func(make func() error) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := make(); err != nil {
				t.Fatal(err)
			}
		}
		file := func() error { return os.WriteFile(dir, nil, 0o600) }
		be(file)
		stop := h.endKilled(dir)
		defer stop()
		warned(1, "a file")
		be(func() error { return os.Mkdir(dir, 0o700) })
		warned(1, "a directory")
		be(file)
		warned(2, "a file again")
	})
}
