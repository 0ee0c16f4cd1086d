package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
)

// stores are all kinds of stores. Each test runs with each; the function opens the same store again, too.
var stores = map[string]func(t testing.TB, dir string) store.Store{
	"sqlite": func(t testing.TB, dir string) store.Store {
		s, err := store.OpenSQLite(t.Context(), filepath.Join(dir, store.FileName))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	},
	"postgres": func(t testing.TB, dir string) store.Store {
		s, err := store.OpenPostgres(t.Context(), databaseIn(t, dir), filepath.Join(dir, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	},
}

// databaseIn returns the database of PostgreSQL that belongs to dir.
func databaseIn(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "database")
	url, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		url = []byte(storetest.Database(t))
		err = os.WriteFile(path, url, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(url)
}

// withStores runs a test with each kind of store, and a journal.
func withStores(t *testing.T, test func(t *testing.T, j *journal, open func() store.Store)) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test(t, openJournal(t, dir, persist.JournalConfig{}), func() store.Store { return open(t, dir) })
		})
	}
}

// journal is one that calls are written to.
type journal struct {
	*persist.Journal
	dir string
	at  time.Time // when the next call is made
}

func openJournal(t testing.TB, dir string, cfg persist.JournalConfig) *journal {
	t.Helper()
	cfg.Dir = filepath.Join(dir, "journal")
	j, err := persist.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return &journal{j, cfg.Dir, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// did is a call that is written to the journal.
type did struct {
	tool, actor, client, profile string
	input, text                  string
	class                        tool.ErrorClass
	took                         time.Duration
	approver                     string // who has allowed it
	noted, open                  bool   // it has a line before its end; it has no end
	task                         string // the result of the task that it becomes; "" for none
	running                      func() // is done while its line before the end is there
	names                        tool.Standing
}

// write writes a call, and returns its id.
func (j *journal) write(t testing.TB, d did) tool.InvocationID {
	t.Helper()
	at := j.at
	j.at = at.Add(time.Minute)
	c := &persist.Call{}
	head := persist.CallHead{Invocation: tool.NewInvocationID(), Tool: tool.Name(d.tool), Actor: d.actor, Profile: d.profile, Created: at}
	if d.client != "" {
		head.Client = &tool.ClientRef{Name: d.client}
	}
	c.Begin(head, tool.ExternalMapping{Source: "mcp", Role: "client", JSONRPCRequestID: "7"})
	c.Input.Model = json.RawMessage(`{}`)
	if d.input != "" {
		c.Input.Model = json.RawMessage(d.input)
	}
	if d.names != nil {
		c.Name(d.names)
	}
	c.Decide(&tool.PermissionDecision{Behavior: tool.Allow, Reason: map[string]any{"by": d.approver}}, at)
	c.Move(tool.StatusQueued, at)
	c.Move(tool.StatusRunning, at)
	if d.noted || d.open || d.running != nil {
		if err := j.Note(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if d.open {
		if err := j.Commit(t.Context(), tool.Event{Head: tool.HeadOf(tool.ObjectEvent)}); err != nil { // which writes what is held, too
			t.Fatal(err)
		}
		return head.Invocation
	}
	if d.running != nil {
		d.running()
	}
	end := &persist.CallEnd{At: at.Add(d.took)}
	status := tool.StatusSucceeded
	if d.class != "" {
		status, end.Error = tool.StatusFailed, &tool.Error{ErrorCode: "x", ErrorClass: d.class, Message: d.text}
	} else {
		text, err := json.Marshal([]map[string]string{{"type": "text", "text": d.text}})
		if err != nil {
			t.Fatal(err)
		}
		end.Content = text
	}
	c.Move(status, end.At)
	if err := j.End(context.WithoutCancel(t.Context()), c, end); err != nil {
		t.Fatal(err)
	}
	if d.task != "" {
		end = &persist.CallEnd{At: at.Add(time.Hour), Task: "1", CallResult: persist.CallResult{Summary: d.task},
			Error: &tool.Error{ErrorCode: "x", ErrorClass: tool.ClassExecutionFailed}}
		if err := j.End(context.WithoutCancel(t.Context()), c, end); err != nil {
			t.Fatal(err)
		}
	}
	return head.Invocation
}

func (j *journal) fill(t testing.TB, s store.Store) {
	t.Helper()
	if err := store.FillUp(t.Context(), s, j.dir); err != nil {
		t.Fatal(err)
	}
}

// list returns the ids of the calls that the query means.
func list(t testing.TB, s store.Store, q store.Query) []tool.InvocationID {
	t.Helper()
	calls, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]tool.InvocationID, 0, len(calls))
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestList(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s, began := open(), j.at
		read := j.write(t, did{tool: "mcp.files.read", actor: "actor:ann", client: "desk", profile: "default", input: `{"path":"a\nnew-line"}`,
			text: `{"said":"no\nquoted \u00fcber"}`, took: 3 * time.Millisecond})
		failed := j.write(t, did{tool: "mcp.files.write", actor: "actor:bob", profile: "other", class: tool.ClassExecutionFailed, text: "the disk is full"})
		running := j.write(t, did{tool: "code.run_command", actor: "actor:ann", open: true})
		j.fill(t, s)
		is := func(c store.Column, v string) store.Query { return store.Query{Is: map[store.Column]string{c: v}} }
		for name, c := range map[string]struct {
			q    store.Query
			want []tool.InvocationID
		}{
			"all":         {store.Query{}, []tool.InvocationID{running, failed, read}},
			"limit":       {store.Query{Limit: 1}, []tool.InvocationID{running}},
			"since":       {store.Query{Since: began.Add(time.Minute)}, []tool.InvocationID{running, failed}},
			"until":       {store.Query{Until: began.Add(time.Minute)}, []tool.InvocationID{read}},
			"tool":        {is(store.Tool, "mcp.files.read"), []tool.InvocationID{read}},
			"server":      {is(store.Server, "files"), []tool.InvocationID{failed, read}},
			"toolset":     {is(store.Server, "code"), []tool.InvocationID{running}},
			"actor":       {is(store.Actor, "actor:ann"), []tool.InvocationID{running, read}},
			"client":      {is(store.Client, "desk"), []tool.InvocationID{read}},
			"profile":     {is(store.Profile, "other"), []tool.InvocationID{failed}},
			"tools":       {is(store.Tool, "mcp.files.*"), []tool.InvocationID{failed, read}},
			"a character": {is(store.Tool, "mcp.files.r??d"), []tool.InvocationID{read}},
			"no case":     {is(store.Tool, "mcp.FILES.*"), nil},
			"no special":  {is(store.Tool, "mcp_files%*"), nil},
			"all tools":   {is(store.Tool, "*"), []tool.InvocationID{running, failed, read}},
			"patterns":    {store.Query{Is: map[store.Column]string{store.Tool: "*files*", store.Actor: "actor:a*"}}, []tool.InvocationID{read}},
			"no client":   {is(store.Client, "d*"), []tool.InvocationID{read}},
			"last of":     {store.Query{Limit: 1, Is: map[store.Column]string{store.Tool: "mcp.files.*"}}, []tool.InvocationID{failed}},
			"last of two": {store.Query{Limit: 2, Is: map[store.Column]string{store.Tool: "mcp.files.*", store.Actor: "*b*"}}, []tool.InvocationID{failed}},
			"text, tools": {store.Query{Text: "disk", Is: map[store.Column]string{store.Tool: "mcp.*"}}, []tool.InvocationID{failed}},
			"status":      {is(store.Status, "running"), []tool.InvocationID{running}},
			"class":       {is(store.Class, string(tool.ClassExecutionFailed)), []tool.InvocationID{failed}},
			"both":        {store.Query{Is: map[store.Column]string{store.Server: "files", store.Actor: "actor:bob"}}, []tool.InvocationID{failed}},
			"text":        {store.Query{Text: "disk FULL"}, []tool.InvocationID{failed}},
			"argument":    {store.Query{Text: "new"}, []tool.InvocationID{read}},
			"nested":      {store.Query{Text: "quoted über"}, []tool.InvocationID{read}},
			"phrase":      {store.Query{Text: `"disk is"`}, []tool.InvocationID{failed}},
			"no phrase":   {store.Query{Text: `"is disk"`}, nil},
			"prefix":      {store.Query{Text: "quot*"}, []tool.InvocationID{read}},
			"no syntax":   {store.Query{Text: `disk AND ( full) - "`}, nil},
			"text, both":  {store.Query{Text: "disk", Is: map[store.Column]string{store.Status: "failed", store.Class: string(tool.ClassExecutionFailed)}}, []tool.InvocationID{failed}},
			"text, actor": {store.Query{Text: "disk", Is: map[store.Column]string{store.Actor: "actor:ann"}}, nil},
		} {
			if got := list(t, s, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, not %v", name, got, c.want)
			}
		}
		calls, err := s.List(t.Context(), store.Query{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := list(t, s, store.Query{Before: &calls[0]}); !slices.Equal(got, []tool.InvocationID{failed, read}) {
			t.Errorf("after the first one: %v", got)
		}
		got, err := s.List(t.Context(), is(store.Tool, "mcp.files.read"))
		if err != nil || len(got) != 1 || got[0].LatencyMS == nil || *got[0].LatencyMS != 3 || !got[0].Created.Equal(began) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Calls with a word are found wherever they are, on pages of any size, in their order.
func TestSearchGoesBack(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		var common, rare []tool.InvocationID // newest first
		for i := range 1200 {
			d := did{tool: "mcp.a.b", actor: []string{"actor:ann", "actor:bob"}[i%2], text: "common"}
			isRare := slices.Contains([]int{0, 2, 90, 901, 950, 1140, 1199}, i)
			if isRare {
				d.text += " needle"
			}
			id := j.write(t, d)
			if d.actor == "actor:ann" {
				common = slices.Insert(common, 0, id)
			}
			if isRare {
				rare = slices.Insert(rare, 0, id)
			}
		}
		s := open()
		j.fill(t, s)
		for _, c := range []struct {
			q    store.Query
			want []tool.InvocationID
		}{
			{store.Query{Text: "needle"}, rare}, {store.Query{Text: "needle", Limit: 1}, rare}, {store.Query{Text: "needle", Limit: 3}, rare},
			{store.Query{Text: "common", Limit: 70, Is: map[store.Column]string{store.Actor: "actor:ann"}}, common},
			{store.Query{Text: "nowhere", Limit: 1}, nil},
		} {
			if got := pages(t, s, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, not %v", c.q, got, c.want)
			}
		}
	})
}

// Calls of many tools are listed in their order, also where two begin at the same time and where other tools are called later.
func TestListOfManyTools(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		var all []tool.InvocationID // newest first
		began := j.at
		for i := range 90 {
			id := j.write(t, did{tool: fmt.Sprintf("mcp.old.tool%d", i*i%31), actor: "actor:ann"})
			all = slices.Insert(all, 0, id)
			if i%3 == 0 {
				j.at = j.at.Add(-time.Minute)
			}
		}
		ended := j.at
		for range 20 {
			j.write(t, did{tool: "mcp.new.tool", actor: "actor:ann"})
		}
		s := open()
		j.fill(t, s)
		tools := map[store.Column]string{store.Tool: "mcp.old.*"}
		for _, limit := range []int{1, 2, 7, 100} {
			if got := pages(t, s, store.Query{Limit: limit, Is: tools}); !slices.Equal(got, all) {
				t.Errorf("%d at a time: %v, not %v", limit, got, all)
			}
		}
		if got := pages(t, s, store.Query{Limit: 2, Is: tools, Since: began.Add(time.Minute), Until: ended}); !slices.Equal(got, all[:len(all)-2]) {
			t.Errorf("from the second minute on: %v, not %v", got, all[:len(all)-2])
		}
	})
}

// pages returns the ids of the calls that the query means, page by page.
func pages(t *testing.T, s store.Store, q store.Query) (ids []tool.InvocationID) {
	t.Helper()
	for {
		page, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if len(page) < q.Limit || len(page) == 0 || q.Limit == 0 {
			return ids
		}
		q.Before = &page[len(page)-1]
	}
}

// A store answers with what the journal says of a call: all lines of one that runs, and the last line of one that has ended.
func TestLines(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		running := j.write(t, did{tool: "mcp.a.b", open: true})
		noted := j.write(t, did{tool: "mcp.a.b", noted: true})
		event := tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventType: "tool.surface.created"}
		if err := j.Commit(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		j.write(t, did{tool: "mcp.a.b", names: standing{}})
		j.fill(t, s)
		derived := make(map[tool.InvocationID][]string)
		if err := persist.Read(j.dir, func(o json.RawMessage) bool {
			var of struct {
				ID tool.InvocationID `json:"invocation_id"`
			}
			if err := json.Unmarshal(o, &of); err != nil {
				t.Error(err)
			}
			derived[of.ID] = append(derived[of.ID], string(o))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[tool.InvocationID]int{running: 1, noted: 1} {
			lines, err := s.Lines(t.Context(), id)
			if err != nil || len(lines) != want {
				t.Fatalf("%d lines, %v", len(lines), err)
			}
			var got []string
			if err := persist.Derive(lines, func(o json.RawMessage) bool { got = append(got, string(o)); return true }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, derived[id]) {
				t.Errorf("%s\n\nnot\n\n%s", strings.Join(got, "\n"), strings.Join(derived[id], "\n"))
			}
		}
		if _, err := s.Lines(t.Context(), "inv_none"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		if lines, err := s.Standing(t.Context(), "srf_1", "srf_none"); err != nil || len(lines) != 1 || !strings.Contains(string(lines[0]), `"srf_1"`) {
			t.Errorf("%s, %v", lines, err)
		}
	})
}

// standing is a surface that records name.
type standing struct{}

func (standing) StandingKey() string { return "srf_1" }
func (standing) StandingRecords() []tool.Record {
	return []tool.Record{tool.SurfaceRecord{Head: tool.HeadOf(tool.ObjectSurface), SurfaceID: "srf_1"}}
}

// The result of a task is one of the call that became it: it is found by its words, as the call is by its own, and the call has ended as
// it has.
func TestTaskResult(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		id := j.write(t, did{tool: "mcp.a.b", text: "begun", task: "finished"})
		j.write(t, did{tool: "mcp.a.b", text: "other"})
		j.fill(t, s)
		for _, words := range []string{"begun", "finished"} {
			calls, err := s.List(t.Context(), store.Query{Text: words})
			if err != nil || len(calls) != 1 || calls[0].ID != id || calls[0].Status != tool.StatusSucceeded || calls[0].Class != "" {
				t.Errorf("%s finds %+v: %v", words, calls, err)
			}
		}
		lines, err := s.Lines(t.Context(), id)
		if err != nil || len(lines) != 2 {
			t.Errorf("%d lines: %v", len(lines), err)
		}
	})
}

// Each line is taken in once: by a store that is opened again, and by many at the same time, while the journal grows.
func TestFillOnce(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		const calls, fillers = 40, 3
		var all sync.WaitGroup
		for range fillers {
			s := open()
			all.Go(func() {
				for range calls / 4 {
					j.fill(t, s)
				}
			})
		}
		want := make([]tool.InvocationID, calls)
		for i := range want {
			want[i] = j.write(t, did{tool: "mcp.a.b", text: fmt.Sprint("word", i), noted: i%2 == 0})
		}
		all.Wait()
		slices.Reverse(want)
		for range 2 {
			s := open()
			j.fill(t, s)
			if got := list(t, s, store.Query{}); !slices.Equal(got, want) {
				t.Errorf("%d calls, not %d", len(got), len(want))
			}
			if ended, _, err := s.Ended(t.Context(), 0, store.Query{}); err != nil || len(ended) != calls {
				t.Errorf("%d have ended, %v", len(ended), err)
			}
		}
	})
}

