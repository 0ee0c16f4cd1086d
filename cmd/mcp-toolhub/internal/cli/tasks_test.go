package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// followsTasks is what a client of 2026-07-28 says of itself that can follow tasks and be asked.
const followsTasks = `{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// taskScript is a server that makes tasks.
func taskScript(modern bool) upstreamtest.Script {
	tools := []json.RawMessage{json.RawMessage(`{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`)}
	for _, name := range []string{"finish", "noted", "raw", "say", "shout", "ask", "echo", "die"} {
		tools = append(tools, upstreamtest.Tool(name))
	}
	return upstreamtest.Script{Tools: tools, Modern: modern, Tasks: true}
}

// taskServers are servers of both generations that make tasks, by both ways.
func taskServers(t testing.TB) map[string]any {
	return map[string]any{
		"oldhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: taskScript(false)})},
		"oldstdio": with(child(taskScript(false)), "isolation", "session"), // shared, nobody could tell whom it asks
		"newhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: taskScript(true)})},
		"newstdio": child(taskScript(true)),
	}
}

// taskClient is a client that makes requests, and reads what comes meanwhile.
type taskClient struct {
	t      *testing.T
	w      *wire
	prefix string        // of the names of tools
	notes  <-chan string // the standing stream over HTTP; nil over stdio
	stash  []string      // what came over stdio besides responses
	scribe *scribe
}

func newTaskClient(t *testing.T, w *wire, prefix string) *taskClient {
	return &taskClient{t: t, w: w, prefix: prefix, scribe: &scribe{t: t}}
}

// stand opens the standing stream.
func (c *taskClient) stand() *taskClient {
	if c.w.stdin == nil && !c.w.modern() {
		c.notes = c.w.standing()
	}
	return c
}

// request is a request of the client.
func (c *taskClient) request(method, name, members, meta string) rawRequest {
	return rawRequest{id: c.w.nextID(), method: method, name: name, params: c.w.params(members, meta)}
}

// about is a request about a task.
func (c *taskClient) about(method, id string) rawRequest {
	return c.request(method, id, `"taskId":`+quoted(id), "")
}

func (c *taskClient) tool(name, args, more, meta string) rawRequest {
	name, args = c.w.through(c.prefix+name, args)
	return c.request("tools/call", name, join(`"name":`+quoted(name), `"arguments":`+args, more), meta)
}

// do makes a request, writes both down, and returns the response.
func (c *taskClient) do(r rawRequest) string {
	c.t.Helper()
	next, end := c.begin(r)
	defer end()
	return c.response(r, next)
}

func (c *taskClient) begin(r rawRequest) (next func() string, end func()) {
	c.t.Helper()
	c.scribe.down(">", r.text())
	return c.w.begin(r)
}

// response is that to r.
func (c *taskClient) response(r rawRequest, next func() string) string {
	c.t.Helper()
	for {
		m := next()
		if strings.HasPrefix(m, `{"jsonrpc":"2.0","id":`+r.id+`,`) {
			c.scribe.down("<", m)
			return m
		}
		c.stash = append(c.stash, m)
	}
}

// note is the next notification or request that has all of these parts.
func (c *taskClient) note(parts ...string) string {
	c.t.Helper()
	has := func(m string) bool {
		for _, part := range parts {
			if !strings.Contains(m, part) {
				return false
			}
		}
		return true
	}
	for i, m := range c.stash {
		if has(m) {
			c.stash = append(c.stash[:i:i], c.stash[i+1:]...)
			c.scribe.down("<<", m)
			return m
		}
	}
	for {
		m := ""
		if c.notes != nil {
			m = await(c.t, c.notes)
		} else {
			m = c.w.next()
		}
		if has(m) {
			c.scribe.down("<<", m)
			return m
		}
		c.stash = append(c.stash, m)
	}
}

// taskID is the id of the task that a response tells of.
func taskID(t testing.TB, response string) string {
	t.Helper()
	result, _ := memberOf(t, response, "result")
	at := orEmpty(result)
	if task, ok := memberOf(t, at, "task"); ok {
		at = task
	}
	raw, ok := memberOf(t, at, "taskId")
	if !ok {
		t.Fatalf("no task in %s", response)
	}
	id := ""
	mustDecode(t, raw, &id)
	return id
}

const askForName = `{"message":"Name?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"x":1.50}`

// playOld plays all that a client of 2025-11-25 does with tasks.
func (c *taskClient) playOld() {
	c.scribe.title("a call as a task, with progress")
	id := taskID(c.t, c.do(c.tool("task", `{"text":"done <1>"}`, `"task":{"ttl":6e4}`, `"progressToken":"p\u0031"`)))
	if strings.Contains(strings.Join(c.stash, ""), "/tasks/") {
		c.t.Errorf("told of a task before its client knew of it: %q", c.stash)
	}
	c.note("notifications/tasks/status", `"working"`)
	c.scribe.title("the task")
	c.do(c.about("tasks/get", id))
	c.do(c.request("tasks/list", "", "", ""))
	c.scribe.title("its end, and its result")
	c.do(c.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
	c.note("notifications/progress")
	c.note("notifications/tasks/status", `"completed"`)
	c.do(c.about("tasks/result", id))
	c.scribe.title("a task that asks something")
	id = taskID(c.t, c.do(c.tool("task", `{"text":"hello","ask":`+askForName+`}`, `"task":{}`, "")))
	r := c.about("tasks/result", id)
	next, end := c.begin(r)
	defer end()
	question := next()
	for !strings.Contains(question, "elicitation/create") {
		c.stash = append(c.stash, question)
		question = next()
	}
	c.scribe.down("<", question)
	asked, _ := memberOf(c.t, question, "id")
	answer := `{"jsonrpc":"2.0","id":` + asked + `,"result":{"action":"accept","content":{"n":12345678901234567890}}}`
	c.scribe.down(">", answer)
	c.w.respond(answer)
	c.awaitStatus(id, "answered", "working")
	c.finishQuietly(id)
	c.response(r, next)
	c.scribe.title("a task that is canceled")
	id = taskID(c.t, c.do(c.tool("task", `{"text":"never"}`, `"task":{}`, "")))
	c.do(c.about("tasks/cancel", id))
	c.do(c.request("tasks/list", "", "", ""))
	c.scribe.title("no task: unknown, of another kind, none at all, and a tool that wants to be one")
	c.do(c.about("tasks/get", "nobody's"))
	c.do(c.about("tasks/update", id))
	c.do(c.request("tasks/get", "", `"taskId":7`, ""))
	c.do(c.request("tasks/list", "", `"cursor":"x"`, ""))
	c.do(c.tool("task", `{"text":"x"}`, "", ""))
}

// finishQuietly finishes a task without a line in the transcript.
func (c *taskClient) finishQuietly(id string) {
	c.t.Helper()
	name, args := c.w.through(c.prefix+"finish", `{"task":`+quoted(id)+`}`)
	w := *c.w
	r := rawRequest{id: `"finish"`, method: "tools/call", name: name, params: c.w.params(`"name":`+quoted(name)+`,"arguments":`+args, "")}
	if w.stdin != nil {
		w.write(r.text()) // its response is stashed
		return
	}
	w.post(r)
}

// awaitStatus waits until the server has the client's answer: then the task works on.
func (c *taskClient) awaitStatus(id, tag, status string) {
	c.t.Helper()
	for n := 0; ; n++ {
		r := rawRequest{id: fmt.Sprintf(`"%s-%d"`, tag, n), method: "tasks/get", name: id, params: c.w.params(`"taskId":`+quoted(id), "")}
		m := ""
		if c.w.stdin == nil {
			_, _, all := c.w.post(r)
			m = all[len(all)-1]
		} else {
			c.w.write(r.text())
			for m = c.w.next(); !strings.HasPrefix(m, `{"jsonrpc":"2.0","id":`+r.id+`,`); m = c.w.next() {
				c.stash = append(c.stash, m)
			}
		}
		if strings.Contains(m, `"status":"`+status+`"`) {
			return
		}
	}
}

// playNew plays all that a client of 2026-07-28 does with tasks.
func (c *taskClient) playNew() {
	c.scribe.title("a call that the server makes a task of")
	id := taskID(c.t, c.do(c.tool("task", `{"text":"done <1>"}`, "", "")))
	c.scribe.title("the task")
	c.do(c.about("tasks/get", id))
	c.scribe.title("listening to it, and to one that is not there, to its end")
	listen := c.request("subscriptions/listen", "", `"notifications":{"taskIds":[`+quoted(id)+`,"nobody's"]}`, "")
	c.scribe.down(">", listen.text())
	if c.w.stdin == nil {
		c.notes = c.w.listen(c.w.newRequest(listen))
	} else {
		c.w.write(listen.text())
	}
	c.note("acknowledged")
	c.do(c.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
	c.note(`"notifications/tasks"`)
	c.do(c.about("tasks/get", id))
	c.scribe.title("a task that asks something")
	id = taskID(c.t, c.do(c.tool("task", `{"text":"hello","ask":`+askForName+`}`, "", "")))
	c.do(c.about("tasks/get", id))
	c.do(c.request("tasks/update", id, `"taskId":`+quoted(id)+`,"inputResponses":{"k\u0031":{"action":"accept","content":{"n":12345678901234567890}}}`, ""))
	c.do(c.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
	c.do(c.about("tasks/get", id))
	c.scribe.title("a task that is canceled")
	id = taskID(c.t, c.do(c.tool("task", `{"text":"never"}`, "", "")))
	c.do(c.about("tasks/cancel", id))
	c.do(c.about("tasks/get", id))
	c.scribe.title("no task: unknown, of older revisions, and a client that cannot follow tasks")
	c.do(c.about("tasks/get", "nobody's"))
	c.do(c.about("tasks/result", id))
	c.do(c.request("tasks/list", "", "", ""))
	c.w.can = `{}`
	c.do(c.about("tasks/get", id))
	c.do(c.request("subscriptions/listen", "", `"notifications":{"taskIds":[`+quoted(id)+`]}`, ""))
	c.do(c.tool("task", `{"text":"x"}`, "", ""))
}

// hubQuestion is the id of a question of the hub's own.
var hubQuestion = regexp.MustCompile(`toolhub-[0-9]+`)

// hubToken is a progress token of the hub's own.
var hubToken = regexp.MustCompile(`"progressToken":[0-9]+`)

// compareTasks holds the transcript against the golden file, without what differs from one way to another.
func (c *taskClient) compareTasks(name, server string) {
	c.t.Helper()
	text := strings.ReplaceAll(c.scribe.text.String(), server, "far")
	s := &scribe{t: c.t}
	text = hubToken.ReplaceAllString(text, `"progressToken":N`)
	s.text.WriteString(hubQuestion.ReplaceAllString(text, "toolhub-N"))
	s.compare(name)
}

// TestTasks drives tasks between clients and servers of the same generation, by every way and on both kinds of view, and
// holds what goes over the client's wire against testdata/transcripts.
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		version, can := rev2025, everyCapability
		if kind == "new" {
			version, can = rev2026, followsTasks
		}
		play := func(t *testing.T, w *wire, view, server string) {
			t.Helper()
			w.can = can
			w.open()
			prefix := ""
			if view == "merged" {
				prefix = "mcp." + server + "."
			}
			if w.stdin != nil {
				w.awaitTools(prefix + "task")
			}
			w.ids = 100
			c := newTaskClient(t, w, prefix).stand()
			if kind == "old" {
				c.playOld()
			} else {
				c.playNew()
			}
			c.compareTasks("tasks-"+kind+"-"+view, server)
		}
		for _, view := range []string{"merged", "direct"} {
			for _, way := range []string{"http", "stdio"} {
				server := kind + way
				t.Run(fmt.Sprintf("http to %s, %s", server, view), func(t *testing.T) {
					t.Parallel()
					hub := startHub(t, "hub.json", configText(t, taskServers(t), nil))
					path := map[string]string{"merged": "/mcp", "direct": "/mcp/s/" + server}[view]
					play(t, wireHTTP(t, hub.url+path, version), view, server)
				})
				t.Run(fmt.Sprintf("stdio to %s, %s", server, view), func(t *testing.T) {
					t.Parallel()
					var args []string
					if view == "direct" {
						args = []string{"--server", server}
					}
					dir := t.TempDir()
					w := wireHubIn(t, dir, configText(t, taskServers(t), nil), version, args...)
					play(t, w, view, server)
					w.hangUp()
					checkJournal(t, filepath.Join(dir, "state"), 0)
				})
			}
		}
	}
}
