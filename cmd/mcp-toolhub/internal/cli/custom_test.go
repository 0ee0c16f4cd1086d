package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// customCapabilities are what a server and a client say of what the hub does not know, as they write it.
const (
	customExperimental = `"experimental":{"acme/b":{"z":1.50,"a":12345678901234567890},"acme/a":{}}`
	customExtensions   = `"com.acme/things":{"v":2.0,"list":[ ]}`
)

// customServers are servers of both generations with an extension of their own.
func customServers(t testing.TB) map[string]any {
	script := func(modern bool) upstreamtest.Script {
		s := upstreamtest.Script{Modern: modern, Capabilities: `,` + customExperimental + `,"extensions":{` + customExtensions + `}`}
		for _, name := range []string{"noted", "say", "shout", "echo", "raw", "canceled", "ask"} {
			s.Tools = append(s.Tools, upstreamtest.Tool(name))
		}
		return s
	}
	return map[string]any{
		"oldhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script(false)})},
		"oldstdio": child(script(false)),
		"oldown":   with(child(script(false)), "isolation", "session"),
		"newhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script(true)})},
		"newstdio": child(script(true)),
	}
}

// tell sends a notification.
func (c *taskClient) tell(r rawRequest) {
	c.t.Helper()
	if c.w.stdin != nil {
		c.w.write(r.text())
		return
	}
	if status, _, all := c.w.post(r); status != 202 {
		c.t.Errorf("the notification was answered with %d %q", status, all)
	}
}

// TestKnownMethodsAreNotPassed holds that nothing gets past the pipeline in the other form: a request of a known method
// without an id, which many a server would carry out all the same, and a known notification with one, which could end what
// others do.
func TestKnownMethodsAreNotPassed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		for _, server := range []string{"oldhttp", "newstdio"} {
			play := func(t *testing.T, w *wire) {
				w.open()
				if w.stdin != nil {
					w.awaitTools("noted")
				}
				w.ids = 100
				c := newTaskClient(t, w, "")
				tell := func(method, params string) {
					r := rawRequest{method: method, params: params}
					if w.stdin != nil {
						w.write(r.text())
					} else {
						w.post(r)
					}
				}
				for _, method := range []string{"tools/call", "tools/list", "prompts/get", "resources/subscribe", "logging/setLevel", "tasks/cancel",
					"subscriptions/listen", "initialize", "ping", "elicitation/create"} {
					tell(method, `{"name":"echo","taskId":"1","level":"debug"}`)
				}
				c.tell(rawRequest{method: "acme/last", params: `{}`})
				if noted := c.do(c.tool("noted", `{}`, "", "")); strings.Count(noted, `"jsonrpc"`) != 2 || !strings.Contains(noted, `"acme/last"`) {
					t.Errorf("the server got %s", noted)
				}
				for _, method := range []string{"notifications/cancelled", "notifications/initialized", "notifications/acme"} {
					r := c.request(method, "", `"requestId":"forged"`, "")
					if w.stdin == nil {
						if status, _, all := w.post(r); status < 400 && !strings.Contains(strings.Join(all, ""), "-32601") {
							t.Errorf("a request %s is answered with %d %q", method, status, all)
						}
					} else if got := c.do(r); !strings.Contains(got, "-3260") {
						t.Errorf("a request %s is answered with %s", method, got)
					}
				}
				if got := c.do(c.tool("canceled", `{}`, "", "")); strings.Contains(got, "forged") {
					t.Errorf("the server was told of %s", got)
				}
			}
			t.Run("stdio "+version+" to "+server, func(t *testing.T) {
				t.Parallel()
				play(t, wireHub(t, configText(t, customServers(t), nil), version, "--server", server))
			})
			t.Run("http "+version+" to "+server, func(t *testing.T) {
				t.Parallel()
				hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
				eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
				play(t, wireHTTP(t, hub.url+"/mcp/s/"+server, version))
			})
		}
	}
}

// canceledID finds the id of a request that a server was told of, which is one of the hub's.
var canceledID = regexp.MustCompile(`"ids":\[[0-9]`)

