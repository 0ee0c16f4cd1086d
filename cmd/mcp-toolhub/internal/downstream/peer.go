package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// modernVersion is the first protocol revision without sessions: each request says for itself who is asking.
const modernVersion = "2026-07-28"

// hopPrefix begins the _meta keys that belong to one hop and are never passed on.
const hopPrefix = "io.modelcontextprotocol/"

// metaLogLevel is the hop's key for the level of log messages that a request asks for.
const metaLogLevel = hopPrefix + "logLevel"

// peer describes the sender of a message, as far as the message and its connection tell.
type peer struct {
	profile string
	actor   tool.Actor
	session tool.Session
	modern  bool
	hop     tool.Hop

	caller  *caller         // what is kept for the sender between its requests
	meta    requestMeta     // of the request at hand
	headers http.Header     // that repeat what the request at hand says; nil where none do
	named   string          // what the Mcp-Name header says, decoded; "" where there is none
	arrival *tool.Arrival   // of the call at hand; nil where nothing says in which order calls were written
	quit    <-chan struct{} // closed when standing requests are to end; nil where only their context tells
}

// replier answers one request. notify may be called any number of times before exactly one of
// answer and refuse; what was notified before arrives before. answer reports whether the result was
// written, so that nobody reads it any more.
type replier interface {
	notify(method string, params json.RawMessage)
	answer(result pieces) (written bool)
	refuse(err *tool.RPCError)

	// request sends a request of the hub's own, under the same rules as notify. It returns false
	// where it cannot reach the client. The response arrives elsewhere.
	request(id json.RawMessage, method string, params json.RawMessage) bool
}

// requestMeta is what the hub reads in a request's _meta, and what of it travels on. Members that are absent are nil.
type requestMeta struct {
	version                            string // the protocol revision; "" where none is named
	clientInfo, capabilities, logLevel json.RawMessage
	token                              json.RawMessage // of progress
	ref                                json.RawMessage // a selection_ref: it is for the hub alone
	batch                              json.RawMessage // how the client groups calls: likewise
	// _meta without these and whatever else is of this hop; nil where that is empty
	onward    json.RawMessage
	malformed bool // there is a _meta that is neither an object nor null
	knowsHub  bool // it has keys of the hub's
}

// read reads the _meta of a request.
func (r *requestMeta) read(params rawjson.Object) {
	meta, _ := params.Get("_meta")
	if !rawjson.IsObject(meta) {
		r.malformed = !rawjson.IsNull(meta)
		return
	}
	kept := false
	onward, _, err := rawjson.DeleteFunc(meta, func(m rawjson.Member) bool {
		key := m.Decoded()
		r.knowsHub = r.knowsHub || tool.IsOwn(string(key))
		switch string(key) {
		case mcp.MetaKeyProtocolVersion:
			r.version, _ = rawjson.String(m.Value)
		case mcp.MetaKeyClientInfo:
			r.clientInfo = m.Value
		case mcp.MetaKeyClientCapabilities:
			r.capabilities = m.Value
		case metaLogLevel:
			r.logLevel = m.Value
		case "progressToken":
			r.token = m.Value
		case tool.MetaSelectionRef:
			r.ref = m.Value
		case tool.MetaBatch:
			r.batch = m.Value
		default:
			own := tool.OfHop(string(key))
			kept = kept || !own
			return own
		}
		return true
	})
	if err == nil && kept {
		r.onward = onward
	}
}

// modernPeer completes p with what the _meta of a request on the sessionless protocol says of its
// sender, or refuses the request.
func modernPeer(p *peer) *tool.RPCError {
	version, caps, info := p.meta.version, p.meta.capabilities, p.meta.clientInfo
	if !supported(version) {
		data, _ := json.Marshal(map[string]any{"supported": mcp.SupportedProtocolVersions(), "requested": version})
		return &tool.RPCError{Code: tool.CodeUnsupportedProtocol, Message: "unsupported protocol version", Data: data}
	}
	if !rawjson.IsObject(caps) {
		return invalidParams(fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyClientCapabilities))
	}
	p.modern = true
	p.actor.Client = tool.Client{ProtocolVersion: version, Names: p.actor.Client.Names}
	if info != nil {
		if !rawjson.IsObject(info) {
			return invalidParams(fmt.Sprintf("invalid _meta field %q", mcp.MetaKeyClientInfo))
		}
		p.actor.Client.Name, p.actor.Client.Version = clientInfo(info)
	}
	p.hop.ClientCapabilities, p.actor.Client.Apps = caps, showsApps(caps)
	p.hop.LogLevel = p.meta.logLevel
	return nil
}

// appsExtension is the capability of a client that shows user interfaces of tools (MCP Apps).
const appsExtension = "io.modelcontextprotocol/ui"

// showsApps reports whether a client's capabilities declare MCP Apps.
func showsApps(capabilities json.RawMessage) bool {
	extensions, _ := rawjson.Get(capabilities, "extensions")
	return rawjson.IsObject(extensions) && present(extensions, appsExtension)
}

func clientInfo(info json.RawMessage) (name, version string) {
	name, _ = rawjson.GetString(info, "name")
	version, _ = rawjson.GetString(info, "version")
	return name, version
}

func supported(version string) bool { return slices.Contains(protocolVersions(), version) }

// protocolVersions returns the revisions that the hub speaks, which are those of the SDK.
var protocolVersions = sync.OnceValue(mcp.SupportedProtocolVersions)

func empty(object json.RawMessage) bool {
	none := true
	_ = rawjson.Members(object, func(rawjson.Member) bool { none = false; return false })
	return none
}

