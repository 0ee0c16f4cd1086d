package hub

import (
	"bytes"
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
	dir := filepath.Join(t.TempDir(), "journal")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := &Hub{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		warned := func(want int, when string) {
			t.Helper()
			time.Sleep(3 * lookForKilled)
			synctest.Wait()
			if got := strings.Count(log.String(), "calls of a killed hub may have no last record"); got != want {
				t.Errorf("%s: it is logged %d times, want %d: %s", when, got, want, log.String())
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
