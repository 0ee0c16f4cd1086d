package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// taskClaim is the claim of a call that has become a task. The task keeps it until its server is known to have ended it, without a place
// among those that run. The queue's mutex guards it.
type taskClaim struct {
	place // what the call held; unlocked while the task waits for input
	task  *Task
	state tool.Request         // that asks for the state of the task
	lasts time.Duration        // the claim ends then in any case
	over  *time.Timer          // ends it
	every time.Duration        // how often the server may be asked
	next  time.Time            // when it may be asked again
	told  int                  // how often others than ask have told the state
	as    time.Time            // the newest lastUpdatedAt that was told
	given time.Time            // what as was when the server got the last input
	watch func() (stop func()) // begins to ask
	stop  func()               // ends that; nil while nobody waits for the claim
}

const (
	askTaskWithin = 10 * time.Second
	maxTaskFaults = 3    // answers in a row that do not tell the state of a task
	maxTaskClaims = 1000 // of one connection: the oldest ends
)

// keepClaim has a task keep the claim of its call, which is about to give its place back; t may be nil. A claim without known
// targets ends here: it only keeps the calls of one caller in order, and the server has this one already. Its caller may start several tasks.
func (t *Task) keepClaim(ctx context.Context, p *Pipeline, inv *invocation) {
	held := &inv.place
	if t == nil || held.queue == nil || held.claim.mode == facts.ConcurrencySafe ||
		held.claim.mode != facts.ConcurrencyExclusive && len(held.claim.targets) == 0 {
		return
	}
	said := json.RawMessage(inv.outcome.Result)
	if _, modern := rawjson.Get(said, "taskId"); !modern {
		said = rawjson.GetObject(said, "task")
	}
	hop := inv.call.Hop
	hop.ClientCapabilities, hop.LogLevel = bytes.Clone(hop.ClientCapabilities), bytes.Clone(hop.LogLevel)
	c := &taskClaim{
		place: place{scheduler: held.scheduler, server: held.server, session: held.session, queue: held.queue, by: held.by, claim: held.claim},
		task:  t, state: tool.Request{Server: held.server, Method: tool.MethodTaskGet, Hop: hop, Session: inv.call.Session,
			Params: fmt.Appendf(nil, `{"taskId":%s}`, rawjson.Quote(t.ID))},
		every: min(max(lasts(said, time.Second, "pollIntervalMs", "pollInterval"), 200*time.Millisecond), 15*time.Second),
	}
	c.lasts = lasts(said, p.scheduler.limits(held.server).withDefaults().TaskTime, "ttlMs", "ttl")
	c.next = time.Now().Add(c.every)
	ctx = context.WithoutCancel(ctx)
	c.watch = func() (stop func()) {
		watching, cancel := context.WithCancel(ctx)
		go c.ask(watching, p.opts.Forward)
		return cancel
	}
	t.claim = c
	c.enter()
	t.Tell(tool.MethodTaskGet, said)
}

// lasts returns a duration in milliseconds that a task has by one of these names; otherwise one where it has none.
func lasts(task json.RawMessage, otherwise time.Duration, names ...string) time.Duration {
	for _, name := range names {
		if ms, _ := number(task, name); ms > 0 {
			return time.Duration(min(ms, 1e12) * float64(time.Millisecond))
		}
	}
	return otherwise
}

// Tell takes note of what the server has said of the task: in an answer to a request of this method about it, or in a notification. It
// reports whether that tells its state. t may be nil.
func (t *Task) Tell(method string, said json.RawMessage) bool { return t.tell(method, said, -1) }

// tell is Tell. Of a task that has not ended it takes no note where the state was told since asOf, if that is not negative.
func (t *Task) tell(method string, said json.RawMessage, asOf int) bool {
	if t == nil || t.claim == nil {
		return false
	}
	status, _ := rawjson.GetString(said, "status")
	switch method {
	case tool.MethodTaskResult: // "MUST block the response until the task reaches a terminal status"
		status = "completed"
	case tool.MethodTaskUpdate: // it has its input
		status = "working"
	}
	switch status {
	case "working", "input_required":
		updated, _ := rawjson.GetString(said, "lastUpdatedAt")
		as, _ := time.Parse(time.RFC3339, updated)
		t.claim.change(func(*lane) { t.claim.take(status, as, asOf) })
	case "completed", "failed", "cancelled":
		t.claim.end()
	default:
		return false
	}
	return true
}

