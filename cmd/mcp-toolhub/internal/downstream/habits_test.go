package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// dialAs is a client of that name on stdio, of the revision, with _meta for its requests. A call of
// no tool is a list.
func dialAs(t *testing.T, s *Server, name, version string) (call func(name, meta string) string) {
	w := dial(t, s)
	if version < modernVersion {
		w.send(strings.Replace(fmt.Sprintf(initialize, version), `"name":"c"`, fmt.Sprintf(`"name":%q`, name), 1))
		w.next()
		w.send(initialized)
	}
	return func(named, meta string) string {
		if version >= modernVersion {
			meta = strings.Trim(strings.Replace(modernMeta, `"name":"c"`, fmt.Sprintf(`"name":%q`, name), 1)+","+meta, ",")
		}
		method := tool.MethodToolsCall
		if named == "" {
			method = tool.MethodToolsList
		}
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"_meta":{%s}}}`, method, named, meta))
		_, result, _ := strings.Cut(w.next(), `"result":`)
		return strings.TrimSuffix(result, "}")
	}
}

// TestMetaStaysOutOfModels: a client whose model sees the _meta of results gets none of the hub's
// keys, unless it uses such keys itself. What the server has sent stays for all.
func TestMetaStaysOutOfModels(t *testing.T) {
	t.Parallel()
	results := map[string]string{
		"mcp.s.plain":  `{"content":[{"type":"text","text":"ok"}]}`,
		"mcp.s.mixed":  `{"content":[{"type":"text","text":"ok","_meta":{"toolhub/hook":"h","a":1}}],"_meta":{"theirs":1.0}}`,
		"mcp.s.failed": `{"content":[],"isError":true}`,
	}
	const kept = `{"content":[{"type":"text","text":"ok","_meta":{"a":1}}],"_meta":{"theirs":1.0}`
	for name, test := range map[string]struct {
		client, version, tool, meta string
		want                        string
	}{
		"LangChain":       {"@langchain/mcp-adapters", "2025-11-25", "mcp.s.plain", "", results["mcp.s.plain"]},
		"Cline":           {"@cline/core", "2024-11-05", "mcp.s.mixed", "", kept + "}"},
		"Mastra":          {"toolhub", modernVersion, "mcp.s.plain", "", strings.TrimSuffix(results["mcp.s.plain"], "}") + `,"resultType":"complete"}`},
		"Mastra, mixed":   {"toolhub", modernVersion, "mcp.s.mixed", "", kept + `,"resultType":"complete"}`},
		"Gemini":          {"gemini-cli-mcp-client", "2025-06-18", "mcp.s.failed", "", results["mcp.s.failed"]},
		"Qwen":            {"qwen-cli-mcp-client-toolhub", "2025-11-25", "mcp.s.failed", "", results["mcp.s.failed"]},
		"Gemini, success": {"gemini-cli-mcp-client", "2025-06-18", "mcp.s.plain", "", "toolhub/invocation"},
		"Claude Code":     {"claude-code", "2025-11-25", "mcp.s.plain", "", `"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"}}`},
		"unknown, fails":  {"c", "2025-11-25", "mcp.s.failed", "", `"error_class":"execution_failed"`},
		"asks":            {"@langchain/mcp-adapters", "2025-11-25", "mcp.s.plain", `"toolhub/run":"r"`, `"toolhub/invocation"`},
		"asks, no name":   {"cline", "2025-11-25", "mcp.s.plain", `"toolhub/invocation":true`, `"toolhub/invocation"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &far{execute: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
				return tool.Reply{Result: json.RawMessage(results[string(e.Tool.Name)])}, nil
			}}
			f.offer("plain", "mixed", "failed")
			got := dialAs(t, newServer(t, Config{Version: "v"}, f), test.client, test.version)(test.tool, test.meta)
			if whole := strings.HasPrefix(test.want, "{"); whole && got != test.want || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestModelOfCodex: the model that Codex names in a call counts from then on, also for a list of its next session.
