//go:build e2e

package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// bridgeServers are servers of both generations that ask, over HTTP for all clients and over stdio.
func bridgeServers(t testing.TB) map[string]any {
	t.Helper()
	var tools = upstreamtest.DefaultTools()
	for _, name := range []string{"ask", "rounds", "converse"} {
		tools = append(tools, upstreamtest.Tool(name))
	}
	older, newer := upstreamtest.Script{Tools: tools}, upstreamtest.Script{Tools: tools, Modern: true}
	older.Features.Logs, newer.Features.Logs = true, true
	return map[string]any{
		"oldhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: older})},
		"oldstdio": with(child(older), "isolation", "session"), // shared, nobody could tell whom it asks
		"newhttp":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: newer})},
		"newstdio": child(newer),
	}
}

// bridgeCase is one kind of question: as a server sends it, and as clients answer it. "@@" in params is where a client is
// shown which server asks.
type bridgeCase struct {
	name    string
	since   string // the first revision that knows it
	method  string
	params  [3]string
	answers [3]string
}

func bridgeCases() []bridgeCase {
	const odd = `"z":12345678901234567890,"\u00e9":{"b":1e400,"a":null,"B":[ ]},"_meta":{"x/y":1.50}`
	samples := func(n int) string {
		return fmt.Sprintf(`{"maxTokens":%d.0,%s,"messages":[{"role":"user","content":{"type":"text","text":"N\u0061me <%d>"}}]}`, n, odd, n)
	}
	return []bridgeCase{
		{"form", rev2025June, tool.MethodElicit, [3]string{
			`{` + odd + `,"mess\u0061ge":"@@N\u0061me <b>?","requestedSchema":{"type":"object","properties":{"n":{"x":1.0,"type":"integer"}}}}`,
			`{"message":"@@","requestedSchema":{"properties":{},"type":"object"}}`,
			`{"message":"@@\ud83d\ude00\"","mode":"form","requestedSchema":{"type":"object","properties":{}}}`,
		}, [3]string{
			`{"content":{"n":12345678901234567890,"m":1.0},"action":"accept","x":{"b":1,"a":"<\u003c>"}}`,
			`{ "action" : "decline" }`, `{"action":"cancel","_meta":{"a":1e400}}`}},
		{"url", rev2025, tool.MethodElicit, [3]string{
			`{"mode":"url","elicitationId":"e\u0031","url":"https://example.com/?a=1&b=<2>","message":"@@Sign in",` + odd + `}`,
			`{"message":"@@again","mode":"url","elicitationId":"2","url":"https://example.com/"}`,
			`{"message":"@@and again","mode":"url","elicitationId":"3","url":"https://example.com/"}`,
		}, [3]string{`{"action":"accept","x":12345678901234567890}`, `{"action":"decline"}`, `{"action":"cancel"}`}},
		{"sampling", rev2025March, tool.MethodSample, [3]string{samples(1), samples(2), samples(3)}, [3]string{
			`{"role":"assistant","model":"m<1>","x":1.50,"content":{"type":"text","text":"\u00e9"},"big":12345678901234567890}`,
			`{"role":"assistant","model":"2","content":{"type":"hologram"},"stopReason":"endTurn"}`,
			`{"content":{"text":"3","type":"text"},"model":"3","role":"assistant"}`}},
		{"roots", rev2025March, tool.MethodRoots, [3]string{`{` + odd + `}`, `{}`, `{"_meta":{"a":1}}`}, [3]string{
			`{"roots":[{"uri":"file:///\u0061","name":"<r>","x":1.50}],"big":12345678901234567890}`, `{"roots":[]}`, `{"roots":[ ],"n":3}`}},
	}
}

// asServerSends and asClientSees are the params of question n of a server.
func (c bridgeCase) asServerSends(n int) string { return strings.Replace(c.params[n], "@@", "", 1) }

