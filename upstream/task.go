package upstream

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
)

const (
	maxTaskID  = 1 << 10 // bytes
	maxLasting = 1000    // of one session
)

// taskTokens holds the progress tokens of calls, up to 2025-11-25, whose progress may go on after
// their answer: they have become tasks, or still may. The zero value is ready.
type taskTokens struct {
	mu    sync.Mutex
	known []int64 // the latest last; at most maxLasting
}

func (l *taskTokens) add(token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known = append(l.known, token); len(l.known) > maxLasting {
		l.known = slices.Delete(l.known, 0, 1)
	}
}

func (l *taskTokens) remove(token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = slices.DeleteFunc(l.known, func(known int64) bool { return known == token })
}

func (l *taskTokens) has(token int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.known, token)
}

// asTask removes from the params of a call to a server up to 2025-11-25 what they must not say of tasks: "task" is of
// 2025-11-25, and means nothing from clients of other revisions. asks says that the server may make a task of the call.
// The error says that the tool cannot be called by such a client.
func (s *server) asTask(call *tool.Execution, sess *session) (asks bool, err error) {
	_, asks = hop.Ability(call.Params, "task")
	if call.Hop.Revision == hop.NewestWithSession {
		return asks, nil // the server says itself what is missing
	}
	if !sess.callsTasks {
		return false, nil // "regardless of the execution.taskSupport value"
	}
	if asks {
		if call.Params, _, err = rawjson.Delete(call.Params, "task"); err != nil {
			return false, err
		}
	}
	execution, _ := rawjson.Get(call.Tool.Declaration, "execution")
	if rawjson.Text(execution, "taskSupport") == "required" {
		return false, &tool.Failure{Class: tool.ClassCapabilityGap, Code: "task_required", Message: fmt.Sprintf(
			"%q of server %q runs as a task only, and tasks of that server are of protocol 2025-11-25, which this "+
				"client does "+
				"not speak: call it from a client that does", call.Tool.Native, s.cfg.ID)}
	}
	return false, nil
}

// withTask notes in the reply to a call which task the server has made of it: one that the client asked for, up to
// 2025-11-25, or a reply of that kind.
func (s *server) withTask(x *clientRequest) error {
	reply, modern := &x.reply, x.kind == "task"
	at := reply.Result
	if !modern {
		var has bool
		if at, has = hop.Ability(reply.Result, "task"); !has {
			return nil
		}
	}
	id := rawjson.Text(at, "taskId")
	switch {
	case id == "" || len(id) > maxTaskID:
		*reply = tool.Reply{Mapping: reply.Mapping}
		return invalidAnswer(fmt.Sprintf("tells of a task that has no id of 1 to %d bytes", maxTaskID)).err
	case modern && !(x.Hop.Revision >= hop.Modern && tool.Declares(x.Hop.ClientCapabilities, "extensions",
		tool.TaskExtension)):
		// "A server MUST NOT return CreateTaskResult to a client that did not include the extension capability".
		*reply = tool.Reply{Mapping: reply.Mapping}
		return &tool.Failure{Class: tool.ClassCapabilityGap, Code: "unasked_task", OutcomeUnknown: true,
			Message: fmt.Sprintf(
				"server %q made a task of %q, and this client did not say that it can follow one: it may have "+
					"taken effect. "+
					"Report this to whoever maintains the server", s.cfg.ID, x.Name)}
	}
	reply.Task = id
	return nil
}
