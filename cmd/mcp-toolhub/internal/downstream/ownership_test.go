package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func (v *servers) Listen(context.Context, *tool.Request, func(json.RawMessage), func(tool.Notification)) error {
	return nil
}

func (v *servers) Notify(_ context.Context, r *tool.Request) error {
	v.note("notify " + r.Method + " " + string(r.Params))
	return nil
}

// anyTasks is what a client is told of tasks while a server is not known.
func anyTasks(version string) string {
	switch version {
	case "2025-11-25":
		return `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
	case modernVersion:
		return `,"extensions":{"io.modelcontextprotocol/tasks":{}}`
	}
	return ""
}

// outOf drains what waits for a caller.
func outOf(c *caller) (said []string) {
	c.out.drain(func(method string, params json.RawMessage) { said = append(said, method+" "+string(params)) }, nil)
	return said
}

func statusNote(server, session, id string) tool.Notification {
	return tool.Notification{Server: server, Session: session, Method: tool.NoteTaskStatus,
		Params: json.RawMessage(`{"taskId":"` + id + `","z":1.50}`)}
}

// TestBelongings holds whose a ownedID is, in what order its caller learns of it, and that what is kept is bounded.
func TestBelongings(t *testing.T) {
	t.Parallel()
	var b ownerships
	ann, bob := &caller{out: newOutbox(nil), view: "default"}, &caller{out: newOutbox(nil), view: "default"}
	task := func(server string, c *caller, session, id string) *ownership {
		return &ownership{ownedID: ownedID{server: server, kind: taskID, id: id}, caller: c, session: session}
	}
	want := func(what string, c *caller, lines ...string) {
		t.Helper()
		if got := outOf(c); strings.Join(got, "\n") != strings.Join(lines, "\n") {
			t.Errorf("%s: %q, want %q", what, got, lines)
		}
	}
	b.tell(statusNote("s", "", "1"), nil)
	want("nobody's, and no call is open", ann)
	done := b.expect("s")
	b.tell(statusNote("s", "", "1"), nil)
	b.tell(statusNote("s", "", "2"), nil)
	first := task("s", ann, "a", "1")
	b.add(first)
	b.tell(statusNote("s", "", "1"), nil)
	want("before its caller knows of it", ann)
	b.release(first)
	done()
	line := tool.NoteTaskStatus + ` {"taskId":"1","z":1.50}`
	want("what was told before, and after", ann, line, line)
	if len(b.early) > 0 || len(b.open) > 0 {
		t.Errorf("%d early ones are left of %v", len(b.early), b.open)
	}
	b.tell(statusNote("s", "session", "1"), nil)
	b.tell(statusNote("other", "", "1"), nil)
	want("another connection's, another server's", ann)

	again := task("s", bob, "b", "1")
	b.add(again)
	b.release(again)
	b.tell(statusNote("s", "", "1"), nil)
	want("the one who had it before", ann)
	want("the one who has it", bob, line)
	if len(b.bySession["a"]) != 0 {
		t.Errorf("ann still has %v", b.bySession["a"])
	}
	b.drop("b")
	if len(b.byID)+len(b.bySession) != 0 {
		t.Errorf("%d things are left of %d sessions", len(b.byID), len(b.bySession))
	}

	for i := range maxOwned + 10 {
		b.add(task("s", ann, "a", fmt.Sprint("t", i)))
	}
	if len(b.byID) != maxOwned || b.byID[ownedID{server: "s", kind: taskID, id: "t0"}] != nil {
		t.Errorf("%d tasks are kept", len(b.byID))
	}
	defer b.expect("s")()
	for i := range maxEarly + 10 {
		b.tell(statusNote("s", "", fmt.Sprint("e", i)), nil)
	}
	if len(b.early) != maxEarly {
		t.Errorf("%d early ones are kept", len(b.early))
	}
}

// TestTaskIDInAllPlaces holds that a task goes by another id wherever a result names it, and that the rest stays.
func TestTaskIDInAllPlaces(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"z":1.50,"taskId":"a","b":[ ]}`:                                           `{"z":1.50,"taskId":"N","b":[ ]}`,
		`{"task":{"x":1e400,"task\u0049d":"a"},"taskId":7}`:                         `{"task":{"x":1e400,"task\u0049d":"N"},"taskId":"N"}`,
		`{"_meta":{"k":1.0,"io.modelcontextprotocol/related-task":{"taskId":"a"}}}`: `{"_meta":{"k":1.0,"io.modelcontextprotocol/related-task":{"taskId":"N"}}}`,
		`{"task":"a","_meta":[]}`:                                                   `{"task":"a","_meta":[]}`,
	} {
		if got, err := withTaskID(json.RawMessage(given), "N"); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", given, got, err)
		}
	}
}
