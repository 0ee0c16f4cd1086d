package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// passing is a tool of a server of 2026-07-28 that needs two rounds.
func passing(seen chan<- string) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		state, _ := rawjson.Get(e.Params, "requestState")
		responses, _ := rawjson.Get(e.Params, "inputResponses")
		seen <- string(state) + string(responses)
		reply := tool.Reply{NeedsInput: true, Mapping: tool.ExternalMapping{Source: "mcp", Role: "upstream",
			ProtocolVersion: "2026-07-28"}}
		switch string(state) {
		case "":
			reply.Result = json.RawMessage(`{"x":1e400,"inputRequests":{"a":{"method":"elicitation/create","y":1,"params":{"mode":"url","url":"u","message":"go"}},` +
				`"b":{"method":"roots/list"}},"requestState":"\u0061<","resultType":"input_required"}`)
		case `"\u0061<"`:
			reply.Result = json.RawMessage(`{"resultType":"input_required","requestState":"second"}`)
		default:
			reply.NeedsInput, reply.Result = false, json.RawMessage(`{"content":[],"resultType":"complete"}`)
		}
		return reply, nil
	}
}

func TestInputRequiredPassesThrough(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"stdio", "http"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 10)
			f := &far{execute: passing(seen)}
			s := newServer(t, Config{Version: "v"}, f)
			c := overStdio(t, s)
			if door == "http" {
				c = overHTTP(t, serve(t, s)+"/mcp")
			}
			got := c.call("mcp.s.echo", `{}`, "")
			asked, with := input(t, got)
			if asked != `{"a":{"method":"elicitation/create","y":1,"params":{"mode":"url","url":"u","message":"[s] go"}},"b":{"method":"roots/list"}}` ||
				!strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"x":1e400,"inputRequests":`) ||
				strings.Contains(got, "u0061") {
				t.Errorf("result %s", got)
			}
			got = c.call("mcp.s.echo", `{}`, with(`{"a":{"action":"accept"},"b":{"roots":[]}}`))
			if !strings.Contains(got, `{"invocation_id":"INV","status":"needs_input"}`) {
				t.Errorf("result %s", got)
			}
			_, with = input(t, got)
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"result":{"content":[],"resultType":"complete","_meta":{"toolhub/invocation":`+
				`{"invocation_id":"INV","status":"succeeded","output":"empty"},%s}}}`, serverInfoMember)
			if got := c.call("mcp.s.echo", `{}`, with("")); got != want {
				t.Errorf("result %s", got)
			}
			close(seen)
			var all []string
			for one := range seen {
				all = append(all, one)
			}
			if got := strings.Join(all, " "); got != ` "\u0061<"{"a":{"action":"accept"},"b":{"roots":[]}} "second"` {
				t.Errorf("the server saw %s", got)
			}
			records := f.recordsOf(t)
			if len(records) != 1 {
				t.Errorf("%d invocations", len(records))
			}
			for _, r := range records {
				if got := fmt.Sprint(r["status_transitions"]); strings.Count(got, "needs_input") != 2 ||
					len(r["external_mappings"].([]any)) != 6 {
					t.Errorf("invocation %v", r)
				}
			}
		})
	}
}

// needing is a tool whose server of 2026-07-28 answers so at first, and completes then.
func needing(result string) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		if _, again := rawjson.Get(e.Params, "inputResponses"); again {
			_, state := rawjson.Get(e.Params, "requestState")
			return tool.Reply{Result: json.RawMessage(fmt.Sprintf(`{"content":[],"state":%v}`, state))}, nil
		}
		return tool.Reply{Result: json.RawMessage(result), NeedsInput: true}, nil
	}
}

func TestWhatCannotPassThrough(t *testing.T) {
	t.Parallel()
	ask := func(requests string) string {
		return `{"resultType":"input_required","inputRequests":` + requests + `}`
	}
	for _, c := range []struct{ result, capabilities, want string }{
		{ask(`{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url"}}}`),
			`{"elicitation":{}}`,
			`"code":-32021,"message":"the server has to ask something first: client does not support roots, or did not declare it in this request",` +
				`"data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}},"toolhub/invocation":{"invocation_id":`},
		{ask(`{"a":{"method":"sampling/createMessage","params":{"tools":[]}}}`), `{"sampling":{}}`,
			`"data":{"requiredCapabilities":{"sampling":{"tools":{}}},"toolhub/invocation"`},
		{ask(`{"a":{"method":"no/such"}}`), allCapabilities, `"isError":true`},
		{ask(`{"a":{"method":"elicitation/create","params":{"mode":"telepathy"}}}`), allCapabilities, `"isError":true`},
		{ask(`{"a":{"method":"roots/list"},"a":{"method":"sampling/createMessage"}}`), allCapabilities, `two members`},
		{ask(`[]`), allCapabilities, `inputRequests is no object`},
		{ask(`{"a":7}`), allCapabilities, `"isError":true`},
		{`{"resultType":"input_required"}`, allCapabilities, `neither inputRequests nor a requestState`},
		{`{"resultType":"input_required","requestState":7}`, allCapabilities, `no string`},
		{`7`, allCapabilities, `"isError":true`},
	} {
		f := &far{execute: needing(c.result)}
		s := newServer(t, Config{}, f)
		w := overStdio(t, s)
		w.capabilities = c.capabilities
		if got := w.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.result, got)
		}
		if s.Health().Waiting != 0 {
			t.Errorf("%s: the call waits", c.result)
		}
		f.recordsOf(t)
	}
}

func FuzzInputRequired(f *testing.F) {
	f.Add([]byte(`{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"x"}`))
	f.Add([]byte(`{"inputRequests":{"a":{"method":"roots/list"}}}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		if !rawjson.Valid(result) || !rawjson.IsObject(result) {
			return
		}
		on := &attempt{peer: &peer{profile: "default",
			hop: tool.Hop{ClientCapabilities: json.RawMessage(allCapabilities)}}, server: "s"}
		shown, _, err := inputRequired(on, result)
		if err != nil {
			return
		}
		if !rawjson.Valid(shown) {
			t.Fatalf("%s becomes %s", result, shown)
		}
		var got struct {
			InputRequests map[string]struct {
				Method string
				Params struct{ Message string }
			}
		}
		if json.Unmarshal(shown, &got) != nil {
			return
		}
		for key, q := range got.InputRequests {
			if q.Method == tool.MethodElicit && !strings.HasPrefix(q.Params.Message, "[s]") {
				t.Errorf("%s: %q does not say who asks: %s", result, key, shown)
			}
		}
	})
}

// TestNullMetaStays: a server may write "_meta": null, which the hub neither fills nor removes.
func TestNullMetaStays(t *testing.T) {
	t.Parallel()
	c := overStdio(t, newServer(t, Config{Version: "v"}, &far{execute: func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(`{"_meta":null,"content":[]}`)}, nil
	}}))
	if got := c.call("mcp.s.echo", `{}`, ""); got != `{"jsonrpc":"2.0","id":1,"result":{"_meta":null,"content":[],"resultType":"complete"}}` {
		t.Errorf("result %s", got)
	}
}
