package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Oversize is a message of a server over limits.message, or one for which there was no memory. It was dropped.
type Oversize struct {
	Limit  int
	ID     json.RawMessage // of a response; nil where the message was none, or that cannot be told
	NoRoom error           // why there was no memory for the message; nil where it is over the limit
}

// OversizeOf returns an *Oversize where err says that a message was too large, else err.
func OversizeOf(err error) error {
	if err == nil {
		return nil
	}
	var large *jsonrpc.TooLarge
	if !errors.As(err, &large) {
		return err
	}
	e := &Oversize{Limit: large.Limit, NoRoom: large.NoRoom}
	id, ok := large.About.Get("id")
	if _, request := large.About.Get("method"); ok && !request {
		e.ID = id
	}
	return e
}

func (e *Oversize) Error() string {
	if e.NoRoom != nil {
		return "a message of the server was dropped: " + e.NoRoom.Error() + " (" + settings.LimitMemory + ")"
	}
	return fmt.Sprintf("a message of the server is larger than %s (%s)", settings.SizeText(e.Limit),
		settings.LimitMessage)
}

// Failure explains to a caller that the response was dropped.
func (e *Oversize) Failure() *tool.Failure {
	if e.NoRoom != nil {
		what := "call again later, ask for less, or raise "
		if errors.Is(e.NoRoom, budget.ErrTooLarge) {
			what = "ask for less, or raise "
		}
		return &tool.Failure{Class: tool.ClassResultTooLarge, Code: "no_room", OutcomeUnknown: true, Cause: e,
			Message: fmt.Sprintf("the server's response was dropped, but the call may have taken effect: %v. To "+
				"go on, %s%s "+
				"in the hub's config",
				e.NoRoom, what, settings.LimitMemory)}
	}
	return &tool.Failure{Class: tool.ClassResultTooLarge, Code: "message_too_large", OutcomeUnknown: true, Cause: e,
		Message: fmt.Sprintf("the server's response is larger than %s (%s) and was dropped, but the call may "+
			"have taken "+
			"effect: ask for less, or %s", settings.SizeText(e.Limit), settings.LimitMessage,
			settings.Raise(settings.LimitMessage))}
}

// Fault explains why a server that sends such messages cannot be used. during is what the hub was doing.
func (e *Oversize) Fault(during string) *fault.Fault {
	hint := settings.Raise(settings.LimitMessage)
	if e.NoRoom != nil {
		hint = "raise " + settings.LimitMemory + " in the hub's config"
	}
	return &fault.Fault{What: during + ": " + e.Error(), Hint: hint, Cause: e}
}

// Warn logs that the message was dropped.
func (e *Oversize) Warn(log *slog.Logger) {
	if e.NoRoom != nil {
		log.Warn("a message of the server was dropped: there was no room for it", "limit", settings.LimitMemory,
			"because", e.NoRoom)
		return
	}
	log.Warn("a message of the server was dropped: it is over a limit", "limit", settings.LimitMessage,
		"value", settings.SizeText(e.Limit))
}
