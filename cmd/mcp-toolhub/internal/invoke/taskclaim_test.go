package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestTheClaimOfATask: who waits for a task goes on when it is known to have ended, when its time is over, or when its server does not tell.
// The server is asked as often as it says, while somebody waits.
func TestTheClaimOfATask(t *testing.T) {
	t.Parallel()
	state := func(text string) func(int) (json.RawMessage, error) {
		return func(int) (json.RawMessage, error) { return json.RawMessage(text), nil }
	}
	after := func(n int, text string) func(int) (json.RawMessage, error) {
		return func(asked int) (json.RawMessage, error) {
			if asked < n {
				return json.RawMessage(`{"status":"working"}`), nil
			}
			return json.RawMessage(text), nil
		}
	}
	refuse := func(err error) func(int) (json.RawMessage, error) {
		return func(int) (json.RawMessage, error) { return nil, err }
	}
	unknown := &tool.RPCError{Code: tool.CodeInvalidParams, Message: "no such task"}
	for name, c := range map[string]struct {
		task   string
		answer func(asked int) (json.RawMessage, error)
		waits  time.Duration
		asked  int
	}{
		"ended when asked":        {`"status":"working"`, after(3, `{"status":"failed"}`), 3 * time.Second, 3},
		"as often as it says":     {`"status":"working","pollInterval":5e3`, after(3, `{"status":"cancelled"}`), 15 * time.Second, 3},
		"not too often":           {`"status":"working","pollInterval":1`, after(3, `{"status":"completed"}`), 600 * time.Millisecond, 3},
		"not too seldom":          {`"status":"working","pollInterval":1e6`, after(3, `{"status":"completed"}`), 45 * time.Second, 3},
		"its time is over":        {`"status":"working","ttl":5500`, state(`{"status":"working"}`), 5500 * time.Millisecond, 5},
		"no time is known":        {`"status":"working","ttl":null,"pollInterval":14000`, state(`{"status":"working"}`), 30 * time.Minute, 128},
		"the server has lost it":  {`"status":"working"`, refuse(unknown), time.Second, 1},
		"the server is gone":      {`"status":"working"`, refuse(errors.New("gone")), 3 * time.Second, 3},
		"the server says nothing": {`"status":"working"`, state(`{}`), 3 * time.Second, 3},
		"it waits for input":      {`"status":"working"`, after(2, `{"status":"input_required"}`), 2 * time.Second, 2},
		"it waited at once":       {`"status":"input_required"`, nil, 0, 0},
		"it ended at once":        {`"status":"completed"`, nil, 0, 0},
	} {
		for _, mode := range []string{facts.ConcurrencyExclusive, facts.ConcurrencyByTarget} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, "", func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
						if strings.Contains(string(e.Arguments), "1") {
							return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1",` + c.task + `}}`), Task: "t1"}, nil
						}
						return tool.Reply{Result: []byte(answer)}, nil
					})
					b.says(t, facts.Override{Concurrency: mode})
					asked := 0
					b.opts.Forward = func(_ context.Context, r *tool.Request) (tool.Reply, error) {
						if r.Server != "s" || r.Method != tool.MethodTaskGet || string(r.Params) != `{"taskId":"t1"}` {
							t.Errorf("asked %+v", r)
						}
						asked++
						said, err := c.answer(asked)
						return tool.Reply{Result: said}, err
					}
					if o := b.call(t.Context(), "mcp.s.t", `{"n":1}`); o.Task == nil {
						t.Fatalf("%s: %s", o.Status, o.Result)
					}
					if l := b.Load("s"); l.Running != 0 {
						t.Errorf("the task has a place: %+v", l)
					}
					began := time.Now()
					if o := b.call(t.Context(), "mcp.s.t", `{"n":2}`); o.Status != tool.StatusSucceeded {
						t.Errorf("%s: %s", o.Status, o.Result)
					}
					waits, asks := c.waits, c.asked
					if mode == facts.ConcurrencyByTarget { // the tool has no target
						waits, asks = 0, 0
					}
					if took := time.Since(began); took != waits || asked != asks {
						t.Errorf("it waited %s, not %s, and the server was asked %d times, not %d", took, waits, asked, asks)
					}
				})
			})
		}
	}
}

// TestNobodyAsksAboutATaskThatNobodyWaitsFor, and whoever comes later has it asked at once.
func TestNobodyAsksAboutATaskThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1","status":"working"}}`), Task: "t1"}, nil
		})
		b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
		began, asked := time.Now(), ""
		b.opts.Forward = func(context.Context, *tool.Request) (tool.Reply, error) {
			asked += fmt.Sprint(time.Since(began), " ")
			return tool.Reply{Result: []byte(`{"status":"working"}`)}, nil
		}
		task := b.call(t.Context(), "mcp.s.t", `{"n":1}`).Task
		for range 100 { // they give up before the server is asked
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			b.call(ctx, "mcp.s.t", `{"n":2}`)
			cancel()
		}
		time.Sleep(time.Until(began.Add(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if o := b.call(ctx, "mcp.s.t", `{"n":2}`); o.Task != nil {
			t.Error("it did not wait for the task")
		}
		time.Sleep(time.Minute)
		if asked != "1m0s 1m1s " {
			t.Errorf("asked after %s", asked)
		}
		time.AfterFunc(time.Minute, func() { task.Tell(tool.MethodTaskCancel, []byte(`{"status":"cancelled"}`)) })
		if o := b.call(t.Context(), "mcp.s.t", `{"n":3}`); o.Task == nil || time.Since(began) != 2*time.Minute+1500*time.Millisecond+time.Minute {
			t.Errorf("%s: it waited until %s", o.Status, time.Since(began))
		}
	})
}

