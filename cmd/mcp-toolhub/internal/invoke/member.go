package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// SiblingFailure says what the failure of one call does to its siblings.
type SiblingFailure string

// The standard's sibling_failure_policy.
const (
	IgnoreSiblings  SiblingFailure = "ignore"
	CancelSiblings  SiblingFailure = "cancel_siblings"
	CancelDependent SiblingFailure = "cancel_dependent"
)

// SiblingFailures are all of them.
func SiblingFailures() []SiblingFailure {
	return []SiblingFailure{IgnoreSiblings, CancelSiblings, CancelDependent}
}

// Why a call that did nothing wrong did not run, or not to its end: the abort_reason of its error.
const (
	AbortSiblingFailed      = "sibling_failed"       // with cancel_siblings
	AbortDependencyFailed   = "dependency_failed"    // a call that it depends on
	AbortEarlierWriteFailed = "earlier_write_failed" // in an ordered batch
	AbortBatchCanceled      = "batch_canceled"       // by the caller of the batch
)

// Member is what a call has to do with its siblings: the other calls of a batch (Parent is set), or
// those that a client has grouped (Group is set). A nil Member has no siblings.
type Member struct {
	Parent tool.InvocationID // the batch
	Index  int               // among the calls of the batch
	Group  Group

	// Aborted is why the call is not to run. It passes no phase but the first, and gets its terminal result.
	Aborted *tool.Failure

	// Turn waits until the call may run, once it is permitted, or returns the *tool.Failure that says why it may not.
	Turn func(context.Context) error

	// Failed, where it is not nil, is told that the call has failed, before its locks go to others. It may
	// be told twice. Both wait for the hooks after the call, which can still make a success of a failure.
	Failed func(status tool.Status, class tool.ErrorClass)

	// Asks gathers the questions to the client about the calls of one batch; nil: each is asked alone.
	Asks *Asks

	once sync.Once // of decided
}

// turn waits until the call may run.
func (m *Member) turn(ctx context.Context) error {
	m.decided()
	if m.Turn == nil {
		return nil
	}
	return m.Turn(ctx)
}

// decided notes that the call is going to be asked about no more, or waits for that. Nothing
// happens when it is called again.
func (m *Member) decided() {
	if m != nil && m.Asks != nil {
		m.once.Do(m.Asks.decide)
	}
}

// suspends reports whether the call's client gives input by another request, which goes on with
// this very call. The one of a batch goes on with the batch: questions of its calls leave through
// Ask.
func (c *Call) suspends() bool {
	return c.InputByRetry && (c.Member == nil || c.Member.Parent == "")
}

// ask puts the question about a call to its client: with those about its siblings where they are
// alike. about is called when the question is about to leave, and sent when it leaves.
func (c *Call) ask(ctx context.Context, about func() gate.Asked, sent func()) ([]tool.Answer, error) {
	if c.Member != nil && c.Member.Asks != nil {
		got := c.Member.Asks.ask(ctx, c, about, sent)
		if !got.each {
			return []tool.Answer{got.answer}, got.err
		}
		defer got.left()
		alone := sent
		sent = func() { alone(); got.left() }
	}
	a := about()
	return c.elicit(ctx, gate.Message(a), gate.Form(gate.Choices(a.Decision), gate.Offer(a.Decision),
		c.Actor.Client.ProtocolVersion), sent)
}

// metaDisplay is the key under which Claude Code finds a title and a line for a question about
// permission.
const metaDisplay = "anthropic/permissionDisplay"

// elicit puts a form to the client. The first line of the message says what is asked, the second one more of it.
func (c *Call) elicit(ctx context.Context, message string, form json.RawMessage, sent func()) ([]tool.Answer, error) {
	params := rawjson.AppendMember([]byte(`{`), "message", rawjson.Quote(message))
	title, rest, _ := strings.Cut(message, "\n")
	more, _, _ := strings.Cut(rest, "\n")
	params = fmt.Appendf(rawjson.AppendMember(params, "requestedSchema", form),
		`,"_meta":{%q:{"title":%s,"displayName":%s,"description":%s}}}`, metaDisplay, rawjson.Quote(title),
		rawjson.Quote(gate.ToolName(tool.Name(cmp.Or(c.Name, c.Method)))), rawjson.Quote(more))
	return c.Ask(ctx, []tool.Question{{Key: "permission", Method: tool.MethodElicit, Params: params, Own: true,
		Sent: sent}})
}

