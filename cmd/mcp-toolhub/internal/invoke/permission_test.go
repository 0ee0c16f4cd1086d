package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// guarded makes a bench ask about its tool.
func (b *bench) guarded(t testing.TB, rules ...policy.Rule) *atomic.Pointer[gate.Gate] {
	t.Helper()
	var now atomic.Pointer[gate.Gate]
	now.Store(gateOf(t, rules...))
	b.around.gate, b.opts.Approvals = now.Load, approval.New(approval.Options{})
	return &now
}

func gateOf(t testing.TB, rules ...policy.Rule) *gate.Gate {
	t.Helper()
	g, err := gate.New(gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: rules}}}, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func said(choice string) []tool.Answer {
	return []tool.Answer{{Result: json.RawMessage(`{"action":"accept","content":{"answer":"` + choice + `"}}`)}}
}

// Whoever waits while the hub stops is told so, and nothing runs. Nobody has denied the call.
func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
		t.Error("ran")
		return tool.Reply{}, nil
	})
	b.guarded(t)
	b.around.open = true
	changes := b.opts.Approvals.Watch(t.Context())
	go func() {
		<-changes
		b.opts.Approvals.Close()
	}()
	c := b.callInRounds(t.Context(), `{"name":"x"}`)
	c.InputByRetry, c.Ask = false, nil
	out := b.Invoke(t.Context(), c)
	if out.Status != tool.StatusCanceled || !strings.Contains(string(out.Result), "the hub is stopping") || strings.Contains(string(out.Result), "in time") {
		t.Errorf("%s %s", out.Status, out.Result)
	}
}

// Equal questions that are open at once are one question, and when who asks it is gone, another call asks on.
func TestEqualQuestionsAreOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", ok(`{"content":[]}`))
	b.guarded(t)
	var asked atomic.Int32
	first, release := make(chan struct{}), make(chan struct{})
	ask := func(ctx context.Context, q []tool.Question) ([]tool.Answer, error) {
		if len(q) != 1 || !q[0].Own || q[0].Method != tool.MethodElicit {
			t.Errorf("asked %v", q)
		}
		if asked.Add(1) == 1 {
			close(first)
			<-ctx.Done() // the client of the first call goes
			return nil, ctx.Err()
		}
		<-release
		return said("allow_once"), nil
	}
	leaving, leave := context.WithCancel(t.Context())
	changes := b.opts.Approvals.Watch(t.Context())
	var calls sync.WaitGroup
	outcomes := make([]Outcome, 4)
	call := func(ctx context.Context, i int) {
		c := b.callInRounds(ctx, `{"name":"x"}`)
		c.InputByRetry, c.Ask = false, ask
		outcomes[i] = b.Invoke(ctx, c)
	}
	calls.Go(func() { call(leaving, 0) })
	<-first
	for i := 1; i < 4; i++ {
		calls.Go(func() { call(t.Context(), i) })
	}
	for e := range changes {
		if e.Question.Waiting == 4 {
			break
		}
	}
	leave()
	close(release)
	calls.Wait()
	if outcomes[0].Class != tool.ClassCanceled {
		t.Errorf("the call that was canceled: %+v", outcomes[0])
	}
	for _, o := range outcomes[1:] {
		if o.Status != tool.StatusSucceeded {
			t.Errorf("%+v %s", o, o.Result)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// On 2026-07-28 a client may never come back for a question. An equal call after that brings the question to the client, too,
// and the answer lets run those whose clients have come back, but for one whose person has denied it by then.
func TestEqualCallsInRoundsWaitForTheirClients(t *testing.T) {
	t.Parallel()
	for back, want := range map[string]tool.Status{"": tool.StatusCanceled, "allow_once": tool.StatusSucceeded, "deny_once": tool.StatusDenied} {
		b := newBench(t, "", ok(`{"content":[]}`))
		b.guarded(t)
		b.approver.patience = time.Millisecond
		var asked atomic.Int32
		first, comes := make(chan struct{}), make(chan struct{})
		left, leave := context.WithCancel(t.Context())
		defer leave()
		call := func(ctx context.Context) Outcome {
			c := b.callInRounds(ctx, `{"name":"x"}`)
			c.Ask = func(ctx context.Context, _ []tool.Question) ([]tool.Answer, error) {
				if asked.Add(1) == 1 {
					close(first)
					select {
					case <-comes:
						return said(back), nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return said("allow_once"), nil
			}
			return b.Invoke(ctx, c)
		}
		waiting := make(chan Outcome, 1)
		go func() { waiting <- call(left) }()
		<-first
		if o := call(t.Context()); o.Status != tool.StatusSucceeded {
			t.Errorf("the second: %+v %s", o, o.Result)
		}
		if len(b.opts.Approvals.List()) != 0 {
			t.Error("the answer was for one of two questions")
		}
		select {
		case o := <-waiting:
			t.Errorf("the first has ended with the second: %+v", o)
		default:
		}
		if back == "" {
			leave()
		} else {
			close(comes)
		}
		if o := <-waiting; o.Status != want {
			t.Errorf("the first, whose client says %q: %+v", back, o)
		}
	}
}

// A client that waits with equal calls is asked once, in rounds too.
func TestEqualCallsInRoundsAreAskedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", ok(`{"content":[]}`))
	b.guarded(t)
	b.approver.patience = time.Hour
	changes := b.opts.Approvals.Watch(t.Context())
	both := make(chan struct{})
	var asked atomic.Int32
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			c := b.callInRounds(t.Context(), `{"name":"x"}`)
			c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
				asked.Add(1)
				<-both
				return said("allow_once"), nil
			}
			if o := b.Invoke(t.Context(), c); o.Status != tool.StatusSucceeded {
				t.Errorf("%+v %s", o, o.Result)
			}
		})
	}
	for e := range changes {
		if e.Question.Waiting == 2 {
			close(both)
			break
		}
	}
	calls.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// What a person has allowed goes on after a pause without another question, unless something denies it by then.
