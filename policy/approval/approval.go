// Package approval holds the questions about calls that wait for a person, and their answers. Doors put questions and
// answers through it: the client that is asked, the command line in another terminal, the HTTP API.
//
// Nothing of it is written anywhere: pending questions survive no restart, so that nothing runs on
// an answer to a question that nobody remembers. An answer is bound to its caller, its call and the
// policy that asked. A call that resumes presents that again, once.
package approval

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

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// ID names a question, "apr_…". Knowing it gives nobody the right to answer: doors check who does.
type ID string

// Binding ties an approval to one call. Questions with equal bindings are one question. An answer
// is good for a call only if the call's binding is still equal when it resumes.
type Binding struct {
	Actor   string    `json:"actor"` // tool.Actor.Ref
	Session string    `json:"-"`     // the caller's session: it stays within the hub
	Server  string    `json:"server"`
	Tool    tool.Name `json:"tool"`
	// digest of the tool's declaration and version: a tool or server that has changed is another
	// one
	Schema    string `json:"schema"`
	Arguments string `json:"arguments"` // digest of the arguments and of what they resolve to
	Policy    string `json:"policy"`    // gate.Gate.Version
	Profile   string `json:"profile,omitempty"`
	CWD       string `json:"cwd,omitempty"`
}

// Question describes a call to a person. Strangers wrote its title, arguments and targets: show them as data.
type Question struct {
	Binding    Binding           `json:"binding"`
	Invocation tool.InvocationID `json:"invocation_id"` // the first that asks
	Decision   tool.DecisionID   `json:"decision_id"`   // that asks

	Reason string `json:"reason"` // why the hub asks, in its own words
	// what the tool does, in the words of its server; the hub's own tools in the hub's
	Does   string   `json:"does,omitempty"`
	Risk   string   `json:"risk,omitempty"`   // of the tool's facts
	Tags   []string `json:"tags,omitempty"`   // of the tool's facts
	Env    []string `json:"env,omitempty"`    // names of the variables that the call's command gets
	Client string   `json:"client,omitempty"` // what the client calls itself
	// what the first caller says of itself: a claim, never who calls. It is not changed any more.
	Agent     *tool.Agent     `json:"agent,omitempty"`
	Arguments string          `json:"arguments_text"` // JSON with secrets masked
	Targets   []string        `json:"targets,omitempty"`
	Suggest   policy.Choice   `json:"suggested_decision,omitempty"` // the hub's own answer; "" where it has none
	Suggested []any           `json:"suggested_updates,omitempty"`  // of the decision: what "always" would mean
	Covers    string          `json:"covers,omitempty"`             // the same for people
	Offer     string          `json:"offer,omitempty"`              // what allow_offered or deny_offered does
	Choices   []policy.Choice `json:"choices"`                      // that may be given; nil: all of them

	Timeout time.Duration `json:"-"` // 0: that of the options. Between the two, the shorter counts.
	NotSelf bool          `json:"-"` // no answer of the caller's own session counts
	Check   Checker       `json:"-"` // nil takes any object
}

// Checker checks the arguments that a person wants to replace a call's with. It is called
// concurrently.
type Checker interface {
	// CheckArguments returns what is wrong with them. Such an answer is refused, and the question
	// stays open.
	CheckArguments(arguments []byte) error
}

// State is the state of a question.
type State string

const (
	Pending  State = "pending"
	Answered State = "answered"
	Expired  State = "expired"  // nobody answered in time, which denies
	Canceled State = "canceled" // nobody waits for the answer any more
	Closed   State = "closed"   // the hub stops, which denies
)

// View is a question as people see it, with long texts and lists cut. It is a copy.
type View struct {
	ID    ID    `json:"id"`
	State State `json:"state"`
	Question
	Cut         bool      `json:"cut,omitempty"` // the arguments are
	MoreTargets int       `json:"more_targets,omitempty"`
	Waiting     int       `json:"waiting"` // calls that the answer is for, those that have yielded among them
	Asked       time.Time `json:"asked_at"`
	Expires     time.Time `json:"expires_at"`
	Answer      *Answer   `json:"answer,omitempty"`
}

