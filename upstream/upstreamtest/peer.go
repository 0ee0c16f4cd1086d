package upstreamtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

	session string // that it came in, over HTTP
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
	closed     int             // calls that lost their stream before they had an answer
	open       map[string]bool // calls that have none, by id
	notes      []string
	waiting    map[string]chan struct{} // requests that sleep, by session and id
	listeners  map[int]listener         // where notifications go
	subscribed map[string]int           // how often, by URI
	history    []string                 // of resources/subscribe and unsubscribe
	levels     []string                 // of logging/setLevel
	next       int
	listened   chan struct{} // closed when somebody listens for the first time
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
	return &peer{script: s, lists: lists, arrived: map[string]int{}, open: map[string]bool{},
		waiting: map[string]chan struct{}{}, listeners: map[int]listener{},
		subscribed: map[string]int{}, asking: newAsking(), tasks: tasks{modern: s.Modern, moved: make(chan struct{})},
		listened: make(chan struct{})}
}

// listen adds a place that notifications go to, until the function it returns is called.
func (p *peer) listen(l listener) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next++; p.next == 1 {
		close(p.listened)
	}
	n := p.next
	p.listeners[n] = l
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, n)
	}
}

// everybody returns who listens, by number.
func (p *peer) everybody() map[int]listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.listeners)
}

// toListeners sends line to everybody who listens.
func (p *peer) toListeners(line []byte) {
	for _, l := range p.everybody() {
		text := line
		if l.filter != nil { // what it says of the stream
			text = bytes.ReplaceAll(line, []byte(`"$LISTEN"`), l.filter.id)
		}
		l.send(text)
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
		p.cancel(m)
	}
	if m.Method == "notifications/initialized" && p.script.Has(AsksEarly) {
		p.toListeners([]byte(`{"jsonrpc":"2.0","id":"early","method":"roots/list"}`))
	}
	if m.Method == "notifications/roots/list_changed" && p.script.Has(AsksAgain) {
		for n, l := range p.everybody() { // each under an id of its own
			l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"again-%d","method":"roots/list"}`, n))
		}
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
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"%s":%s}`, id, member, value)
}

// hello is the result of initialize and discover.
func (p *peer) hello(more string) []byte {
	capabilities := `"tools":{"listChanged":true}`
	if p.script.Has(NoTools) {
		capabilities = `"experimental":{}`
	}
	capabilities = "{" + capabilities + p.script.Features.capabilities() + tasksCapability(p.script) +
		p.script.Capabilities + "}"
	name := cmp.Or(p.script.Name, "fake")
	info := fmt.Sprintf(`{"name":%s,"version":"1.2.3","title":%s}`, quote(name), quote("Fake "+name))
	return fill(fmt.Sprintf(`{%s,"capabilities":%s,"serverInfo":%s,"instructions":%s`+
		`,"_meta":{"io.modelcontextprotocol/serverInfo":%s}}`,
		more, capabilities, info, quote(p.script.Instructions), info), message{})
}

func (p *peer) cancel(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canceled = append(p.canceled, string(m.Params.RequestID))
	id := m.session + " " + string(m.Params.RequestID) // several hubs may use the same ids
	if c, ok := p.waiting[id]; ok {
		delete(p.waiting, id)
		close(c)
	}
}

const okResult = `{"content":[{"type":"text","text":"ok"}]}`

// call answers a tools/call.
func (p *peer) call(m message, gone <-chan struct{}, send func([]byte)) {
	p.mu.Lock()
	p.arrived[m.Params.Name]++
	p.open[string(m.ID)] = m.Params.Name != "calls"
	p.mu.Unlock()
	defer p.over(m, gone)
	if text, ok := p.script.Says[m.Params.Name]; ok {
		send(fill(text, m))
		return
	}
	result, ok := p.script.Results[m.Params.Name]
	if dir := p.script.ResultsIn; dir != "" {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(m.Params.Name)))
		result, ok = text, err == nil
	}
	if !ok {
		result, ok = p.result(m, gone, send)
	}
	if ok {
		send(response(m.ID, "result", result))
	}
}

// over notes the end of a call.
func (p *peer) over(m message, gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, string(m.ID))
	select {
	case <-gone:
		p.closed++
	default:
	}
}

