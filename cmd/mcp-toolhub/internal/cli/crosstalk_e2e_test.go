//go:build e2e

package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCrosstalk: many clients of every generation use the same ids and tokens, and one server for all of them says and asks
// on every call. Each client gets what its own call brings about, all of it, in order, and nothing else.
func TestCrosstalk(t *testing.T) {
	t.Parallel()
	const clients = 20
	calls := sampleOf(1000, 20_000)
	for name, modern := range map[string]bool{"old server": false, "new server": true} {
		t.Run(name, func(t *testing.T) {
			script := upstreamtest.Script{Modern: modern, Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("converse"))}
			script.Features.Logs = true
			n := calls / clients
			if modern {
				n /= 10
			}
			hub := startHub(t, "hub.json", configText(t, map[string]any{
				"far": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script})}}, nil))
			var working sync.WaitGroup
			var standing []<-chan string // where what belongs to no call would come
			for i := range clients {
				version := []string{rev2026, rev2025, rev2026, rev2025June}[i%4]
				w := wireHTTP(t, hub.url+"/mcp", version).able().open()
				if !w.modern() {
					w.send(rawRequest{id: `"level"`, method: "logging/setLevel", params: `{"level":"debug"}`})
				}
				if !w.modern() {
					standing = append(standing, w.standing())
				}
				working.Go(func() {
					for k := 0; k < n && !t.Failed(); k++ {
						converse(t, w, fmt.Sprintf("client %d call %d <é>", i, k))
					}
				})
			}
			working.Wait()
			for _, messages := range standing {
				if len(messages) > 0 {
					t.Errorf("outside of every call came %s", <-messages)
				}
			}
			if err := hub.stop(); err != nil {
				t.Errorf("the hub ended with %v", err)
			}
			checkJournal(t, hub.cmd.Dir+"/state", clients*n)
		})
	}
}

// TestQuestionsComeInOrder: what a server asks at once comes to the client in the order in which it was asked.
func TestQuestionsComeInOrder(t *testing.T) {
	t.Parallel()
	const questions = 8
	script := upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("ask"))}
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"far": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script})}}, nil))
	var all, want []string
	for i := range questions {
		want = append(want, fmt.Sprintf(`{"n":%d}`, i))
		all = append(all, `{"method":"sampling/createMessage","params":`+want[i]+`}`)
	}
	for _, version := range []string{rev2025, rev2026} {
		x := &exchange{w: wireHTTP(t, hub.url+"/mcp", version).able().open(), groups: []int{questions},
			answer: func(int, asked) string { return `{"role":"assistant"}` }}
		x.call("mcp.far.ask", `{"questions":[`+strings.Join(all, ",")+`]}`)
		var got []string
		for _, q := range x.asked {
			got = append(got, q.params)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked %q", version, got)
		}
	}
}

// converse makes one call that is all about text, with the ids and the token that every client uses.
func converse(t *testing.T, w *wire, text string) {
	t.Helper()
	said := quoted(text)
	elicited, sampled := `{"action":"accept","content":{"is":`+said+`}}`, `{"role":"assistant","content":{"text":`+said+`}}`
	x := &exchange{w: w, meta: `"progressToken":"same"`, answer: func(n int, _ asked) string { return []string{elicited, sampled}[min(n, 1)] }}
	if w.modern() {
		x.meta = join(x.meta, `"io.modelcontextprotocol/logLevel":"debug","toolhub/run":`+said)
	}
	response := x.call("mcp.far.converse", `{"text":`+said+`}`)
	got := content(t, response, "answers")
	for i, answer := range []string{elicited, sampled} {
		if len(got) != 2 || !strings.Contains(got[i], answer) {
			t.Errorf("%s: the server got %q, want %s", text, got, answer)
		}
	}
	want := []asked{
		{"elicitation/create", `{"message":` + quoted("[far] "+text) + `,"requestedSchema":{"type":"object","properties":{}}}`},
		{"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":` + said + `}}],"maxTokens":1}`}}
	for i, q := range x.asked {
		if len(x.asked) != len(want) || q != want[i] {
			t.Errorf("%s: asked %q, want %q", text, x.asked, want)
			break
		}
	}
	var notes []string
	for step := 1; step <= 3; step++ {
		notes = append(notes, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":`+
			`{"progressToken":"same","progress":%d,"message":%s}}`, step, said),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"step":%d,"text":%s},"logger":"far"}}`, step, said))
		if step < 3 {
			notes = append(notes, "?")
		}
	}
	if got, want := strings.Join(x.notes, "\n"), strings.Join(notes, "\n"); got != want {
		t.Errorf("%s: with the call came\n%s\nwant\n%s", text, got, want)
	}
}
