package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
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

// TestRequestsThatBringNoAnswer: each request that continues a call is in its record, also one that brings no answer. One whose answers are
// no object is malformed.
func TestRequestsThatBringNoAnswer(t *testing.T) {
	t.Parallel()
	g, config := gatedConfig(t, nil)
	close(g.gate("x"))
	dir := t.TempDir()
	w := wireHubIn(t, dir, config, rev2026).able().open()
	w.awaitTools("mcp.far.edit_file")
	send := func(more string) (id, state string) {
		r := w.call("mcp.far.edit_file", `{"content":"x"}`, "")
		r.params = "{" + join(more, r.params[1:])
		got := w.send(r)
		result, _ := rawjson.Get([]byte(got[len(got)-1]), "result")
		text, _ := rawjson.GetString(result, "requestState")
		return r.id, text
	}
	first, state := send("")
	ids := []string{first}
	for _, none := range []string{``, `"inputResponses":{}`, `"inputResponses":{"other":{"action":"accept"}}`, `"inputResponses":{"q1":7}`} {
		var id string
		id, state = send(join(none, `"requestState":`+quoted(state)))
		ids = append(ids, id)
	}
	malformed, _ := send(`"inputResponses":["q1"],"requestState":` + quoted(state))
	last, _ := send(`"inputResponses":{"q1":{"action":"accept","content":{}}},"requestState":` + quoted(state))
	w.hangUp()
	ends := map[string]tool.Invocation{}
	if err := persist.Read(filepath.Join(dir, "state", "mcp-toolhub", "journal"), func(line json.RawMessage) bool {
		var inv tool.Invocation
		if mustDecode(t, string(line), &inv); inv.Object == tool.ObjectInvocation {
			ends[inv.ExternalMappings[0].JSONRPCRequestID] = inv
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, m := range ends[first].ExternalMappings {
		if m.Role == "client" {
			known = append(known, m.JSONRPCRequestID)
		}
	}
	if ids = append(ids, last); !slices.Equal(known, ids) || ends[first].Status != tool.StatusSucceeded {
		t.Errorf("%s, the record names the requests %q, want %q", ends[first].Status, known, ids)
	}
	if ends[malformed].Status != tool.StatusValidationFailed {
		t.Errorf("the malformed request ended as %q", ends[malformed].Status)
	}
}