func (c bridgeCase) asClientSees(n int, server string) string {
	return strings.Replace(c.params[n], "@@", "["+server+"] ", 1)
}

// forOld are the arguments with which an old server asks everything, one question after the other. key is unlike others.
func (c bridgeCase) forOld(key string) string {
	var all []string
	for n := range c.params {
		all = append(all, fmt.Sprintf(`{"id":"q\u003%d %s","method":%q,"params":%s}`, n, key, c.method, c.asServerSends(n)))
	}
	return `{"in_turn":true,"questions":[` + strings.Join(all, ",") + `]}`
}

// bridgeStates are the requestStates of a new server.
func bridgeStates() []string { return []string{`"st\u0061te <1>"`, `"2\n\"é"`, `"3"`} }

// forNew are the arguments with which a new server asks in three rounds: one question, two at once, none.
func (c bridgeCase) forNew(key string) string {
	request := func(key string, n int) string {
		return fmt.Sprintf(`"%s":{"x":1.0,"params":%s,"method":%q}`, key, c.asServerSends(n), c.method)
	}
	s := bridgeStates()
	return `{"key":"` + key + `","results":[` +
		`{"requestState":` + s[0] + `,"inputRequests":{` + request(`k\u0031<`, 0) + `},"resultType":"input_required","more":[1.0]},` +
		`{"resultType":"input_required","inputRequests":{` + request("b", 1) + "," + request("a", 2) + `},"requestState":` + s[1] + `},` +
		`{"resultType":"input_required","requestState":` + s[2] + `}]}`
}

// TestBridges plays every kind of question between clients and servers of every generation, by every way there is, and
// holds what goes over the client's wire against testdata/transcripts. It is the same by every way.
func TestBridges(t *testing.T) {
	t.Parallel()
	config := configText(t, bridgeServers(t), nil)
	hub := startHub(t, "hub.json", config)
	deferring := startHub(t, "hub.json", configText(t, bridgeServers(t), map[string]any{"deferred": map[string]any{"mode": "always"}}))
	t.Run("clients", func(t *testing.T) {
		for _, version := range []string{rev2025March, rev2025June, rev2025, rev2026} {
			t.Run("http "+version, func(t *testing.T) {
				t.Parallel()
				playBridges(t, wireHTTP(t, hub.url+"/mcp", version).able().open())
			})
			t.Run("tool_call "+version, func(t *testing.T) {
				t.Parallel()
				w := wireHTTP(t, deferring.url+"/mcp", version).able().open()
				w.refs = map[string]string{}
				playBridges(t, w)
			})
			t.Run("stdio "+version, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				w := wireHubIn(t, dir, config, version).able().open()
				w.awaitTools("mcp.oldhttp.ask", "mcp.oldstdio.ask", "mcp.newhttp.ask", "mcp.newstdio.ask")
				calls := playBridges(t, w)
				w.hangUp()
				checkJournal(t, filepath.Join(dir, "state"), calls)
			})
		}
	})
	if err := hub.stop(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}
	checkJournal(t, filepath.Join(hub.cmd.Dir, "state"), 0)
	if err := deferring.stop(); err != nil {
		t.Errorf("the hub where tools are deferred ended with %v", err)
	}
	checkJournal(t, filepath.Join(deferring.cmd.Dir, "state"), 0)
}