func TestPermissionAfterAPause(t *testing.T) {
	t.Parallel()
	for _, deny := range []bool{false, true} {
		var seen []tool.Execution
		b := newBench(t, "", inRounds(&seen))
		now := b.guarded(t)
		asked := 0
		c := b.callInRounds(t.Context(), `{"name":"x"}`)
		c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
			asked++
			return said("allow_once"), nil
		}
		o := b.Invoke(t.Context(), c)
		if o.Suspended == nil || asked != 1 {
			t.Fatalf("asked %d times: %+v", asked, o)
		}
		if deny {
			now.Store(gateOf(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Deny, Reason: "changed my mind"}))
		}
		last := o.Suspended.Resume(t.Context(), c)
		if deny != strings.Contains(string(last.Result), "changed my mind") || deny == (last.Status == tool.StatusSucceeded) || asked != 1 {
			t.Errorf("deny %t, asked %d times: %s %s", deny, asked, last.Status, last.Result)
		}
		lifeOf(t, b, o.InvocationID)
	}
}

// A call in the queue says that it waits, ends in a denial when the time is over, and leaves valid records.
func TestWaitingInTheQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
		t.Error("it ran")
		return tool.Reply{}, nil
	})
	b.guarded(t)
	b.opts.Approvals = approval.New(approval.Options{Timeout: 100 * time.Millisecond})
	b.around.open = true
	var told []string
	c := b.callInRounds(t.Context(), `{"name":"x"}`)
	c.Progress = func(p tool.Progress) { told = append(told, string(p.Params)) }
	o := b.Invoke(t.Context(), c)
	if o.Class != tool.ClassPermissionDenied || len(told) == 0 || !strings.HasPrefix(told[0], `{"progress":0.0001,"message":"waiting_for_permission`) {
		t.Errorf("%s: %d reports, %.100s", o.Class, len(told), fmt.Sprint(told))
	}
	for _, r := range b.records(t) {
		validateRecord(t, r)
	}
}

// The standard's inputs stay apart where the person who allows a call changes its arguments: that is a mutation, and what
// runs is what the person wrote.
func TestArgumentsChangedByThePerson(t *testing.T) {
	t.Parallel()
	var ran json.RawMessage
	b := newBench(t, "", func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		ran = e.Arguments
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	})
	b.guarded(t)
	b.around.open = true
	changes := b.opts.Approvals.Watch(t.Context())
	go func() {
		e := <-changes
		_ = b.opts.Approvals.Answer(e.Question.ID, approval.Answer{Choice: policy.AllowOnce, By: "queue/op", Arguments: []byte(`{"n":2}`)})
	}()
	o := b.Invoke(t.Context(), b.callInRounds(t.Context(), `{"name":"x"}`))
	if o.Status != tool.StatusSucceeded || string(ran) != `{"n":2}` {
		t.Errorf("%s ran with %s", o.Status, ran)
	}
	var mutation, last map[string]any
	for _, r := range b.records(t) {
		validateRecord(t, r)
		switch r["object"] {
		case "tool_input_mutation":
			mutation = r
		case "tool_invocation":
			last = r
		}
	}
	if fmt.Sprint(last["model_input"], last["permission_input"]) != "map[n:1] map[n:2]" || last["observable_input"] != nil {
		t.Errorf("inputs: %v", last)
	}
	if mutation == nil || mutation["source_type"] != "permission_prompt" || fmt.Sprint(mutation["changed_fields"]) != "[n]" ||
		mutation["from_input_ref"] == mutation["to_input_ref"] {
		t.Errorf("mutation: %v", mutation)
	}
}

