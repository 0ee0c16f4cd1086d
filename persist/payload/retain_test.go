package payload_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// expired returns why the result is gone; "" where it is there.
func expired(t *testing.T, s *payload.Store, id tool.ResultID) string {
	t.Helper()
	_, err := read(s, id)
	var gone *payload.ExpiredError
	if errors.As(err, &gone) {
		return gone.Entry.Reason
	}
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return ""
}

func TestResultsExpireByAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir})
	old, young := entry("old"), entry("young")
	old.Created = old.Created.Add(-31 * 24 * time.Hour)
	put(t, s, old, []byte("only the old one has these bytes"))
	shared := entry("oldtoo")
	shared.Created = old.Created
	put(t, s, shared, []byte("both have these"))
	put(t, s, young, []byte("both have these"))
	if err := s.Sweep(time.Now().Add(2 * time.Hour)); err != nil { // what nobody names is removed an hour after it was written
		t.Fatal(err)
	}
	for id, want := range map[tool.ResultID]string{"res_old": "results are kept for 30 days", "res_oldtoo": "results are kept for 30 days", "res_young": ""} {
		if got := expired(t, s, id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if files := payloads(t, dir); len(files) != 1 {
		t.Errorf("files %q", files)
	}
	if err := s.Sweep(time.Now().Add(400 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Entry("res_old"); !errors.Is(err, payload.ErrUnknown) {
		t.Errorf("the entry of what expired a year ago: %v", err)
	}
}

// TestTheOneWhoHasMostLosesFirst has a caller fill the store: what others got stays.
func TestTheOneWhoHasMostLosesFirst(t *testing.T) {
	t.Parallel()
	s := open(t, payload.Config{Dir: t.TempDir(), MaxBytes: 1 << 20})
	begin := time.Now()
	for i := range 20 {
		e := entry(fmt.Sprintf("a%02d", i))
		e.Created = begin.Add(time.Duration(i) * time.Second)
		raw := noise(200_000)
		copy(raw, e.ID)
		put(t, s, e, raw)
	}
	first := entry("b")
	first.Actor, first.Created = "actor:http/bob", begin.Add(-time.Hour)
	put(t, s, first, noise(300_000))
	if err := s.Sweep(begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if why := expired(t, s, "res_b"); why != "" {
		t.Errorf("the older result of another caller is gone: %s", why)
	}
	if why := expired(t, s, "res_a00"); !strings.Contains(why, "more than 1 MiB") {
		t.Errorf("the oldest: %q", why)
	}
	if why := expired(t, s, "res_a19"); why != "" {
		t.Errorf("the youngest: %q", why)
	}
}

// TestSweepByItself has the store remove what expires while it is open.
func TestSweepByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payload.Config{Dir: dir, MaxAge: 24 * time.Hour})
		defer s.Close()
		put(t, s, entry("a"), noise(100))
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if why := expired(t, s, "res_a"); why != "" {
			t.Errorf("after 23 hours: %s", why)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if why := expired(t, s, "res_a"); why != "results are kept for 24h0m0s" {
			t.Errorf("after 26 hours: %q", why)
		}
	})
}

func TestWhatACrashLeavesIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir})
	put(t, s, entry("a"), noise(100))
	lost := put(t, s, entry("b"), noise(101))
	unfinished, foreign := filepath.Join(dir, "bytes", lost.Digest[:2], "new-123"), filepath.Join(dir, "bytes", "notes.txt")
	for _, file := range []string{unfinished, foreign} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "index", "res_b.json")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 4}, {2 * time.Hour, 2}} {
		if err := s.Sweep(time.Now().Add(c.after)); err != nil {
			t.Error(err)
		}
		if files := payloads(t, dir); len(files) != c.want {
			t.Errorf("after %s: %q", c.after, files)
		}
	}
}

// An entry that cannot be read keeps nothing else from being swept, and says so.
func TestSweepNamesCorruptEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, payload.Config{Dir: dir, MaxAge: time.Hour})
	put(t, s, entry("a"), noise(100))
	put(t, s, entry("b"), noise(101))
	if err := os.WriteFile(filepath.Join(dir, "index", "res_a.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(time.Now().Add(3 * time.Hour)); err == nil || !strings.Contains(err.Error(), "res_a.json") {
		t.Errorf("got %v", err)
	}
	if why := expired(t, s, "res_b"); why == "" {
		t.Error("the other result is still there")
	}
}
