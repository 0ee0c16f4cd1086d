package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Servers is the way to what servers offer besides tools, and to what they say on their own. It is safe for concurrent
// use. Errors of its methods are *tool.RPCError, for what a server answered itself, or *tool.Failure.
type Servers interface {
	// Forward sends a request on to its server and returns the server's answer.
	Forward(ctx context.Context, r *tool.Request) (tool.Reply, error)

	// Notify sends a notification on, and returns when the server has it or will not.
	Notify(ctx context.Context, r *tool.Request) error

	// Listen keeps a subscriptions/listen open at a server until ctx ends or the server refuses it, which is the error. agreed
	// is told, each time that it is opened, what the server agrees to, and said what it says.
	Listen(ctx context.Context, r *tool.Request, agreed func(notifications json.RawMessage), said func(tool.Notification)) error

	// Subscribe makes a server tell of changes of a resource until Unsubscribe, over reconnects. Both are counted.
	Subscribe(ctx context.Context, server, uri string, who tool.Session, says tool.Hop) error
	Unsubscribe(ctx context.Context, server, uri string, who tool.Session) error

	// RootsChanged tells the servers that keep the roots of a session's client that these have changed. It does not wait
	// for them.
	RootsChanged(ctx context.Context, who tool.Session, params json.RawMessage)

	// SetLogLevel tells the most talkative level that any client wants; "" for none. It does not wait for servers.
	SetLogLevel(level string)

	// OnNotification says who is told what belongs to no call: log messages and changes of resources. It is called before
	// the servers are started; f returns quickly.
	OnNotification(f func(tool.Notification))
}

// direct reports whether a profile is the view of a single server under its native names.
func direct(profile string) bool { return strings.HasPrefix(profile, directPrefix) }

// caller is the state that the hub keeps for one client session, or on revisions without sessions for one caller.
type caller struct {
	session tool.Session
	view    string  // the profile of a session; "" on revisions without
	out     *outbox // what waits for the session's standing stream; nil where it has none

	mu            sync.Mutex
	level         string // of logging/setLevel; "" before it
	links         links
	loaded        loaded
	subscriptions map[string]*subscription // by URI as the client wrote it; nil until the first
	over          bool                     // the session has ended: it takes no more subscriptions
}

// callers holds the callers on revisions without sessions: as many as there are tokens.
type callers struct {
	mu    sync.Mutex
	byKey map[string]*caller
}

func (c *callers) get(session tool.Session) *caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byKey[session.Key]
	if known == nil {
		if c.byKey == nil {
			c.byKey = make(map[string]*caller)
		}
		known = &caller{session: session}
		c.byKey[session.Key] = known
	}
	return known
}

// noServers stands for servers that offer nothing besides tools.
type noServers struct{}

func (noServers) Forward(_ context.Context, r *tool.Request) (tool.Reply, error) {
	return tool.Reply{}, &tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not served", r.Method)}
}

func (noServers) Listen(context.Context, *tool.Request, func(json.RawMessage), func(tool.Notification)) error {
	return nil
}

func (noServers) Notify(context.Context, *tool.Request) error { return nil }

func (noServers) Subscribe(context.Context, string, string, tool.Session, tool.Hop) error {
	return &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "subscriptions are not served"}
}

func (noServers) Unsubscribe(context.Context, string, string, tool.Session) error { return nil }

func (noServers) RootsChanged(context.Context, tool.Session, json.RawMessage) {}

func (noServers) SetLogLevel(string) {}

func (noServers) OnNotification(func(tool.Notification)) {}