// Has answers of what is in the store for certain.
func TestHas(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		j.write(t, did{tool: "mcp.a.b"})
		files, err := filepath.Glob(filepath.Join(j.dir, "journal-*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		name := filepath.Base(files[0])
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if s.Has(name, info.Size()) {
			t.Error("it has what it has not read")
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := store.FillUp(stopped, s, j.dir); err == nil || s.Has(name, info.Size()) {
			t.Error("it has what it did not get to write")
		}
		j.fill(t, s)
		if !s.Has(name, info.Size()) || s.Has(name, info.Size()+1) || !open().Has(name, info.Size()) {
			t.Error("it does not know what it has")
		}
	})
}

func TestEnded(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		j.write(t, did{tool: "mcp.a.b"})
		j.fill(t, s)
		from, err := s.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		j.write(t, did{tool: "mcp.a.b", open: true})
		next := j.write(t, did{tool: "mcp.a.b", text: "found", noted: true})
		j.write(t, did{tool: "mcp.a.other", text: "found"})
		j.fill(t, s)
		calls, from, err := s.Ended(t.Context(), from, store.Query{Text: "found", Is: map[store.Column]string{store.Tool: "mcp.*.b"}})
		if err != nil || len(calls) != 1 || calls[0].ID != next {
			t.Errorf("%v, %v", calls, err)
		}
		if calls, _, err = s.Ended(t.Context(), from, store.Query{Is: map[store.Column]string{store.Tool: "mcp.a.b"}}); err != nil || len(calls) != 0 {
			t.Errorf("%v, %v", calls, err)
		}
	})
}

