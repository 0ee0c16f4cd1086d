//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// farScript is a server with the tools echo, raw and change, of which change has this schema.
func farScript(schema string) map[string]any {
	return child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("raw"),
		json.RawMessage(`{"name":"change","description":"changes","inputSchema":` + schema + `}`)},
		Results: map[string]json.RawMessage{"change": json.RawMessage(`{"content":[{"type":"text","text":"changed"}]}`)}})
}

const (
	farSchema   = `{"type":"object","properties":{"a":{"type":"string"}}}`
	otherSchema = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]}`
)

// callWith calls a tool through tool_call with a ref and returns the response.
func (w *wire) callWith(name, args, ref string) string {
	w.t.Helper()
	messages := w.send(w.call("tool_call", `{"name":`+quoted(name)+`,"arguments":`+args+`,"selection_ref":`+quoted(ref)+`}`, ""))
	return messages[len(messages)-1]
}

// TestSelectionRefs: a ref serves who was given it, for the tool it was given for, over restarts, and nobody and nothing else.
func TestSelectionRefs(t *testing.T) {
	t.Parallel()
	servers := map[string]any{"far": farScript(farSchema)}
	v := newVault(t, servers, alwaysDeferred)
	ann, bob := v.modernPerson(t, "/mcp", annToken), v.modernPerson(t, "/mcp", bobToken)
	ref := ann.load("mcp.far.change").Matches[0].Ref
	check := func(what, response, want string) {
		t.Helper()
		if !strings.Contains(response, want) {
			t.Errorf("%s: %s, want %s", what, response, want)
		}
	}
	check("good", ann.callWith("mcp.far.change", `{}`, ref), `"text":"changed"`)
	check("again", ann.callWith("far__change", `{}`, ref), `"text":"changed"`)
	check("swapped", ann.callWith("mcp.far.echo", `{}`, ref), `selection_ref_invalid`)
	check("foreign", bob.callWith("mcp.far.change", `{}`, ref), `selection_ref_invalid`)
	check("forged", ann.callWith("mcp.far.change", `{}`, strings.Repeat("A", 32)), `selection_ref_invalid`)
	check("none", ann.callWith("mcp.far.change", `{}`, ""), `schema_not_loaded`)
	check("nothing ran", ann.callWith("mcp.far.change", `{}`, "x"), `"status":"blocked","error_class":"schema_not_loaded"`)

	echo := ann.load("mcp.far.echo").Matches[0].Ref
	if got := ann.result("mcp.far.echo", `{}`, `"toolhub/selectionRef":`+quoted(echo)+`,"x":1`); !strings.Contains(got, `"x":1`) ||
		strings.Contains(got, "selectionRef") {
		t.Errorf("the server is told of refs: %s", got)
	}

	v.restart()
	ann = v.modernPerson(t, "/mcp", annToken)
	check("after a restart", ann.callWith("mcp.far.change", `{}`, ref), `"text":"changed"`)

	// the key of before is kept beside a new one
	state := filepath.Join(v.dir, "state", "mcp-toolhub")
	if err := os.Rename(filepath.Join(state, "state.key"), filepath.Join(state, "state.key.previous")); err != nil {
		t.Fatal(err)
	}
	v.restart()
	ann = v.modernPerson(t, "/mcp", annToken)
	check("with the key of before", ann.callWith("mcp.far.change", `{}`, ref), `"text":"changed"`)
	if fresh := ann.load("mcp.far.change").Matches[0].Ref; fresh == ref {
		t.Error("a new key makes the same ref")
	}
	if err := os.Remove(filepath.Join(state, "state.key.previous")); err != nil {
		t.Fatal(err)
	}
	v.restart()
	ann = v.modernPerson(t, "/mcp", annToken)
	check("without it", ann.callWith("mcp.far.change", `{}`, ref), `selection_ref_invalid`)
	ref = ann.load("mcp.far.change").Matches[0].Ref

	// the server has changed while the hub was away
	v.configure(map[string]any{"far": farScript(otherSchema)}, alwaysDeferred)
	v.restart()
	ann = v.modernPerson(t, "/mcp", annToken)
	response := ""
	eventually(t, "the new schema is known", func() bool {
		response = ann.callWith("mcp.far.change", `{}`, ref)
		return !strings.Contains(response, `"text":"changed"`)
	})
	check("changed", response, `\"error_code\":\"schema_changed\"`)
	if !strings.Contains(response, `b was added: integer, required`) && !strings.Contains(response, `\"b\"`) {
		t.Errorf("what has changed is not said: %s", response)
	}
	found := refPattern.FindStringSubmatch(response)
	if found == nil {
		t.Fatalf("no new ref: %s", response)
	}
	check("with the new ref", ann.callWith("mcp.far.change", `{"b":1}`, found[1]), `"text":"changed"`)
	check("its schema holds", ann.callWith("mcp.far.change", `{}`, found[1]), `schema_validation_failed`)

	// the tool is hidden from now on: nobody can tell it from one that never was
	v.configure(map[string]any{"far": farScript(otherSchema)}, map[string]any{"deferred": alwaysDeferred["deferred"],
		"profiles": map[string]any{"default": map[string]any{"exclude": []string{"mcp.far.change"}}}})
	if err := v.waitFor(regexp.MustCompile(`config is applied`)); err != nil {
		t.Fatal(err)
	}
	ann.cannotTell("change", "chance", found[1])
	checkJournal(t, filepath.Join(v.dir, "state"), 0)
}