// withoutArguments returns the input of a batch without the arguments of its calls: their own
// records have those, masked by what is known of their tools. What is no member of a batch or of a
// call is left out, too: it may be arguments under a wrong name.
func withoutArguments(input json.RawMessage) json.RawMessage {
	if rawjson.IsNull(input) {
		return input
	}
	short := only(input, "calls", "sibling_failure_policy", "ordering_policy", "max_parallel")
	list, ok := rawjson.Get(short, "calls")
	if !ok {
		return short
	}
	calls, err := rawjson.Map(list, func(call []byte) []byte {
		return only(call, "id", "name", "selection_ref", "depends_on", "arguments_from")
	})
	short, setErr := rawjson.Set(short, "calls", calls)
	if err != nil || setErr != nil {
		return json.RawMessage(`{}`)
	}
	return short
}

// only returns an object with the members of object that have these names.
func only(object []byte, names ...string) json.RawMessage {
	out := []byte("{")
	_ = rawjson.Members(object, func(m rawjson.Member) bool {
		if slices.ContainsFunc(names, m.Is) {
			out = rawjson.AppendMember(out, m.Name(), m.Value)
		}
		return true
	})
	return append(out, '}')
}

// Group is how a client groups parallel calls.
type Group struct {
	ID     string // of the client's choice; "" for none
	Policy SiblingFailure
}

// groups holds the groups of calls that are running. A group ends with the last of them.
type groups struct {
	mu   sync.Mutex
	open map[[2]string]*runningGroup // by session and id
}

type runningGroup struct {
	calls  map[*Call]context.CancelCauseFunc
	failed *tool.Failure // what ends its calls; nil as long as none has failed
}

// grouped runs a call of a group. Where one fails whose policy says so, the others of its group end that still run.
func (p *Pipeline) grouped(ctx context.Context, c *Call) Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	key := [2]string{c.Session.Key, c.Member.Group.ID}
	p.groups.mu.Lock()
	g := p.groups.open[key]
	if g == nil {
		g = &runningGroup{calls: make(map[*Call]context.CancelCauseFunc)}
		if p.groups.open == nil {
			p.groups.open = make(map[[2]string]*runningGroup)
		}
		p.groups.open[key] = g
	}
	g.calls[c] = cancel
	c.Member.Aborted = g.failed
	p.groups.mu.Unlock()
	if c.Member.Group.Policy == CancelSiblings {
		c.Member.Failed = func(status tool.Status, _ tool.ErrorClass) { p.groups.end(g, c, status) }
	}
	defer func() {
		p.groups.mu.Lock()
		defer p.groups.mu.Unlock()
		if delete(g.calls, c); len(g.calls) == 0 {
			delete(p.groups.open, key)
		}
	}()
	return p.run(ctx, p.begin(ctx, c))
}

// end ends the calls of g, because c has failed.
func (all *groups) end(g *runningGroup, c *Call, status tool.Status) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if g.failed != nil {
		return
	}
	g.failed = SiblingFailed(c.Name, status)
	for other, end := range g.calls {
		if other != c {
			end(g.failed)
		}
	}
}

// SiblingFailed is the end of calls whose sibling, the call of that name or id, has failed.
func SiblingFailed(name string, status tool.Status) *tool.Failure {
	return &tool.Failure{Class: tool.ClassSiblingCanceled, AbortReason: AbortSiblingFailed,
		Message: fmt.Sprintf("ended because another call of the batch, %q, ended as %s: see why that failed, then "+
			"make this call again",
			name, status)}
}
