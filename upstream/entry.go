package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// use says whose calls go over a connection.
type use int

const (
	useShared  use = iota // those of all clients
	useListing            // nobody's: the server is isolated, and this connection only lists
	useSession            // those of one client session, or of one person
)

// entry holds what all parts of a server share: its configuration, and whose calls it serves. It never changes.
type entry struct {
	cfg         ServerConfig
	log         *slog.Logger
	redact      *secret.Redactor
	group       *Group         // that the server is in
	catalog     *catalog       // of all connections to the server
	memory      *budget.Share  // for large messages
	tokens      *signin.Source // nil where the entry says all that a sign-in takes
	ids         *atomic.Int64  // of requests; all servers of the same id count on
	retry       retry
	firstWithin time.Duration // see Config.FirstListWithin

	// losses counts what all connections to the server have sent and the hub has dropped: what is malformed, what is over
	// a limit, and what came faster than it could be passed on. None of it is fatal.
	losses *atomic.Int64

	use       use
	client    tool.Session // the session, for useSession; a person's has the key of the person
	clientHop tool.Hop     // what its client said of itself in the call that made the connection
}

// probeTime is maxProbeTime, or a third of the connect timeout where that is less.
func (e *entry) probeTime() time.Duration { return min(maxProbeTime, e.cfg.Timeouts.Connect/3) }

// limits bound a request.
func (e *entry) limits(method string) callLimits {
	l := callLimits{idle: e.cfg.Timeouts.Call, most: e.cfg.Timeouts.CallMax}
	if method == tool.MethodTaskResult { // it waits for the end of the task: "MUST block the response until"
		l.idle = l.most
	}
	return l
}

// timedOut is the failure of a call that took too long. effect says what became of it.
func (e *entry) timedOut(name, effect string, unknown bool, limits callLimits) *tool.Failure {
	setting, limit := "timeout", limits.idle
	if time.Since(limits.began) >= limits.most {
		setting, limit = "timeout_max", limits.most
	}
	return &tool.Failure{Class: tool.ClassTimeout, OutcomeUnknown: unknown, Message: fmt.Sprintf(
		"%q of server %q did not answer within %s and was canceled; it %s. If it needs longer, raise %s of server %q",
		name, e.cfg.ID, limit, effect, setting, e.cfg.ID)}
}

// identity is the key of the cached catalog: a digest of everything that decides which server it
// is. Secrets stand in it as part of the digest only.
func (e *entry) identity() string {
	c := e.cfg
	of := []any{1, c.Transport, c.Command, c.Args, c.Env, c.Dir, c.URL, c.Headers}
	if c.OAuth.PerCaller { // one that all shared may hold what is not for all
		of = append(of, "per caller")
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "" // strings always encode
	}
	return tool.Digest(text)
}

// isPersonal reports whether all sessions of one person share the connection, and nobody else does.
func (e *entry) isPersonal() bool {
	return e.use == useSession && e.cfg.OAuth.PerCaller && !e.cfg.Isolated
}

// isOneSessions reports whether the connection is that of one client session alone.
func (e *entry) isOneSessions() bool { return e.use == useSession && !e.isPersonal() }

// serves reports whether the connection is one that who uses.
func (e *entry) serves(who subscriber) bool {
	return who.server == e.cfg.ID && (e.use != useSession || who.session == e.client.Key ||
		e.isPersonal() && who.person == e.client.Person)
}

// offers returns the client capabilities that the hub declares in initialize. A session's
// connection offers what its client can. A shared one offers everything: some servers list a tool only to clients that
// can answer its requests. Over Streamable HTTP each request of a server comes on the stream of the
// call that it belongs to. Over other transports a server that asks is isolated by itself, and one
// that is not to be offers nothing; while there is one client, it is offered what that can. A
// person's connection is shared, too.
func (e *entry) offers() json.RawMessage {
	switch {
	case e.isOneSessions():
		return hop.ClientCapabilities(e.clientHop)
	case e.cfg.Transport != StreamableHTTP && (e.isPersonal() || e.cfg.Shared):
		return json.RawMessage("{}")
	}
	if one, ok := e.group.subscriptions.sole(); ok && e.use == useShared && e.cfg.Transport != StreamableHTTP {
		return hop.ClientCapabilities(one.says)
	}
	return json.RawMessage(hop.AllCapabilities)
}

// listensForRequests reports whether the server may send requests on a stream that belongs to no call.
func (e *entry) listensForRequests(sess *session) bool {
	return e.isOneSessions() && e.cfg.Transport == StreamableHTTP && sess.hop == nil && e.answers() > 0
}

// answers counts the kinds of requests that the server may send, of which there are three.
func (e *entry) answers() (kinds int) {
	for _, name := range []string{"sampling", "elicitation", "roots"} {
		if tool.Declares(e.offers(), name) {
			kinds++
		}
	}
	return kinds
}

// outside takes what a server asks outside of calls to the client of one; nil where that cannot be.
func (e *entry) outside(one clientSession) *pendingRequest {
	if one.who.Client == nil || one.says.Revision >= hop.Modern {
		return nil
	}
	ask := func(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
		return one.who.Client.Ask(ctx, e.cfg.ID, questions)
	}
	return newLaneCall(0, &tool.Request{Session: one.who, Ask: ask}, nil)
}

// requestRule says which calls the requests of a server up to 2025-11-25 can belong to.
func (e *entry) requestRule() requestRule {
	switch {
	case e.cfg.Transport == StreamableHTTP && !e.isOneSessions():
		return callOfStream
	case e.isPersonal() || e.cfg.Shared:
		return refuseAll
	}
	return callOfClient
}

// overFor returns why sess is over when a request to it has failed with err, or nil where it goes
// on. Where the connection was lost it waits for the reason: a child's exit is known a moment later
// than the end of its output. Over Streamable HTTP a lost connection is one request's, and the
// session goes on.
func (e *entry) overFor(ctx context.Context, sess *session, err error) *fault.Fault {
	lost := e.cfg.Transport != StreamableHTTP && isCutOff(err)
	if wait.IsClosed(sess.ended) || lost && wait.For(ctx.Done(), sess.ended, reasonWithin) {
		return sess.reason
	}
	return nil
}
