//go:build e2e

package cli

import (
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// storing is a state directory whose hubs have one server, and a store of records.
type storing struct {
	*sharing
	state string
}

// newStoring takes the settings of persist: the journal, and the store.
func newStoring(t *testing.T, journal map[string]any, store string) *storing {
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, storingConfig(t, journal, store))
	return &storing{s, filepath.Join(dir, "state")}
}

func storingConfig(t *testing.T, journal map[string]any, store string) string {
	more := map[string]any{"persist": map[string]any{"journal": journal, "store": store}}
	if journal["max_bytes"] != nil {
		more["tuning"] = tuning{JournalFiles: 2}
	}
	return configText(t, map[string]any{"s": child(upstreamtest.Script{})}, more)
}

// launch starts a hub; it does not return nil.
func (r *storing) launch() *runningHub {
	h := r.sharing.launch()
	if h == nil {
		r.t.FailNow()
	}
	return h
}

// echo calls a tool, which answers or is refused, and returns the answer.
func (r *storing) echo(h *runningHub) string {
	r.t.Helper()
	w := wireHTTP(r.t, h.url+"/mcp", rev2026).open()
	resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.s.echo", `{"text": "hello"}`, "")))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// echoed calls a tool that answers, and returns the id of the invocation.
func (r *storing) echoed(h *runningHub) tool.InvocationID {
	r.t.Helper()
	text := r.echo(h)
	if !strings.Contains(text, `"succeeded"`) || strings.Contains(text, "journal_failed") {
		r.t.Fatal(text)
	}
	return tool.InvocationID(invocationID.FindString(text))
}

// calls returns what "calls" prints.
func (r *storing) calls(args ...string) string {
	r.t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		r.t.Fatal(err)
	}
	args = append([]string{"calls"}, append(args, "--state-dir", r.state)...)
	if r.config != "" {
		args = append(args, "--config", r.config)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = scratchEnv(r.dir)
	cmd.Stderr = r.t.Output()
	text, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// listed returns all calls.
func (r *storing) listed() (calls []store.Call) {
	r.t.Helper()
	mustDecode(r.t, r.calls("list", "-o", "json", "--limit", "0"), &calls)
	return calls
}

// has checks that the store has each of the calls once, with its end, and no call twice.
func (r *storing) has(answered []tool.InvocationID) {
	r.t.Helper()
	seen := make(map[tool.InvocationID]*store.Call)
	for _, c := range r.listed() {
		if seen[c.ID] != nil {
			r.t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = &c
	}
	for _, id := range answered {
		if c := seen[id]; c == nil || c.Ended == nil || c.Status != tool.StatusSucceeded {
			r.t.Errorf("%s was answered, and the store has %+v", id, c)
		}
	}
}

// journal returns the names of the files of the journal.
func (r *storing) journal() []string {
	files, err := filepath.Glob(filepath.Join(r.state, "journal", "journal-*.jsonl"))
	if err != nil || len(files) == 0 {
		r.t.Fatal(files, err)
	}
	return files
}

// A store that cannot be written holds no call up. Health and doctor tell, and when it can be written again, it has all calls.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	remove := func(path string) func() error { return func() error { return os.Remove(path) } }
	for name, c := range map[string]struct {
		spoil func(path string) (mend func() error, err error)
		want  string
	}{
		"damaged": {func(path string) (func() error, error) {
			return remove(path), os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)
		}, "the file is damaged: move it"},
		"something in the way": {func(path string) (func() error, error) { return remove(path), os.Mkdir(path, 0o700) }, "is a directory"},
		"held by another process": {func(path string) (func() error, error) {
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_txlock=exclusive")
			if err != nil {
				return nil, err
			}
			held, err := db.Begin()
			return func() error { return errors.Join(held.Rollback(), db.Close()) }, err
		}, "another process holds it"},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: it would begin when all else has ended, and the last one waits for long
			r := newStoring(t, nil, "sqlite")
			r.has(r.outage(r.launch(), c.want, func() (func() error, error) { return c.spoil(filepath.Join(r.state, store.FileName)) }))
		})
	}
}

