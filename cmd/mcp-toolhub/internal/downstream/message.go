package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// message is one JSON-RPC message as a client sent it. Its parts alias the text and are never written to.
type message struct {
	text   []byte
	id     json.RawMessage // as written; nil for a notification
	method string          // "" for a response
	params json.RawMessage // nil where the message has none
}

func (m message) isRequest() bool { return m.method != "" && m.id != nil }

// parseMessage reads one message. The error is what JSON-RPC wants to be answered for a text that is none.
func parseMessage(text []byte) (message, *tool.RPCError) {
	m := message{text: text}
	if !rawjson.Valid(text) || rawjson.NotUTF8(text) >= 0 {
		return unreadable(text)
	}
	if !rawjson.IsObject(text) {
		return m, invalidRequest("a message must be a JSON object")
	}
	version, fault := "", ""
	seen := [4]bool{}
	_ = rawjson.Members(text, func(member rawjson.Member) bool {
		name, at := member.Name(), 0
		switch name {
		case "jsonrpc":
			version, _ = rawjson.String(member.Value)
		case "id":
			at, m.id = 1, member.Value
		case "method":
			var ok bool
			if m.method, ok = rawjson.String(member.Value); !ok || m.method == "" {
				fault = "method must be a non-empty string"
			}
			at = 2
		case "params":
			at, m.params = 3, member.Value
		default:
			return true
		}
		if seen[at] {
			fault = fmt.Sprintf("member %q occurs twice", name)
		}
		seen[at] = true
		return true
	})
	if !legalID(m.id) {
		m.id, fault = nil, "id must be a string or a number"
	}
	if version != "2.0" {
		fault = `member "jsonrpc" must be "2.0"`
	}
	if fault == "" && m.params != nil && !rawjson.IsObject(m.params) && !rawjson.IsNull(m.params) {
		fault = "params must be an object"
	}
	if fault != "" {
		return m, invalidRequest(fault)
	}
	return m, nil
}

// unreadable is a text that is not JSON, or not UTF-8 ("JSON-RPC messages MUST be UTF-8 encoded"). Where its id can be read
// nevertheless, whoever sent a request is told which.
func unreadable(text []byte) (message, *tool.RPCError) {
	m := message{text: text}
	why := fmt.Sprintf("nested deeper than %d levels", rawjson.MaxDepth)
	if rawjson.Depth(text) <= rawjson.MaxDepth {
		if !rawjson.Valid(text) {
			return m, &tool.RPCError{Code: tool.CodeParseError, Message: "parse error: not a JSON text"}
		}
		why = fmt.Sprintf("not UTF-8 (byte %d of the message): send text as UTF-8", rawjson.NotUTF8(text))
	}
	_, asks := rawjson.Get(text, "method")
	if id, ok := rawjson.Get(text, "id"); ok && asks && legalID(id) && rawjson.Valid(id) && rawjson.NotUTF8(id) < 0 {
		m.id = id
	}
	return m, &tool.RPCError{Code: tool.CodeParseError, Message: "parse error: " + why}
}

// legalID: "Requests MUST include a string or integer ID. Unlike base JSON-RPC, the ID MUST NOT be null." JSON-RPC allows
// any number, and the hub gives any back as it came.
func legalID(id json.RawMessage) bool {
	return id == nil || id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

func invalidRequest(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidRequest, Message: "invalid request: " + what}
}

func invalidParams(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidParams, Message: "invalid params: " + what}
}

// checkInitialize refuses an initialize whose params are none. The SDK would answer with an error of no code, in words of its
// own, and over HTTP with the id of a session that does not exist.
func checkInitialize(m message) *tool.RPCError {
	if m.method != methodInitialize || !m.isRequest() {
		return nil
	}
	if !rawjson.IsObject(m.params) {
		return invalidParams("initialize needs params with protocolVersion, capabilities and clientInfo")
	}
	var mistyped *json.UnmarshalTypeError
	switch err := json.Unmarshal(m.params, &mcp.InitializeParams{}); {
	case errors.As(err, &mistyped):
		return invalidParams(fmt.Sprintf("%q must be no %s", mistyped.Field, mistyped.Value))
	case err != nil:
		return invalidParams("they are not those of initialize")
	}
	return nil
}

// errorText is the error response to the request with id; a nil id becomes null.
func errorText(id json.RawMessage, e *tool.RPCError) []byte {
	body := e.Raw
	if body == nil {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			return errorText(id, &tool.RPCError{Code: e.Code, Message: e.Message})
		}
		body = []byte(strings.TrimSuffix(b.String(), "\n"))
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), idOrNull(id)...)
	out = append(out, `,"error":`...)
	return append(append(out, body...), '}')
}

// notificationText is the notification method with params, where there are any.
func notificationText(method string, params json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","method":`), rawjson.Quote(method)...)
	if params != nil {
		out = append(append(out, `,"params":`...), params...)
	}
	return append(out, '}')
}

// requestText is the request method with params, where there are any.
func requestText(id json.RawMessage, method string, params json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(append(out, `,"method":`...), rawjson.Quote(method)...)
	if params != nil {
		out = append(append(out, `,"params":`...), params...)
	}
	return append(out, '}')
}

func idOrNull(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return id
}
