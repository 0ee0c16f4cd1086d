package upstream

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	maxOpenRequests  = 128      // of one connection
	maxCallRequests  = 16       // of one call
	maxRequestParams = 16 << 20 // bytes of one question's params
)

// requestRule says which calls a server's requests can belong to.
type requestRule int

const (
	refuseAll    requestRule = iota // none: the hub offers to answer nothing
	callOfStream                    // the one on whose stream the question comes
	callOfClient                    // that one, or else the latest one, if all that are in flight are one client's
)

// Why questions are refused. Servers of all revisions know the first: it is what the protocol has
// for a capability that was not offered.
var (
	errNotOffered = tool.RPCError{Code: tool.CodeMethodNotFound,
		Message: "method not found: the client did not offer this capability on this connection"}
	errUnknown = tool.RPCError{Code: tool.CodeMethodNotFound,
		Message: "method not found: the client did not offer this capability"}
	errUnasked = tool.RPCError{Code: tool.CodeMethodNotFound,
		Message: "method not found: the client behind this call cannot be asked"}
	errNoStream = tool.RPCError{Code: tool.CodeInvalidRequest,
		Message: "several clients share this connection: a question must come on the stream of the call that it " +
			"belongs to"}
	errNoCall = tool.RPCError{Code: tool.CodeInvalidRequest,
		Message: "no call of the client is in flight: a server may ask only during one"}
	errCallOver = tool.RPCError{Code: tool.CodeInvalidRequest,
		Message: "the call that the question belongs to has ended"}
	errIDInUse = tool.RPCError{Code: tool.CodeInvalidRequest, Message: "another request with this id is still open"}
	errTooMany = tool.RPCError{Code: tool.CodeInternalError,
		Message: "too many questions of the server are open: wait for answers first"}
	errTooLong    = tool.RPCError{Code: tool.CodeInvalidParams, Message: "the question is too large"}
	errNoAnswer   = tool.RPCError{Code: tool.CodeInternalError, Message: "the client did not answer"}
	errBadAnswer  = tool.RPCError{Code: tool.CodeInternalError, Message: "the client's answer is no JSON object"}
	errBadRequest = tool.RPCError{Code: tool.CodeInvalidParams, Message: "params of the question are no JSON object"}
)

// serverRequests takes the requests of the server of one connection, up to 2025-11-25, to the
// clients behind its calls, and the answers back. A request that belongs to no call, or to one
// whose client cannot be asked, is refused at once.
type serverRequests struct {
	reply func(body []byte) // sends a response to the server; does not block

	mu    sync.Mutex
	rule  requestRule
	calls []*pendingRequest // in flight, in the order in which they began
	open  map[string]*serverRequest
	// came before a call: some servers ask for roots as soon as they are initialised, or told of
	// others
	early    []*serverRequest
	begun    bool      // there was a call
	awaited  bool      // the server has not asked yet, and is about to
	number   int       // of questions so far
	answered time.Time // the latest one that is about the client and not about a call

	outside   *pendingRequest // takes what belongs to no call to the client; nil where that has to wait for a call
	isolation *isolation      // is told of questions; nil for a connection of one client's own
}

// serverRequest is an open question of a server.
type serverRequest struct {
	id       json.RawMessage // as the server wrote it
	question tool.Question
	call     *pendingRequest    // whose client is asked
	held     []*pendingRequest  // those that may be waiting for the answer
	stop     context.CancelFunc // of the asking; nil before
	over     bool               // answered, refused or cancelled
	early    int                // for how many calls it has come too early: any of them may answer it
}

func newServerRequests(reply func(body []byte)) *serverRequests {
	return &serverRequests{reply: reply, open: make(map[string]*serverRequest)}
}

// follow sets which calls questions can belong to, what is told of them, and what takes those that belong to none.
// awaited says that the server is known to ask before the first call.
func (d *serverRequests) follow(rule requestRule, told *isolation, outside *pendingRequest, awaited bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rule, d.isolation, d.outside, d.awaited = rule, told, outside, awaited
}

// begin notes that c is about to be sent. end must follow. It returns how long c is to wait, or
// until it is not held any more, for what the server asks at first: that may be the roots that c is
// about.
func (d *serverRequests) begin(c *pendingRequest) (wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, c)
	first := !d.begun
	d.begun = true
	if wait = takeInTime - time.Since(d.answered); d.awaited {
		wait = questionPatience
	}
	for _, q := range d.open {
		if d.outside != nil && q.call == d.outside {
			q.held, wait = append(q.held, c), questionPatience
			c.hold(1)
		}
	}
	if c.Ask == nil && !first {
		return wait // others of the client's calls may be of a kind that it can be asked in
	}
	early := d.early
	d.early = nil
	for _, q := range early {
		if c.Ask == nil {
			d.refuse(q, errUnasked)
			continue
		}
		d.assign(q, c)
		wait = questionPatience
	}
	return wait
}

