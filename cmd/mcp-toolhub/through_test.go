package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
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

// TestReplicas: hubs that share keys take each other's refs, in the order of a key that is replaced; one without the key
// takes none.
func TestReplicas(t *testing.T) {
	t.Parallel()
	servers := map[string]any{"far": farScript(farSchema)}
	replica := func(keys ...string) *wire {
		v := &vault{t: t, dir: t.TempDir()}
		refs := []string{}
		for name, text := range map[string]string{"ann": annToken, "bob": bobToken, "k1": "a-key-of-one-hub-or-another", "k2": "the-key-that-comes-after-it"} {
			if err := os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range keys {
			refs = append(refs, "${file:"+k+"}")
		}
		v.configure(servers, map[string]any{"deferred": map[string]any{"mode": "always", "keys": refs}})
		v.start()
		return v.modernPerson(t, "/mcp", annToken)
	}
	one, two, next, other := replica("k1"), replica("k1"), replica("k2", "k1"), replica("k2")
	ref := one.load("mcp.far.change").Matches[0].Ref
	fresh := next.load("mcp.far.change").Matches[0].Ref
	if again := two.load("mcp.far.change").Matches[0].Ref; again != ref {
		t.Errorf("replicas give the refs %s and %s", ref, again)
	}
	for what, c := range map[string]struct {
		w    *wire
		ref  string
		good bool
	}{"its own": {one, ref, true}, "the other's": {two, ref, true}, "of the key before": {next, ref, true}, "of no key": {other, ref, false},
		"of the new key": {other, fresh, true}, "of a key to come": {one, fresh, false}} {
		response := c.w.callWith("mcp.far.change", `{}`, c.ref)
		if ran := strings.Contains(response, `"text":"changed"`); ran != c.good || !ran && !strings.Contains(response, "selection_ref_invalid") {
			t.Errorf("%s: %s", what, response)
		}
	}
}

// TestHiddenServersShowNowhere: what a caller is answered is the same, byte for byte, with and without a server that it may
// not see: hits, scores, neighbours, nearest names, notes, refusals, lists.
func TestHiddenServersShowNowhere(t *testing.T) {
	t.Parallel()
	answers := func(hidden bool) (all []string) {
		servers := map[string]any{"far": farScript(farSchema)}
		if hidden {
			servers["zebra"] = child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("raw"),
				json.RawMessage(`{"name":"gallop","description":"changes raw things and echoes, changing kinds","inputSchema":{"type":"object"}}`)}})
		}
		v := &vault{t: t, dir: t.TempDir()}
		for name, text := range map[string]string{"ann": annToken, "bob": bobToken, "key": "a-key-of-one-hub-or-another"} {
			if err := os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		v.configure(servers, map[string]any{"deferred": map[string]any{"mode": "always", "keys": []string{"${file:key}"}},
			"profiles": map[string]any{"default": map[string]any{"servers": []string{"far"}}}})
		v.start()
		if hidden {
			eventually(t, "the hidden server is up", func() bool { return v.statusOf(t, "zebra").Tools > 0 })
		}
		w := v.modernPerson(t, "/mcp", annToken)
		ask := func(name, args string) {
			messages := w.send(w.call(name, args, ""))
			all = append(all, anonymous(messages[len(messages)-1], "-"))
		}
		for _, query := range []string{"change things", "raw zebra", "galop", "gallop", "mcp.zebra.echo", "echos of kinds", "select:gallop,zebra_echo,ecko",
			"regex:.", "regex:gallop|change", "change on the zebra server"} {
			for _, more := range []string{``, `,"detail":"signature","limit":1`, `,"detail":"names","servers":["zebra","far"]`} {
				ask("tool_search", `{"query":`+quoted(query)+more+`}`)
			}
		}
		ask("tool_search", `{"query":"echo","servers":["zebra"]}`)
		ask("tool_call", `{"name":"mcp.zebra.gallop","arguments":{}}`)
		ask("mcp.zebra.gallop", `{}`)
		messages := w.send(rawRequest{id: `1`, method: "tools/list", params: w.params("", "")})
		return append(all, anonymous(messages[len(messages)-1], "-"))
	}
	with, without := answers(true), answers(false)
	for i := range with {
		if with[i] != without[i] {
			t.Errorf("%d shows what is hidden:\n%s\n%s", i, with[i], without[i])
		}
	}
}
