//go:build e2e

package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestPeopleTakeTurnsThroughTheHub: a person with forty sessions does not keep the one call of another person waiting for all of theirs.
func TestPeopleTakeTurnsThroughTheHub(t *testing.T) {
	t.Parallel()
	const sessions = 40
	g, hub := gatesOfTwo(t, nil)
	var answers []<-chan string
	for n := range sessions {
		answers = append(answers, begins(hub.person(t, rev2025, annToken), "read_file", fmt.Sprintf(`{"path":"/tmp/a","content":"%d"}`, n)))
	}
	waits := func(n int) {
		eventually(t, fmt.Sprint(n, " calls wait"), func() bool { return hub.statusOf(t, "far").Queued == n })
	}
	waits(sessions - 1)
	answer := begins(hub.person(t, rev2025, bobToken), "read_file", `{"path":"/tmp/a","content":"bob"}`)
	waits(sessions)
	before := 0
	for content := g.next(); content != "bob"; content = g.next() {
		before++
		close(g.gate(content))
	}
	close(g.gate("bob"))
	if succeeds(t, answer); before > 2 {
		t.Errorf("%d calls ran before the only one of its person", before)
	}
	for range sessions - before {
		close(g.gate(g.next()))
	}
	for _, answer := range answers {
		succeeds(t, answer)
	}
}

// TestRefusedCallsDoNotFillTheLog: a caller with a rate of its own is refused a hundred times, which is one line of the log.
func TestRefusedCallsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	rate := map[string]any{"actor": "ann", "calls": 1, "every": "2h"}
	g, hub := gatesOfTwo(t, map[string]any{"policy": map[string]any{"mode": "accept_all", "rates": []any{rate}}})
	ann, bob := hub.person(t, rev2025, annToken), hub.person(t, rev2025, bobToken)
	for _, w := range []*wire{ann, bob, bob} {
		answer := begins(w, "read_file", `{"path":"/tmp/a","content":"x"}`)
		close(g.gate(g.next()))
		succeeds(t, answer)
		g.mu.Lock()
		delete(g.gates, "x")
		g.mu.Unlock()
	}
	for range 100 {
		if got := await(t, begins(ann, "read_file", `{"path":"/tmp/a","content":"x"}`)); !strings.Contains(got, "rate_limited") {
			t.Fatalf("a call too many is answered with %.500s", got)
		}
	}
	if n := strings.Count(hub.log(), `"msg":"calls are refused, this one and perhaps others"`); n != 1 {
		t.Errorf("%d lines of the log say that calls were refused", n)
	}
}
