package upstream

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Limits bound what one server may send and list. Zero means the default. The defaults let the largest real servers pass
// with room to spare: 344 tools in half a megabyte.
type Limits struct {
	// Message is the size in bytes of one message, with the line break or the event fields around it: default 64 MiB on
	// stdio and HTTP+SSE, where one server's messages share a stream, and 256 MiB over Streamable HTTP.
	Message     int
	Pages       int // of one list; default 1000
	Catalog     int // bytes of all pages of one list; default 64 MiB
	Tools       int // tools of one server, and prompts, resources, templates, of each; further ones are left out; default 10,000
	ToolSize    int // bytes of the declaration of one of them, which is left out above that; default 1 MiB
	SchemaDepth int // levels of an input or output schema; a deeper one is not used; default 128

	HiddenText string // what becomes of hidden characters in descriptions and titles: HiddenKeep (default), HiddenStrip or HiddenRefuse
}

// Limits are not raised beyond what the compiler of schemas takes.
const (
	MaxToolSize    = schema.MaxBytes
	MaxSchemaDepth = schema.MaxDepth
)

const (
	defaultStreamMessage = 64 << 20
	defaultHTTPMessage   = 256 << 20
	defaultPages         = 1000
	defaultCatalog       = 64 << 20
	defaultTools         = 10_000
	defaultToolSize      = 1 << 20
	defaultSchemaDepth   = 128
)

// Names of the limits in the config file, for messages.
const (
	limitMessage     = "limits.message"
	limitPages       = "limits.pages"
	limitCatalog     = "limits.catalog"
	limitTools       = "limits.tools"
	limitToolSize    = "limits.tool_size"
	limitSchemaDepth = "limits.schema_depth"
	limitHiddenText  = "limits.hidden_text"
	limitMemory      = "hub.limits.memory"
)

// withDefaults returns l with every zero value replaced by the default for the transport.
func (l Limits) withDefaults(t Transport) Limits {
	message := defaultStreamMessage
	if t == StreamableHTTP {
		message = defaultHTTPMessage
	}
	l.Message = orDefault(l.Message, message)
	l.Pages = orDefault(l.Pages, defaultPages)
	l.Catalog = orDefault(l.Catalog, defaultCatalog)
	l.Tools = orDefault(l.Tools, defaultTools)
	l.ToolSize = orDefault(l.ToolSize, defaultToolSize)
	l.SchemaDepth = orDefault(l.SchemaDepth, defaultSchemaDepth)
	return l
}

// raise says what to do about a limit that was hit.
func raise(limit string) string {
	return fmt.Sprintf("raise %s in the server's entry of the hub's config, or hub.%s for all servers", limit, limit)
}

// sizeText is a number of bytes as the config file has it.
func sizeText(n int) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// oversize is a message of a server over limits.message.
type oversize struct {
	limit int
	// response is an answer to the same request in place of the one that was too large: an error. Nil where the message
	// was no response, or came too late to tell.
	response []byte
	// full says why there was no room for the message, which is not over the limit then. Else it is nil.
	full error
}

// newOversize is the error for a message that about knows.
func newOversize(limit int, about *rawjson.Skim, full error) *oversize {
	e := &oversize{limit: limit, full: full}
	id, ok := about.Get("id")
	if _, request := about.Get("method"); ok && !request && !rawjson.IsNull(id) {
		e.response = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, codeOversize, rawjson.Quote(e.Error()))
	}
	return e
}

// codeOversize is the JSON-RPC code under which the hub itself tells whoever waits of an oversize response.
const codeOversize = -32098

func (e *oversize) Error() string {
	if e.full != nil {
		return "a message of the server was dropped: " + e.full.Error() + " (" + limitMemory + ")"
	}
	return fmt.Sprintf("a message of the server is larger than %s (%s)", sizeText(e.limit), limitMessage)
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
				e.full, what, limitMemory)}
	}
	return &tool.Failure{Class: tool.ClassResultTooLarge, Code: "message_too_large", OutcomeUnknown: true, Cause: e,
		Message: fmt.Sprintf("the server's response is larger than %s (%s) and was dropped, but the call may have taken effect: "+
			"ask for less, or %s", sizeText(e.limit), limitMessage, raise(limitMessage))}
}

// fault explains why the server cannot be used while it sends such messages.
func (e *oversize) fault(during string) *fault {
	hint := raise(limitMessage)
	if e.full != nil {
		hint = "raise " + limitMemory + " in the hub's config"
	}
	return &fault{what: during + ": " + e.Error(), hint: hint, cause: e}
}

// receiveOversize tells whoever waits for a message that it was too large: the call, or the SDK.
func (c *streamConn) receiveOversize(large *oversize) {
	c.losses.add()
	large.warn(c.log)
	e, kind := open(large.response)
	if kind != kindResponse {
		return
	}
	if id, ours := e.laneID(); !ours {
		c.receiveOne(received{text: large.response})
	} else if call := c.remove(id); call != nil {
		call.finish(answer{err: large.failure()})
	}
}

// warn logs that the message was dropped.
func (e *oversize) warn(log *slog.Logger) {
	if e.full != nil {
		log.Warn("a message of the server was dropped: there was no room for it", "limit", limitMemory, "because", e.full)
		return
	}
	log.Warn("a message of the server was dropped: it is over a limit", "limit", limitMessage, "value", sizeText(e.limit))
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
	l.losses.add()
	large.warn(l.log)
	return answer{err: large.failure()}
}
