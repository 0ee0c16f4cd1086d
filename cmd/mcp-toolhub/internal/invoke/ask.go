package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// question is a decision that asks, while a person is asked.
type question struct {
	gate     *gate.Gate
	request  policy.Request
	decision *tool.PermissionDecision
	ticket   *approval.Ticket
	unasked  string // why the client could not be asked, for people; "" where it was, or was not tried
	yields   bool   // the client's request can wait no longer
}

// askers keeps equal questions from being put to the client more than once at a time.
type askers struct {
	mu       sync.Mutex
	open     map[approval.ID]chan struct{} // closed when whoever asks is done
	patience time.Duration                 // how long a call in rounds waits for another one's client; default 15 s
}

// enter returns when the caller may ask the client, with the function that lets the next one; nil where that is no longer
// needed, because the question is settled or ctx is done. A call in rounds does not wait for ever: a client that was given
// the question may never come back for it, and nobody would know.
func (a *askers) enter(ctx context.Context, t *approval.Ticket, inRounds bool) (leave func()) {
	var enough <-chan time.Time
	if inRounds {
		timer := time.NewTimer(cmp.Or(a.patience, 15*time.Second))
		defer timer.Stop()
		enough = timer.C
	}
	for {
		a.mu.Lock()
		select {
		case <-t.Done(): // whoever asked before has brought the answer, and that before giving up the place
			a.mu.Unlock()
			return nil
		default:
		}
		other := a.open[t.ID()]
		if other == nil {
			mine := make(chan struct{})
			if a.open == nil {
				a.open = make(map[approval.ID]chan struct{})
			}
			a.open[t.ID()] = mine
			a.mu.Unlock()
			return func() {
				a.mu.Lock()
				delete(a.open, t.ID())
				a.mu.Unlock()
				close(mine)
			}
		}
		a.mu.Unlock()
		select {
		case <-other:
		case <-enough:
			return func() {}
		case <-t.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// ask puts the question to a person, waits for the answer and makes it the decision that counts.
func (p *Pipeline) ask(ctx context.Context, inv *invocation, q *question) error {
	if p.opts.Approvals == nil {
		return p.deny(inv, q, "nobody", "somebody would have to allow it, and nobody can be asked")
	}
	var err error
	if q.ticket, err = p.opts.Approvals.Ask(p.checked(q, inv.listed.Tool, q.forPeople(p.binding(q.gate, inv, &q.request)))); err != nil {
		return p.deny(inv, q, "nobody", err.Error())
	}
	defer q.ticket.Leave()
	inv.parent = q.ticket.Parent()
	inv.moveTo(tool.StatusAwaitingApproval)
	inv.event(tool.EventPermissionRequested, map[string]any{"decision_id": string(q.decision.DecisionID), "approval_id": string(q.ticket.ID())})
	inv.pending = append(inv.pending, inv.record())
	if err := p.opts.Journal.Append(ctx, inv.takePending()...); err != nil {
		p.opts.Logger.Warn("a wait for approval is not in the journal", "invocation", inv.id, "error", err)
	}
	reached := q.ticket.IsSettled() // while nobody waited
	if !reached {
		reached, err = p.reach(ctx, inv, q)
	}
	switch {
	case err != nil:
		return err
	case q.yields && ctx.Err() == nil && q.ticket.Yield(inv.id):
		return p.yield(inv, q)
	case reached || q.ticket.IsSettled(): // somebody may have answered while the client refused to ask
		return p.settle(ctx, inv, q)
	}
	q.ticket.Leave()
	return p.deny(inv, q, "nobody", "somebody would have to allow it, and "+cmp.Or(q.unasked, "nobody can be asked"))
}

// reach puts the question to people by one channel after the other, until it is settled, the call has ended, or the client's
// request can wait no longer. It returns false where no channel leads to anybody. The error ends the call, whatever the
// question's answer is.
func (p *Pipeline) reach(ctx context.Context, inv *invocation, q *question) (reached bool, err error) {
	since := time.Now()
	for _, channel := range q.gate.Channels() {
		switch {
		case channel == gate.ChannelClient && inv.call.InRounds: // the question is the answer to the client's request
			if q.unasked, err = p.askClient(ctx, inv, q); q.unasked == "" || err != nil {
				return true, err
			}
			since = time.Now() // the next request has come
		case channel == gate.ChannelClient:
			q.yields = inv.patiently(ctx, since, func(ctx context.Context) { q.unasked, err = p.askClient(ctx, inv, q) })
			if q.unasked == "" || err != nil {
				return true, err
			}
		case p.opts.QueueOpen != nil && p.opts.QueueOpen():
			q.yields = inv.patiently(ctx, since, func(ctx context.Context) { p.waitInQueue(ctx, inv, q) })
			return true, nil
		}
	}
	return false, nil
}

// forPeople is the question as the queue shows it.
func (q *question) forPeople(b approval.Binding) approval.Question {
	r := &q.request
	out := approval.Question{Binding: b, Invocation: r.Invocation, Decision: q.decision.DecisionID, Client: r.Actor.Client.Name,
		Suggested: q.decision.SuggestedUpdates, Covers: gate.Remembered(q.decision), Choices: gate.Choices(q.decision), Timeout: q.gate.AskTimeout()}
	out.Suggest, _ = gate.Suggest(r, q.decision)
	out.Does = gate.Does(r.Tool)
	out.Reason, _ = q.decision.Reason["message"].(string)
	out.Shown, out.Env = r.Input, r.Env
	if r.Facts != nil {
		out.Risk, out.Tags, out.Shown = r.Facts.Risk.Value, r.Facts.Tags, gate.Mask(r.Input, r.Facts)
	}
	for i, t := range r.Targets {
		if i < gate.MaxAims {
			t.Twins()
		}
		out.Targets = append(out.Targets, gate.Aim(&t))
	}
	return out
}

// checked is a question whose answers may hold only arguments that t takes. The person hears what is wrong with others, and the
// call waits on.
func (p *Pipeline) checked(q *question, t *tool.Tool, out approval.Question) approval.Question {
	masks := bytes.Contains(q.request.Input, []byte(target.Mask))
	out.Check = func(arguments []byte) error {
		if !masks && bytes.Contains(arguments, []byte(target.Mask)) {
			return fmt.Errorf("the changed arguments hold %s, which only stands for a secret that is not shown: write the value itself", target.Mask)
		}
		if t.Validate == tool.ValidateWarn {
			return nil
		}
		invalid, err := p.invalid(t, arguments)
		if invalid == nil {
			return err
		}
		return fmt.Errorf("the changed arguments do not fit the tool, and the call still waits: %s", invalid.Summary())
	}
	return out
}

// binding is what an approval of the invocation is bound to at this moment.
func (p *Pipeline) binding(g *gate.Gate, inv *invocation, r *policy.Request) approval.Binding {
	t := inv.listed.Tool
	if p.opts.Present != nil {
		if now := p.opts.Present(t.Name); now != nil {
			t = now
		} else {
			t = &tool.Tool{Name: t.Name}
		}
	}
	targets, err := json.Marshal(r.Targets)
	if err != nil {
		targets = nil // cannot be: nothing in it but strings
	}
	arguments := append(append([]byte{}, r.Input...), '\n')
	return approval.Binding{Actor: r.Actor.Ref(), Session: inv.call.Session.Key, Server: t.Server, Tool: t.Name,
		Schema: tool.Digest(t.Declaration), Arguments: tool.Digest(append(arguments, targets...)), Policy: g.Version(t.Server),
		Profile: r.Profile, CWD: r.CWD}
}

// askClient puts the question to the client behind the call and returns when it is settled, or why it could not be put. The
// error ends the call, whatever the question's answer is.
func (p *Pipeline) askClient(ctx context.Context, inv *invocation, q *question) (problem string, denial error) {
	if inv.call.Ask == nil {
		return "the client cannot be asked", nil
	}
	inRounds := inv.call.InRounds // the next round makes another call of inv
	leave := p.asking.enter(ctx, q.ticket, inRounds)
	if leave == nil {
		return "", nil
	}
	defer leave()
	asking, cancel := context.WithDeadline(ctx, q.ticket.Expires())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // an answer from elsewhere takes the question back
		select {
		case <-q.ticket.Done():
			if !inRounds || !p.elicited(q) {
				cancel()
			}
		case <-stop:
		}
	}()
	params, err := rawjson.Set([]byte(`{}`), "message", rawjson.Quote(gate.Message(&q.request, q.decision)))
	if err == nil {
		params, err = rawjson.Set(params, "requestedSchema", gate.Form(gate.Choices(q.decision), inv.call.Actor.Client.ProtocolVersion))
	}
	if err != nil {
		return "the question cannot be written", nil
	}
	shown := time.Now()
	answers, err := inv.call.Ask(asking, []tool.Question{{Key: "permission", Method: tool.MethodElicit, Params: params, Own: true,
		Sent: func() { shown = time.Now() }}})
	after := time.Since(shown)
	switch {
	case err != nil && ctx.Err() == nil && inRounds && p.elicited(q):
		return "", p.deny(inv, q, "timeout", "another call like it was answered, and for this one nobody came back in time")
	case err != nil: // the call has ended, or the question is settled
		return "", nil
	case len(answers) != 1 || answers[0].Err != nil:
		return "the client cannot be asked", nil
	}
	answer, problem := answerOf(answers[0].Result, after)
	if problem != "" {
		return problem, nil
	}
	answer.By = byElicitation + inv.call.Actor.Name
	if inv.call.Actor.Door == "cli" {
		answer.By = "terminal/" + inv.call.Actor.Name
	}
	err = p.opts.Approvals.Answer(q.ticket.ID(), answer)
	if errors.Is(err, approval.ErrChoice) {
		return noAnswer, nil
	}
	if errors.Is(err, approval.ErrAnswered) && !answer.Choice.Allows() { // by another call's client, and yet not this one's
		d, _ := q.gate.Engine().Settle(q.request, policy.Settlement{Choice: policy.DenyOnce, Sentence: answer.Sentence, By: answer.By,
			Dismissed: answer.Dismissed})
		inv.decided(&d)
		return "", denied(&d)
	}
	return "", nil
}

// elicited reports whether the question was answered by the client of a call. One in rounds whose own client was given the
// question waits for that, too: it may be a call that was given up, and made anew.
func (p *Pipeline) elicited(q *question) bool {
	v, err := p.opts.Approvals.Get(q.ticket.ID())
	return err == nil && v.State == approval.Answered && v.Answer != nil && strings.HasPrefix(v.Answer.By, byElicitation)
}

// byElicitation begins the name of whoever has answered at a client.
const byElicitation = "elicitation/"

// atOnce is the time within which no person refuses a question. Clients without a person (`claude -p`, `codex exec`) take less
// than 50 ms.
const atOnce = 300 * time.Millisecond

// noAnswer is why the client counts as not asked where it accepts a question without an answer that was offered.
const noAnswer = "the client accepted the question without one of its answers"

// answerOf reads the result of an elicitation that came so long after the question. A problem says why it is nobody's answer:
// then the question is still open. "Clients ... decline" where a person says no, and "cancel" where a person dismisses the
// question, but clients that have no person do either at once.
func answerOf(result json.RawMessage, after time.Duration) (answer approval.Answer, problem string) {
	var said struct {
		Action  string `json:"action"`
		Content struct {
			Answer  policy.Choice `json:"answer"`
			Message string        `json:"message"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &said) != nil {
		return answer, "the client's answer cannot be read"
	}
	refused := said.Action == "decline" || said.Action == "cancel"
	switch {
	case said.Action == "accept" && said.Content.Answer.IsValid():
		return approval.Answer{Choice: said.Content.Answer, Sentence: said.Content.Message}, ""
	case said.Action == "accept":
		return answer, noAnswer
	case refused && after < atOnce:
		return answer, fmt.Sprintf("the client refused the question after %d ms, as one does that has no person to ask", after.Milliseconds())
	case refused:
		return approval.Answer{Choice: policy.DenyOnce, Dismissed: said.Action == "cancel"}, ""
	}
	return answer, "the client's answer cannot be read"
}

// waitingEvery is how often a call that waits says so: well within the time for which clients wait without progress.
const waitingEvery = 5 * time.Second

// waitInQueue returns when the question is settled or the call has ended. The client hears that the call waits.
func (p *Pipeline) waitInQueue(ctx context.Context, inv *invocation, q *question) {
	p.opts.Logger.Info("a call waits until a person allows it", "tool", inv.toolID(), "actor", inv.call.Actor.Ref(), "invocation", inv.id,
		"answer", p.answerWith(q), "until", q.ticket.Expires().UTC(), "because", q.unasked)
	ticker := time.NewTicker(waitingEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		p.reportWaiting(ctx, inv, q, n)
		select {
		case <-q.ticket.Done():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// answerWith is the command that allows a call which waits, and what else may be typed in its place.
func (p *Pipeline) answerWith(q *question) string {
	return p.opts.CommandLine("approvals approve "+string(q.ticket.ID())) + " (or show, or deny)"
}

// reportWaiting tells the client that the call waits, for the nth time. The numbers are small, so that those of the tool
// itself are larger: progress must increase.
func (p *Pipeline) reportWaiting(ctx context.Context, inv *invocation, q *question, n int) {
	message := "waiting_for_permission: " + p.answerWith(q)
	if n == 1 {
		inv.reported++
		now := inv.now()
		r := tool.ProgressRecord{Head: tool.HeadOf(tool.ObjectProgress), ProgressID: tool.NewProgressID(), InvocationID: inv.id,
			Sequence: inv.reported, Status: tool.StatusAwaitingApproval, Message: message, ElapsedMS: now.Sub(inv.created).Milliseconds(),
			Timestamp: now}
		if err := p.opts.Journal.Append(ctx, r); err != nil {
			p.opts.Logger.Warn("a wait for approval is not in the journal", "invocation", inv.id, "error", err)
		}
	}
	if inv.call.Progress == nil {
		return
	}
	params := fmt.Appendf(nil, `{"progress":%.4f,"message":%s}`, float64(n)/10000, rawjson.Quote(message))
	inv.call.Progress(tool.Progress{Params: params})
}

// settle makes the answer the decision that counts.
func (p *Pipeline) settle(ctx context.Context, inv *invocation, q *question) error {
	if err := q.ticket.Wait(ctx); err != nil || ctx.Err() != nil {
		if ctx.Err() != nil {
			return becauseOf(ctx, &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while it waited for permission"})
		}
		if errors.Is(err, approval.ErrClosed) {
			return p.deny(inv, q, kindStale, err.Error())
		}
		why := "nobody allowed it in time"
		if q.unasked != "" {
			why += ", and " + q.unasked
		}
		return p.deny(inv, q, "timeout", why)
	}
	g := p.opts.Gate()
	r, err := p.requestOf(ctx, g, inv, inv.permissionInput) // paths may lead elsewhere by now
	if err != nil {
		return err
	}
	answer, err := q.ticket.Redeem(p.binding(g, inv, &r))
	if err != nil {
		return p.deny(inv, q, kindStale, err.Error())
	}
	if answer.Arguments != nil {
		if r, err = p.edit(ctx, g, inv, &answer); err != nil {
			return err
		}
	}
	d, err := g.Engine().Settle(r, policy.Settlement{Choice: answer.Choice, Sentence: answer.Sentence, By: answer.By,
		Dismissed: answer.Dismissed, Modified: answer.Arguments != nil})
	if err != nil {
		p.opts.Logger.Warn("an answer is not remembered", "invocation", inv.id, "tool", inv.toolID(), "error", err)
	}
	q.sayUnasked(&d)
	inv.decided(&d)
	if d.Behavior != tool.Allow {
		return denied(&d)
	}
	inv.approved = &consent{p.binding(g, inv, &r), answer.By, answer.Sentence}
	inv.aims = aims(&r)
	inv.command = gate.Command(&r)
	inv.moveTo(tool.StatusApproved)
	return nil
}

// edit puts the arguments that the person changed in the place of the caller's: validated again, and looked at again.
func (p *Pipeline) edit(ctx context.Context, g *gate.Gate, inv *invocation, a *approval.Answer) (policy.Request, error) {
	if !rawjson.Valid(a.Arguments) || !rawjson.IsObject(a.Arguments) {
		return policy.Request{}, &tool.Failure{Class: tool.ClassInvalidArguments, Message: "the arguments that a person put in the place of yours " +
			"are no JSON object: nothing ran"}
	}
	if err := p.validate(inv, a.Arguments); err != nil {
		return policy.Request{}, err
	}
	m := tool.InputMutation{Head: tool.HeadOf(tool.ObjectInputMutation), MutationID: tool.NewMutationID(), InvocationID: inv.id,
		SourceType: "permission_prompt", SourceRef: a.By, FromInputRef: persist.Ref(inv.shown(inv.permissionInput)),
		ToInputRef: persist.Ref(inv.shown(a.Arguments)),
		Reason:     "a person changed the arguments while allowing the call", CreatedAt: inv.now()}
	_ = rawjson.Members(a.Arguments, func(now rawjson.Member) bool {
		if before, ok := rawjson.Get(inv.permissionInput, now.Name()); !ok || string(before) != string(now.Value) {
			m.ChangedFields = append(m.ChangedFields, now.Name())
		}
		return true
	})
	_ = rawjson.Members(inv.permissionInput, func(before rawjson.Member) bool {
		if _, ok := rawjson.Get(a.Arguments, before.Name()); !ok {
			m.ChangedFields = append(m.ChangedFields, before.Name())
		}
		return true
	})
	inv.pending = append(inv.pending, m)
	inv.permissionInput, inv.callInput, inv.edited = a.Arguments, a.Arguments, true
	return p.requestOf(ctx, g, inv, a.Arguments)
}

// wayOut says what a person can do so that a call like this one runs, for who is told that nobody has answered.
func (q *question) wayOut() string {
	queue := "answer with `mcp-toolhub approvals` in another terminal while it waits"
	if !slices.Contains(q.gate.Channels(), gate.ChannelQueue) {
		queue += " (policy.ask.channels has to name queue for that)"
	}
	ways := fmt.Sprintf("allow it in policy.rules: {match: %q, then: allow}", q.request.Tool.Name)
	switch kind, _ := q.decision.Reason["type"].(string); {
	case kind == "rule" && len(q.decision.RuleRefs) > 0: // an allow beside it would change nothing
		ways = "change the rule that asks, " + q.decision.RuleRefs[0]
	case kind == "limit":
		ways = "change what policy.targets says of it"
	}
	return "A person can " + queue + ", " + ways + ", or set another policy.mode"
}

// sayUnasked records in d why the client could not be asked.
func (q *question) sayUnasked(d *tool.PermissionDecision) {
	if q.unasked != "" {
		d.Reason["could_not_ask"] = q.unasked
	}
}

// kindStale is the reason of a denial where an answer came, and is none for the call as it is by then.
const kindStale = "stale"

// deny records that the question q denied the call because no answer came, and why.
func (p *Pipeline) deny(inv *invocation, q *question, kind, why string) error {
	if kind != kindStale {
		why += ". " + q.wayOut()
	}
	d := *q.decision
	d.DecisionID, d.Behavior, d.Source, d.DecidedAt, d.SuggestedUpdates = tool.NewDecisionID(), tool.Deny, kind, inv.now().UTC(), nil
	asked, _ := q.decision.Reason["message"].(string)
	d.Reason = map[string]any{"type": kind, "message": why, "asked_because": asked}
	q.sayUnasked(&d)
	inv.decided(&d)
	return denied(&d)
}
