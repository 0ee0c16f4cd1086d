package upstream

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/admit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// session is one connection to a server: initialised, and not restarted. A new one takes its place.
type session struct {
	*entry
	lane      lane
	oneStream bool      // all that the server says comes on one stream; otherwise each request has its own
	open      openCalls // requests to the server
	asked     *serverRequests
	stopping  <-chan struct{} // closed when calls in flight must end
	noisy     *rate.Limiter   // of the logging of what is dropped

	hello          // of the server; the version is the one agreed upon
	hop   *hop.Hop // nil below 2026-07-28

	// speaks is a string: the version that requests over HTTP name, "" for none. The server may ask while the handshake
	// still runs.
	speaks atomic.Value

	undiscovered bool   // the server did not answer server/discover in time, or has ended instead
	id           string // Mcp-Session-Id, or ""
	shownID      string // id, fit for records
	callsTasks   bool   // the server makes tasks of calls, up to 2025-11-25
	taskTokens   *taskTokens
	pid          int

	changed [lists.Kinds]chan struct{} // each has room for one: the server's tools, say, have changed
	suspect chan struct{}              // has room for one: the server could not be reached

	unanswered atomic.Int32  // requests since the last answer that got none
	silent     chan struct{} // has room for one: too many have

	watch      *watch // what the standing stream is for, on 2026-07-28
	subscribed *subscriptionState

	ended chan struct{} // closed when the session cannot be used any more
	// closed when nothing more comes from the server: ended follows, once it is known why; nil: not
	// told before
	cut     chan struct{}
	endOnce sync.Once
	reason  *fault.Fault // set before ended is closed

	shut func() // ends the session and everything that it started, and waits for that
}

// newSession makes a session with the server of e. It has no lane yet.
func newSession(e *entry, stopping <-chan struct{}) *session {
	s := &session{entry: e, stopping: stopping,
		noisy: rate.NewLimiter(rate.Every(10*time.Second), 3), taskTokens: &taskTokens{}, suspect: make(chan struct{}, 1),
		silent: make(chan struct{}, 1), ended: make(chan struct{}), subscribed: newSubscriptionState()}
	s.watch = newWatch(s)
	for k := range lists.Kinds {
		s.changed[k] = make(chan struct{}, 1)
	}
	return s
}

// receive handles a message of the server. on is the call on whose stream it came; nil where that does not tell.
func (s *session) receive(e jsonrpc.Message, room *budget.Room, on *pendingRequest) {
	defer func() { room.Free() }() // nil where a call has it
	switch {
	case e.Kind == jsonrpc.None:
		s.drop("no JSON-RPC message", e.Text)
	case e.Kind == jsonrpc.Notification:
		s.notified(e, on)
	case e.Kind == jsonrpc.Request && e.NotUTF8 > 0:
		s.drop("a request that is not UTF-8", e.Text)
		if rawjson.NotUTF8(e.ID) < 0 {
			s.asked.reply(jsonrpc.ErrorText(e.ID, &tool.RPCError{Code: tool.CodeParseError,
				Message: fmt.Sprintf("parse error: the message is not UTF-8 (byte %d of it)", e.NotUTF8-1)}))
		}
	case e.Kind == jsonrpc.Request && !e.Valid, !jsonrpc.IsID(e.ID) && !rawjson.IsNull(e.ID):
		s.drop("a malformed message", e.Text)
	case e.Kind == jsonrpc.Request:
		s.asked.receive(e, on)
	default:
		call := s.open.find(e.ID)
		if rawjson.IsNull(e.ID) && s.oneStream {
			if call = s.open.sole(); call == nil {
				s.drop("an error that names no request", e.Text)
			}
		}
		if call != nil {
			a := call.answerOf(e)
			a.room, room = room, nil
			call.finish(a)
			s.forget(call)
		}
	}
}

// notified handles a notification.
func (s *session) notified(e jsonrpc.Message, on *pendingRequest) {
	switch {
	case e.Method == tool.NoteCancelled:
		s.asked.canceled(e)
		return
	case e.Method == tool.NoteProgress && (isBadProgress(e) || len(e.Params) > maxNotification):
		s.losses.Add(1)
		return
	case e.Method == tool.NoteProgress:
		token, _ := rawjson.Get(e.Params, "progressToken")
		if call := s.open.find(token); call != nil {
			call.report(e.Params, s.redact)
			return
		} // otherwise perhaps of a call that has become a task
	case s.oneStream, on == nil && e.Method == tool.NoteMessage:
		on = s.listener(e)
		if on != nil || e.Method != tool.NoteMessage && tool.IsKnownNote(e.Method) {
			break
		}
		// Here, where the result that may follow has not been read, calls in flight are those in flight for the server.
		var several bool
		if on, several = s.asked.sole(); several {
			// It may be about what is nobody else's business.
			s.log.Debug("dropped a notification of the server: it belongs to one of several sessions, and does "+
				"not say which", "method", e.Method)
			return
		}
	}
	s.passOn(e, on)
}

