package main

import (
	"encoding/json"
	"fmt"
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

// playCustom plays what the hub does not know between a client and the server of its view.
func (c *taskClient) playCustom() {
	c.t.Helper()
	c.scribe.title("a request, its answer, its error, and params that are missing")
	c.do(c.request("acme/things", "", `"z":{"b":1.50,"a":12345678901234567890},"answer":{"z":1e400,"a":[ ],"requestState":7}`, `"acme/m":1.50`))
	c.do(c.request("acme/things", "", `"error":{"data":{"z":1.50},"code":-4242,"message":"<no>","more":1}`, ""))
	c.do(c.request("acme/things", "", "", ""))
	c.scribe.title("progress")
	c.do(c.request("acme/things", "", `"name":"progress","answer":{}`, `"progressToken":"p\u0031"`))
	c.flush()
	c.scribe.title("a notification, and what comes after it")
	note := rawRequest{method: "acme/happened", params: `{"z":1.50,"a":12345678901234567890}`}
	c.scribe.down(">", note.text())
	c.tell(note)
	noted := c.do(c.tool("noted", `{}`, "", ""))
	if !strings.Contains(noted, `"noted":[`+note.text()+`]`) {
		c.t.Errorf("the server got %s", noted)
	}
	c.scribe.title("a notification of the server during a call")
	c.do(c.tool("say", `{"notes":["{\"jsonrpc\":\"2.0\",\"method\":\"acme/said\",\"params\":{\"z\":1.50,\"b\":[ ]}}",`+
		`"{\"jsonrpc\":\"2.0\",\"method\":\"acme/bare\"}"]}`, "", ""))
	c.flush()
	c.scribe.title("a method that no header can hold")
	c.do(c.request("acme/é", "", "", ""))
}

// flush writes down what came besides responses.
func (c *taskClient) flush() {
	for _, m := range c.stash {
		if !strings.Contains(m, "list_changed") {
			c.scribe.down("<<", m)
		}
	}
	c.stash = nil
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

// TestCustom drives what the hub does not know on direct views, by every way between every two generations, and holds what
// goes over the client's wire against testdata/transcripts.
func TestCustom(t *testing.T) {
	t.Parallel()
	config := configText(t, customServers(t), nil)
	hub := startHub(t, "hub.json", config)
	t.Run("views", func(t *testing.T) {
		for _, version := range []string{rev2025June, rev2025, rev2026} {
			for _, server := range []string{"oldhttp", "oldstdio", "oldown", "newhttp", "newstdio"} {
				play := func(t *testing.T, w *wire) {
					w.open()
					if w.stdin != nil {
						w.awaitTools("noted")
					}
					w.ids = 100
					c := newTaskClient(t, w, "")
					c.playCustom()
					client := "old"
					if w.modern() {
						client = "new"
					}
					c.compareTasks("custom-"+client+"-"+server[:3], server)
				}
				t.Run("stdio "+version+" to "+server, func(t *testing.T) {
					t.Parallel()
					play(t, wireHub(t, configText(t, customServers(t), nil), version, "--server", server))
				})
				t.Run("http "+version+" to "+server, func(t *testing.T) {
					t.Parallel()
					own := startHub(t, "hub.json", configText(t, customServers(t), nil)) // what is noted is this client's alone
					play(t, wireHTTP(t, own.url+"/mcp/s/"+server, version))
				})
			}
		}
	})
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		got := w.send(rawRequest{id: w.nextID(), method: "acme/things", params: w.params(`"answer":{}`, "")})
		if !strings.Contains(got[0], "-32601") {
			t.Errorf("%s, on the view of several servers: %s", version, got)
		}
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
					r := c.request(method, "", `"requestId":"toolhub-1"`, "")
					if w.stdin == nil {
						if status, _, all := w.post(r); status < 400 && !strings.Contains(strings.Join(all, ""), "-32601") {
							t.Errorf("a request %s is answered with %d %q", method, status, all)
						}
					} else if got := c.do(r); !strings.Contains(got, "-3260") {
						t.Errorf("a request %s is answered with %s", method, got)
					}
				}
				if got := c.do(c.tool("canceled", `{}`, "", "")); strings.Contains(got, "toolhub-1") {
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
			eventually(t, "the server is told", func() bool { return strings.Contains(w.result("canceled", `{}`, ""), `toolhub-`) })
		})
	}
}

