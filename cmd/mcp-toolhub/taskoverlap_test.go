package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// writesAsTask begins a call of the tool task that writes to path. The server wants to be asked every poll milliseconds. more is what else
// the arguments have.
func (c *taskClient) writesAsTask(path string, poll int, more ...string) (answer <-chan string) {
	task := `"task":{}`
	if c.w.modern() {
		task = ""
	}
	r, answered := c.tool("task", fmt.Sprintf(`{"text":"x","path":%q,"poll":%d%s}`, path, poll, strings.Join(more, "")), task, ""), make(chan string, 1)
	go func() {
		_, _, all := c.w.post(r)
		answered <- all[len(all)-1]
	}()
	return answered
}

// writingTaskScript is a server whose tasks write to the path that the call names.
func writingTaskScript(modern bool) upstreamtest.Script {
	script := taskScript(modern)
	script.Tools[0] = json.RawMessage(`{"name":"task","description":"Writes a file.","inputSchema":{"type":"object",` +
		`"properties":{"path":{"type":"string"}}},"execution":{"taskSupport":"required"}}`)
	return script
}

// waitsInsteadOf holds that a call waits at the server far.
func waitsInsteadOf(t *testing.T, hub *runningHub, answer <-chan string) {
	t.Helper()
	eventually(t, "the call waits", func() bool {
		select {
		case a := <-answer:
			t.Fatalf("the call did not wait: %s", a)
		default:
		}
		return hub.statusOf(t, "far").Queued == 1
	})
}

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

// TestATaskThatWaitsForInputHoldsNoLock: another write to its file runs meanwhile, and later ones wait once the server has the input.
func TestATaskThatWaitsForInputHoldsNoLock(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, far := fakeHandler(t, upstreamtest.Options{Script: writingTaskScript(kind == "new")})
			hub := peopleHub(t, map[string]any{"far": map[string]any{"type": "http", "url": url}})
			ann, bob := taskPerson(t, hub, kind, "/mcp", annToken, "far"), taskPerson(t, hub, kind, "/mcp", bobToken, "far")
			const poll = 1_000_000
			asks := taskID(t, await(t, ann.writesAsTask("/tmp/a", poll, `,"ask":`+askForName)))
			other := taskID(t, await(t, bob.writesAsTask("/tmp/a", poll)))
			bob.do(bob.about("tasks/cancel", other))
			bob.do(bob.about("tasks/get", other))
			const answer = `{"action":"accept","content":{"n":12345678901234567890}}`
			if kind == "old" {
				next, end := ann.begin(ann.about("tasks/result", asks))
				defer end()
				question := next()
				for !strings.Contains(question, "elicitation/create") {
					question = next()
				}
				id, _ := memberOf(t, question, "id")
				ann.w.respond(`{"jsonrpc":"2.0","id":` + id + `,"result":` + answer + `}`)
				eventually(t, "the server has the answer", func() bool {
					for _, r := range far.Requests() {
						if strings.Contains(string(r.Body), "12345678901234567890") {
							return true
						}
					}
					return false
				})
			} else {
				ann.do(ann.request("tasks/update", asks, `"taskId":`+quoted(asks)+`,"inputResponses":{"k\u0031":`+answer+`}`, ""))
			}
			third := bob.writesAsTask("/tmp/a", poll)
			waitsInsteadOf(t, hub, third)
			ann.do(ann.tool("finish", `{"task":`+quoted(asks)+`}`, "", ""))
			ann.do(ann.about("tasks/get", asks))
			taskID(t, await(t, third))
		})
	}
}