// TestPositionGrows: the position tells that the newest call has ended, although its line takes the place of the one before.
func TestPositionGrows(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		var from int64
		ended := j.write(t, did{tool: "mcp.a.b", running: func() {
			for from == 0 { // until the journal writes what it holds
				j.fill(t, s)
				var err error
				if from, err = s.Position(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}})
		j.fill(t, s)
		calls, to, err := s.Ended(t.Context(), from, store.Query{})
		if err != nil || to <= from || len(calls) != 1 || calls[0].ID != ended {
			t.Errorf("from %d to %d: %v, %v", from, to, calls, err)
		}
	})
}

func TestStats(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		for i := range 20 {
			d := did{tool: "mcp.a.quick", took: time.Duration(i+1) * time.Millisecond}
			if i == 19 {
				d.class = tool.ClassTimeout
			}
			j.write(t, d)
		}
		j.write(t, did{tool: "mcp.a.rare", took: time.Second})
		j.write(t, did{tool: "mcp.a.rare", open: true})
		j.write(t, did{tool: "mcp.a.twice", took: time.Millisecond, class: tool.ClassSchemaNotLoaded}) // no failure
		j.write(t, did{tool: "mcp.a.twice", took: 3 * time.Second})
		j.fill(t, s)
		got, err := s.Stats(t.Context(), store.Tool, store.Query{})
		want := []store.Stat{{Value: "mcp.a.quick", Calls: 20, Failed: 1, P50MS: 10, P95MS: 19, MaxMS: 20},
			{Value: "mcp.a.rare", Calls: 2, P50MS: 1000, P95MS: 1000, MaxMS: 1000},
			{Value: "mcp.a.twice", Calls: 2, P50MS: 1, P95MS: 3000, MaxMS: 3000}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := s.Stats(t.Context(), store.Tool, store.Query{Is: map[store.Column]string{store.Tool: "mcp.a.?????"}}); err != nil || !reflect.DeepEqual(got, []store.Stat{want[0], want[2]}) {
			t.Errorf("of a pattern: %+v, %v", got, err)
		}
		if _, err := s.Stats(t.Context(), "id; DROP TABLE files", store.Query{}); err == nil {
			t.Error("any column")
		}
	})
}

