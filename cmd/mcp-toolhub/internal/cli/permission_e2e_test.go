//go:build e2e

package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// The client behind a call is asked, on every revision that knows elicitation, and its person's answer counts. What comes at
// once and is no answer counts as if nobody had been asked. The client is asked again where its answer cannot be read.
func TestPermissionAskedOfTheClient(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"ask": map[string]any{"channels": []string{"client"}}}, nil)
	const unanswered = "the client accepted the question without one of its answers"
	const refused = `"isError":true` // at once or not, as fast as the machine is: TestARefusalAtOnceIsNobodys tells the two apart
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		for _, c := range []struct{ name, answer, want string }{
			{"allow", `{"action":"accept","content":{"answer":"allow_once"}}`, `"status":"succeeded"`},
			{"deny", `{"action":"accept","content":{"answer":"deny_once","message":"use staging"}}`, "says: use staging"},
			{"decline", `{"action":"decline"}`, refused},
			{"cancel", `{"action":"cancel"}`, refused},
			{"decline with an answer", `{"action":"decline","content":{"answer":"allow_once"}}`, refused},
			{"cancel with an answer", `{"action":"cancel","content":{"answer":"allow_always"}}`, refused},
			{"no answer", `{"action":"accept","content":{"answer":"yes"}}`, unanswered},
			{"nothing", `{"action":"accept"}`, unanswered},
		} {
			x := &exchange{w: p.client(version).able().open(), answer: func(int, asked) string { return c.answer }}
			response := x.call("mcp.s.echo", `{"text":"`+c.name+version+`","password":"hunter2"}`)
			if !strings.Contains(response, c.want) {
				t.Errorf("%s %s: %s", version, c.name, response)
			}
			asked := 1
			if c.want == unanswered {
				asked = 3
			}
			if len(x.asked) != asked || x.asked[0].method != "elicitation/create" {
				t.Fatalf("%s %s: asked %v", version, c.name, x.asked)
			}
			checkQuestion(t, x.asked[0].params)
		}
	}
	log := p.journal()
	for _, word := range []string{`"approval_rejected"`, `"awaiting_approval"`, `"approved"`, `"answer_invalid: `, `"tool.permission.requested"`, `"suggested_updates"`} {
		if !strings.Contains(log, word) {
			t.Errorf("the journal does not hold %s", word)
		}
	}
	for line := range strings.Lines(log) { // a paused call resumes under its own id: one invocation, one terminal result
		if strings.Contains(line, `"object":"tool_result"`) && strings.Count(log, first(memberOf(t, line, "invocation_id"))) < 5 {
			t.Errorf("a result of an invocation that left little else: %s", line)
		}
	}
}

// checkQuestion: the person sees what is ours and what is the server's, and no secret.
func checkQuestion(t *testing.T, params string) {
	t.Helper()
	var q struct{ Message string }
	mustDecode(t, params, &q)
	if !strings.HasPrefix(q.Message, "mcp-toolhub asks: may mcp.s.echo (server s) run?\nArguments: ") || strings.Contains(q.Message, "hunter2") ||
		!strings.Contains(q.Message, `password: "[masked]"`) {
		t.Errorf("the question is %s", q.Message)
	}
	risks := 0
	for line := range strings.Lines(q.Message) {
		if strings.HasPrefix(line, "Risk: ") {
			risks++
		}
	}
	if risks != 1 || strings.Contains(q.Message, "\u202e") || strings.Contains(q.Message, "\nTool: ") || !strings.Contains(q.Message, `Echoes.\nRisk: low`) {
		t.Errorf("the server's words pass for the hub's: %s", q.Message)
	}
}

// Nothing runs where nobody answers: no channel, no time, no hub any more.
func TestPermissionNobody(t *testing.T) {
	t.Parallel()
	nobody := startPermitted(t, map[string]any{"ask": map[string]any{"channels": []string{"client"}}}, nil)
	w := nobody.client(rev2025).open()
	if got := w.send(w.call("mcp.s.echo", `{}`, "")); !strings.Contains(got[0], "the client cannot be asked") ||
		!strings.Contains(got[0], "permission_denied") {
		t.Errorf("without a channel: %s", got)
	}
	if all, err := control.Find(t.Context(), nobody.state); len(all) != 0 || err != nil {
		t.Errorf("the queue can be seen without being a channel: %v, %v", all, err)
	}
	late := startPermitted(t, map[string]any{"ask": map[string]any{"timeout": "1s"}}, nil)
	for _, version := range []string{rev2025, rev2026} {
		w := late.client(version).open()
		if got := w.send(w.call("mcp.s.echo", `{}`, "")); !strings.Contains(got[len(got)-1], "nobody allowed it in time") {
			t.Errorf("%s in no time: %s", version, got)
		}
	}
	stopped := startPermitted(t, map[string]any{}, nil)
	w = stopped.client(rev2025).open()
	answered := make(chan []string, 1)
	go func() { answered <- w.send(w.call("mcp.s.echo", `{}`, "")) }()
	stopped.pending(stopped.hub())
	log := stopped.journal()
	if got := <-answered; !strings.Contains(got[len(got)-1], `"status":"canceled"`) {
		t.Errorf("at a stop: %s", got)
	}
	if strings.Contains(log, `"tool.invocation.started"`) {
		t.Error("a call ran that nobody allowed")
	}
}