// take takes note of a state that is not the end, with its lastUpdatedAt and the asOf of tell. A notification may be late. So a state that is
// older than the newest one says nothing, nor does a question whose answer the server has got.
func (c *taskClaim) take(status string, as time.Time, asOf int) {
	waits := status == "input_required"
	switch {
	case asOf >= 0 && asOf != c.told: // it was told while the server answered
		return
	case asOf < 0 && !as.IsZero() && (as.Before(c.as) || waits && as.Equal(c.given)):
		return
	case asOf < 0:
		c.told++
	}
	c.unlocked = waits
	if !as.IsZero() {
		c.as = as
	} else if !waits {
		c.given = c.as
	}
}

// ask asks the server about the task until the claim has ended, or nobody waits for it any more: ctx ends then. A server that does not tell
// the state, because it is gone for example, does not hold up others.
func (c *taskClaim) ask(ctx context.Context, forward func(context.Context, *tool.Request) (tool.Reply, error)) {
	for faults := 0; faults < maxTaskFaults; {
		select {
		case <-time.After(c.nextAsk()):
		case <-ctx.Done():
			return
		}
		if forward == nil {
			break
		}
		asOf := c.asked()
		asking, cancel := context.WithTimeout(ctx, askTaskWithin)
		reply, err := forward(asking, &c.state)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if rpc, ok := errors.AsType[*tool.RPCError](err); ok && rpc.Code == tool.CodeInvalidParams {
			break // the server does not know the task
		}
		if faults++; err == nil && c.task.tell(tool.MethodTaskGet, reply.Result, asOf) {
			faults = 0
		}
	}
	c.end()
}

// nextAsk returns how long to wait before the server is asked.
func (c *taskClaim) nextAsk() time.Duration {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return time.Until(c.next)
}

// asked notes that the server is asked now, and returns how often the state was told before.
func (c *taskClaim) asked() (told int) {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.next = time.Now().Add(c.every)
	return c.told
}

// enter adds the claim to those of tasks. The call still holds its own. The claim of an earlier task with the same id goes: the server has
// forgotten that one.
func (c *taskClaim) enter() {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	l := c.queue.lanes[c.session]
	for _, old := range slices.Clone(l.tasks) {
		same := old.task.ID == c.task.ID && old.task.Session == c.task.Session
		if same || len(l.tasks) >= maxTaskClaims {
			l.drop(old)
		}
	}
	c.over = time.AfterFunc(c.lasts, c.end)
	l.tasks = append(l.tasks, c)
	l.add(&c.place)
}

// end gives the claim back. It may be called again.
func (c *taskClaim) end() { c.change(func(l *lane) { l.drop(c) }) }

// change changes the claim, unless it has ended, and lets in whoever may run then.
func (c *taskClaim) change(f func(*lane)) {
	q := c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[c.session]
	if l == nil || !slices.Contains(l.tasks, c) {
		return
	}
	f(l)
	l.watchTasks()
	q.queued -= l.admit(c.scheduler.limits(c.server).withDefaults().MaxParallel)
	q.tidy(c.session, l)
}

// blocks reports whether the claim keeps a call from running. A call without known targets does not wait for those of a task: it may be
// the call that brings the task to its end.
func (c *taskClaim) blocks(p *place) bool {
	exclusive := c.claim.mode == facts.ConcurrencyExclusive || p.claim.mode == facts.ConcurrencyExclusive
	return !c.unlocked && (exclusive || len(p.claim.targets) > 0) && c.conflicts(p)
}

// drop takes the claim of a task out.
func (l *lane) drop(c *taskClaim) {
	l.tasks = slices.DeleteFunc(l.tasks, func(t *taskClaim) bool { return t == c })
	l.exclusive--
	c.over.Stop()
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// watchFor has servers asked about those tasks for whose claims p begins to wait.
func (l *lane) watchFor(p *place) {
	for _, c := range l.tasks {
		if c.stop == nil && c.blocks(p) {
			c.stop = c.watch()
		}
	}
}

// stopWatching is watchTasks where no call has begun to wait and no claim has changed: it looks only at tasks whose servers are asked.
func (l *lane) stopWatching() {
	for _, c := range l.tasks {
		if c.stop != nil && !l.awaits(c) {
			c.stop()
			c.stop = nil
		}
	}
}

// awaits reports whether a call waits for the claim.
func (l *lane) awaits(c *taskClaim) bool {
	return slices.ContainsFunc(l.back, c.blocks) ||
		slices.ContainsFunc(l.turn, func(q *callerQueue) bool { return slices.ContainsFunc(q.waiting, c.blocks) })
}

// watchTasks has servers asked about those tasks whose claims calls wait for, and about no others.
func (l *lane) watchTasks() {
	for _, c := range l.tasks {
		awaited := l.awaits(c)
		if awaited && c.stop == nil {
			c.stop = c.watch()
		} else if !awaited && c.stop != nil {
			c.stop()
			c.stop = nil
		}
	}
}
