package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestAnswersThatAreNotUTF8ReachNobody: on every transport, a call whose answer or error is not UTF-8 fails, and says where;
// the server stays. A lone surrogate that is escaped is text as any other.
func TestAnswersThatAreNotUTF8ReachNobody(t *testing.T) {
	t.Parallel()
	const begin = `{"jsonrpc":"2.0","id":$ID,`
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			large := strings.Repeat("x", 300<<10)
			for _, text := range []string{`"result":{"content":[],"a":"$BAD"}}`, `"result":{"$BAD":1}}`, `"error":{"code":-32000,"message":"$BAD"}}`,
				`"result":{"content":[],"a":"` + large + `$BAD"}}`, `"result":{"content":[],"a":"` + large + `","b":"$BAD` + large + `"}}`} {
				arguments, _ := json.Marshal(map[string]string{"text": begin + text})
				_, err := h.call(t.Context(), "s", "answer", string(arguments))
				f := failure(t, err)
				if f.Code != "invalid_response" || !f.OutcomeUnknown || !strings.Contains(f.Message, "is not UTF-8 (byte ") {
					t.Errorf("%.40s: code %q, %s", text, f.Code, f.Message)
				}
			}
			const lone = `{"content":[],"a":"\ud800","b":"größer"}`
			if got := string(h.mustCall(t, "s", "raw", `{"result":`+lone+`}`)); got != lone {
				t.Errorf("result %s, want %s", got, lone)
			}
		})
	}
}

// TestNotificationsThatAreNotUTF8AreDropped: log messages and progress that are not UTF-8 are counted, and a question is
// answered with an error.
func TestNotificationsThatAreNotUTF8AreDropped(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if modern(w) || strings.Contains(w.name, "json") {
			continue // no questions, or no stream for them
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Tools = append(upstreamtest.DefaultTools(), upstreamtest.Tool("say"), upstreamtest.Tool("answers"))
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			notes, _ := json.Marshal(map[string]any{"notes": []string{
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"$BAD"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1,"message":"$BAD"}}`,
				`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"$BAD"}}`,
				`{"jsonrpc":"2.0","id":"$BAD","method":"elicitation/create","params":{"message":"$BAD"}}`,
			}})
			x := execution("s", "say", string(notes))
			x.Progress = func(p tool.Progress) { t.Errorf("progress %q", p.Params) }
			x.Notify = func(n tool.Notification) { t.Errorf("notification %q", n.Params) }
			if _, err := h.Execute(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if got := h.status("s").Dropped; got < 4 {
				t.Errorf("%d were counted, want 4", got)
			}
			got := string(h.mustCall(t, "s", "answers", `{"wait":"not UTF-8"}`))
			if !strings.Contains(got, `"id":"q","error":{"code":-32700`) {
				t.Errorf("the question got %s", got)
			}
		})
	}
}

// TestListsThatAreNotUTF8AreRepaired: one stray byte costs no server its other tools. What stands for it is told.
func TestListsThatAreNotUTF8AreRepaired(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Tools = []json.RawMessage{upstreamtest.Tool("good"),
				json.RawMessage(`{"name":"stray","description":"caf$BAD","inputSchema":{"type":"object"}}`)}
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			all := h.catalog("s").Tools
			if len(all) != 2 || all[1].Description != "caf\ufffd" || len(all[1].Repairs) != 1 {
				t.Fatalf("tools: %+v", all)
			}
		})
	}
}

// TestInitializeThatIsNotUTF8IsRefused: such a server is not used, and its status says why.
func TestInitializeThatIsNotUTF8IsRefused(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Instructions = "instructions: $BAD"
			h := start(t, w.config(t, "s"))
			if st := h.reaches(t, "s", tool.ServerBackoff); !strings.Contains(st.LastError, "not UTF-8 (byte ") {
				t.Errorf("last error %q", st.LastError)
			}
		})
	}
}
