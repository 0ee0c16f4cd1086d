package upstreamtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// taskExtension is how servers of 2026-07-28 offer tasks.
const taskExtension = "io.modelcontextprotocol/tasks"

// tasks are those of one fake server, whoever asked for them.
type tasks struct {
	mu    sync.Mutex
	all   []*task
	moved chan struct{} // closed and replaced when one changes
}

func newTasks() tasks { return tasks{moved: make(chan struct{})} }

// task is one of them.
type task struct {
	id     string
	status string
	text   json.RawMessage
	ask    json.RawMessage // nil for nothing
	answer json.RawMessage
	token  json.RawMessage
	listen func([]byte) // nil where nobody listens
	stream json.RawMessage
}

func (p *peer) taskCapability() string {
	switch {
	case !p.script.Tasks:
		return ""
	case p.script.Modern:
		return `,"extensions":{"` + taskExtension + `":{}}`
	}
	return `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
}

// object is the task as the revision has it. After it come further members.
func (p *peer) object(t *task) string {
	if p.script.Modern {
		return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":"2026-08-01T00:00:00Z","lastUpdatedAt":"2026-08-01T00:00:00Z","ttlMs":1e5,"x":1.50`,
			t.id, t.status)
	}
	return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":"2025-12-01T00:00:00Z","lastUpdatedAt":"2025-12-01T00:00:00Z","ttl":1e5,"x":1.50`,
		t.id, t.status)
}

// detailed is the task with what its status brings, on 2026-07-28.
func (p *peer) detailed(t *task) string {
	switch t.status {
	case "input_required":
		return p.object(t) + fmt.Sprintf(`,"inputRequests":{"k\u0031":{"method":"elicitation/create","params":%s}}`, t.ask)
	case "completed":
		return p.object(t) + `,"result":` + t.result("")
	}
	return p.object(t)
}

// result is that of the call that became the task.
func (t *task) result(meta string) string {
	answer := ""
	if t.answer != nil {
		answer = fmt.Sprintf(`,"structuredContent":{"answer":%s}`, t.answer)
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]%s%s}`, t.text, answer, meta)
}

// newTask answers a call of the tool task.
func (p *peer) newTask(m message, send func([]byte)) {
	var params struct {
		Task json.RawMessage `json:"task"`
	}
	_ = json.Unmarshal(m.params, &params)
	switch {
	case p.script.Modern && !strings.Contains(string(m.params), `"`+taskExtension+`":{`):
		send(response(m.ID, "error", []byte(`{"code":-32021,"message":"Missing required client capability","data":`+
			`{"requiredCapabilities":{"extensions":{"`+taskExtension+`":{}}}}}`)))
		return
	case !p.script.Modern && params.Task == nil:
		send(response(m.ID, "error", []byte(`{"code":-32601,"message":"Tool task requires task augmentation"}`)))
		return
	}
	p.tasks.mu.Lock()
	t := &task{id: "task-" + strconv.Itoa(len(p.tasks.all)+1), status: "working", text: m.Params.Arguments["text"],
		ask: m.Params.Arguments["ask"], token: m.Params.Meta.ProgressToken}
	if t.ask != nil {
		t.status = "input_required"
	}
	p.tasks.all = append(p.tasks.all, t)
	object := p.object(t)
	p.tasks.mu.Unlock()
	if p.script.Modern {
		send(response(m.ID, "result", []byte(`{"resultType":"task",`+object+`}`)))
		return
	}
	send(response(m.ID, "result", []byte(`{"task":{`+object+`},"_meta":{"io.modelcontextprotocol/model-immediate-response":"soon"}}`)))
	p.toListeners([]byte(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + object + `}}`))
}

// change changes a task under its lock, and returns false where there is none.
func (p *peer) change(id string, f func(*task)) bool {
	p.tasks.mu.Lock()
	defer p.tasks.mu.Unlock()
	for _, t := range p.tasks.all {
		if t.id == id {
			f(t)
			close(p.tasks.moved)
			p.tasks.moved = make(chan struct{})
			return true
		}
	}
	return false
}

// look looks at a task under its lock, and returns what is closed when one changes.
func (p *peer) look(id string, f func(*task)) (moved <-chan struct{}) {
	p.tasks.mu.Lock()
	defer p.tasks.mu.Unlock()
	for _, t := range p.tasks.all {
		if t.id == id {
			f(t)
		}
	}
	return p.tasks.moved
}

// listenToTasks tells of the tasks that f names, until the function it returns is called; f is left with those that there are.
func (p *peer) listenToTasks(f *filter, send func([]byte)) (stop func()) {
	wanted := f.TaskIDs
	f.TaskIDs = nil
	set := func(send func([]byte)) {
		for _, id := range wanted {
			if p.change(id, func(t *task) { t.listen, t.stream = send, f.id }) && send != nil {
				f.TaskIDs = append(f.TaskIDs, id)
			}
		}
	}
	set(send)
	return func() { set(nil) }
}

// finishTask finishes a task and tells of it.
func (p *peer) finishTask(raw json.RawMessage) {
	var id string
	_ = json.Unmarshal(raw, &id)
	var lines []string
	var listen func([]byte)
	p.change(id, func(t *task) {
		if t.status == "working" {
			t.status = "completed"
		}
		if listen = t.listen; listen != nil {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{%s,"_meta":`+
				`{"io.modelcontextprotocol/subscriptionId":%s}}}`, p.detailed(t), t.stream))
			return
		}
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9,"x":1.50}}`, t.token),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{%s}}`, p.object(t)))
	})
	for _, line := range lines {
		switch {
		case listen != nil:
			listen([]byte(line))
		case !p.script.Modern:
			p.toListeners([]byte(line))
		}
	}
}

