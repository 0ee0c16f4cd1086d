package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/admit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
)

// clientRequest is a client's request to one server: a tools/call, another request, or a
// subscription. All have the same limits, the same waiting for servers that start, and the same
// second try.
type clientRequest struct {
	tool.Request                 // its Name is that of the tool, prompt or resource that it is about; "" for none
	call         *tool.Execution // what it was made from, for a tools/call; nil otherwise
	isNote       bool            // it is a notification

	hubsToken bool // it was sent with a progress token that no client wants

	// reply is the server's answer, and kind what a result of 2026-07-28 says that it is. They stand here because
	// many calls wait at a time, and each function that hands them on would hold a copy.
	reply tool.Reply
	kind  string
}

// about names what the request is about, for messages.
func (x *clientRequest) about() string { return cmp.Or(x.Name, x.Method) }

// isRefused reports whether the server has refused the request because of the hub's progress token.
func (x *clientRequest) isRefused(err error) bool {
	var rpc *tool.RPCError
	return x.hubsToken && errors.As(err, &rpc) && rpc.Code == tool.CodeInvalidParams &&
		(bytes.Contains(rpc.Raw, []byte("_meta")) || bytes.Contains(rpc.Raw, []byte("progressToken")))
}

// Method returns a method of a server besides tools/call as a tool, for permission and records.
// What is permitted of it is permitted at this server's address alone.
func (g *Group) Method(server, method string, known bool) *tool.Tool {
	t := tool.MethodOf(server, method, known)
	if s := g.roster.Load().byID[server]; s != nil {
		t.ServerDigest = admit.ServerDigest(s.cfg)
	}
	return t
}

// Forward sends a request other than tools/call to its server and returns what the server answered,
// byte for byte. It goes the way of a call, and Execute says what holds for both: errors, timeouts,
// progress, the second try, the end of ctx. Subscriptions and the log level have methods of their
// own.
func (g *Group) Forward(ctx context.Context, r *tool.Request) (tool.Reply, error) {
	switch r.Method {
	case "", tool.MethodToolsCall, tool.MethodSubscribe, tool.MethodUnsubscribe, tool.MethodSetLevel, tool.MethodListen,
		tool.MethodDiscover, tool.MethodInitialize: // the group sends them itself, or they have a door of their own
		return tool.Reply{}, &tool.RPCError{Code: tool.CodeMethodNotFound,
			Message: fmt.Sprintf("method %q is not forwarded", r.Method)}
	}
	if !fitsHeader(r.Method) {
		return tool.Reply{}, errNoMethod(r.Method)
	}
	x := &clientRequest{Request: *r}
	switch r.Method {
	case tool.MethodResourcesRead:
		x.Name = rawjson.Text(r.Params, "uri")
	case tool.MethodPromptsGet:
		x.Name = rawjson.Text(r.Params, "name")
	case tool.MethodTaskGet, tool.MethodTaskCancel, tool.MethodTaskUpdate, tool.MethodTaskResult:
		x.Name = rawjson.Text(r.Params, "taskId")
	}
	err := g.dispatch(ctx, x)
	return x.reply, err
}

// tellPatience bounds the sending of a notification.
const tellPatience = 10 * time.Second

// Notify sends a notification of a client on to its server, over the connection of the client's
// session where each has its own, and returns once the server has taken it in. Of r, Server,
// Method, Params, Hop and Session count. A server that is not running is started. The error is as
// Execute's.
func (g *Group) Notify(ctx context.Context, r *tool.Request) error {
	params := r.Params
	if params != nil && !rawjson.IsNull(params) {
		line, err := rawjson.Line(params)
		if err != nil || !rawjson.IsObject(line) {
			return &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
				Message: "params of the notification are no JSON object"}
		}
		if params, err = tool.WithoutHop(line); err != nil {
			return &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
				Message: "_meta of the notification is no JSON object"}
		}
	}
	if !fitsHeader(r.Method) {
		return errNoMethod(r.Method)
	}
	x := &clientRequest{Request: *r, isNote: true}
	x.Params = params
	return g.dispatch(ctx, x)
}

// tell sends a notification of a client over sess.
func (s *server) tell(ctx context.Context, sess *session, x *clientRequest) response {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	err := sess.lane.tell(ctx, x.Method, x.Params)
	if err == nil {
		return response{}
	}
	if a := ofStatus(err); a.err != nil {
		return a
	}
	return response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "not_told", Cause: err,
		Message: fmt.Sprintf("server %q did not take in the notification", s.cfg.ID)}}
}

