package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTasksThroughToolCall: what tool_call calls may be a task like any other call.
func TestTasksThroughToolCall(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"old", "new"} {
		for _, way := range []string{"http", "stdio"} {
			t.Run(kind+way, func(t *testing.T) {
				t.Parallel()
				hub := startHub(t, "hub.json", configText(t, taskServers(t), alwaysDeferred))
				version, can := rev2025, everyCapability
				if kind == "new" {
					version, can = rev2026, followsTasks
				}
				w := wireHTTP(t, hub.url+"/mcp", version)
				w.can, w.refs = can, map[string]string{}
				w.open()
				eventually(t, "the server is up", func() bool { return hub.statusOf(t, kind+way).Tools > 0 })
				c := newTaskClient(t, w, "mcp."+kind+way+".").stand()
				if kind == "old" {
					c.playOld()
				} else {
					c.playNew()
				}
			})
		}
	}
}

// TestHeadersOfDeferredCalls: on 2026-07-28 the headers of each hop are those of what is called there.
func TestHeadersOfDeferredCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got http.Header // of the last call
	url := fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: true, Tools: []json.RawMessage{upstreamtest.Tool("echo"),
		json.RawMessage(`{"name":"routed","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`)}},
		Intercept: func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
			if strings.Contains(string(body), `"tools/call"`) {
				mu.Lock()
				defer mu.Unlock()
				got = r.Header.Clone()
			}
			return false
		}})
	v := newVault(t, map[string]any{"far": map[string]any{"type": "http", "url": url}}, alwaysDeferred)
	call := func(outer, params string, headers ...string) (response string, far http.Header) {
		t.Helper()
		mu.Lock()
		got = nil
		mu.Unlock()
		w := v.modernPerson(t, "/mcp", annToken)
		w.headers = append(w.headers, headers...)
		meta := ""
		if i := strings.Index(params, "|"); i >= 0 {
			params, meta = params[:i], params[i+1:]
		}
		messages := w.send(rawRequest{id: `1`, method: "tools/call", name: outer, params: w.params(params, meta)})
		mu.Lock()
		defer mu.Unlock()
		return messages[len(messages)-1], got
	}
	ref := quoted(v.modernPerson(t, "/mcp", annToken).load("mcp.far.routed").Matches[0].Ref)
	through := `"name":"tool_call","arguments":{"name":"mcp.far.routed","arguments":{"region":"north"},"selection_ref":` + ref + `}`
	direct := `"name":"mcp.far.routed","arguments":{"region":"north"}`
	for what, c := range map[string]struct {
		outer, params string
		headers       []string
		want          string // in the response
		runs          bool
	}{
		"through tool_call":                       {"tool_call", through, nil, `"content"`, true},
		"through tool_call, named as the tool":    {"mcp.far.routed", through, nil, `"code":-32020`, false},
		"by its name, unloaded, without a header": {"mcp.far.routed", direct, nil, `schema_not_loaded`, false},
		"by its name, with a ref":                 {"mcp.far.routed", direct + `|"toolhub/selectionRef":` + ref, nil, `"content"`, true},
		"by its name, with a ref and a header":    {"mcp.far.routed", direct + `|"toolhub/selectionRef":` + ref, []string{"Mcp-Param-Region", "north"}, `"content"`, true},
		"by its name, with a header that lies":    {"mcp.far.routed", direct + `|"toolhub/selectionRef":` + ref, []string{"Mcp-Param-Region", "south"}, `"code":-32020`, false},
	} {
		response, far := call(c.outer, c.params, c.headers...)
		if !strings.Contains(response, c.want) || (far != nil) != c.runs {
			t.Errorf("%s: %s; the server got %v", what, response, far)
		}
		if c.runs && (far.Get("Mcp-Name") != "routed" || far.Get("Mcp-Param-Region") != "north") {
			t.Errorf("%s: the server got the headers %v", what, far)
		}
	}
}
