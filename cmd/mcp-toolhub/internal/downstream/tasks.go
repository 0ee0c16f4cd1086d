package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// tasksSince is the protocol revision that has tasks in its core; the next one has them as an extension.
const tasksSince = "2025-11-25"

// isTaskMethod reports whether requests of the method are about tasks, on any revision.
func isTaskMethod(method string) bool {
	switch method {
	case tool.MethodTaskGet, tool.MethodTaskResult, tool.MethodTaskList, tool.MethodTaskCancel, tool.MethodTaskUpdate:
		return true
	}
	return false
}

// taskRequests serves requests about tasks: they go on to the server of a task that their caller owns.
type taskRequests struct {
	*parts
}

// handler returns what serves a method about tasks on the peer's revision; nil where that does not know it.
func (t *taskRequests) handler(p *peer, method string) handler {
	switch {
	case !p.modern && p.actor.Client.ProtocolVersion < tasksSince:
		return nil
	case method == tool.MethodTaskGet, method == tool.MethodTaskCancel:
		return t.forward
	case method == tool.MethodTaskUpdate && p.modern, method == tool.MethodTaskResult && !p.modern:
		return t.forward
	case method == tool.MethodTaskList && !p.modern:
		return t.list
	}
	return nil
}

// servers returns the servers whose tasks the peer may own, or why it owns none at all.
func (t *taskRequests) servers(p *peer, method string) (servers []string, refusal *tool.RPCError) {
	surface, refusal := t.surfaces.of(p)
	if refusal != nil {
		return nil, refusal
	}
	able := t.surfaces.abilities(surface)
	if surface.Features != nil {
		servers = surface.Features.Servers
	}
	switch {
	case p.modern && able.TaskExtension && !tool.Declares(p.hop.ClientCapabilities, "extensions", tool.TaskExtension):
		refusal := missingCapabilities([]*lack{{path: []string{"extensions", tool.TaskExtension},
			err: &tool.RPCError{}}})
		refusal.Message = fmt.Sprintf("%q needs the extension %s, which the client did not declare in this request",
			method, tool.TaskExtension)
		return nil, refusal
	case p.modern && !able.TaskExtension, !p.modern && able.Tasks == (tool.Tasks{}):
		if len(t.ownerships.tasks(p, servers)) == 0 {
			return nil, &tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not served",
				method)}
		}
	}
	return servers, nil
}

// forward serves a request about one task of the client. Somebody else's task looks like none.
func (t *taskRequests) forward(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	servers, refusal := t.servers(p, m.Method)
	if refusal != nil {
		return refusal
	}
	id, refusal := textParam(m, "taskId")
	if refusal != nil {
		return refusal
	}
	b := t.ownerships.task(p, servers, id)
	if b == nil {
		return &tool.RPCError{Code: tool.CodeInvalidParams, Message: fmt.Sprintf("unknown task %q", id)}
	}
	return t.forwarder.forward(ctx, p, m, r, onward{server: b.server, path: []string{"taskId"}, from: id, to: b.id,
		task: b.task})
}

// withTaskID returns the result of a request about a task with another id in all places that hold one.
func withTaskID(result json.RawMessage, id string) (json.RawMessage, error) {
	for _, path := range [][]string{{"taskId"}, {"task", "taskId"}, {"_meta", tool.MetaRelatedTask, "taskId"}} {
		at, ok := result, true
		for _, name := range path {
			ok = ok && rawjson.IsObject(at)
			if ok {
				at, ok = rawjson.Get(at, name)
			}
		}
		if !ok {
			continue
		}
		changed, err := rawjson.SetIn(result, rawjson.Quote(id), path...)
		if err != nil {
			return result, err
		}
		result = changed
	}
	return result, nil
}

// taskResult returns a server's answer to a request about a task as this client gets it: with the
// id that the client knows, in input requests the name of the server that asks, and the result of a
// call as the pipeline gives it.
func taskResult(ctx context.Context, p *peer, to answeredRequest, result json.RawMessage) (json.RawMessage, error) {
	var err error
	if to.from != to.to {
		if result, err = withTaskID(result, to.from); err != nil {
			return nil, err
		}
	}
	if result, err = to.withResult(ctx, p, result); err != nil {
		return nil, err
	}
	requests, ok := rawjson.Get(result, "inputRequests")
	if !p.modern || !ok || !rawjson.IsObject(requests) {
		return result, nil
	}
	questions, err := tool.ReadQuestions(requests)
	switch {
	case err == nil:
	case direct(p.profile):
		return result, nil // an extension's own, between the client and its server
	default:
		return nil, &tool.RPCError{Code: tool.CodeInternalError,
			Message: "the server's task needs input in a way that the protocol " +
				"does not know: " + err.Error()}
	}
	for _, q := range questions {
		if requests, err = labelledAmong(requests, to.server, q); err != nil {
			return nil, err
		}
	}
	return rawjson.Set(result, "inputRequests", requests)
}