// result is that of a call, and false where there is none: it was answered otherwise, or nobody waits any more.
func (p *peer) result(m message, gone <-chan struct{}, send func([]byte)) (result []byte, ok bool) {
	if result = p.featureTool(m, send); result != nil {
		return result, true
	}
	args := m.Params.Arguments
	switch m.Params.Name {
	case "echo":
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"params":%s}}`, m.params), true
	case "task":
		p.newTask(m, gone, send)
		return nil, false
	case "raw":
		return args["result"], true
	case "fail":
		send(response(m.ID, "error", args["error"]))
		return nil, false
	case "answer":
		send(fill(text(args["text"]), m))
		return nil, false
	case "progress":
		n := number(args["n"])
		for i := 1; i <= n; i++ {
			send(m.progress(`"progress":%d,"total":%d,"message":"step <%d>","x":1.50`, i, n, i))
		}
	case "sleep":
		return []byte(okResult), p.sleep(m, time.Duration(number(args["ms"]))*time.Millisecond, gone)
	case "wait":
		file := text(args["file"])
		there := func() bool { _, err := os.Stat(file); return err == nil }
		return []byte(okResult), p.poll(m, 5*time.Millisecond, there, gone)
	case "ask":
		result = p.ask(m, gone, send)
		return result, result != nil
	case "converse":
		result = p.converse(m, gone, send)
		return result, result != nil
	case "withdraw":
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`,
			args["id"]))
	case "answers":
		all := p.asking.holding(text(args["wait"]), p.cancelable(m), gone)
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"answers":%s}}`, all), all != nil
	case "rounds":
		return p.round(m), true
	case "hang":
		return p.hang(m, gone, send)
	case "die":
		p.die()
		return nil, false
	case "big":
		return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}]}`,
			strings.Repeat("x", number(args["bytes"]))), true
	case "grow":
		p.addTool(Tool(text(args["name"])))
	case "flood":
		for range number(args["n"]) {
			p.announce(toolsChanged, "")
		}
	default:
		if kept := p.kept(m.Params.Name, args); kept != nil {
			return kept, true
		}
	}
	return []byte(okResult), true
}

// kept is the result of a tool that tells what the peer has kept; nil where name is none.
func (p *peer) kept(name string, args map[string]json.RawMessage) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch name {
	case "arrived":
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"n":%d}}`, p.arrived[text(args["tool"])])
	case "calls":
		open := 0
		for _, counts := range p.open {
			if counts {
				open++
			}
		}
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"open":%d,"canceled":%d,"closed":%d}}`, open,
			len(p.canceled), p.closed)
	case "canceled":
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"ids":[%s]}}`, strings.Join(p.canceled, ","))
	case "note":
		p.notes = append(p.notes, string(args["text"]))
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"notes":[%s]}}`, strings.Join(p.notes, ","))
	case "pids":
		pids, _ := json.Marshal(append([]int{os.Getpid()}, p.pids...))
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"pids":%s}}`, pids)
	case "noted":
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"noted":%s}}`, array(p.noted))
	case "wishes": // what clients have asked to be told of
		var uris []string
		for uri, n := range p.subscribed {
			if n > 0 {
				uris = append(uris, uri)
			}
		}
		slices.Sort(uris)
		wishes, _ := json.Marshal(map[string][]string{"subscribed": uris, "history": p.history, "levels": p.levels})
		return fmt.Appendf(nil, `{"content":[],"structuredContent":%s}`, wishes)
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
func (p *peer) cancelable(m message) <-chan struct{} {
	c := make(chan struct{})
	p.mu.Lock()
	p.waiting[m.session+" "+string(m.ID)] = c
	p.mu.Unlock()
	return c
}

// hang never ends by itself. Once it was canceled, it may answer all the same.
func (p *peer) hang(m message, gone <-chan struct{}, send func([]byte)) (result []byte, ok bool) {
	canceled := p.cancelable(m) // before anybody knows that it has begun
	if string(m.Params.Arguments["begin"]) == "true" {
		send(m.progress(`"progress":1`))
	}
	comes[struct{}](nil, canceled, gone)
	switch text(m.Params.Arguments["then"]) {
	case "finish":
		return []byte(okResult), true
	case "fail":
		send(response(m.ID, "error", []byte(`{"code":0,"message":"Request cancelled"}`)))
	}
	return nil, false
}

// sleep waits for d, and reports false if the request was canceled or the client went meanwhile.
func (p *peer) sleep(m message, d time.Duration, gone <-chan struct{}) bool {
	began := time.Now()
	return p.poll(m, d, func() bool { return time.Since(began) >= d }, gone)
}

// poll waits until done, looking again and again, and reports false if the request was canceled or
// the client went meanwhile.
func (p *peer) poll(m message, every time.Duration, done func() bool, gone <-chan struct{}) bool {
	canceled := p.cancelable(m)
	again := time.NewTicker(max(every, 1))
	defer again.Stop()
	for !done() {
		if !comes(again.C, canceled, gone) {
			return false
		}
	}
	return true
}

// comes waits for something from what, and reports false if canceled or gone is closed before.
func comes[T any](what <-chan T, canceled, gone <-chan struct{}) bool {
	select {
	case <-what:
		return true
	case <-canceled:
	case <-gone:
	}
	return false
}

// text is a JSON string as Go has it, "" for anything else.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// array is a JSON array of these elements, byte for byte.
func array(all []json.RawMessage) []byte {
	return fmt.Appendf(nil, "[%s]", bytes.Join(convert[[]byte](all), []byte(",")))
}

func number(raw json.RawMessage) int {
	n, _ := strconv.Atoi(string(raw))
	return n
}

// fill is a text that a tool was told to send in answer to m, with what stands for its id and for a
// byte that is not UTF-8.
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
