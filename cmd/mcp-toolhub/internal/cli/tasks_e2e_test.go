//go:build e2e

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// TestResultsOfTasksAreLimited has a task bring more than its client takes: the client gets a preview and a link in all places where
// the result stands, reads the rest, and the record of the call has the decision.
func TestResultsOfTasksAreLimited(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			state, modern := t.TempDir(), version == rev2026
			hub := startHub(t, "hub.json", configText(t, map[string]any{"far": child(taskScript(modern))},
				map[string]any{"results": map[string]any{"max_inline_tokens": 1000}}), "--state-dir", state)
			w := wireHTTP(t, hub.url+"/mcp", version)
			w.can = map[bool]string{false: everyCapability, true: followsTasks}[modern]
			w.open()
			c := newTaskClient(t, w, "mcp.far.").stand()
			as, ask := `"task":{}`, "tasks/result"
			if modern {
				as, ask = "", "tasks/get"
			}
			long := strings.Repeat("a line of a report\n", 2000)
			id := taskID(t, c.do(c.tool("task", `{"text":`+quoted(long)+`}`, as, "")))
			if modern {
				c.notes = w.listen(w.newRequest(c.request("subscriptions/listen", "", `"notifications":{"taskIds":[`+quoted(id)+`]}`, "")))
				c.note("acknowledged")
			}
			c.do(c.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
			answers, again := []string{c.do(c.about(ask, id))}, c.about(ask, id)
			if a := c.do(again); strings.Replace(a, again.id, "", 1) != strings.Replace(answers[0], strings.SplitN(answers[0], ",", 3)[1][len(`"id":`):], "", 1) {
				t.Errorf("asked again, the hub gave %s, and %s before", a, answers[0])
			}
			if modern {
				told := c.note(`"notifications/tasks"`, `"completed"`)
				params, _ := memberOf(t, told, "params")
				answers = append(answers, `{"result":`+params+`}`)
			}
			for _, a := range answers {
				if modern {
					task, _ := memberOf(t, a, "result")
					result, ok := memberOf(t, task, "result")
					if !ok {
						t.Fatalf("no result in %s", a)
					}
					a = `{"result":` + result + `}`
				}
				s := storedIn(t, a)
				if len(a) > 5000 || !strings.Contains(a, "a line of a report") || !strings.Contains(a, "read on with result_read") {
					t.Errorf("%d bytes: %s", len(a), a)
				}
				if whole := resourceText(t, last(w.send(w.readStored(s.uri)))); textOf(t, whole) != long || len(whole) != s.size {
					t.Errorf("read %d bytes of %d", len(whole), s.size)
				}
			}
			id = taskID(t, c.do(c.tool("task", `{"text":"short"}`, as, "")))
			c.do(c.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
			if a := c.do(c.about(ask, id)); !strings.Contains(a, `"content":[{"type":"text","text":"short"}]`) {
				t.Errorf("a result within the limit became %s", a)
			}
			if err := hub.stop(); err != nil {
				t.Error(err)
			}
			checkTaskDecisions(t, state)
		})
	}
}

// checkTaskDecisions holds that the call that became a task has one decision about its result, and one event of that.
func checkTaskDecisions(t *testing.T, state string) {
	t.Helper()
	decisions, stored := 0, 0
	err := persist.Read(filepath.Join(state, "journal"), func(object json.RawMessage) bool {
		var o struct {
			Object   tool.Object
			Type     tool.EventType    `json:"event_type"`
			Call     tool.InvocationID `json:"invocation_id"`
			Result   tool.ResultID     `json:"result_id"`
			Tool     tool.Name         `json:"tool_id"`
			Strategy tool.Strategy
			Data     struct {
				URI string
			}
		}
		mustDecode(t, string(object), &o)
		switch {
		case o.Object == tool.ObjectResultPersistence && o.Strategy == tool.StrategyPreviewAndPersist && o.Result == tool.ResultOf(o.Call):
			decisions++
		case o.Type == tool.EventResultPersisted && o.Tool == "mcp.far.task" && o.Data.URI == tool.ResultURI(tool.ResultOf(o.Call)):
			stored++
		}
		return true
	})
	if err != nil || decisions != 1 || stored != 1 {
		t.Errorf("%d decisions and %d events: %v", decisions, stored, err)
	}
}

// TestCallsOfABatchAreNoTasks: the client follows tasks of its own calls; a server makes none of a call in a batch, and says what it lacks.
func TestCallsOfABatchAreNoTasks(t *testing.T) {
	t.Parallel()
	w := wireHub(t, configText(t, map[string]any{"far": child(taskScript(true))}, nil), rev2026)
	w.can = followsTasks
	w.open()
	if got := w.batch(`{"calls":[{"id":"a","name":"mcp.far.task","arguments":{"text":"x"}}]}`).ends(); got != "a failed,capability_gap" {
		t.Error(got)
	}
	if got := w.result("mcp.far.task", `{"text":"x"}`, ""); !strings.Contains(got, `"taskId"`) {
		t.Error(got)
	}
}
