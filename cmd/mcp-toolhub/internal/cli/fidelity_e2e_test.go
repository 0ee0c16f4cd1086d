//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// generatedResults are random results, the same ones every time.
func generatedResults(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = newGenerator(uint64(i)).result()
	}
	return out
}

// farServers are scripted servers over every transport and of both generations, ready to be reached.
func farServers(t testing.TB) []far {
	t.Helper()
	var all []far
	for id, modern := range map[string]bool{"stdio25": false, "stdio26": true} {
		script := upstreamtest.Script{Modern: modern}
		all = append(all, far{id: id, entry: child(script), direct: func(t testing.TB) *wire {
			return wireFake(t, script, generation(modern)).open()
		}})
	}
	for id, o := range map[string]upstreamtest.Options{
		"http25": {}, "http26": {Script: upstreamtest.Script{Modern: true}}, "json25": {JSON: true}, "pretty25": {Pretty: true},
		"pretty26": {Script: upstreamtest.Script{Modern: true}, JSON: true, Pretty: true},
	} {
		url := fakeHTTP(t, o)
		all = append(all, far{id: id, entry: map[string]any{"type": "http", "url": url}, direct: func(t testing.TB) *wire {
			return wireHTTP(t, url, generation(o.Modern)).open()
		}})
	}
	for i := range all {
		all[i].entry["validate"] = "off"
	}
	return all
}

func generation(modern bool) string {
	if modern {
		return rev2026
	}
	return rev2025
}

func entriesOf(all []far) map[string]any {
	entries := map[string]any{}
	for _, f := range all {
		entries[f.id] = f.entry
	}
	return entries
}

// eachClient runs check for every door and generation that clients come by, through hubs with the servers of all. In one
// of them every tool is deferred, and what is true of a call is true of one through tool_call.
func eachClient(t *testing.T, all []far, check func(t *testing.T, client *wire)) {
	t.Helper()
	config := configText(t, entriesOf(all), nil)
	hub := startHub(t, "hub.json", config)
	deferring := startHub(t, "hub.json", configText(t, entriesOf(all), map[string]any{"deferred": map[string]any{"mode": "always", "list_found": true}}))
	var wait []string
	for _, f := range all {
		wait = append(wait, "mcp."+f.id+".echo")
	}
	for _, version := range []string{rev2025, rev2026} {
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			check(t, wireHTTP(t, hub.url+"/mcp", version).open())
		})
		t.Run("tool_call "+version, func(t *testing.T) {
			t.Parallel()
			client := wireHTTP(t, deferring.url+"/mcp", version).open()
			client.refs = map[string]string{}
			check(t, client)
		})
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			client := wireHub(t, config, version).open()
			client.ready(wait...)
			check(t, client)
		})
	}
}

// TestFidelityOfResults: a result that comes through the hub is the one that comes directly, byte for byte, on every way.
func TestFidelityOfResults(t *testing.T) {
	t.Parallel()
	all := farServers(t)
	results := append(append([]string(nil), oddResults...), generatedResults(15)...)
	want := map[string][]string{}
	for _, f := range all {
		direct := f.direct(t)
		for _, r := range results {
			name, args := answering(r)
			want[f.id] = append(want[f.id], onOneLine(t, direct.result(name, args, "")))
		}
	}
	eachClient(t, all, func(t *testing.T, client *wire) {
		for _, f := range all {
			for i, r := range results {
				name, args := answering(r)
				got := bare(t, client.result("mcp."+f.id+"."+name, args, ""), r, client.modern())
				want := want[f.id][i]
				if strings.HasSuffix(f.id, "26") && !client.modern() { // the result type belongs to that hop alone
					structured, _ := memberOf(t, want, "structuredContent")
					want = without(t, want, func(key string) bool { // nor do older clients take a structure that is no object
						return key == "resultType" || key == "structuredContent" && !strings.HasPrefix(structured, "{")
					})
				}
				if got != want {
					t.Errorf("%s\n got %.2000s\nwant %.2000s", f.id, got, want)
				}
			}
		}
	})
}