// In a store that is too large, the caller that has most loses its own calls, what was denied or approved after all else.
func TestTrimOfAFlood(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		j.at = time.Now().Add(-24 * time.Hour)
		write := func(n int, d did) {
			for range n {
				j.write(t, d)
			}
		}
		write(10, did{tool: "mcp.a.b", actor: "actor:flood", approver: "queue/ann"})
		write(20, did{tool: "mcp.a.b", actor: "actor:flood", class: tool.ClassPolicyBlocked})
		write(40, did{tool: "mcp.a.b", actor: "actor:quiet"})
		write(501, did{tool: "mcp.a.b", actor: "actor:flood"})
		s := open()
		j.fill(t, s)
		surplus, more, err := s.Trim(t.Context(), persist.RecordsConfig{MaxBytes: 1})
		if surplus != 500 || !more || err != nil {
			t.Fatal(surplus, more, err)
		}
		for _, c := range []struct {
			is   map[store.Column]string
			want int
		}{{map[store.Column]string{store.Actor: "actor:quiet"}, 40}, {map[store.Column]string{store.Actor: "actor:flood"}, 31},
			{map[store.Column]string{store.Class: "policy_blocked"}, 20}} {
			if got := list(t, s, store.Query{Is: c.is}); len(got) != c.want {
				t.Errorf("%v: %d calls are left, want %d", c.is, len(got), c.want)
			}
		}
		surplus, more, err = s.Trim(t.Context(), persist.RecordsConfig{MaxBytes: 1})
		if left := list(t, s, store.Query{}); surplus != 40 || more || err != nil || len(left) != 31 {
			t.Errorf("%d calls of the other one are removed, %v, %v; %d are left", surplus, more, err, len(left))
		}
	})
}