// TestWhatWaitsForATask: calls with known targets wait for a task with one of these, and every call for one that is exclusive.
func TestWhatWaitsForATask(t *testing.T) {
	t.Parallel()
	exclusive, unknown, safe := claim{mode: facts.ConcurrencyExclusive}, claim{mode: facts.ConcurrencyByTarget}, claim{mode: facts.ConcurrencySafe}
	for _, c := range []struct {
		task, call claim
		waits      bool
	}{
		{file("/f", true), file("/f", true), true}, {file("/f", true), file("/f", false), true}, {file("/f", true), file("/g", true), false},
		{file("/f", true), unknown, false}, {file("/f", true), safe, false}, {file("/f", true), exclusive, true},
		{exclusive, file("/f", true), true}, {exclusive, unknown, true}, {exclusive, safe, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScheduler(nil)
			p, err := enterWith(t.Context(), s, "s", "ann", c.task)
			if err != nil {
				t.Fatal(err)
			}
			task := &taskClaim{place: place{scheduler: s, server: "s", queue: p.queue, by: p.by, claim: p.claim}, task: &Task{},
				lasts: time.Hour, watch: func() func() { return func() {} }}
			task.enter()
			p.leave(0, false)
			began := time.Now()
			time.AfterFunc(time.Minute, task.end)
			q, err := enterWith(t.Context(), s, "s", "ann", c.call)
			if waited := time.Since(began) > 0; waited != c.waits || err != nil {
				t.Errorf("%v beside a task with %v: it waited: %t, %v", c.call, c.task, waited, err)
			}
			q.leave(0, false)
			task.end()
			if l := s.queues["s"].lanes[""]; l.exclusive != 0 || len(l.tasks) != 0 {
				t.Errorf("left behind: %+v", l)
			}
		})
	}
}

// TestForgottenTasksGiveTheirLocksBack: a task that nobody waits for, of a session that is gone, keeps nothing when its time is over.
func TestForgottenTasksGiveTheirLocksBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(func(string) Limits { return Limits{PerSession: true} })
		p, err := enterWith(t.Context(), s, "s", "ann/1", file("/f", true))
		if err != nil {
			t.Fatal(err)
		}
		task := &taskClaim{place: place{scheduler: s, server: "s", session: p.session, queue: p.queue, by: p.by, claim: p.claim}, task: &Task{},
			lasts: time.Hour}
		task.enter()
		q := p.queue
		p.leave(0, false)
		left := func() int {
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.lanes) - 1 // one is of no session
		}
		if left() != 1 {
			t.Fatalf("%d sessions have a queue while the task runs", left())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if left() != 0 {
			t.Error("the queue of the session is left behind")
		}
	})
}

// TestALateAnswerDoesNotUnlockATask: the server is asked, says that the task waits for input, and gets that before its answer is here.
func TestALateAnswerDoesNotUnlockATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1","status":"working"}}`), Task: "t1"}, nil
		})
		b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
		began := time.Now()
		b.opts.Forward = func(context.Context, *tool.Request) (tool.Reply, error) {
			answer := `{"status":"input_required"}`
			if time.Since(began) > 1050*time.Millisecond {
				answer = `{"status":"working"}`
			}
			time.Sleep(100 * time.Millisecond)
			return tool.Reply{Result: []byte(answer)}, nil
		}
		task := b.call(t.Context(), "mcp.s.t", `{"n":1}`).Task
		time.AfterFunc(1050*time.Millisecond, func() { task.Tell(tool.MethodTaskUpdate, nil) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if o := b.call(ctx, "mcp.s.t", `{"n":2}`); o.Task != nil {
			t.Error("a call runs beside the task")
		}
		time.Sleep(time.Second) // the last question ends
	})
}

// TestALateNotificationDoesNotUnlockATask: it says that the task waits for input which its server has got, or that it waited before it
// worked. One of a later question unlocks it, and so does one without a time.
func TestALateNotificationDoesNotUnlockATask(t *testing.T) {
	t.Parallel()
	const asks = `"status":"input_required"`
	for name, c := range map[string]struct {
		told     []string // "" is an input
		unlocked bool
	}{
		"of the same question":     {[]string{asks + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`, "", asks + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`}, false},
		"of an earlier question":   {[]string{`"status":"working","lastUpdatedAt":"2026-01-01T00:00:01.5Z"`, asks + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`}, false},
		"of a later question":      {[]string{asks + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`, "", asks + `,"lastUpdatedAt":"2026-01-01T02:00:01.1+02:00"`}, true},
		"of the question":          {[]string{`"status":"working","lastUpdatedAt":"2026-01-01T00:00:01Z"`, asks + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`}, true},
		"without a time":           {[]string{asks, "", asks}, true},
		"with a time that is none": {[]string{asks + `,"lastUpdatedAt":"now"`, "", asks + `,"lastUpdatedAt":"now"`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
				return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1",` + c.told[0] + `}}`), Task: "t1"}, nil
			})
			b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
			task := b.call(t.Context(), "mcp.s.t", `{"n":1}`).Task
			for _, said := range c.told[1:] {
				if said == "" {
					task.Tell(tool.MethodTaskUpdate, nil)
				} else {
					task.Tell("notifications/tasks/status", json.RawMessage("{"+said+"}"))
				}
			}
			if task.claim.unlocked != c.unlocked {
				t.Errorf("unlocked is %v", task.claim.unlocked)
			}
		})
	}
}