// Answer is the answer of a person, or of the hub where nobody answered.
type Answer struct {
	Choice   policy.Choice `json:"choice"`
	Sentence string        `json:"sentence,omitempty"` // to the model
	// what the keys of sessions begin with that are the person's own: see tool.Session.Key
	From string    `json:"-"`
	By   string    `json:"by"` // who, and through which door
	At   time.Time `json:"at"`

	// Dismissed says that the person closed the question without an answer, which denies once.
	Dismissed bool `json:"dismissed,omitempty"`

	// Arguments replace those of the call, nil where the person left them alone. They are an input mutation: validated
	// again, and judged again.
	Arguments []byte `json:"-"`
}

// Why a question or an answer is refused.
var (
	ErrFull     = errors.New("too many questions are open: answer some first")
	ErrUnknown  = errors.New("no such question: list the open ones; after a restart of the hub none is left")
	ErrAnswered = errors.New("the question was answered already: the first answer counts")
	ErrExpired  = errors.New("the question has expired, which denied the call: let it be made again")
	ErrCanceled = errors.New("the call was canceled while it waited: there is nothing left to answer")
	ErrClosed   = errors.New("the hub is stopping: nothing is asked and nothing runs")
	ErrChoice   = errors.New("this answer is not among those that the question offers: see its choices")
	ErrSelf     = errors.New("who calls does not answer for the call (policy.ask.not_self): let somebody else " +
		"answer, in a terminal or on the page")
	ErrBinding = errors.New("the tool, the policy or what the call is aimed at has changed since a person was " +
		"asked about it: call again, to be asked about anew")
	ErrUsed = errors.New("the approval was used already: ask again")
)

// Options are the settings of a queue.
type Options struct {
	Timeout time.Duration // until no answer means deny; default 4 min 30 s
}

// Bounds of the queue.
const (
	maxOpen    = 1000 // questions
	maxCaller  = 250  // of them, of one caller
	maxWaiting = 100  // calls for one question
	maxSettled = 200  // questions that are still shown and refuse answers by name
)

// Bounds of the texts of one question, in bytes, and of its lists.
const (
	maxShown    = 8 << 10
	maxTargets  = 32
	maxText     = 1 << 10
	maxCovers   = 4 << 10
	maxSentence = 4 << 10
	maxEdited   = 1 << 20
)

// Approvals is the questions of one hub. It is safe for concurrent use. Close ends it.
type Approvals struct {
	opts Options

	mu     sync.Mutex
	closed bool
	// that an equal call joins: those that are pending, and those answered that a call has yielded
	// at
	open     map[Binding]*question
	byID     map[ID]*question
	callers  map[string]int
	settled  []*question // oldest first
	watchers map[*watcher]bool
	serial   uint64
}

// question is one open or settled question. Its fields are guarded by Approvals.mu.
type question struct {
	view    View
	order   uint64
	timer   *time.Timer
	done    chan struct{} // closed when it is settled
	turn    chan struct{} // see Ticket.Turn
	edited  []byte
	check   Checker             // nil once it is settled
	told    bool                // people elsewhere
	yielded []tool.InvocationID // whose places are free for equal calls; oldest first
}

// New returns an empty queue.
func New(o Options) *Approvals {
	o.Timeout = cmp.Or(o.Timeout, 4*time.Minute+30*time.Second)
	return &Approvals{opts: o, open: make(map[Binding]*question), byID: make(map[ID]*question),
		callers:  make(map[string]int),
		watchers: make(map[*watcher]bool)}
}

