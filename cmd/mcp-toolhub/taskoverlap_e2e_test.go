//go:build e2e

package main

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTasksKeepTheirLocks: two tasks that write to one file do not overlap, as their server sees it, whoever makes them. Those that write
// to two files do. The second one begins when the first one has ended. The hub asks about that itself where nobody else does.
func TestTasksKeepTheirLocks(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		for _, end := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "told", "nobody asks"} {
			if kind == "new" && (end == "tasks/result" || end == "tasks/list") {
				continue
			}
			t.Run(kind+" "+end, func(t *testing.T) {
				t.Parallel()
				url, far := fakeHandler(t, upstreamtest.Options{Script: writingTaskScript(kind == "new")})
				hub := peopleHub(t, map[string]any{"far": map[string]any{"type": "http", "url": url}})
				ann, bob := taskPerson(t, hub, kind, "/mcp", annToken, "far"), taskPerson(t, hub, kind, "/mcp", bobToken, "far")
				got := func(part string) (n int) {
					for _, r := range far.Requests() {
						if strings.Contains(string(r.Body), part) {
							n++
						}
					}
					return n
				}
				const write, ask = `"path":"/tmp/a"`, `"method":"tasks/get"`
				poll, quiet := 1_000_000, `,"quiet":true`                           // the hub does not ask for seconds
				if end == "nobody asks" || kind == "new" && end == "tasks/cancel" { // there its answer says nothing of the task
					poll = 1
				} else if end == "told" {
					quiet = ""
				}
				first, other := taskID(t, await(t, ann.writesAsTask("/tmp/a", poll))), taskID(t, await(t, bob.writesAsTask("/tmp/b", poll)))
				for id, c := range map[string]*taskClient{first: ann, other: bob} {
					if !strings.Contains(c.do(c.about("tasks/get", id)), `"working"`) {
						t.Errorf("%s does not work beside the other", id)
					}
				}
				asked := got(ask)
				second := bob.writesAsTask("/tmp/a", poll)
				waitsInsteadOf(t, hub, second)
				if n := got(write); n != 1 {
					t.Errorf("the server has got %d writes to one file", n)
				}
				if kind == "new" && end == "told" {
					ann.notes = ann.w.listen(ann.w.newRequest(ann.request("subscriptions/listen", "", `"notifications":{"taskIds":[`+quoted(first)+`]}`, "")))
					ann.note("acknowledged")
				}
				if end != "tasks/cancel" {
					ann.do(ann.tool("finish", `{"task":`+quoted(first)+quiet+`}`, "", "")) // its target is not known: it does not wait
				}
				switch end {
				case "tasks/list":
					ann.do(ann.request(end, "", "", ""))
				case "told", "nobody asks":
				default:
					ann.do(ann.about(end, first))
				}
				if id := taskID(t, await(t, second)); id == first || got(write) != 2 {
					t.Errorf("the second task is %s, and the server has got %d writes", id, got(write))
				}
				if end == "tasks/get" {
					asked++
				}
				if n := got(ask) - asked; (n > 0) != (poll == 1) {
					t.Errorf("the hub has asked %d times", n)
				}
			})
		}
	}
}

// TestLostTasksGiveTheirLocksBack: a task whose server has died holds nobody up, nor does one whose client has gone.
func TestLostTasksGiveTheirLocksBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		for _, end := range []string{"die", "finish"} {
			t.Run(kind+" "+end, func(t *testing.T) {
				t.Parallel()
				hub := peopleHub(t, map[string]any{"far": child(writingTaskScript(kind == "new"))})
				ann, bob := taskPerson(t, hub, kind, "/mcp", annToken, "far"), taskPerson(t, hub, kind, "/mcp", bobToken, "far")
				id := taskID(t, await(t, ann.writesAsTask("/tmp/a", 1)))
				if kind == "old" {
					ann.w.quit()
				}
				second := bob.writesAsTask("/tmp/a", 1)
				waitsInsteadOf(t, hub, second)
				again := taskPerson(t, hub, kind, "/mcp", annToken, "far")
				again.do(again.tool(end, `{"task":`+quoted(id)+`}`, "", ""))
				taskID(t, await(t, second))
			})
		}
	}
}
