package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// idOf reads a JSON-RPC id, or a progress token, that may be one of the hub's: those are numbers. Some servers make a
// string of one.
func idOf(raw []byte) (id int64, ok bool) {
	id, err := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
	return id, err == nil
}

// isBadProgress reports whether a notifications/progress is malformed: it names no call or no
// progress, or is no well-formed JSON.
func isBadProgress(e jsonrpc.Message) bool {
	token, _ := rawjson.Get(e.Params, "progressToken")
	_, text := rawjson.String(token)
	progress, _ := rawjson.Get(e.Params, "progress")
	return !e.Valid || !text && !isNumber(token) || !isNumber(progress)
}

// isNumber reports whether a value of well-formed JSON is a number.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// answerOf turns a response to c into an answer. It must be valid in full, because the result goes on to clients inside
// other messages and must not be able to break them. But what a list holds is looked at one by one later on, so that an
// element which nests too deeply costs none of the others.
func (c *pendingRequest) answerOf(e jsonrpc.Message) response {
	if !e.Valid && c.isList() {
		if e.NotUTF8 > 0 {
			e.Valid, e.NotUTF8 = true, 0 // what is not UTF-8 in an element is replaced, and told, when that is admitted
		} else if rawjson.IsNull(e.Error) && rawjson.IsObject(e.Result) && rawjson.Depth(e.Text) > rawjson.MaxDepth {
			rest, err := rawjson.Set(e.Text, "result", []byte("{}"))
			if err == nil && rawjson.Valid(rest) && lists.ValidButDeep(e.Result) {
				return response{result: e.Result}
			}
		}
	}
	switch {
	case e.NotUTF8 > 0:
		return invalidAnswer(fmt.Sprintf("is not UTF-8 (byte %d of it)", e.NotUTF8-1))
	case !e.Valid:
		return invalidAnswer("is no well-formed JSON, or nested too deeply")
	case !rawjson.IsNull(e.Error):
		return errorAnswer(e.Error)
	case e.Result == nil:
		return invalidAnswer("has neither result nor error")
	case !rawjson.IsObject(e.Result):
		return invalidAnswer("has a result that is no object")
	}
	result, err := rawjson.Line(e.Result)
	if err != nil {
		return invalidAnswer("is no well-formed JSON")
	}
	if !bytes.Equal(result, e.Result) { // it was written as one line
		e.Object, _ = rawjson.ReadObject(result)
	}
	return response{result: result, object: e.Object}
}

func errorAnswer(raw []byte) response {
	var fields struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	line, err := rawjson.Line(raw)
	if err != nil || json.Unmarshal(line, &fields) != nil {
		return invalidAnswer("has an error that is no JSON-RPC error object")
	}
	code, err := fields.Code.Float64() // which may be written as 1.0
	if err != nil || code != math.Trunc(code) {
		return invalidAnswer("has an error whose code is no integer")
	}
	return response{err: &tool.RPCError{Code: int64(code), Message: fields.Message, Data: fields.Data, Raw: line}}
}

// passable is the answer of a server without what only the hub may say, and without the secrets of the server's entry.
func (e *entry) passable(a response) response {
	clean := func(raw []byte) []byte {
		if !e.cfg.Hub {
			raw = tool.WithoutOwn(raw)
		}
		return e.redact.Own(raw)
	}
	if result := clean(a.result); !bytes.Equal(result, a.result) {
		a.result = result
		a.object, _ = rawjson.ReadObject(result)
	}
	if rpc, ok := a.err.(*tool.RPCError); ok && rpc.Raw != nil {
		a.err = errorAnswer(clean(rpc.Raw)).err
	}
	return a
}

const codeInvalidResponse = "invalid_response"

func invalidAnswer(what string) response {
	return response{err: &tool.Failure{
		Class:          tool.ClassExecutionFailed,
		Code:           codeInvalidResponse,
		Message:        "the server's response " + what + ": report this to whoever maintains the server",
		OutcomeUnknown: true,
		Cause:          &unusableError{errors.New("it " + what)},
	}}
}

// cancelBody builds the notification that says nobody waits for the request id any more.
func cancelBody(id int64, reason string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","method":"`+tool.NoteCancelled+`","params":{"requestId":%d,"reason":`, id)
	b.Write(rawjson.Quote(reason))
	b.WriteString(`}}`)
	return b.Bytes()
}
