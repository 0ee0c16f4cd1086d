package downstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// statePurpose is what requestState is sealed for. Its number changes with what a claim says.
const statePurpose = "toolhub/requestState/2"

// claim is what a requestState of the hub says: which request it continues, for whom, and until when. The server's own
// requestState, where it gave one, travels behind it.
type claim struct {
	Ticket    string    `json:"ticket"` // unlike any other; good for one request
	Kind      string    `json:"kind"`
	Caller    string    `json:"caller"` // key of the session
	Profile   string    `json:"profile"`
	Server    string    `json:"server"`
	Method    string    `json:"method"`
	Name      string    `json:"name"`      // of the tool, canonical; of the prompt, or URI of the resource, as the server knows it
	Arguments string    `json:"arguments"` // digest
	Expires   time.Time `json:"expires"`
}

// The kinds of claims.
const (
	kindPaused = "paused" // the server begins again with the next request (2026-07-28)
	kindParked = "parked" // the server's call goes on, and waits for an answer (older revisions)
)

// rounds are the calls that wait for their client's next request. Each is here once, under its ticket, until that request,
// the end of its time or the end of the hub takes it out: whoever has taken it out is the only one to go on with it.
type rounds struct {
	box *seal.Box

	mu      sync.Mutex
	closed  *tool.Failure // why no more are taken in
	waiting map[string]*round
	callers map[string]int
	ending  sync.WaitGroup // rounds whose time is over
}

// round is one waiting call.
type round struct {
	caller string
	timer  *time.Timer

	resume func(ctx context.Context, t *turn, state json.RawMessage) // serves the next request; state is the server's own
	end    func(why *tool.Failure)                                   // instead of resume; returns when the call has ended
}

// maxRounds bounds the waiting calls of the hub, and maxRoundsOfCaller those of one caller: a parked call keeps its place at
// its server, and these leave half of the 100 that a server has by default.
const (
	maxRounds         = 1000
	maxRoundsOfCaller = 50
)

func newRounds(box *seal.Box) *rounds {
	return &rounds{box: box, waiting: make(map[string]*round), callers: make(map[string]int)}
}

func (t *rounds) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// add takes a call in for so long, and returns its ticket and the requestState that takes it out again.
func (t *rounds) add(c claim, within time.Duration, state json.RawMessage, r *round) (ticket, sealed string, failure *tool.Failure) {
	c.Ticket, c.Expires = rand.Text(), time.Now().Add(within)
	text, err := json.Marshal(c)
	if err != nil {
		return "", "", &tool.Failure{Class: tool.ClassExecutionFailed, Cause: err, Message: "the hub cannot keep the call waiting"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed != nil:
		return "", "", t.closed
	case len(t.waiting) >= maxRounds || t.callers[c.Caller] >= maxRoundsOfCaller:
		return "", "", &tool.Failure{Class: tool.ClassRateLimited, Message: fmt.Sprintf("the server asks for input, and too many requests "+
			"wait for some already (%d of one caller, %d in all): answer those, or wait until they expire, then try again",
			maxRoundsOfCaller, maxRounds)}
	}
	r.caller = c.Caller
	t.waiting[c.Ticket] = r
	t.callers[r.caller]++
	r.timer = time.AfterFunc(within, func() { t.expire(c.Ticket) })
	return c.Ticket, t.box.Seal(append(append(text, '\n'), state...)), nil
}

// take takes a call out. ok is false where it is not, or no longer, waiting.
func (t *rounds) take(ticket string) (r *round, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takeLocked(ticket)
}

func (t *rounds) takeLocked(ticket string) (r *round, ok bool) {
	r, ok = t.waiting[ticket]
	if !ok {
		return nil, false
	}
	delete(t.waiting, ticket)
	if t.callers[r.caller]--; t.callers[r.caller] == 0 {
		delete(t.callers, r.caller)
	}
	r.timer.Stop()
	return r, true
}

func (t *rounds) expire(ticket string) {
	t.end(ticket, &tool.Failure{Class: tool.ClassTimeout, Code: "input_expired",
		Message: "the server asked for input, and none came in time: call again from the start"})
}

// end ends the call with a ticket, if it is waiting.
func (t *rounds) end(ticket string, why *tool.Failure) {
	t.mu.Lock()
	r, ok := t.takeLocked(ticket)
	if ok {
		t.ending.Add(1)
	}
	t.mu.Unlock()
	if ok {
		defer t.ending.Done()
		r.end(why)
	}
}

// endWhere ends the waiting calls of the callers that match, and returns when they have ended.
func (t *rounds) endWhere(match func(caller string) bool, why *tool.Failure) {
	t.mu.Lock()
	var all []*round
	for ticket, r := range t.waiting {
		if match(r.caller) {
			t.takeLocked(ticket)
			all = append(all, r)
		}
	}
	t.mu.Unlock()
	var ending sync.WaitGroup
	for _, r := range all {
		ending.Go(func() { r.end(why) })
	}
	ending.Wait()
}

// close ends every waiting call; no other is taken in from now on.
func (t *rounds) close(why *tool.Failure) {
	t.mu.Lock()
	t.closed = why
	t.mu.Unlock()
	t.endWhere(func(string) bool { return true }, why)
	t.ending.Wait()
}

// redeem takes out the call that a requestState continues, if want is what it was given for. The state is the server's
// own, or nil.
func (t *rounds) redeem(text string, want claim) (r *round, state json.RawMessage, refusal *tool.RPCError) {
	c, state, refusal := t.read(text)
	if refusal != nil {
		return nil, nil, refusal
	}
	want.Ticket, want.Kind, want.Expires = c.Ticket, c.Kind, c.Expires
	if c != want {
		return nil, nil, stateRefused("belongs to another request: caller, profile, method, name or URI, and arguments must be those of the first one")
	}
	if r, ok := t.take(c.Ticket); ok {
		if len(state) == 0 {
			state = nil
		}
		return r, state, nil
	}
	return nil, nil, stateRefused("was used before, or what it continues has ended")
}

// read reads what a requestState of the hub says, and the server's own state behind it.
func (t *rounds) read(text string) (c claim, state json.RawMessage, refusal *tool.RPCError) {
	plain, err := t.box.Open(text)
	if err != nil {
		return c, nil, stateRefused("is none of this hub, or was changed")
	}
	head, state, _ := bytes.Cut(plain, []byte("\n"))
	if err := json.Unmarshal(head, &c); err != nil {
		return c, nil, stateRefused("is none of this hub")
	}
	if time.Now().After(c.Expires) {
		return c, nil, stateRefused("has expired")
	}
	return c, state, nil
}

func stateRefused(what string) *tool.RPCError {
	return invalidParams("requestState " + what + ". Send the request again from the start, without requestState and inputResponses")
}

// argumentsDigest tells arguments apart by what they say: a client may write the same ones differently the next time.
func argumentsDigest(arguments json.RawMessage) string {
	if rawjson.IsNull(arguments) {
		arguments = json.RawMessage(`{}`)
	}
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return tool.Digest(arguments)
	}
	text, err := json.Marshal(value) // with the members of objects in order
	if err != nil {
		return tool.Digest(arguments)
	}
	return tool.Digest(text)
}

// endRounds ends the waiting calls of a session that is over, and waits for them as long as a stop waits for calls.
func (s *Server) endRounds(caller string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.rounds.endWhere(func(c string) bool { return c == caller }, &tool.Failure{Class: tool.ClassCanceled,
			Message: "the client has gone"})
	}()
	select {
	case <-ended:
	case <-time.After(s.cfg().HTTP.DrainTimeout):
	}
}
