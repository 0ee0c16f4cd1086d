package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// requestServer is a server with resources of its own, of files and of the web, a prompt and completion.
func requestServer() map[string]any {
	raw := func(texts ...string) (all []json.RawMessage) {
		for _, text := range texts {
			all = append(all, json.RawMessage(text))
		}
		return all
	}
	return child(upstreamtest.Script{Tools: raw(string(upstreamtest.Tool("echo"))), Features: upstreamtest.Features{
		Resources: raw(`{"uri":"own://guide","name":"guide"}`), Subscribes: true, Completes: true, Prompts: raw(`{"name":"p"}`),
		Templates: raw(`{"uriTemplate":"file:///{+path}","name":"f"}`, `{"uriTemplate":"http://{+url}","name":"h"}`,
			`{"uriTemplate":"own://{+path}","name":"o"}`)}})
}

// TestRequestsAreJudgedByTheirTargets: what a resource, a prompt, a completion or a custom method is aimed at is denied, or asked about,
// as for a tool, and each request leaves one record.
func TestRequestsAreJudgedByTheirTargets(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": requestServer()}, map[string]any{"policy": map[string]any{
		"ask": map[string]any{"channels": []string{"client"}}, "targets": map[string]any{"denied_hosts": []string{"evil.example"}},
		"rules": []map[string]any{{"match": "mcp.s.acme/*", "then": "allow"}}}}))
	home := hub.cmd.Dir
	key, token := filepath.Join(home, ".ssh", "id_rsa"), filepath.Join(home, "state", "mcp-toolhub", "state.key")
	const asks = "somebody would have to allow it"
	denied := []struct{ method, params, class, why string }{
		{"resources/read", `"uri":"file://` + key + `"`, "permission_denied", asks},
		{"resources/read", `"uri":"file://` + strings.Replace(key, ".ssh", "%2essh", 1) + `"`, "permission_denied", asks},
		{"resources/read", `"uri":"file://` + token + `"`, "policy_blocked", "the hub keeps its own keys"},
		{"resources/read", `"uri":"own:/` + token + `"`, "policy_blocked", "the hub keeps its own keys"},
		{"resources/read", `"uri":"own:/` + key + `"`, "permission_denied", asks},
		{"resources/read", `"uri":"http://169.254.169.254/latest/"`, "permission_denied", asks},
		{"resources/read", `"uri":"own://169.254.169.254/latest/"`, "permission_denied", asks},
		{"resources/read", `"uri":"http://evil.example/"`, "policy_blocked", "is denied"},
		{"resources/read", `"uri":"own://evil.example/"`, "policy_blocked", "is denied"},
		{"resources/subscribe", `"uri":"file://` + token + `"`, "policy_blocked", "the hub keeps its own keys"},
		{"prompts/get", `"name":"p","arguments":{"path":"` + key + `"}`, "permission_denied", asks},
		{"prompts/get", `"name":"p","arguments":{"x":"` + token + `"}`, "policy_blocked", "the hub keeps its own keys"},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"file:///{+path}"},"argument":{"name":"path","value":"` + token[1:] + `"}`,
			"policy_blocked", "the hub keeps its own keys"},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"path","value":"` + key + `"}`,
			"permission_denied", asks},
		{"acme/read", `"path":"` + token + `"`, "policy_blocked", "the hub keeps its own keys"},
		{"acme/read", `"path":"` + key + `"`, "permission_denied", asks},
	}
	passes := []struct{ method, params string }{
		{"resources/read", `"uri":"own://guide"`},
		{"resources/read", `"uri":"own://any/other:thing?x=1"`},
		{"resources/read", `"uri":"file:///plain"`},
		{"resources/subscribe", `"uri":"own://guide"`},
		{"prompts/get", `"name":"p","arguments":{"x":"a text, with $(this) in it"}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"http://{+url}"},"argument":{"name":"url","value":"exam"}`},
		{"acme/read", `"x":1`},
	}
	requests := 0
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+viewOf("s"), version).open()
		request := func(method, params string) string {
			var of struct{ URI, Name string }
			mustDecode(t, "{"+params+"}", &of)
			r := rawRequest{id: w.nextID(), method: method, params: w.params(params, ""), name: of.URI + of.Name}
			got := w.send(r)
			return got[len(got)-1]
		}
		for _, c := range denied {
			if w.modern() && c.method == "resources/subscribe" {
				continue
			}
			requests++
			if got := request(c.method, c.params); !strings.Contains(got, `"error_class":"`+c.class+`"`) || !strings.Contains(got, c.why) {
				t.Errorf("%s %s %s: %s", version, c.method, c.params, got)
			}
		}
		for _, c := range passes {
			if w.modern() && c.method == "resources/subscribe" {
				continue
			}
			requests++
			got := request(c.method, c.params)
			if _, isResult := memberOf(t, got, "result"); !isResult {
				t.Errorf("%s %s %s: %s", version, c.method, c.params, got)
			}
		}
	}
	var all []struct{ Tool, Status string }
	mustDecode(t, hub.command(t, "calls", "list", "-o", "json", "--limit", "1000"), &all)
	if n := len(all); n != requests {
		t.Errorf("%d records of %d requests: %v", n, requests, all)
	}
}

// TestPeopleAreAskedAboutResources: a person who is asked about a sensitive resource can allow it, and the request goes on.
func TestPeopleAreAskedAboutResources(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": requestServer()}, map[string]any{"policy": map[string]any{}}))
	uri := "file://" + filepath.Join(hub.cmd.Dir, ".ssh", "id_rsa")
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).able().open()
		for _, choice := range []string{"allow_once", "deny_once"} {
			x := &exchange{w: w, answer: answerWith(choice, "")}
			request := func(more string) rawRequest {
				return rawRequest{id: w.nextID(), method: "resources/read", params: w.params(join(`"uri":"`+uri+`"`, more), ""), name: uri}
			}
			got := ""
			if w.modern() {
				first, _ := memberOf(t, x.round(request("")), "result")
				got = x.round(request(x.input(first)))
			} else {
				got = x.inSession(request(""))
			}
			if len(x.asked) != 1 || !strings.Contains(x.asked[0].params, "sensitive path") || !strings.Contains(x.asked[0].params, uri) {
				t.Errorf("%s: asked %v", version, x.asked)
			}
			if allowed := strings.Contains(got, `"params":{"uri":"`+uri); allowed != (choice == "allow_once") {
				t.Errorf("%s %s: %s", version, choice, got)
			}
		}
	}
}
