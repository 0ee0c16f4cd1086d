package payload_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
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
	onEach(t, func(t *testing.T, at testbed) {
		s, told := openTold(t, at.config())
		old, young := entry("old"), entry("young")
		old.Created = old.Created.Add(-31 * 24 * time.Hour)
		put(t, s, old, []byte("old"))
		e := put(t, s, young, []byte("young"))
		if err := s.Sweep(t.Context(), time.Now().Add(3*time.Hour)); err != nil { // what nobody names is kept for hours
			t.Fatal(err)
		}
		for id, want := range map[tool.ResultID]string{"res_old": "results are kept for 30 days", "res_young": ""} {
			if got := expired(t, s, id); got != want {
				t.Errorf("%s: %q", id, got)
			}
		}
		if files := at.keys(t, "bytes/"); len(files) != 1 || files[0] != payloadOf(e) {
			t.Errorf("files %q", files)
		}
		if got := told(); got != "res_old" {
			t.Errorf("told of %q", got)
		}
		if err := s.Sweep(t.Context(), time.Now().Add(400*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Entry("res_old"); !errors.Is(err, payload.ErrUnknown) {
			t.Errorf("the entry of what expired a year ago: %v", err)
		}
	})
}

// openTold opens a store. told returns the ids of what has expired, sorted.
func openTold(t testing.TB, c payload.Config) (s *payload.Store, told func() string) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	s, err := payload.Open(t.Context(), c, func(e payload.Entry) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, string(e.ID))
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, func() string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(ids)
		return strings.Join(ids, " ")
	}
}

// TestExpiredOnceByMany has several stores on one place, as several hubs have, sweep at the same time: one tells.
func TestExpiredOnceByMany(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		var stores []*payload.Store
		var told []func() string
		for range 3 {
			s, by := openTold(t, at.config())
			stores, told = append(stores, s), append(told, by)
		}
		for i := range 5 {
			e := entry(fmt.Sprint("a", i))
			put(t, stores[0], e, []byte(e.ID))
		}
		var all sync.WaitGroup
		for _, s := range stores {
			all.Go(func() {
				if err := s.Sweep(t.Context(), time.Now().Add(31*24*time.Hour)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		var ids []string
		for _, by := range told {
			ids = append(ids, strings.Fields(by())...)
		}
		if slices.Sort(ids); strings.Join(ids, " ") != "res_a0 res_a1 res_a2 res_a3 res_a4" {
			t.Errorf("told of %q", ids)
		}
		if files := at.keys(t, "bytes/"); len(files) != 0 {
			t.Errorf("files %q", files)
		}
	})
}

// TestVersions: other bytes under a name are its next version, for each caller and tool, until nothing is known of it any more.
func TestVersions(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		n := 0
		s := openAt(t, at)
		version := func(name, actor, text string) int {
			n++
			e := entry(fmt.Sprintf("a.%d", n))
			e.Name, e.Actor = name, actor
			stored, err := s.Put(e, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			known, err := s.Entry(e.ID)
			if ref := known.Ref(); err != nil || known.Version != stored.Version || ref.ArtifactID != e.ID || ref.Name != name || ref.Version != stored.Version {
				t.Errorf("%+v, %v", known, err)
			}
			return stored.Version
		}
		got := fmt.Sprint(version("out", "ann", "1"), version("out", "ann", "2"), version("out", "ann", "2"), version("out", "bob", "2"),
			version("err", "ann", "2"), version("out", "ann", "1"))
		if want := "1 2 2 1 1 3"; got != want {
			t.Errorf("versions %s, want %s", got, want)
		}
		if err := s.Sweep(t.Context(), time.Now().Add(300*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if kept := at.keys(t, "names/"); len(kept) != 3 {
			t.Errorf("the last versions of three names are %q", kept)
		}
		if v := version("out", "ann", "4"); v != 4 {
			t.Errorf("after 300 days the version is %d", v)
		}
		if err := s.Sweep(t.Context(), time.Now().Add(400*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if v := version("out", "ann", "5"); v != 1 {
			t.Errorf("after 400 days the version is %d", v)
		}
	})
}

// TestTheOneWhoHasMostLosesFirst has a caller fill the store: what others got stays.
func TestTheOneWhoHasMostLosesFirst(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		c := at.config()
		c.MaxBytes = 1 << 20
		s := open(t, c)
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
		if err := s.Sweep(t.Context(), begin.Add(time.Minute)); err != nil {
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
	})
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
	onEach(t, func(t *testing.T, at testbed) {
		s := openAt(t, at)
		put(t, s, entry("a"), noise(100))
		lost := put(t, s, entry("b"), noise(101))
		at.set(t, path.Dir(payloadOf(lost))+"/new-123", nil)
		at.set(t, "bytes/notes.txt", nil)
		at.remove(t, "index/res_b.json")
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{time.Minute, 4}, {3 * time.Hour, 2}} {
			if err := s.Sweep(t.Context(), time.Now().Add(c.after)); err != nil {
				t.Error(err)
			}
			if files := at.keys(t, "bytes/"); len(files) != c.want {
				t.Errorf("after %s: %q", c.after, files)
			}
		}
	})
}

// An entry that cannot be read keeps nothing else from being swept, and says so.
func TestSweepNamesCorruptEntries(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		c := at.config()
		c.MaxAge = time.Hour
		s := open(t, c)
		put(t, s, entry("a"), noise(100))
		put(t, s, entry("b"), noise(101))
		at.set(t, "index/res_a.json", []byte("{"))
		if err := s.Sweep(t.Context(), time.Now().Add(3*time.Hour)); err == nil || !strings.Contains(err.Error(), "res_a.json") {
			t.Errorf("got %v", err)
		}
		if why := expired(t, s, "res_b"); why == "" {
			t.Error("the other result is still there")
		}
	})
}