// Ask opens a question, or joins the equal one that is open, with the time that it has left. If a
// call has yielded there, the ticket takes that place, also if the question was answered meanwhile.
// The caller must Wait for the ticket, Leave it or Yield it.
func (a *Approvals) Ask(q Question) (*Ticket, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	if open := a.open[q.Binding]; open != nil {
		ticket := &Ticket{approvals: a, question: open, binding: q.Binding}
		if len(open.yielded) > 0 {
			ticket.parent, open.yielded = open.yielded[0], open.yielded[1:]
			if len(open.yielded) == 0 && open.view.State != Pending {
				a.forget(open)
			}
			return ticket, nil
		}
		if open.view.Waiting >= maxWaiting {
			return nil, ErrFull
		}
		open.view.Waiting++
		a.notify(Changed, open)
		return ticket, nil
	}
	if len(a.open) >= maxOpen || a.callers[q.Binding.Actor] >= maxCaller {
		return nil, ErrFull
	}
	timeout := a.opts.Timeout
	if q.Timeout > 0 {
		timeout = min(timeout, q.Timeout)
	}
	a.serial++
	asked := &question{view: viewOf(q), order: a.serial, done: make(chan struct{}), turn: make(chan struct{}, 1),
		check: q.Check}
	asked.view.Asked = time.Now().UTC()
	asked.view.Expires = asked.view.Asked.Add(timeout)
	asked.timer = time.AfterFunc(timeout, func() { a.expire(asked) })
	a.open[q.Binding], a.byID[asked.view.ID] = asked, asked
	a.callers[q.Binding.Actor]++
	a.notify(Asked, asked)
	return &Ticket{approvals: a, question: asked, binding: q.Binding}, nil
}

// viewOf copies what is kept of a question: never more than a bounded part of it, and nothing of the caller's memory.
func viewOf(q Question) View {
	v := View{ID: newID(), State: Pending, Question: q, Waiting: 1, Cut: len(q.Arguments) > maxShown}
	for text, most := range map[*string]int{&v.Reason: maxText, &v.Does: maxText, &v.Risk: maxText, &v.Client: maxText,
		&v.Arguments: maxShown, &v.Covers: maxCovers, &v.Offer: maxCovers} {
		*text = cut(*text, most)
	}
	v.Suggested, v.Choices = slices.Clone(q.Suggested), slices.Clone(q.Choices)
	if v.Choices == nil {
		v.Choices = policy.Choices()
	}
	v.Env, v.Tags, v.Targets = cutList(q.Env), cutList(q.Tags), cutList(q.Targets)
	v.MoreTargets, v.Check = len(q.Targets)-len(v.Targets), nil
	return v
}

func cutList(list []string) (out []string) {
	for _, text := range list[:min(len(list), maxTargets)] {
		out = append(out, cut(text, maxText))
	}
	return out
}

// cut returns a copy of at most n bytes of text, whole characters.
func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.Clone(strings.ToValidUTF8(text, "\ufffd"))
}

// Answer answers the open question id. The first answer counts: every later one is refused, as are
// answers that come after the call was canceled or the time was over, and the error says which.
func (a *Approvals) Answer(id ID, answer Answer) error {
	if err := a.checkArguments(id, answer); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.byID[id]
	if q == nil {
		return ErrUnknown
	}
	if err := q.refusal(); err != nil {
		return err
	}
	if !time.Now().Before(q.view.Expires) { // the timer is about to say so
		a.settle(q, Expired, Answer{Choice: policy.DenyOnce, By: "timeout"})
		return ErrExpired
	}
	if q.view.NotSelf && answer.From != "" && strings.HasPrefix(q.view.Binding.Session, answer.From) {
		return ErrSelf
	}
	if !slices.Contains(q.view.Choices, answer.Choice) || !answer.Choice.IsValid() {
		return ErrChoice
	}
	answer.Sentence, answer.By = cut(answer.Sentence, maxSentence), cut(answer.By, maxText)
	a.settle(q, Answered, answer)
	return nil
}

