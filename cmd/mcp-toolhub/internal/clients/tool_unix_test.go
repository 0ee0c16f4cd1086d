//go:build e2e && unix

package clients

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestToolThatHangs: a client's own command that does not end is ended, with what it has started.
func TestToolThatHangs(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	if err := syscall.Mkfifo(open, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(open)
		if err == nil {
			_, err = io.Copy(io.Discard, f) // until no process has it open
		}
		ended <- err
	}()
	out, err := runWithin(t.Context(), 2*time.Second, []string{"sh", "-c", `echo asking; exec 3>"$0"; sleep 60 & wait`, open})
	if err == nil || err.Error() != "it has not ended within 2s" || string(out) != "asking\n" {
		t.Errorf("%q, %v", out, err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(50 * time.Second):
		t.Error("what it has started still runs")
	}
	if out, err := runWithin(t.Context(), time.Minute, []string{"sh", "-c", "echo no; exit 3"}); err == nil || err.Error() != "exit status 3" || string(out) != "no\n" {
		t.Errorf("%q, %v", out, err)
	}
}