// aboutTask answers a request about tasks, and reports whether it was one.
func (p *peer) aboutTask(m message, gone <-chan struct{}, send func([]byte)) bool {
	if !p.script.Tasks || !strings.HasPrefix(m.Method, "tasks/") {
		return false
	}
	var params struct {
		TaskID         string                     `json:"taskId"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
	}
	_ = json.Unmarshal(m.params, &params)
	answer := ""
	complete := ""
	if p.script.Modern {
		complete = `"resultType":"complete"`
	}
	known := true
	switch m.Method {
	case "tasks/get":
		known = p.change(params.TaskID, func(t *task) {
			answer = "{" + p.object(t) + "}"
			if p.script.Modern {
				answer = "{" + complete + "," + p.detailed(t) + "}"
			}
		})
	case "tasks/cancel":
		known = p.change(params.TaskID, func(t *task) {
			t.status = "cancelled"
			answer = "{" + p.object(t) + "}"
			if p.script.Modern {
				answer = "{" + complete + "}"
			}
		})
	case "tasks/update":
		known = p.change(params.TaskID, func(t *task) {
			t.status, t.answer = "working", params.InputResponses["k1"]
			answer = "{" + complete + "}"
		})
	case "tasks/list":
		answer = p.listTasks(m.Params.Cursor)
	case "tasks/result":
		if answer, known = p.awaitTask(m, params.TaskID, gone, send); known && answer == "" {
			return true
		}
	default:
		return false
	}
	if !known {
		send(response(m.ID, "error", fmt.Appendf(nil, `{"code":-32602,"message":"Failed to retrieve task: Task not found","data":{"z":1.50}}`)))
		return true
	}
	send(response(m.ID, "result", []byte(answer)))
	return true
}

// listTasks is one page of all tasks, two on each.
func (p *peer) listTasks(cursor string) string {
	p.tasks.mu.Lock()
	defer p.tasks.mu.Unlock()
	from, _ := strconv.Atoi(cursor)
	var page []string
	for _, t := range p.tasks.all[min(from, len(p.tasks.all)):min(from+2, len(p.tasks.all))] {
		page = append(page, "{"+p.object(t)+"}")
	}
	next := ""
	if from+2 < len(p.tasks.all) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, from+2)
	}
	return `{"x-more":{"b":1.50,"a":12345678901234567890},"tasks":[` + strings.Join(page, ",") + `]` + next + `,"_meta":{"z":1.0}}`
}

// awaitTask waits for the end of a task, and asks meanwhile what it needs. The result is "" if nobody waits any more.
func (p *peer) awaitTask(m message, id string, gone <-chan struct{}, send func([]byte)) (result string, known bool) {
	related := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}`, id)
	canceled := make(chan struct{})
	p.mu.Lock()
	p.waiting[string(m.ID)] = canceled
	p.mu.Unlock()
	for {
		var ask json.RawMessage
		moved := p.look(id, func(t *task) {
			known = true
			switch t.status {
			case "completed", "cancelled":
				result = t.result("," + related)
			case "input_required":
				ask, t.status = t.ask, "working"
			}
		})
		if !known || result != "" {
			return result, known
		}
		if ask != nil {
			with := strings.TrimSuffix(string(ask), "}") + "," + related + "}"
			send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"elicitation/create","id":"for %s","params":%s}`, id, with))
			list := p.asking.await([]string{`"for ` + id + `"`}, canceled, gone)
			if list == nil {
				return "", true
			}
			p.change(id, func(t *task) { t.answer = list })
			continue
		}
		select {
		case <-moved:
		case <-canceled:
			return "", true
		case <-gone:
			return "", true
		}
	}
}
