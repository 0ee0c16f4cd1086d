//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// hookEndpoint is a hook behind HTTP. It keeps what it is sent, and answers with what answer makes of that.
type hookEndpoint struct {
	url    string
	answer func(r *http.Request, call hookCall) string

	mu    sync.Mutex
	calls []hookCall
}

// hookCall is what a hook is sent, as far as the tests look at it.
type hookCall struct {
	Event     string          `json:"hook_event_name"`
	Tool      string          `json:"tool_name"`
	Input     map[string]any  `json:"tool_input"`
	Response  json.RawMessage `json:"tool_response"`
	Interrupt bool            `json:"is_interrupt"`
	Hub       struct {
		Class string `json:"error_class"`
	} `json:"toolhub"`
}

func startHookEndpoint(t *testing.T, answer func(*http.Request, hookCall) string) *hookEndpoint {
	e := &hookEndpoint{answer: answer}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var call hookCall
		if err == nil {
			err = json.Unmarshal(body, &call)
		}
		if err != nil || r.Header.Get("Authorization") != "Bearer 12" {
			t.Errorf("a hook is sent %s with %v, %v", body, r.Header, err)
		}
		e.mu.Lock()
		e.calls = append(e.calls, call)
		e.mu.Unlock()
		_, _ = io.WriteString(w, e.answer(r, call))
	}))
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// count is how many calls of a tool have come at the event.
func (e *hookEndpoint) count(event, tool string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		if c.Event == event && c.Tool == tool {
			n++
		}
	}
	return n
}

// sees reports whether a hook has seen a call of the tool with this text.
func (e *hookEndpoint) sees(tool, text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.calls, func(c hookCall) bool { return c.Tool == tool && c.Input["text"] == text })
}

// hooked is a config of the server s with the hook e at these events.
func (e *hookEndpoint) hooked(t *testing.T, tools []string, events ...string) string {
	var list []json.RawMessage
	for _, name := range tools {
		list = append(list, upstreamtest.Tool(name))
	}
	return configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: list})}, map[string]any{"hooks": []any{
		map[string]any{"event": events, "url": e.url, "headers": map[string]any{"Authorization": "Bearer 12"}}}})
}

// TestHooksOfManyCalls: a hook behind HTTP speaks to the client and the model, and each of 100 calls at once has its own runs of it.
func TestHooksOfManyCalls(t *testing.T) {
	t.Parallel()
	e := startHookEndpoint(t, func(_ *http.Request, c hookCall) string {
		if c.Event == "PreToolUse" {
			return fmt.Sprintf(`{"systemMessage":"a message for people","toolhub":{"progress":[{"message":"looking at %s","percent":40}]}}`, c.Input["text"])
		}
		if !strings.Contains(string(c.Response), fmt.Sprint(c.Input["text"])+`"`) {
			t.Errorf("the hook for %v sees %s", c.Input, c.Response)
		}
		return fmt.Sprintf(`{"hookSpecificOutput":{"additionalContext":"seen %s"}}`, c.Input["text"])
	})
	h := startHub(t, "hub.json", e.hooked(t, []string{"echo"}, "pre_tool_use", "post_tool_use"))
	w := wireHTTP(t, h.url+"/mcp", rev2025)
	w.open().awaitTools("mcp.s.echo")
	messages := strings.Join(w.send(w.call("mcp.s.echo", `{"text":"one"}`, `"progressToken":"p"`)), "\n")
	for _, want := range []string{`"method":"notifications/progress"`, `"progressToken":"p"`, `"message":"looking at one"`, `"text":"seen one"`} {
		if !strings.Contains(messages, want) {
			t.Errorf("the client gets no %s:\n%s", want, messages)
		}
	}
	if strings.Contains(messages, "for people") {
		t.Errorf("the client gets what is for people:\n%s", messages)
	}
	for _, want := range []string{`"outputs":[{"text":"a message for people","type":"message"},{"message":"looking at one","percent":40,"type":"progress"}]`,
		`,{"message":"looking at one","percent":40}]`} {
		if journal := readJournal(t, h.cmd.Dir); !strings.Contains(journal, want) {
			t.Errorf("the journal has no %s", want)
		}
	}
	var all sync.WaitGroup
	for i := range 100 {
		text := fmt.Sprintf("call %d", i)
		request := w.newRequest(w.call("mcp.s.echo", `{"text":"`+text+`"}`, ""))
		all.Go(func() {
			resp, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || strings.Count(string(body), `"text":"seen `) != 1 || !strings.Contains(string(body), `"text":"seen `+text+`"`) {
				t.Errorf("%s answers %s, %v", text, body, err)
			}
		})
	}
	all.Wait()
	if pre, post := e.count("PreToolUse", "mcp__s__echo"), e.count("PostToolUse", "mcp__s__echo"); pre != 101 || post != 101 {
		t.Errorf("101 calls have %d runs before and %d after them", pre, post)
	}
}

