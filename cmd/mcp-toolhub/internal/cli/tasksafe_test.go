package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// peopleHub is a hub of these servers that two people sign in to.
func peopleHub(t *testing.T, servers map[string]any) *runningHub {
	t.Helper()
	env := []string{"TOKEN_OF_ANN=" + annToken, "TOKEN_OF_BOB=" + bobToken}
	h := startHubIn(t, env, "hub.json", configText(t, servers, map[string]any{"hub": map[string]any{"auth": map[string]any{
		"tokens": []any{map[string]any{"name": "ann", "token": "${env:TOKEN_OF_ANN}"}, map[string]any{"name": "bob", "token": "${env:TOKEN_OF_BOB}"}}}}}))
	for id := range servers {
		eventually(t, "the tools are known", func() bool {
			st := h.statusOf(t, id)
			return st.Tools > 0 && (st.State == tool.ServerReady || st.Isolation != "")
		})
	}
	return h
}

// taskPerson is a client of kind at path that holds a token.
func taskPerson(t *testing.T, h *runningHub, kind, path, token, server string) *taskClient {
	t.Helper()
	version, can, prefix := rev2025, everyCapability, ""
	if kind == "new" {
		version, can = rev2026, followsTasks
	}
	if path == "/mcp" {
		prefix = "mcp." + server + "."
	}
	w := wireHTTP(t, h.url+path, version, "Authorization", "Bearer "+token)
	w.can = can
	return newTaskClient(t, w.open(), prefix).stand()
}

// newTask makes a task and returns its id.
func (c *taskClient) newTask(text string) string {
	c.t.Helper()
	task := ""
	if !c.w.modern() {
		task = `"task":{}`
	}
	return taskID(c.t, c.do(c.tool("task", `{"text":`+quoted(text)+`}`, task, "")))
}

// quiet holds that nothing of a kind came on the standing stream up to a message that the server is made to send now.
func (c *taskClient) quiet(t *testing.T, who, kind string) {
	t.Helper()
	for {
		select {
		case m := <-c.notes:
			if strings.Contains(m, kind) {
				t.Errorf("%s is told %s", who, m)
			}
		default:
			return
		}
	}
}

// TestEqualTaskIDs holds that tasks of several servers by one id are kept apart on the merged view, whoever is asked first,
// and go by their own ids on the direct ones.
func TestEqualTaskIDs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			servers := map[string]any{}
			for _, name := range []string{"one", "two"} {
				servers[name] = map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: taskScript(kind == "new")})}
			}
			hub := peopleHub(t, servers)
			c := taskPerson(t, hub, kind, "/mcp", annToken, "one")
			first := c.newTask("of one")
			c.prefix = "mcp.two."
			second := c.newTask("of two")
			if first != "task-1" || second != "two/task-1" {
				t.Fatalf("the tasks are %q and %q", first, second)
			}
			c.do(c.tool("finish", `{"task":"task-1"}`, "", ""))
			if kind == "old" {
				c.note("notifications/tasks/status", "completed", `"taskId":"two/task-1"`)
			}
			for id, status := range map[string]string{first: "working", second: "completed"} {
				got := c.do(c.about("tasks/get", id))
				if !strings.Contains(got, `"status":"`+status+`"`) || !strings.Contains(got, `"taskId":`+quoted(id)) {
					t.Errorf("%s: %s", id, got)
				}
			}
			if kind == "old" {
				if got := c.do(c.about("tasks/result", second)); !strings.Contains(got, `"of two"`) ||
					!strings.Contains(got, `"io.modelcontextprotocol/related-task":{"taskId":"two/task-1"}`) {
					t.Errorf("the result of the second: %s", got)
				}
				got := c.do(c.request("tasks/list", "", "", ""))
				if !strings.Contains(got, `"taskId":"task-1","status":"working"`) || !strings.Contains(got, `"taskId":"two/task-1","status":"completed"`) {
					t.Errorf("listed %s", got)
				}
				return
			}
			view := taskPerson(t, hub, kind, "/mcp/s/two", annToken, "two") // the same caller: there are no sessions
			if got := view.do(view.about("tasks/get", "task-1")); !strings.Contains(got, `"taskId":"task-1","status":"completed"`) {
				t.Errorf("on the view of two: %s", got)
			}
		})
	}
}