// inflight holds the calls of one connection or session that have not been answered, by their id as written.
type inflight struct {
	mu    sync.Mutex
	calls map[string]*inflightCall
}

// inflightCall is a call that has not been answered.
type inflightCall struct {
	of        *inflight
	id        string
	cancel    context.CancelCauseFunc
	withdrawn bool // the client has cancelled it; of.mu guards this
}

// maxInflight bounds the open calls of one client.
const maxInflight = 1000

// add registers a call until its end. It refuses an id that is in use and one call too many.
func (f *inflight) add(ctx context.Context, id json.RawMessage) (context.Context, *inflightCall, *tool.RPCError) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	key := string(id)
	if _, ok := f.calls[key]; ok {
		cancel(nil)
		return nil, nil, jsonrpc.InvalidRequest(fmt.Sprintf("id %s is in use by a call that has not been answered",
			key))
	}
	if len(f.calls) >= maxInflight {
		cancel(nil)
		return nil, nil, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d calls of this client are open: wait for one to end, then try again", maxInflight)}
	}
	call := &inflightCall{of: f, id: key, cancel: cancel}
	set(&f.calls, key, call)
	return ctx, call, nil
}

// end makes the id free, and reports whether the client has cancelled the call. It may be called
// again, and for nil.
func (c *inflightCall) end() (withdrawn bool) {
	if c == nil {
		return false
	}
	c.of.mu.Lock()
	withdrawn = c.withdrawn
	if c.of.calls[c.id] == c { // the id may be that of another one by now
		delete(c.of.calls, c.id)
	}
	c.of.mu.Unlock()
	c.cancel(nil)
	return withdrawn
}

// An agent core that begins calls while a model still streams them says this in the _meta of a
// cancellation, where it has dropped the stream and asked the model anew.
const (
	metaAbortReason   = "toolhub/abort_reason"
	streamingFallback = "streaming_fallback"
)

// withdrawn returns the cause with which a call ends that its client has cancelled, as the params of
// its notifications/cancelled say it.
func withdrawn(params json.RawMessage) *tool.Failure {
	reason, _ := rawjson.GetString(params, "reason")
	f := tool.CanceledBy(tool.CanceledByClient, clip(strings.ToValidUTF8(reason, "�")),
		"the client canceled the call: call again if it is still wanted")
	if meta, _ := rawjson.Get(params, "_meta"); rawjson.Text(meta, metaAbortReason) == streamingFallback {
		f.Class, f.AbortReason = tool.ClassStreamingDiscarded, streamingFallback
		f.Message = "the client has dropped the stream that this call came from: use the result of the call that " +
			"took its place"
	}
	return f
}

// goneClient returns the cause with which the calls end of a client that is gone without a word.
func goneClient() *tool.Failure {
	return tool.CanceledBy(tool.CanceledByLostClient, "", "the client has gone: call again if it is still wanted")
}

// HubStops returns the cause with which the calls end that run when the hub stops.
func HubStops() *tool.Failure {
	return tool.CanceledBy(tool.CanceledByHubStop, "", "the hub is stopping: call again from the start in a moment")
}

// cancel ends the call that a notifications/cancelled names, if it is open.
func (f *inflight) cancel(params json.RawMessage) {
	id, _ := rawjson.Get(params, "requestId")
	f.mu.Lock()
	defer f.mu.Unlock()
	if call := f.calls[string(id)]; call != nil {
		call.withdrawn = true
		call.cancel(withdrawn(params))
	}
}

// heed takes a message of a session's client that is no request: a response, a cancellation, or the
// news that its roots have changed. It drops others, and a response that answers no open question to
// that client.
func (s *Server) heed(c *caller, m *jsonrpc.Message) {
	switch {
	case m.IsResponse():
		if id, ok := rawjson.String(m.ID); !ok || !c.questions.answer(id, answerOf(m)) {
			s.strays.Add(1)
			s.deps.Logger.Debug("a client's response was dropped: it answers no open request of the hub to that client")
		}
	case m.ID != nil:
	case m.Method == tool.NoteCancelled:
		c.inflight.cancel(m.Params)
	case m.Method == tool.NoteRootsChanged:
		s.deps.Servers.RootsChanged(c.session, m.Params)
	}
}

// causeOf returns the cause with which a context of a door has ended; otherwise where that says none.
func causeOf(ctx context.Context, otherwise *tool.Failure) *tool.Failure {
	_ = errors.As(context.Cause(ctx), &otherwise)
	return otherwise
}

// isAny reports whether a call is open.
func (f *inflight) isAny() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls) > 0
}

// cancelAll ends every open call, because of why.
func (f *inflight) cancelAll(why *tool.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		call.cancel(why)
	}
}

// invalidParams returns the error of a request whose params are wrong.
func invalidParams(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidParams, Message: "invalid params: " + what}
}

// checkInitialize refuses an initialize whose params are none.
func checkInitialize(m *jsonrpc.Message) *tool.RPCError {
	if !rawjson.IsObject(m.Params) {
		return invalidParams("initialize needs params with protocolVersion, capabilities and clientInfo")
	}
	var mistyped *json.UnmarshalTypeError
	switch err := json.Unmarshal(m.Params, &mcp.InitializeParams{}); {
	case errors.As(err, &mistyped):
		return invalidParams(fmt.Sprintf("%q must be no %s", mistyped.Field, mistyped.Value))
	case err != nil:
		return invalidParams("they are not those of initialize")
	}
	return nil
}