// checkArguments checks the arguments of an answer to an open question. It holds no lock meanwhile,
// because a check may take a while.
func (a *Approvals) checkArguments(id ID, answer Answer) error {
	if len(answer.Arguments) == 0 {
		return nil
	}
	a.mu.Lock()
	q := a.byID[id]
	var check Checker
	open := q != nil && q.refusal() == nil
	if open {
		check = q.check
	}
	a.mu.Unlock()
	switch {
	case !open: // which Answer says
		return nil
	case len(answer.Arguments) > maxEdited:
		return fmt.Errorf("the changed arguments are larger than %d bytes: change less", maxEdited)
	case !answer.Choice.Allows():
		return errors.New("a call that is denied has no arguments to change: leave them out")
	case !json.Valid(answer.Arguments) || bytes.TrimLeft(answer.Arguments, " \t\r\n")[0] != '{':
		return errors.New("the changed arguments are no JSON object: write one, or leave them out")
	case check == nil:
		return nil
	}
	return check.CheckArguments(answer.Arguments)
}

// refusal says why the question takes no answer, nil if it does.
func (q *question) refusal() error {
	switch q.view.State {
	case Pending:
		return nil
	case Expired:
		return ErrExpired
	case Canceled:
		return ErrCanceled
	case Closed:
		return ErrClosed
	}
	return ErrAnswered
}

// expire ends a question that nobody has answered in time, or whose answer nobody has come back for.
func (a *Approvals) expire(q *question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(q, Expired, Answer{Choice: policy.DenyOnce, By: "timeout"})
	a.forget(q)
}

// forget takes a question out of those that equal calls join.
func (a *Approvals) forget(q *question) {
	if a.open[q.view.Binding] != q {
		return
	}
	q.timer.Stop()
	delete(a.open, q.view.Binding)
	if a.callers[q.view.Binding.Actor]--; a.callers[q.view.Binding.Actor] <= 0 {
		delete(a.callers, q.view.Binding.Actor)
	}
}

// settle is the one place where a question stops being open.
func (a *Approvals) settle(q *question, state State, answer Answer) {
	if q.view.State != Pending {
		return
	}
	q.check = nil
	answer.At = time.Now().UTC()
	q.edited, answer.Arguments = slices.Clone(answer.Arguments), nil
	q.view.State, q.view.Answer = state, &answer
	if state != Answered || len(q.yielded) == 0 {
		a.forget(q)
	}
	a.settled = append(a.settled, q)
	for len(a.settled) > maxSettled {
		delete(a.byID, a.settled[0].view.ID)
		a.settled[0] = nil
		a.settled = a.settled[1:]
	}
	close(q.done)
	a.notify(Settled, q)
}

// List returns the open questions, oldest first.
func (a *Approvals) List() []View {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list()
}

// list is List with a.mu held.
func (a *Approvals) list() []View {
	all := make([]*question, 0, len(a.open))
	for _, q := range a.open {
		if q.view.State == Pending {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(x, y *question) int { return cmp.Compare(x.order, y.order) })
	list := make([]View, len(all))
	for i, q := range all {
		list[i] = q.copy()
	}
	return list
}

// Settled returns the questions that were settled last, the newest first.
func (a *Approvals) Settled() []View {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []View
	for _, q := range slices.Backward(a.settled) {
		all = append(all, q.copy())
	}
	return all
}

// Get returns the question id, also if it was settled lately.
func (a *Approvals) Get(id ID) (View, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.byID[id]; q != nil {
		return q.copy(), nil
	}
	return View{}, ErrUnknown
}

func (q *question) copy() View {
	v := q.view
	v.Tags, v.Env, v.Targets = slices.Clone(v.Tags), slices.Clone(v.Env), slices.Clone(v.Targets)
	v.Suggested, v.Choices = slices.Clone(v.Suggested), slices.Clone(v.Choices)
	if v.Answer != nil {
		answer := *v.Answer
		v.Answer = &answer
	}
	return v
}

// Close denies every open question and ends every stream. Nothing can be asked or answered afterwards.
func (a *Approvals) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, q := range a.open {
		a.settle(q, Closed, Answer{Choice: policy.DenyOnce, By: "hub"})
		a.forget(q)
	}
	for w := range a.watchers {
		w.end()
		delete(a.watchers, w)
	}
}