// askOutside puts to the client what belongs to no call, until ctx or the session ends.
func (d *serverRequests) askOutside(ctx context.Context, ended <-chan struct{}) {
	ctx, stop := context.WithCancel(ctx)
	defer d.outside.answering.Wait()
	defer stop()
	for {
		select {
		case <-d.outside.ready:
			for _, q := range d.outside.take().asked {
				d.ask(ctx, q)
			}
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// end notes that nobody waits for c any more. Its own open questions are answered with an error;
// what came before it is a matter of the next call again.
func (d *serverRequests) end(c *pendingRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.calls, c); i >= 0 {
		d.calls = slices.Delete(d.calls, i, i+1)
	}
	for _, q := range d.open {
		switch {
		case q.call != c:
		case q.early > 0 && q.early < maxCallRequests:
			d.putBack(q)
		default:
			d.refuse(q, errCallOver)
		}
	}
}

// putBack takes a question that no call has brought about from a call that has ended. d.mu is held.
func (d *serverRequests) putBack(q *serverRequest) {
	if !d.close(q) {
		return
	}
	next := &serverRequest{id: q.id, question: q.question, early: q.early + 1}
	d.open[idKey(q.id)] = next
	if call := d.latest(); call != nil {
		d.assign(next, call)
	} else {
		d.early = append(d.early, next)
	}
}

// receive takes a request of the server that came on the stream of call, or on a stream that
// is no call's; then call is nil. The message is well-formed.
func (d *serverRequests) receive(e jsonrpc.Message, call *pendingRequest) {
	if e.Method == tool.MethodPing {
		d.reply(append(jsonrpc.ResponseStart(e.ID), `{}}`...))
		return
	}
	why := &errUnknown
	if tool.IsServerRequest(e.Method) {
		d.mu.Lock()
		defer d.mu.Unlock()
		why = d.take(e, call)
	}
	if why != nil {
		d.reply(jsonrpc.ErrorText(e.ID, why))
	}
}

// take opens a question, or says why it is refused. d.mu is held.
func (d *serverRequests) take(e jsonrpc.Message, call *pendingRequest) (why *tool.RPCError) {
	if d.rule == refuseAll {
		return &errNotOffered
	}
	own, roots := d.rule == callOfClient, e.Method == tool.MethodRoots
	if call == nil && own {
		call = d.latest()
	}
	busy := slices.ContainsFunc(d.calls, func(one *pendingRequest) bool { return !one.isDone() })
	if call == nil && roots {
		call = d.outside
	}
	early := call == nil && own && (!d.begun || roots && !busy)
	d.awaited = false
	if d.isolation != nil {
		d.isolation.server.catalog.asks(!d.begun)
		if early && roots {
			d.reply(append(jsonrpc.ResponseStart(e.ID), `{"roots":[]}}`...)) // there is no client yet
			return nil
		}
	}
	params, err := rawjson.Line(e.Params)
	switch {
	case early:
	case call == nil && (d.rule == callOfStream || d.several()):
		return &errNoStream
	case call == nil && busy:
		return &errUnasked // latest would have found it otherwise
	case call == nil:
		return &errNoCall
	case call.Ask == nil:
		return &errUnasked
	case call != d.outside && !slices.Contains(d.calls, call):
		return &errCallOver
	}
	switch {
	case d.open[idKey(e.ID)] != nil:
		return &errIDInUse
	case len(d.open) >= maxOpenRequests || d.openOf(call) >= maxCallRequests:
		return &errTooMany
	case len(e.Params) > maxRequestParams:
		return &errTooLong
	case err != nil || e.Params != nil && !rawjson.IsObject(e.Params):
		return &errBadRequest
	}
	d.number++
	q := &serverRequest{id: e.ID,
		question: tool.Question{Key: "question-" + strconv.Itoa(d.number), Method: e.Method, Params: params}}
	d.open[idKey(e.ID)] = q
	if early || own && roots { // it is about the client and not about the call that is in flight
		q.early = 1
	}
	if early {
		d.early = append(d.early, q)
		return nil
	}
	d.assign(q, call)
	return nil
}

// assign makes q a question to the client behind call. d.mu is held.
func (d *serverRequests) assign(q *serverRequest, call *pendingRequest) {
	q.call, q.held = call, []*pendingRequest{call}
	if d.rule == callOfClient {
		q.held = slices.Clone(d.calls) // any of them may be the one that waits
	}
	for _, one := range q.held {
		one.hold(1)
	}
	call.put(q)
}

// sole returns the latest call in flight of the one session that has any; nil for none. Where
// several have, nobody could tell whose what the server says is.
func (d *serverRequests) sole() (latest *pendingRequest, several bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if c.Notify == nil || c.until != nil || c.isDone() {
			continue
		}
		if latest != nil && latest.Session.Key != c.Session.Key {
			return nil, true
		}
		latest = c
	}
	return latest, false
}

// latest is the call of a connection of one client's own that questions go to where nothing tells
// which one asks. d.mu is held.
func (d *serverRequests) latest() *pendingRequest {
	if d.several() {
		return nil
	}
	for i := len(d.calls) - 1; i >= 0; i-- {
		if c := d.calls[i]; c.Ask != nil && !c.isDone() {
			return c
		}
	}
	return nil
}

// several reports whether a question may be for one of several clients. A session without an end is all that one
// caller's clients do. d.mu is held.
func (d *serverRequests) several() bool {
	return d.rule == callOfClient && len(d.calls) > 1 && slices.ContainsFunc(d.calls, func(c *pendingRequest) bool {
		return c.Session.Ended == nil || c.Session.Key != d.calls[0].Session.Key
	})
}

// openOf counts the open questions of call, or those that no call has come for yet. d.mu is held.
func (d *serverRequests) openOf(call *pendingRequest) (n int) {
	for _, q := range d.open {
		if q.call == call {
			n++
		}
	}
	return n
}

// ask puts q to the client of its call, behind the question before it, and does not wait for the answer.
func (d *serverRequests) ask(ctx context.Context, q *serverRequest) {
	ahead, sent := q.call.lastSent, make(chan struct{})
	q.call.lastSent = sent
	q.call.answering.Go(func() { d.put(ctx, q, ahead, sync.OnceFunc(func() { close(sent) })) })
}

// put puts q to the client of its call, and answers the server, unless the call ends before that.
// It waits until ahead is closed, which is when the question before q has
// gone to the client (nil without one), and calls sent when q has: so they come in the order in
// which the server asks.
func (d *serverRequests) put(ctx context.Context, q *serverRequest, ahead <-chan struct{}, sent func()) {
	defer sent()
	if ahead != nil {
		select {
		case <-ahead:
		case <-ctx.Done():
		}
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	d.mu.Lock()
	q.stop = stop
	over := q.over
	d.mu.Unlock()
	if over {
		return
	}
	question := q.question // a copy: where the call ends meanwhile, q's is put to the next one
	question.Sent = sent
	answers, err := q.call.Ask(asking, []tool.Question{question})
	body := jsonrpc.ErrorText(q.id, &errNoAnswer)
	switch {
	case err == nil && len(answers) == 1:
		body = answerBody(q.id, answers[0])
	case ctx.Err() != nil:
		return // end answers: the server is to know first that its call is canceled, or it may answer that
	}
	if d.isolation != nil && err == nil && answers[0].Err == nil {
		d.isolation.keep(clientSession{who: q.call.Session})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.close(q) {
		d.reply(body)
		if q.early > 0 {
			d.answered = time.Now()
		}
	}
}

// canceled ends the question that a notifications/cancelled of the server names, if it is one. Nobody is answered then.
func (d *serverRequests) canceled(e jsonrpc.Message) {
	id, _ := rawjson.Get(e.Params, "requestId")
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.open[idKey(id)]; q != nil {
		d.close(q)
	}
}

// refuse ends q with an error. d.mu is held.
func (d *serverRequests) refuse(q *serverRequest, why tool.RPCError) {
	if d.close(q) {
		d.reply(jsonrpc.ErrorText(q.id, &why))
	}
}

// close forgets q. It returns false if that was done before. d.mu is held.
func (d *serverRequests) close(q *serverRequest) bool {
	if q.over {
		return false
	}
	q.over = true
	delete(d.open, idKey(q.id))
	d.early = slices.DeleteFunc(d.early, func(one *serverRequest) bool { return one == q })
	if q.stop != nil {
		q.stop()
	}
	for _, one := range q.held {
		one.hold(-1)
	}
	return true
}

// idKey is a JSON-RPC id as the key of a map: the same however its text is escaped.
func idKey(id []byte) string {
	if text, ok := rawjson.String(id); ok {
		return `"` + text
	}
	return string(id)
}

// answerBody is the response to a server's question.
func answerBody(id []byte, a tool.Answer) []byte {
	if a.Err != nil {
		return jsonrpc.ErrorText(id, a.Err)
	}
	if !rawjson.IsObject(a.Result) || !rawjson.Valid(a.Result) {
		return jsonrpc.ErrorText(id, &errBadAnswer)
	}
	return append(append(jsonrpc.ResponseStart(id), a.Result...), '}')
}