// cannotTell: of two tools of the server far, a hidden one and one that never was, calls and searches say the same.
func (w *wire) cannotTell(hidden, none, ref string) {
	w.t.Helper()
	got, never := w.callWith("mcp.far."+hidden, `{"b":1}`, ref), w.callWith("mcp.far."+none, `{"b":1}`, ref)
	if !strings.Contains(got, `"code":-32602,"message":"unknown tool`) || anonymous(got, hidden) != anonymous(never, none) {
		w.t.Errorf("hidden: %s\nnever:  %s", got, never)
	}
	got, never = w.result("tool_search", `{"query":"select:`+hidden+`"}`, ""), w.result("tool_search", `{"query":"select:`+none+`"}`, "")
	if anonymous(got, hidden) != anonymous(never, none) {
		w.t.Errorf("hidden: %s\nnever:  %s", got, never)
	}
}

// TestListsStayAsTheyAre: no list changes, whatever anybody has loaded; with list_found, the list of a session up to
// 2025-11-25 grows, and the session is told.
func TestListsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	t.Run("usually", func(t *testing.T) { t.Parallel(); listsStay(t, false) })
	t.Run("list_found", func(t *testing.T) { t.Parallel(); listsStay(t, true) })
}

func listsStay(t *testing.T, grows bool) {
	v := newVault(t, map[string]any{"far": farScript(farSchema)},
		map[string]any{"deferred": map[string]any{"mode": "always", "list_found": grows}})
	list := func(w *wire) string {
		messages := w.send(rawRequest{id: `"l"`, method: "tools/list", params: w.params("", "")})
		return messages[len(messages)-1]
	}
	ann, bob := v.modernPerson(t, "/mcp", annToken), v.modernPerson(t, "/mcp", bobToken)
	before := list(ann)
	ann.load("mcp.far.change")
	old, other := v.person(t, rev2025, annToken), v.person(t, rev2025, annToken)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, old.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	old.setHeaders(req)
	stream := old.listen(req)
	empty := list(old)
	old.load("mcp.far.change")
	if grows {
		if m := await(t, stream); !strings.Contains(m, "notifications/tools/list_changed") {
			t.Errorf("told: %s", m)
		}
	}
	if after := list(ann); after != before {
		t.Errorf("the list of 2026-07-28 has changed:\n%s\n%s", before, after)
	}
	if after := list(bob); after != before {
		t.Errorf("the lists of ann and bob differ:\n%s\n%s", before, after)
	}
	if after := list(other); after != empty {
		t.Errorf("the list of another session has changed:\n%s\n%s", empty, after)
	}
	if after := list(old); !grows && after != empty {
		t.Errorf("the list of the session has changed:\n%s\n%s", empty, after)
	} else if grows && (after == empty || !strings.HasPrefix(after, strings.TrimSuffix(empty, "]}}")) || !strings.Contains(after, `"mcp.far.change"`)) {
		t.Errorf("the list of the session has not grown at its end:\n%s\n%s", empty, after)
	}
	if result := old.result("mcp.far.change", `{}`, ""); !strings.Contains(result, "changed") {
		t.Errorf("a loaded tool by its name: %s", result)
	}
	if result := other.result("mcp.far.change", `{}`, ""); !strings.Contains(result, "schema_not_loaded") {
		t.Errorf("in another session: %s", result)
	}
	if result := other.result("mcp.far.change", `{}`, ""); !strings.Contains(result, "changed") {
		t.Errorf("in another session, the second time: %s", result)
	}
	v.configure(map[string]any{"far": farScript(farSchema)}, map[string]any{"deferred": map[string]any{"mode": "never"}})
	if err := v.waitFor(regexp.MustCompile(`config is applied`)); err != nil {
		t.Fatal(err)
	}
	if m := await(t, stream); !strings.Contains(m, "notifications/tools/list_changed") {
		t.Errorf("told after the mode has changed: %s", m)
	}
	if after := list(other); strings.Contains(after, "tool_search") || !strings.Contains(after, `"mcp.far.raw"`) {
		t.Errorf("after the mode has changed: %s", after)
	}
}

