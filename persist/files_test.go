package persist

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestBrokenFileIsGivenUp takes the file away from under the journal, so that even cutting it back fails.
func TestBrokenFileIsGivenUp(t *testing.T) {
	t.Parallel()
	f := &files{cfg: JournalConfig{Dir: t.TempDir(), MaxBytes: 1000, MaxFiles: 10}, logger: slog.New(slog.DiscardHandler)}
	if err := f.openFirst(); err != nil {
		t.Fatal(err)
	}
	put := func(text string, records int, durable bool) (int, error) {
		return f.write(&batch{bytes: []byte(text), records: records, durable: durable})
	}
	steps := []struct {
		name     string
		broken   bool
		text     string
		records  int
		durable  bool
		wantLost int
	}{
		{name: "durable", text: "1\n", records: 1, durable: true},
		{name: "appended", text: "2\n3\n", records: 2},
		{name: "the write fails, the appended ones are no longer certain", broken: true, text: "4\n", records: 1, wantLost: 3},
		{name: "a new file", text: "5\n", records: 1, durable: true},
		{name: "appended again", text: "6\n", records: 1},
		{name: "the sync fails", broken: true, durable: true, wantLost: 1},
		{name: "another new file", text: "7\n", records: 1},
		{name: "the sync before a rotation fails", broken: true, text: strings.Repeat("8", 999) + "\n", records: 1, wantLost: 2},
		{name: "one more", text: "9\n", records: 1, durable: true},
	}
	for _, step := range steps {
		if step.broken {
			f.current.Close()
		}
		lost, err := put(step.text, step.records, step.durable)
		if lost != step.wantLost || (err != nil) != step.broken {
			t.Fatalf("%s: lost %d, want %d; error %v", step.name, lost, step.wantLost, err)
		}
		var journalErr *JournalError
		if step.broken && !errors.As(err, &journalErr) {
			t.Errorf("%s: error %v", step.name, err)
		}
	}
	if lost, err := f.close(); lost != 0 || err != nil {
		t.Errorf("close: %d, %v", lost, err)
	}
	var got []string
	err := Read(f.cfg.Dir, func(line json.RawMessage) bool { got = append(got, string(line)); return true })
	if text := strings.Join(got, ""); err != nil || text != "1235679" {
		t.Errorf("the journal holds %q, %v", text, err)
	}
}

// TestFullQueue fills the queue of a journal whose writer has not begun, as one whose disk hangs.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &files{cfg: JournalConfig{Dir: dir, MaxBytes: defaultMaxBytes, MaxFiles: 10}, logger: slog.New(slog.DiscardHandler)}
		if err := f.openFirst(); err != nil {
			t.Fatal(err)
		}
		j := newJournal(f, f.logger)
		j.writer = true // and hangs
		large := tool.Event{Subject: strings.Repeat("x", queueBytes/4)}
		for range 3 {
			if err := j.note(t.Context(), large); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		outcomes := make([]error, 3)
		var done atomic.Int32
		for i, put := range []func() error{
			func() error { return j.note(ctx, large) },
			func() error { return j.note(t.Context(), large) },
			func() error { return j.Commit(t.Context(), large) },
		} {
			wg.Go(func() { outcomes[i] = put(); done.Add(1) })
		}
		synctest.Wait()
		if n := done.Load(); n != 0 {
			t.Fatalf("%d calls did not wait for room", n)
		}
		cancel()
		synctest.Wait()
		if n := done.Load(); n != 1 || !errors.Is(outcomes[0], context.Canceled) {
			t.Fatalf("%d calls ended when one was canceled; it returned %v", n, outcomes[0])
		}
		go j.write()
		wg.Wait()
		if err := errors.Join(outcomes[1:]...); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	lines := 0
	if err := Read(dir, func(json.RawMessage) bool { lines++; return true }); err != nil || lines != 5 {
		t.Errorf("%d records, want 5; %v", lines, err)
	}
}

// TestCallsAreWrittenBeforeTheyRun: a call leaves a record, also if its hub is killed in its first instant.
func TestCallsAreWrittenBeforeTheyRun(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, err := Open(JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		var c Call
		c.Begin(CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.s.t", Created: time.Now()}, tool.ExternalMapping{Source: "mcp"})
		c.Move(tool.StatusRunning, time.Now())
		if err := j.Announce(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		found := false
		if err := Read(dir, func(line json.RawMessage) bool {
			found = found || strings.Contains(string(line), string(c.Invocation))
			return true
		}); err != nil || !found {
			t.Errorf("the call is in the journal: %t, %v", found, err)
		}
	})
}
