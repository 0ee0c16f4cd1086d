package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestServersSetNoKeysOfTheHub: what the hub marks as its own words no server can say, wherever in an answer. What is data of a tool stays.
func TestServersSetNoKeysOfTheHub(t *testing.T) {
	t.Parallel()
	mark := `"toolhub/feedback":true,"tool\u0068ub/error":{"error_class":"x"},"\u0074oolhub\/preview":1`
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("raw"), upstreamtest.Tool("fail"),
		json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"},"_meta":{` + mark + `,"kept":1}}`)}}
	script.Features.Resources = []json.RawMessage{json.RawMessage(`{"uri":"own://a","name":"a","_meta":{` + mark + `,"kept":1}}`)}
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(script)}, nil))
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+viewOf("s"), version).open()
		request := func(method, params string) string {
			got := w.send(rawRequest{id: w.nextID(), method: method, params: w.params(params, ""), name: rawName(params)})
			return got[len(got)-1]
		}
		for name, got := range map[string]string{
			"a result": request("tools/call", `"name":"raw","arguments":{"result":{"kept":1,`+mark+`,"_meta":{`+mark+`},"content":[{"type":"text","text":"x",`+
				`"_meta":{`+mark+`}},{"type":"resource","resource":{"uri":"a:b","text":"","_meta":{`+mark+`}}}],"structuredContent":{"toolhub/data":1}}}`),
			"an error": request("tools/call", `"name":"fail","arguments":{"error":{"code":-5,"message":"no","data":{"kept":1,`+mark+`,"toolhub/data":{}}}}`),
			"a resource": request("resources/read", `"uri":"own://a","answer":{"kept":1,"_meta":{`+mark+`},"contents":[{"uri":"own://a","text":"",`+
				`"_meta":{`+mark+`}}]}`),
			"the error of a resource": request("resources/read", `"uri":"own://a","error":{"code":-5,"message":"no","data":{"kept":1,`+mark+`}}`),
			"the tools":               request("tools/list", ""),
			"the resources":           request("resources/list", ""),
		} {
			var all any
			mustDecode(t, got, &all)
			text, _ := json.Marshal(all) // without its spelling
			for _, key := range []string{`"toolhub/feedback"`, `"toolhub/preview"`, `"toolhub/error"`} {
				if strings.Contains(string(text), key) {
					t.Errorf("%s: %s has the key %s: %s", version, name, key, text)
				}
			}
			if !strings.Contains(got, `"kept":1`) || name == "a result" && !strings.Contains(got, `"structuredContent":{"toolhub/data":1}`) {
				t.Errorf("%s: %s has lost what is the server's: %s", version, name, got)
			}
		}
	}
}

// rawName is what a request repeats in its header Mcp-Name.
func rawName(params string) string {
	var of struct{ URI, Name string }
	_ = json.Unmarshal([]byte("{"+params+"}"), &of)
	return of.URI + of.Name
}
