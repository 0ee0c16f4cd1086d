// Package jsonrpc models JSON-RPC 2.0 messages as they travel: on lines, in event streams and in HTTP bodies.
//
// It reads the members of a message and leaves their bytes as they are. Servers' messages are read
// leniently (Read), clients' strictly (Parse). What a method means is left to the callers.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Message is one JSON-RPC message. Its parts alias the text and are never written to. Members that are absent are nil.
type Message struct {
	Text                  []byte
	ID                    json.RawMessage // as written
	Method                string          // "" for a response
	Params, Result, Error json.RawMessage

	Kind  Kind
	Valid bool // the whole message is well-formed JSON, and UTF-8
	// offset from 1 of the first byte that is not UTF-8, in a message that is well-formed JSON
	// otherwise; else 0
	NotUTF8 int

	// Object is Result of a message of Read, and Params of one of Parse, as it was read; the zero
	// value where that is no object.
	Object rawjson.Object

	// Fault is the answer that JSON-RPC wants to a message of Parse that is malformed, or to another
	// one that is going to be refused and goes its way all the same. Nil: there is none.
	Fault *tool.RPCError
}

// Kind tells requests, notifications and responses apart.
type Kind int

const (
	None Kind = iota // no JSON-RPC message
	Response
	Request
	Notification
)

// IsRequest reports whether a message of Parse is a request.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsResponse reports whether a message of Parse is a response.
func (m *Message) IsResponse() bool { return m.Method == "" && m.ID != nil }

// envelope holds the members of a message that are not its parts.
type envelope struct {
	version, method json.RawMessage // as written; nil where absent
	isVersion2      bool
	twice           string // a member that must not occur twice, and does
	isObject        bool   // the text is an object, as far as it was read
}

// read reads the members of a message into m. Of members that occur twice, the last one counts.
func (m *Message) read(text []byte) (found envelope) {
	m.Text = text
	if rawjson.Valid(text) {
		m.NotUTF8 = rawjson.NotUTF8(text) + 1
		m.Valid = m.NotUTF8 == 0
	}
	found.isObject = rawjson.Members(text, func(member rawjson.Member) bool {
		var part *json.RawMessage
		switch name := member.Decoded(); string(name) {
		case "jsonrpc":
			part = &found.version
		case "id":
			part = &m.ID
		case "method":
			part = &found.method
		case "params":
			part = &m.Params
		case "result":
			m.Result = member.Value
		case "error":
			m.Error = member.Value
		}
		if part == nil {
			return true
		}
		if *part != nil {
			found.twice = member.Name()
		}
		*part = member.Value
		return true
	}) == nil
	m.Method, _ = rawjson.String(found.method)
	if found.isVersion2 = string(found.version) == `"2.0"`; !found.isVersion2 { // or with escapes
		version, _ := rawjson.String(found.version)
		found.isVersion2 = version == "2.0"
	}
	return found
}

// Read reads a message leniently. Where it is malformed in its values alone, it has a kind, and Valid is false. A
// response may lack its version.
func Read(text []byte) (m Message) {
	found := m.read(text)
	answers := found.version == nil && found.method == nil && m.ID != nil && (m.Result != nil || m.Error != nil)
	switch {
	case !found.isObject || !found.isVersion2 && !answers:
		return Message{Text: text}
	case found.method != nil && rawjson.IsNull(m.ID):
		m.Kind = Notification
	case found.method != nil:
		m.Kind = Request
	case m.ID != nil || m.Error != nil:
		m.Kind = Response
		if m.Valid {
			m.Object, _ = rawjson.ReadObject(m.Result)
		}
	default:
		return Message{Text: text}
	}
	return m
}

// Within returns the messages that stand in a text which is none itself: behind a byte order mark
// or words, or one after the other. What stands in another object is none.
func Within(text []byte) (all []Message) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) { // UTF-16
		text = bytes.ReplaceAll(text, []byte{0}, nil)
	}
	for i := bytes.IndexByte(text, '{'); i >= 0; i = bytes.IndexByte(text, '{') {
		end := rawjson.SkipValue(text, i)
		if end == i {
			return all
		}
		if m := Read(text[i:end]); m.Kind != None {
			all = append(all, m)
		}
		text = text[end:]
	}
	return all
}

