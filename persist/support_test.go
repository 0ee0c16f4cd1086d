package persist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// open opens a journal that is closed at the end of the test.
func open(t testing.TB, cfg persist.JournalConfig) *persist.Journal {
	t.Helper()
	j, err := persist.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// event returns an event that can be told from others by its subject.
func event(subject string) tool.Event {
	return tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), Time: time.Now(),
		EventType: tool.EventInvocationStarted, Source: tool.EventSource, Subject: subject}
}

// subjects reads the journal in dir and returns the subjects of its records in order.
func subjects(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := persist.Read(dir, func(line json.RawMessage) bool {
		var e tool.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Subject)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// commit commits one event for each subject, each by itself.
func commit(t testing.TB, j *persist.Journal, subjects ...string) {
	t.Helper()
	for _, s := range subjects {
		if err := j.Commit(context.Background(), event(s)); err != nil {
			t.Fatal(err)
		}
	}
}

// journalFiles returns the paths of the journal files in dir, in order.
func journalFiles(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func numbered(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return all
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
