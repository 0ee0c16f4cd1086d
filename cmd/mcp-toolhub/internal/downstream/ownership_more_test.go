package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
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
		var b ownerships
		who := &caller{view: "default"}
		p := &peer{profile: "default", session: tool.Session{Key: "s"}}
		var all []*ownership
		for _, of := range ids {
			one := &ownership{ownedID: ownedID{server: of[0], kind: taskID, id: of[1]}, caller: who, session: "s"}
			b.add(one)
			all = append(all, one)
		}
		for _, one := range all {
			if got := b.task(p, []string{"a", "b"}, one.shown); got != one {
				t.Errorf("%v: task %q of %q is shown as %q, and that leads to %+v", ids, one.id, one.server, one.shown,
					got.ownedID)
			}
		}
	}
}

// TestEndedSessionsOwnNothing holds that what a server names for a session which has ended is not kept: nobody would
// forget it.
func TestEndedSessionsOwnNothing(t *testing.T) {
	t.Parallel()
	var b ownerships
	ended := make(chan struct{})
	who := &caller{session: tool.Session{Key: "s", Ended: ended}, out: newOutbox(nil)}
	add := func(id string) *ownership {
		one := &ownership{ownedID: ownedID{server: "a", kind: taskID, id: id}, caller: who, session: "s"}
		b.add(one)
		return one
	}
	add("1")
	close(ended)
	b.drop("s")
	b.release(add("2")) // of a call that has just come to its end
	if len(b.byID) > 0 || len(b.bySession) > 0 {
		t.Errorf("kept: %v, %v", b.byID, b.bySession)
	}
}

// TestEarlyOfServers holds that a server which says much before its calls are answered loses its own words alone.
func TestEarlyOfServers(t *testing.T) {
	t.Parallel()
	var b ownerships
	defer b.expect("quiet")()
	defer b.expect("loud")()
	b.tell(statusNote("quiet", "", "q"), nil)
	for i := range 3 * maxEarly {
		b.tell(statusNote("loud", "", fmt.Sprint(i)), nil)
	}
	who := &caller{out: newOutbox(nil), view: "default"}
	one := &ownership{ownedID: ownedID{server: "quiet", kind: taskID, id: "q"}, caller: who, session: "s"}
	b.add(one)
	b.release(one)
	if got := outOf(who); len(got) != 1 {
		t.Errorf("the quiet one's client is told %q", got)
	}
	if len(b.early) > maxEarly {
		t.Errorf("%d are kept", len(b.early))
	}
}

// said is a replier that keeps the answer.
type said struct {
	replier
	text string
}

func (r *said) answer(result pieces) bool {
	r.text = string(bytes.Join(result.parts, nil))
	return true
}
func (r *said) refuse(err *tool.RPCError) { r.text = err.Error() }

// TestTaskListsWaitForNobody holds that servers which do not answer cost a list of tasks their own,
// and all of them together no more time than one.
func TestTaskListsWaitForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &servers{forward: func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
			if strings.HasPrefix(r.Server, "hung") {
				<-ctx.Done()
				return tool.Reply{}, ctx.Err()
			}
			return tool.Reply{Result: json.RawMessage(`{"tasks":[{"taskId":"` + r.Server + `"},{"taskId":"other"}]}`)},
				nil
		}}
		names := []string{"first", "hung1", "hung2", "last"}
		s := &Server{}
		s.deps = Deps{Servers: v, Surfaces: tasksOn{names: names}, Status: &far{}, Logger: newServerLogger()}
		s.wire()
		p := &peer{profile: "default", session: tool.Session{Key: "s"}}
		p.actor.Client.ProtocolVersion = tasksSince
		for _, name := range names {
			s.ownerships.add(&ownership{ownedID: ownedID{server: name, kind: taskID, id: name}, caller: &caller{},
				session: "s"})
		}
		began, r := time.Now(), &said{}
		s.tasks.list(t.Context(), p, &jsonrpc.Message{Method: tool.MethodTaskList}, r)
		if want := `{"tasks":[{"taskId":"first"},{"taskId":"last"}]}`; r.text != want ||
			time.Since(began) > tasksWithin {
			t.Errorf("after %v the list is %s", time.Since(began), r.text)
		}
	})
}

// tasksOn is a surface of servers with tasks.
type tasksOn struct {
	*far
	names []string
}

func (o tasksOn) Surface(string, tool.Actor) (*tool.Surface, error) {
	return &tool.Surface{Features: &tool.Features{Servers: o.names,
		Abilities: tool.Abilities{Tasks: tool.Tasks{List: true}}}}, nil
}

// TestElicitationsOfAnError holds that an error which wants very many elicitations first is not
// gone through to its end: everybody's things wait meanwhile.
func TestElicitationsOfAnError(t *testing.T) {
	t.Parallel()
	var s Server
	p := &peer{caller: &caller{}, session: tool.Session{Key: "s"}}
	p.actor.Client.ProtocolVersion = tasksSince
	var list bytes.Buffer
	for i := range maxElicitations + 1 {
		fmt.Fprintf(&list, `,{"mode":"url","elicitationId":"%d"}`, i)
	}
	data := fmt.Appendf(nil, `{"elicitations":[%s]}`, list.Bytes()[1:])
	s.ownerships.elicitsFirst(p, "a", &tool.RPCError{Code: tool.CodeURLElicitationRequired, Data: data})
	last := ownedID{server: "a", kind: elicitationID, id: fmt.Sprint(maxElicitations)}
	if n := len(s.ownerships.byID); n != 2*maxElicitations || s.ownerships.byID[last] != nil {
		t.Errorf("%d are kept", n)
	}
}

// TestLevelsOfEndedSessions holds that a session which ends while it sets a log level leaves nothing behind.
func TestLevelsOfEndedSessions(t *testing.T) {
	t.Parallel()
	var s Server
	ended := make(chan struct{})
	close(ended)
	session := tool.Session{Key: "s", Ended: ended}
	s.levels.drop(session.Key)
	s.levels.set(t.Context(), &peer{session: session, caller: &caller{session: session}},
		&jsonrpc.Message{Params: json.RawMessage(`{"level":"debug"}`)}, &said{})
	if len(s.levels.wanted) > 0 {
		t.Errorf("servers are still asked for %v", s.levels.wanted)
	}
}
