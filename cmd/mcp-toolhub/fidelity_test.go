package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// oddResults are results that a decoder and an encoder on the way would change.
var oddResults = []string{
	`{}`,
	`{ }`,
	`{"content":[]}`,
	`{"z":1,"content":[],"a":2,"m":3}`,
	`{"content":[],"big":123456789012345678901234567890,"f":1.0,"e":1E+2,"neg":-0,"tiny":1e-400,"huge":1e400,` +
		`"long":0.10000000000000000000000000001}`,
	`{"content":[{"type":"hologram","data":{"b":1,"a":[]},"depth":1e400},{"type":"text","text":"x","later":{"y":null}},` +
		`7,null,"bare"]}`,
	`{"content":[{"type":"text","text":"<a href=\"x\">&amp;</a> \u003c\u003C \/ / \ud83d\ude00 😀 \u2028 \u0000 ` +
		`\b\f\n\r\t \u0061"}]}`,
	`{"content":[{"type":"text","text":"\ud800 lone \udfff\udfff \uD83D"}]}`,
	"{\"content\":[{\"type\":\"text\",\"text\":\"\u2028\u2029\u200b\ufeff \x7f e\u0301\"}]}",
	`{"content":[],"é":1,"e\u0301":2,"\u0065":3,"e":4,"E":5,"":6,"__proto__":7,"a.b":8,"a\/b":9,"\"":10,"\\":11}`,
	`{"content":[],"content":[{"type":"text","text":"second"}],"Content":1,"CONTENT":2,"\u0063ontent":3}`,
	`{"isError":true,"content":[{"type":"text","text":"no"}]}`,
	`{"isError":false,"content":[]}`,
	`{"isError":"true","content":{}}`,
	`{"content":[],"structuredContent":null}`,
	`{"content":[],"structuredContent":[1,{"a":[]},"x"]}`,
	`{"content":[],"structuredContent":"<text>"}`,
	`{"structuredContent":12345678901234567890}`,
	`{"structuredContent":{"z":{"y":{"x":1.50}},"a":false}}`,
	`{"_meta":{},"content":[]}`,
	`{"content":[],"_meta":{ }}`,
	`{"content":[],"_meta":{"com.example/z":{"b":1,"a":1e400},"toolhub/other":1,"progressToken":"x","":[ ]},"after":1}`,
	`{"content":[],"\u005fmeta":{"escaped":1}}`,
	`{ "content" : [ 1 ,	2 ] , "blanks" : { "a" : 1 } , "_meta" : { "k" : "v" } }`,
	`{"content":[],"jsonrpc":"1.0","id":9,"result":{},"error":{"code":1},"method":"x","params":{}}`,
	`{"content":[],"text":"{\"_meta\":{\"toolhub/invocation\":1}}","resultTypo":"complete"}`,
	`{"content":[],"deep":` + strings.Repeat(`[`, 700) + strings.Repeat(`]`, 700) + `}`,
	`{"content":[],"deep":` + strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300) + `}`,
	`{"content":[{"type":"text","text":"` + strings.Repeat("line\\n", 8000) + `"}]}`,
	`{"nextCursor":"x","tools":[],"content":[{"type":"resource_link","uri":"file:///a","name":"n","size":1e3}]}`,
}

// isRepeated reports whether an object in text has a member twice.
func isRepeated(text string) bool {
	_, twice := rawjson.Repeated([]byte(text), bytes.Compare)
	return twice
}

// answering is a tool of the scripted servers, and its arguments, that answers with a result. Arguments have no member twice.
func answering(result string) (name, args string) {
	if isRepeated(result) {
		return "answer", `{"text":` + quoted(`{"jsonrpc":"2.0","id":$ID,"result":`+result+`}`) + `}`
	}
	return "raw", `{"result":` + result + `}`
}

// generatedResults are random results, the same ones every time.
func generatedResults(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = newGenerator(uint64(i)).result()
	}
	return out
}