func TestTrim(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		j.at = time.Now().Add(-600 * time.Hour)
		var all []tool.InvocationID
		for range 600 { // an hour each
			all = append(all, j.write(t, did{tool: "mcp.demo.add", actor: "actor:a", text: "needle"}))
			j.at = j.at.Add(59 * time.Minute)
		}
		s := open()
		j.fill(t, s)
		trim := func(bounds persist.RecordsConfig, want int) {
			t.Helper()
			for more := true; more; {
				var err error
				surplus := 0
				if surplus, more, err = s.Trim(t.Context(), bounds); err != nil || surplus > 0 && bounds.MaxBytes == 0 {
					t.Fatal(surplus, err)
				}
			}
			j.fill(t, s) // which does not bring them back
			kept := slices.Clone(all[len(all)-want:])
			slices.Reverse(kept)
			if got := list(t, s, store.Query{}); !slices.Equal(got, kept) {
				t.Errorf("%d calls remain, want the newest %d", len(got), want)
			}
			if got := list(t, s, store.Query{Text: "needle"}); len(got) != want {
				t.Errorf("%d calls are found by a word, want %d", len(got), want)
			}
		}
		trim(persist.RecordsConfig{}, 600)
		trim(persist.RecordsConfig{MaxAge: 550*time.Hour + 30*time.Minute}, 550)
		if _, err := s.Lines(t.Context(), all[0]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the lines of a removed call: %v", err)
		}
		trim(persist.RecordsConfig{MaxBytes: 1}, 1)
	})
}