// TestFidelityOfRequests: what a client sends reaches the server byte for byte, but for the tool's name and what belongs
// to each hop.
func TestFidelityOfRequests(t *testing.T) {
	t.Parallel()
	all := farServers(t)
	const around = `{"first":{"b":1,"a":12345678901234567890},"name":%s,"arguments":%s,"task":{"ttl":9007199254740993},` +
		`"_meta":{%s},"\u006cast":1e400}`
	metas := []string{`"com.example/z":{"b":1.0,"a":"\u003c<"},"traceparent":"00"`, `"a":1,"progressToken":"mine","b":[2]`,
		`"progressToken":7,"later":12345678901234567890`, `"":{},"toolhub/x":[ ]`}
	arguments := slices.DeleteFunc(append(append([]string(nil), oddResults...), generatedResults(10)...), isRepeated) // those are refused
	sent := func(w *wire, name, args, meta string) string {
		if w.modern() {
			meta = join(meta, clientMeta+w.capabilities())
		}
		name, args = w.through(name, args)
		params := fmt.Sprintf(around, quoted(name), args, meta)
		messages := w.send(rawRequest{id: w.nextID(), method: "tools/call", name: name, params: params})
		content, _ := memberOf(t, w.resultOf(messages[len(messages)-1]), "structuredContent")
		got, _ := memberOf(t, content, "params")
		return withoutHop(w.t, got)
	}
	want := map[string][]string{}
	for _, f := range all {
		direct := f.direct(t)
		for i, a := range arguments {
			want[f.id] = append(want[f.id], onOneLine(t, sent(direct, "echo", a, metas[i%len(metas)])))
		}
	}
	eachClient(t, all, func(t *testing.T, client *wire) {
		for _, f := range all {
			for i, a := range arguments {
				if got := sent(client, "mcp."+f.id+".echo", a, metas[i%len(metas)]); got != want[f.id][i] {
					t.Errorf("%s\n got %.2000s\nwant %.2000s", f.id, got, want[f.id][i])
				}
			}
		}
	})
}

// withoutHop is the params object of a call without the members of _meta that belong to each hop.
func withoutHop(t testing.TB, params string) string {
	t.Helper()
	for _, m := range membersOf(t, params) {
		if m.key == "_meta" {
			meta := without(t, params[m.valueAt:m.end], func(key string) bool {
				return key == "progressToken" || strings.HasPrefix(key, "io.modelcontextprotocol/")
			})
			return params[:m.valueAt] + meta + params[m.end:]
		}
	}
	return params
}

// TestFidelityOfErrorsAndProgress: a JSON-RPC error is passed on as it is, and of a progress report all but the token.
func TestFidelityOfErrorsAndProgress(t *testing.T) {
	t.Parallel()
	all := farServers(t)
	wrong := []string{
		`{"code":-32000,"message":""}`,
		`{"message":"<no> \u003c","data":{"z":12345678901234567890,"a":[1.0,1e400]},"code":-32042,"more":{"b":1,"a":2}}`,
		`{"code":-32602,"message":"\ud800","data":null}`,
		`{ "code" : 7 , "message" : "blanks" , "data" : "text" }`,
	}
	eachClient(t, all, func(t *testing.T, client *wire) {
		for _, f := range all {
			for _, e := range wrong {
				messages := client.send(client.call("mcp."+f.id+".fail", `{"error":`+e+`}`, ""))
				got, _ := memberOf(t, messages[len(messages)-1], "error")
				if strings.HasPrefix(f.id, "pretty") {
					e = onOneLine(t, e+"\n")
				}
				if got != e {
					t.Errorf("%s: error\n got %s\nwant %s", f.id, got, e)
				}
			}
			if f.id == "json25" || f.id == "pretty26" {
				continue // they answer with one JSON text, where progress has no place
			}
			for _, token := range []string{`"t"`, `1.50`, `12345678901234567890`, `"\u0074"`} {
				messages := client.send(client.call("mcp."+f.id+".progress", `{"n":3}`, `"progressToken":`+token))
				for i, m := range messages[:len(messages)-1] {
					want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":`+
						`{"progressToken":%s,"progress":%d,"total":3,"message":"step <%d>","x":1.50}}`, token, i+1, i+1)
					if strings.HasPrefix(f.id, "pretty") {
						m = onOneLine(t, m+"\n")
					}
					if m != want {
						t.Errorf("%s: progress\n got %s\nwant %s", f.id, m, want)
					}
				}
				if len(messages) != 4 {
					t.Errorf("%s: %d messages of 4", f.id, len(messages))
				}
			}
		}
	})
}