// PostgreSQL stops, and starts again, twice: the second time while the hub has a connection.
func TestRecordsWhilePostgreSQLIsDown(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t)
	r := newStoring(t, nil, server.Database(t))
	h := r.launch()
	stop := func() (func() error, error) {
		server.Stop(t)
		return func() error { server.Run(t); return nil }, nil
	}
	answered := r.outage(h, "see whether the database runs and can be reached from here", stop)
	r.has(append(answered, r.outage(h, "see whether the database runs and can be reached from here", stop)...))
}

// outage spoils the store of a hub and mends it, and returns the calls that were answered meanwhile. want is what is said of it.
func (r *storing) outage(h *runningHub, want string, spoil func() (mend func() error, err error)) (answered []tool.InvocationID) {
	r.t.Helper()
	mend, err := spoil()
	if err != nil {
		r.t.Fatal(err)
	}
	answered = append(answered, r.echoed(h))
	if err := h.waitFor(regexp.MustCompile("the record store is behind")); err != nil {
		r.t.Fatal(err)
	}
	answered = append(answered, r.echoed(h))
	if _, text := h.health(r.t); !strings.Contains(text, "the record store is behind, calls are answered") || !strings.Contains(text, want) {
		r.t.Errorf("health: %s", text)
	}
	program := exec.Command(h.cmd.Path, "doctor", "--config", r.config, "--state-dir", r.state)
	program.Env = scratchEnv(r.dir)
	if text, err := program.Output(); err == nil || !strings.Contains(string(text), want) {
		r.t.Errorf("doctor: %s, %v", text, err)
	}
	if err := mend(); err != nil {
		r.t.Fatal(err)
	}
	if err := h.waitFor(regexp.MustCompile("the record store is up to date again")); err != nil {
		r.t.Fatal(err)
	}
	if _, text := h.health(r.t); strings.Contains(text, "record store") {
		r.t.Errorf("health afterwards: %s", text)
	}
	return answered
}

// A journal whose files the store does not get keeps them all. At its limit the hub refuses new calls, says why, and goes on by itself when
// the store can be written.
func TestRecordsThatFillTheJournal(t *testing.T) {
	t.Parallel()
	r := newStoring(t, map[string]any{"max_bytes": 8 << 10}, "sqlite")
	h := r.launch()
	path := filepath.Join(r.state, store.FileName)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	first := r.journal()
	var answered []tool.InvocationID
	text := ""
	for text = r.echo(h); strings.Contains(text, `"succeeded"`) && len(answered) < 1000; text = r.echo(h) {
		answered = append(answered, tool.InvocationID(invocationID.FindString(text)))
	}
	if !strings.Contains(text, "the hub cannot write its journal, so it runs nothing") || !strings.Contains(text, "dependency_unavailable") {
		t.Fatalf("after %d calls: %s", len(answered), text)
	}
	if !slices.Contains(r.journal(), first[0]) {
		t.Error("a file of the journal was removed")
	}
	if _, text := h.health(t); !strings.Contains(text, "the record store does not have the oldest calls, so new calls are refused") {
		t.Errorf("health: %s", text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := h.waitFor(regexp.MustCompile("the journal has room again")); err != nil {
		t.Fatal(err)
	}
	for kept := true; kept && len(answered) < 2000; kept = slices.Contains(r.journal(), first[0]) {
		answered = append(answered, r.echoed(h)) // the next file is begun by a call
	}
	if slices.Contains(r.journal(), first[0]) {
		t.Error("no file of the journal was removed")
	}
	r.has(answered)
}

// A store whose file is taken away while a hub has it open is made anew from the journal.
func TestRecordsThatAreTakenAway(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil, "sqlite")
	h := r.launch()
	answered := []tool.InvocationID{r.echoed(h)}
	isThere := func() bool { _, err := os.Stat(filepath.Join(r.state, store.FileName)); return err == nil }
	eventually(t, "the store is there", isThere)
	for _, name := range store.FileNames() {
		if err := os.Rename(filepath.Join(r.state, name), filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	answered = append(answered, r.echoed(h))
	eventually(t, "the store is there again", isThere)
	r.has(answered)
}
