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
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// approver asks people about calls whose decision is to ask. It is safe for concurrent use.
type approver struct {
	opts      *Options
	arguments *validator
	patience  time.Duration // how long a call with retries waits for another one's client, which may never come back
}

// approvalRequest is a decision that asks, while a person is asked.
type approvalRequest struct {
	approver *approver
	gate     *gate.Gate
	request  policy.Request
	decision *tool.PermissionDecision
	id       tool.DecisionID // of decision
	ticket   *approval.Ticket
	unasked  string // why the client could not be asked, for people; "" where it was, or was not tried
	alone    bool   // the client has refused the question at once, as one without a person does
	yields   bool   // the client's request can wait no longer
}

// enter returns when the caller may ask the client: of equal questions, one at a time goes to
// clients. leave lets the next one ask; it is nil where the question is settled or ctx is done. The
// member's siblings hear that the call waits.
func (a *approver) enter(ctx context.Context, t *approval.Ticket, retries bool, m *Member) (leave func()) {
	leave = func() { <-t.Turn() }
	select {
	case t.Turn() <- struct{}{}:
	default:
		m.decided()
		var enough <-chan time.Time
		if retries {
			enough = time.After(a.patience)
		}
		select {
		case t.Turn() <- struct{}{}:
		case <-enough:
			leave = func() {}
		case <-t.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	if t.IsSettled() { // whoever asked before has brought the answer, and that before giving up the place
		leave()
		return nil
	}
	return leave
}

// ask puts the question to a person, waits for the answer and makes it the decision that counts.
func (a *approver) ask(ctx context.Context, inv *invocation, q *approvalRequest) error {
	inv.call.Arrival.Leave()
	if r := inv.call.Request; a.opts.Approvals == nil || r != nil && r.Unasked {
		inv.decided(q.decision)
		return a.deny(inv, q, "nobody", "somebody would have to allow it, and nobody can be asked")
	}
	a.offer(ctx, inv, q)
	var err error
	if q.ticket, err = a.opts.Approvals.Ask(q.forPeople(a.binding(q.gate, inv, &q.request))); err != nil {
		if errors.Is(err, approval.ErrClosed) {
			return stopped()
		}
		inv.decided(q.decision)
		return a.deny(inv, q, "nobody", err.Error())
	}
	defer q.ticket.Leave()
	expires := q.ticket.Expires().UTC()
	q.decision.ExpiresAt = &expires
	inv.decided(q.decision)
	inv.status = tool.StatusAwaitingApproval
	inv.record.Ask(string(q.ticket.ID()), q.ticket.Parent(), time.Now())
	inv.describe()
	a.opts.note(ctx, inv, "a wait for approval is not in the journal")
	reached := q.ticket.IsSettled() // while nobody waited
	if !reached {
		reached, err = a.reach(ctx, inv, q)
	}
	switch {
	case err != nil:
		return err
	case q.yields && ctx.Err() == nil && q.ticket.Yield(inv.id):
		return a.yield(inv, q)
	case reached || q.ticket.IsSettled(): // somebody may have answered while the client refused to ask
		return a.settle(ctx, inv, q)
	}
	q.ticket.Leave()
	return a.deny(inv, q, "nobody", "somebody would have to allow it, and "+cmp.Or(q.unasked, "nobody can be asked"))
}

// offer adds to the answers of a question that can be remembered what people have answered alike
// before. Questions about the calls of a batch come together within a moment, so nothing is looked
// up for them.
func (a *approver) offer(ctx context.Context, inv *invocation, q *approvalRequest) {
	if m := inv.call.Member; m != nil && m.Asks != nil ||
		!slices.Contains(gate.Choices(q.decision), policy.AllowAlways) {
		return
	}
	if offer := a.opts.People.Offer(ctx, &q.request); offer != nil {
		q.decision.SuggestedUpdates = append(slices.Clip(q.decision.SuggestedUpdates), *offer)
	}
}

// offered are the scopes of what the question offers.
func (q *approvalRequest) offered() []policy.Scope {
	if o := gate.Offer(q.decision); o != nil {
		return o.Targets
	}
	return nil
}

// reach puts the question to people by one channel after the other, until it is settled, the call
// has ended, or the client's request can wait no longer. It returns false where no channel leads to
// anybody. The error ends the call, whatever the question's answer is.
func (a *approver) reach(ctx context.Context, inv *invocation, q *approvalRequest) (reached bool, err error) {
	since := time.Now()
	for _, channel := range q.gate.Channels() {
		switch {
		case channel == gate.ChannelClient && q.gate.NotSelf(&q.request):
			q.unasked = "who calls does not answer for such a call (policy.ask.not_self)"
		case channel == gate.ChannelClient && inv.call.InputByRetry: // the question answers the client's request
			if q.unasked, err = a.askClient(ctx, inv, q); q.unasked == "" || err != nil {
				return true, err
			}
			since = time.Now() // the next request has come
		case channel == gate.ChannelClient:
			waits, stop := inv.call.patience(ctx, since)
			q.unasked, err = a.askClient(waits, inv, q)
			q.yields = stop()
			if q.unasked == "" || err != nil {
				return true, err
			}
		case a.opts.People.QueueOpen():
			a.announce(ctx, q)
			waits, stop := q.patience(ctx, inv.call, since)
			a.waitInQueue(waits, inv, q)
			q.yields = stop()
			return true, nil
		}
	}
	return false, nil
}

// announce tells people elsewhere of a question in the queue.
func (a *approver) announce(ctx context.Context, q *approvalRequest) {
	if hook := q.gate.Webhook(); hook != "" {
		if v, first := q.ticket.Announce(); first {
			a.opts.People.Announce(ctx, hook, v)
		}
	}
}

// forPeople returns the question as the queue shows it.
func (q *approvalRequest) forPeople(b approval.Binding) approval.Question {
	r := &q.request
	out := approval.Question{Binding: b, Invocation: r.Invocation, Decision: q.id, Client: r.Actor.Client.Name,
		Suggested: q.decision.SuggestedUpdates, Covers: gate.Remembered(q.decision), Choices: gate.Choices(q.decision),
		Timeout: q.gate.AskTimeout(), NotSelf: q.gate.NotSelf(r), Check: q, Does: gate.DescriptionLine(r.Tool),
		Reason: gate.Why(q.decision), Arguments: string(r.Input), Env: r.Env}
	if o := gate.Offer(q.decision); o != nil {
		out.Offer = gate.OfferTitle(o)
	}
	out.Agent, _ = tool.AgentOf(r.Meta)
	out.Suggest, _ = gate.Suggest(r, q.decision)
	if r.Facts != nil {
		out.Risk, out.Tags, out.Arguments = r.Facts.Risk.Value, r.Facts.Tags, string(gate.Mask(r.Input, r.Facts))
	}
	for i, t := range r.Targets {
		if i < gate.MaxTwinLookups {
			t.Twins()
		}
		out.Targets = append(out.Targets, gate.TargetLine(&t))
	}
	return out
}

// CheckArguments implements approval.Checker: the person hears what the tool does not take, and the
// call waits on.
func (q *approvalRequest) CheckArguments(arguments []byte) error {
	mark := []byte(secret.MarkStart)
	if bytes.Contains(arguments, mark) && !bytes.Contains(q.request.Input, mark) {
		return fmt.Errorf("the changed arguments hold %s], which only stands for a secret that is not shown: write the "+
			"value itself", mark)
	}
	if f := onlyOnce(arguments); f != nil {
		return errors.New("the changed arguments cannot be used, and the call still waits: " + f.Message)
	}
	if q.request.Tool.Validate == tool.ValidateWarn {
		return nil
	}
	invalid := q.approver.arguments.invalid(q.request.Tool, arguments)
	if invalid == nil {
		return nil
	}
	return fmt.Errorf("the changed arguments do not fit the tool, and the call still waits: %s", invalid.Summary())
}

// binding returns what an approval of the invocation is bound to at this moment.
func (a *approver) binding(g *gate.Gate, inv *invocation, r *policy.Request) approval.Binding {
	t := inv.listed.Tool
	if !t.Method {
		t = cmp.Or(a.opts.Settings.Present(t), &tool.Tool{Name: t.Name})
	}
	targets, _ := json.Marshal(r.Targets) // nothing in it but strings, which always encode
	arguments := append(append([]byte{}, r.Input...), '\n')
	return approval.Binding{Actor: r.Actor.Ref(), Session: inv.call.Session.Key, Server: t.Server, Tool: t.Name,
		Schema: tool.Digest(append(slices.Clip(t.Declaration), t.Version()...)), Profile: r.Profile, CWD: r.CWD,
		Arguments: tool.Digest(append(arguments, targets...)), Policy: g.Version(t.Server)}
}

// askClient puts the question to the client behind the call. It returns when the question is
// settled, or why the client could not be asked. The error ends the call, whatever the answer is.
func (a *approver) askClient(ctx context.Context, inv *invocation, q *approvalRequest) (problem string, denial error) {
	if inv.call.Ask == nil {
		return "the client cannot be asked", nil
	}
	retries := inv.call.suspends() // a retry makes another call of inv
	leave := a.enter(ctx, q.ticket, retries, inv.call.Member)
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
			if !retries || !a.elicited(q) {
				cancel()
			}
		case <-stop:
		}
	}()
	for n := 1; ; n++ {
		invalid := false
		if problem, invalid, denial = a.elicit(ctx, asking, inv, q); !invalid {
			return problem, denial
		}
		inv.record.AnswerInvalid(problem, time.Now())
		a.opts.note(ctx, inv, "an answer that cannot be read is not in the journal")
		if n == maxForms {
			return fmt.Sprintf("%s, %d times", problem, n), nil
		}
	}
}