// memory keeps what a journal writes, as a Filler does.
type memory struct{ written []persist.Written }

func (m *memory) Take(w persist.Written)      { m.written = append(m.written, w) }
func (m *memory) Has(string, int64) bool      { return false }
func (m *memory) Hurry()                      {}
func (m *memory) Healthy() error              { return nil }
func (m *memory) but(i int) []persist.Written { return slices.Concat(m.written[:i], m.written[i+1:]) }

// A store that is filled from memory has what one has that is filled from the files: also where it has a part already, and where a
// part is missing in memory.
func TestFillFromMemory(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := &memory{}, t.TempDir()
			j := openJournal(t, dir, persist.JournalConfig{Kept: m, MaxBytes: 3 << 10})
			before := open(t, t.TempDir())
			j.write(t, did{tool: "mcp.a.b", text: "first"})
			j.fill(t, before)
			if err := j.Commit(t.Context(), tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventType: "tool.surface.created"}); err != nil {
				t.Fatal(err)
			}
			j.write(t, did{tool: "search", actor: "actor:ann", client: "desk", profile: "p", text: "noted", noted: true, approver: "queue/ann"})
			j.write(t, did{tool: "mcp.a.b", text: "begun", task: "finished"})
			j.write(t, did{tool: "code.run", class: tool.ClassPolicyBlocked, text: "no"})
			j.write(t, did{tool: "mcp.a.b", open: true})
			lines := 0
			for _, w := range m.written {
				for _, c := range w.Calls {
					line, _, _ := strings.Cut(string(w.Text[c.At:]), "\n")
					read, err := persist.Summarize([]byte(line))
					if read.Created.Equal(c.Created) && read.Ended.Equal(c.Ended) {
						read.Created, read.Ended = c.Created, c.Ended
					}
					if err != nil || read != c.Summary {
						t.Errorf("%s\nis summed up as %+v, and read as %+v, %v", line, c.Summary, read, err)
					}
					lines++
				}
			}
			if lines < 6 {
				t.Errorf("%d lines of calls in %d writes", lines, len(m.written))
			}
			read := open(t, t.TempDir())
			j.fill(t, read)
			want := contents(t, read)
			fill := func(s store.Store, recent []persist.Written) {
				t.Helper()
				for more, err := s.Fill(t.Context(), j.dir, recent); more || err != nil; more, err = s.Fill(t.Context(), j.dir, nil) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if got := contents(t, s); got != want {
					t.Errorf("filled from memory:\n%s\nand from the files:\n%s", got, want)
				}
			}
			fill(before, m.written)
			fill(open(t, t.TempDir()), m.written)
			for i := range len(m.written) - 1 {
				fill(open(t, t.TempDir()), m.but(i))
			}
		})
	}
}

// contents are the calls of a store with their lines.
func contents(t *testing.T, s store.Store) string {
	t.Helper()
	calls, err := s.List(t.Context(), store.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, c := range calls {
		lines, err := s.Lines(t.Context(), c.ID)
		found := list(t, s, store.Query{Text: "noted"})
		fmt.Fprintf(&all, "%s %s %s %v %s %s\n%s %v\n", c.ID, c.Status, c.Server, c.Ended, c.Class, found, lines, err)
	}
	return all.String()
}

// The file is this user's alone, and so are those beside it.
func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := t.TempDir()
	j := openJournal(t, dir, persist.JournalConfig{})
	s := stores["sqlite"](t, dir)
	j.write(t, did{tool: "mcp.a.b"})
	j.fill(t, s)
	for _, name := range store.FileNames() {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A file that is damaged is an error that says what to do.
func TestDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), store.FileName)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "the file is damaged: move it") {
		t.Error(err)
	}
}

// Many processes may open a store that is not there yet.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), store.FileName)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			s, err := store.OpenSQLite(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