// Keys of the upstream's hop stay there, and nobody else's word stands for an invocation of the hub's.
func TestHopKeysOfResults(t *testing.T) {
	t.Parallel()
	all := farServers(t)
	const sent = `{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"far"},` +
		`"toolhub/invocation":{"forged":1},"b":2},"z":1}`
	eachClient(t, all, func(t *testing.T, client *wire) {
		for _, f := range all {
			result := client.result("mcp."+f.id+".raw", `{"result":`+sent+`}`, "")
			meta, _ := memberOf(t, result, "_meta")
			if strings.Contains(meta, "forged") || strings.Contains(meta, `"far"`) {
				t.Errorf("%s: _meta is %s", f.id, meta)
			}
			if info, ok := memberOf(t, meta, "io.modelcontextprotocol/serverInfo"); ok != client.modern() ||
				ok && !strings.Contains(info, `"name":"mcp-toolhub"`) {
				t.Errorf("%s: serverInfo is %q", f.id, info)
			}
			if got := bare(t, result, `{"_meta":{}}`, client.modern()); got != `{"content":[],"_meta":{"a":1,"b":2},"z":1}` {
				t.Errorf("%s: result %s", f.id, got)
			}
		}
	})
}

// oddTools are declarations of every shape that is left as it is.
var oddTools = []string{
	`{"x-first":12345678901234567890,"annotations":{"readOnlyHint":true,"custom":{"z":1,"a":[1.0,1e400]}},"name":"odd",` +
		`"inputSchema":{"$defs":{"q":{"type":"string","description":"<&>\u003c"}},` +
		`"properties":{"z":{"$ref":"#/$defs/q"},"a":{"default":1E2}},"type":"object"},` +
		`"execution":{"taskSupport":"optional"},"icons":[{"src":"data:,x","sizes":["any"],"theme":"dark"}],"title":"T\u0074",` +
		`"_meta":{"anthropic/alwaysLoad":true,"z":null,"ui":{"resourceUri":"ui://x"}},"description":"\ud83d\ude00 😀 \/ e\u0301"}`,
	`{ "name" : "blanks" ,	"inputSchema" : { "type" : "object" } , "last" : [ ] }`,
	`{"inputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","definitions":{}},` +
		`"outputSchema":{"type":"object","x":1.50},"name":"out"}`,
	`{"name":"hints","inputSchema":{"type":"object"},"annotations":{"title":"x","openWorldHint":false,"more":1}}`,
	`{"description":"the name \"name\" in a text","names":["name"],"name":"twice",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`,
}

// TestFidelityOfDeclarations: a listed tool is declared as its server declares it, but for the name.
func TestFidelityOfDeclarations(t *testing.T) {
	t.Parallel()
	all := farServers(t)
	declared := append([]string{string(upstreamtest.Tool("echo"))}, oddTools...)
	for id, modern := range map[string]bool{"odd25": false, "odd26": true} {
		var tools []json.RawMessage
		for _, d := range declared { // a page that both had would be named in a form that tells whose it is
			tools = append(tools, json.RawMessage(strings.ReplaceAll(d, "ui://x", "ui://"+id)))
		}
		script := upstreamtest.Script{Modern: modern, Tools: tools, PageSize: 2}
		all = append(all, far{id: id, entry: child(script), direct: func(t testing.TB) *wire {
			return wireFake(t, script, generation(modern)).open()
		}})
	}
	all = all[len(all)-2:]
	want := map[string]string{}
	for _, f := range all {
		for name, declaration := range f.direct(t).tools() {
			for _, m := range membersOf(t, declaration) {
				if m.key == "name" {
					canonical := "mcp." + f.id + "." + name
					want[canonical] = declaration[:m.valueAt] + quoted(canonical) + declaration[m.end:]
				}
			}
		}
	}
	if len(want) != 2*len(declared) {
		t.Fatalf("%d tools were listed directly", len(want))
	}
	eachClient(t, all, func(t *testing.T, client *wire) {
		if client.refs != nil {
			if client.modern() {
				return // no list ever shows there what was loaded
			}
			for name := range want {
				client.load(name)
			}
		}
		got := client.tools()
		if client.refs != nil {
			delete(got, "tool_search")
			delete(got, "tool_call")
			delete(got, "tool_batch")
		}
		for name, declaration := range want {
			if got[name] != declaration {
				t.Errorf("%s\n got %s\nwant %s", name, got[name], declaration)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d tools of %d", len(got), len(want))
		}
	})
}

// far is one scripted server that the hub and the tests reach alike.
type far struct {
	id     string
	entry  map[string]any
	direct func(t testing.TB) *wire
}

// result is a random result of a tool.
func (g generator) result() string { return g.resultWith("") }