// Parse reads a message strictly. Of a text that is none, the message has a Fault, and what could be read.
func Parse(text []byte) *Message {
	m := &Message{}
	found := m.read(text)
	if !m.Valid {
		return unreadable(text)
	}
	if !found.isObject {
		m.Fault = InvalidRequest("a message must be a JSON object")
		return m
	}
	fault := ""
	switch {
	case !found.isVersion2:
		fault = `member "jsonrpc" must be "2.0"`
	case !IsID(m.ID):
		fault = "id must be a string or a number"
	case found.twice != "":
		fault = fmt.Sprintf("member %q occurs twice", found.twice)
	case found.method != nil && m.Method == "":
		fault = "method must be a non-empty string"
	case m.Params != nil && !rawjson.IsObject(m.Params) && !rawjson.IsNull(m.Params):
		fault = "params must be an object"
	}
	if !IsID(m.ID) {
		m.ID = nil
	}
	m.Object, _ = rawjson.ReadObject(m.Params)
	if fault != "" {
		m.Fault = InvalidRequest(fault)
	}
	return m
}

// unreadable refuses a text that is not JSON, or not UTF-8 ("JSON-RPC messages MUST be UTF-8
// encoded"). The message has the id of the request where that can be read.
func unreadable(text []byte) *Message {
	m := &Message{Text: text, Fault: &tool.RPCError{Code: tool.CodeParseError}}
	why := fmt.Sprintf("nested deeper than %d levels", rawjson.MaxDepth)
	if rawjson.Depth(text) <= rawjson.MaxDepth {
		if !rawjson.Valid(text) {
			m.Fault.Message = "parse error: not a JSON text"
			return m
		}
		why = fmt.Sprintf("not UTF-8 (byte %d of the message): send text as UTF-8", rawjson.NotUTF8(text))
	}
	_, asks := rawjson.Get(text, "method")
	if id, ok := rawjson.Get(text, "id"); ok && asks && IsID(id) && rawjson.Valid(id) && rawjson.NotUTF8(id) < 0 {
		m.ID = id
	}
	m.Fault.Message = "parse error: " + why
	return m
}

// IsID reports whether id may be the id of a request, or is nil: "Requests MUST include a string or
// integer ID. Unlike base JSON-RPC, the ID MUST NOT be null." JSON-RPC allows any number, and the
// hub gives any back as it came.
func IsID(id json.RawMessage) bool {
	return id == nil || id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

// InvalidRequest returns the error of a message that is no request.
func InvalidRequest(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidRequest, Message: "invalid request: " + what}
}

// RequestText returns the request method, with params unless they are nil. A nil id makes it a notification.
func RequestText(id json.RawMessage, method string, params json.RawMessage) []byte {
	out := append(make([]byte, 0, len(params)+len(id)+len(method)+64), `{"jsonrpc":"2.0",`...)
	if id != nil {
		out = append(append(append(out, `"id":`...), id...), ',')
	}
	out = rawjson.AppendQuote(append(out, `"method":`...), method)
	if params != nil {
		out = append(append(out, `,"params":`...), params...)
	}
	return append(out, '}')
}

// NotificationText returns the notification method, with params unless they are nil.
func NotificationText(method string, params json.RawMessage) []byte {
	return RequestText(nil, method, params)
}

// ResponseStart returns the response to the request with id up to its result.
func ResponseStart(id json.RawMessage) []byte {
	out := append(make([]byte, 0, len(id)+64), `{"jsonrpc":"2.0","id":`...)
	return append(append(out, id...), `,"result":`...)
}

// ErrorText returns the error response to the request with id. A nil id becomes null. An error
// object that was received stays as it is, where it is one.
func ErrorText(id json.RawMessage, e *tool.RPCError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":`...)
	if rawjson.IsObject(e.Raw) && rawjson.Valid(e.Raw) {
		return append(append(out, e.Raw...), '}')
	}
	out = strconv.AppendInt(append(out, `{"code":`...), e.Code, 10)
	out = append(append(out, `,"message":`...), rawjson.Quote(e.Message)...)
	if !rawjson.IsNull(e.Data) && rawjson.Valid(e.Data) {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, `}}`...)
}
