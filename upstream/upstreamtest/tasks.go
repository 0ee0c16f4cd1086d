package upstreamtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// taskExtension says how servers of 2026-07-28 offer tasks.
const taskExtension = "io.modelcontextprotocol/tasks"

// tasks are those of one fake server, whoever asked for them.
type tasks struct {
	modern bool

	mu    sync.Mutex
	all   []*task
	moved chan struct{} // closed and replaced when one changes
}

// task is one of them.
type task struct {
	id     string
	status string
	text   json.RawMessage
	whole  json.RawMessage // the result, in place of one with the text; nil for that
	ask    json.RawMessage // nil for nothing
	answer json.RawMessage
	token  json.RawMessage
	listen func([]byte) // nil where nobody listens
	stream json.RawMessage
}

// tasksCapability says how a script offers tasks.
func tasksCapability(s Script) string {
	switch {
	case !s.Tasks:
		return ""
	case s.Modern:
		return `,"extensions":{"` + taskExtension + `":{}}`
	}
	return `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
}

// object is the task as the revision has it. After it come further members.
func (l *tasks) object(t *task) string {
	at, ttl := "2025-12-01T00:00:00Z", "ttl"
	if l.modern {
		at, ttl = "2026-08-01T00:00:00Z", "ttlMs"
	}
	return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,%q:1e5,"x":1.50`, t.id, t.status, at,
		at, ttl)
}

// detailed is the task with what its status brings, on 2026-07-28.
func (l *tasks) detailed(t *task) string {
	switch t.status {
	case "input_required":
		return l.object(t) + fmt.Sprintf(`,"inputRequests":{"k\u0031":{"method":"elicitation/create","params":%s}}`,
			t.ask)
	case "completed":
		return l.object(t) + `,"result":` + t.result("")
	}
	return l.object(t)
}

// result is that of the call that became the task.
func (t *task) result(meta string) string {
	answer := ""
	if t.answer != nil {
		answer = fmt.Sprintf(`,"structuredContent":{"answer":%s}`, t.answer)
	}
	if t.whole != nil {
		return strings.TrimSuffix(string(t.whole), "}") + meta + "}"
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]%s%s}`, t.text, answer, meta)
}

// newTask answers a call of the tool task.
func (p *peer) newTask(m message, gone <-chan struct{}, send func([]byte)) {
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
		whole: m.Params.Arguments["result"], ask: m.Params.Arguments["ask"], token: m.Params.Meta.ProgressToken}
	if t.ask != nil {
		t.status = "input_required"
	}
	p.tasks.all = append(p.tasks.all, t)
	object := p.tasks.object(t)
	p.tasks.mu.Unlock()
	if p.script.Modern {
		send(response(m.ID, "result", []byte(`{"resultType":"task",`+object+`}`)))
		return
	}
	send(response(m.ID, "result", []byte(`{"task":{`+object+
		`},"_meta":{"io.modelcontextprotocol/model-immediate-response":"soon"}}`)))
	select { // a hub opens the stream that it listens to on the side
	case <-p.listened:
	case <-gone:
	}
	p.toListeners([]byte(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + object + `}}`))
}

// change changes a task under its lock, and returns false where there is none.
func (l *tasks) change(id string, f func(*task)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.all {
		if t.id == id {
			f(t)
			close(l.moved)
			l.moved = make(chan struct{})
			return true
		}
	}
	return false
}

// look looks at a task under its lock, and returns what is closed when one changes.
func (l *tasks) look(id string, f func(*task)) (moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.all {
		if t.id == id {
			f(t)
		}
	}
	return l.moved
}

// listen tells of the tasks that f names, until the function it returns is called; f is left with those that there are.
func (l *tasks) listen(f *filter, send func([]byte)) (stop func()) {
	wanted := f.TaskIDs
	f.TaskIDs = nil
	set := func(send func([]byte)) {
		for _, id := range wanted {
			if l.change(id, func(t *task) { t.listen, t.stream = send, f.id }) && send != nil {
				f.TaskIDs = append(f.TaskIDs, id)
			}
		}
	}
	set(send)
	return func() { set(nil) }
}

// finishTask finishes a task and tells of it. whole is its result from now on; nil: what it was begun with says that.
func (p *peer) finishTask(id string, whole json.RawMessage) {
	var lines []string
	var listen func([]byte)
	p.tasks.change(id, func(t *task) {
		if t.status == "working" {
			t.status = "completed"
		}
		if whole != nil {
			t.whole = whole
		}
		if listen = t.listen; listen != nil {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{%s,"_meta":`+
				`{"io.modelcontextprotocol/subscriptionId":%s}}}`, p.tasks.detailed(t), t.stream))
			return
		}
		lines = append(lines,
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{`+
				`"progressToken":%s,"progress":9,"x":1.50}}`, t.token),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{%s}}`, p.tasks.object(t)))
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
	answer, complete, known := "", "", true
	if p.script.Modern {
		complete = `"resultType":"complete"`
		answer = "{" + complete + "}"
	}
	switch m.Method {
	case "tasks/get", "tasks/cancel":
		known = p.tasks.change(params.TaskID, func(t *task) {
			if m.Method == "tasks/cancel" {
				t.status = "cancelled"
			}
			switch {
			case !p.script.Modern:
				answer = "{" + p.tasks.object(t) + "}"
			case m.Method == "tasks/get":
				answer = "{" + complete + "," + p.tasks.detailed(t) + "}"
			}
		})
	case "tasks/update":
		answer = "{" + complete + "}"
		known = p.tasks.change(params.TaskID, func(t *task) {
			t.status, t.answer = "working",
				params.InputResponses["k1"]
		})
	case "tasks/list":
		answer = p.tasks.page(m.Params.Cursor)
	case "tasks/result":
		if answer, known = p.awaitTask(m, params.TaskID, gone, send); known && answer == "" {
			return true
		}
	default:
		return false
	}
	if !known {
		send(response(m.ID, "error", fmt.Appendf(nil,
			`{"code":-32602,"message":"Failed to retrieve task: Task not found","data":{"z":1.50}}`)))
		return true
	}
	send(response(m.ID, "result", []byte(answer)))
	return true
}

// page is one page of all tasks, two on each.
func (l *tasks) page(cursor string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, _ := strconv.Atoi(cursor)
	var page []string
	for _, t := range l.all[min(from, len(l.all)):min(from+2, len(l.all))] {
		page = append(page, "{"+l.object(t)+"}")
	}
	next := ""
	if from+2 < len(l.all) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, from+2)
	}
	return `{"x-more":{"b":1.50,"a":12345678901234567890},"tasks":[` + strings.Join(page, ",") + `]` + next +
		`,"_meta":{"z":1.0}}`
}

// awaitTask waits for the end of a task, and asks meanwhile what it needs. The result is "" if nobody waits any more.
func (p *peer) awaitTask(m message, id string, gone <-chan struct{}, send func([]byte)) (result string, known bool) {
	related := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}`, id)
	canceled := p.cancelable(m)
	for {
		var ask json.RawMessage
		moved := p.tasks.look(id, func(t *task) {
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
			send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"elicitation/create","id":"for %s","params":%s}`, id,
				with))
			list := p.asking.await([]string{`"for ` + id + `"`}, canceled, gone)
			if list == nil {
				return "", true
			}
			p.tasks.change(id, func(t *task) { t.answer = list })
			continue
		}
		if !comes(moved, canceled, gone) {
			return "", true
		}
	}
}
