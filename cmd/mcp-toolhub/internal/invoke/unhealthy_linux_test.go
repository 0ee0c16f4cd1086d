package invoke

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// breakJournal makes the disk under the open journal a full one, and takes its directory away, so that no new file can be begun.
func (b *bench) breakJournal(t *testing.T) (mend func()) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	held, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	broken := 0
	for _, e := range held {
		if target, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); filepath.Dir(target) == b.dir && strings.HasSuffix(target, ".jsonl") {
			fd, _ := strconv.Atoi(e.Name())
			if err := syscall.Dup3(int(full.Fd()), fd, syscall.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			broken++
		}
	}
	if broken != 1 {
		t.Fatalf("%d open files of the journal in %s", broken, b.dir)
	}
	if err := os.Rename(b.dir, b.dir+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(b.dir+".away", b.dir); err != nil {
			t.Fatal(err)
		}
	}
}

// While the journal cannot be written, no call runs, not even one that only reads. Once it can be written again, calls run.
func TestNothingRunsWhileTheJournalFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", nil)
	b.readsOnly()
	runs, before, away := 0, 0, false // before: lines of the journal when the call runs
	b.does(func(context.Context, *tool.Execution) (tool.Reply, error) {
		if runs++; !away {
			before = b.written(t)
		}
		return tool.Reply{Result: json.RawMessage(answer)}, nil
	})
	call := func(step string, status tool.Status, ran int) Outcome {
		t.Helper()
		o := b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		if o.Status != status || runs != ran {
			t.Fatalf("%s: %s %s, %d runs instead of %d", step, o.Status, o.Result, runs, ran)
		}
		return o
	}
	call("before", tool.StatusSucceeded, 1)
	mend := b.breakJournal(t)
	away = true
	for _, step := range []string{"nobody knows yet", "known"} {
		o := call(step, tool.StatusFailed, 1)
		if o.Class != tool.ClassDependencyUnavailable || !o.JournalFailed || !strings.Contains(string(o.Result), "cannot write its journal") {
			t.Errorf("%s: %+v %s", step, o, o.Result)
		}
	}
	mend()
	away = false
	o := call("mended", tool.StatusSucceeded, 2)
	if in := b.written(t); o.JournalFailed || before != 3 || in != 4 {
		t.Errorf("mended: %d lines when the call runs, %d in the end", before, in)
	}
	call("after", tool.StatusSucceeded, 3)
	if in := b.written(t); before != 5 || in != 6 {
		t.Errorf("after: %d lines when the call runs, %d in the end", before, in)
	}
}
