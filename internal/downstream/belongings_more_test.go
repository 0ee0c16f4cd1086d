package downstream

import (
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestTasksOfServersStayApart holds that no id that a server chooses for its tasks leads to it what is asked of another
// server's task.
func TestTasksOfServersStayApart(t *testing.T) {
	t.Parallel()
	for _, ids := range [][][2]string{
		{{"a", "b/1"}, {"a", "1"}, {"b", "1"}},
		{{"a", "1"}, {"b", "1"}, {"b", "b/1"}, {"a", "b/1"}},
		{{"a", "b/b/1"}, {"a", "b/1"}, {"a", "1"}, {"b", "1"}, {"b", "b/1"}},
	} {
		var b belongings
		who := &caller{view: "default"}
		p := peer{profile: "default", session: tool.Session{Key: "s"}}
		var all []*belonging
		for _, of := range ids {
			one := &belonging{thing: thing{server: of[0], kind: aTask, id: of[1]}, caller: who, session: "s"}
			b.add(one)
			all = append(all, one)
		}
		for _, one := range all {
			if got := b.task(p, []string{"a", "b"}, one.shown); got != one {
				t.Errorf("%v: task %q of %q is shown as %q, and that leads to %+v", ids, one.id, one.server, one.shown, got.thing)
			}
		}
	}
}

// TestEndedSessionsOwnNothing holds that what a server names for a session which has ended is not kept: nobody would
// forget it.
func TestEndedSessionsOwnNothing(t *testing.T) {
	t.Parallel()
	var b belongings
	ended := make(chan struct{})
	who := &caller{session: tool.Session{Key: "s", Ended: ended}, out: newOutbox(nil)}
	add := func(id string) *belonging {
		one := &belonging{thing: thing{server: "a", kind: aTask, id: id}, caller: who, session: "s"}
		b.add(one)
		return one
	}
	add("1")
	close(ended)
	b.drop("s")
	b.release(add("2")) // of a call that has just come to its end
	if len(b.byThing) > 0 || len(b.bySess) > 0 {
		t.Errorf("kept: %v, %v", b.byThing, b.bySess)
	}
}

// TestEarlyOfServers holds that a server which says much before its calls are answered loses its own words alone.
func TestEarlyOfServers(t *testing.T) {
	t.Parallel()
	var b belongings
	defer b.expect("quiet")()
	defer b.expect("loud")()
	b.tell(statusNote("quiet", "", "q"), nil)
	for i := range 3 * maxEarly {
		b.tell(statusNote("loud", "", fmt.Sprint(i)), nil)
	}
	who := &caller{out: newOutbox(nil), view: "default"}
	one := &belonging{thing: thing{server: "quiet", kind: aTask, id: "q"}, caller: who, session: "s"}
	b.add(one)
	b.release(one)
	if got := outOf(who); len(got) != 1 {
		t.Errorf("the quiet one's client is told %q", got)
	}
	if len(b.early) > maxEarly {
		t.Errorf("%d are kept", len(b.early))
	}
}