// TestHooksOfCanceledCalls: the hooks of a failure run for a call that is canceled while its tool runs, once. A call that is canceled
// while a hook runs ends at once, the hook with it, and its tool does not run.
func TestHooksOfCanceledCalls(t *testing.T) {
	t.Parallel()
	e := startHookEndpoint(t, func(r *http.Request, c hookCall) string {
		if c.Event == "PreToolUse" && c.Tool == "mcp__s__echo" {
			<-r.Context().Done()
		}
		if c.Event == "PostToolUseFailure" && (!c.Interrupt || c.Hub.Class != "canceled") {
			t.Errorf("the hook of a canceled call sees %+v", c)
		}
		return ""
	})
	config := e.hooked(t, []string{"echo", "hang"}, "pre_tool_use", "post_tool_use", "post_tool_use_failure")
	overCancelingClients(t, config, []string{"mcp.s.echo", "mcp.s.hang"}, func(c *canceling) {
		runs := c.w.call("mcp.s.hang", `{"begin":true}`, `"progressToken":"p"`)
		before := e.count("PostToolUseFailure", "mcp__s__hang")
		stop := c.begin(runs)
		c.cancel(runs, stop)
		c.ended("mcp.s.hang", "unknown")
		if e.count("PostToolUseFailure", "mcp__s__hang") <= before {
			t.Error("the hook of the failure has not run")
		}
		waits := c.w.call("mcp.s.echo", fmt.Sprintf(`{"text":%q}`, c.t.Name()), "")
		giveUp := c.send(waits)
		eventually(c.t, "the hook runs", func() bool { return e.sees("mcp__s__echo", c.t.Name()) })
		c.cancel(waits, giveUp)
		c.ended("mcp.s.echo", "not_begun")
	})
	t.Cleanup(func() { // after the four clients
		if hang, echo := e.count("PostToolUseFailure", "mcp__s__hang"), e.count("PostToolUse", "mcp__s__echo"); hang != 4 || echo != 0 {
			t.Errorf("the four calls that ran have %d runs after them, and those that did not %d", hang, echo)
		}
	})
}

