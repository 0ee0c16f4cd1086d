//go:build e2e

package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// cancelPhase is a phase in which a call is cancelled. C and R in want stand for who cancels, and for the reason, as the door of the
// client makes it.
type cancelPhase struct {
	name  string
	none  func(c *cancelCell) string // why there is no such cell; "" where there is one. Nil: there is one everywhere
	tool  string
	args  string
	reach func(c *cancelCell) // brings the call into the phase, and waits for the event that says so
	want  canceled
	told  int               // how many calls at the server hear of it
	after func(*cancelCell) // nil: nothing
}

const (
	asksOnce = `{"questions":[{"method":"elicitation/create","params":{"message":"which?","requestedSchema":{"type":"object","properties":{}}}}]}`
	waitsFor = `{"key":"k$N","results":[{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create",` +
		`"params":{"mode":"form","message":"which?","requestedSchema":{"type":"object","properties":{}}}}}}]}`
	suspendedThere = "on 2026-07-28 the question is the answer to the client's request: no request is open that could be cancelled"
)

// cancelPhases is the table: every phase of a call that can be cancelled in it, for each server.
func cancelPhases() []cancelPhase {
	oldClient := func(c *cancelCell) string {
		if c.w.modern() {
			return suspendedThere
		}
		return ""
	}
	before := canceled{"canceled", "C", "R", "not_begun"}
	return []cancelPhase{
		{name: "a pre hook runs", tool: "pre", reach: (*cancelCell).intoHook, want: before, after: (*cancelCell).hookIsGone},
		{name: "the person behind the client is asked", tool: "asked", none: oldClient, want: before,
			reach: func(c *cancelCell) { c.until(c.open(), `"method":"elicitation/create"`) }},
		{name: "it waits in the approval queue", tool: "asked", want: before, reach: (*cancelCell).intoQueue, after: (*cancelCell).noApprovals},
		{name: "it waits for a lock", tool: "plain", want: before, reach: (*cancelCell).behindLock, after: (*cancelCell).freeLock, told: 1},
		{name: "it runs, and its server says no more", tool: "hang", args: `{"begin":true}`, told: 1, reach: (*cancelCell).begins,
			want: canceled{"canceled", "C", "R", "unknown"}},
		{name: "it runs, and its server finishes it", tool: "hang", args: `{"begin":true,"then":"finish"}`, told: 1, reach: (*cancelCell).begins,
			want: canceled{"canceled", "C", "R", "ended_anyway"}},
		{name: "it runs, and its server stops it", tool: "hang", args: `{"begin":true,"then":"fail"}`, told: 1, reach: (*cancelCell).begins,
			want: canceled{"canceled", "C", "R", "unknown"}},
		{name: "its server asks the client", tool: "ask", args: asksOnce, told: 1, want: canceled{"canceled", "C", "R", "unknown"},
			none: func(c *cancelCell) string {
				if strings.HasSuffix(c.server, "2026") {
					return "a server of 2026-07-28 asks by its answer: see the next phase"
				}
				why := oldClient(c)
				if why == "" && !strings.HasPrefix(c.server, "http") {
					c.server += "own"
				}
				return why
			},
			reach: func(c *cancelCell) { c.until(c.open(), `"method":"elicitation/create"`) }},
		{name: "its server waits for input", tool: "rounds", args: waitsFor, want: canceled{"canceled", "C", "R", "unknown"},
			none: func(c *cancelCell) string {
				if !strings.HasSuffix(c.server, "2026") {
					return "resultType input_required is of 2026-07-28"
				}
				return oldClient(c)
			},
			reach: func(c *cancelCell) { c.until(c.open(), `"method":"elicitation/create"`) }},
		{name: "a post hook runs", tool: "post", reach: (*cancelCell).intoHook, after: (*cancelCell).releaseHook,
			want: canceled{"succeeded", "C", "R", "ended_anyway"}},
		{name: "a batch runs", tool: "tool_batch", args: `{"ordering_policy":"serial","calls":[{"id":"runs","name":"mcp.$S.hang","arguments":` +
			`{"begin":true,"then":"finish"}},{"id":"waits","name":"mcp.$S.plain"}]}`, told: 1, reach: (*cancelCell).begins, after: (*cancelCell).membersEnded,
			want: canceled{"canceled", "C", "R", "unknown"}},
		{name: "its server starts again", tool: "plain", want: before, reach: (*cancelCell).intoRestart, after: (*cancelCell).endRestart,
			none: func(c *cancelCell) string {
				if c.server == "http2026" {
					return "2026-07-28 over HTTP has neither a session nor a process that starts again"
				}
				return ""
			}},
	}
}