// TestFirstListOfRecordedServers: of 26 real servers a client is sent 3% first, and whatever is asked for is found.
func TestFirstListOfRecordedServers(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	url := replay(t, all)
	servers := map[string]any{}
	for _, r := range all {
		servers[r.name] = map[string]any{"type": "http", "url": url + "/" + r.name, "validate": "off"}
	}
	hub := startHub(t, "hub.json", configText(t, servers, map[string]any{"profiles": map[string]any{
		"whole": map[string]any{"deferred": map[string]any{"mode": "never"}}}}))
	size := func(path, client, version string) int {
		w := wireHTTP(t, hub.url+path, version)
		if client != "" {
			w.as(client)
		}
		messages := w.send(rawRequest{id: `1`, method: "tools/list", params: w.params("", "")})
		return len(messages[len(messages)-1])
	}
	whole := size("/mcp/p/whole", "", rev2026)
	for _, client := range []string{"wire", "cursor-vscode", "Visual Studio Code", "gemini-cli-mcp-client"} {
		if got := size("/mcp", client, rev2025); got > whole*3/100 {
			t.Errorf("%s is sent %d of %d bytes first", client, got, whole)
		}
	}
	if got := size("/mcp", "", rev2026); got > whole*3/100 {
		t.Errorf("%d of %d bytes are sent first on 2026-07-28", got, whole)
	}
	for _, client := range []string{"claude-code", "codex-mcp-client"} {
		if got := size("/mcp", client, rev2025); got < whole*85/100 { // outputSchema is not listed to them
			t.Errorf("%s defers tools itself and is sent %d of %d bytes", client, got, whole)
		}
	}
	w := wireHTTP(t, hub.url+"/mcp", rev2026)
	w.refs = map[string]string{}
	for _, r := range all {
		for name := range r.tools {
			got := w.result("mcp."+r.name+"."+name, `{}`, "")
			if !strings.Contains(got, fmt.Sprintf(`"structuredContent":{"server":%q,"tool":%q}`, r.name, name)) {
				t.Errorf("%s of %s through tool_call: %s", name, r.name, got)
			}
		}
	}
	if err := hub.stop(); err != nil {
		t.Error(err)
	}
	checkJournal(t, filepath.Join(hub.cmd.Dir, "state"), 0)
}

// TestTwoThousandTools: a hub of 2,000 tools of 20 servers serves, finds and calls, and a server that goes takes its tools
// out of what is found.
func TestTwoThousandTools(t *testing.T) {
	t.Parallel()
	servers := map[string]any{}
	for s := range 20 {
		var tools []json.RawMessage
		for i := range 99 {
			tools = append(tools, json.RawMessage(fmt.Sprintf(`{"name":"make_widget_%d_%d","description":"Makes a widget of kind %d. %s",`+
				`"inputSchema":{"type":"object","properties":{"kind_%d":{"type":"string","description":"Which kind"}}}}`, s, i, i,
				strings.Repeat("It is done with care. ", 10), i)))
		}
		tools = append(tools, upstreamtest.Tool("echo"))
		servers[fmt.Sprint("plant", s)] = map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: tools}})}
	}
	servers["far"] = servers["plant19"]
	delete(servers, "plant19")
	v := newVault(t, servers, nil)
	ann := v.modernPerson(t, "/mcp", annToken)
	eventually(t, "all tools are known", func() bool { return ann.load("mcp.plant0.echo").Total == 2000 })
	for _, version := range []string{rev2025, rev2026} {
		w := v.person(t, version, annToken)
		if tools := w.tools(); len(tools) != 3 || len(tools["tool_search"])+len(tools["tool_call"]) > 4500 {
			t.Errorf("%d tools are listed: %d and %d bytes", len(tools), len(tools["tool_search"]), len(tools["tool_call"]))
		}
		found := foundBy(t, w.result("tool_search", `{"query":"make widget 7 42","limit":3}`, ""))
		if found.Total != 2000 || len(found.Matches) != 3 || found.Matches[0].Name != "mcp.plant7.make_widget_7_42" {
			t.Errorf("found: %+v", found)
		}
		if got := w.callWith("mcp.plant7.echo", `{"x":1}`, w.load("mcp.plant7.echo").Matches[0].Ref); !strings.Contains(got, `"x":1`) {
			t.Errorf("echo: %s", got)
		}
	}
	delete(servers, "plant7")
	v.configure(servers, nil)
	if err := v.waitFor(regexp.MustCompile(`config is applied`)); err != nil {
		t.Fatal(err)
	}
	found := foundBy(t, ann.result("tool_search", `{"query":"make widget 7 42","servers":["plant7"]}`, ""))
	if found.Total != 1900 || len(found.Matches) != 0 {
		t.Errorf("after the server has gone: %+v", found)
	}
	if strings.Contains(ann.tools()["tool_search"], "plant7") {
		t.Error("tool_search still names a server that has gone")
	}
}

