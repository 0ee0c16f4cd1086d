package upstream

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// oversize is a message of a server over limits.message, or one for which there was no memory.
type oversize struct {
	limit int
	// response is an answer to the same request in place of the one that was too large: an error. Nil where the message
	// was no response, or came too late to tell.
	response []byte
	// full says why there was no room for the message, which is not over the limit then. Else it is nil.
	full error
}

// oversizeOf returns an *oversize where err says that a message was too large, else err.
func oversizeOf(err error) error {
	var large *jsonrpc.TooLarge
	if !errors.As(err, &large) {
		return err
	}
	e := &oversize{limit: large.Limit, full: large.NoRoom}
	id, ok := large.About.Get("id")
	if _, request := large.About.Get("method"); ok && !request && !rawjson.IsNull(id) {
		e.response = jsonrpc.ErrorText(id, &tool.RPCError{Code: codeOversize, Message: e.Error()})
	}
	return e
}

// codeOversize is the JSON-RPC code under which the hub itself tells whoever waits of an oversize response.
const codeOversize = -32098

func (e *oversize) Error() string {
	if e.full != nil {
		return "a message of the server was dropped: " + e.full.Error() + " (" + settings.LimitMemory + ")"
	}
	return fmt.Sprintf("a message of the server is larger than %s (%s)", settings.SizeText(e.limit), settings.LimitMessage)
}

// failure is the answer of a call whose response was too large.
func (e *oversize) failure() *tool.Failure {
	if e.full != nil {
		what := "call again later, ask for less, or raise "
		if errors.Is(e.full, budget.ErrTooLarge) {
			what = "ask for less, or raise "
		}
		return &tool.Failure{Class: tool.ClassResultTooLarge, Code: "no_room", OutcomeUnknown: true, Cause: e,
			Message: fmt.Sprintf("the server's response was dropped, but the call may have taken effect: %v. To go on, %s%s in the hub's config",
				e.full, what, settings.LimitMemory)}
	}
	return &tool.Failure{Class: tool.ClassResultTooLarge, Code: "message_too_large", OutcomeUnknown: true, Cause: e,
		Message: fmt.Sprintf("the server's response is larger than %s (%s) and was dropped, but the call may have taken effect: "+
			"ask for less, or %s", settings.SizeText(e.limit), settings.LimitMessage, settings.Raise(settings.LimitMessage))}
}

// fault explains why the server cannot be used while it sends such messages.
func (e *oversize) fault(during string) *fault.Fault {
	hint := settings.Raise(settings.LimitMessage)
	if e.full != nil {
		hint = "raise " + settings.LimitMemory + " in the hub's config"
	}
	return &fault.Fault{What: during + ": " + e.Error(), Hint: hint, Cause: e}
}

// receiveOversize tells whoever waits for a message that it was too large: the call, or the SDK.
func (c *streamConn) receiveOversize(large *oversize) {
	c.notifications.losses.add()
	large.warn(c.log)
	e := jsonrpc.Read(large.response)
	if e.Kind != jsonrpc.Response {
		return
	}
	if id, ours := laneID(e); !ours {
		c.receiveOne(jsonrpc.Received{Text: large.response})
	} else if call := c.remove(id); call != nil {
		call.finish(answer{err: large.failure()})
	}
}

// warn logs that the message was dropped.
func (e *oversize) warn(log *slog.Logger) {
	if e.full != nil {
		log.Warn("a message of the server was dropped: there was no room for it", "limit", settings.LimitMemory, "because", e.full)
		return
	}
	log.Warn("a message of the server was dropped: it is over a limit", "limit", settings.LimitMessage, "value", settings.SizeText(e.limit))
}

// noRoom is err if that says that there was no room for a message, else nil.
func noRoom(err error) error {
	if errors.Is(err, budget.ErrTooLarge) || errors.Is(err, budget.ErrBusy) {
		return err
	}
	return nil
}

// oversizeAnswer is the answer of a call whose response is too large, or had no room: full says why.
func (l *httpLane) oversizeAnswer(full error) answer {
	large := &oversize{limit: l.limit, full: full}
	l.notifications.losses.add()
	large.warn(l.log)
	return answer{err: large.failure()}
}
