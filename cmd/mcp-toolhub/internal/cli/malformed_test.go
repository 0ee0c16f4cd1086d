package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// malformedCalls are requests tools/call that are none. Of a tool that they name the records say so, too.
var malformedCalls = []struct {
	params string    // META stands for what the revision wants in _meta; "" leaves the member out
	tool   tool.Name // in the records
	says   string    // the error, up to 2025-11-25; later ones may miss a header, or who is asking
}{
	{``, tool.UnknownTool, "-32602 invalid params: params are missing"},
	{`null`, tool.UnknownTool, "-32602 invalid params: params are missing"},
	{`[]`, tool.UnknownTool, "-32600 invalid request: params must be an object"},
	{`["mcp.s.echo",{}]`, tool.UnknownTool, "-32600 invalid request: params must be an object"},
	{`"mcp.s.echo"`, tool.UnknownTool, "-32600 invalid request: params must be an object"},
	{`7`, tool.UnknownTool, "-32600 invalid request: params must be an object"},
	{`true`, tool.UnknownTool, "-32600 invalid request: params must be an object"},
	{`{META}`, tool.UnknownTool, `-32602 invalid params: "name" must be a non-empty string`},
	{`{"name":"",META}`, tool.UnknownTool, `-32602 invalid params: "name" must be a non-empty string`},
	{`{"name":null,META}`, tool.UnknownTool, `-32602 invalid params: "name" must be a non-empty string`},
	{`{"name":["mcp.s.echo"],META}`, tool.UnknownTool, `-32602 invalid params: "name" must be a non-empty string`},
	{`{"Name":"mcp.s.echo",META}`, tool.UnknownTool, `-32602 invalid params: "name" must be a non-empty string`},
	{`{"name":"mcp.s.echo","arguments":[1],META}`, "mcp.s.echo", "-32602 arguments must be a JSON object"},
	{`{"name":"mcp.s.echo","arguments":"{}",META}`, "mcp.s.echo", "-32602 arguments must be a JSON object"},
	{`{"name":"mcp.s.echo","arguments":0,META}`, "mcp.s.echo", "-32602 arguments must be a JSON object"},
	{`{"name":"mcp.s.echo","_meta":7}`, "mcp.s.echo", `-32602 invalid params: "_meta" must be an object`},
	{`{"name":"mcp.s.echo","_meta":[]}`, "mcp.s.echo", `-32602 invalid params: "_meta" must be an object`},
	{`{"name":"mcp.s.echo",META},"params":{"name":"mcp.s.echo",META}`, "mcp.s.echo", `-32600 invalid request: member "params" occurs twice`},
	{`{"name":"mcp.s.echo",META},"jsonrpc":"1.0"`, "mcp.s.echo", `-32600 invalid request: member "jsonrpc" must be "2.0"`},
}

// refused is the answer to a request that was refused.
type refused struct {
	ID    json.RawMessage
	Error struct {
		Code    int
		Message string
		Data    struct {
			Invocation struct {
				ID string `json:"invocation_id"`
			} `json:"toolhub/invocation"`
		}
	}
}

// TestMalformedCalls sends requests tools/call that are malformed in every way, by clients of both generations over both transports. Each is
// one invocation that the error names, and that ends as validation_failed, with its event and content.
func TestMalformedCalls(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("die")}})},
		map[string]any{"policy": map[string]any{"mode": "accept_all", "rules": []any{map[string]any{"match": "mcp.s.die", "then": "deny"}}}})
	overCancelingClients(t, config, []string{"mcp.s.echo"}, func(c *canceling) {
		meta := strings.TrimSuffix(strings.TrimPrefix(c.w.params("", `"x":1`), "{"), "}")
		seen := 0
		for _, m := range malformedCalls {
			r := rawRequest{id: c.w.nextID(), method: "tools/call", params: strings.ReplaceAll(m.params, "META", meta)}
			if m.tool != tool.UnknownTool {
				r.name = string(m.tool)
			}
			answers := c.w.send(r)
			var got refused
			mustDecode(c.t, answers[len(answers)-1], &got)
			if said := fmt.Sprint(got.Error.Code, " ", got.Error.Message); len(answers) != 1 || string(got.ID) != r.id || said != m.says && (!c.w.modern() ||
				!slices.Contains([]int{tool.CodeInvalidRequest, tool.CodeInvalidParams, tool.CodeHeaderMismatch}, got.Error.Code)) {
				c.t.Errorf("%s: %s, want %s", r.params, answers, m.says)
			}
			records, results := c.recordsOf(got.Error.Data.Invocation.ID)
			if seen++; results != seen {
				c.t.Errorf("%s: %d of %d calls have a result", r.params, results, seen)
			}
			text, err := json.Marshal(records["tool_invocation"]["external_mappings"])
			if err != nil {
				c.t.Fatal(err)
			}
			last := records["tool_invocation"]
			if last["status"] != "validation_failed" || last["tool_id"] != string(m.tool) || !strings.Contains(string(text), `"jsonrpc_request_id":"`+r.id+`"`) {
				c.t.Errorf("%s: the invocation is %v", r.params, last)
			}
			result := records["tool_result"]
			if text, err = json.Marshal(result); err != nil {
				c.t.Fatal(err)
			}
			if result["status"] != "validation_failed" || result["is_error"] != true || !strings.Contains(string(text), `"error_class":"invalid_arguments"`) ||
				!strings.Contains(string(text), `"content":[{"text":`) || records["tool.invocation.validation_failed"] == nil || records["tool.invocation.started"] != nil {
				c.t.Errorf("%s: the result is %s; the event is %v", r.params, text, records["tool.invocation.validation_failed"])
			}
		}
		hidden := rawRequest{id: c.w.nextID(), method: "tools/call", params: `{"name":"mcp.s.die","_meta":7}`, name: "mcp.s.die"}
		var got refused
		mustDecode(c.t, c.w.send(hidden)[0], &got)
		records, _ := c.recordsOf(got.Error.Data.Invocation.ID)
		if last := records["tool_invocation"]; last["status"] != "denied" || last["tool_id"] != "mcp.s.die" || records["tool_permission_decision"] == nil {
			c.t.Errorf("a malformed call of a hidden tool is %v", last)
		}
		c.w.result("mcp.s.echo", `{}`, "") // the connection goes on
		checkRecords(c.t, filepath.Join(c.state, "journal"), seen+2)
	})
}

// recordsOf are the records of an invocation, by kind, and its events by type; the last of each counts. results are those of all calls.
func (c *canceling) recordsOf(invocation string) (last map[string]map[string]any, results int) {
	c.t.Helper()
	last = map[string]map[string]any{}
	err := persist.Read(filepath.Join(c.state, "journal"), func(line json.RawMessage) bool {
		var r map[string]any
		mustDecode(c.t, string(line), &r)
		kind, _ := r["object"].(string)
		if kind == "tool_result" {
			results++
		}
		if r["invocation_id"] != invocation {
			return true
		}
		if event, ok := r["event_type"].(string); ok {
			kind = event
		}
		last[kind] = r
		return true
	})
	if err != nil {
		c.t.Error(err)
	}
	return last, results
}
