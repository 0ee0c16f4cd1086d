//go:build e2e

package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestForeignTasks holds that somebody else's task looks like one that is not there: to other sessions, other people, and on
// the view of another server; and that nobody else is told of it, or lists it.
func TestForeignTasks(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"oldhttp", "newhttp", "newstdio"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			hub := peopleHub(t, taskServers(t))
			kind := server[:3]
			ann := taskPerson(t, hub, kind, "/mcp", annToken, server)
			id := ann.newTask("ann's")
			others := map[string]*taskClient{
				"bob":                   taskPerson(t, hub, kind, "/mcp", bobToken, server),
				"bob's view":            taskPerson(t, hub, kind, "/mcp/s/"+server, bobToken, server),
				"ann at another server": taskPerson(t, hub, kind, "/mcp/s/"+kind+map[bool]string{true: "stdio", false: "http"}[strings.HasSuffix(server, "http")], annToken, server),
			}
			methods := []string{"tasks/get", "tasks/cancel", "tasks/update"}
			if kind == "old" {
				others["ann in another session"] = taskPerson(t, hub, kind, "/mcp", annToken, server)
				methods = []string{"tasks/get", "tasks/cancel", "tasks/result"}
			}
			for who, c := range others {
				for _, method := range methods {
					foreign, none := c.about(method, id), c.about(method, "task-99")
					none.id = foreign.id
					got, want := c.do(foreign), strings.ReplaceAll(c.do(none), "task-99", id)
					if got != want || !strings.Contains(got, "-32602") {
						t.Errorf("%s: %s of a foreign task\n got %s\nwant %s", who, method, got, want)
					}
				}
				if kind == "old" {
					if got := c.do(c.request("tasks/list", "", "", "")); !strings.Contains(got, `"tasks":[]`) {
						t.Errorf("%s lists %s", who, got)
					}
				}
			}
			ann.do(ann.tool("finish", `{"task":`+quoted(strings.TrimPrefix(id, server+"/"))+`}`, "", "")) // as its server knows it
			if kind == "old" {
				ann.note("notifications/tasks/status", "completed")
				for who, c := range others {
					if c.notes == nil {
						continue
					}
					c.quiet(t, who, "notifications/tasks")
				}
			}
			if got := ann.do(ann.about("tasks/get", id)); !strings.Contains(got, `"completed"`) {
				t.Errorf("its own caller got %s", got)
			}
		})
	}
}

// TestManyTasks holds that a client lists its own tasks among many, over all pages of the server.
func TestManyTasks(t *testing.T) {
	t.Parallel()
	hub := peopleHub(t, taskServers(t))
	ann := taskPerson(t, hub, "old", "/mcp", annToken, "oldhttp")
	bob := taskPerson(t, hub, "old", "/mcp/s/oldhttp", bobToken, "oldhttp")
	var own []string
	for i := range 7 {
		id := ann.newTask(fmt.Sprint(i))
		own = append(own, id)
		bob.newTask(fmt.Sprint(i))
	}
	got := ann.do(ann.request("tasks/list", "", "", ""))
	for _, id := range own {
		if strings.Count(got, quoted(id)) != 1 {
			t.Errorf("%s is listed %d times", id, strings.Count(got, quoted(id)))
		}
	}
	if n := strings.Count(got, `"taskId"`); n != len(own) {
		t.Errorf("%d tasks of %d: %s", n, len(own), got)
	}
}

// TestServerOfTaskDies holds that a task whose server has died is the server's to know or not, that what waits for it ends,
// and that the id, given anew, is its new holder's alone.
func TestServerOfTaskDies(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			hub := peopleHub(t, map[string]any{"s": child(taskScript(kind == "new"))})
			ann, bob := taskPerson(t, hub, kind, "/mcp", annToken, "s"), taskPerson(t, hub, kind, "/mcp", bobToken, "s")
			id := ann.newTask("lost")
			if kind == "old" {
				r := ann.about("tasks/result", id)
				answered := make(chan string)
				go func() {
					_, _, all := ann.w.post(r)
					answered <- all[len(all)-1]
				}()
				bob.do(bob.tool("die", `{}`, "", ""))
				if got := await(t, answered); !strings.Contains(got, "-32602") && !strings.Contains(got, `"error_class":"dependency_unavailable"`) {
					t.Errorf("the result of a lost task: %s", got)
				}
			} else {
				bob.do(bob.tool("die", `{}`, "", ""))
			}
			eventually(t, "the server is back", func() bool {
				got := ann.do(ann.about("tasks/get", id))
				return strings.Contains(got, `"message":"Failed to retrieve task: Task not found","data":{"z":1.50}`)
			})
			if again := bob.newTask("bob's"); again != id {
				t.Fatalf("the new task is %q", again)
			}
			if got := ann.do(ann.about("tasks/get", id)); !strings.Contains(got, `"unknown task `) {
				t.Errorf("who had the id before got %s", got)
			}
			if got := bob.do(bob.about("tasks/get", id)); !strings.Contains(got, `"working"`) {
				t.Errorf("who has it now got %s", got)
			}
		})
	}
}

// TestTasksAcrossGenerations holds that tasks are announced where both sides have the same kind of them, and that a tool
// which needs to be one says so elsewhere.
func TestTasksAcrossGenerations(t *testing.T) {
	t.Parallel()
	hub := peopleHub(t, taskServers(t))
	const oldTasks, newTasks = `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	for _, c := range []struct {
		version, path string
		old, extended bool
	}{
		{rev2025, "/mcp", true, false}, {rev2026, "/mcp", false, true}, {rev2025June, "/mcp", false, false},
		{rev2025, "/mcp/s/oldhttp", true, false}, {rev2025, "/mcp/s/newhttp", false, false},
		{rev2026, "/mcp/s/newstdio", false, true}, {rev2026, "/mcp/s/oldstdio", false, false},
	} {
		w := wireHTTP(t, hub.url+c.path, c.version, "Authorization", "Bearer "+annToken)
		r := w.initialize("wire")
		if w.modern() {
			r = rawRequest{id: w.nextID(), method: "server/discover", params: w.params("", "")}
		}
		_, _, all := w.post(r)
		if got := all[0]; strings.Contains(got, oldTasks) != c.old || strings.Contains(got, newTasks) != c.extended ||
			strings.Contains(got, `tasks"`) != (c.old || c.extended) {
			t.Errorf("%s at %s is told %s", c.version, c.path, got)
		}
	}
	for _, c := range []struct{ version, server, want string }{
		{rev2026, "oldhttp", `runs as a task only`}, {rev2026, "oldstdio", `"error_class":"capability_gap"`},
		{rev2025June, "oldhttp", `runs as a task only`}, {rev2025, "newhttp", `"code":-32021`}, {rev2025June, "newstdio", `"code":-32021`},
	} {
		w := wireHTTP(t, hub.url+"/mcp", c.version, "Authorization", "Bearer "+bobToken)
		if w.can = followsTasks; c.server[:3] == "old" {
			w.can = everyCapability
		}
		w.open()
		for _, more := range []string{"", `"task":{}`} { // which means something on one revision alone
			name := "mcp." + c.server + ".task"
			r := rawRequest{id: w.nextID(), method: "tools/call", name: name,
				params: w.params(join(`"name":`+quoted(name), `"arguments":{"text":"x"}`, more), "")}
			if got := w.send(r); !strings.Contains(got[len(got)-1], c.want) {
				t.Errorf("%s calls %s with %q: %s", c.version, name, more, got)
			}
		}
	}
}
