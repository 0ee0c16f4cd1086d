package invoke

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

var update = flag.Bool("update", false, "write the golden files anew")

// answer is the executor's answer to ordinary calls.
const answer = `{"content":[{"type":"text","text":"3"}],"structuredContent":{"n":1.50}}`

// does replaces what the tool of the bench does.
type admits func(tool.DeferredCall) ([]tool.Record, error)

func (a admits) Admit(c tool.DeferredCall) ([]tool.Record, error) { return a(c) }

func (b *bench) does(ex executorFunc) { b.opts.Executors = map[string]Executor{"mcp": ex} }

func canceled(ctx context.Context, after time.Duration, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	if after == 0 {
		cancel(cause)
	} else {
		time.AfterFunc(after, func() { cancel(cause) })
	}
	return ctx
}

// recordsOf are records of a call besides its own.
func recordsOf(id tool.InvocationID) []tool.Record {
	return []tool.Record{tool.DeferredRef{Head: tool.HeadOf(tool.ObjectDeferredRef), ToolID: "mcp.s.u", Name: "u", SchemaVisibility: "deferred",
		LoadingState: tool.LoadingDiscoverable, SchemaDigest: "d", InvocationID: id, ActorRef: "actor:http/ann", CreatedAt: time.Now()},
		tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: tool.EventDeferredDiscovered, Source: tool.EventSource,
			Subject: "mcp.s.u", Time: time.Now(), InvocationID: id, ToolID: "mcp.s.u", Data: map[string]any{"schema_digest": "d", "n": 1.5}}}
}

// lines reads the objects that the journal in dir holds, one a line.
func lines(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := persist.Read(dir, func(line json.RawMessage) bool {
		if !ofTool(line) {
			all.Write(append(line, '\n'))
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func writeJournal(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "journal-20260101T000000.000Z-000001.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The journals of the version before, which held the objects line by line, are read as they are.
func TestJournalsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "journal", "*.jsonl"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		writeJournal(t, dir, string(text))
		if got := lines(t, dir); got != string(text) {
			t.Errorf("%s: %s", file, firstDifference(got, string(text)))
		}
	}
}

// firstDifference shows the first line in which two journals differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("line %d is missing: %s", i+1, b[i])
		case i >= len(b):
			return fmt.Sprintf("line %d is too much: %s", i+1, a[i])
		case a[i] != b[i]:
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, a[i], b[i])
		}
	}
	return ""
}
