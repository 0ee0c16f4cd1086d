// Package suspended holds the calls that wait for their client's next request, on protocol
// 2026-07-28. Each has a sealed requestState at its client. The retry that brings that back takes
// the call out of the table, once.
package suspended

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

// purpose is the purpose that requestState is sealed for. Its number changes when an older State can be misread.
const purpose = "toolhub/requestState/2"

// MaxOfCaller bounds the suspended calls of one caller. A call whose server waits keeps its place
// there: so half of the 100 places that a server has by default stay free.
const MaxOfCaller = 50

// maxCalls bounds the suspended calls of the hub.
const maxCalls = 1000

// State is the content of a requestState: the request that it continues, its caller, and its end. The server's own
// requestState, where it gave one, follows it in the sealed text.
type State struct {
	ID      string `json:"ticket"` // of the suspended call; good for one retry
	Caller  string `json:"caller"` // key of the session
	Profile string `json:"profile"`
	Server  string `json:"server"`
	Method  string `json:"method"`
	// canonical name of the tool; the server's own name of the prompt, or URI of the resource
	Name      string    `json:"name"`
	Arguments string    `json:"arguments"` // digest
	Expires   time.Time `json:"expires"`
}

// Call is one suspended call. Whoever takes it out of the table calls exactly one of Resume and End.
type Call[Retry any] struct {
	// serverState is nil where the server gave none
	Resume func(ctx context.Context, retry Retry, serverState json.RawMessage)
	End    func(why *tool.Failure) // returns when the call has ended
	Done   <-chan struct{}         // closed when the call has ended without its client; nil where it cannot

	state State
	timer *time.Timer
}

// Table holds the suspended calls of the hub. It is safe for concurrent use.
type Table[Retry any] struct {
	box *seal.Box

	mu     sync.Mutex
	closed *tool.Failure // why no more are taken in
	calls  map[string]*Call[Retry]
	count  map[string]int // by caller
	ending sync.WaitGroup // calls that End was called for
}

// New returns an empty table. key seals requestState, as seal.New has it.
func New[Retry any](key []byte) (*Table[Retry], error) {
	box, err := seal.New(key, purpose)
	if err != nil {
		return nil, err
	}
	return &Table[Retry]{box: box, calls: make(map[string]*Call[Retry]), count: make(map[string]int)}, nil
}

