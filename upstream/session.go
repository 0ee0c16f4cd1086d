package upstream

import (
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/admit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// session is one established connection to a server: initialised, and not restarted. A new one takes its place.
type session struct {
	lane    lane
	version string   // negotiated
	hop     *hop.Hop // nil below 2026-07-28

	undiscovered bool   // the server did not answer server/discover in time
	id           string // Mcp-Session-Id, or ""
	shownID      string // id, fit for records
	info         mcp.InitializeResult
	declared     []byte // the capabilities as the server wrote them; nil where that is not known
	callsTasks   bool   // the server makes tasks of calls, up to 2025-11-25
	taskTokens   *taskTokens
	pid          int

	changed [lists.Kinds]chan struct{} // each has room for one: the server's tools, say, have changed
	suspect chan struct{}              // has room for one: the server could not be reached

	unanswered atomic.Int32  // requests since the last sign of life that got no answer
	turned     chan struct{} // has room for one: too many have, or the server has spoken after that

	watch      *watch // what the standing stream is for, on 2026-07-28
	subscribed *subscriptionState

	ended chan struct{} // closed when the session cannot be used any more
	// closed when nothing more comes from the server: ended follows, once it is known why; nil: not
	// told before
	cut     chan struct{}
	endOnce sync.Once
	reason  *fault.Fault // set before ended is closed

	// shut ends the session and everything that it started, and waits for that. Closing kill makes it brisk.
	shut func(kill <-chan struct{})
}

func newSession() *session {
	s := &session{taskTokens: &taskTokens{}, suspect: make(chan struct{}, 1), turned: make(chan struct{}, 1),
		ended: make(chan struct{}), subscribed: newSubscriptionState()}
	s.watch = newWatch(s.missed)
	for k := range lists.Kinds {
		s.changed[k] = make(chan struct{}, 1)
	}
	return s
}

// end marks the session as over. Only the first reason counts.
func (s *session) end(why *fault.Fault) {
	s.endOnce.Do(func() {
		s.reason = why
		close(s.ended)
	})
}

// isOver reports whether the session has ended.
func (s *session) isOver() bool { return wait.IsClosed(s.ended) }

// isCut reports whether the connection is over, and why it is may not be known yet.
func (s *session) isCut() bool { return wait.IsClosed(s.cut) }

func (s *session) listChanged(k lists.Kind) { wait.Signal(s.changed[k]) }

// missed notes that the server may have told of changes while nobody listened.
func (s *session) missed() {
	for k := range lists.Kinds {
		s.listChanged(k)
	}
}

func (s *session) suspected() { wait.Signal(s.suspect) }

// offers reports whether the server says that it has something of kind k.
func (s *session) offers(k lists.Kind) bool {
	c := s.info.Capabilities
	return [...]bool{c.Tools != nil, c.Prompts != nil, c.Resources != nil}[k]
}

// announces reports whether the server says that it tells of changes of kind k.
func (s *session) announces(k lists.Kind) bool {
	c := s.info.Capabilities
	switch {
	case !s.offers(k):
		return false
	case k == lists.ToolKind:
		return c.Tools.ListChanged
	case k == lists.PromptKind:
		return c.Prompts.ListChanged
	}
	return c.Resources.ListChanged
}

// hasToListen reports whether the server may have something to say outside of the streams of calls.
func (s *session) hasToListen() bool {
	some := s.abilities().Subscribe || s.abilities().Logging
	for k := range lists.Kinds {
		s.watch.changes[k] = s.announces(k)
		some = some || s.watch.changes[k]
	}
	return some
}

// abilities returns the server's capabilities besides tools.
func (s *session) abilities() tool.Abilities {
	c := s.info.Capabilities
	//lint:ignore SA1019 deprecated on 2026-07-28, and in use by servers of all revisions
	logging := c.Logging != nil
	tasks, extension := s.tasks()
	return tool.Abilities{Prompts: c.Prompts != nil, Resources: c.Resources != nil, Completions: c.Completions != nil,
		Logging: logging, Subscribe: c.Resources != nil &&
			c.Resources.Subscribe, Tasks: tasks, TaskExtension: extension,
		Experimental: s.declares("experimental"), Extensions: s.declares("extensions")}
}

// offer returns the server's title, instructions and capabilities, without its lists.
func (s *session) offer() admit.Offer {
	o := admit.Offer{Instructions: s.info.Instructions, Abilities: s.abilities()}
	if info := s.info.ServerInfo; info != nil {
		o.Title = orText(info.Title, info.Name)
	}
	return o
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
		extensions, _ := hop.Ability(s.declared, "extensions")
		_, extension = hop.Ability(extensions, tool.TaskExtension)
		return tasks, extension
	}
	all, ok := hop.Ability(s.declared, "tasks")
	if !ok || s.version != hop.NewestWithSession {
		return tasks, false
	}
	_, tasks.List = hop.Ability(all, "list")
	_, tasks.Cancel = hop.Ability(all, "cancel")
	requests, _ := hop.Ability(all, "requests")
	tools, _ := hop.Ability(requests, "tools")
	_, tasks.Calls = hop.Ability(tools, "call")
	return tasks, false
}
