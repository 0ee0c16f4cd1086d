package downstream

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// lack is why a client cannot be asked something.
type lack struct {
	path []string       // of the missing capability; nil where no capability would help
	err  *tool.RPCError // as the client itself would have answered
}

// cannot returns why a client of these capabilities cannot be asked, or nil. The errors are those that the protocol wants
// of a client: "method not found" for what it does not support at all, "invalid params" for a mode that it did not declare.
func cannot(capabilities json.RawMessage, question tool.Question) *lack {
	has := func(path ...string) bool {
		at := capabilities
		for _, name := range path {
			if !rawjson.IsObject(at) {
				return false
			}
			at, _ = rawjson.Get(at, name)
		}
		return rawjson.IsObject(at)
	}
	missing := func(code int64, message string, path ...string) *lack {
		return &lack{path, &tool.RPCError{Code: code, Message: message}}
	}
	switch question.Method {
	case tool.MethodRoots:
		if !has("roots") {
			return missing(tool.CodeMethodNotFound, "client does not support roots", "roots")
		}
	case tool.MethodSample:
		if !has("sampling") {
			return missing(tool.CodeMethodNotFound, "client does not support sampling", "sampling")
		}
		if (present(question.Params, "tools") || present(question.Params, "toolChoice")) && !has("sampling", "tools") {
			return missing(tool.CodeInvalidParams, "client does not support sampling with tools", "sampling", "tools")
		}
	case tool.MethodElicit:
		mode := "form"
		if raw, ok := rawjson.Get(question.Params, "mode"); ok {
			if mode, ok = rawjson.String(raw); !ok || mode != "form" && mode != "url" {
				return missing(tool.CodeInvalidParams, "elicitation: unknown mode")
			}
		}
		if !has("elicitation") {
			return missing(tool.CodeMethodNotFound, "client does not support elicitation", "elicitation", mode)
		}
		// "For backwards compatibility, an empty capabilities object is equivalent to declaring support for form mode only."
		if !has("elicitation", mode) && (mode != "form" || has("elicitation", "url")) {
			return missing(tool.CodeInvalidParams, "client does not support elicitation of mode "+mode, "elicitation", mode)
		}
	default:
		return missing(tool.CodeMethodNotFound, fmt.Sprintf("the hub does not know the method %q", question.Method))
	}
	return nil
}

func present(object json.RawMessage, name string) bool {
	v, ok := rawjson.Get(object, name)
	return ok && !rawjson.IsNull(v)
}

// missingCapabilities is the error of 2026-07-28 for a call that needs what the client did not declare.
func missingCapabilities(lacks []*lack) *tool.RPCError {
	required, message := map[string]any{}, ""
	for _, l := range lacks {
		if message == "" {
			message = l.err.Message
		}
		at := required
		for _, name := range l.path {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		data = nil
	}
	return &tool.RPCError{Code: tool.CodeMissingCapabilities, Data: data,
		Message: "the server has to ask something first: " + message + ", or did not declare it in this request"}
}
