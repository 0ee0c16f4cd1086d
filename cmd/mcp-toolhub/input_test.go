package main

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// Servers of both generations ask a client of 2026-07-28 for input during prompts/get and resources/read, through the
// running program: one by a request of its own on its call's stream, one by its result.
func TestInputForPromptsAndResources(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"web":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{})},
		"pipe": child(upstreamtest.Script{Modern: true}),
	}, nil))
	const answer = `{"action":"accept","content":{"big":12345678901234567890}}`
	for method, member := range map[string]string{"prompts/get": "name", "resources/read": "uri"} {
		questions := `,"arguments":{"questions":[{"id":"` + method + `","method":"elicitation/create","params":{"message":"why?"}}]}`
		for _, c := range []struct{ server, name, first, again, key, want string }{
			{"web", "ask", questions, questions, "q1", `"answers":[{"jsonrpc":"2.0","id":"` + method + `","result":` + answer + `}]`},
			{"pipe", "x", `,"answer":{"resultType":"input_required","requestState":"its \u006fwn","inputRequests":{"k":{"method":` +
				`"elicitation/create","params":{"message":"why?"}}}}`, "", "k", `"inputResponses":{"k":` + answer + `},"requestState":"its \u006fwn"`},
		} {
			w := wireHTTP(t, hub.url+"/mcp/s/"+c.server, rev2026)
			send := func(more string) string {
				params := strings.Replace(w.params(`"`+member+`":"`+c.name+`"`+more, ""), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{}}`, 1)
				got := w.send(rawRequest{id: "1", method: method, params: params, name: c.name})
				return got[len(got)-1]
			}
			first := send(c.first)
			result, _ := rawjson.Get([]byte(first), "result")
			requests, _ := rawjson.Get(result, "inputRequests")
			state, _ := rawjson.Get(result, "requestState")
			want := `{"` + c.key + `":{"method":"elicitation/create","params":{"message":"[` + c.server + `] why?"}}}`
			if string(requests) != want || len(state) < 50 {
				t.Errorf("%s of %s: %s", method, c.server, first)
				continue
			}
			bring := c.again + `,"inputResponses":{"` + c.key + `":` + answer + `},"requestState":` + string(state)
			if got := send(bring); !strings.Contains(got, c.want) {
				t.Errorf("%s of %s, then: %s", method, c.server, got)
			}
			if got := send(bring); !strings.Contains(got, "was used before") {
				t.Errorf("%s of %s, replayed: %s", method, c.server, got)
			}
		}
	}
}
