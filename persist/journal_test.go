package persist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

func TestCommitIsReadableAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "journal")
	j := open(t, persist.JournalConfig{Dir: dir})
	want := numbered("s", 20)
	for i, s := range want {
		commit(t, j, s)
		if got := subjects(t, dir); len(got) != i+1 || got[i] != s {
			t.Fatalf("after commit %d the journal holds %q", i, got)
		}
	}
	if err := j.Healthy(); err != nil {
		t.Error(err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "journal")
	commit(t, open(t, persist.JournalConfig{Dir: dir}), "a")
	for path, want := range map[string]fs.FileMode{dir: 0o700, journalFiles(t, dir)[0]: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// TestManyCallers checks that nothing is lost or reordered for any caller, that the records of one Commit stand next to
// each other, and that rotation goes on underneath.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	for _, within := range []time.Duration{0, time.Millisecond} {
		t.Run(within.String(), func(t *testing.T) {
			t.Parallel()
			manyCallers(t, persist.JournalConfig{MaxBytes: 20_000, MaxFiles: 1000, SyncWithin: within})
		})
	}
}

func manyCallers(t *testing.T, cfg persist.JournalConfig) {
	t.Helper()
	cfg.Dir = t.TempDir()
	dir, j := cfg.Dir, open(t, cfg)
	const callers, rounds = 16, 25
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for r := range rounds {
				name := fmt.Sprintf("%d/%d/", c, r)
				if err := j.Commit(t.Context(), event(name+"0")); err != nil {
					t.Error(err)
				}
				if err := j.Commit(t.Context(), event(name+"1"), event(name+"2"), event(name+"3")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := subjects(t, dir)
	if len(got) != 4*callers*rounds {
		t.Fatalf("%d records, want %d", len(got), 4*callers*rounds)
	}
	for c := range callers {
		mine := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, fmt.Sprintf("%d/", c)) })
		for i, s := range mine {
			if want := fmt.Sprintf("%d/%d/%d", c, i/4, i%4); s != want {
				t.Fatalf("caller %d: record %d is %q, want %q", c, i, s, want)
			}
		}
	}
	for i, s := range got {
		if name, ok := strings.CutSuffix(s, "/1"); ok && (got[i+1] != name+"/2" || got[i+2] != name+"/3") {
			t.Fatalf("the records of one Commit are apart: %q", got[i:i+3])
		}
	}
	if n := len(journalFiles(t, dir)); n < 3 {
		t.Errorf("%d files, want several", n)
	}
}

func TestRotationKeepsMaxFilesAndOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir, MaxBytes: 1000, MaxFiles: 4})
	want := numbered("s", 60)
	commit(t, j, want...)
	files := journalFiles(t, dir)
	if len(files) != 4 {
		t.Errorf("%d files, want 4: %q", len(files), files)
	}
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Size() > 1000 || info.Size() == 0 {
			t.Errorf("%s: %v, %v", path, info.Size(), err)
		}
	}
	got := subjects(t, dir)
	if len(got) < 4 || !slices.Equal(got, want[len(want)-len(got):]) {
		t.Errorf("the journal holds %q", got)
	}
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "journal-20200101T000000.000Z-000001.jsonl")
	recent := filepath.Join(dir, "journal-20200101T000000.000Z-000002.jsonl")
	foreign := filepath.Join(dir, "journal-notes.jsonl")
	for path, age := range map[string]time.Duration{old: 49 * time.Hour, recent: 47 * time.Hour, foreign: 999 * time.Hour} {
		writeFile(t, path, "{}\n")
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	j := open(t, persist.JournalConfig{Dir: dir, MaxAge: 48 * time.Hour, MaxBytes: 3})
	commit(t, j, "a")
	for path, want := range map[string]bool{old: false, recent: true, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", path, err == nil, want)
		}
	}
}

// TestSharedDirectory has several hubs in one directory: each has a file of its own, which none of the others removes,
// however small MaxFiles is.
func TestSharedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := persist.JournalConfig{Dir: dir, MaxBytes: 600, MaxFiles: 1}
	quiet := open(t, cfg)
	commit(t, quiet, "quiet-1")
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			j := open(t, cfg)
			commit(t, j, numbered(fmt.Sprintf("busy%d-", c), 12)...)
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	commit(t, quiet, "quiet-2")
	got := subjects(t, dir)
	for _, want := range []string{"quiet-1", "quiet-2"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is gone", want)
		}
	}
}