// Len returns the number of suspended calls.
func (t *Table[Retry]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// Add suspends a call until within has passed, and returns its requestState. After a failure the
// call is the caller's to end. A client that has gone, so that ctx is done, gets no requestState:
// it cannot come back with one.
func (t *Table[Retry]) Add(ctx context.Context, s State, within time.Duration, serverState json.RawMessage,
	c *Call[Retry]) (
	requestState string, failure *tool.Failure,
) {
	s.ID, s.Expires = rand.Text(), time.Now().Add(within)
	text, err := json.Marshal(s)
	if err != nil {
		return "", &tool.Failure{Class: tool.ClassExecutionFailed, Cause: err,
			Message: "the hub cannot keep the call waiting"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed != nil:
		return "", t.closed
	case len(t.calls) >= maxCalls || t.count[s.Caller] >= MaxOfCaller:
		return "", &tool.Failure{Class: tool.ClassRateLimited,
			Message: fmt.Sprintf("the server asks for input, and too many requests "+
				"wait for some already (%d of one caller, %d in all): answer those, or wait until they expire, "+
				"then try again",
				MaxOfCaller, maxCalls)}
	case ctx.Err() != nil:
		return "", &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled"}
	}
	c.state = s
	t.calls[s.ID] = c
	t.count[s.Caller]++
	c.timer = time.AfterFunc(within, func() {
		t.End(s.ID, &tool.Failure{Class: tool.ClassTimeout, Code: "input_expired",
			Message: "the server asked for input, and none came in time: call again from the start"})
	})
	return t.box.Seal(append(append(text, '\n'), serverState...)), nil
}

// take removes a call from the table; nil where it is not there, or no longer. t.mu is held.
func (t *Table[Retry]) take(id string) *Call[Retry] {
	c := t.calls[id]
	if c == nil {
		return nil
	}
	delete(t.calls, id)
	caller := c.state.Caller
	if t.count[caller]--; t.count[caller] == 0 {
		delete(t.count, caller)
	}
	c.timer.Stop()
	return c
}

// End ends the call with this id, if it is suspended.
func (t *Table[Retry]) End(id string, why *tool.Failure) {
	t.mu.Lock()
	c := t.take(id)
	if c == nil {
		t.mu.Unlock()
		return
	}
	t.ending.Add(1)
	t.mu.Unlock()
	defer t.ending.Done()
	c.End(why)
}

// EndWhere ends the suspended calls of the callers that match, and returns when they have ended.
func (t *Table[Retry]) EndWhere(match func(caller string) bool, why *tool.Failure) {
	var ending sync.WaitGroup
	t.mu.Lock()
	for id, c := range t.calls {
		if match(c.state.Caller) {
			t.take(id)
			ending.Go(func() { c.End(why) })
		}
	}
	t.mu.Unlock()
	ending.Wait()
}

// Close ends every suspended call, and returns when they have ended. Add fails from now on.
func (t *Table[Retry]) Close(why *tool.Failure) {
	t.mu.Lock()
	t.closed = why
	t.mu.Unlock()
	t.EndWhere(func(string) bool { return true }, why)
	t.ending.Wait()
}

// Take removes the call that a requestState continues, if want is what that was given for.
func (t *Table[Retry]) Take(requestState string, want State) (c *Call[Retry], serverState json.RawMessage,
	refusal *tool.RPCError) {
	s, serverState, refusal := t.Read(requestState)
	if refusal != nil {
		return nil, nil, refusal
	}
	want.ID, want.Expires = s.ID, s.Expires
	if s != want {
		return nil, nil,
			Refused("belongs to another request: caller, profile, method, name or URI, and arguments must be those " +
				"of the first one")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c = t.take(s.ID); c == nil {
		return nil, nil, Refused("was used before, or what it continues has ended")
	}
	if len(serverState) == 0 {
		serverState = nil
	}
	return c, serverState, nil
}

// TakeDone removes a call like want that has ended without its client, which makes it anew; nil where there is none. A
// person has answered elsewhere: some clients drop a result of type input_required.
func (t *Table[Retry]) TakeDone(want State) *Call[Retry] {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, c := range t.calls {
		want.ID, want.Expires = c.state.ID, c.state.Expires
		if c.state != want {
			continue
		}
		select {
		case <-c.Done:
			return t.take(id)
		default:
		}
	}
	return nil
}

// Read opens a requestState, and returns the server's own behind it.
func (t *Table[Retry]) Read(requestState string) (s State, serverState json.RawMessage, refusal *tool.RPCError) {
	plain, err := t.box.Open(requestState)
	if err != nil {
		return s, nil, Refused("is none of this hub, or was changed")
	}
	head, serverState, _ := bytes.Cut(plain, []byte("\n"))
	if err := json.Unmarshal(head, &s); err != nil {
		return s, nil, Refused("is none of this hub")
	}
	if time.Now().After(s.Expires) {
		return s, nil, Refused("has expired")
	}
	return s, serverState, nil
}

// Refused is the error for a requestState that continues nothing.
func Refused(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidParams, Message: "invalid params: requestState " + what +
		". Send the request again from the start, without requestState and inputResponses"}
}

// ArgumentsDigest returns the same digest for arguments that mean the same: a retry may write them differently.
func ArgumentsDigest(arguments json.RawMessage) string {
	if rawjson.IsNull(arguments) {
		arguments = json.RawMessage(`{}`)
	}
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) == nil {
		if text, err := json.Marshal(value); err == nil { // with the members of objects in order
			arguments = text
		}
	}
	return tool.Digest(arguments)
}
