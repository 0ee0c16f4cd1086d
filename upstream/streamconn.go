package upstream

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// streamConn is the connection to a server over one stream of messages both ways: a child's pipes, or HTTP with SSE. It
// is the lane of the session.
type streamConn struct {
	wire  transport.Wire
	sess  *session
	needs *signInNeeds // of the server; nil for one on stdio

	noCancels bool         // the server dies of notifications/cancelled
	canceled  atomic.Int64 // when it was sent one, in Unix seconds, unless it has said something since

	closing chan struct{}
	ended   chan struct{} // closed when the reader is done
	endOnce sync.Once

	mu     sync.Mutex
	pieces []byte      // of a message that is spread over several lines
	depth  int         // of pieces: how many objects and arrays are open at its end
	breaks *time.Timer // runs breakPieces; stopped where no piece waits for its rest
}

// A message that is spread over several lines may have so many bytes, and so long a pause before its next line.
const (
	maxPieces    = 8 << 20
	piecesWithin = time.Second
)

// newStreamConn starts reading from w, for sess, whose lane it becomes.
func newStreamConn(sess *session, w transport.Wire) *streamConn {
	c := &streamConn{sess: sess, wire: w, closing: make(chan struct{}), ended: make(chan struct{})}
	sess.lane, sess.oneStream, sess.asked = c, true, newServerRequests(c.respond)
	c.breaks = time.AfterFunc(time.Hour, c.breakPieces)
	c.breaks.Stop()
	go c.readAll()
	return c
}

// shut ends the sending, and fails every request under way.
func (c *streamConn) shut(err error) {
	c.endOnce.Do(func() {
		calls := c.sess.open.end(err)
		close(c.closing)
		c.wire.Close()
		for _, call := range calls {
			call.drop()
			call.finish(endedFailure(call, err))
		}
	})
}

// release ends the reader and waits for it.
func (c *streamConn) release() {
	c.shut(transport.ErrClosed)
	c.wire.Release()
	<-c.ended
}

// readAll is the one reader of the stream.
func (c *streamConn) readAll() {
	defer close(c.ended)
	defer c.breakPieces()
	defer c.breaks.Stop()
	for {
		got, err := c.wire.Next()
		if err != nil {
			var large *jsonrpc.TooLarge
			if !errors.As(err, &large) {
				c.shut(err)
				return
			}
			c.sess.dropOversize(large, c.sess.open.find(large.ResponseID()))
			continue
		}
		c.canceled.Store(0)
		if len(got.Text) == 0 || got.Text[0] != '[' {
			c.receive(got)
			continue
		}
		err = rawjson.Elements(got.Text, func(one []byte) bool { // of a batch
			c.receive(jsonrpc.Received{Text: one}) // several share the room: none of them can free it
			return true
		})
		if err != nil {
			c.sess.drop("a line that is no JSON", got.Text)
		}
	}
}

// receive hands one message to the call that it is for, or to the session.
func (c *streamConn) receive(got jsonrpc.Received) {
	raw := got.Text
	e := jsonrpc.Read(raw)
	if e.Kind != jsonrpc.None && c.breaks.Stop() {
		c.breakPieces()
	}
	if e.Kind == jsonrpc.None || !e.Valid && rawjson.SkipValue(raw, 0) < len(raw) && rawjson.SkipValue(raw, 0) > 0 {
		c.odd(raw)
		got.Room.Free()
		return
	}
	c.sess.receive(e, got.Room, nil)
}

