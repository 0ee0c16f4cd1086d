package upstreamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// message is a JSON-RPC message as far as a fake server looks at it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string                     `json:"name"`
		Cursor    string                     `json:"cursor"`
		URI       string                     `json:"uri"`
		Arguments map[string]json.RawMessage `json:"arguments"`
		RequestID json.RawMessage            `json:"requestId"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	params json.RawMessage // all of it, raw
	raw    json.RawMessage // the message

	session string // that it came in, over Streamable HTTP
}

// progress is a report on the progress of a request, with these further members.
func (m message) progress(format string, args ...any) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,%s}}`,
		m.Params.Meta.ProgressToken, fmt.Sprintf(format, args...))
}

const toolsChanged = "notifications/tools/list_changed"

// peer is the part of a fake server that does not depend on the transport.
type peer struct {
	script Script
	pids   []int
	die    func()

	mu         sync.Mutex
	lists      map[string][]json.RawMessage // by the member of the result
	arrived    map[string]int               // calls, by tool
	canceled   []string
	notes      []string
	waiting    map[string]chan struct{} // requests that sleep, by id
	listeners  map[int]listener         // where notifications go
	subscribed map[string]int           // how often, by URI
	history    []string                 // of resources/subscribe and unsubscribe
	levels     []string                 // of logging/setLevel
	next       int
	deaf       bool
	asking     asking
	tasks      tasks
	noted      []json.RawMessage
}

func newPeer(s Script) *peer {
	lists := s.Features.all()
	for _, declaration := range s.tools() {
		lists["tools"] = append(lists["tools"], fill(string(declaration), message{}))
	}
	return &peer{script: s, lists: lists, arrived: map[string]int{}, waiting: map[string]chan struct{}{}, listeners: map[int]listener{},
		subscribed: map[string]int{}, asking: newAsking(), tasks: tasks{modern: s.Modern, moved: make(chan struct{})}}
}

// listen adds a place that notifications go to, until the function it returns is called.
func (p *peer) listen(l listener) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	n := p.next
	p.listeners[n] = l
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, n)
	}
}

// toListeners sends line to everybody who listens.
func (p *peer) toListeners(line []byte) {
	p.mu.Lock()
	all := make([]listener, 0, len(p.listeners))
	for _, l := range p.listeners {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		if l.filter != nil { // what it says of the stream
			l.send(bytes.ReplaceAll(line, []byte(`"$LISTEN"`), l.filter.id))
			continue
		}
		l.send(line)
	}
}

// askAgain asks everybody who listens for roots, each under an id of its own.
func (p *peer) askAgain() {
	p.mu.Lock()
	all := maps.Clone(p.listeners)
	p.mu.Unlock()
	for n, l := range all {
		l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"again-%d","method":"roots/list"}`, n))
	}
}

func parse(raw []byte) (m message, ok bool) {
	var outer struct {
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil || json.Unmarshal(raw, &outer) != nil {
		return m, false
	}
	m.params, m.raw = outer.Params, raw
	return m, true
}

// handle answers one message. It may be called concurrently, and blocks while a tool sleeps or hangs, until gone is
// closed. send is called for each message that goes back.
func (p *peer) handle(m message, gone <-chan struct{}, send func([]byte)) {
	if m.Method == "notifications/cancelled" {
		p.cancel(m.Params.RequestID)
	}
	if m.Method == "notifications/initialized" && p.script.Has(AsksEarly) {
		p.toListeners([]byte(`{"jsonrpc":"2.0","id":"early","method":"roots/list"}`))
	}
	if m.Method == "notifications/roots/list_changed" && p.script.Has(AsksAgain) {
		p.askAgain()
	}
	if m.Method == "" {
		p.asking.answered(m)
	}
	if m.ID == nil && m.Method != "" && !strings.HasPrefix(m.Method, "notifications/") {
		p.mu.Lock()
		p.noted = append(p.noted, m.raw)
		p.mu.Unlock()
	}
	if m.ID == nil || m.Method == "" || p.ignores(m) {
		return
	}
	switch m.Method {
	case "server/discover":
		if !p.script.Modern {
			send(response(m.ID, "error", []byte(`{"code":-32601,"message":"method not found"}`)))
			return
		}
		send(response(m.ID, "result", p.hello(`"supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private",`+
			`"resultType":"complete"`)))
	case "initialize":
		send(response(m.ID, "result", p.hello(`"protocolVersion":"2025-11-25"`)))
	case "ping":
		send(response(m.ID, "result", []byte(`{}`)))
	case "tools/list":
		if !p.script.Has(SilentList) {
			send(response(m.ID, "result", p.page("tools", m.Params.Cursor)))
		}
	case "tools/call":
		p.call(m, gone, send)
	case "subscriptions/listen":
		p.listenFor(m, gone, send)
	default:
		if !p.feature(m, gone, send) && !p.aboutTask(m, gone, send) {
			send(response(m.ID, "error", []byte(`{"code":-32601,"message":"method not found"}`)))
		}
	}
}

// ignores reports whether the script leaves the request unanswered.
func (p *peer) ignores(m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Method == "server/discover" && p.script.Has(DeafByDiscover) {
		p.deaf = true
	}
	return p.deaf || p.script.Has(NeverInitialises) || m.Method == "server/discover" && p.script.Has(IgnoresDiscover)
}

func response(id json.RawMessage, member string, value []byte) []byte {
	b := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"%s":`, id, member)
	return append(append(b, value...), '}')
}

