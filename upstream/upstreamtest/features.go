package upstreamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Features hold what a fake server offers besides tools. What is not nil is offered, and listed
// byte for byte. Its requests prompts/get, resources/read and completion/complete answer
//
//	{"answer": R, …}   R, byte for byte
//	{"error": E, …}    the JSON-RPC error E, byte for byte
//	any other params   {"method": M, "params": P}, P byte for byte
//
// after what the name or uri asks for: "progress" is two progress reports, "log" a log message,
// "hang" no answer, "begin" a progress report and no answer, "die" and "ask" as the tools.
type Features struct {
	Prompts   []json.RawMessage
	Resources []json.RawMessage
	Templates []json.RawMessage // with Resources only

	Subscribes bool // to resources
	Logs       bool
	Completes  bool
}

// all are the lists by the member of the result that holds them.
func (f Features) all() map[string][]json.RawMessage {
	out := map[string][]json.RawMessage{"prompts": f.Prompts, "resources": f.Resources,
		"resourceTemplates": f.Templates}
	maps.DeleteFunc(out, func(_ string, list []json.RawMessage) bool { return list == nil })
	return out
}

// capabilities are the members of the capabilities object for f.
func (f Features) capabilities() string {
	out := ""
	if f.Prompts != nil {
		out += `,"prompts":{"listChanged":true}`
	}
	if f.Resources != nil {
		out += fmt.Sprintf(`,"resources":{"listChanged":true,"subscribe":%t}`, f.Subscribes)
	}
	if f.Logs {
		out += `,"logging":{}`
	}
	if f.Completes {
		out += `,"completions":{}`
	}
	return out
}

// listener is a place that notifications go to.
type listener struct {
	send   func([]byte)
	filter *filter // nil where everything goes there
}

// filter holds what a subscriptions/listen asks for.
type filter struct {
	Tools     bool            `json:"toolsListChanged,omitempty"`
	Prompts   bool            `json:"promptsListChanged,omitempty"`
	Resources bool            `json:"resourcesListChanged,omitempty"`
	URIs      []string        `json:"resourceSubscriptions,omitempty"`
	TaskIDs   []string        `json:"taskIds,omitempty"`
	Acme      json.RawMessage `json:"acmeThings,omitempty"` // an extension's: taken as it is
	id        json.RawMessage
}

// takes reports whether the filter lets a notification pass.
func (f *filter) takes(method, uri string) bool {
	switch method {
	case "notifications/tools/list_changed":
		return f.Tools
	case "notifications/prompts/list_changed":
		return f.Prompts
	case "notifications/resources/list_changed":
		return f.Resources
	}
	return slices.Contains(f.URIs, uri)
}

