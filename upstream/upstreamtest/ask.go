package upstreamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// asking holds what a fake server asks of its client.
type asking struct {
	mu       sync.Mutex
	number   int
	answers  map[string]json.RawMessage // responses of the client, by id
	order    []string                   // of their arrival
	arrived  chan struct{}              // closed and replaced at each
	received map[string][]json.RawMessage
	standing map[string]func([]byte) // listening streams of Streamable HTTP, by session
}

func newAsking() asking {
	return asking{answers: map[string]json.RawMessage{}, arrived: make(chan struct{}),
		received: map[string][]json.RawMessage{},
		standing: map[string]func([]byte){}}
}

// answered notes a response.
func (a *asking) answered(m message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(m.ID)
	a.answers[id] = m.raw
	a.order = append(a.order, id)
	close(a.arrived)
	a.arrived = make(chan struct{})
}

// until waits until done, which is called under the lock, is true. It returns false if stop or gone was closed before.
func (a *asking) until(done func() bool, stop, gone <-chan struct{}) bool {
	for {
		a.mu.Lock()
		ok, arrived := done(), a.arrived
		a.mu.Unlock()
		if ok || !comes(arrived, stop, gone) {
			return ok
		}
	}
}

// holding waits until the responses so far hold text, and returns them all. It returns nil if stop
// or gone was closed before.
func (a *asking) holding(text string, stop, gone <-chan struct{}) (list []byte) {
	holds := func() bool { list = a.list(a.order); return bytes.Contains(list, []byte(text)) }
	if !a.until(holds, stop, gone) {
		return nil
	}
	return list
}

// nextID returns an id for a question.
func (a *asking) nextID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.number++
	return strconv.Itoa(a.number)
}

// list is the responses to ids, as a JSON array. a.mu is held.
func (a *asking) list(ids []string) []byte {
	var all []json.RawMessage
	for _, id := range ids {
		all = append(all, a.answers[id])
	}
	return array(all)
}

// await waits for the responses to ids. It returns nil if stop or gone was closed before.
func (a *asking) await(ids []string, stop, gone <-chan struct{}) (list []byte) {
	a.until(func() bool {
		if slices.ContainsFunc(ids, func(id string) bool { return a.answers[id] == nil }) {
			return false
		}
		list = a.list(ids)
		return true
	}, stop, gone)
	return list
}

// listens notes, or forgets, the listening stream of a session.
func (a *asking) listens(session string, send func([]byte)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.standing[session] = send
	close(a.arrived)
	a.arrived = make(chan struct{})
}

// listening returns the listening stream of a session, once there is one, or nil when gone is closed.
func (a *asking) listening(session string, gone <-chan struct{}) (send func([]byte)) {
	a.until(func() bool { send = a.standing[session]; return send != nil }, nil, gone)
	return send
}

// ask answers a call of the tool of that name. It returns nil if there is nothing to answer any more.
func (p *peer) ask(m message, gone <-chan struct{}, send func([]byte)) []byte {
	var questions []struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(m.Params.Arguments["questions"], &questions) != nil {
		return []byte(okResult)
	}
	put := send
	if string(m.Params.Arguments["standing"]) == "true" {
		if put = p.asking.listening(m.session, gone); put == nil {
			return nil
		}
	}
	canceled := p.cancelable(m)
	var ids []string
	for _, q := range questions {
		id := string(q.ID)
		if id == "" {
			id = p.asking.nextID()
		}
		ids = append(ids, id)
		line := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"id":%s`, q.Method, id)
		if q.Params != nil {
			line = append(append(line, `,"params":`...), q.Params...)
		}
		put(append(line, '}'))
		if string(m.Params.Arguments["in_turn"]) == "true" && p.asking.await(ids, canceled, gone) == nil {
			return nil
		}
	}
	if string(m.Params.Arguments["leave"]) == "true" {
		return []byte(okResult)
	}
	list := p.asking.await(ids, canceled, gone)
	if list == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"content":[],"structuredContent":{"answers":%s}}`, list)
}

// round answers a call of the tool rounds.
func (p *peer) round(m message) []byte {
	var results []json.RawMessage
	_ = json.Unmarshal(m.Params.Arguments["results"], &results)
	key := string(m.Params.Arguments["key"])
	a := &p.asking
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.received[key])
	a.received[key] = append(a.received[key], m.params)
	if n < len(results) {
		return results[n]
	}
	return fmt.Appendf(nil, `{"resultType":"complete","content":[],"structuredContent":{"received":%s}}`,
		array(a.received[key]))
}

// converse answers a call of the tool converse: what it says and asks comes in a fixed order, and all of it repeats the
// text that the call brought.
func (p *peer) converse(m message, gone <-chan struct{}, send func([]byte)) []byte {
	text := m.Params.Arguments["text"]
	say := func(step int) {
		send(m.progress(`"progress":%d,"message":%s`, step, text))
		send(fmt.Appendf(nil,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"step":%d`+
				`,"text":%s}}}`,
			step, text))
	}
	elicitation := fmt.Appendf(nil, `{"message":%s,"requestedSchema":{"type":"object","properties":{}}}`, text)
	sample := fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"maxTokens":1}`, text)
	if p.script.Modern {
		return converseInRounds(m, say, elicitation, sample)
	}
	canceled := p.cancelable(m)
	var ids []string
	for i, q := range []struct {
		method string
		params []byte
	}{{"elicitation/create", elicitation}, {"sampling/createMessage", sample}} {
		say(i + 1)
		id := p.asking.nextID()
		ids = append(ids, id)
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"id":%s,"params":%s}`, q.method, id, q.params))
		if p.asking.await(ids, canceled, gone) == nil {
			return nil
		}
	}
	say(3)
	return fmt.Appendf(nil, `{"content":[],"structuredContent":{"text":%s,"answers":%s}}`, text,
		p.asking.await(ids, canceled, gone))
}

// converseInRounds does the same as a server of 2026-07-28 does.
func converseInRounds(m message, say func(step int), elicitation, sample []byte) []byte {
	var params struct {
		InputResponses json.RawMessage `json:"inputResponses"`
		RequestState   string          `json:"requestState"`
	}
	_ = json.Unmarshal(m.params, &params)
	before, step, ok := strings.Cut(params.RequestState, "|")
	switch {
	case !ok:
		say(1)
		return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"same":{"method":"elicitation/create"`+
			`,"params":%s}},`+
			`"requestState":"|2"}`, elicitation)
	case step == "2":
		say(2)
		state, _ := json.Marshal(string(params.InputResponses) + "|3")
		return fmt.Appendf(nil,
			`{"resultType":"input_required","inputRequests":{"same":{"method":"sampling/createMessage"`+
				`,"params":%s}},`+
				`"requestState":%s}`, sample, state)
	}
	say(3)
	return fmt.Appendf(nil, `{"resultType":"complete","content":[],"structuredContent":{"text":%s,"answers":[%s,%s]}}`,
		m.Params.Arguments["text"], before, params.InputResponses)
}