// cancelKinds are the kinds of servers: transports and generations. HTTP+SSE is of 2024-11-05.
func cancelKinds() []string { return []string{"stdio2025", "stdio2026", "http2025", "http2026", "sse"} }

// TestCancelInEveryPhase cancels calls in every phase, for both generations of clients over both transports, at servers of both
// generations over all transports. Each call has one terminal record that says who cancelled and how the call ended, its server hears of it exactly where the call
// ran there, and nothing of it is left: the next call to the server, which must have it alone, runs.
func TestCancelInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		for _, door := range []string{"stdio", "http"} {
			t.Run(version+" "+door, func(t *testing.T) {
				t.Parallel()
				h := startCancelHub(t, version, door)
				for _, server := range cancelKinds() {
					for _, phase := range cancelPhases() {
						h.test(&cancelCell{cancelHub: h, server: server, phase: phase, t: t})
					}
				}
				h.nothingRuns()
				h.losesStream()
				h.losesSibling()
				h.leaves()
			})
		}
	}
}

// cancelCell is one cell of the table, while it is tested.
type cancelCell struct {
	*cancelHub
	t       *testing.T
	server  string
	phase   cancelPhase
	request rawRequest
	end     func() // closes the stream of the request
	hook    *hookMoment
	lock    *cancelCell // the call that the cell's call waits for
	by      string      // who ends it, where that is not its client
}

// tool is the canonical name of the tool that is called.
func (c *cancelCell) tool() string {
	if c.phase.tool == "tool_batch" {
		return "tool_batch"
	}
	return "mcp." + c.server + "." + c.phase.tool
}

func (h *cancelHub) test(c *cancelCell) {
	h.t.Helper()
	if c.phase.none != nil {
		if why := c.phase.none(c); why != "" {
			h.t.Logf("%s, while %s: none, because %s", c.server, c.phase.name, why)
			return
		}
	}
	name := c.server + ", while " + c.phase.name
	seen := c.enter()
	h.cancel(c.request, c.end)
	if c.phase.tool == "post" { // it goes on
		c.takenIn()
		c.phase.after(c)
	}
	line := h.ended(c.tool(), seen)
	if got, want := line.facts(h.t), c.want(); !got.fits(want) {
		h.t.Errorf("%s: the record says %+v, want %+v", name, got, want)
	}
	if c.phase.after != nil && c.phase.tool != "post" {
		c.phase.after(c)
	}
	if !c.closes() {
		c.end()
	}
	h.heard(c.server, c.phase.told, name)
}

// takenIn waits until the hub has taken in the cancellation of a call that it does not end.
func (c *cancelCell) takenIn() {
	const probesOwn = 1
	reading := c.closes() // nothing reads a connection that has ended
	if c.w.stdin != nil {
		c.w.tools() // whose answer comes after that
	}
	eventually(c.t, "the hub has taken in the cancellation", func() bool {
		return (!reading || c.goroutines("net/http.(*connReader).backgroundRead") == probesOwn) && c.goroutines("(*runningCall).cancelWith") == 0
	})
}

// enter brings the call of the cell into its phase. seen is how much of the journal was there before.
func (c *cancelCell) enter() (seen int) {
	c.cancelHub.calls++
	c.look()
	seen = len(c.lines)
	args := strings.NewReplacer("$S", c.server, "$N", fmt.Sprint(c.cancelHub.calls)).Replace(c.phase.args)
	if args == "" {
		args = "{}"
	}
	c.request = c.w.call(c.tool(), args, fmt.Sprintf(`"progressToken":"token-%d"`, c.cancelHub.calls))
	c.phase.reach(c)
	return seen
}

// want returns what the record must say.
func (c *cancelCell) want() canceled {
	want := c.phase.want
	switch want.by, want.reason = c.by, ""; {
	case c.by != "":
	case c.closes():
		want.by = "closed_stream"
	default:
		want.by, want.reason = "client", "the user pressed escape"
	}
	if c.server == "http2026" && c.phase.tool == "hang" { // its stream is closed: nothing comes after that
		want.outcome = "unknown"
	}
	return want
}

// fits reports whether the record says what is wanted. A machine that is too busy for a server to answer in time is no fault.
func (got canceled) fits(want canceled) bool {
	late := want
	late.outcome = "unknown"
	return got == want || want.outcome == "ended_anyway" && got == late
}

// open sends the request, and returns the function for the messages that come back.
func (c *cancelCell) open() (next func() string) {
	next, c.end = c.w.begin(c.request)
	return next
}

// until takes messages up to the one that holds text.
func (c *cancelCell) until(next func() string, text string) string {
	for {
		m := next()
		if strings.Contains(m, text) {
			return m
		}
		if strings.HasPrefix(m, `{"jsonrpc":"2.0","id":`+c.request.id+`,`) {
			c.t.Fatalf("%s is answered with %s", c.tool(), m)
		}
	}
}

