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
