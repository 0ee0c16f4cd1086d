//go:build e2e

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestErrorsPassTheResultLimit: the JSON-RPC error of a server is as large as a result may be for the caller, and no larger.
func TestErrorsPassTheResultLimit(t *testing.T) {
	t.Parallel()
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("fail")}}
	script.Features.Resources = []json.RawMessage{json.RawMessage(`{"uri":"own://a","name":"a"}`)}
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(script)}, map[string]any{
		"results": map[string]any{"max_inline_tokens": 2000}}))
	large := strings.Repeat("é", 1<<20)
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		for _, more := range []string{`"message":"` + large + `"`, `"message":"no","data":{"x":"` + large + `"}`, `"message":"no","data":{"x":1}`} {
			for method, params := range map[string]string{"tools/call": `"name":"mcp.s.fail","arguments":{"error":{"code":-5,` + more + `}}`,
				"resources/read": `"uri":"own://a","error":{"code":-5,` + more + `}`} {
				got := strings.Join(w.send(rawRequest{id: w.nextID(), method: method, params: w.params(params, ""), name: rawName(params)}), "\n")
				cut := strings.Contains(got, "the hub cut this error") && len(got) < 16000
				if small := strings.HasSuffix(more, ":1}"); !strings.Contains(got, `"code":-5`) || cut == small || small && !strings.Contains(got, more) {
					t.Errorf("%s %s: %d bytes: %.300s", version, method, len(got), got)
				}
			}
		}
	}
}
