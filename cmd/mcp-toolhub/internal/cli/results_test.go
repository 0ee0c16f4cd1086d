package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// as2026 makes the requests of a client of 2026-07-28 those of the program of that name.
func as2026(r rawRequest, client string) rawRequest {
	r.params = strings.Replace(r.params, `{"name":"wire"`, `{"name":"`+client+`"`, 1)
	return r
}

// claimant is a client that says what program it is, over HTTP or stdio.
func claimant(t *testing.T, w *wire, client string) func(rawRequest) string {
	t.Helper()
	switch {
	case w.modern():
	case w.stdin != nil:
		w.write(w.initialize(client).text())
		w.next()
		w.write(initialized.text())
	default:
		w.as(client)
	}
	return func(r rawRequest) string {
		messages := w.send(as2026(r, client))
		return messages[len(messages)-1]
	}
}

const threeMB = `{"bytes":3000000}`

// stored is a result that was stored, as its caller learns of it.
type stored struct {
	id   tool.ResultID
	uri  string
	size int
	sum  string
}

// storedIn reads the resource link of a response.
func storedIn(t *testing.T, response string) (s stored) {
	t.Helper()
	var m struct {
		Result struct {
			Content []struct {
				Type, URI, MimeType string
				Size                int
				Meta                map[string]any `json:"_meta"`
			}
		}
	}
	if err := json.Unmarshal([]byte(response), &m); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Result.Content {
		if c.Type == "resource_link" && c.MimeType == "application/json" {
			s.uri, s.size = c.URI, c.Size
			s.sum, _ = c.Meta["toolhub/sha256"].(string)
		}
	}
	if s.uri == "" {
		t.Fatalf("no link to a stored result in %.2000s", response)
	}
	s.id = tool.ResultID(strings.TrimPrefix(s.uri, "toolhub://results/"))
	return s
}

// readStored reads the resource of a stored result, and returns the text of it.
func (w *wire) readStored(uri string) rawRequest {
	r := rawRequest{id: w.nextID(), method: "resources/read", params: w.params(`"uri":"`+uri+`"`, "")}
	r.name = uri
	return r
}

// resourceText returns the text in a response to resources/read.
func resourceText(t *testing.T, response string) string {
	t.Helper()
	var m struct {
		Result struct {
			Contents []struct{ URI, MimeType, Text string }
		}
	}
	if err := json.Unmarshal([]byte(response), &m); err != nil || len(m.Result.Contents) != 1 {
		t.Fatalf("%v: %.1000s", err, response)
	}
	return m.Result.Contents[0].Text
}

// demoHub is a config with the demo server, and callers ann and bob over HTTP.
func demoHub(more string) string {
	return `{"mcpServers":{"demo":{"command":"mcp-toolhub","args":["demo-server"]}},"policy":{"mode":"accept_all"},
 "hub":{"auth":{"tokens":[{"name":"ann","token":"${env:ANN}"},{"name":"bob","token":"${env:BOB}"}]}}` + more + `}`
}

// tokensOfTwo are the environment of a hub on demoHub, and the headers of its callers.
var tokensOfTwo = []string{"ANN=ann-has-a-token-of-her-own", "BOB=bob-has-a-token-of-his-own"}

func headerOf(name string) []string {
	for _, v := range tokensOfTwo {
		if token, ok := strings.CutPrefix(v, strings.ToUpper(name)+"="); ok {
			return []string{"Authorization", "Bearer " + token}
		}
	}
	return nil
}

// TestALargeResultForClaudeCode has the demo server answer with 3 MB, for clients of both generations, over stdio and HTTP: the client
// that says that it is Claude Code gets a preview, and reads the rest; every other one gets it whole.
func TestALargeResultForClaudeCode(t *testing.T) {
	t.Parallel()
	h := startHubIn(t, tokensOfTwo, "hub.json", demoHub(""))
	for _, version := range []string{rev2025, rev2026} {
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			checkLargeResult(t, func() *wire { return wireHTTP(t, h.url+"/mcp", version, headerOf("ann")...) })
		})
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir() // hubs of one person share their state
			checkLargeResult(t, func() *wire {
				return wireHubIn(t, dir, `{"mcpServers":{"demo":{"command":"mcp-toolhub","args":["demo-server"]}},"policy":{"mode":"accept_all"}}`, version)
			})
		})
	}
}