// far is one scripted server that the hub and the tests reach alike.
type far struct {
	id     string
	entry  map[string]any
	direct func(t testing.TB) *wire
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

// fakeHTTP serves a scripted server over HTTP and returns its URL.
func fakeHTTP(t testing.TB, o upstreamtest.Options) string {
	t.Helper()
	url, _ := fakeHandler(t, o)
	return url
}

func fakeHandler(t testing.TB, o upstreamtest.Options) (string, *upstreamtest.Handler) {
	t.Helper()
	h := upstreamtest.NewHandler(o)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, h
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
	deferring := startHub(t, "hub.json", configText(t, entriesOf(all), map[string]any{"deferred": map[string]any{"mode": "always"}}))
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

var invocationPattern = regexp.MustCompile(`^\{"invocation_id":"inv_[0-9a-z]{26}","status":"(succeeded|failed)"` +
	`(,"error_class":"execution_failed")?(,"output":"(empty|missing)")?\}$`)

// bare is a result without what the hub adds to it: the member toolhub/invocation of _meta and, on 2026-07-28, the
// result type and who the server is. sent tells which of these members were there already.
func bare(t testing.TB, result, sent string, modern bool) string {
	t.Helper()
	meta, ok := memberOf(t, result, "_meta")
	if !ok {
		t.Fatalf("no _meta in %.500s", result)
	}
	if about, _ := memberOf(t, meta, "toolhub/invocation"); !invocationPattern.MatchString(about) {
		t.Errorf("toolhub/invocation is %q", about)
	}
	meta = without(t, meta, func(key string) bool {
		return key == "toolhub/invocation" || modern && key == "io.modelcontextprotocol/serverInfo"
	})
	_, hadMeta := memberOf(t, sent, "_meta")
	_, hadType := memberOf(t, sent, "resultType")
	for _, m := range membersOf(t, result) {
		if m.key == "_meta" {
			result = result[:m.valueAt] + meta + result[m.end:]
			break
		}
	}
	if !hadMeta && meta != "{}" {
		t.Errorf("_meta holds %s", meta)
	}
	if kind, _ := memberOf(t, result, "resultType"); modern && !hadType && kind != `"complete"` {
		t.Errorf("the result type is %q", kind)
	}
	return without(t, result, func(key string) bool {
		return key == "_meta" && !hadMeta || modern && key == "resultType" && !hadType
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

// FuzzFidelity sends whatever JSON object the fuzzer finds as arguments, and wants it back as the result. One hub and one
// scripted server serve the whole run.
func FuzzFidelity(f *testing.F) {
	for i, r := range oddResults {
		f.Add(uint64(i), r)
	}
	hub := startHub(f, "hub.json", configText(f, map[string]any{"far": with(child(upstreamtest.Script{}), "validate", "off")}, nil))
	clients := []*wire{wireHTTP(f, hub.url+"/mcp", rev2025).open(), wireHTTP(f, hub.url+"/mcp", rev2026)}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		for _, r := range []string{strings.Trim(text, " \t\r\n"), newGenerator(seed).resultWith(text)} {
			if !isFairResult(r) {
				continue
			}
			for _, c := range clients {
				c.t = t
				name, args := answering(r)
				got := bare(t, c.result("mcp.far."+name, args, ""), r, c.modern())
				if want := onOneLine(t, r); got != want {
					t.Errorf("%s\n got %q\nwant %q", c.version, got, want)
				}
			}
		}
	})
}

// isFairResult reports whether a result may be expected to come through unchanged: an object, in UTF-8, not nested beyond what
// the hub takes, with at most one _meta that is an object without keys of the hop's and the hub's own.
func isFairResult(text string) bool {
	var top map[string]json.RawMessage
	if !utf8.ValidString(text) || len(text) > 1<<20 || strings.Count(text, "[")+strings.Count(text, "{") > 900 {
		return false
	}
	if json.Unmarshal([]byte(text), &top) != nil || top == nil {
		return false
	}
	metas := 0
	d := json.NewDecoder(strings.NewReader(text))
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
		if key == "_meta" {
			metas++
		}
	}
	var meta map[string]json.RawMessage
	if metas > 1 || metas == 1 && (json.Unmarshal(top["_meta"], &meta) != nil || meta == nil) {
		return false
	}
	for key := range meta {
		if key == "toolhub/invocation" || strings.HasPrefix(key, "io.modelcontextprotocol/") {
			return false
		}
	}
	return true
}

// generator makes random JSON that is legal and odd.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 7))} }

// result is a random result of a tool.
func (g generator) result() string { return g.resultWith("") }

// resultWith is a random result that holds text as a string somewhere, if it can be one.
func (g generator) resultWith(text string) string {
	members := []string{
		g.key("content") + g.colon() + g.value(3),
		g.key("structuredContent") + g.colon() + g.value(4),
		g.key("isError") + g.colon() + g.pick("true", "false", "null", "0"),
		g.key("_meta") + g.colon() + g.object(2, "com.example/", nil),
		g.text() + g.colon() + g.value(2),
		g.text() + g.colon() + g.value(2),
		`"resultType"` + g.colon() + g.pick(`"complete"`, `"other"`),
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	members = members[:1+g.IntN(len(members))]
	if s := `"` + text + `"`; text != "" && json.Valid([]byte(s)) {
		members = append(members, `"fuzzed"`+g.colon()+s, s+g.colon()+"1")
	}
	return "{" + g.blank() + strings.Join(members, g.blank()+","+g.blank()) + g.blank() + "}"
}

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) blank() string { return g.pick("", "", "", "", " ", "\t", "  ") }

func (g generator) colon() string { return g.blank() + ":" + g.blank() }

// key is name, now and then written with an escape.
func (g generator) key(name string) string {
	if i := g.IntN(4 * len(name)); i < len(name) {
		return fmt.Sprintf(`"%s\u%04x%s"`, name[:i], name[i], name[i+1:])
	}
	return `"` + name + `"`
}

func (g generator) value(depth int) string {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch g.IntN(kinds) {
	case 0:
		return g.pick("null", "true", "false")
	case 1, 2:
		return g.number()
	case 3, 4, 5:
		return g.text()
	case 6:
		var elements []string
		for range g.IntN(5) {
			elements = append(elements, g.value(depth-1))
		}
		return "[" + g.blank() + strings.Join(elements, ","+g.blank()) + g.blank() + "]"
	default:
		return g.object(depth, "", []string{`"type":` + g.pick(`"text"`, `"hologram"`, `7`)})
	}
}

func (g generator) object(depth int, prefix string, members []string) string {
	for range g.IntN(5) {
		key := g.text()
		if prefix != "" {
			key = `"` + prefix + key[1:]
		}
		members = append(members, key+g.colon()+g.value(depth-1))
	}
	return "{" + g.blank() + strings.Join(members, g.blank()+","+g.blank()) + g.blank() + "}"
}

func (g generator) number() string {
	digits := g.pick("0", "1", "-0", "9007199254740993", "123456789012345678901234567890", "-7")
	return digits + g.pick("", "", ".0", ".50", ".10000000000000000000000001") + g.pick("", "", "e400", "E+05", "e-400")
}

func (g generator) text() string {
	pieces := []string{`a`, `b`, `content`, `\u0061`, `\u003c`, `<&>`, `\/`, `\"`, `\\`, `\ud83d\ude00`, `😀`, `\ud800`,
		`\udfff`, `\u0000`, "\u2028", "e\u0301", `é`, `_meta`, ` `, `}`, `{"`, `\n`, "\x7f", `__proto__`, `,`, `:`, `[`}
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString(pieces[g.IntN(len(pieces))])
	}
	if b.String() == "_meta" {
		return `"_meta_"`
	}
	return `"` + strings.NewReplacer(`{"`, `{\"`).Replace(b.String()) + `"`
}