// TestListedBeforeDeferred: who was sent all tools calls them by their names also when others have come that do not fit in,
// on either generation, and without listing again.
func TestListedBeforeDeferred(t *testing.T) {
	t.Parallel()
	far := farScript(farSchema)
	v := newVault(t, map[string]any{"far": far}, nil)
	people := []*wire{v.modernPerson(t, "/mcp", annToken), v.person(t, rev2025, annToken)}
	for _, w := range people {
		if tools := w.tools(); tools["mcp.far.change"] == "" {
			t.Fatalf("listed: %v", tools)
		}
	}
	var plenty []json.RawMessage
	for i := range 200 {
		plenty = append(plenty, json.RawMessage(fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}`, i, strings.Repeat("word ", 100))))
	}
	v.configure(map[string]any{"far": far, "plenty": map[string]any{"type": "http",
		"url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: plenty}})}}, nil)
	late := v.modernPerson(t, "/mcp", annToken)
	eventually(t, "tools are deferred", func() bool { return late.tools()["tool_search"] != "" })
	for _, w := range people {
		if got := w.result("mcp.far.change", `{}`, ""); !strings.Contains(got, `"text":"changed"`) {
			t.Errorf("what was listed before: %s", got)
		}
		if got := w.result("mcp.plenty.t1", `{}`, ""); !strings.Contains(got, "schema_not_loaded") {
			t.Errorf("what was not: %s", got)
		}
	}
	stranger := v.person(t, rev2025, annToken)
	if got := stranger.result("mcp.far.change", `{}`, ""); !strings.Contains(got, "schema_not_loaded") {
		t.Errorf("a session that has listed nothing: %s", got)
	}
}

// TestEmbeddings: with an endpoint tools are found by meaning, and while it fails by words; the answer says so, and the key
// goes nowhere else.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || r.Header.Get("Authorization") != "Bearer "+bobToken || failing.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		var data []any
		for i, text := range question.Input {
			vector := []float64{0, 1}
			if strings.Contains(text, "zebra") || strings.Contains(text, "raw") {
				vector = []float64{1, 0}
			}
			data = append(data, map[string]any{"index": i, "embedding": vector})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(endpoint.Close)
	v := newVault(t, map[string]any{"far": farScript(farSchema)}, map[string]any{"deferred": map[string]any{"mode": "always",
		"embeddings": map[string]any{"url": endpoint.URL, "model": "m", "key": "${file:bob}", "timeout": "10s"}}})
	ann := v.modernPerson(t, "/mcp", annToken)
	eventually(t, "zebra means raw", func() bool {
		found := foundBy(t, ann.result("tool_search", `{"query":"zebra","limit":1}`, ""))
		return len(found.Matches) == 1 && found.Matches[0].Name == "mcp.far.raw"
	})
	failing.Store(true)
	result := ann.result("tool_search", `{"query":"changes of another kind","limit":1}`, "")
	if found := foundBy(t, result); len(found.Matches) != 1 || found.Matches[0].Name != "mcp.far.change" || !strings.Contains(result, `"notes":[`) {
		t.Errorf("while the endpoint fails: %s", result)
	}
	if strings.Contains(v.log()+result, bobToken) {
		t.Error("the endpoint's key is told")
	}
}

func (v *vault) restart() {
	v.t.Helper()
	if err := v.stop(); err != nil {
		v.t.Fatal(err)
	}
	v.start()
}

// anonymous is a response without its ids and without name.
func anonymous(text, name string) string {
	text = regexp.MustCompile(`"id":\d+|inv_[0-9a-z]{26}`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, name, "X")
}