func checkLargeResult(t *testing.T, connect func() *wire) {
	plain := connect()
	unknown := claimant(t, plain, "wire")
	native := plain.resultOf(unknown(plain.call("mcp.demo.big", threeMB, "")))
	if len(native) < 3_000_000 || strings.Contains(native, "toolhub://results") {
		t.Fatalf("a client without a limit got %d bytes: %.300s", len(native), native)
	}
	if tools := unknown(rawRequest{id: plain.nextID(), method: "tools/list", params: plain.params("", "")}); strings.Contains(tools, "result_read") ||
		!strings.Contains(tools, `"outputSchema":`) {
		t.Errorf("without a limit, the list is %.500s", tools)
	}
	w := connect()
	claude := claimant(t, w, "claude-code")
	tools := claude(rawRequest{id: w.nextID(), method: "tools/list", params: w.params("", "")})
	if !strings.Contains(tools, `"name":"result_read"`) || strings.Contains(tools, `"outputSchema":`) {
		t.Errorf("the list of Claude Code is %.500s", tools)
	}
	small := claude(w.call("mcp.demo.big", `{"bytes":45000}`, ""))
	if len(small) < 45_000 || strings.Contains(small, "toolhub://results") {
		t.Errorf("a result within the limit became %.300s", small)
	}
	response := claude(w.call("mcp.demo.big", threeMB, ""))
	s := storedIn(t, response)
	if len(response) > 20_000 || !strings.Contains(response, "00000000 0123456789") || !strings.Contains(response, "read on with result_read") {
		t.Errorf("a preview of %d bytes: %.1000s", len(response), response)
	}
	whole := resourceText(t, claude(w.readStored(s.uri)))
	if len(whole) != s.size || tool.Digest([]byte(whole)) != s.sum {
		t.Errorf("read %d bytes of %d", len(whole), s.size)
	}
	if a, b := textOf(t, whole), textOf(t, native); a != b || len(a) != 3_000_000 {
		t.Errorf("the stored text has %d bytes, the native one %d", len(a), len(b))
	}
	part := claude(w.call("result_read", `{"id":"`+string(s.id)+`","lines":"40000-40001"}`, ""))
	if want := strings.Split(textOf(t, whole), "\n")[39999]; !strings.Contains(part, want) || strings.Contains(part, "resource_link") {
		t.Errorf("lines 40000 and 40001 are %.1000s, want %q", part, want)
	}
	for _, arguments := range []string{`{"id":"res_none"}`, `{"id":"` + string(s.id) + `","lines":"x"}`} {
		if r := claude(w.call("result_read", arguments, "")); !strings.Contains(r, `"isError":true`) || !strings.Contains(r, "invalid_arguments") {
			t.Errorf("%s: %.500s", arguments, r)
		}
	}
}

// textOf returns the first text of a native result.
func textOf(t *testing.T, native string) (text string) {
	t.Helper()
	content, _ := rawjson.Get([]byte(native), "content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		text, _ = rawjson.GetString(block, "text")
		return false
	})
	return text
}

// TestOthersResultsDoNotExist has bob ask for ann's result: the answers are those to an id that never was, but for the id.
func TestOthersResultsDoNotExist(t *testing.T) {
	t.Parallel()
	h := startHubIn(t, tokensOfTwo, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000}`))
	for _, version := range []string{rev2025, rev2026} {
		ann := wireHTTP(t, h.url+"/mcp", version, headerOf("ann")...).open()
		s := storedIn(t, last(ann.send(ann.call("mcp.demo.big", `{"bytes":100000}`, ""))))
		bob := wireHTTP(t, h.url+"/mcp", version, headerOf("bob")...).open()
		none := "res_" + strings.Repeat("0", len(s.id)-len("res_"))
		ask := func(id string) string {
			bob.ids = 100
			answers := last(bob.send(bob.readStored(tool.ResultURI(tool.ResultID(id))))) +
				last(bob.send(bob.call("result_read", `{"id":"`+id+`"}`, "")))
			return invocationIDs.ReplaceAllString(strings.ReplaceAll(answers, id, "ID"), "INV")
		}
		if theirs, never := ask(string(s.id)), ask(none); theirs != never || !strings.Contains(theirs, "is not found") || !strings.Contains(theirs, "unknown_result") {
			t.Errorf("%s: another's\n%s\nnobody's\n%s", version, theirs, never)
		}
		if got := resourceText(t, last(ann.send(ann.readStored(s.uri)))); len(got) != s.size {
			t.Errorf("%s: ann read %d bytes", version, len(got))
		}
	}
}

var invocationIDs = regexp.MustCompile(`inv_[0-9a-z]+`)

func last(messages []string) string { return messages[len(messages)-1] }
