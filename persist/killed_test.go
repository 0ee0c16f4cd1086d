package persist_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// begun gives the journal a call that has come to the statuses.
func begun(t *testing.T, j *persist.Journal, statuses ...tool.Status) tool.InvocationID {
	t.Helper()
	var c persist.Call
	c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.s.t", Created: time.Now()}, tool.ExternalMapping{Source: "mcp"})
	c.Input.Model = json.RawMessage(`{"a":1}`)
	for _, s := range statuses {
		c.Move(s, time.Now())
		if err := j.Announce(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	return c.Invocation
}

// objectsOf are the objects of each call, in the order in which they are read: type or object, and status.
func objectsOf(t *testing.T, dir string) map[tool.InvocationID][]string {
	t.Helper()
	all := make(map[tool.InvocationID][]string)
	err := persist.Read(dir, func(line json.RawMessage) bool {
		var o struct {
			Object     string            `json:"object"`
			Type       string            `json:"event_type"`
			Status     string            `json:"status"`
			Invocation tool.InvocationID `json:"invocation_id"`
			ModelInput json.RawMessage   `json:"model_input"`
			Error      *tool.Error       `json:"error"`
		}
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(strings.TrimPrefix(o.Type, "tool.") + " " + o.Status)
		if o.Error != nil {
			text += fmt.Sprintf(" %s %s %t", o.Error.ErrorClass, o.Error.ErrorCode, o.Error.OutcomeUnknown)
		}
		if o.Object == "tool_invocation" {
			text += " " + string(o.ModelInput)
		}
		all[o.Invocation] = append(all[o.Invocation], text)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func endKilled(t *testing.T, dir string, want int) {
	t.Helper()
	if n, err := persist.EndKilled(t.Context(), dir); err != nil || n != want {
		t.Errorf("%d calls ended, %v, want %d", n, err, want)
	}
}

// A call of a living hub is not ended, however many files ago it has begun. Once the hub is gone, it gets one last line, behind all
// others of it.
func TestKilledHubsCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := persist.JournalConfig{Dir: dir, MaxBytes: 1200, MaxFiles: 20}
	j := open(t, cfg)
	waits := begun(t, j, tool.StatusAwaitingApproval)
	var c persist.Call
	c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.s.t", Created: time.Now()}, tool.ExternalMapping{Source: "mcp"})
	c.Input.Model = json.RawMessage(`{"b":2}`)
	for _, s := range []tool.Status{tool.StatusQueued, tool.StatusRunning, tool.StatusNeedsInput} {
		c.Move(s, time.Now())
		if err := j.Announce(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		commit(t, j, numbered("s", 10)...) // over several files
	}
	ended := begun(t, j, tool.StatusQueued, tool.StatusRunning)
	if n := len(journalFiles(t, dir)); n < 4 {
		t.Fatalf("%d files", n)
	}
	endKilled(t, dir, 0)
	other := open(t, cfg)
	commit(t, other, "beside")
	endKilled(t, dir, 0)
	if err := j.Close(); err != nil { // which lets go of the files as a kill does
		t.Fatal(err)
	}
	var hubs sync.WaitGroup
	for range 4 {
		hubs.Go(func() { _, _ = persist.EndKilled(t.Context(), dir) })
	}
	hubs.Wait()
	endKilled(t, dir, 0)
	if err := os.Remove(filepath.Join(dir, "settled.json")); err != nil {
		t.Fatal(err)
	}
	endKilled(t, dir, 0)
	objects := objectsOf(t, dir)
	for id, want := range map[tool.InvocationID][]string{
		waits: {"invocation.planned", "permission.requested", `awaiting_approval {"a":1}`, "invocation.failed", "result.created",
			"failed execution_failed hub_killed false", `failed {"a":1}`},
		c.Invocation: {"invocation.planned", "invocation.queued", "invocation.started", `running {"b":2}`, `needs_input {"b":2}`,
			"invocation.failed", "result.created", "failed execution_failed hub_killed true", `failed {"b":2}`},
		ended: {"invocation.planned", "invocation.queued", "invocation.started", `running {"a":1}`,
			"invocation.failed", "result.created", "failed execution_failed hub_killed true", `failed {"a":1}`},
	} {
		if got := objects[id]; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// The file with the line of an open call stays, whoever wants to remove it: the call's own hub, or another one where that was killed.
// It goes once the call has its last line.
func TestFilesOfOpenCallsStay(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"its hub", "another hub"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			cfg := persist.JournalConfig{Dir: t.TempDir(), MaxBytes: 2000, MaxFiles: 2}
			j := open(t, cfg)
			id := begun(t, j, tool.StatusQueued, tool.StatusRunning)
			first := journalFiles(t, cfg.Dir)[0]
			if by == "its hub" {
				commit(t, j, numbered("s", 40)...)
			}
			if err := j.Close(); err != nil { // which lets go of the files as a kill does
				t.Fatal(err)
			}
			j = open(t, cfg)
			if by != "its hub" {
				commit(t, j, numbered("s", 40)...)
			}
			if n := len(journalFiles(t, cfg.Dir)); n > cfg.MaxFiles+1 {
				t.Errorf("%d files", n)
			}
			if _, err := os.Lstat(first); err != nil {
				t.Fatal(err)
			}
			endKilled(t, cfg.Dir, 1)
			want := []string{"invocation.planned", "invocation.queued", "invocation.started", `running {"a":1}`,
				"invocation.failed", "result.created", "failed execution_failed hub_killed true", `failed {"a":1}`}
			if got := objectsOf(t, cfg.Dir)[id]; !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			commit(t, j, numbered("s", 40)...)
			if _, err := os.Lstat(first); err == nil {
				t.Error("the file with the first line is there")
			}
		})
	}
}

// A hub that starts does not write behind the open calls of a killed one, and goes on with that file once they are ended.
func TestFilesWithOpenCallsAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, want := range []int{1, 2, 2} {
		j := open(t, persist.JournalConfig{Dir: dir})
		if i == 0 {
			begun(t, j, tool.StatusQueued, tool.StatusRunning)
		}
		commit(t, j, "s")
		if got := len(journalFiles(t, dir)); got != want {
			t.Errorf("start %d: %d files, want %d", i, got, want)
		}
		endKilled(t, dir, map[int]int{1: 1}[i])
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is settled is not read again: damage in it is not seen. What has come since is.
func TestSettledFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	begun(t, j, tool.StatusRunning)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	endKilled(t, dir, 1)
	path := journalFiles(t, dir)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	open := lines[0] + strings.Repeat(" ", len(text)-len(lines[0])-1) + "\n" // as if the last line were not there
	writeFile(t, path, open)
	endKilled(t, dir, 0)
	writeFile(t, path, open+lines[0])
	endKilled(t, dir, 1)
	endKilled(t, dir, 0)
}
