package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// statuses are the transitions of the last record of an invocation.
func statuses(r map[string]any) string {
	var all []string
	for _, s := range r["status_transitions"].([]any) {
		all = append(all, s.(map[string]any)["status"].(string))
	}
	return strings.Join(all, " ")
}

// lifeOf checks all records of the one invocation in the journal and returns its last record and its one result.
func lifeOf(t *testing.T, b *bench, id tool.InvocationID) (last, result map[string]any) {
	t.Helper()
	for _, r := range b.records(t) {
		validateRecord(t, r)
		if r["invocation_id"] != string(id) {
			t.Errorf("a record of another invocation: %v", r)
		}
		switch r["object"] {
		case "tool_invocation":
			last = r
		case "tool_result":
			if result != nil {
				t.Errorf("a second result: %v", r)
			}
			result = r
		}
	}
	if result == nil || last == nil || last["ended_at"] == nil {
		t.Fatalf("invocation %v, result %v", last, result)
	}
	return last, result
}

// inRounds is a tool that needs input once and then answers, and reports progress each time.
func inRounds(seen *[]tool.Execution) executorFunc {
	return func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		*seen = append(*seen, *e)
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
		if len(*seen) == 1 {
			return tool.Reply{Result: json.RawMessage(`{"resultType":"input_required"}`), NeedsInput: true}, nil
		}
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
}

func (b *bench) callInRounds(ctx context.Context, params string) *Call {
	return &Call{Surface: b.surface, Name: "mcp.s.t", Params: json.RawMessage(params), Arguments: json.RawMessage(`{"n":1}`),
		NativeCallID: json.RawMessage(`1`), Method: "tools/call", Actor: tool.Actor{Name: "ann", Door: "http"}, InputByRetry: true}
}

func TestPausedInvocationGoesOn(t *testing.T) {
	t.Parallel()
	var seen []tool.Execution
	b := newBench(t, "", inRounds(&seen))
	first := b.callInRounds(t.Context(), `{"round":1}`)
	first.Invocation = tool.NewInvocationID()
	out := b.Invoke(t.Context(), first)
	if out.Suspended == nil || out.Status != tool.StatusNeedsInput || out.InvocationID != first.Invocation ||
		string(out.Result) != `{"resultType":"input_required"}` {
		t.Fatalf("outcome %+v", out)
	}
	if load := b.Load("s"); load.Running != 0 {
		t.Errorf("a paused call holds its place: %+v", load)
	}
	next := b.callInRounds(t.Context(), `{"round":2}`)
	next.NativeCallID, next.Arguments = json.RawMessage(`2`), json.RawMessage(`{"n":2}`)
	end := out.Suspended.Resume(t.Context(), next)
	if end.Suspended != nil || end.Status != tool.StatusSucceeded || end.InvocationID != out.InvocationID {
		t.Fatalf("outcome %+v", end)
	}
	if len(seen) != 2 || string(seen[1].Params) != `{"round":2}` || string(seen[1].Arguments) != `{"n":1}` || !seen[1].InputByRetry {
		t.Errorf("executions %+v", seen)
	}
	last, _ := lifeOf(t, b, out.InvocationID)
	if got := statuses(last); got != "planned selected arguments_ready queued running needs_input queued running succeeded" {
		t.Errorf("statuses %s", got)
	}
	mappings := last["external_mappings"].([]any)
	if len(mappings) != 2 || mappings[1].(map[string]any)["jsonrpc_request_id"] != "2" {
		t.Errorf("mappings %v", mappings)
	}
}

func TestPausedInvocationEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*testing.T, *bench, *Suspended) Outcome
		status tool.Status
		code   int64
	}{
		"without an answer": {func(t *testing.T, _ *bench, w *Suspended) Outcome {
			return w.End(t.Context(), &tool.Failure{Class: tool.ClassTimeout, Message: "nobody answered"})
		}, tool.StatusTimedOut, 0},
		"with an error of the protocol": {func(t *testing.T, _ *bench, w *Suspended) Outcome {
			return w.End(t.Context(), &tool.RPCError{Code: tool.CodeMissingCapabilities, Message: "no"})
		}, tool.StatusFailed, tool.CodeMissingCapabilities},
		"as its tool is gone": {func(t *testing.T, b *bench, w *Suspended) Outcome {
			next := b.callInRounds(t.Context(), `{}`)
			next.Surface = tool.NewSurface("srf_y", "default", "canonical", "y", nil, nil, nil)
			return w.Resume(t.Context(), next)
		}, tool.StatusFailed, tool.CodeInvalidParams},
		"in a canceled request": {func(t *testing.T, b *bench, w *Suspended) Outcome {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return w.Resume(ctx, b.callInRounds(ctx, `{}`))
		}, tool.StatusCanceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []tool.Execution
			b := newBench(t, "", inRounds(&seen))
			out := b.Invoke(t.Context(), b.callInRounds(t.Context(), `{}`))
			end := c.end(t, b, out.Suspended)
			if end.Status != c.status || len(seen) != 1 || c.code == 0 && end.Err != nil || c.code != 0 && (end.Err == nil || end.Err.Code != c.code) {
				t.Errorf("outcome %+v after %d executions", end, len(seen))
			}
			if _, result := lifeOf(t, b, out.InvocationID); result["status"] != string(c.status) {
				t.Errorf("result %v", result)
			}
		})
	}
}

// A client that cannot answer with another request is never left with half a call.
func TestInputIsNeededOfNobody(t *testing.T) {
	t.Parallel()
	var seen []tool.Execution
	b := newBench(t, "", inRounds(&seen))
	out := b.call(t.Context(), "mcp.s.t", `{"n":1}`)
	if out.Suspended != nil || out.Class != tool.ClassExecutionFailed {
		t.Errorf("outcome %+v", out)
	}
	lifeOf(t, b, out.InvocationID)
}

func TestAskingIsRecorded(t *testing.T) {
	t.Parallel()
	var late tool.Asker
	b := newBench(t, "", func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		late = e.Ask
		for range 2 {
			if got, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}); err != nil || string(got[0].Result) != `{"roots":[]}` {
				return tool.Reply{}, errors.Join(err, errors.New("no roots"))
			}
		}
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	})
	c := b.callInRounds(t.Context(), `{}`)
	c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
		return []tool.Answer{{Result: json.RawMessage(`{"roots":[]}`)}}, nil
	}
	out := b.Invoke(t.Context(), c)
	_, _ = late(t.Context(), []tool.Question{{Method: tool.MethodRoots}}) // changes nothing
	last, _ := lifeOf(t, b, out.InvocationID)
	if got := statuses(last); got != "planned selected arguments_ready queued running needs_input running needs_input running succeeded" {
		t.Errorf("statuses %s", got)
	}
}

// A call that its client gave up is not among the server's errors; one that took too long is.
func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	gaveUp, tooLong := error(nil), error(&tool.Failure{Class: tool.ClassTimeout, Message: "nobody answered"})
	for want, cause := range []error{gaveUp, tooLong} {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBench(t, "", func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			cancel(cause)
			<-ctx.Done()
			return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
		})
		out := b.call(ctx, "mcp.s.t", `{"n":1}`)
		if load := b.Load("s"); load.Calls != 1 || load.Errors != int64(want) {
			t.Errorf("%s: load %+v", out.Status, load)
		}
	}
}

func TestWhyACallWasCanceled(t *testing.T) {
	t.Parallel()
	for _, unknown := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBench(t, "", func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			cancel(&tool.Failure{Class: tool.ClassTimeout, Message: "nobody answered"})
			<-ctx.Done()
			return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled", OutcomeUnknown: unknown}
		})
		out := b.call(ctx, "mcp.s.t", `{"n":1}`)
		_, result := lifeOf(t, b, out.InvocationID)
		fault := result["error"].(map[string]any)
		if out.Status != tool.StatusTimedOut || fault["message"] != "nobody answered" || (fault["outcome_unknown"] == true) != unknown {
			t.Errorf("status %s, error %v", out.Status, fault)
		}
	}
}

// A server that asks without end fills no journal.
func TestWaitsInTheJournalAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		for range 10 * maxWaits {
			_, _ = e.Ask(ctx, nil)
		}
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	})
	c := b.callInRounds(t.Context(), `{}`)
	c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, nil }
	b.Invoke(t.Context(), c)
	n := 0
	for _, r := range b.records(t) {
		if r["object"] == "tool_invocation" {
			n++
			if all := strings.Fields(statuses(r)); !slices.Contains(all, "running") || len(all) > 2*maxWaits+10 {
				t.Fatalf("%d statuses", len(all))
			}
		}
	}
	if n > maxWaits+2 {
		t.Errorf("%d records", n)
	}
}