// playBridges plays every kind of question between a client and all servers, and returns how many calls that were.
func playBridges(t *testing.T, w *wire) (calls int) {
	t.Helper()
	client := "old"
	if w.modern() {
		client = "new"
	}
	for _, c := range bridgeCases() {
		if w.version < c.since {
			continue
		}
		for _, server := range []string{"oldhttp", "oldstdio", "newhttp", "newstdio"} {
			calls++
			key := fmt.Sprintf("<%s %s>", t.Name(), c.name)
			x := &exchange{w: w, groups: []int{1, 2}, answer: func(n int, _ asked) string { return c.answers[min(n, 2)] }}
			if strings.HasPrefix(server, "old") {
				x.groups = nil
				c.checkOld(t, x.call("mcp."+server+".ask", c.forOld(key)), key)
			} else {
				c.checkNew(t, x.call("mcp."+server+".rounds", c.forNew(key)))
			}
			c.checkAsked(t, x, server)
			if w.refs != nil { // its requests are others
				continue
			}
			s := &scribe{t: t}
			s.text.WriteString(strings.ReplaceAll(x.transcript(server), key, "KEY"))
			s.compare("bridge-" + c.name + "-" + client + "-" + server[:3])
		}
	}
	return calls
}

// checkAsked holds what the client was asked against what the server sent.
func (c bridgeCase) checkAsked(t *testing.T, x *exchange, server string) {
	t.Helper()
	if len(x.asked) != len(c.params) {
		t.Fatalf("%s of %s: the client was asked %d times: %q", c.name, server, len(x.asked), x.asked)
	}
	for n, q := range x.asked {
		if want := c.asClientSees(n, server); q.method != c.method || q.params != want {
			t.Errorf("%s of %s: the client was asked %s\n got %s\nwant %s", c.name, server, q.method, q.params, want)
		}
	}
}

// checkOld holds what an old server got against what the client answered.
func (c bridgeCase) checkOld(t *testing.T, response, key string) {
	t.Helper()
	got := content(t, response, "answers")
	for n, answer := range c.answers {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"q\u003%d %s","result":%s}`, n, key, answer); len(got) != 3 || got[n] != want {
			t.Errorf("%s: the server got\n%s\nwant %d: %s", c.name, strings.Join(got, "\n"), n, want)
		}
	}
}

// checkNew holds what a new server got against what the client answered.
func (c bridgeCase) checkNew(t *testing.T, response string) {
	t.Helper()
	got := content(t, response, "received")
	if len(got) != 4 {
		t.Fatalf("%s: the server was called %d times: %q", c.name, len(got), got)
	}
	responses := []string{"", `{"k\u0031<":` + c.answers[0] + `}`, `{"b":` + c.answers[1] + `,"a":` + c.answers[2] + `}`, ""}
	states := append([]string{""}, bridgeStates()...)
	for n, params := range got {
		input, _ := memberOf(t, params, "inputResponses")
		state, _ := memberOf(t, params, "requestState")
		if input != responses[n] || state != states[n] {
			t.Errorf("%s: round %d brought the server\n%s, state %s\nwant %s, state %s", c.name, n, input, state, responses[n], states[n])
		}
	}
}

// transcript is what went over the wire, without what differs from one way to another.
func (x *exchange) transcript(server string) string {
	head, rest, _ := strings.Cut(strings.Join(x.lines, "\n")+"\n", "\n")
	args, _ := memberOf(x.w.t, first(memberOf(x.w.t, head[2:], "params")), "arguments")
	text := head + "\n" + strings.ReplaceAll(rest, args, "ARGUMENTS") // which say once what the server is to do
	text = strings.ReplaceAll(text, server, "far")
	text = hubToken.ReplaceAllString(text, `"progressToken":"TOKEN"`)
	text = hubState.ReplaceAllString(text, `"requestState":"STATE"`)
	ids := map[string]string{}
	return hubQuestion.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("toolhub-%d", len(ids)+1)
		}
		return ids[id]
	})
}

// content is the structured content of a response.
func content(t testing.TB, response, name string) []string {
	t.Helper()
	result, _ := memberOf(t, response, "result")
	object, _ := memberOf(t, orEmpty(result), "structuredContent")
	list, ok := memberOf(t, orEmpty(object), name)
	if !ok {
		t.Fatalf("there is no %s in %.2000s", name, response)
	}
	return listOf(t, list)
}

var hubState = regexp.MustCompile(`"requestState":"[A-Za-z0-9_-]{100,}"`)