// odd handles a line that is no message: it can hold one, or be a piece of one. Of the messages in it responses and
// notifications count: a line of a log may quote a request.
func (c *streamConn) odd(line []byte) {
	within := jsonrpc.Within(line)
	for _, e := range within {
		if e.Kind == jsonrpc.Notification || e.Kind == jsonrpc.Response {
			c.receive(jsonrpc.Received{Text: e.Text})
		}
	}
	if len(within) > 0 {
		return
	}
	c.mu.Lock()
	begins := c.pieces == nil && line[0] == '{'
	if begins || c.pieces != nil {
		c.pieces = append(append(c.pieces, line...), '\n')
		c.depth += nesting(line)
	}
	waits := c.depth > 0 && len(c.pieces) < maxPieces
	if waits {
		c.breaks.Reset(piecesWithin)
	}
	whole := c.pieces
	if !waits {
		c.pieces, c.depth = nil, 0
	}
	c.mu.Unlock()
	switch e := jsonrpc.Read(whole); {
	case waits:
	case e.Kind != jsonrpc.None:
		c.receive(jsonrpc.Received{Text: whole})
	case whole == nil:
		c.broken(line)
	default:
		c.broken(whole)
	}
}

// nesting returns by how much a piece of JSON, which ends in no string, changes how many objects and arrays are open.
func nesting(piece []byte) (by int) {
	for i := 0; i < len(piece); i++ {
		switch piece[i] {
		case '"':
			i = rawjson.SkipString(piece, i) - 1
		case '{', '[':
			by++
		case '}', ']':
			by--
		}
	}
	return by
}

// breakPieces gives up a message whose rest has not come.
func (c *streamConn) breakPieces() {
	c.mu.Lock()
	pieces := c.pieces
	c.pieces, c.depth = nil, 0
	c.mu.Unlock()
	if pieces != nil {
		c.broken(pieces)
	}
}

// broken handles text that was to be a message, or is noise. The call ends whose id it has, or the only one that is
// open where it is the beginning of a response: many servers write the id last.
func (c *streamConn) broken(text []byte) {
	var call *pendingRequest
	if found := brokenID.FindSubmatch(text); rawjson.Valid(text) {
	} else if found != nil {
		call = c.sess.open.find(found[1])
	} else if bytes.HasPrefix(text, []byte(`{"result":`)) || bytes.HasPrefix(text, []byte(`{"jsonrpc":"2.0","result":`)) {
		call = c.sess.open.sole()
	}
	if call == nil {
		c.sess.drop("a line that is no JSON-RPC message", text)
		return
	}
	call.finish(invalidAnswer("is no well-formed JSON"))
	c.sess.forget(call)
}

var brokenID = regexp.MustCompile(`"id"\s*:\s*"?(\d+)`)

// respond answers a request of the server. What a server does not take in is lost to it.
func (c *streamConn) respond(body []byte) {
	if line, err := rawjson.Line(body); err == nil {
		_ = c.wire.Post(transport.Outgoing{Data: line})
	}
}

// send implements lane.
func (c *streamConn) send(_ context.Context, call *pendingRequest) {
	if !c.sess.open.add(call) {
		call.finish(endedFailure(call, transport.ErrClosed))
		return
	}
	data, err := rawjson.Line(call.text)
	call.text = nil // it may be large, and is not sent again
	if err == nil {
		call.needs = c.needs
		err = c.wire.Post(transport.Outgoing{Data: data, Call: call})
	}
	if err != nil {
		c.sess.forget(call)
		call.finish(response{err: &tool.Failure{
			Class:   tool.ClassDependencyUnavailable,
			Code:    "server_not_reading",
			Message: "the server does not take in requests: wait for its running calls to end, or restart it",
			Cause:   err,
		}})
	}
}

// withdraw implements lane.
func (c *streamConn) withdraw(_ context.Context, call *pendingRequest, reason string) (told bool) {
	// best effort: the caller has gone
	told = call.drop() && !call.isGreeting()
	if told && !c.noCancels {
		c.canceled.Store(time.Now().Unix())
		told = c.wire.Post(transport.Outgoing{Data: cancelBody(call.id, reason)}) == nil
	}
	return told
}

// tell implements lane.
func (c *streamConn) tell(ctx context.Context, method string, params []byte) error {
	line, err := rawjson.Line(jsonrpc.NotificationText(method, params))
	if err != nil {
		return err
	}
	out := transport.Outgoing{Data: line, Done: make(chan error, 1)}
	if err := c.wire.Post(out); err != nil {
		return err
	}
	select {
	case err := <-out.Done:
		return err
	case <-c.closing:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
