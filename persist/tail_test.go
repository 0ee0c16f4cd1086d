package persist

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// tailJournal opens a journal that begins a new file after so many bytes.
func tailJournal(t *testing.T, dir string, maxBytes int64) *Journal {
	t.Helper()
	j, err := Open(JournalConfig{Dir: dir, MaxBytes: maxBytes, MaxFiles: 100}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// came is the events that have come since the last time, by their ids.
func came(t *testing.T, tail *Tail) (all []string) {
	t.Helper()
	err := tail.Next(func(e Entry) bool {
		if id, ok := rawjson.GetString(e.Object, "event_id"); ok {
			all = append(all, id)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTailFollowsFilesAndHubs: two hubs write into one directory, whose files are full after each call. A Tail that looks now and
// then has every event once, those of a call in their order, and the same as Read.
func TestTailFollowsFilesAndHubs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tail := NewTail(filepath.Join(dir, "none"), time.Time{}, "")
	if got := came(t, tail); len(got) != 0 {
		t.Errorf("a journal that does not exist has %q", got)
	}
	tail = NewTail(dir, time.Time{}, "")
	hubs := []*Journal{tailJournal(t, dir, 1), tailJournal(t, dir, 1)}
	var seen []string
	for range 5 {
		for _, j := range hubs {
			c, end := OrdinaryCall()
			if err := j.Announce(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, came(t, tail)...)
			FinishCall(c)
			if err := j.End(t.Context(), c, end); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, came(t, tail)...)
	}
	if files, _ := Files(dir); len(files) < 4 {
		t.Fatalf("%d files: the journal has hardly begun new ones", len(files))
	}
	var whole []string
	if err := Read(dir, func(object json.RawMessage) bool {
		if id, ok := rawjson.GetString(object, "event_id"); ok {
			whole = append(whole, id)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	for _, id := range seen {
		call, number, _ := strings.Cut(id, ".")
		calls[call] = append(calls[call], number)
	}
	for call, numbers := range calls {
		if want := []string{"0", "1", "2", "3", "4", "5", "8", "9"}; !slices.Equal(numbers, want) {
			t.Errorf("%s has the events %q, want %q", call, numbers, want)
		}
	}
	slices.Sort(seen)
	slices.Sort(whole)
	if !slices.Equal(seen, whole) || len(calls) != 10 {
		t.Errorf("the tail has %d events of %d calls, the journal %d", len(seen), len(calls), len(whole))
	}
	if got := came(t, tail); len(got) != 0 {
		t.Errorf("nothing has happened, and there is %q", got)
	}
}

// TestTailPassesOver: a Tail reads whole lines alone, says which line is damaged, and leaves out calls that ended before since, but not
// tools or calls that still run.
func TestTailPassesOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := tailJournal(t, dir, 1<<20)
	ended, end := OrdinaryCall()
	if err := j.End(t.Context(), ended, end); err != nil {
		t.Fatal(err)
	}
	open, _ := OrdinaryCall()
	open.Move(tool.StatusNeedsInput, open.Created)
	if err := j.Note(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := Files(dir)
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	of := func(c *Call, ids []string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, string(c.Invocation)[4:]) })
	}
	late := came(t, NewTail(dir, time.Now().Add(time.Hour), ""))
	if of(ended, late) || !of(open, late) {
		t.Errorf("after both calls the tail has %q", late)
	}
	if one := came(t, NewTail(dir, time.Time{}, string(ended.Invocation))); !of(ended, one) || of(open, one) {
		t.Errorf("the tail about one call has %q", one)
	}

	tail := NewTail(dir, time.Time{}, "")
	came(t, tail)
	file, err := os.OpenFile(filepath.Join(dir, names[0]), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write := func(text string) {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"object":"tool_event","event_id":"evt_half`)
	if got := came(t, tail); len(got) != 0 {
		t.Errorf("half a line is %q", got)
	}
	write("\"}\nno json\n" + `{"object":"tool_event","event_id":"evt_after"}` + "\n")
	var got []string
	err = tail.Next(func(e Entry) bool {
		id, _ := rawjson.GetString(e.Object, "event_id")
		got = append(got, id)
		return true
	})
	if !slices.Equal(got, []string{"evt_half", "evt_after"}) || err == nil || !strings.Contains(err.Error(), "is no JSON") {
		t.Errorf("%q, %v", got, err)
	}
}