// What a person has allowed is what the arguments led to: where that is something else after a pause, the person is asked
// again.
func TestAllowedAndThenSwapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	lead := func(to string) {
		_ = os.Remove(link)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, to), 0o700), os.Symlink(filepath.Join(dir, to), link)); err != nil {
			t.Skip(err)
		}
	}
	for _, swapped := range []bool{false, true} {
		var seen []tool.Execution
		b := newBench(t, "", inRounds(&seen))
		b.guarded(t)
		asked := 0
		c := b.callInRounds(t.Context(), `{"name":"x"}`)
		c.Arguments = json.RawMessage(`{"n":1,"path":` + string(rawjson.Quote(filepath.Join(link, "x"))) + `}`)
		c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
			asked++
			return said([]string{"", "allow_once", "deny_once"}[asked]), nil
		}
		lead("first")
		o := b.Invoke(t.Context(), c)
		if o.Suspended == nil || asked != 1 {
			t.Fatalf("asked %d times: %+v", asked, o)
		}
		if swapped {
			lead("second")
		}
		last := o.Suspended.Resume(t.Context(), c)
		if (last.Class == tool.ClassApprovalRejected) != swapped || (asked == 2) != swapped || (len(seen) == 1) != swapped {
			t.Errorf("swapped %t, asked %d times, ran %d times: %s %s", swapped, asked, len(seen), last.Status, last.Result)
		}
		lifeOf(t, b, o.InvocationID)
	}
}

// Params with a twin of what is judged are refused where a policy judges: some servers do not care for letter case.
func TestTwinsOfParams(t *testing.T) {
	t.Parallel()
	for params, runs := range map[string]bool{`{"name":"x","Arguments":{"n":2}}`: false, `{"name":"x","argument\u017f":{"n":2}}`: false,
		`{"NAME":"y","name":"x"}`:             false,
		`{"name":"y","n\u0061me":"x"}`:        false,
		`{"name":"x","task":{},"argument":1}`: true} {
		b := newBench(t, "", ok(`{"content":[]}`))
		b.guarded(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Allow})
		o := b.Invoke(t.Context(), b.callInRounds(t.Context(), params))
		if runs != (o.Status == tool.StatusSucceeded) || !runs && o.Class != tool.ClassInvalidArguments {
			t.Errorf("%s: %s %s", params, o.Status, o.Result)
		}
		lifeOf(t, b, o.InvocationID)
	}
}

// Whoever comes to ask when the answer is there already asks nobody, however close the two are.
func TestNobodyAsksWhatIsAnswered(t *testing.T) {
	t.Parallel()
	for range 100 {
		var places approver
		queue := approval.New(approval.Options{})
		var callers sync.WaitGroup
		var asked atomic.Int32
		start := make(chan struct{})
		for range 4 {
			ticket, err := queue.Ask(approval.Question{Binding: approval.Binding{Actor: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			callers.Go(func() {
				<-start
				if leave := places.enter(t.Context(), ticket, false, nil); leave != nil {
					asked.Add(1)
					if err := queue.Answer(ticket.ID(), approval.Answer{Choice: policy.AllowOnce}); err != nil {
						t.Errorf("asked after the answer: %v", err)
					}
					leave()
				}
			})
		}
		close(start)
		callers.Wait()
		if n := asked.Load(); n != 1 {
			t.Fatalf("asked %d times", n)
		}
		queue.Close()
	}
}

// Calls that differ in anything that an approval is bound to are questions of their own.
func TestQuestionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", ok(`{"content":[]}`))
	b.guarded(t)
	b.around.open = true
	var calls sync.WaitGroup
	changes := map[string]func(*Call){
		"none": func(*Call) {}, "again": func(*Call) {}, "actor": func(c *Call) { c.Actor.Name = "bob" },
		"session": func(c *Call) { c.Session.Key = "other" }, "arguments": func(c *Call) { c.Arguments = json.RawMessage(`{"n":2}`) },
		"profile": func(c *Call) {
			c.Surface = tool.NewSurface("srf_z", "other", "canonical", "z", c.Surface.Listed, nil, map[string]int{"mcp.s.t": 0})
		},
	}
	waiting := b.opts.Approvals.Watch(t.Context())
	for _, change := range changes {
		c := b.callInRounds(t.Context(), `{"name":"x"}`)
		change(c)
		calls.Go(func() { b.Invoke(t.Context(), c) })
	}
	for range changes {
		<-waiting
	}
	if open := b.opts.Approvals.List(); len(open) != len(changes)-1 {
		t.Errorf("%d questions about %d calls", len(open), len(changes))
	}
	b.opts.Approvals.Close()
	calls.Wait()
}