// progress waits for progress of the call.
func (c *cancelCell) progress(next func() string, message string) {
	token := fmt.Sprintf(`"progressToken":"token-%d"`, c.cancelHub.calls)
	for m := ""; !strings.Contains(m, token) || !strings.Contains(m, message); {
		m = next()
	}
}

// begins: the server says that it has begun.
func (c *cancelCell) begins() {
	message := ""
	if c.phase.tool == "tool_batch" {
		message = `"message":"runs: `
	}
	c.progress(c.open(), message)
}

// intoHook: a hook runs.
func (c *cancelCell) intoHook() {
	c.end = c.send(c.request)
	if c.hook = arrives(c.t, "a hook", c.hooks); c.hook.tool != "mcp__"+c.server+"__"+c.phase.tool {
		c.t.Fatalf("a hook runs for %s", c.hook.tool)
	}
}

func (c *cancelCell) hookIsGone() { arrives(c.t, "the end of the hook", c.hook.gone) }

func (c *cancelCell) releaseHook() { close(c.hook.release) }

// intoQueue: nobody at the client can be asked, and so the question waits in the queue.
func (c *cancelCell) intoQueue() {
	if c.w.modern() {
		can := c.w.can
		c.w.can = "{}"
		c.request = c.w.call(c.tool(), "{}", fmt.Sprintf(`"progressToken":"token-%d"`, c.cancelHub.calls))
		c.w.can = can
		c.progress(c.open(), "waiting_for_permission")
		return
	}
	next := c.open()
	id, _ := memberOf(c.t, c.until(next, `"method":"elicitation/create"`), "id")
	c.w.respond(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"there is nobody"}}`)
	c.progress(next, "waiting_for_permission")
	if c.approvals() == 0 {
		c.t.Error("no approval is open")
	}
}

func (c *cancelCell) noApprovals() {
	if open := c.approvals(); open != 0 {
		c.t.Errorf("%d approvals are open", open)
	}
}

// approvals counts the open questions.
func (h *cancelHub) approvals() int {
	h.t.Helper()
	var all []*control.Client
	eventually(h.t, "the hub is found", func() bool { // one that is slow to answer passes for dead
		all, _ = control.Find(h.t.Context(), h.state)
		return len(all) == 1
	})
	open, err := all[0].Approvals(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return len(open)
}

// behindLock: another call holds the lock.
func (c *cancelCell) behindLock() {
	c.lock = &cancelCell{cancelHub: c.cancelHub, server: c.server, t: c.t, phase: cancelPhase{tool: "hang",
		args: `{"begin":true,"then":"finish"}`, reach: (*cancelCell).begins}}
	c.lock.enter()
	c.cancelHub.calls++ // whose token the request has
	c.request = c.w.call(c.tool(), "{}", fmt.Sprintf(`"progressToken":"token-%d"`, c.cancelHub.calls))
	c.progress(c.open(), `"message":"queued: `)
}

// freeLock: the call that was cancelled has not touched the one that holds the lock.
func (c *cancelCell) freeLock() {
	seen := len(c.lines)
	c.cancel(c.lock.request, c.lock.end)
	c.ended(c.lock.tool(), seen)
	if !c.closes() {
		c.lock.end()
	}
}

// membersEnded: the call of the batch that ran has heard of it, and the other one has not run.
func (c *cancelCell) membersEnded() {
	for tool, want := range map[string]canceled{"hang": {"canceled", "C", "R", "ended_anyway"},
		"plain": {"canceled", "C", "R", "not_begun"}} {
		m := &cancelCell{cancelHub: c.cancelHub, server: c.server, t: c.t, phase: cancelPhase{tool: tool, want: want}}
		if got := c.last(m.tool()).facts(c.t); !got.fits(m.want()) {
			c.t.Errorf("%s: the call of %s in the batch says %+v, want %+v", c.server, tool, got, m.want())
		}
	}
}

// intoRestart: the server is gone, and its next start is held up.
func (c *cancelCell) intoRestart() {
	s := c.servers[c.server]
	if s.handler == nil {
		s.told = 0 // the next process knows nothing of it
		writeFile(c.t, s.file, "")
		c.w.send(c.w.call("mcp."+c.server+".die", "{}", ""))
	} else {
		s.mu.Lock()
		s.held = make(chan struct{})
		s.mu.Unlock()
		s.handler.Forget()
		if c.server == "sse" {
			s.handler.Cut()
			arrives(c.t, "the next start", s.arrived) // before the call, which would go to the stream that ends
		}
	}
	c.look()
	from := len(c.lines)
	c.end = c.send(c.request)
	if s.handler != nil && c.server != "sse" {
		arrives(c.t, "the next start", s.arrived)
	}
	eventually(c.t, "the call waits for its server", func() bool {
		c.look()
		for _, line := range c.lines[from:] {
			if line.Tool == c.tool() && line.Status == "running" {
				return true
			}
		}
		return false
	})
}