// hello is the result of initialize and discover.
func (p *peer) hello(more string) []byte {
	capabilities := `"tools":{"listChanged":true}`
	if p.script.Has(NoTools) {
		capabilities = `"experimental":{}`
	}
	capabilities = "{" + capabilities + p.script.Features.capabilities() + tasksCapability(p.script) + p.script.Capabilities + "}"
	name := p.script.Name
	if name == "" {
		name = "fake"
	}
	info := fmt.Sprintf(`{"name":%s,"version":"1.2.3","title":%s}`, quote(name), quote("Fake "+name))
	return fill(fmt.Sprintf(`{%s,"capabilities":%s,"serverInfo":%s,"instructions":%s,"_meta":{"io.modelcontextprotocol/serverInfo":%s}}`,
		more, capabilities, info, quote(p.script.Instructions), info), message{})
}

func (p *peer) cancel(id json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canceled = append(p.canceled, string(id))
	if c, ok := p.waiting[string(id)]; ok {
		delete(p.waiting, string(id))
		close(c)
	}
}

const okResult = `{"content":[{"type":"text","text":"ok"}]}`

// call answers a tools/call.
func (p *peer) call(m message, gone <-chan struct{}, send func([]byte)) {
	args := m.Params.Arguments
	result := []byte(okResult)
	p.mu.Lock()
	p.arrived[m.Params.Name]++
	p.mu.Unlock()
	if text, ok := p.script.Says[m.Params.Name]; ok {
		send(fill(text, m))
		return
	}
	fixed, ok := p.script.Results[m.Params.Name]
	if !ok {
		fixed, ok = p.featureTool(m, send)
	}
	if ok {
		send(response(m.ID, "result", fixed))
		return
	}
	switch m.Params.Name {
	case "echo":
		result = fmt.Appendf(nil, `{"content":[],"structuredContent":{"params":%s}}`, m.params)
	case "task":
		p.newTask(m, send)
		return
	case "raw":
		result = args["result"]
	case "fail":
		send(response(m.ID, "error", args["error"]))
		return
	case "answer":
		var text string
		_ = json.Unmarshal(args["text"], &text)
		send(fill(text, m))
		return
	case "progress":
		n := number(args["n"])
		for i := 1; i <= n; i++ {
			send(m.progress(`"progress":%d,"total":%d,"message":"step <%d>","x":1.50`, i, n, i))
		}
	case "sleep":
		if !p.sleep(m.ID, time.Duration(number(args["ms"]))*time.Millisecond, gone) {
			return
		}
	case "wait":
		if !p.waitFor(m.ID, args["file"], gone) {
			return
		}
	case "ask":
		if result = p.ask(m, gone, send); result == nil {
			return
		}
	case "converse":
		if result = p.converse(m, gone, send); result == nil {
			return
		}
	case "withdraw":
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, args["id"]))
	case "answers":
		if result = p.answers(m.ID, args["wait"], gone); result == nil {
			return
		}
	case "rounds":
		result = p.round(m)
	case "hang":
		p.sleep(m.ID, time.Hour, gone)
		return
	case "die":
		p.die()
		return
	case "big":
		result = fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("x", number(args["bytes"])))
	case "grow":
		var name string
		_ = json.Unmarshal(args["name"], &name)
		p.addTool(Tool(name))
	case "flood":
		for range number(args["n"]) {
			p.announce(toolsChanged, "")
		}
	default:
		if kept := p.kept(m.Params.Name, args); kept != nil {
			result = kept
		}
	}
	send(response(m.ID, "result", result))
}

