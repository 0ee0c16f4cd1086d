package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// httpDoor serves one profile over Streamable HTTP. Sessions are those of revisions before
// 2026-07-28.
type httpDoor struct {
	server  *Server
	profile string
}

// serve serves one request that the guard has let in.
func (d *httpDoor) serve(w http.ResponseWriter, r *entry) {
	r.profile = d.profile
	switch {
	case r.actor.Client.Names != "" && !d.takesNames(w, r):
	case r.Method == http.MethodPost:
		d.post(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		d.getOrDelete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// takesNames refuses a request that asks for a form of names that does not exist.
func (d *httpDoor) takesNames(w http.ResponseWriter, r *entry) bool {
	_, err := d.server.deps.Surfaces.Surface(d.profile, r.actor)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// getOrDelete serves a standing stream, or ends a session.
func (d *httpDoor) getOrDelete(w http.ResponseWriter, r *entry) {
	if r.Header.Get(headerVersion) >= modernVersion {
		w.Header().Set("Allow", "POST") // it has neither
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if r.Header.Get(headerSession) == "" {
		http.Error(w, r.Method+" needs the "+headerSession+" header that the answer to initialize gave",
			http.StatusBadRequest)
		return
	}
	s, err := d.session(r)
	if err != nil {
		refuseSession(w, err)
		return
	}
	if r.Method == http.MethodGet {
		d.server.sessions.release(s) // a standing stream alone does not keep a session: its client may be long gone
		d.standing(w, r.Request, s)
		return
	}
	defer d.server.sessions.release(s)
	d.server.sessions.endForGood(s)
	w.WriteHeader(http.StatusNoContent)
}

// post serves one POST: a message or, where the protocol revision allows it, a batch.
func (d *httpDoor) post(w http.ResponseWriter, r *entry) {
	body, ok := d.server.readBody(w, r.Request)
	if !ok {
		return
	}
	for _, name := range [...]string{headerVersion, headerSession, headerMethod, headerName} {
		if len(r.Header[name]) > 1 { // a proxy may have gone by the other one
			writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(nil, &tool.RPCError{Code: tool.CodeHeaderMismatch,
				Message: "header " + name + " occurs twice"}))
			return
		}
	}
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '[' && rawjson.Valid(text) {
		d.postBatch(w, r, text)
		return
	}
	m := jsonrpc.Parse(body)
	if m.Fault != nil && !isCall(m) {
		writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(m.ID, m.Fault))
		return
	}
	if m.IsRequest() {
		r.meta.read(m.Object)
	}
	if r.Header.Get(headerVersion) >= modernVersion || r.meta.version >= modernVersion {
		d.postModern(w, r, m)
		return
	}
	d.postLegacy(w, r, m)
}

// postModern serves a message of protocol revision 2026-07-28 or later: it stands for itself.
func (d *httpDoor) postModern(w http.ResponseWriter, r *entry, m *jsonrpc.Message) {
	p := &r.peer
	p.caller = d.server.callerOf(p.actor)
	p.session, p.modern = p.caller.session, true
	if isCustomNote(d.profile, m) {
		p.actor.Client.ProtocolVersion = r.Header.Get(headerVersion)
		d.passNote(w, r, p, m)
		return
	}
	if !m.IsRequest() {
		if supportedOnly(w, r.Header) {
			accept(w, m)
		}
		return
	}
	reply := newHTTPReply(w, r.Request, m.ID, true)
	defer reply.close()
	refusal := checkHeaders(r.Header, m, p.meta.version)
	if refusal == nil {
		refusal = modernPeer(p)
	}
	switch {
	case refusal == nil && m.Method == tool.MethodToolsCall:
		p.headers = r.Header
	case refusal == nil:
	case !isCall(m):
		reply.refuse(refusal)
		return
	case m.Fault == nil:
		m.Fault = refusal
	}
	p.named, _ = paramheader.Decode(r.Header.Get(headerName))
	d.serveLane(r.Context(), p, m, reply)
}

// accept takes in a message that the hub has no use for. One that should be a request is refused.
func accept(w http.ResponseWriter, m *jsonrpc.Message) {
	if m.ID == nil && isKnownRequest(m.Method) {
		http.Error(w, fmt.Sprintf("%q is a request: it needs an id", m.Method), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// supportedOnly refuses a request whose header names a protocol revision that the hub does not speak.
func supportedOnly(w http.ResponseWriter, h http.Header) bool {
	v := h.Get(headerVersion)
	if v == "" || supported(v) {
		return true
	}
	http.Error(w, fmt.Sprintf("unsupported protocol version (supported versions: %s)",
		strings.Join(protocolVersions(), ", ")), http.StatusBadRequest)
	return false
}

// postLegacy serves a message of a revision with sessions.
func (d *httpDoor) postLegacy(w http.ResponseWriter, r *entry, m *jsonrpc.Message) {
	if !supportedOnly(w, r.Header) {
		return
	}
	if r.Header.Get(headerSession) == "" {
		if m.Fault != nil {
			writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(m.ID, m.Fault))
			return
		}
		switch {
		case !m.IsRequest():
			accept(w, m)
		case m.Method == tool.MethodInitialize:
			d.initialize(w, r, m)
		case m.Method == tool.MethodPing:
			writePieces(w, http.StatusOK, answerText(m.ID, whole([]byte("{}"))))
		default:
			writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(m.ID, jsonrpc.InvalidRequest(
				fmt.Sprintf("%q needs the %s header that the answer to initialize gave", m.Method, headerSession))))
		}
		return
	}
	s, err := d.session(r)
	if err != nil {
		refuseSession(w, err)
		return
	}
	defer d.server.sessions.release(s)
	p, address := &r.peer, r.actor.Address
	p.actor, p.session, p.caller, p.hop.ClientCapabilities = s.actor, s.caller.session, s.caller,
		s.known.Capabilities
	p.actor.Address = address // of this request
	switch {
	case m.IsRequest() && m.Method == tool.MethodInitialize:
		writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(m.ID, errInitializedTwice("session",
			"go on with it, or initialize without the "+headerSession+" header")))
	case m.IsRequest():
		reply := newHTTPReply(w, r.Request, m.ID, false)
		defer reply.close()
		// "Disconnection SHOULD NOT be interpreted as the client cancelling its request": it says so by notification.
		opened, call, refusal := s.caller.inflight.add(context.WithoutCancel(r.Context()), m.ID)
		if refusal != nil {
			reply.refuse(refusal)
			return
		}
		defer call.end()
		reply.call = call
		d.serveLane(opened, p, m, reply)
	case isCustomNote(d.profile, m):
		d.passNote(w, r, p, m)
	default:
		d.server.heed(s.caller, m)
		accept(w, m)
	}
}

// initialize answers initialize, and begins a session.
func (d *httpDoor) initialize(w http.ResponseWriter, r *entry, m *jsonrpc.Message) {
	client, result, refusal := d.server.initialize(r.Context(), d.profile, m)
	if refusal != nil {
		writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(m.ID, refusal))
		return
	}
	t := &d.server.sessions
	id, known, err := t.ids.New(d.holder(r.actor), sessionid.Session{ProtocolVersion: client.ProtocolVersion,
		ClientName: client.Name, ClientVersion: client.Version, Capabilities: capabilitiesOf(m)})
	if err == nil {
		t.entering.Lock()
		err = t.enter(d.newSession(r, id, known))
		t.entering.Unlock()
	}
	if err != nil {
		w.Header().Set("Retry-After", "60")
		writeJSON(w, http.StatusServiceUnavailable,
			jsonrpc.ErrorText(m.ID, &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}))
		return
	}
	w.Header().Set(headerSession, id)
	writePieces(w, http.StatusOK, answerText(m.ID, whole(result)))
}

// passNote sends a notification on that the hub does not know. The client may go on once the server has it.
func (d *httpDoor) passNote(w http.ResponseWriter, r *entry, p *peer, m *jsonrpc.Message) {
	if !supportedOnly(w, r.Header) {
		return
	}
	if d.server.enter(p.actor, 0) != nil {
		http.Error(w, "the notification is not taken: the hub is stopping", http.StatusBadRequest)
		return
	}
	defer d.server.exit(p.actor, 0)
	d.server.forwarder.passNote(context.WithoutCancel(r.Context()), p, m)
	w.WriteHeader(http.StatusAccepted)
}

// refuseSession answers a request whose session cannot be used because of err.
func refuseSession(w http.ResponseWriter, err error) {
	if errors.Is(err, sessionid.ErrUnknown) {
		writeJSON(w, http.StatusNotFound, jsonrpc.ErrorText(nil,
			&tool.RPCError{Code: -32001, Message: "session not found: initialize again"})) // as the SDKs say it
		return
	}
	w.Header().Set("Retry-After", "60")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// session returns the session that the request names, and keeps it until it is released. Where
// there is none that the sender may use, the error is sessionid.ErrUnknown. Somebody else's session
// is refused, and it does not show whether it exists under another profile.
func (d *httpDoor) session(r *entry) (*httpSession, error) {
	id := r.Header.Get(headerSession)
	s, ok := d.server.sessions.use(id)
	if !ok {
		if err := d.takeUp(r); err != nil {
			return nil, err
		}
		if s, ok = d.server.sessions.use(id); !ok { // it has made room for another one already
			return nil, sessionid.ErrUnknown
		}
	}
	if s.profile != d.profile || s.actor.Name != r.actor.Name {
		d.server.sessions.release(s)
		return nil, sessionid.ErrUnknown
	}
	return s, nil
}

// serveLane runs a lane request unless the hub is stopping.
func (d *httpDoor) serveLane(ctx context.Context, p *peer, m *jsonrpc.Message, reply *httpReply) {
	if refusal := d.server.enter(p.actor, len(m.Text)); refusal != nil {
		if d.server.isDraining() { // a proxy can send it to another hub
			reply.w.Header().Set("Retry-After", "5") // seconds
			reply.finish(http.StatusServiceUnavailable, whole(jsonrpc.ErrorText(reply.id, refusal)))
			return
		}
		reply.refuse(refusal)
		return
	}
	defer d.server.exit(p.actor, len(m.Text))
	d.server.serveLane(ctx, p, m, reply)
}

// checkHeaders: on 2026-07-28 the headers by which proxies route must say what the body says.
// inBody is the protocol revision that its _meta names.
func checkHeaders(h http.Header, m *jsonrpc.Message, inBody string) *tool.RPCError {
	mismatch := func(what string) *tool.RPCError {
		return &tool.RPCError{Code: tool.CodeHeaderMismatch, Message: what}
	}
	switch v := h.Get(headerVersion); {
	case v == "":
		return mismatch(fmt.Sprintf("%s header is required for requests carrying %q", headerVersion,
			mcp.MetaKeyProtocolVersion))
	case inBody == "":
		return invalidParams(fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyProtocolVersion))
	case v != inBody:
		return mismatch(fmt.Sprintf("%s header %q does not match request %s %q", headerVersion, v,
			mcp.MetaKeyProtocolVersion, inBody))
	}
	switch v := h.Get(headerMethod); {
	case v == "":
		return mismatch("missing required " + headerMethod + " header")
	case v != m.Method:
		return mismatch(fmt.Sprintf("%s header %q does not match method %q of the body", headerMethod, v, m.Method))
	}
	member := ""
	switch m.Method {
	case tool.MethodToolsCall, tool.MethodPromptsGet:
		member = "name"
	case tool.MethodResourcesRead:
		member = "uri"
	case tool.MethodTaskGet, tool.MethodTaskCancel, tool.MethodTaskUpdate:
		member = "taskId"
	default:
		return nil
	}
	value, _ := m.Object.Get(member)
	name, _ := rawjson.String(value)
	v := h.Get(headerName)
	decoded, ok := paramheader.Decode(v)
	switch {
	case v == "":
		return mismatch("missing required " + headerName + " header")
	case v != name && !(ok && decoded == name):
		return mismatch(fmt.Sprintf("%s header does not match %s %q of the body", headerName, member, name))
	}
	return nil
}

// checkParams: on 2026-07-28 the headers that repeat arguments of a tool must say what the body
// says. A name that belongs to no tool is the call's own affair. Who calls a deferred tool by its
// name need not know of the headers, as no list has told of them; those that it sends are held to
// what they say.
func checkParams(surface *tool.Surface, name string, args json.RawMessage, h http.Header) *tool.RPCError {
	l, ok := surface.Resolve(name)
	if !ok {
		return nil
	}
	bindings := paramheader.Of(l.Tool.InputSchema)
	if surface.IsDeferred(l.Tool.Name) {
		bindings = slices.DeleteFunc(slices.Clone(bindings), func(b paramheader.Binding) bool {
			return len(h.Values(paramheader.Prefix+b.Header)) == 0
		})
	}
	if what := paramheader.Mismatch(bindings, args, h); what != "" {
		return &tool.RPCError{Code: tool.CodeHeaderMismatch, Message: what}
	}
	return nil
}

// postBatch serves a batch as the single messages that it holds, and answers when all of them have been answered.
func (d *httpDoor) postBatch(w http.ResponseWriter, r *entry, text []byte) {
	version := r.Header.Get(headerVersion)
	if s, err := d.session(r); err == nil {
		version = s.actor.Client.ProtocolVersion
		d.server.sessions.release(s)
	}
	parts, err := splitBatch(text, version)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, jsonrpc.ErrorText(nil, jsonrpc.InvalidRequest(err.Error())))
		return
	}
	r.Header.Set("Accept", usualType) // the answer is one JSON text, without a place for notifications and requests
	var answers []pieces
	for _, part := range parts {
		rec := &recorder{header: make(http.Header)}
		m := jsonrpc.Parse(part)
		if m.Fault != nil && !isCall(m) {
			answers = append(answers, whole(jsonrpc.ErrorText(m.ID, m.Fault)))
			continue
		}
		one := *r
		one.meta.read(m.Object)
		d.postLegacy(rec, &one, m)
		if id := rec.header.Get(headerSession); id != "" {
			w.Header().Set(headerSession, id)
		}
		if m.IsRequest() {
			answers = append(answers, whole(rec.message(m.ID)))
		}
	}
	if len(answers) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	writePieces(w, http.StatusOK, joinBatch(answers))
}

// recorder takes the response to one message of a batch.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// message returns the JSON-RPC response that was recorded.
func (r *recorder) message(id json.RawMessage) []byte {
	body := r.body.Bytes()
	if !rawjson.IsObject(body) {
		return jsonrpc.ErrorText(id, jsonrpc.InvalidRequest(strings.TrimSpace(string(body))))
	}
	return body
}
