package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
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
	`{"content":[],"_meta":{"com.example/z":{"b":1,"a":1e400},"toolhubs/other":1,"progressToken":"x","":[ ]},"after":1}`,
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
