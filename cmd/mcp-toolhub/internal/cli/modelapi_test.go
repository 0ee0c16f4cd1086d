//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// modelTools are the tools in a request to a model's API, of whichever vendor.
type modelTools []struct {
	Name     string                // Anthropic, and OpenAI's responses
	Function struct{ Name string } // OpenAI's chat completions
}

// modelCall is a call of a scripted model: of the tool whose name ends in name, with args. args gets the message with the
// result of the call before.
type modelCall struct {
	name string
	args func(last string) string
}

// modelAPI is an API of OpenAI and of Anthropic with a scripted model: it makes the calls, and then says what the last one
// answered. A request with a tool's name that the vendor refuses is answered as the vendor does.
func modelAPI(t *testing.T, calls ...modelCall) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var asked struct {
			Tools           modelTools
			Messages, Input []json.RawMessage
		}
		mustDecode(t, string(body), &asked)
		style, known := modelStyles()[r.URL.Path]
		if !known {
			t.Errorf("a request to %s", r.URL.Path)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		messages := append(asked.Messages, asked.Input...)
		last, answered := string(messages[len(messages)-1]), 0
		for _, m := range messages {
			answered += strings.Count(string(m), style.result)
		}
		name := ""
		for i, tl := range asked.Tools {
			own := tl.Name + tl.Function.Name
			if !style.names.MatchString(own) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`,
					fmt.Sprintf(style.refusal, i, own, style.names))
				return
			}
			if answered < len(calls) && strings.HasSuffix(own, calls[answered].name) {
				name = own
			}
		}
		if answered >= len(calls) {
			_, _ = fmt.Fprintf(w, style.text, quoted(last))
			return
		}
		args := calls[answered].args(last)
		_, _ = fmt.Fprintf(w, style.call, quoted(name), map[bool]string{true: quoted(args), false: args}[style.quotes])
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// modelStyle is how one API speaks.
type modelStyle struct {
	names   *regexp.Regexp // that tools may have
	refusal string         // of index, name and pattern
	result  string         // what a message with the result of a tool holds
	call    string         // an answer that calls a tool: of name and arguments
	quotes  bool           // arguments are a string
	text    string         // an answer with a text
}

func modelStyles() map[string]modelStyle {
	openAI := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	const refusal = "Invalid 'tools[%d].name': %q does not match pattern %s"
	return map[string]modelStyle{
		"/v1/chat/completions": {names: openAI, refusal: refusal, result: `"role":"tool"`, quotes: true,
			call: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":%s,"arguments":%s}}]}}]}`,
			text: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":` +
				`{"role":"assistant","content":%s}}]}`},
		"/v1/responses": {names: openAI, refusal: refusal, result: `"type":"function_call_output"`, quotes: true,
			call: `{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"function_call","id":"fc_1",` +
				`"call_id":"call_1","status":"completed","name":%s,"arguments":%s}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
			text: `{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"message","id":"m_1",` +
				`"role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}],` +
				`"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`},
		"/v1/messages": {names: regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`), result: `"type":"tool_result"`,
			refusal: "tools.%d.custom.name: %q: String should match pattern '%s'",
			call: `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t_1","name":%s,"input":%s}],` +
				`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
			text: `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],` +
				`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`},
	}
}