// listener is the subscriptions/listen of a client's own that a notification names; nil for none.
func (s *session) listener(e jsonrpc.Message) *pendingRequest {
	meta, ok := rawjson.Get(e.Params, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return nil
	}
	about, _ := rawjson.Get(meta, hop.SubscriptionKey)
	if call := s.open.find(about); call != nil && call.until != nil {
		return call
	}
	return nil
}

// drop counts something that the server should not have sent, and logs it now and then.
func (s *session) drop(what string, raw []byte) {
	n := s.losses.Add(1)
	if !s.noisy.Allow() {
		return
	}
	message := "dropped a message of the server: it is not as MCP wants it"
	if s.cfg.Transport == Stdio && jsonrpc.Read(raw).Kind == jsonrpc.None {
		message = "dropped output of the server: stdout must carry nothing but JSON-RPC messages"
	}
	s.log.Warn(message, "what", what, "begins", s.redact.Show(string(raw[:min(len(raw), 120)]), len(raw) <= 120,
		secret.MaxText), "dropped_so_far", n)
}

// dropOversize tells the call that waits for a message that it was too large.
func (s *session) dropOversize(large *jsonrpc.TooLarge, call *pendingRequest) {
	s.losses.Add(1)
	transport.WarnOversize(large, s.log)
	if call != nil {
		call.finish(response{err: transport.OversizeFailure(large)})
		s.forget(call)
	}
}

// end marks the session as over. Only the first reason counts.
func (s *session) end(why *fault.Fault) {
	s.endOnce.Do(func() {
		s.reason = why
		close(s.ended)
	})
}

func (s *session) listChanged(k lists.Kind) { wait.Signal(s.changed[k]) }

// missed notes that the server may have told of changes while nobody listened.
func (s *session) missed() {
	for k := range lists.Kinds {
		s.listChanged(k)
	}
}

// lapsed notes that updates of resources may have been told while nobody listened.
func (s *session) lapsed() {
	for _, uri := range s.subscribed.all() {
		s.mayHaveChanged(uri)
	}
}

// offers reports whether the server says that it has something of kind k.
func (s *session) offers(k lists.Kind) bool { return s.has(k.Capability()) }

// announces reports whether the server says that it tells of changes of kind k.
func (s *session) announces(k lists.Kind) bool { return s.does(k.Capability(), "listChanged") }

// has reports whether the server has a capability. Its value does not count: PHP writes an empty object as [].
func (s *session) has(capability string) bool {
	value, _ := rawjson.Get(s.declared, capability)
	return !rawjson.IsNull(value)
}

// does reports whether a part of a capability is true.
func (s *session) does(capability, part string) bool {
	of, _ := rawjson.Get(s.declared, capability)
	value, _ := rawjson.Get(of, part)
	return string(value) == "true"
}

// hasToListen reports whether the server may have something to say outside of the streams of calls.
func (s *session) hasToListen() bool {
	some := s.abilities().Subscribe || s.abilities().Logging
	for k := range lists.Kinds {
		some = some || s.announces(k)
	}
	return some
}

// abilities returns the server's capabilities besides tools.
func (s *session) abilities() tool.Abilities {
	tasks, extension := s.tasks()
	return tool.Abilities{Prompts: s.offers(lists.PromptKind), Resources: s.offers(lists.ResourceKind),
		Completions: s.has("completions"), Logging: s.has("logging"), Subscribe: s.does("resources", "subscribe"),
		Tasks: tasks, TaskExtension: extension,
		Experimental: s.declares("experimental"), Extensions: s.declares("extensions")}
}

// offer returns the server's title, instructions and capabilities, without its lists.
func (s *session) offer() admit.Offer {
	return admit.Offer{Title: cmp.Or(s.info.Title, s.info.Name), Instructions: s.instructions, Abilities: s.abilities()}
}

// maxDeclared is the size in bytes above which a member of a server's capabilities is not passed on.
const maxDeclared = 64 << 10

// declares returns a member of the capabilities, as one line; "" where there is none that is an object.
func (s *session) declares(name string) string {
	raw, ok := hop.Ability(s.declared, name)
	if !ok || len(raw) > maxDeclared {
		return ""
	}
	line, err := rawjson.Line(raw)
	if err != nil {
		return ""
	}
	return string(line)
}

// tasks holds what the server says that it can do with tasks, each by the rules of its own revision.
func (s *session) tasks() (tasks tool.Tasks, extension bool) {
	if s.hop != nil {
		return tasks, tool.Declares(s.declared, "extensions", tool.TaskExtension)
	}
	if s.version == hop.NewestWithSession {
		tasks.List = tool.Declares(s.declared, "tasks", "list")
		tasks.Cancel = tool.Declares(s.declared, "tasks", "cancel")
		tasks.Calls = tool.Declares(s.declared, "tasks", "requests", "tools", "call")
	}
	return tasks, false
}
