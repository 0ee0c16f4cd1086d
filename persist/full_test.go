package persist_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// keeper is one that has everything, or nothing and cannot have it.
type keeper struct {
	has     atomic.Bool
	hurried chan struct{}
}

func (k *keeper) Take(persist.Written) {}

func (k *keeper) Has(string, int64) bool { return k.has.Load() }

func (k *keeper) Healthy() error {
	if k.has.Load() {
		return nil
	}
	return errors.New("its disk is full")
}

func (k *keeper) Hurry() {
	select {
	case k.hurried <- struct{}{}:
	default:
	}
}

// At its limit a journal removes nothing that is kept nowhere else. It takes no new calls, and all that is left of the others. Once the keeper has the
// files, the oldest are removed and it goes on.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	k := &keeper{hurried: make(chan struct{}, 1)}
	cfg := persist.JournalConfig{Dir: t.TempDir(), MaxBytes: 4 << 10, MaxFiles: 3, Kept: k}
	j := open(t, cfg)
	call := func(ran bool) *persist.Call {
		c := &persist.Call{}
		c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.a.b", Created: time.Now()}, tool.ExternalMapping{Source: "mcp"})
		if c.Move(tool.StatusQueued, c.Created); ran {
			c.Move(tool.StatusRunning, c.Created)
		}
		return c
	}
	end := func(c *persist.Call) error {
		c.Move(tool.StatusSucceeded, time.Now())
		return j.End(t.Context(), c, &persist.CallEnd{At: time.Now()})
	}
	sizes := func() (names []string, all int64) {
		for _, path := range journalFiles(t, cfg.Dir) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			names, all = append(names, filepath.Base(path)), all+info.Size()
		}
		return names, all
	}
	asked, running := call(false), call(true)
	if err := j.Note(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	first, _ := sizes()
	for n := 0; j.Healthy() == nil; n++ {
		if n > 1000 {
			t.Fatal("it is never full")
		}
		if err := end(call(true)); err != nil {
			t.Fatal(err)
		}
	}
	<-k.hurried
	names, all := sizes()
	limit, line := int64(cfg.MaxFiles)*cfg.MaxBytes, int64(1000) // the last line begins a file
	if !slices.Contains(names, first[0]) || all > limit+line || all < limit-cfg.MaxBytes {
		t.Errorf("%d bytes of %d in %q: the first was %q", all, limit, names, first[0])
	}
	refused := call(true)
	if err := j.Announce(t.Context(), refused); err == nil {
		t.Error("a new call may run")
	}
	refused.NotStarted(time.Now())
	if err := end(refused); err == nil {
		t.Error("the end of a call that did not run is taken")
	}
	if _, now := sizes(); now != all {
		t.Errorf("%d bytes, %d before", now, all)
	}
	asked.Move(tool.StatusRunning, time.Now())
	if err := j.Announce(t.Context(), asked); err != nil {
		t.Errorf("a call that the journal knows: %v", err)
	}
	for _, c := range []*persist.Call{asked, running} {
		if err := end(c); err != nil {
			t.Errorf("the end of a call that has run: %v", err)
		}
	}
	k.has.Store(true)
	j.Tidy()
	if err := j.Healthy(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if names, _ := sizes(); len(names) > cfg.MaxFiles || slices.Contains(names, first[0]) {
		t.Errorf("files afterwards: %q", names)
	}
	if c := call(true); j.Announce(t.Context(), c) != nil || end(c) != nil {
		t.Error("a call afterwards is refused")
	}
}
