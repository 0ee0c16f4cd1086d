//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

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
				wantExperimental, wantExtensions := strings.TrimPrefix(customExperimental, `"experimental":`), `{"com.acme/things":{"v":2.0,"list":[ ]}}`
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
