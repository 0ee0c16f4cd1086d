package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// idPrefix begins every JSON-RPC id and progress token of the lanes. The SDK numbers its own requests, so the two never
// meet on one connection.
const idPrefix = "toolhub-"

const (
	methodCallTool    = "tools/call"
	methodListTools   = "tools/list"
	methodPing        = "ping"
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodSetLevel    = "logging/setLevel"
	methodRead        = "resources/read"
	methodGetPrompt   = "prompts/get"
	noteCancelled     = "notifications/cancelled"
	noteProgress      = "notifications/progress"
	noteToolsChanged  = "notifications/tools/list_changed"
	noteInitialized   = "notifications/initialized"
	noteRootsChanged  = "notifications/roots/list_changed"
	noteMessage       = "notifications/message"
	noteUpdated       = "notifications/resources/updated"
	noteListenAcked   = "notifications/subscriptions/acknowledged"
	modernVersion     = "2026-07-28" // from here on: no sessions, facts of the hop in each request
	newestWithSession = "2025-11-25"
)

// envelope holds the members of a JSON-RPC message, raw; nil where absent.
type envelope struct {
	id, method, params, result, err []byte

	valid   bool // the whole message is well-formed JSON, and UTF-8
	notUTF8 int  // where it is well-formed JSON alone: the offset, from 1, of the first byte that is not UTF-8; otherwise 0

	// object is result, read; the zero value where that is no object, or has not been read.
	object rawjson.Object
}

// envelopeKind says what a message is.
type envelopeKind int

const (
	kindNone envelopeKind = iota // no JSON-RPC message
	kindResponse
	kindRequest
	kindNotification
)

// memberResult is the member of a response whose own members are read with it.
const memberResult = "result"

// open takes the envelope off raw. Where raw is malformed in its values alone, there is an envelope that says so.
func open(raw []byte) (envelope, envelopeKind) {
	var e envelope
	version := false
	take := func(m rawjson.Member) bool {
		switch m.Name() {
		case "jsonrpc":
			version = string(m.Value) == `"2.0"`
		case "id":
			e.id = m.Value
		case "method":
			e.method = m.Value
		case "params":
			e.params = m.Value
		case memberResult:
			e.result = m.Value
		case "error":
			e.err = m.Value
		}
		return true
	}
	var err error
	if message, result, ok := rawjson.Parse(raw, memberResult); ok {
		e.notUTF8 = rawjson.NotUTF8(raw) + 1
		e.valid, e.object = e.notUTF8 == 0, result
		for _, m := range message.Members() {
			take(m)
		}
	} else {
		err = rawjson.Members(raw, take)
	}
	switch {
	case err != nil || !version:
		return envelope{}, kindNone
	case e.method == nil && (e.id != nil || e.err != nil):
		return e, kindResponse
	case e.method == nil:
		return envelope{}, kindNone
	case rawjson.IsNull(e.id):
		return e, kindNotification
	default:
		return e, kindRequest
	}
}

// refusal is the answer to a request that is not UTF-8; nil where nothing is to be answered.
func (e envelope) refusal() []byte {
	if e.notUTF8 == 0 || rawjson.NotUTF8(e.id) >= 0 {
		return nil
	}
	return errorBody(e.id, tool.RPCError{Code: tool.CodeParseError,
		Message: fmt.Sprintf("parse error: the message is not UTF-8 (byte %d of it)", e.notUTF8-1)})
}

// laneID returns the response's id if it is one of ours.
func (e envelope) laneID() (string, bool) {
	id, ok := rawjson.String(e.id)
	return id, ok && strings.HasPrefix(id, idPrefix)
}

// is reports whether the message's method is name.
func (e envelope) is(name string) bool {
	method, ok := rawjson.String(e.method)
	return ok && method == name
}

// progressToken returns the token of a progress notification if it is one of ours.
func (e envelope) progressToken() (string, bool) {
	value, _ := rawjson.Get(e.params, "progressToken")
	token, ok := rawjson.String(value)
	return token, ok && strings.HasPrefix(token, idPrefix)
}