// announce sends a notification to every listener that it is for.
func (p *peer) announce(method, uri string) {
	p.mu.Lock()
	subscribed := p.subscribed[uri] > 0
	p.mu.Unlock()
	for _, l := range p.everybody() {
		params := ""
		switch {
		case l.filter != nil && !l.filter.takes(method, uri), l.filter == nil && uri != "" && !subscribed:
			continue
		case uri != "" && l.filter != nil:
			params = fmt.Sprintf(`,"params":{"uri":%q,"x":1.50,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`,
				uri,
				l.filter.id)
		case uri != "":
			params = fmt.Sprintf(`,"params":{"uri":%q,"x":1.50}`, uri)
		}
		l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q%s}`, method, params))
	}
}

// listenFor answers a subscriptions/listen and ends it when it is canceled.
func (p *peer) listenFor(m message, gone <-chan struct{}, send func([]byte)) {
	var params struct {
		Notifications filter `json:"notifications"`
	}
	_ = json.Unmarshal(m.params, &params)
	f := params.Notifications
	f.id = m.ID
	f.URIs = slices.DeleteFunc(f.URIs, func(uri string) bool { return uri == Refused })
	if !p.script.Features.Subscribes {
		f.URIs = nil
	}
	canceled := p.cancelable(m)
	p.mu.Lock()
	for _, uri := range f.URIs {
		p.subscribed[uri]++
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, uri := range f.URIs {
			p.subscribed[uri]--
		}
	}()
	defer p.tasks.listen(&f, send)()
	agreed, _ := json.Marshal(f)
	defer p.listen(listener{send, &f})()
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":`+
		`{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, agreed, m.ID))
	select {
	case <-canceled:
		send(response(m.ID, "result", fmt.Appendf(nil,
			`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}`, m.ID)))
	case <-gone:
	}
}

// Refused is the URI of a resource that no fake server takes a subscription to.
const Refused = "fake://refused"

// blocks reports whether requests of the method may take long.
func blocks(method string) bool {
	switch method {
	case "tools/call", "tasks/result", "subscriptions/listen", "prompts/get", "resources/read", "completion/complete":
		return true
	}
	return strings.HasPrefix(method, "acme/")
}

// feature answers what has nothing to do with tools, and reports whether it did.
func (p *peer) feature(m message, gone <-chan struct{}, send func([]byte)) bool {
	list := map[string]string{"prompts/list": "prompts", "resources/list": "resources",
		"resources/templates/list": "resourceTemplates"}[m.Method]
	p.mu.Lock()
	_, offered := p.lists[list]
	p.mu.Unlock()
	switch {
	case list != "" && p.script.Has(SilentFeatures):
	case list != "" && p.script.Has(RefusesFeatures):
		send(response(m.ID, "error", []byte(`{"code":-32603,"message":"the database is down"}`)))
	case list != "" && offered:
		send(response(m.ID, "result", p.page(list, m.Params.Cursor)))
	case slices.Contains([]string{"prompts/get", "resources/read", "completion/complete"}, m.Method),
		strings.HasPrefix(m.Method, "acme/"):
		p.answer(m, gone, send)
	case m.Method == "resources/subscribe", m.Method == "resources/unsubscribe":
		p.subscribe(m, send)
	case m.Method == "logging/setLevel":
		var params struct{ Level string }
		_ = json.Unmarshal(m.params, &params)
		p.mu.Lock()
		p.levels = append(p.levels, params.Level)
		p.mu.Unlock()
		if !p.script.Has(SilentLevel) {
			send(response(m.ID, "result", []byte(`{}`)))
		}
	default:
		return false
	}
	return true
}

// subscribe answers resources/subscribe and resources/unsubscribe.
func (p *peer) subscribe(m message, send func([]byte)) {
	if m.Params.URI == Refused {
		send(response(m.ID, "error", []byte(`{"code":-32002,"message":"no such resource"}`)))
		return
	}
	n, sign := 1, "+"
	if m.Method == "resources/unsubscribe" {
		n, sign = -1, "-"
	}
	p.mu.Lock()
	p.subscribed[m.Params.URI] += n
	p.history = append(p.history, sign+m.Params.URI)
	p.mu.Unlock()
	send(response(m.ID, "result", []byte(`{}`)))
}

// answer answers a request that is about one prompt or resource.
func (p *peer) answer(m message, gone <-chan struct{}, send func([]byte)) {
	var params struct{ Answer, Error json.RawMessage }
	_ = json.Unmarshal(m.params, &params)
	switch m.Params.Name + m.Params.URI {
	case "begin":
		send(m.progress(`"progress":0`))
		fallthrough
	case "hang":
		p.sleep(m, time.Hour, gone)
		return
	case "die":
		p.die()
		return
	case "ask":
		if result := p.ask(m, gone, send); result != nil {
			send(response(m.ID, "result", result))
		}
		return
	case "progress":
		for i := range 2 {
			send(m.progress(`"progress":%d,"x":1.50`, i+1))
		}
	case "log":
		send([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":1.50}}}`))
	}
	scripted := p.script.Results[m.Params.URI]
	switch {
	case bytes.HasPrefix(scripted, []byte(`{"code":`)):
		send(response(m.ID, "error", scripted))
	case scripted != nil:
		send(response(m.ID, "result", scripted))
	case params.Error != nil:
		send(response(m.ID, "error", params.Error))
	case params.Answer != nil:
		send(response(m.ID, "result", params.Answer))
	default:
		send(response(m.ID, "result", fmt.Appendf(nil, `{"method":%q,"params":%s}`, m.Method, m.params)))
	}
}

// featureTool does what the tools do that have to do with features, and returns nil where it is none of them.
func (p *peer) featureTool(m message, send func([]byte)) []byte {
	var args struct {
		Notes []string          `json:"notes"`
		List  string            `json:"list"`
		Items []json.RawMessage `json:"items"`
		URI   string            `json:"uri"`
		Times int               `json:"times"`
	}
	raw, _ := json.Marshal(m.Params.Arguments)
	_ = json.Unmarshal(raw, &args)
	switch m.Params.Name {
	case "say", "shout":
		if m.Params.Name == "shout" {
			send = p.toListeners
		}
		for range max(args.Times, 1) {
			for _, note := range args.Notes {
				send(fill(note, m))
			}
		}
	case "offer":
		p.mu.Lock()
		p.lists[args.List] = args.Items
		p.mu.Unlock()
		kind := strings.Replace(args.List, "resourceTemplates", "resources", 1)
		p.announce("notifications/"+kind+"/list_changed", "")
	case "update":
		p.announce("notifications/resources/updated", args.URI)
	case "finish":
		p.finishTask(text(m.Params.Arguments["task"]), m.Params.Arguments["result"])
	default:
		return nil
	}
	return []byte(okResult)
}

// page is one page of a list. Its cursor is the number of elements before it.
func (p *peer) page(list, cursor string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.lists[list]
	from, _ := strconv.Atoi(cursor)
	from = min(from, len(all))
	to, next := len(all), ""
	if n := p.script.PageSize; n > 0 && from+n < to {
		to = from + n
		next = strconv.Itoa(to)
	}
	switch {
	case p.script.Has(RepeatedCursor):
		next = "0"
	case p.script.Has(EndlessCursor):
		p.next++
		next = strconv.Itoa(1_000_000 + p.next)
	}
	b := fmt.Appendf(nil, `{%q:%s`, list, array(all[from:to]))
	if next != "" {
		b = fmt.Appendf(b, `,"nextCursor":%q`, next)
	}
	if p.script.Modern {
		b = append(b, `,"resultType":"complete"`...)
	}
	if hints := p.script.Hints[list]; hints != nil {
		b = append(b, hints[min(from/max(p.script.PageSize, 1), len(hints)-1)]...)
	} else if p.script.Modern {
		b = append(b, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return append(b, '}')
}