// answers is the result of the tool that tells what questions were answered with, once that holds the JSON text wait; nil
// where the request was canceled or the client went before.
func (p *peer) answers(id, wait json.RawMessage, gone <-chan struct{}) []byte {
	var text string
	if _ = json.Unmarshal(wait, &text); text != "" && !p.asking.holds(text, p.cancelable(id), gone) {
		return nil
	}
	return fmt.Appendf(nil, `{"content":[],"structuredContent":{"answers":%s}}`, p.asking.all())
}

// kept is the result of a tool that tells what the peer has kept; nil where name is none.
func (p *peer) kept(name string, args map[string]json.RawMessage) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch name {
	case "arrived":
		var of string
		_ = json.Unmarshal(args["tool"], &of)
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"n":%d}}`, p.arrived[of])
	case "canceled":
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"ids":[%s]}}`, strings.Join(p.canceled, ","))
	case "note":
		p.notes = append(p.notes, string(args["text"]))
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"notes":[%s]}}`, strings.Join(p.notes, ","))
	case "pids":
		pids, _ := json.Marshal(append([]int{os.Getpid()}, p.pids...))
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"pids":%s}}`, pids)
	}
	return nil
}

// changeTools changes what tools the peer lists, and tells of it.
func (p *peer) changeTools(change func(tools []json.RawMessage) []json.RawMessage) {
	p.mu.Lock()
	p.lists["tools"] = change(p.lists["tools"])
	p.mu.Unlock()
	p.announce(toolsChanged, "")
}

func (p *peer) addTool(declaration json.RawMessage) {
	p.changeTools(func(tools []json.RawMessage) []json.RawMessage { return append(tools, declaration) })
}

// cancelable returns what is closed when the request id is canceled.
func (p *peer) cancelable(id json.RawMessage) <-chan struct{} {
	c := make(chan struct{})
	p.mu.Lock()
	p.waiting[string(id)] = c
	p.mu.Unlock()
	return c
}

// sleep waits for d, and reports false if the request was canceled or the client went meanwhile.
func (p *peer) sleep(id json.RawMessage, d time.Duration, gone <-chan struct{}) bool {
	began := time.Now()
	return p.poll(id, d, func() bool { return time.Since(began) >= d }, gone)
}

// waitFor waits until there is the file with the JSON name, as sleep does.
func (p *peer) waitFor(id, name json.RawMessage, gone <-chan struct{}) bool {
	var file string
	_ = json.Unmarshal(name, &file)
	return p.poll(id, 5*time.Millisecond, func() bool { _, err := os.Stat(file); return err == nil }, gone)
}

// poll waits until done, looking again and again, and reports false if the request was canceled or the client went meanwhile.
func (p *peer) poll(id json.RawMessage, every time.Duration, done func() bool, gone <-chan struct{}) bool {
	canceled := p.cancelable(id)
	again := time.NewTicker(max(every, 1))
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-canceled:
			return false
		case <-gone:
			return false
		}
	}
	return true
}

func number(raw json.RawMessage) int {
	n, _ := strconv.Atoi(string(raw))
	return n
}

// fill is a text that a tool was told to send in answer to m, with what stands for its id and for a byte that is not UTF-8.
func fill(text string, m message) []byte {
	if m.ID != nil {
		text = strings.ReplaceAll(text, "$ID", string(m.ID))
	}
	text = strings.ReplaceAll(text, "$BAD", "\xff")
	if strings.Contains(text, "$LONG") {
		text = strings.ReplaceAll(text, "$LONG", strings.Repeat("long ", 1<<18))
	}
	return []byte(text)
}

func quote(text string) []byte {
	quoted, _ := json.Marshal(text) // a text always encodes
	return quoted
}