// isBadProgress reports whether a notifications/progress is malformed: it names no call or no progress, or is no well-formed
// JSON.
func (e envelope) isBadProgress() bool {
	token, _ := rawjson.Get(e.params, "progressToken")
	_, text := rawjson.String(token)
	progress, _ := rawjson.Get(e.params, "progress")
	return !e.valid || !text && !isNumber(token) || !isNumber(progress)
}

// isNumber reports whether a value of well-formed JSON is a number.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// answerOf turns a response into an answer. It must be valid in full, because the result goes on to clients inside other
// messages and must not be able to break them.
func answerOf(e envelope) answer {
	switch {
	case e.notUTF8 > 0:
		return invalidAnswer(fmt.Sprintf("is not UTF-8 (byte %d of it)", e.notUTF8-1))
	case !e.valid:
		return invalidAnswer("is no well-formed JSON, or nested too deeply")
	case !rawjson.IsNull(e.err):
		return errorAnswer(e.err)
	case e.result == nil:
		return invalidAnswer("has neither result nor error")
	case !rawjson.IsObject(e.result):
		return invalidAnswer("has a result that is no object")
	}
	if !isSame(e.result, e.object.Text()) { // there are two, and the key of one is written with escapes
		e.object = rawjson.Object{}
	}
	if e.object.OneLine() {
		return answer{result: e.result, object: e.object}
	}
	result, err := rawjson.Line(e.result)
	if err != nil {
		return invalidAnswer("is no well-formed JSON")
	}
	if !isSame(result, e.result) { // it was written as one line
		e.object = rawjson.Object{}
	}
	return answer{result: result, object: e.object}
}

// isSame reports whether a and b are the same bytes in memory.
func isSame(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

func errorAnswer(raw []byte) answer {
	var fields struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	line, err := rawjson.Line(raw)
	if err != nil || json.Unmarshal(line, &fields) != nil {
		return invalidAnswer("has an error that is no JSON-RPC error object")
	}
	code, err := strconv.ParseInt(fields.Code.String(), 10, 64)
	if err != nil {
		return invalidAnswer("has an error whose code is no integer")
	}
	return answer{err: &tool.RPCError{Code: code, Message: fields.Message, Data: fields.Data, Raw: line}}
}

func invalidAnswer(what string) answer {
	return answer{err: &tool.Failure{
		Class:          tool.ClassExecutionFailed,
		Code:           "invalid_response",
		Message:        "the server's response " + what + ": report this to whoever maintains the server",
		OutcomeUnknown: true,
	}}
}

// requestBody builds a JSON-RPC request around params, which stay as they are.
func requestBody(id, method string, params []byte) []byte {
	b := make([]byte, 0, len(params)+len(id)+len(method)+64)
	b = append(b, `{"jsonrpc":"2.0","id":"`...)
	b = append(b, id...)
	b = append(b, `","method":`...)
	b = append(b, rawjson.Quote(method)...)
	b = append(b, `,"params":`...)
	b = append(b, params...)
	return append(b, '}')
}

// notificationBody builds a notification; params are nil where it has none.
func notificationBody(method string, params []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","method":`), rawjson.Quote(method)...)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// cancelBody builds the notification that says nobody waits for the request id any more.
func cancelBody(id, reason string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","method":"` + noteCancelled + `","params":{"requestId":"` + id + `","reason":`)
	b.Write(rawjson.Quote(reason))
	b.WriteString(`}}`)
	return b.Bytes()
}

// replyBody answers a server's request where the SDK does not: a ping, or something that the hub does not offer.
func replyBody(e envelope) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(e.id)
	if e.is(methodPing) {
		b.WriteString(`,"result":{}}`)
	} else {
		b.WriteString(`,"error":{"code":-32601,"message":"method not found: the client did not offer this capability"}}`)
	}
	return b.Bytes()
}