// maxForms is how often a client gets one question whose answers cannot be read.
const maxForms = 3

// elicit puts the form to the client once, until asking is done; ctx is the call's own. See
// askClient for the other results. With invalid, problem says why the answer is none: it is
// nobody's no, and the question can be put again.
func (a *approver) elicit(ctx, asking context.Context, inv *invocation, q *approvalRequest) (problem string,
	invalid bool, denial error) {
	retries := inv.call.InputByRetry
	shown := time.Now()
	answers, err := inv.call.ask(asking, func() gate.Asked {
		return gate.Asked{Request: &q.request, Decision: q.decision, Times: q.ticket.Waiting()}
	}, func() { shown = time.Now() })
	after := time.Since(shown)
	inv.answeredBy(answers)
	switch {
	case err != nil && ctx.Err() == nil && retries && a.elicited(q):
		return "", false, a.deny(inv, q, "timeout",
			"another call like it was answered, and for this one nobody came back in time")
	case err != nil: // the call has ended, or the question is settled
		return "", false, nil
	case len(answers) == 1 && answers[0].Ended != nil:
		return "", false, answers[0].Ended
	case len(answers) != 1 || answers[0].Err != nil && !answers[0].Malformed:
		return "the client cannot be asked", false, nil
	}
	answer, problem, invalid := answerOf(answers[0].Result, after)
	if problem != "" {
		q.alone = !invalid
		return problem, invalid, nil
	}
	answer.By, answer.From = byElicitation+inv.call.Actor.Name, inv.call.Session.Key
	if inv.call.Actor.Door == "cli" {
		answer.By = "terminal/" + inv.call.Actor.Name
	}
	err = a.opts.Approvals.Answer(q.ticket.ID(), answer)
	if errors.Is(err, approval.ErrChoice) {
		return noAnswer, true, nil
	}
	// by another call's client, and yet not this one's
	if errors.Is(err, approval.ErrAnswered) && !answer.Choice.Allows() {
		d, _ := q.gate.Engine.Settle(q.request, policy.Settlement{Choice: policy.DenyOnce,
			Sentence: answer.Sentence, By: answer.By, Dismissed: answer.Dismissed})
		inv.decided(&d)
		return "", false, denied(&d)
	}
	return "", false, nil
}

