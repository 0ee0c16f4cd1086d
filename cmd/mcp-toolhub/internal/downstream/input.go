package downstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// inputRequired reads what a server of 2026-07-28 needs. It returns that as the attempt's client
// gets it, and the server's own requestState or nil. The error is a *tool.Failure, or a
// *tool.RPCError for the client.
func inputRequired(a *attempt, result json.RawMessage) (shown, serverState json.RawMessage, err error) {
	faulty := func(what string) error {
		return &tool.Failure{Class: tool.ClassExecutionFailed, Code: "invalid_input_required",
			Message: fmt.Sprintf("the server %q asks for input in a way that the protocol does not know (%s): do "+
				"without it, or "+
				"report it to the server's makers", a.server, what)}
	}
	in, err := tool.ReadInputRequired(result)
	if err != nil {
		return nil, nil, faulty(err.Error())
	}
	shown, err = rawjson.Set(result, "resultType", []byte(`"input_required"`))
	requests := in.Requests
	if requests == nil || err != nil {
		return shown, in.State, err
	}
	var lacks []*lack
	for _, q := range in.Questions {
		if l := cannot(a.peer.hop.ClientCapabilities, q); l != nil {
			if l.path == nil {
				return nil, nil, faulty(l.err.Message)
			}
			lacks = append(lacks, l)
		}
		if requests, err = labelledAmong(requests, a.server, q); err != nil {
			return nil, nil, faulty(err.Error())
		}
	}
	if len(lacks) > 0 {
		return nil, nil, missingCapabilities(lacks)
	}
	shown, err = rawjson.Set(shown, "inputRequests", requests)
	return shown, in.State, err
}

// lack is the reason why a client cannot be asked something.
type lack struct {
	path []string       // of the missing capability; nil where no capability would help
	err  *tool.RPCError // as the client itself would have answered
}

// cannot returns why a client of these capabilities cannot be asked, or nil. The errors are those
// of the protocol: "method not found" for what the client does not support, "invalid params" for a
// mode that it did not declare.
func cannot(capabilities json.RawMessage, question tool.Question) *lack {
	has := func(path ...string) bool { return tool.Declares(capabilities, path...) }
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
		// "For backwards compatibility, an empty capabilities object is equivalent to declaring
		// support for form mode only."
		if !has("elicitation", mode) && (mode != "form" || has("elicitation", "url")) {
			return missing(tool.CodeInvalidParams, "client does not support elicitation of mode "+mode, "elicitation",
				mode)
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

// missingCapabilities returns the error of 2026-07-28 for a call that needs what the client did not declare.
func missingCapabilities(lacks []*lack) *tool.RPCError {
	required, message := map[string]any{}, ""
	for _, l := range lacks {
		message = cmp.Or(message, l.err.Message)
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
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": required}) // nothing but texts: they always encode
	return &tool.RPCError{Code: tool.CodeMissingCapabilities, Data: data,
		Message: "the server has to ask something first: " + message + ", or did not declare it in this request"}
}

// labelled returns question as the client gets it: an elicitation tells the person which server
// asks, the rest stays byte for byte. It does so on a direct view, too: there the hub's own
// questions must not be mistaken for the server's.
func labelled(server string, question tool.Question) tool.Question {
	server = cmp.Or(question.Server, server)
	if question.Method != tool.MethodElicit || question.Own {
		return question
	}
	params := question.Params
	if !rawjson.IsObject(params) {
		params = json.RawMessage(`{}`)
	}
	message := []byte(`"[` + server + `]"`) // of a server that says nothing
	if given, ok := rawjson.Get(params, "message"); ok && len(given) > 1 && given[0] == '"' {
		message = append([]byte(`"[`+server+`] `), given[1:]...)
	}
	var err error
	if question.Params, err = rawjson.Set(params, "message", message); err != nil {
		question.Params = append(append([]byte(`{"message":`), message...), '}')
	}
	return question
}

// labelledAmong returns inputRequests with q, which is one of them, as the client gets it.
func labelledAmong(requests json.RawMessage, server string, q tool.Question) (json.RawMessage, error) {
	if q.Method != tool.MethodElicit {
		return requests, nil
	}
	return rawjson.SetIn(requests, labelled(server, q).Params, q.Key, "params")
}

// labelledError returns err as the client gets it: elicitations in it tell which server asks.
func labelledError(server string, err *tool.RPCError) *tool.RPCError {
	if err.Code != tool.CodeURLElicitationRequired || err.Own {
		return err
	}
	list, _ := rawjson.Get(err.Data, "elicitations")
	var all [][]byte
	bad := rawjson.Elements(list, func(e []byte) bool {
		if rawjson.IsObject(e) {
			e = labelled(server, tool.Question{Method: tool.MethodElicit, Params: e}).Params
		}
		all = append(all, e)
		return true
	})
	if bad != nil || len(all) == 0 {
		return err
	}
	changed := *err
	if changed.Data, bad = rawjson.Set(err.Data, "elicitations",
		fmt.Appendf(nil, "[%s]", bytes.Join(all, []byte(",")))); bad != nil {
		return err
	}
	if err.Raw != nil {
		if changed.Raw, bad = rawjson.Set(err.Raw, "data", changed.Data); bad != nil {
			return err
		}
	}
	return &changed
}
