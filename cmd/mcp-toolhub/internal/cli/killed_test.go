//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// sharing are hubs that share a state directory.
type sharing struct {
	t           *testing.T
	dir, config string
}

func (s *sharing) launch() *runningHub {
	h, err := launch(s.dir, scratchEnv(s.dir), "--config", s.config, "--state-dir", filepath.Join(s.dir, "state"))
	if err != nil {
		s.t.Error(err)
		return nil
	}
	s.t.Cleanup(func() { _ = h.cmd.Process.Kill(); <-h.read; _ = h.cmd.Wait() })
	return h
}

// call sends a call that does not end, and that no other one holds up: it is of a run of its own.
func (s *sharing) call(h *runningHub, name string) {
	w := wireHTTP(s.t, h.url+"/mcp", rev2026).open()
	req := w.newRequest(w.call(name, `{}`, fmt.Sprintf(`"toolhub/run":%q`, tool.NewInvocationID())))
	go func() {
		if resp, err := http.DefaultClient.Do(req); err == nil { // it fails when the hub is killed
			_ = resp.Body.Close()
		}
	}()
}

// results are the results of all calls that are in the journal, by tool and actor; nil of a call that has none.
func (s *sharing) results() map[tool.InvocationID][]tool.Result {
	all := make(map[tool.InvocationID][]tool.Result)
	err := persist.Read(filepath.Join(s.dir, "state", "journal"), func(line json.RawMessage) bool {
		var r tool.Result
		mustDecode(s.t, string(line), &r)
		switch r.Object {
		case tool.ObjectInvocation:
			all[r.InvocationID] = append(all[r.InvocationID], []tool.Result{}...)
		case tool.ObjectResult:
			all[r.InvocationID] = append(all[r.InvocationID], r)
		}
		return true
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// ended counts the calls with one result: those that had begun to run, and the others.
func (s *sharing) ended() (ran, waited, open int) {
	for id, results := range s.results() {
		switch {
		case len(results) == 0:
			open++
		case len(results) > 1 || results[0].Error == nil || results[0].Error.ErrorCode != persist.CodeHubKilled || results[0].Status != tool.StatusFailed:
			s.t.Fatalf("%s ended as %s with %+v", id, results[0].Status, results[0].Error)
		case results[0].Error.OutcomeUnknown:
			ran++
		default:
			waited++
		}
	}
	return ran, waited, open
}

// When a hub is killed during calls, the next one to start gives each of them its one result. Those of another hub, which shares
// the state directory and lives, go on.
func TestKilledHubsCallsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{"policy": map[string]any{
		"rules": []any{map[string]any{"match": "mcp.s.hang", "then": "allow"}}}}))
	killed, living := s.launch(), s.launch()
	for range 3 {
		s.call(killed, "mcp.s.hang")
	}
	s.call(killed, "mcp.s.echo")
	s.call(living, "mcp.s.hang")
	eventually(t, "five calls are in the journal", func() bool { return len(s.results()) == 5 })
	_ = killed.cmd.Process.Kill()
	<-killed.read
	var starting sync.WaitGroup
	for range 2 {
		starting.Go(func() { s.launch() })
	}
	starting.Wait()
	eventually(t, "the calls of the killed hub have ended", func() bool { ran, waited, _ := s.ended(); return ran == 3 && waited == 1 })
	if ran, waited, open := s.ended(); ran != 3 || waited != 1 || open != 1 {
		t.Errorf("%d ran, %d waited, %d are open", ran, waited, open)
	}
	_ = living.cmd.Process.Kill()
	<-living.read
	s.launch()
	eventually(t, "the call of the other hub has ended, too", func() bool { ran, _, _ := s.ended(); return ran == 4 })
	if ran, waited, open := s.ended(); ran != 4 || waited != 1 || open != 0 {
		t.Errorf("%d ran, %d waited, %d are open", ran, waited, open)
	}
	checkRecords(t, filepath.Join(dir, "state", "journal"), 5)
}

// A hook that ran when its hub was killed has its record, which says that nobody knows what it has done.
func TestHookOfAKilledHub(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"pre_tool_use", "permission_decision", "post_tool_use", "result_persistence"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			hookOfAKilledHub(t, event)
		})
	}
}

func hookOfAKilledHub(t *testing.T, event string) {
	t.Helper()
	dir := t.TempDir()
	s := &sharing{t, dir, filepath.Join(dir, "hub.json")}
	writeFile(t, s.config, configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{
		"policy": map[string]any{"rules": []any{map[string]any{"match": "*", "then": "allow"}}},
		"hooks": []any{map[string]any{"name": "slow", "event": event, "match": "*", "timeout": "1m",
			"command": []string{"sh", "-c", "cat > /dev/null; while kill -0 $PPID 2> /dev/null; do sleep 0.1; done"}}}}))
	// hooks returns the events of hooks, and their records.
	hooks := func() (events []string, records []tool.HookRecord) {
		err := persist.Read(filepath.Join(dir, "state", "journal"), func(line json.RawMessage) bool {
			var o struct {
				Object tool.Object `json:"object"`
				Type   string      `json:"event_type"`
			}
			mustDecode(t, string(line), &o)
			if strings.HasPrefix(o.Type, "tool.hook.") {
				events = append(events, o.Type)
			}
			if o.Object == tool.ObjectHook {
				records = append(records, tool.HookRecord{})
				mustDecode(t, string(line), &records[len(records)-1])
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return events, records
	}
	killed := s.launch()
	s.call(killed, "mcp.s.echo")
	eventually(t, "the hook runs", func() bool { events, _ := hooks(); return len(events) == 1 })
	_ = killed.cmd.Process.Kill()
	<-killed.read
	s.launch()
	eventually(t, "the call has ended", func() bool { ran, waited, _ := s.ended(); return ran+waited == 1 })
	events, records := hooks()
	want := "tool.hook.pre.started tool.hook.pre.completed"
	if event == "post_tool_use" || event == "result_persistence" {
		want = "tool.hook.post.started tool.hook.post.completed"
	}
	if got := strings.Join(events, " "); got != want || len(records) != 1 {
		t.Fatalf("%s, %d records", got, len(records))
	}
	if r := records[0]; r.Matcher["hook"] != "slow" || len(r.Outputs) != 1 || !strings.Contains(fmt.Sprint(r.Outputs), "killed while the hook ran") {
		t.Errorf("%+v", r)
	}
	checkRecords(t, filepath.Join(dir, "state", "journal"), 1)
}
