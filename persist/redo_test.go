package persist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// redoFiles returns files whose redo file is ready, and how many records of put are in them.
func redoFiles(t *testing.T) (f *files, put func(size int, durable bool)) {
	t.Helper()
	f = &files{cfg: JournalConfig{Dir: t.TempDir(), MaxBytes: defaultMaxBytes, MaxFiles: 10}, logger: slog.New(slog.DiscardHandler)}
	if err := f.openFirst(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.abandon)
	n := 0
	put = func(size int, durable bool) {
		t.Helper()
		line := fmt.Sprintf("{\"n\":%d,\"x\":%q}\n", n, strings.Repeat("x", size))
		n++
		if _, err := f.write(&batch{bytes: []byte(line), records: 1, durable: durable}); err != nil {
			t.Fatal(err)
		}
	}
	for range redoAfter {
		put(10, true)
	}
	f.awaitRedo()
	if f.redo == nil {
		t.Fatal("there is no redo file")
	}
	return f, put
}

// loseTail makes a copy of the journal of f as a loss of power may leave it: without all that the redo file holds.
func loseTail(t *testing.T, f *files) (dir string) {
	t.Helper()
	dir = t.TempDir()
	redo, err := readRedo(f.redo.path)
	if err != nil {
		t.Fatal(err)
	}
	cut := f.size
	for _, half := range [][]byte{redo[:redoHalf], redo[redoHalf:]} {
		if err := frames(half, f.redo.name, func(offset int64, _ []byte) error { cut = min(cut, offset); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{f.path: text[:cut], f.redo.path: redo} {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cut == f.size {
		t.Fatal("the redo file holds nothing")
	}
	return dir
}

// reopened opens and closes the journal in dir and returns what is in its file then.
func reopened(t *testing.T, dir string) []byte {
	t.Helper()
	j, err := Open(JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "journal-*"))
	if err != nil || len(paths) != 1 || !strings.HasSuffix(paths[0], nameSuffix) {
		t.Fatalf("the directory holds %q, %v", paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPowerLoss takes away what was not synced in the journal file itself, at many moments: the redo file holds it, and
// also what was appended before it without anybody waiting.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	f, put := redoFiles(t)
	for step := range 12 {
		for i := range 40 {
			put(7000, i%3 == 0)
		}
		put(100_000, true)
		want, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := reopened(t, loseTail(t, f)); !bytes.Equal(got, want) {
			t.Fatalf("step %d: %d bytes after the loss of power, want %d", step, len(got), len(want))
		}
	}
	if f.redo.epoch < 5 {
		t.Errorf("the halves of the redo file were used %d times only", f.redo.epoch)
	}
	put(2*redoHalf, true) // too much for the redo file: synced in the journal itself
	if f.synced != f.size {
		t.Error("a large record is not synced")
	}
	put(10, true)
	path := f.redo.path
	if lost, err := f.close(); lost != 0 || err != nil {
		t.Error(lost, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("after a good end there is a redo file: %v", err)
	}
	if err := Read(f.cfg.Dir, func(json.RawMessage) bool { return true }); err != nil {
		t.Error(err)
	}
}

// TestDamagedRedo checks that nothing but whole frames of this journal file is ever taken from a redo file.
func TestDamagedRedo(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(redo []byte, dir string) []byte{
		"a bit in the first frame": func(redo []byte, _ string) []byte { redo[40] ^= 1; return redo },
		"cut in the first frame":   func(redo []byte, _ string) []byte { return redo[:40] },
		"a length beyond the end":  func(redo []byte, _ string) []byte { redo[7] = 0xff; return redo },
		"empty":                    func([]byte, string) []byte { return nil },
		"zeros":                    func(redo []byte, _ string) []byte { clear(redo); return redo },
		"of another journal":       nil,
		"a negative offset, resummed": func(redo []byte, dir string) []byte {
			names, _ := journalNames(dir)
			return append(appendFrame(nil, names[0], 1, -5, []byte("x")), redo[:0]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, put := redoFiles(t)
			put(10, true)
			put(10, true)
			dir := loseTail(t, f)
			own := redoPath(filepath.Join(dir, filepath.Base(f.path)))
			redo, err := os.ReadFile(own)
			if err != nil {
				t.Fatal(err)
			}
			if damage != nil {
				redo = damage(redo, dir)
			} else {
				redo = appendFrame(nil, "journal-20200101T000000.000Z-000001.jsonl", 1, 0, []byte("foreign\n"))
			}
			if err := os.WriteFile(own, redo, 0o600); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(dir, filepath.Base(f.path)))
			if err != nil {
				t.Fatal(err)
			}
			if got := reopened(t, dir); !bytes.Equal(got, want) {
				t.Errorf("the journal holds %q, want %q", got, want)
			}
		})
	}
}

// TestUnreadableRedo checks that a journal file is left alone until what its redo file holds could be restored: older
// records must not come to stand over newer ones.
func TestUnreadableRedo(t *testing.T) {
	t.Parallel()
	f, put := redoFiles(t)
	put(10, true)
	want, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	dir := loseTail(t, f)
	own := redoPath(filepath.Join(dir, filepath.Base(f.path)))
	if err := os.Rename(own, own+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(own, 0o700); err != nil { // which no program can read as a file
		t.Fatal(err)
	}
	j, err := Open(JournalConfig{Dir: dir, MaxFiles: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), tool.Event{Subject: "newer"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(own+".away", own); err != nil {
		t.Fatal(err)
	}
	j, err = Open(JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	newer := 0
	err = Read(dir, func(line json.RawMessage) bool {
		if strings.Contains(string(line), "newer") {
			newer++
			return true
		}
		got = append(append(got, line...), '\n')
		return true
	})
	if err != nil || newer != 1 || !bytes.Equal(got, want) {
		t.Errorf("the journal holds %d newer records and %q, %v; want %q", newer, got, err, want)
	}
}

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

// TestRedoFails takes the redo file away from under the journal: it goes on without, and loses nothing.
func TestRedoFails(t *testing.T) {
	t.Parallel()
	f, put := redoFiles(t)
	put(10, true)
	f.redo.file.Close() // writes fail from here on
	put(20, true)
	if f.redo != nil || f.synced != f.size {
		t.Errorf("redo %v, synced %d of %d", f.redo, f.synced, f.size)
	}
	put(30, true)
	if lost, err := f.close(); lost != 0 || err != nil {
		t.Error(lost, err)
	}
	n := 0
	if err := Read(f.cfg.Dir, func(json.RawMessage) bool { n++; return true }); err != nil || n != redoAfter+3 {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestRotationDropsRedo checks that each file has a redo file of its own, for as long as it is the current one.
func TestRotationDropsRedo(t *testing.T) {
	t.Parallel()
	f, put := redoFiles(t)
	f.cfg.MaxBytes = 5000
	first := f.redo.path
	for range 100 {
		put(400, true)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("the redo file of a closed journal file is left: %v", err)
	}
	f.awaitRedo()
	if f.redo != nil && f.redo.path != redoPath(f.path) {
		t.Errorf("redo file %q for %q", f.redo.path, f.path)
	}
	entries, err := os.ReadDir(f.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	redos := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), redoSuffix) {
			redos++
			if info, err := e.Info(); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
				t.Errorf("%v, %v", info, err)
			}
		}
	}
	if redos > 1 {
		t.Errorf("%d redo files", redos)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, "a", 3, 17, []byte("one")), "a", 3, 20, []byte("two")))
	f.Add(bytes.Repeat([]byte{0}, 64))
	f.Fuzz(func(t *testing.T, half []byte) {
		_ = frames(half, "a", func(offset int64, payload []byte) error {
			if offset < 0 || len(payload) > len(half) {
				t.Fatalf("a frame of %d bytes at %d", len(payload), offset)
			}
			return nil
		})
	})
}
