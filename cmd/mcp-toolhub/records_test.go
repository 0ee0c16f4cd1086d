package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// storing is a state directory whose hubs have one server, and a store of records.
type storing struct {
	*sharing
	state string
}

// newStoring takes the settings of the journal; nil for the usual ones.
func newStoring(t *testing.T, journal map[string]any) *storing {
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, storingConfig(t, journal))
	return &storing{s, filepath.Join(dir, "state")}
}

func storingConfig(t *testing.T, journal map[string]any) string {
	return configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"persist": map[string]any{"journal": journal}})
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

// listed returns what "calls list" prints.
func (r *storing) listed() (calls []store.Call) {
	r.t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(program, "calls", "list", "-o", "json", "--limit", "0", "--state-dir", r.state)
	cmd.Env = scratchEnv(r.dir)
	cmd.Stderr = r.t.Output()
	text, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &calls); err != nil {
		r.t.Fatal(err)
	}
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

// Hubs that are killed under load, while their store is filled and journal files are removed that it has, leave a store that has each call
// that was answered, with its end, and none twice.
func TestRecordsOfKilledHubs(t *testing.T) {
	t.Parallel()
	r := newStoring(t, map[string]any{"max_bytes": 32 << 10, "max_files": 3})
	var all []tool.InvocationID
	var first []string
	for round := range 3 {
		h := r.launch()
		if round == 0 {
			first = r.journal()
		}
		answered, ids := make(chan tool.InvocationID), &benchIDs{}
		var calling sync.WaitGroup
		for range 4 {
			c, err := dialHTTP(ids, h.url+"/mcp")
			if err == nil {
				err = handshake(c)
			}
			if err != nil {
				t.Fatal(err)
			}
			calling.Go(func() {
				defer c.close()
				for {
					answer, err := c.request("tools/call", benchCall("mcp.s.echo", echoArguments))
					if err != nil {
						return // killed
					}
					if strings.Contains(string(answer), `"succeeded"`) {
						answered <- tool.InvocationID(invocationID.Find(answer))
					}
				}
			})
		}
		go func() {
			calling.Wait()
			close(answered)
		}()
		enough := len(all) + 150 + rand.IntN(300)
		for id := range answered {
			if all = append(all, id); len(all) == enough {
				_ = h.cmd.Process.Kill()
			}
		}
		<-h.read
	}
	if slices.Contains(r.journal(), first[0]) {
		t.Error("no file of the journal was removed")
	}
	r.has(all)
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStoring(t, nil)
			h := r.launch()
			mend, err := c.spoil(filepath.Join(r.state, store.FileName))
			if err != nil {
				t.Fatal(err)
			}
			answered := []tool.InvocationID{r.echoed(h)}
			if err := h.waitFor(regexp.MustCompile("the record store is behind")); err != nil {
				t.Fatal(err)
			}
			answered = append(answered, r.echoed(h))
			if _, text := h.health(t); !strings.Contains(text, "the record store is behind, calls are answered") || !strings.Contains(text, c.want) {
				t.Errorf("health: %s", text)
			}
			program := exec.Command(h.cmd.Path, "doctor", "--config", r.config, "--state-dir", r.state)
			program.Env = scratchEnv(r.dir)
			if text, err := program.Output(); err == nil || !strings.Contains(string(text), c.want) {
				t.Errorf("doctor: %s, %v", text, err)
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			if err := h.waitFor(regexp.MustCompile("the record store is up to date again")); err != nil {
				t.Fatal(err)
			}
			if _, text := h.health(t); strings.Contains(text, "record store") {
				t.Errorf("health afterwards: %s", text)
			}
			r.has(answered)
		})
	}
}

// A journal whose files the store does not get keeps them all. At its limit the hub refuses new calls, says why, and goes on by itself when
// the store can be written.
func TestRecordsThatFillTheJournal(t *testing.T) {
	t.Parallel()
	r := newStoring(t, map[string]any{"max_bytes": 8 << 10, "max_files": 2})
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
	answered = append(answered, r.echoed(h))
	if slices.Contains(r.journal(), first[0]) {
		t.Error("no file of the journal was removed")
	}
	r.has(answered)
}

// A store whose file is taken away while a hub has it open is made anew from the journal.
func TestRecordsThatAreTakenAway(t *testing.T) {
	t.Parallel()
	r := newStoring(t, nil)
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
