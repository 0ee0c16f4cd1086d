package cli

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

const (
	allowIt = `{"action":"accept","content":{"answer":"allow_once"}}`
	denyIt  = `{"action":"accept","content":{"answer":"deny_once"}}`
)

// response is a client's answer to the hub's request id.
func response(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

// The client and the queue are asked at a time: the first answer counts, the other one is told or dropped, and the client's
// question is taken back.
func TestAttackTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	w := p.client(rev2025).able().open()
	next, end := w.begin(w.call("mcp.s.echo", `{"text":"queue first"}`, ""))
	question := next()
	id, v := first(memberOf(t, question, "id")), p.pending(h)
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce, Sentence: "no"}); err != nil {
		t.Fatal(err)
	}
	if back := next(); !strings.Contains(back, "notifications/cancelled") || !strings.Contains(back, id) {
		t.Errorf("the question is not taken back: %s", back)
	}
	w.respond(response(id, allowIt))
	if got := next(); !strings.Contains(got, "says: no") {
		t.Errorf("%s", got)
	}
	end()

	waiting := p.client(rev2025).open()
	answered := make(chan string, 1)
	go func() {
		answered <- strings.Join(waiting.send(waiting.call("mcp.s.echo", `{"text":"many"}`, "")), "\n")
	}()
	v = p.pending(h)
	var group sync.WaitGroup
	var mu sync.Mutex
	var taken []policy.Choice
	for i := range 20 {
		group.Go(func() {
			choice := []policy.Choice{policy.AllowOnce, policy.DenyOnce}[i%2]
			_, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: choice})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken = append(taken, choice)
			} else if !strings.Contains(err.Error(), approval.ErrAnswered.Error()) {
				t.Errorf("refused with %v", err)
			}
		})
	}
	group.Wait()
	got := await(t, answered)
	if len(taken) != 1 || strings.Contains(got, `"status":"succeeded"`) != taken[0].Allows() {
		t.Errorf("%v were taken: %s", taken, got)
	}
}

// startPermittedWith is startPermitted with another server.
func startPermittedWith(t *testing.T, server, policy map[string]any) *permitted {
	t.Helper()
	p := &permitted{t: t, dir: t.TempDir(), far: map[string]any{"s": server}}
	p.state, p.file = filepath.Join(p.dir, "state"), filepath.Join(p.dir, "hub.json")
	p.write(policy, nil)
	p.restart()
	return p
}

// restart starts the hub, once more after it has ended.
func (p *permitted) restart() {
	p.t.Helper()
	h, err := launch(p.dir, scratchEnv(p.dir), "--config", p.file, "--state-dir", p.state)
	if err != nil {
		p.t.Fatal(err)
	}
	p.runningHub = h
	p.cleanUp(h)
}

// Equal questions of one session that are open at once are one question, with one answer; those of two callers are two.
func TestAttackEqualQuestions(t *testing.T) {
	t.Parallel()
	p := startTokens(t, []map[string]string{{"name": "ann", "token": "${env:ANN}"}, {"name": "bob", "token": "${env:BOB}"}})
	h := p.hub()
	ann := p.client(rev2025, "Authorization", "Bearer ann-ann-ann-ann-ann").able().open()
	first, endFirst := ann.begin(ann.call("mcp.s.echo", `{"text":"x"}`, ""))
	defer endFirst()
	question := first()
	again, second := ann.call("mcp.s.echo", `{"text":"x"}`, ""), make(chan string, 1)
	go func() { second <- strings.Join(ann.send(again), "\n") }()
	eventually(t, "both calls wait for one answer", func() bool {
		open, err := h.Approvals(t.Context())
		return err == nil && len(open) == 1 && open[0].Waiting == 2
	})
	bob := p.client(rev2025, "Authorization", "Bearer bob-bob-bob-bob-bob").open()
	theirs := make(chan string, 1)
	go func() { theirs <- strings.Join(bob.send(bob.call("mcp.s.echo", `{"text":"x"}`, "")), "\n") }()
	eventually(t, "another caller has a question of their own", func() bool {
		open, err := h.Approvals(t.Context())
		return err == nil && len(open) == 2
	})
	id, _ := memberOf(t, question, "id")
	ann.respond(response(id, allowIt))
	for _, got := range []string{first(), await(t, second)} {
		if !strings.Contains(got, `"status":"succeeded"`) || strings.Contains(got, "elicitation/create") {
			t.Errorf("%s", got)
		}
	}
	v := p.pending(h)
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, theirs); !strings.Contains(got, "approval_rejected") {
		t.Errorf("another caller: %s", got)
	}
}
