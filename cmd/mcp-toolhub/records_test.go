package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

func newStoring(t *testing.T) *storing {
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"policy": map[string]any{"mode": "accept_all"},
		"persist": map[string]any{"store": "sqlite"}}))
	return &storing{s, filepath.Join(dir, "state")}
}

// launch starts a hub; it does not return nil.
func (r *storing) launch() *runningHub {
	h := r.sharing.launch()
	if h == nil {
		r.t.FailNow()
	}
	return h
}

// echo calls a tool that answers, and waits for the answer.
func (r *storing) echo(h *runningHub) {
	r.t.Helper()
	w := wireHTTP(r.t, h.url+"/mcp", rev2026).open()
	resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.s.echo", `{"text": "hello"}`, "")))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), `"succeeded"`) {
		r.t.Fatalf("%s, %v", text, err)
	}
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
	text, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &calls); err != nil {
		r.t.Fatal(err)
	}
	return calls
}

// Hubs that are killed, at any time, leave a store that has each call once.
func TestRecordsOfKilledHubs(t *testing.T) {
	t.Parallel()
	r := newStoring(t)
	const rounds, each = 3, 5
	for round := range rounds {
		h := r.launch()
		for range each {
			r.echo(h)
		}
		if round == 1 {
			eventually(t, "the store is there", func() bool { _, err := os.Stat(filepath.Join(r.state, store.FileName)); return err == nil })
		}
		_ = h.cmd.Process.Kill()
		<-h.read
	}
	seen := make(map[tool.InvocationID]bool)
	for _, c := range r.listed() {
		if seen[c.ID] || c.Status != tool.StatusSucceeded || c.Tool != "mcp.s.echo" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
	if len(seen) != rounds*each {
		t.Errorf("%d calls, not %d", len(seen), rounds*each)
	}
}

// A store that cannot be written holds no call up. Health tells, and when it can be written again, it has all calls.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"damaged": {func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)
		},
			"the file is damaged: move it"},
		"something in the way": {func(path string) error { return os.Mkdir(path, 0o700) }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStoring(t)
			path := filepath.Join(r.state, store.FileName)
			h := r.launch()
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			r.echo(h)
			if err := h.waitFor(regexp.MustCompile("the record store is behind")); err != nil {
				t.Fatal(err)
			}
			r.echo(h)
			if text := healthOf(t, h); !strings.Contains(text, "the record store is behind, calls are answered") || !strings.Contains(text, c.want) {
				t.Errorf("health: %s", text)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := h.waitFor(regexp.MustCompile("the record store is up to date again")); err != nil {
				t.Fatal(err)
			}
			if text := healthOf(t, h); strings.Contains(text, "record store") {
				t.Errorf("health afterwards: %s", text)
			}
			if calls := r.listed(); len(calls) != 2 {
				t.Errorf("%d calls: %+v", len(calls), calls)
			}
		})
	}
}

// healthOf returns the health answer of a hub.
func healthOf(t *testing.T, h *runningHub) string {
	t.Helper()
	resp, err := http.Get(h.url + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