// TestCustomCancelled holds that a request which the hub does not know can be cancelled, and that the server is told.
func TestCustomCancelled(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"oldhttp", "oldstdio", "newstdio"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			w := wireHub(t, configText(t, customServers(t), nil), rev2025, "--server", server).open()
			w.awaitTools("canceled")
			w.write(rawRequest{id: `"h"`, method: "acme/things", params: `{"name":"begin","_meta":{"progressToken":1}}`}.text())
			w.nextWith("notifications/progress")
			w.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`)
			eventually(t, "the server is told", func() bool { return canceledID.MatchString(w.result("canceled", `{}`, "")) })
		})
	}
}

// TestCustomOfServers holds who is told what a server says on its own that the hub does not know: the clients of its direct
// view, on a session's own connection that session alone, and while one session has a call open where calls have no streams
// of their own, nobody else.
func TestCustomOfServers(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
	const shouted = `{"notes":["{\"jsonrpc\":\"2.0\",\"method\":\"acme/news\",\"params\":{\"z\":1.50}}"]}`
	const news = `{"jsonrpc":"2.0","method":"acme/news","params":{"z":1.50}}`
	client := func(t *testing.T, path string) *taskClient {
		return newTaskClient(t, wireHTTP(t, hub.url+path, rev2025).open(), "").stand()
	}
	for _, c := range []struct {
		server string
		other  bool // another client of the view is told, too
	}{{"oldhttp", true}, {"oldstdio", false}, {"oldown", false}} {
		t.Run(c.server, func(t *testing.T) {
			t.Parallel()
			eventually(t, "the tools are known", func() bool { return hub.statusOf(t, c.server).Tools > 0 })
			called, other := client(t, "/mcp/s/"+c.server), client(t, "/mcp/s/"+c.server)
			merged, foreign := client(t, "/mcp"), client(t, "/mcp/s/newhttp")
			other.do(other.tool("echo", `{}`, "", "")) // so that it has a connection, where each has its own
			called.do(called.tool("shout", shouted, "", ""))
			called.note(news)
			if c.other {
				other.note(news)
			}
			called.do(called.tool("echo", `{}`, "", ""))
			for who, quiet := range map[string]*taskClient{"another view": foreign, "the view of several": merged} {
				quiet.quiet(t, who, "acme/")
			}
			if !c.other {
				other.quiet(t, "another client", "acme/")
			}
			if got := called.do(called.request("elicitation/create", "", `"message":"x"`, "")); !strings.Contains(got, "-32601") {
				t.Errorf("what servers ask of clients, asked of a server: %s", got)
			}
		})
	}
}

// TestUnknownMembers holds that members of requests which a revision does not know go through to servers of that revision.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	prompt := json.RawMessage(`{"name":"p"}`)
	script := func(modern bool) upstreamtest.Script {
		return upstreamtest.Script{Modern: modern, Tools: []json.RawMessage{upstreamtest.Tool("echo")}, Features: upstreamtest.Features{
			Prompts: []json.RawMessage{prompt}, Resources: []json.RawMessage{json.RawMessage(`{"uri":"a://b","name":"b"}`)}, Completes: true}}
	}
	servers := map[string]any{
		"oldhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script(false)})},
		"oldstdio": child(script(false)),
		"newhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script(true)})},
	}
	hub := startHub(t, "hub.json", configText(t, servers, nil))
	const more = `"requestState":"st\u0061te","inputResponses":{"k":{"z":1.50}},"x-more":{"b":1e400,"a":12345678901234567890}`
	for server := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
			for _, version := range []string{rev2025March, rev2025June, rev2025, rev2026} {
				w := wireHTTP(t, hub.url+"/mcp/s/"+server, version).open()
				c := newTaskClient(t, w, "")
				w.ids = 100
				own := more
				if w.modern() { // there, two of them mean something
					own = `"x-more":{"b":1e400,"a":12345678901234567890}`
				}
				for _, r := range []rawRequest{
					c.request("tools/call", "echo", own+`,"name":"echo","arguments":{}`, ""),
					c.request("prompts/get", "p", `"name":"p",`+own, ""),
					c.request("resources/read", "a://b", own+`,"uri":"a://b"`, ""),
					c.request("completion/complete", "", `"ref":{"type":"ref/prompt","name":"p","y":1.50},"argument":{"name":"n","value":"","w":2.0},`+own, ""),
				} {
					got := c.do(r)
					sent, _, with := strings.Cut(r.params, `,"_meta":`)
					if !with {
						sent = strings.TrimSuffix(sent, "}")
					}
					if !strings.Contains(got, strings.TrimPrefix(sent, "{")+`,"_meta":{`) {
						t.Errorf("%s: the server got %s\nwant %s", version, got, sent)
					}
				}
				client := "old"
				if w.modern() {
					client = "new"
				}
				if version == rev2025 || version == rev2026 {
					c.compareTasks("members-"+client+"-"+server[:3], server)
				}
			}
		})
	}
}
