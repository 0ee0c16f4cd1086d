//go:build e2e

package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestArgumentsOfCallsThatWaitAreBounded: a person's calls that wait hold 64 MiB of arguments. One more is refused, and says why. Another
// person's call is not, and all is let go when the client leaves.
func TestArgumentsOfCallsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	const calls, fit, size = 20, 17, 3_900_000
	g, hub := gatesOfTwo(t, nil)
	ann, bob := hub.person(t, rev2025, annToken), hub.person(t, rev2025, bobToken)
	call := func(w *wire, content string) <-chan string {
		return begins(w, "read_file", `{"path":"/tmp/a","content":"`+content+strings.Repeat("-", size)+`"}`)
	}
	answers := make(chan string, calls)
	for n := range calls {
		answer := call(ann, fmt.Sprint("ann", n))
		go func() { answers <- <-answer }()
	}
	for range calls - fit {
		if got := await(t, answers); !strings.Contains(got, "of 64 MiB at most") {
			t.Errorf("a call too many is answered with %.500s", got)
		}
	}
	close(g.gate(g.next()))
	if got := await(t, answers); strings.Contains(got, "64 MiB") {
		t.Errorf("a call that waited was refused: %.500s", got)
	}
	answer := call(bob, "bob")
	ann.quit()
	for range fit - 1 {
		await(t, answers)
	}
	for content := ""; !strings.HasPrefix(content, "bob"); {
		content = g.next()
		close(g.gate(content))
	}
	succeeds(t, answer)
	again := call(hub.person(t, rev2025, annToken), "again")
	close(g.gate(g.next()))
	succeeds(t, again)
}