// TestCustomCapabilities holds that both sides of a direct view are told what the other says of what the hub does not know.
func TestCustomCapabilities(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
	can := `{` + customExperimental + `,"extensions":{` + customExtensions + `,"io.modelcontextprotocol/tasks":{}}}`
	for _, server := range []string{"oldhttp", "oldstdio", "oldown", "newhttp", "newstdio"} {
		eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
		for _, version := range []string{rev2025, rev2026} {
			for _, path := range []string{"/mcp/s/" + server, "/mcp"} {
				w := wireHTTP(t, hub.url+path, version)
				w.can = can
				r := w.initialize("wire")
				if w.modern() {
					r = rawRequest{id: w.nextID(), method: "server/discover", params: w.params("", "")}
				}
				_, _, all := w.post(r)
				result, _ := memberOf(t, all[0], "result")
				got, _ := memberOf(t, result, "capabilities")
				experimental, _ := memberOf(t, got, "experimental")
				extensions, _ := memberOf(t, got, "extensions")
				wantExperimental, wantExtensions := strings.TrimPrefix(customExperimental, `"experimental":`), `{"com.acme/things":{"v":2.0,"list":[]}}`
				if path == "/mcp" {
					wantExperimental, wantExtensions = "", ""
				}
				if experimental != wantExperimental || extensions != wantExtensions {
					t.Errorf("%s at %s is told %s", version, path, got)
				}
			}
		}
	}
	// Servers of 2026-07-28 are told with each request, and those of before with the connection where that is the client's own.
	for _, server := range []string{"newhttp", "newstdio"} {
		for version, tasks := range map[string]bool{rev2025: false, rev2026: true} {
			w := wireHTTP(t, hub.url+"/mcp/s/"+server, version)
			w.can = can
			got := w.open().result("echo", `{}`, "")
			if !strings.Contains(got, customExperimental) || !strings.Contains(got, customExtensions) ||
				strings.Contains(got, "io.modelcontextprotocol/tasks") != tasks {
				t.Errorf("%s behind %s: the server got %s", server, version, got)
			}
		}
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

// TestServersAskNotByNotification holds that a server cannot put a question, or another request, to the clients of its direct
// view as something that the hub does not know: without an id, outside and during calls.
func TestServersAskNotByNotification(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
	var lines []string
	for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "ping", "tools/call", "acme/last"} {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"message":"Your password?"}}`, method))
	}
	notes, _ := json.Marshal(map[string]any{"notes": lines})
	for _, server := range []string{"oldhttp", "oldstdio", "newhttp", "newstdio"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
			c := newTaskClient(t, wireHTTP(t, hub.url+"/mcp/s/"+server, rev2025).open(), "").stand()
			for _, tool := range []string{"say", "shout"} {
				c.do(c.tool(tool, string(notes), "", ""))
				if strings.HasPrefix(server, "new") && tool == "shout" {
					continue // to those who listen, and here nobody does
				}
				c.note("acme/last")
				if said := strings.Join(c.stash, "\n"); strings.Contains(said, "password") {
					t.Errorf("after %s the client was asked %s", tool, said)
				}
				c.stash = nil
			}
		})
	}
}

// TestElicitationComplete holds that the end of an elicitation by URL is told to the client whose it was, on revisions that
// know it, and to nobody else.
func TestElicitationComplete(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
	for _, server := range []string{"oldhttp", "oldown"} {
		for _, path := range []string{"/mcp", "/mcp/s/" + server} {
			t.Run(server+" "+path, func(t *testing.T) {
				t.Parallel()
				eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
				prefix := ""
				if path == "/mcp" {
					prefix = "mcp." + server + "."
				}
				dial := func(version string) *taskClient {
					return newTaskClient(t, wireHTTP(t, hub.url+path, version).able().open(), prefix).stand()
				}
				ann, bob := dial(rev2025), dial(rev2025)
				elicit := func(c *taskClient, id string) {
					x := &exchange{w: c.w, answer: func(int, asked) string { return `{"action":"accept"}` }}
					x.call(prefix+"ask", fmt.Sprintf(`{"questions":[{"id":%s,"method":"elicitation/create","params":{"mode":"url","elicitationId":%s,`+
						`"url":"https://example.com/","message":"Sign in"}}]}`, quoted("q "+id+path), quoted(id+path)))
				}
				elicit(ann, "ann's")
				elicit(bob, "bob's")
				done := func(id string) string {
					return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"x":1.50,"elicitationId":%s}}`,
						quoted(id+path))
				}
				shout := func(c *taskClient, line string) {
					text, _ := json.Marshal([]string{line})
					c.do(c.tool("shout", `{"notes":`+string(text)+`}`, "", ""))
				}
				teller := map[bool]*taskClient{true: bob, false: ann}[server == "oldhttp"] // on ann's own connection only ann has her
				shout(teller, done("nobody's"))
				shout(teller, done("ann's"))
				if got := ann.note("elicitation/complete"); got != done("ann's") {
					t.Errorf("ann is told %s", got)
				}
				shout(bob, done("bob's"))
				if got := bob.note("elicitation/complete"); got != done("bob's") {
					t.Errorf("bob is told %s", got)
				}
			})
		}
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

// TestCustomListen holds that what an extension of a server lets clients listen to reaches them on its direct view.
func TestCustomListen(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, customServers(t), nil))
	for _, server := range []string{"newhttp", "newstdio"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
			listen := func(path string) (*taskClient, string) {
				w := wireHTTP(t, hub.url+path, rev2026).open()
				c := newTaskClient(t, w, "")
				c.notes = w.listen(w.newRequest(c.request("subscriptions/listen", "",
					`"notifications":{"toolsListChanged":true,"acmeThings":[1.50, "a"]}`, "")))
				return c, c.note("acknowledged")
			}
			if _, ack := listen("/mcp"); strings.Contains(ack, "acme") {
				t.Errorf("on the view of several servers: %s", ack)
			}
			c, ack := listen("/mcp/s/" + server)
			if !strings.Contains(ack, `"toolsListChanged":true,"acmeThings":[1.50`) {
				t.Errorf("acknowledged %s", ack)
			}
			c.do(c.tool("shout", `{"notes":["{\"jsonrpc\":\"2.0\",\"method\":\"acme/thing\",\"params\":{\"z\":1.50,\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"$LISTEN\"}}}"]}`, "", ""))
			if got := c.note("acme/thing", "subscriptionId"); !strings.Contains(got, `"z":1.50,"_meta":{"io.modelcontextprotocol/subscriptionId":`) {
				t.Errorf("told %s", got)
			}
		})
	}
}
