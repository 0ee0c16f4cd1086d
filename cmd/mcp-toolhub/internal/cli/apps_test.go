//go:build e2e

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// appServer has a user interface, a tool that shows it, one that only its page may call, and one that others have, too.
func appServer(t *testing.T, own string) (entry map[string]any, far *upstreamtest.Handler) {
	t.Helper()
	declare := func(name, ui string) json.RawMessage {
		return json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"},"_meta":{"ui":{` + ui + `,"x":1.0}}}`)
	}
	script := upstreamtest.Script{Tools: []json.RawMessage{
		declare("show", `"resourceUri":"ui://board/page"`),
		declare("refresh-"+own, `"resourceUri":"ui://board/`+own+`","visibility":["app"]`),
	}, Features: upstreamtest.Features{Resources: []json.RawMessage{json.RawMessage(`{"uri":"ui://board/page","name":"board"}`)}}}
	url, far := fakeHandler(t, upstreamtest.Options{Script: script})
	return map[string]any{"type": "http", "url": url}, far
}

// TestApps does what a host of MCP Apps does for pages of two servers which both call theirs the same: it reads the page that
// a tool's declaration names, and calls tools by the bare names that the page uses.
func TestApps(t *testing.T) {
	t.Parallel()
	left, farLeft := appServer(t, "left")
	right, farRight := appServer(t, "right")
	hub := startHub(t, "hub.json", configText(t, map[string]any{"left": left, "right": right}, nil))
	reads := func(far *upstreamtest.Handler, uri string) (n int) {
		for _, r := range far.Requests() {
			if strings.Contains(string(r.Body), `"resources/read"`) && strings.Contains(string(r.Body), `"uri":"`+uri+`"`) {
				n++
			}
		}
		return n
	}
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		w.awaitTools("mcp.left.show", "mcp.right.show")
		ask := func(w *wire, method, name, members string) string {
			messages := w.send(rawRequest{id: w.nextID(), method: method, name: name, params: w.params(members, "")})
			return messages[len(messages)-1]
		}
		read := func(w *wire, uri string) string { return ask(w, "resources/read", uri, `"uri":`+quoted(uri)) }
		call := func(w *wire, name string) string {
			return ask(w, "tools/call", name, `"name":`+quoted(name)+`,"arguments":{}`)
		}
		tools := w.tools()
		listed := ask(w, "resources/list", "", "")
		for server, far := range map[string]*upstreamtest.Handler{"left": farLeft, "right": farRight} {
			// Two claim the page of show, one that of refresh.
			want := `"_meta":{"ui":{"resourceUri":"ui://toolhub/` + server + `/board/page","x":1.0}}`
			if !strings.Contains(tools["mcp."+server+".show"], want) {
				t.Errorf("%s: declared %s", version, tools["mcp."+server+".show"])
			}
			want = `"_meta":{"ui":{"resourceUri":"ui://board/` + server + `","visibility":["app"],"x":1.0}}`
			if !strings.Contains(tools["mcp."+server+".refresh-"+server], want) {
				t.Errorf("%s: declared %s", version, tools["mcp."+server+".refresh-"+server])
			}
			if want := `{"uri":"ui://toolhub/` + server + `/board/page","name":"board"}`; !strings.Contains(listed, want) {
				t.Errorf("%s: the page that tools name is not on the list %s", version, listed)
			}
			for shown, native := range map[string]string{"ui://toolhub/" + server + "/board/page": "ui://board/page",
				"toolhub://" + server + "/ui://board/page": "ui://board/page", "ui://board/" + server: "ui://board/" + server} {
				before := reads(far, native)
				if got := read(w, shown); !strings.Contains(got, `"uri":"`+native+`"`) || reads(far, native) != before+1 {
					t.Errorf("%s: %s is %s", version, shown, got)
				}
			}
			if got := call(w, "refresh-"+server); !strings.Contains(got, `"succeeded"`) {
				t.Errorf("%s: a bare name of one tool alone: %s", version, got)
			}
			// Alone, everything is as the server has it.
			view := wireHTTP(t, hub.url+viewOf(server), version).open()
			if got := view.tools()["show"]; !strings.Contains(got, `"resourceUri":"ui://board/page"`) {
				t.Errorf("%s: the direct view declares %s", version, got)
			}
			before := reads(far, "ui://board/page")
			if got := read(view, "ui://board/page"); !strings.Contains(got, `"result"`) || reads(far, "ui://board/page") != before+1 {
				t.Errorf("%s: the direct view reads %s", version, got)
			}
			if got := call(view, "show"); !strings.Contains(got, `"succeeded"`) {
				t.Errorf("%s: on the direct view: %s", version, got)
			}
		}
		if got := read(w, "ui://board/page"); !strings.Contains(got, `"error"`) || !strings.Contains(got, `\"left\" \"right\"`) {
			t.Errorf("%s: the page of two servers is %s", version, got)
		}
		refusal := func(m string) string { return invocationID.ReplaceAllString(m[strings.Index(m, "error"):], "inv_") }
		if got, other := call(w, "show"), call(w, "shew"); !strings.Contains(got, `unknown tool \"show\"`) ||
			strings.Replace(refusal(got), "show", "shew", 1) != refusal(other) {
			t.Errorf("%s: a bare name of two tools: %s, and one of none: %s", version, got, other)
		}
	}
}

// TestAppsOnly: tools with a user interface are listed beside tool_search to clients that declare MCP Apps, on every door and
// revision, and to no others.
func TestAppsOnly(t *testing.T) {
	t.Parallel()
	entry, _ := appServer(t, "own")
	config := configText(t, map[string]any{"s": entry, "plain": child(upstreamtest.Script{})}, alwaysDeferred)
	hub := startHub(t, "hub.json", config)
	for _, version := range []string{rev2025June, rev2026} {
		for can, want := range map[string]bool{"{}": false, `{"extensions":{"other":{}}}`: false,
			`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`: true} {
			over := wireHTTP(t, hub.url+"/mcp", version)
			stdio := wireHub(t, config, version)
			stdio.can, over.can = can, can
			stdio.open()
			stdio.send(stdio.call("mcp.s.absent", "{}", "")) // which waits for the servers' lists
			for _, w := range []*wire{over.open(), stdio} {
				tools := w.tools()
				if got := tools["mcp.s.show"] != ""; got != want || tools["tool_search"] == "" {
					t.Errorf("%s, capabilities %s: the tool with a user interface is listed: %t", version, can, got)
				}
			}
		}
	}
}