func (c *cancelCell) endRestart() {
	s := c.servers[c.server]
	if s.handler == nil {
		if err := os.Remove(s.file); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.held)
	s.held = nil
}

// losesStream: up to 2025-11-25 over HTTP, a stream that is closed cancels nothing. The record names the cancellation that comes later.
func (h *cancelHub) losesStream() {
	if h.w.modern() || h.w.stdin != nil {
		return
	}
	c := &cancelCell{cancelHub: h, server: "stdio2026", t: h.t, phase: cancelPhase{tool: "hang", args: `{"begin":true,"then":"finish"}`,
		reach: (*cancelCell).begins, want: canceled{"canceled", "C", "R", "ended_anyway"}}}
	seen := c.enter()
	c.end()
	h.w.tools() // which another connection brings
	h.cancel(c.request, nil)
	if got := h.ended(c.tool(), seen).facts(h.t); !got.fits(c.want()) {
		h.t.Errorf("a call whose stream was lost: the record says %+v, want %+v", got, c.want())
	}
	h.heard(c.server, 1, "a call whose stream was lost")
}

// losesSibling: a call that ends because another one of its batch has failed was cancelled by nobody at the client.
func (h *cancelHub) losesSibling() {
	c := &cancelCell{cancelHub: h, server: "stdio2026", t: h.t, by: "sibling", phase: cancelPhase{tool: "hang",
		want: canceled{"canceled", "C", "R", "ended_anyway"}}}
	batch := &cancelCell{cancelHub: h, server: "http2025", t: h.t, phase: cancelPhase{tool: "tool_batch", args: `{"sibling_failure_policy":` +
		`"cancel_siblings","ordering_policy":"allow_unordered","calls":[{"id":"runs","name":"mcp.stdio2026.hang","arguments":{"begin":true,` +
		`"then":"finish"}},{"id":"waits","name":"mcp.http2025.pre"},{"id":"fails","name":"mcp.sse.none","depends_on":["waits"]}]}`,
		reach: (*cancelCell).begins}}
	seen := batch.enter()
	close(arrives(h.t, "a hook", h.hooks).release)
	if got := h.ended(c.tool(), seen).facts(h.t); !got.fits(c.want()) {
		h.t.Errorf("a call whose sibling has failed: the record says %+v, want %+v", got, c.want())
	}
	h.ended("tool_batch", seen)
	batch.end()
	h.heard(c.server, 1, "a call whose sibling has failed")
}

// leaves ends the client while calls are in many phases at once: over stdio it hangs up, over HTTP it ends its session where it has one,
// and where it has none the hub stops. Each record tells that from a cancellation.
func (h *cancelHub) leaves() {
	by, leave := "connection_lost", h.w.hangUp // which closes its own end alone: it could still read
	switch {
	case h.w.stdin == nil && h.w.modern():
		by, leave = "hub_stopping", func() {
			if err := h.hub.stop(); err != nil {
				h.t.Error(err)
			}
		}
	case h.w.stdin == nil:
		by, leave = "session_ended", func() { endSession(h.t, h.w) }
	}
	in := map[string]string{"a pre hook runs": "stdio2025", "it waits in the approval queue": "stdio2026", "it waits for a lock": "http2025",
		"it runs, and its server says no more": "sse", "its server asks the client": "stdio2025", "its server waits for input": "http2026",
		"a batch runs": "stdio2026", "the person behind the client is asked": "sse"}
	var all []*cancelCell
	var seen []int
	for _, phase := range cancelPhases() {
		c := &cancelCell{cancelHub: h, server: in[phase.name], t: h.t, phase: phase, by: by}
		if c.server == "" || h.w.stdin != nil && !h.w.modern() && (phase.tool == "ask" || phase.tool == "rounds") {
			continue // or the server's question has an error for an answer, as none can come, and its call goes on
		}
		if phase.none != nil && phase.none(c) == suspendedThere {
			if phase.tool == "ask" {
				continue // at a server of 2025-11-25 the same as the next phase
			}
			c.phase.reach = func(c *cancelCell) { c.until(c.open(), `"input_required"`) }
		}
		seen = append(seen, c.enter())
		all = append(all, c)
	}
	leave()
	for i, c := range all {
		if got, want := h.ended(c.tool(), seen[i]).facts(h.t), c.want(); !got.fits(want) {
			h.t.Errorf("%s, while %s: the record says %+v, want %+v", c.server, c.phase.name, got, want)
		}
		if c.end(); c.lock != nil {
			c.lock.end()
		}
	}
}