// TestInternalArguments: an argument with "visibility":"internal", however deep, is in no list that a model sees, a caller that sends it is
// refused, and a hook sets it, which the records say. The server gets it. Where the hub cannot tell which argument it is, there is no tool.
func TestInternalArguments(t *testing.T) {
	t.Parallel()
	const secret = `{"type":"string","visibility":"internal"}`
	declared := json.RawMessage(`{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"tenant":` + secret + `,` +
		`"filter":{"type":"object","properties":{"owner":` + secret + `,"visibility":{"type":"string","default":"internal"}},"required":["owner"]},` +
		`"rows":{"type":"array","items":{"type":"object","properties":{"a/b":{"type":"object","properties":{"key":` + secret + `}}}}}},` +
		`"required":["tenant","text"],"additionalProperties":false}}`)
	tools := []json.RawMessage{declared}
	refused := map[string]string{ // input schema of a tool that is not there to why
		`"anyOf":[{"properties":{"tenant":` + secret + `}}]`:                                       `it stands beneath the keyword anyOf`,
		`"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":` + secret + `}`:                     `it stands beneath the keyword $defs`,
		`"properties":{"a":{"type":"array","items":` + secret + `}}`:                               `it is at "/a/*", which is no property of an object`,
		`"properties":{"tenant":` + secret + `},"anyOf":[{"required":["tenant"]}]`:                 `its keyword anyOf names "tenant"`,
		`"properties":{"tenant":` + secret + `,"a":{"$ref":"#/properties/tenant"}}`:                `without it the schema does not compile`,
		`"properties":{"a":{"properties":{"tenant":` + secret + `}}},"default":{"a":{"tenant":1}}`: `its keyword default names "tenant"`,
	}
	for schema := range refused {
		tools = append(tools, json.RawMessage(fmt.Sprintf(`{"name":"no%d","inputSchema":{"type":"object",%s}}`, len(tools), schema)))
	}
	op := func(path string) any { return map[string]any{"op": "add", "path": path, "value": "acme"} }
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: tools})}, map[string]any{"hooks": []any{
		map[string]any{"event": "pre_tool_use", "rewrite": []any{op("/tenant"), op("/filter/owner"), op("/rows/0/a~1b/key")}}}})
	state := filepath.Join(t.TempDir(), "state")
	h := startHub(t, "hub.json", config, "--state-dir", state)
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, h.url+"/mcp", version)
		w.open().awaitTools("mcp.s.echo")
		want := `"inputSchema":{"type":"object","properties":{"text":{"type":"string"},"filter":{"type":"object","properties":{` +
			`"visibility":{"type":"string","default":"internal"}},"required":[]},"rows":{"type":"array","items":{"type":"object","properties":{` +
			`"a/b":{"type":"object","properties":{}}}}}},"required":["text"],"additionalProperties":false}`
		if got := w.tools()["mcp.s.echo"]; !strings.Contains(got, want) {
			t.Errorf("a model sees %s, want %s", got, want)
		}
		for _, more := range []string{`"tenant":"evil"`, `"Tenant":"evil"`, `"filter":{"owner":1}`, `"FILTER":{"owner":1}`, `"filter":{},"filter":{"Owner":1}`,
			`"rows":[{},{"a/b":{"KEY":1}}]`} {
			if got := w.result("mcp.s.echo", `{"text":"a",`+more+`}`, ""); !strings.Contains(got, "is not for callers: leave it out") {
				t.Errorf("a call with %s answers %s", more, got)
			}
		}
		want = `"arguments":{"text":"a","filter":{"owner":"acme"},"rows":[{"a/b":{"key":"acme"}}],"tenant":"acme"}`
		if got := w.result("mcp.s.echo", `{"text":"a","filter":{},"rows":[{"a/b":{}}]}`, ""); !strings.Contains(got, want) {
			t.Errorf("the server gets %s", got)
		}
	}
	eventually(t, "the records say what the hook has set", func() (found bool) {
		_ = persist.Read(filepath.Join(state, "journal"), func(line json.RawMessage) bool {
			found = strings.Contains(string(line), `"source_ref":"hook/hook-1"`) &&
				strings.Contains(string(line), `"changed_fields":["filter","rows","tenant"]`)
			return !found
		})
		return found
	})
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "hub.json"), config)
	run := func(args ...string) string {
		command := exec.Command("mcp-toolhub", append(args, "--config", filepath.Join(dir, "hub.json"))...)
		command.Env = scratchEnv(dir)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%v ends with %v", args, err)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	if facts := run("tools", "show", "mcp.s.echo", "-o", "json"); !strings.Contains(facts, `"internal_only_fields": [ "/tenant", "/filter/owner", "/rows/*/a~1b/key" ]`) {
		t.Errorf("the contract is %s", facts)
	}
	list := run("tools", "list")
	for schema, why := range refused {
		if !strings.Contains(list, why) {
			t.Errorf("the list does not say why there is no tool with %s: %s in\n%s", schema, why, list)
		}
	}
}

// TestKeptErrorsOfServers: hooks of result_persistence say what the journal keeps of a JSON-RPC error. Its client gets it as it is, also within a
// batch, whose record keeps no more.
func TestKeptErrorsOfServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fails := child(upstreamtest.Script{Tools: upstreamtest.DefaultTools()})
	w := wireHubIn(t, dir, configText(t, map[string]any{"some": fails, "none": fails, "whole": fails}, map[string]any{
		"policy": map[string]any{"mode": "accept_all"},
		"hooks": []any{
			map[string]any{"event": "result_persistence", "match": "mcp.some.*", "redact": []string{"key-[0-9]+"}},
			map[string]any{"event": "result_persistence", "match": "mcp.none.*", "require": "false", "reason": "nothing of it"},
			map[string]any{"event": "result_persistence", "match": "mcp.whole.*", "redact": []string{"no such word"}}}}), rev2026).open()
	w.awaitTools("mcp.some.fail", "mcp.none.fail", "mcp.whole.fail")
	fail := func(server string) string {
		return `{"error":{"code":-32000,"message":"key-1234 of ` + server + `","data":{"also":"key-5678 of ` + server + `"}}}`
	}
	for _, server := range []string{"some", "none", "whole"} {
		got := w.send(w.call("mcp."+server+".fail", fail(server), ""))
		if want := `"message":"key-1234 of ` + server + `","data":{"also":"key-5678 of ` + server + `"}`; !strings.Contains(got[len(got)-1], want) {
			t.Errorf("the client gets %s", got)
		}
	}
	if got := w.result("tool_batch", `{"calls":[{"id":"a","name":"mcp.some.fail","arguments":`+fail("some")+`}]}`, ""); !strings.Contains(got, "key-1234 of some") {
		t.Errorf("the batch answers %s", got)
	}
	w.hangUp()
	results := 0
	err := persist.Read(filepath.Join(dir, "state", "mcp-toolhub", "journal"), func(object json.RawMessage) bool {
		line := string(object)
		var r tool.Result
		mustDecode(t, line, &r)
		if r.Object != tool.ObjectResult {
			return true
		}
		results++
		for _, server := range []string{"some", "none"} {
			if strings.Contains(line, "key-1234 of "+server) || strings.Contains(line, "key-5678 of "+server) {
				t.Errorf("the journal has the key of %s: %s", server, line)
			}
		}
		if strings.Contains(line, "of whole") && !strings.Contains(line, "key-5678 of whole") {
			t.Errorf("the journal has %s", line)
		}
		return true
	})
	if err != nil || results < 5 {
		t.Errorf("%d results, %v", results, err)
	}
}
