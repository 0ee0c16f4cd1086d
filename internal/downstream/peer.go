package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// modernVersion is the first protocol revision without sessions: each request says for itself who is asking.
const modernVersion = "2026-07-28"

// hopPrefix begins the _meta keys that belong to one hop and are never passed on.
const hopPrefix = "io.modelcontextprotocol/"

// metaLogLevel is the hop's key for the level of log messages that a request asks for.
const metaLogLevel = hopPrefix + "logLevel"

// peer is who sent a message, as far as that message and its connection tell.
type peer struct {
	profile  string
	actor    tool.Actor
	session  tool.Session
	modern   bool
	hop      tool.Hop
	inflight *inflight

	// questions are the hub's open requests to this client; nil where it takes none.
	questions *questions
}

// replier is the way back of one request. notify may be called any number of times before exactly one of answer and
// refuse; what was notified before arrives before.
type replier interface {
	notify(method string, params json.RawMessage)
	answer(result json.RawMessage)
	refuse(err *tool.RPCError)

	// request sends a request of the hub's own, under the same rules as notify. It returns false where it cannot reach the
	// client. The response arrives elsewhere.
	request(id json.RawMessage, method string, params json.RawMessage) bool

	// abandon ends a request that the client has cancelled, without an answer: "The receiver of a cancellation SHOULD NOT
	// send a response for the cancelled request." It returns false where the wire wants an answer all the same.
	abandon() bool
}

// serveLane answers a request of a method that the hub serves itself, from raw JSON to raw JSON, and returns when that is
// done. Everything else goes to the SDK.
func (s *Server) serveLane(ctx context.Context, p peer, m message, r replier) {
	switch m.method {
	case methodToolsCall:
		s.call(ctx, p, m, r)
	case methodToolsList:
		s.list(p, m, r)
	default:
		r.refuse(&tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not served", m.method)})
	}
}

const (
	methodToolsCall     = "tools/call"
	methodToolsList     = "tools/list"
	methodInitialize    = "initialize"
	methodListen        = "subscriptions/listen"
	noteInitialized     = "notifications/initialized"
	noteCancelled       = "notifications/cancelled"
	noteProgress        = "notifications/progress"
	noteToolListChanged = "notifications/tools/list_changed"
)

// onLane reports whether the hub itself serves method.
func onLane(method string) bool { return method == methodToolsCall || method == methodToolsList }

// metaVersion is the protocol revision that a request's own _meta names; "" where it names none.
func metaVersion(m message) string {
	meta, ok := rawjson.Get(m.params, "_meta")
	if !ok {
		return ""
	}
	v, _ := rawjson.Get(meta, mcp.MetaKeyProtocolVersion)
	version, _ := rawjson.String(v)
	return version
}

// modernPeer completes p with what a request on the sessionless protocol says of its sender. It refuses what the SDK
// refuses on the methods that it serves.
func modernPeer(p peer, m message) (peer, *tool.RPCError) {
	version := metaVersion(m)
	if !supported(version) {
		data, _ := json.Marshal(map[string]any{"supported": mcp.SupportedProtocolVersions(), "requested": version})
		return p, &tool.RPCError{Code: tool.CodeUnsupportedProtocol, Message: "unsupported protocol version", Data: data}
	}
	meta, _ := rawjson.Get(m.params, "_meta")
	caps, ok := rawjson.Get(meta, mcp.MetaKeyClientCapabilities)
	if !ok || !rawjson.IsObject(caps) {
		return p, invalidParams(fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyClientCapabilities))
	}
	p.modern = true
	p.actor.Client = tool.Client{ProtocolVersion: version}
	if info, ok := rawjson.Get(meta, mcp.MetaKeyClientInfo); ok {
		if !rawjson.IsObject(info) {
			return p, invalidParams(fmt.Sprintf("invalid _meta field %q", mcp.MetaKeyClientInfo))
		}
		p.actor.Client.Name, p.actor.Client.Version = clientInfo(info)
	}
	p.hop.ClientCapabilities = caps
	p.hop.LogLevel, _ = rawjson.Get(meta, metaLogLevel)
	return p, nil
}

func clientInfo(info json.RawMessage) (name, version string) {
	n, _ := rawjson.Get(info, "name")
	v, _ := rawjson.Get(info, "version")
	name, _ = rawjson.String(n)
	version, _ = rawjson.String(v)
	return name, version
}

func supported(version string) bool {
	for _, v := range mcp.SupportedProtocolVersions() {
		if v == version {
			return true
		}
	}
	return false
}

// splitMeta divides a request's _meta into the progress token of its own hop and what travels on.
func splitMeta(params json.RawMessage) (token, onward json.RawMessage) {
	meta, ok := rawjson.Get(params, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return nil, nil
	}
	token, _ = rawjson.Get(meta, "progressToken")
	onward, _, err := rawjson.DeleteFunc(meta, func(m rawjson.Member) bool {
		name := m.Name()
		return name == "progressToken" || strings.HasPrefix(name, hopPrefix)
	})
	if err != nil || len(onward) < 2 || empty(onward) {
		return token, nil
	}
	return token, onward
}

func empty(object json.RawMessage) bool {
	none := true
	_ = rawjson.Members(object, func(rawjson.Member) bool { none = false; return false })
	return none
}

// inflight are the calls of one connection or session that have not been answered, by their id as written.
type inflight struct {
	mu    sync.Mutex
	calls map[string]context.CancelFunc
}

// maxInflight bounds the open calls of one client.
const maxInflight = 1000

// add registers a call. It refuses an id that is in use and one call too many.
func (f *inflight) add(ctx context.Context, id json.RawMessage) (context.Context, func(), *tool.RPCError) {
	ctx, cancel := context.WithCancel(ctx)
	if f == nil {
		return ctx, cancel, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := string(id)
	if _, ok := f.calls[key]; ok {
		cancel()
		return nil, nil, invalidRequest(fmt.Sprintf("id %s is in use by a call that has not been answered", key))
	}
	if len(f.calls) >= maxInflight {
		cancel()
		return nil, nil, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d calls of this client are open: wait for one to end, then try again", maxInflight)}
	}
	if f.calls == nil {
		f.calls = make(map[string]context.CancelFunc)
	}
	f.calls[key] = cancel
	return ctx, func() {
		f.mu.Lock()
		delete(f.calls, key)
		f.mu.Unlock()
		cancel()
	}, nil
}

// cancel ends the call that a notifications/cancelled names, and reports whether there was one.
func (f *inflight) cancel(params json.RawMessage) bool {
	id, ok := rawjson.Get(params, "requestId")
	if !ok || f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	cancel, ok := f.calls[string(id)]
	if ok {
		cancel()
	}
	return ok
}

// cancelAll ends every open call.
func (f *inflight) cancelAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.calls {
		cancel()
	}
}
