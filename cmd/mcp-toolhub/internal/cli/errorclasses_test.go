//go:build e2e

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// failing is a call that fails with some class.
type failing struct {
	profile, tool, args string
	code                string // its error_code
	native              string // the server's JSON-RPC error as records have it; "" for none
	retry               float64
	of                  string // the tool whose record says so; default tool
}

// errorSecret is a secret of a server's entry, which its errors repeat.
const errorSecret = "sk-9f86d081884c7d659a2feaa0c55ad015"

// failingCalls are calls that make each class that the hub can make.
func failingCalls() map[string]failing {
	fails := func(code, data string) (args string) {
		return `{"error":{"code":` + code + `,"message":"no","data":` + data + `}}`
	}
	return map[string]failing{
		"unknown_tool": {tool: "mcp.s.nothing", args: `{}`, of: "hub.unknown_tool", code: "tool_not_available",
			native: `{"code":-32602,"message":"unknown tool \"mcp.s.nothing\": list the tools and use a name from there"}`},
		"invalid_arguments":        {tool: "mcp.s.fail", args: fails("-32602", `["`+errorSecret+`"]`), code: "upstream_error", native: `{"code":-32602,"data":["[masked]"],"message":"no"}`},
		"schema_validation_failed": {tool: "mcp.s.typed", args: `{"path":7}`, code: "schema_validation_failed"},
		"schema_not_loaded":        {profile: "later", tool: "mcp.s.echo", args: `{}`, code: "schema_not_loaded"},
		"permission_denied":        {tool: "mcp.s.echo", args: `{"text":"denied"}`, code: "permission_denied"},
		"approval_rejected":        {tool: "mcp.s.asked", args: `{}`, code: "approval_rejected"},
		"policy_blocked":           {tool: "mcp.s.typed", args: `{"path":"a\u0000b"}`, code: "policy_blocked"},
		"hook_blocked":             {tool: "mcp.s.echo", args: `{"text":"hooked"}`, code: "hook_blocked"},
		"capability_gap":           {tool: "mcp.s.fail", args: fails("-32601", "1"), code: "upstream_error", native: `{"code":-32601,"data":1,"message":"no"}`},
		"setup_required":           {tool: "declarative.absent", args: `{}`, code: "program_not_found"},
		"credential_missing":       {tool: "mcp.locked.echo", args: `{}`, code: "http_401", native: `{"code":-32001,"data":[7],"message":"who are you?"}`},
		"sandbox_violation":        {tool: "code.run_command", args: `{"argv":["true"],"cwd":"/"}`, code: "sandbox_violation"},
		"timeout":                  {tool: "mcp.slow.hang", args: `{}`, code: "timeout"},
		"rate_limited": {tool: "mcp.busy.echo", args: `{}`, code: "http_429", retry: 1000,
			native: `{"body":"too many requests","content_type":"text/plain; charset=utf-8","http_status":429}`},
		"dependency_unavailable": {tool: "mcp.resets.echo", args: `{}`, code: "connection_lost"},
		"execution_failed":       {tool: "mcp.s.fail", args: fails("-32000", `{"x":[1]}`), code: "upstream_error", native: `{"code":-32000,"data":{"x":[1]},"message":"no"}`},
		"partial_failure":        {tool: "tool_batch", args: `{"calls":[{"id":"a","name":"mcp.s.echo"},{"id":"b","name":"mcp.s.nothing"}]}`, code: "tool_error"},
		"result_too_large":       {tool: "mcp.s.big", args: `{"bytes":100000}`, code: "message_too_large"},
		"result_redacted":        {tool: "mcp.s.echo", args: `{"text":"https://ann:hunter2@h/"}`, code: "result_redacted"},
		"sibling_canceled": {tool: "tool_batch", args: `{"calls":[{"id":"a","name":"mcp.s.nothing"},{"id":"b","name":"mcp.s.echo","depends_on":["a"]}]}`,
			of: "mcp.s.echo", code: "sibling_canceled"},
		"streaming_fallback_discarded": {tool: "mcp.s.hang", code: "streaming_fallback_discarded"},
		"canceled":                     {tool: "mcp.s.hang", code: "canceled"},
	}
}

