package transport

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// OversizeFailure explains to a caller that the response was dropped.
func OversizeFailure(e *jsonrpc.TooLarge) *tool.Failure {
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

// OversizeFault explains why a server that sends messages over limits.message, or for which there
// is no memory, cannot be used. during is what the hub was doing.
func OversizeFault(e *jsonrpc.TooLarge, during string) *fault.Fault {
	if e.NoRoom != nil {
		return &fault.Fault{Cause: e, Hint: "raise " + settings.LimitMemory + " in the hub's config",
			What: fmt.Sprintf("%s: a message of the server was dropped: %v (%s)", during, e.NoRoom, settings.LimitMemory)}
	}
	return &fault.Fault{Cause: e, Hint: settings.Raise(settings.LimitMessage),
		What: fmt.Sprintf("%s: a message of the server is larger than %s (%s)", during, settings.SizeText(e.Limit),
			settings.LimitMessage)}
}

// WarnOversize logs that the message was dropped.
func WarnOversize(e *jsonrpc.TooLarge, log *slog.Logger) {
	if e.NoRoom != nil {
		log.Warn("a message of the server was dropped: there was no room for it", "limit", settings.LimitMemory,
			"because", e.NoRoom)
		return
	}
	log.Warn("a message of the server was dropped: it is over a limit", "limit", settings.LimitMessage,
		"value", settings.SizeText(e.Limit))
}