// TestRestartGoesOnWithTheFile also covers a crash: the file ends in half a line.
func TestRestartGoesOnWithTheFile(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{
		"clean": "", "torn": `{"object":"tool_ev`, "torn long": strings.Repeat("x", 10_000), "zeros": "\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, s := range []string{"a", "b", "c"} {
				j := open(t, persist.JournalConfig{Dir: dir})
				commit(t, j, s)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				path := journalFiles(t, dir)[0]
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(string(text), "}\n") {
					t.Fatalf("after a good end, the file ends in %q", text[max(0, len(text)-50):])
				}
				writeFile(t, path, string(text)+tail)
			}
			if got := subjects(t, dir); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Errorf("the journal holds %q", got)
			}
			if files := journalFiles(t, dir); len(files) != 1 {
				t.Errorf("%d files, want 1", len(files))
			}
		})
	}
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "journal-29990101T000000.000Z-000041.jsonl"), `{"subject":"future"}`+"\n")
	commit(t, open(t, persist.JournalConfig{Dir: dir, MaxBytes: 10}), "a", "b")
	if got := subjects(t, dir); !slices.Equal(got, []string{"future", "a", "b"}) {
		t.Errorf("the journal holds %q", got)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	commit(t, j, numbered("s", 100)...)
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Commit(t.Context(), event("late")); !errors.Is(err, persist.ErrClosed) {
		t.Errorf("Commit after Close: %v", err)
	}
	if got := subjects(t, dir); !slices.Equal(got, numbered("s", 100)) {
		t.Errorf("the journal holds %d records: %q", len(got), got)
	}
}

// TestCloseDuringCommits checks that every Commit ends: written, or refused.
func TestCloseDuringCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := map[string]bool{}
	started := make(chan struct{}, 8)
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				s := fmt.Sprintf("%d-%d", c, i)
				err := j.Commit(context.Background(), event(s))
				if errors.Is(err, persist.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				written[s] = true
				mu.Unlock()
				if i == 0 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-started
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	got := subjects(t, dir)
	if len(got) != len(written) {
		t.Errorf("%d records in the journal, %d commits went well", len(got), len(written))
	}
}

func TestUnencodableRecordQueuesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	bad := tool.Invocation{ModelInput: json.RawMessage(`{"a":`)}
	if err := j.Commit(t.Context(), event("a"), bad); err == nil {
		t.Error("a record that is no JSON was accepted")
	}
	commit(t, j, "b")
	if got := subjects(t, dir); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the journal holds %q", got)
	}
}

func TestOpenErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, dir := range []string{file, filepath.Join(file, "sub"), ""} {
		_, err := persist.Open(persist.JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
		var journalErr *persist.JournalError
		if !errors.As(err, &journalErr) || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("Open(%q): %v", dir, err)
		}
	}
}

func TestCommitGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	j := open(t, persist.JournalConfig{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Either the record was on the disk already, or the wait ended; it must not hang or claim a failing disk.
	if err := j.Commit(ctx, event("a")); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRecordsLargerThanTheQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	large := event(strings.Repeat("x", 9<<20))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := j.Commit(t.Context(), large, large); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines := 0
	if err := persist.Read(dir, func(json.RawMessage) bool { lines++; return true }); err != nil || lines != 4 {
		t.Errorf("%d records, want 4; %v", lines, err)
	}
}

func TestReadStopsAndReportsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := filepath.Join(dir, "journal-20260101T000000.000Z-000001.jsonl")
	second := filepath.Join(dir, "journal-20260101T000000.000Z-000002.jsonl")
	writeFile(t, first, "{\"subject\":\"a\"}\nbroken\n{\"subject\":\"b\"}\n{\"subj")
	writeFile(t, second, "{\"subject\":\"c\"}\n{\"subject\":\"whole but unfinished\"}")
	var got []string
	err := persist.Read(dir, func(line json.RawMessage) bool { got = append(got, string(line)); return true })
	if err == nil || !strings.Contains(err.Error(), first+", byte 16: ") {
		t.Errorf("error %v does not name the second line of the first file", err)
	}
	if want := []string{`{"subject":"a"}`, `{"subject":"b"}`, `{"subject":"c"}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	count := 0
	if err := persist.Read(dir, func(json.RawMessage) bool { count++; return false }); err != nil || count != 1 {
		t.Errorf("stopped after %d records with %v", count, err)
	}
	if err := persist.Read(filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

func TestRef(t *testing.T) {
	t.Parallel()
	const want = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a;bytes=2"
	if got := persist.Ref(json.RawMessage(`{}`)); got != want {
		t.Errorf("Ref({}) = %q, want %q", got, want)
	}
}