func TestModelOfCodex(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]string{
		"object": `"x-codex-turn-metadata":{"turn_id":"t","model":"gpt-5.1"}`,
		"text":   `"x-codex-turn-metadata":"{\"model\":\"gpt-5.1\"}"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &far{}
			s := newServer(t, Config{Version: "v"}, f)
			codex, other := dialAs(t, s, "codex-mcp-client", "2025-06-18"), dialAs(t, s, "claude-code", "2025-11-25")
			saw := func(what, model string) {
				t.Helper()
				if f.model != model {
					t.Errorf("%s: model %q, want %q", what, f.model, model)
				}
			}
			codex("", "")
			saw("first list", "")
			codex("mcp.s.echo", meta)
			saw("call", "gpt-5.1")
			dialAs(t, s, "codex-mcp-client", "2025-06-18")("", "")
			saw("list of the next session", "gpt-5.1")
			codex("mcp.s.echo", `"x-codex-turn-metadata":{"model":"gpt-5.5"}`)
			codex("", "")
			saw("another model", "gpt-5.5")
			other("mcp.s.echo", meta)
			saw("another client", "")
		})
	}
}

// TestOwnToolsTellOnce: a client whose model sees texts and structuredContent gets what the hub's own
// tools answer as texts alone, and no outputSchema that would demand more.
func TestOwnToolsTellOnce(t *testing.T) {
	t.Parallel()
	const both = `{"content":[{"type":"text","text":"t"}],"structuredContent":{"t":%s}}`
	plain := fmt.Sprintf(both, "1")
	batch := fmt.Sprintf(both, `{"structuredContent":{}}`)
	finder, batcher := &tool.HubTool{Finds: true}, &tool.HubTool{Batches: true}
	for name, test := range map[string]struct {
		client string
		tool   *tool.Tool
		result string
		once   bool
	}{
		"search":                       {"qwen-cli-mcp-client-toolhub", &tool.Tool{Hub: finder}, plain, true},
		"batch":                        {"@cline/core", &tool.Tool{Hub: batcher}, plain, true},
		"batch with structuredContent": {"@cline/core", &tool.Tool{Hub: batcher}, batch, false},
		"toolset":                      {"github-copilot-developer", &tool.Tool{TextTells: true}, plain, true},
		"server":                       {"github-copilot-developer", &tool.Tool{}, plain, false},
		"no tool":                      {"@cline/core", nil, plain, false},
		"other client":                 {"claude-code", &tool.Tool{Hub: finder}, plain, false},
	} {
		object, err := rawjson.ReadObject([]byte(test.result))
		if err != nil {
			t.Fatal(err)
		}
		p := &peer{actor: tool.Actor{Client: tool.Client{Name: test.client}}}
		got, err := (&toolCalls{parts: &parts{}}).resultFor(p, invoke.Outcome{Object: object, InvocationID: "i"}, test.tool)
		text := string(bytes.Join(got.parts, nil))
		if once := !strings.Contains(text, `,"structuredContent":{"t"`); err != nil || once != test.once {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if test.tool == nil || test.tool.Hub != nil {
			continue
		}
		listed := *test.tool
		listed.OutputSchema = json.RawMessage(`{"type":"object"}`)
		declared := (&surfaceReader{}).declaration(p, tool.Listed{Tool: &listed,
			Changed: json.RawMessage(`{"name":"x","outputSchema":{"type":"object"}}`)})
		if strings.Contains(string(declared), "outputSchema") == test.once {
			t.Errorf("%s: listed as %s", name, declared)
		}
	}
}

// TestFeaturesWaitForServers: prompts, resources and templates wait for servers that have not listed
// yet, as tools do; their lists, and what asks for one of them by name.
func TestFeaturesWaitForServers(t *testing.T) {
	t.Parallel()
	for method, params := range map[string]string{
		"prompts/list": "", "resources/list": "", "resources/templates/list": "",
		"prompts/get":         `"name":"mcp.a.greet"`,
		"resources/read":      `"uri":"file:///one"`,
		"resources/subscribe": `"uri":"file:///one"`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"mcp.a.greet"},"argument":{"name":"a","value":""}`,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := behind(&servers{})
			whole := *f.surface
			f.surface.Features = tool.NewFeatures(tool.Features{Servers: []string{"a", "b"}}, nil, nil)
			s := newServer(t, Config{Version: "v"}, f)
			f.firstLists = func() { f.show(&whole) }
			c := newClient(t, s, "2025-11-25", false)
			got := c.ask("1", method, params)
			if strings.Contains(got[0], `"error"`) || strings.Contains(got[0], "[]") {
				t.Errorf("%s", got)
			}
		})
	}
}
