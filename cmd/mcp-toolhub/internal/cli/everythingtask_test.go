//go:build e2e

package cli

import "strings"

// research has the server work on a task, and looks after it to its end: once as it is, and once with a question in between.
func (e *everythingClient) research() {
	e.t.Helper()
	const tool = "mcp.everything.simulate-research-query"
	response, _ := e.call("simulate-research-query", `{"topic":"x"}`)
	if e.wire.modern() { // which has tasks of another kind
		e.wants("a task of another revision", response, `runs as a task only`, `"error_class":"capability_gap"`)
		return
	}
	e.wants("no task", response, `task`)
	var ids []string
	for _, ambiguous := range []string{"false", "true"} {
		response = e.ask("tools/call", tool, `"name":`+quoted(tool)+`,"arguments":{"topic":"Grüße <é>","ambiguous":`+ambiguous+`},"task":{"ttl":60000}`)
		e.wants("the task", response, `"task":{`, `"status":"working"`, `"toolhub/invocation":{`)
		ids = append(ids, taskID(e.t, response))
	}
	for _, id := range ids {
		e.wants("tasks/get", e.ask("tasks/get", id, `"taskId":`+quoted(id)), `"taskId":`+quoted(id), `"status":"`, `"pollInterval":1000`)
		e.wants("tasks/list", e.ask("tasks/list", "", ""), quoted(id))
	}
	e.wants("a task of nobody", e.ask("tasks/get", "x", `"taskId":"x"`), `"code":-32602`)
	for i, id := range ids {
		x := &exchange{w: e.wire, answer: func(int, asked) string { return `{"action":"accept","content":{"interpretation":"historical"}}` }}
		report := x.inSession(rawRequest{id: e.wire.nextID(), method: "tasks/result", params: e.wire.params(`"taskId":`+quoted(id), "")})
		e.wants("tasks/result", report, `# Research Report: Grüße <é>`, `"io.modelcontextprotocol/related-task":{"taskId":`+quoted(id)+`}`)
		if i == 1 {
			e.wants("the clarified report", report, `Grüße <é> (historical)`)
			if len(x.asked) != 1 || !strings.Contains(x.asked[0].params, `[everything] The research query`) ||
				!strings.Contains(x.asked[0].params, `"io.modelcontextprotocol/related-task":{"taskId":`+quoted(id)+`}`) {
				e.t.Errorf("the task asked %q", x.asked)
			}
		}
		e.wants("its end", e.ask("tasks/get", id, `"taskId":`+quoted(id)), `"status":"completed"`)
	}
	response = e.ask("tools/call", tool, `"name":`+quoted(tool)+`,"arguments":{"topic":"x"},"task":{}`)
	id := taskID(e.t, response)
	e.wants("tasks/cancel", e.ask("tasks/cancel", id, `"taskId":`+quoted(id)), `"status":"cancelled"`)
}