// withResult returns an answer with the task's result as its caller gets it. On 2025-11-25 that is
// the answer to tasks/result, later a member of the task.
func (to *answeredRequest) withResult(ctx context.Context, p *peer, answer json.RawMessage) (json.RawMessage, error) {
	result, ok := answer, true
	if to.method != tool.MethodTaskResult {
		result, ok = rawjson.Get(answer, "result")
	}
	if to.task == nil || !ok || !rawjson.IsObject(result) {
		return answer, nil
	}
	p.caller.remember(to.server, result)
	outcome, err := to.task.Result(ctx, result)
	if err != nil {
		return nil, err
	}
	meta, err := metaFor(nil, &outcome)
	if err != nil {
		return nil, err
	}
	if result, err = rawjson.Set(outcome.Result, "_meta", meta); err != nil || to.method == tool.MethodTaskResult {
		return result, err
	}
	return rawjson.Set(answer, "result", result)
}

// tasksWithin bounds the time that servers may take to list their tasks: the client does not wait for one that hangs.
const tasksWithin = 10 * time.Second

// list serves tasks/list with the caller's own tasks. A server lists the tasks of all clients that
// share its connection. All come on one page: there are at most 1,000. Where there is one server,
// the other members of its first page are passed on.
func (t *taskRequests) list(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	servers, refusal := t.servers(p, m.Method)
	if cursor, has := rawjson.Get(m.Params, "cursor"); refusal == nil && has && !rawjson.IsNull(cursor) {
		refusal = invalidParams("cursor is not known: list again from the start")
	}
	if refusal != nil {
		return refusal
	}
	type list struct {
		tasks [][]byte
		first json.RawMessage
	}
	listed := make([]list, len(servers))
	limited, cancel := context.WithTimeout(ctx, tasksWithin)
	defer cancel()
	var listing sync.WaitGroup
	for i, server := range servers {
		listing.Go(func() { listed[i].tasks, listed[i].first = t.listOf(limited, p, server) })
	}
	listing.Wait()
	all, around := [][]byte(nil), json.RawMessage(`{}`)
	for _, l := range listed {
		if len(servers) == 1 && l.first != nil {
			around = l.first
		}
		all = append(all, l.tasks...)
	}
	result, _, err := rawjson.Delete(around, "nextCursor")
	if err == nil {
		result, err = rawjson.Set(result, "tasks", fmt.Appendf(nil, "[%s]", bytes.Join(all, []byte(","))))
	}
	if err != nil {
		return t.forwarder.errorOf(err)
	}
	r.answer(whole(result))
	return nil
}

// listOf lists those of a server's tasks that are the client's; it asks no server that has none. first
// is the server's first page, as p's client gets it. Tasks that the server does not list in time are
// left out.
func (t *taskRequests) listOf(ctx context.Context, p *peer, server string) (all [][]byte, first json.RawMessage) {
	wanted := make(map[string]*ownership)
	for _, b := range t.ownerships.tasks(p, []string{server}) {
		wanted[b.id] = b
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	err := t.surfaces.pagesOf(ctx, p, server, tool.MethodTaskList, func(page *tool.Reply) (more bool) {
		if first == nil {
			// nil for what is no page
			first, _ = t.forwarder.resultOf(ctx, p, answeredRequest{onward: onward{server: server},
				method: tool.MethodTaskList, revision: page.Mapping.ProtocolVersion}, page.Result)
			first = slices.Clone(first)
		}
		tasks, _ := rawjson.Get(page.Result, "tasks")
		_ = rawjson.Elements(tasks, func(task []byte) bool {
			id, _ := rawjson.GetString(task, "taskId")
			b := wanted[id]
			if b == nil {
				return true
			}
			delete(wanted, id)
			shown := json.RawMessage(slices.Clone(task))
			if want := b.idFor(p.profile); want != id {
				shown, _ = withTaskID(shown, want) // it was read a moment ago
			}
			all = append(all, shown)
			return true
		})
		return len(wanted) > 0
	})
	if err != nil {
		t.deps.Logger.Debug("a server's tasks are not listed", "server", server, "error", err)
	}
	return all, first
}