// Ticket is one call's place at a question.
type Ticket struct {
	approvals *Approvals
	question  *question
	binding   Binding
	parent    tool.InvocationID

	// Guarded by approvals.mu.
	left bool
	used bool
}

// ID is the question's.
func (t *Ticket) ID() ID { return t.question.view.ID }

// Expires is when no answer means deny.
func (t *Ticket) Expires() time.Time { return t.question.view.Expires }

// Parent is the invocation that has yielded the ticket's place; "" where the place is a new one.
func (t *Ticket) Parent() tool.InvocationID { return t.parent }

// Waiting is how many calls the answer is for at this moment.
func (t *Ticket) Waiting() int {
	t.approvals.mu.Lock()
	defer t.approvals.mu.Unlock()
	return t.question.view.Waiting
}

// Announce returns the question as it is shown, and whether people elsewhere are to be told of it:
// once, and while it is open.
func (t *Ticket) Announce() (v View, first bool) {
	t.approvals.mu.Lock()
	defer t.approvals.mu.Unlock()
	first = !t.question.told && t.question.view.State == Pending
	t.question.told = true
	return t.question.copy(), first
}

// Turn has room for one call, which puts the question to its client.
func (t *Ticket) Turn() chan struct{} { return t.question.turn }

// Done is closed when the question is settled.
func (t *Ticket) Done() <-chan struct{} { return t.question.done }

// IsSettled reports whether Done is closed.
func (t *Ticket) IsSettled() bool {
	select {
	case <-t.question.done:
		return true
	default:
		return false
	}
}

// Wait returns when the question is settled: nil, or ErrExpired, ErrClosed or the cause of ctx's end. Redeem then gives
// the answer. A call whose ctx ends has left.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.question.done:
	case <-ctx.Done():
		t.Leave()
		return context.Cause(ctx)
	}
	t.approvals.mu.Lock()
	defer t.approvals.mu.Unlock()
	if t.question.view.State == Answered {
		return nil
	}
	return t.question.refusal()
}

// Leave gives up the place of a canceled call. When the last call leaves, the question is
// withdrawn, and later answers are refused. Leaving twice, or after the answer, changes nothing.
func (t *Ticket) Leave() {
	a := t.approvals
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	q := t.question
	if q.view.State != Pending {
		return
	}
	if q.view.Waiting--; q.view.Waiting > 0 {
		a.notify(Changed, q)
		return
	}
	a.settle(q, Canceled, Answer{Choice: policy.DenyOnce, By: "caller"})
}

// Yield keeps the place of the invocation id free for the next equal call, whose caller is told to
// call again. That call has the rest of the question's time. Yield reports false where the question
// is settled: then redeem the answer.
func (t *Ticket) Yield(id tool.InvocationID) bool {
	a := t.approvals
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.left || t.question.view.State != Pending {
		return false
	}
	t.left = true
	t.question.yielded = append(t.question.yielded, id)
	return true
}

// Redeem gives the answer to its call. now is the call's binding at this moment, and must equal the
// one that it asked with. An answer is good once for each ticket, and until the question's time is
// over. Every error means deny.
func (t *Ticket) Redeem(now Binding) (Answer, error) {
	a := t.approvals
	a.mu.Lock()
	defer a.mu.Unlock()
	q := t.question
	switch {
	case a.closed:
		return Answer{}, ErrClosed
	case t.left:
		return Answer{}, ErrCanceled
	case q.view.State == Pending:
		return Answer{}, errors.New("the question is not answered yet: wait for it")
	case q.view.State != Answered:
		return Answer{}, q.refusal()
	case t.used:
		return Answer{}, ErrUsed
	case now != t.binding:
		return Answer{}, ErrBinding
	case !time.Now().Before(q.view.Expires):
		return Answer{}, ErrExpired
	}
	t.used = true
	answer := *q.view.Answer
	answer.Arguments = slices.Clone(q.edited)
	return answer, nil
}