// maxMethod bounds the names of methods that the hub does not know, in bytes.
const maxMethod = 200

// fitsHeader reports whether a method's name can stand in the Mcp-Method header.
func fitsHeader(method string) bool {
	for i := 0; i < len(method); i++ {
		if method[i] <= ' ' || method[i] > '~' {
			return false
		}
	}
	return method != "" && len(method) <= maxMethod
}

func errNoMethod(method string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeMethodNotFound,
		Message: fmt.Sprintf("method %q is not forwarded: a method's name is 1 to %d visible ASCII characters",
			hidden.Cut(method, 80), maxMethod)}
}

// Listen keeps a subscriptions/listen of a client's own open at a server of 2026-07-28, for what
// the hub does not listen to itself: r.Params hold what it asks for. It is opened again when it
// ends, the server's connection is lost or the server is started anew, until ctx ends or the server
// refuses it; the refusal is the error, and nil stands for the end of ctx. agreed is told each time
// what the server has agreed to, said what it says then, both one at a time, in order and quickly.
func (g *Group) Listen(
	ctx context.Context, r *tool.Request, agreed func(notifications json.RawMessage), said func(tool.Notification),
) error {
	x := &clientRequest{Request: *r}
	x.Method = tool.MethodListen
	x.Notify = func(n tool.Notification) {
		if n.Method != tool.NoteAcknowledged {
			said(n)
		} else if filter, ok := rawjson.Get(n.Params, "notifications"); ok && rawjson.IsObject(filter) {
			agreed(filter)
		}
	}
	var pause listenPause
	for {
		began := time.Now()
		err := g.dispatch(ctx, x)
		var rpc *tool.RPCError
		var f *tool.Failure
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &rpc):
			return err
		case errors.As(err, &f) && f.Code == "unknown_server":
			return err
		}
		if !pause.wait(ctx, began) {
			return nil
		}
	}
}

// listenFor is one subscriptions/listen over sess, to its end.
func (s *server) listenFor(ctx context.Context, sess *session, x *clientRequest) response {
	if sess.hop == nil {
		return response{err: &tool.RPCError{Code: tool.CodeMethodNotFound,
			Message: "the server takes no subscriptions/listen"}}
	}
	id := s.ids.Add(1)
	params, _, err := s.params(x, sess, id, false)
	if err != nil {
		return response{err: &tool.RPCError{Code: tool.CodeInvalidParams, Message: "params are no JSON object"}}
	}
	c := newLaneCall(id, &x.Request, params)
	c.until = s.lifecycle.retired // whoever takes its place is asked
	return sess.wait(ctx, c, &callLimits{idle: math.MaxInt64, most: math.MaxInt64})
}

// RootsChanged tells servers that the roots of the client of who have changed: those that the
// session has a connection of its own to, and that were told there that they would be told. What
// several sessions share has no roots of its own: there a server asks during a call for the roots
// of that call's client. params are the client's, an object or nil. It does not wait for servers.
func (g *Group) RootsChanged(who tool.Session, params json.RawMessage) {
	for _, s := range g.roster.Load().servers {
		if s.isolation == nil {
			continue
		}
		if keeper, _ := s.isApart(who); keeper.who.Key == who.Key {
			s.rootsChanged(hop.ClientCapabilities(keeper.says), params)
		} else if one := s.isolation.peek(who); one != nil {
			one.rootsChanged(one.offers(), params)
		}
	}
}

// rootsChanged tells the server of one connection. One that is not connected has not asked for the roots yet, or will
// again.
func (s *server) rootsChanged(offers, params json.RawMessage) {
	sess := s.lifecycle.current()
	roots, _ := rawjson.Get(offers, "roots")
	if changes, _ := rawjson.Get(roots, "listChanged"); sess == nil || sess.hop != nil || string(changes) != "true" {
		return
	}
	var clean []byte
	if rawjson.IsObject(params) && rawjson.Valid(params) {
		var err error
		if clean, err = tool.WithoutHop(params); err != nil {
			return
		}
	}
	sess.asked.reply(jsonrpc.NotificationText(tool.NoteRootsChanged, clean))
}
