package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// everyCapability is what a client says of itself that can be asked for anything.
const everyCapability = `{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`

// able is w, before it is opened, as a client that can be asked for anything.
func (w *wire) able() *wire {
	w.can = everyCapability
	return w
}

// asked is one question as it came to a client.
type asked struct{ method, params string }

// exchange is a call of a client that answers what it is asked on the way, and what went over its wire meanwhile.
type exchange struct {
	w      *wire
	meta   string                            // members of _meta
	groups []int                             // how many questions a client with sessions waits for before it answers any; then one
	answer func(number int, of asked) string // the result for the nth question, counted from 0
	before func(retry rawRequest) bool       // sees each request that is to bring answers, and reports whether it is sent; nil: all are

	asked   []asked
	answers []string // by question
	lines   []string // what went to the hub and came from it
	notes   []string // the notifications that came, and "?" where a question did
	ids     int
}

func (x *exchange) note(sign, text string) { x.lines = append(x.lines, sign+" "+text) }

// request is the next request for the tool; more are members of its params.
func (x *exchange) request(name, args, more string) rawRequest {
	name, args = x.w.through(name, args)
	x.ids++
	return rawRequest{id: fmt.Sprintf(`"c%d"`, x.ids), method: "tools/call", name: name,
		params: x.w.params(join(`"name":`+quoted(name), `"arguments":`+args, more), x.meta)}
}

// call calls a tool, answers all questions, and returns the response.
func (x *exchange) call(name, args string) string {
	x.w.t.Helper()
	r := x.request(name, args, "")
	if !x.w.modern() {
		return x.inSession(r)
	}
	for {
		response := x.round(r)
		result, ok := memberOf(x.w.t, response, "result")
		if kind, _ := memberOf(x.w.t, orEmpty(result), "resultType"); !ok || kind != `"input_required"` {
			return response
		}
		r = x.request(name, args, x.input(result))
		if x.before != nil && !x.before(r) {
			return response
		}
	}
}

func orEmpty(object string) string {
	if object == "" {
		return "{}"
	}
	return object
}

// round does one request of a client of 2026-07-28 and returns the response.
func (x *exchange) round(r rawRequest) string {
	x.w.t.Helper()
	x.note(">", r.text())
	messages := x.w.send(r)
	for _, m := range messages {
		x.note("<", m)
	}
	x.notes = append(x.notes, messages[:len(messages)-1]...)
	return messages[len(messages)-1]
}

// input are the members that the next request brings: an answer to each question of result, and its state.
func (x *exchange) input(result string) string {
	x.w.t.Helper()
	responses, state := "", ""
	if requests, ok := memberOf(x.w.t, result, "inputRequests"); ok {
		var all []string
		for _, m := range membersOf(x.w.t, requests) {
			q := asked{}
			mustDecode(x.w.t, first(memberOf(x.w.t, requests[m.valueAt:m.end], "method")), &q.method)
			q.params, _ = memberOf(x.w.t, requests[m.valueAt:m.end], "params")
			key := strings.TrimRight(requests[m.at:m.valueAt], " \t:") // as it is written
			all = append(all, key+":"+x.take(q))
		}
		responses = `"inputResponses":{` + strings.Join(all, ",") + "}"
	}
	if sealed, ok := memberOf(x.w.t, result, "requestState"); ok {
		state = `"requestState":` + sealed
	}
	return join(responses, state)
}

func first(text string, _ bool) string { return text }

// take notes a question and returns the answer.
func (x *exchange) take(q asked) string {
	answer := x.answer(len(x.asked), q)
	x.asked, x.answers, x.notes = append(x.asked, q), append(x.answers, answer), append(x.notes, "?")
	return answer
}

// inSession is the whole request of a client with a session.
func (x *exchange) inSession(r rawRequest) string {
	x.w.t.Helper()
	x.note(">", r.text())
	next, end := x.w.begin(r)
	defer end()
	var open []string // the answers that are held back
	for groups := x.groups; ; {
		m := next()
		method, isRequest := memberOf(x.w.t, m, "method")
		if strings.HasSuffix(method, `list_changed"`) {
			continue
		}
		x.note("<", m)
		id, hasID := memberOf(x.w.t, m, "id")
		switch {
		case !isRequest:
			return m
		case !hasID:
			x.notes = append(x.notes, m)
			continue
		}
		q := asked{}
		mustDecode(x.w.t, method, &q.method)
		q.params, _ = memberOf(x.w.t, m, "params")
		open = append(open, `{"jsonrpc":"2.0","id":`+id+`,"result":`+x.take(q)+`}`)
		if len(groups) > 0 && len(open) < groups[0] {
			continue
		}
		for i := len(open) - 1; i >= 0; i-- {
			x.note(">", open[i])
			x.w.respond(open[i])
		}
		if open = nil; len(groups) > 0 {
			groups = groups[1:]
		}
	}
}

// begin sends r. next are the messages that follow, one by one.
func (w *wire) begin(r rawRequest) (next func() string, end func()) {
	w.t.Helper()
	if w.stdin != nil {
		w.write(r.text())
		return w.next, func() {}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	resp, err := http.DefaultClient.Do(w.newRequest(r).WithContext(ctx))
	if err != nil {
		cancel()
		w.t.Fatalf("post %.200s: %v", r.text(), err)
	}
	body, streamed := bufio.NewReader(resp.Body), strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	end = func() {
		_ = resp.Body.Close()
		cancel()
	}
	return func() string {
		if !streamed {
			text, err := io.ReadAll(body)
			if err != nil || len(text) == 0 {
				w.t.Fatalf("HTTP %s: %q, %v", resp.Status, text, err)
			}
			return string(text)
		}
		for event := ""; ; {
			line, err := body.ReadString('\n')
			if err != nil {
				w.t.Fatalf("the stream of %.200s ended: %v", r.text(), err)
			}
			if event += line; line != "\n" {
				continue
			}
			if text := eventData(event); text != "" {
				return text
			}
			event = ""
		}
	}, end
}

// respond sends a response of the client.
func (w *wire) respond(text string) {
	w.t.Helper()
	if w.stdin != nil {
		w.write(text)
		return
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url, strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w.setHeaders(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatalf("answer %.200s: %v", text, err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusAccepted || len(body) > 0 {
		w.t.Errorf("an answer was answered with %s %s", resp.Status, body)
	}
}