// elicited reports whether the client of a call answered the question. A call with retries whose
// own client was given the question waits for that, too: it may be a call that was given up, and
// made anew.
func (a *approver) elicited(q *approvalRequest) bool {
	v, err := a.opts.Approvals.Get(q.ticket.ID())
	return err == nil && v.State == approval.Answered && v.Answer != nil && strings.HasPrefix(v.Answer.By, byElicitation)
}

// byElicitation is the beginning of the name of a person who has answered at a client.
const byElicitation = "elicitation/"

// atOnce is a time within which no person refuses a question. Clients without a person (`claude
// -p`, `codex exec`) take less than 50 ms.
const atOnce = 300 * time.Millisecond

// What is wrong with an answer that counts as none.
const (
	noAnswer   = "the client accepted the question without one of its answers"
	unreadable = "the client's answer cannot be read"
)

// answerOf reads the result of an elicitation that came so long after the question. A problem says
// why it is nobody's answer: then the question stays open. Clients decline where a person says no,
// and cancel where a person dismisses the question. Clients without a person do either at once.
func answerOf(result json.RawMessage, after time.Duration) (answer approval.Answer, problem string, invalid bool) {
	var said struct {
		Action  string `json:"action"`
		Content struct {
			Answer  policy.Choice `json:"answer"`
			Message string        `json:"message"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &said) != nil {
		return answer, unreadable, true
	}
	refused := said.Action == "decline" || said.Action == "cancel"
	switch {
	case said.Action == "accept" && said.Content.Answer.IsValid():
		return approval.Answer{Choice: said.Content.Answer, Sentence: said.Content.Message}, "", false
	case said.Action == "accept":
		return answer, noAnswer, true
	case refused && after < atOnce:
		return answer, fmt.Sprintf("the client refused the question after %d ms, as one does that has no person to ask",
			after.Milliseconds()), false
	case refused:
		return approval.Answer{Choice: policy.DenyOnce, Dismissed: said.Action == "cancel"}, "", false
	}
	return answer, unreadable, true
}

// waitingEvery is the time between two reports of a call that waits. Clients wait longer without progress.
const waitingEvery = 5 * time.Second

// waitInQueue returns when the question is settled or the call has ended. The client hears that the call waits.
func (a *approver) waitInQueue(ctx context.Context, inv *invocation, q *approvalRequest) {
	inv.call.Member.decided()
	a.opts.Logger.Info("a call waits until a person allows it", "tool", inv.toolID(), "actor", inv.call.Actor.Ref(),
		"invocation", inv.id, "answer", a.answerWith(q), "until", q.ticket.Expires().UTC(), "because", q.unasked)
	ticker := time.NewTicker(waitingEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		a.opts.reportWait(ctx, inv, n, float64(n)/1e4, "waiting_for_permission: "+a.answerWith(q))
		select {
		case <-q.ticket.Done():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// answerWith returns the command that allows a waiting call, and its alternatives.
func (a *approver) answerWith(q *approvalRequest) string {
	return a.opts.People.CommandLine("approvals approve "+string(q.ticket.ID())) + " (or show, or deny)"
}

// settle makes the answer the decision that counts.
func (a *approver) settle(ctx context.Context, inv *invocation, q *approvalRequest) error {
	if err := q.ticket.Wait(ctx); err != nil || ctx.Err() != nil {
		if ctx.Err() != nil {
			return becauseOf(ctx, &tool.Failure{Class: tool.ClassCanceled,
				Message: "the call was canceled while it waited for permission"})
		}
		if errors.Is(err, approval.ErrClosed) {
			return stopped()
		}
		why := "nobody allowed it in time"
		if q.unasked != "" {
			why += ", and " + q.unasked
		}
		return a.deny(inv, q, "timeout", why)
	}
	g := a.opts.Settings.Gate()
	r, err := requestOf(ctx, g, inv, inv.inputs.permission) // paths may lead elsewhere by now
	if err != nil {
		return err
	}
	answer, err := q.ticket.Redeem(a.binding(g, inv, &r))
	if errors.Is(err, approval.ErrClosed) {
		return stopped()
	}
	if err != nil {
		return a.deny(inv, q, kindStale, err.Error())
	}
	if answer.Arguments != nil {
		if r, err = a.edit(ctx, g, inv, &answer); err != nil {
			return err
		}
	}
	d, err := g.Engine.Settle(r, policy.Settlement{Choice: answer.Choice, Sentence: answer.Sentence, By: answer.By,
		Dismissed: answer.Dismissed, Modified: answer.Arguments != nil, Offered: q.offered()})
	if err != nil {
		a.opts.Logger.Warn("an answer is not remembered", "invocation", inv.id, "tool", inv.toolID(), "error", err)
	}
	q.sayUnasked(&d)
	inv.decided(&d)
	if d.Behavior != tool.Allow {
		return denied(&d)
	}
	inv.approved = &consent{a.binding(g, inv, &r), answer.By, answer.Sentence}
	inv.permitted = gate.PermittedBy(&r)
	inv.moveTo(tool.StatusApproved)
	return nil
}

// stopped is the failure of a call that nobody can allow any more, because the hub stops: nobody has denied it.
func stopped() *tool.Failure {
	return tool.CanceledBy(tool.CanceledByHubStop, "",
		"nothing ran, because the hub is stopping: call again in a moment")
}

// edit puts the arguments that the person changed in the place of the caller's: validated again, and looked at again.
func (a *approver) edit(ctx context.Context, g *gate.Gate, inv *invocation,
	answer *approval.Answer) (policy.Request, error) {
	if !rawjson.Valid(answer.Arguments) || !rawjson.IsObject(answer.Arguments) {
		return policy.Request{}, &tool.Failure{Class: tool.ClassInvalidArguments,
			Message: "the arguments that a person put in the place of yours are no JSON object: nothing ran"}
	}
	if _, err := a.arguments.check(inv, answer.Arguments, false); err != nil {
		return policy.Request{}, err
	}
	inv.mutate(a.opts, &tool.InputMutation{SourceType: "permission_prompt", SourceRef: answer.By,
		Reason: "a person changed the arguments while allowing the call"}, answer.Arguments)
	return requestOf(ctx, g, inv, answer.Arguments)
}

// wayOut says what a person can do so that such a call runs, where nobody has answered.
func (q *approvalRequest) wayOut() string {
	queue := "answer with `mcp-toolhub approvals` in another terminal while it waits"
	if !q.gate.Queues() {
		queue += " (policy.ask.channels has to name queue for that)"
	}
	if queue += ", "; q.ticket == nil && q.request.Tool.Method { // it does not wait
		queue = ""
	}
	ways := fmt.Sprintf("allow it in policy.rules: {match: %q, then: allow}", q.request.Tool.Name)
	switch kind, _ := q.decision.Reason["type"].(string); {
	case kind == "rule" && len(q.decision.RuleRefs) > 0: // an allow beside it would change nothing
		ways = "change the rule that asks, " + q.decision.RuleRefs[0]
	case kind == "limit":
		ways = "change what policy.targets says of it"
	case kind == "grant": // a lost answer may have denied it
		ways = "remove the damaged file of remembered answers that the hub's log names"
	}
	return "A person can " + queue + ways + ", or set another policy.mode"
}

// sayUnasked records in d why the client could not be asked.
func (q *approvalRequest) sayUnasked(d *tool.PermissionDecision) {
	if q.unasked != "" {
		d.Reason["could_not_ask"] = q.unasked
	}
}

// kindStale is the reason of a denial where an answer came too late: the call has changed since.
const kindStale = "stale"

// deny records that the call is denied because no answer to q came, and why.
func (a *approver) deny(inv *invocation, q *approvalRequest, kind, why string) error {
	if kind != kindStale {
		why += ". " + q.wayOut()
	}
	d := *q.decision
	d.Behavior, d.Source, d.SuggestedUpdates, d.ExpiresAt = tool.Deny, kind, nil, nil
	asked, _ := q.decision.Reason["message"].(string)
	d.Reason = map[string]any{"type": kind, "message": why, "asked_because": asked}
	q.sayUnasked(&d)
	inv.decided(&d)
	return denied(&d)
}

// yieldAfter is the time for which a request waits for a person where its client hears no progress:
// such clients give up after 60 s.
const yieldAfter = 50 * time.Second

// aloneFor is the time for which a request waits in the queue whose client has no person: nobody may look there.
const aloneFor = 15 * time.Second

// errYield is the cause of a wait that ends before the client gives up.
var errYield = errors.New("the client would give up soon, or nobody may be there")

// patience returns the context of a wait for a person. Where the client hears no progress, it ends
// yieldAfter since its request began to wait. stop gives it up, and reports whether it was that.
func (c *Call) patience(ctx context.Context, since time.Time) (waits context.Context, stop func() bool) {
	hears := c.Progress != nil
	if c.Hears != nil {
		hears = c.Hears()
	}
	if hears {
		return ctx, func() bool { return false }
	}
	return until(ctx, since.Add(yieldAfter))
}

// patience is that of a call whose question q waits in the queue. A client without a person waits for aloneFor at most.
func (q *approvalRequest) patience(ctx context.Context, c *Call, since time.Time) (waits context.Context,
	stop func() bool) {
	if q.alone {
		return until(ctx, time.Now().Add(aloneFor))
	}
	return c.patience(ctx, since)
}

// until returns a context that ends at a time. stop gives it up, and reports whether it was that.
func until(ctx context.Context, end time.Time) (waits context.Context, stop func() bool) {
	waits, cancel := context.WithDeadlineCause(ctx, end, errYield)
	return waits, func() bool {
		defer cancel()
		return errors.Is(context.Cause(waits), errYield)
	}
}

// yield ends the invocation before q is answered. Its place at the question waits for the call that
// is made again. The model reads the message and may have a shell: so it names the command that
// shows the question, not the one that allows the call.
func (a *approver) yield(inv *invocation, q *approvalRequest) error {
	inv.yielded = true
	id := string(q.ticket.ID())
	return &tool.Failure{Class: tool.ClassTimeout, Code: "waits_for_approval",
		Message: fmt.Sprintf("waits for approval %s; call again with the same arguments: that call waits on, and takes "+
			"the answer that a person gives meanwhile, until %s. A person answers in the client, or in a terminal: %s",
			id, q.ticket.Expires().UTC().Format("15:04:05 UTC"), a.opts.People.CommandLine("approvals show "+id))}
}
