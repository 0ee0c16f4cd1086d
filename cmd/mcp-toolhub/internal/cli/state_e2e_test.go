//go:build e2e

package cli

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// stateHub is a hub for two people, with two profiles, the servers of the bridges and one more of each generation.
func stateHub(t *testing.T, tunes tuning) *runningHub {
	t.Helper()
	servers := bridgeServers(t)
	tools := append(upstreamtest.DefaultTools(), upstreamtest.Tool("ask"), upstreamtest.Tool("rounds"))
	servers["othernew"] = map[string]any{"type": "http",
		"url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: true, Tools: tools}})}
	servers["otherold"] = map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: tools}})}
	dir := t.TempDir()
	var tokens []any
	for name, token := range map[string]string{"ann": annToken, "bob": bobToken} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, map[string]any{"name": name, "token": "${file:" + file + "}"})
	}
	hub := map[string]any{"auth": map[string]any{"tokens": tokens}}
	h := startHub(t, "hub.json", configText(t, servers, map[string]any{"tuning": tunes, "hub": hub, "profiles": map[string]any{
		"default": map[string]any{}, "second": map[string]any{}}}))
	for _, id := range []string{"oldhttp", "oldstdio", "newhttp", "newstdio", "othernew", "otherold"} {
		eventually(t, "the tools are known", func() bool { return h.statusOf(t, id).Tools > 0 })
	}
	return h
}

// beginState makes such a call; key is unlike others.
func beginState(t *testing.T, w *wire, server, key string) begun {
	t.Helper()
	b := begun{tool: "mcp." + server + ".ask", args: `{"questions":[{"id":"` + key + `","method":"elicitation/create","params":{"message":"m"}}]}`}
	if strings.Contains(server, "new") {
		b.tool = "mcp." + server + ".rounds"
		b.args = `{"key":"` + key + `","results":[{"resultType":"input_required","requestState":"secret-of-the-server",` +
			`"inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"m"}}}}]}`
	}
	result := w.result(b.tool, b.args, "")
	state, _ := memberOf(t, result, "requestState")
	if !strings.Contains(result, `"input_required"`) || state == "" || strings.Contains(result, "secret-of-the-server") {
		t.Fatalf("%s answered %s", b.tool, result)
	}
	mustDecode(t, state, &b.state)
	if plain, err := base64.RawURLEncoding.DecodeString(b.state); err != nil || strings.Contains(string(plain), "secret") ||
		strings.Contains(string(plain), server) {
		t.Errorf("a requestState says what is in it: %q, %v", plain, err)
	}
	b.key = "q1"
	return b
}

// resume is the request that brings the answer to b.
func (b begun) resume(w *wire) string {
	members := join(`"name":`+quoted(b.tool), `"arguments":`+b.args,
		`"inputResponses":{"`+b.key+`":{"action":"accept"}},"requestState":`+quoted(b.state))
	messages := w.send(rawRequest{id: w.nextID(), method: "tools/call", params: w.params(members, ""), name: b.tool})
	return messages[len(messages)-1]
}

// refusedState reports whether a response is the refusal of a requestState, for this reason.
func refusedState(response, why string) bool {
	var r struct {
		Error struct {
			Code    int
			Message string
		}
	}
	return json.Unmarshal([]byte(response), &r) == nil && r.Error.Code == -32602 &&
		strings.HasPrefix(r.Error.Message, "invalid params: requestState ") && strings.Contains(r.Error.Message, why)
}