// errorsHub starts a hub on which failingCalls fail.
func errorsHub(t *testing.T) (h *runningHub, dir string) {
	t.Helper()
	dir = t.TempDir()
	tools := filepath.Join(dir, "config", "mcp-toolhub", "tools")
	if err := os.MkdirAll(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(tools, "absent.json"), `{"name":"absent","description":"Is not there.","input_schema":{"type":"object"},
		"permission":"readonly","command":"no-such-program-anywhere"}`)
	typed := json.RawMessage(`{"name":"typed","description":"Writes a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`)
	s := child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("fail"), upstreamtest.Tool("hang"),
		upstreamtest.Tool("big"), upstreamtest.Tool("asked"), typed}})
	s["env"].(map[string]any)["API_TOKEN"] = errorSecret
	over := func(intercept func(http.ResponseWriter, *http.Request, []byte) bool) map[string]any {
		return map[string]any{"url": fakeHTTP(t, upstreamtest.Options{Intercept: intercept})}
	}
	locked := func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"tools/call"`) {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"who are you?","data":[7]}}`)
		return true
	}
	says := func(text string) string { return `has(arguments.text) && arguments.text == "` + text + `"` }
	config := configText(t, map[string]any{
		"s":      with(s, "limits", map[string]any{"message": "64KiB"}),
		"slow":   with(child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("hang")}}), "timeout", "100ms"),
		"locked": with(over(locked), "headers", map[string]any{"Authorization": "Bearer " + errorSecret}), "busy": over(upstreamtest.LimitsRate.Intercept("tools/call")), "resets": over(upstreamtest.Resets.Intercept("tools/call")),
	}, map[string]any{
		"hub":      map[string]any{"toolsets": map[string]any{"code": map[string]any{"run_command": map[string]any{}}, "declarative": map[string]any{}}},
		"profiles": map[string]any{"later": map[string]any{"deferred": map[string]any{"mode": "always"}}},
		"results":  map[string]any{"tools": []any{map[string]any{"match": "mcp.s.echo", "redact": "block"}}},
		"hooks":    []any{map[string]any{"event": "pre_tool_use", "match": "mcp.s.echo", "require": "!(" + says("hooked") + ")", "reason": "not that"}},
		"policy": map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"client"}}, "rules": []any{
			map[string]any{"match": "mcp.s.echo", "when": says("denied"), "then": "deny"},
			map[string]any{"match": "mcp.s.asked", "then": "ask"}, map[string]any{"match": "*", "then": "allow"}}},
	})
	file := filepath.Join(dir, "hub.json")
	writeFile(t, file, config)
	h, err := launch(dir, scratchEnv(dir), "--config", file, "--state-dir", filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		checkRecordsBeneath(t, dir)
	})
	return h, dir
}

// TestEveryErrorClass holds that the hub makes every class, through the real program: with the code, the
// recoverability, when to call again where that is known, the server's whole error, and the sentence for the model. A class that has no
// call here fails the test.
func TestEveryErrorClass(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../../../docs/errors.md")
	next := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([A-Z][^|]+) \\|$").FindAllStringSubmatch(page, -1) {
		next[row[1]] = row[2]
	}
	h, dir := errorsHub(t)
	calls := failingCalls()
	w := wireHTTP(t, h.url+"/mcp", rev2025).able().open()
	deferring := wireHTTP(t, h.url+"/mcp/p/later", rev2025).open()
	c := &canceling{t: t, w: w, hub: h, state: filepath.Join(dir, "state")}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([a-z_]+)` \\| `([a-z_]+)` \\| (.*) \\| (.*)\\|$").FindAllStringSubmatch(page, -1)
	if len(rows) != 22 {
		t.Fatalf("docs/errors.md names %d classes", len(rows))
	}
	for _, row := range rows {
		class, status, recoverability := row[1], row[2], row[3]
		call, made := calls[class]
		if !made {
			t.Errorf("no call makes %s", class)
			continue
		}
		if call.code != class && !strings.Contains(row[5], "`"+call.code+"`") {
			t.Errorf("docs/errors.md does not name the code %s of %s", call.code, class)
		}
		answer := ""
		switch class {
		case "canceled", "streaming_fallback_discarded":
			why := ""
			if class != "canceled" {
				why = `,"_meta":{"toolhub/abort_reason":"streaming_fallback"}`
			}
			r := w.call("tool_batch", `{"calls":[{"id":"a","name":"mcp.s.hang","arguments":{"begin":true}}]}`, `"progressToken":"p"`)
			c.cancelWith(r, c.begin(r), why)
			eventually(t, "the call has ended", func() bool { last, _, _ := c.records(call.tool); return last["tool_result"] != nil })
		case "schema_not_loaded":
			answer = deferring.send(deferring.call(call.tool, call.args, ""))[0]
		default:
			answer = (&exchange{w: w, answer: answerWith("deny_once", "")}).call(call.tool, call.args)
		}
		if call.of == "" {
			call.of = call.tool
		}
		checkFailure(t, c, class, status, recoverability, call)
		if shown := strings.Contains(answer, `"next":`); shown && !strings.Contains(answer, `"next":`+quoted(next[class])) {
			t.Errorf("%s: the client gets %s", class, answer)
		} else if inResult := call.native == "" && call.code != "tool_error" && class != "unknown_tool" && call.of == call.tool && answer != ""; inResult && !shown {
			t.Errorf("%s: no sentence says what to do: %s", class, answer)
		}
		if next[class] == "" || strings.Count(next[class], ". ") > 0 {
			t.Errorf("%s: %q is no sentence for a model", class, next[class])
		}
	}
}

// checkFailure looks at the last record of a tool.
func checkFailure(t *testing.T, c *canceling, class, status, recoverability string, call failing) {
	t.Helper()
	last, _, _ := c.records(call.of)
	result := last["tool_result"]
	failure, _ := result["error"].(map[string]any)
	if result["status"] != status || failure["error_class"] != class || failure["error_code"] != call.code || failure["recoverability"] != recoverability {
		t.Errorf("%s: the record of %s says %v", class, call.of, result)
	}
	if after, _ := failure["retry_after_ms"].(float64); after != call.retry {
		t.Errorf("%s: retry_after_ms is %v", class, failure["retry_after_ms"])
	}
	native := ""
	if failure["native_error_ref"] != nil {
		text, err := json.Marshal(failure["native_error_ref"])
		if err != nil {
			t.Fatal(err)
		}
		native = string(text)
	}
	if native != call.native {
		t.Errorf("%s: the server's error is recorded as %s", class, native)
	}
}