// TestRequestStates: a requestState continues the call that it was given for, for the one who made that call, once.
func TestRequestStates(t *testing.T) {
	t.Parallel()
	hub, elsewhere := stateHub(t, tuning{}), stateHub(t, tuning{})
	ann := hub.modernPerson(t, "/mcp", annToken)
	for _, server := range []string{"oldhttp", "oldstdio", "newhttp", "newstdio"} {
		beside := server
		if server == "oldstdio" { // on one pipe nobody could tell which of two calls asks
			beside = "oldhttp"
		}
		mine, other := beginState(t, ann, server, server+"-1"), beginState(t, ann, beside, server+"-2")
		change := func(f func(*begun)) begun { b := mine; f(&b); return b }
		swap := "other" + server[:3]
		const changed, another = "is none of this hub, or was changed", "belongs to another request"
		for name, c := range map[string]struct {
			by   *wire
			what begun
			why  string
		}{
			"another caller":     {hub.modernPerson(t, "/mcp", bobToken), mine, another},
			"another profile":    {hub.modernPerson(t, "/mcp/p/second", annToken), mine, another},
			"other arguments":    {ann, change(func(b *begun) { b.args = strings.Replace(b.args, `"m"`, `"n"`, 1) }), another},
			"another tool":       {ann, change(func(b *begun) { b.tool = "mcp." + server + ".echo" }), another},
			"another server":     {ann, change(func(b *begun) { b.tool = strings.Replace(b.tool, server, swap, 1) }), another},
			"another call's":     {ann, change(func(b *begun) { b.state = other.state }), another},
			"another hub":        {elsewhere.modernPerson(t, "/mcp", annToken), mine, changed},
			"first byte changed": {ann, change(func(b *begun) { b.state = flip(b.state, 0) }), changed},
			"a byte changed":     {ann, change(func(b *begun) { b.state = flip(b.state, len(b.state)/2) }), changed},
			"cut":                {ann, change(func(b *begun) { b.state = b.state[:len(b.state)-4] }), changed},
			"longer":             {ann, change(func(b *begun) { b.state += "AAAA" }), changed},
			"the server's own":   {ann, change(func(b *begun) { b.state = "secret-of-the-server" }), changed},
			"empty":              {ann, change(func(b *begun) { b.state = "" }), changed},
		} {
			if response := c.what.resume(c.by); !refusedState(response, c.why) {
				t.Errorf("%s, %s: answered %s", server, name, response)
			}
		}
		for name, b := range map[string]begun{"mine": mine, "other": other} {
			if response := b.resume(ann); !strings.Contains(response, `"status":"succeeded"`) || !strings.Contains(response, `"action":"accept"`) {
				t.Errorf("%s, %s: after all refusals it was answered %s", server, name, response)
			}
			if response := b.resume(ann); !refusedState(response, "was used before") {
				t.Errorf("%s, %s: the second time it was answered %s", server, name, response)
			}
		}
	}
	for _, h := range []*runningHub{hub, elsewhere} {
		if err := h.stop(); err != nil {
			t.Errorf("the hub ended with %v", err)
		}
	}
	checkJournal(t, filepath.Join(hub.cmd.Dir, "state"), 4*(2+12+2)) // the calls, and what was refused
}

// flip changes one character of a sealed text.
func flip(text string, at int) string {
	with := "A"
	if text[at] == 'A' {
		with = "B"
	}
	return text[:at] + with + text[at+1:]
}

// TestRequestStatesExpire: a call that nobody answers ends, at its server too, and its requestState with it.
func TestRequestStatesExpire(t *testing.T) {
	t.Parallel()
	hub := stateHub(t, tuning{InputTimeout: time.Second})
	ann := hub.modernPerson(t, "/mcp", annToken)
	var all []begun
	for _, server := range []string{"newhttp", "newstdio", "oldhttp", "oldstdio"} { // those first that end unseen
		all = append(all, beginState(t, ann, server, server))
	}
	for _, server := range []string{"oldhttp", "oldstdio"} {
		eventually(t, "the parked call is canceled at "+server, func() bool {
			return !strings.Contains(ann.result("mcp."+server+".canceled", `{}`, ""), `"ids":[]`)
		})
	}
	for _, b := range all {
		if response := b.resume(ann); !refusedState(response, "has expired") {
			t.Errorf("%s was answered %s", b.tool, response)
		}
	}
	if err := hub.stop(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}
	checkJournal(t, filepath.Join(hub.cmd.Dir, "state"), 0)
}

// begun is a call that waits for its client's answer to one question.
type begun struct {
	tool, args string
	state      string // as text
	key        string // of the question
}
