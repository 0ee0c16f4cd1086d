package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// hello is what a server says of itself in its answer to server/discover or initialize.
type hello struct {
	version      string // of the protocol
	info         mcp.Implementation
	instructions string
	declared     []byte // the capabilities as the server wrote them; nil where there are none
}

// unusableError says why an answer of a server cannot be used.
type unusableError struct{ why error }

func (e *unusableError) Error() string { return e.why.Error() }

func (e *unusableError) Unwrap() error { return e.why }

// terms are how the hub introduces itself to a server. The zero value offers all that it can do.
type terms struct {
	Version string // that initialize asks for; "" is the newest
	Less    int    // of the capabilities: 1 leaves out their parts, 2 all of them
}

// handshake lets the hub and the server tell each other over sess who they are. A server is asked
// server/discover first, unless older says that it speaks a revision before 2026-07-28. If it does not answer that in
// time, or refuses it, the hub goes on to initialize: the server may ignore everything before that.
func (c *connector) handshake(ctx context.Context, sess *session, older bool) response {
	if c.cfg.Protocol != "" {
		older = c.cfg.Protocol < hop.Modern
	}
	t := c.catalog.agreedTerms()
	var found response
	if !older {
		h := &hop.Hop{Version: hop.Modern, Client: hop.ClientInfo(c.group.version)}
		sess.speaks.Store(hop.Modern)
		limited, cancel := context.WithTimeout(ctx, c.probeTime())
		params := append(h.AppendMembers([]byte(`{"_meta":{`), tool.Hop{ClientCapabilities: c.offers()}), `}}`...)
		found = sess.await(limited, tool.MethodDiscover, params)
		if offersModern(found.err) {
			found = sess.await(limited, tool.MethodDiscover, params)
		}
		sess.undiscovered = errors.Is(found.err, context.DeadlineExceeded)
		cancel()
		if found.err == nil {
			var said hello
			if said, found.err = readDiscovery(found.result); found.err == nil {
				c.establish(sess, said)
				c.catalog.agree(t)
				return response{}
			}
		}
		if c.cfg.Protocol != "" {
			return found
		}
	}
	said, a := c.introduce(ctx, sess, t, isFirm(found.status))
	switch {
	case a.err == nil:
	case errors.As(found.err, new(*unusableError)) || errors.As(found.err, new(*jsonrpc.TooLarge)),
		isFirm(found.status) && !isFirm(a.status):
		return found // the server knows server/discover, and may know nothing else
	default:
		return a
	}
	c.establish(sess, said)
	return response{err: sess.lane.tell(ctx, tool.NoteInitialized, []byte("{}"))}
}

// isFirm reports whether a status says something about the hub or the server, and not about the request.
func isFirm(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusTooManyRequests || status >= 500
}

// introduce sends initialize on those terms. A server that refuses it is offered less and less, unless once is set:
// some refuse members of capabilities that they do not know, or any version but their own. The response is the first
// refusal; its error is nil where the server has agreed.
func (c *connector) introduce(ctx context.Context, sess *session, t terms, once bool) (said hello, first response) {
	remembered := t != terms{}
	sess.speaks.Store("")
	for {
		a := sess.await(ctx, tool.MethodInitialize, c.initializeParams(t))
		if a.err == nil {
			if said = readHello(a.result); !slices.Contains(mcp.SupportedProtocolVersions(), said.version) {
				a.err = &unusableError{fmt.Errorf("unsupported protocol version: %q", said.version)}
			}
		}
		if a.err == nil {
			c.catalog.agree(t)
			return said, a
		}
		refused := a.refusal() != "" || said.version != ""
		if isCutOff(a.err) && (remembered || first.err != nil) {
			if remembered {
				t = terms{}
			}
			c.catalog.agree(t) // a child that has ended with its refusal is started again, for the next try
		}
		if first.err == nil || !refused {
			first = a
		}
		var more bool
		if remembered && refused { // the server may be another one by now
			remembered, more, t = false, true, terms{}
		} else {
			t, more = t.less(a, said.version, c.offers(), c.cfg.Protocol != "")
		}
		if once || !more {
			return said, first
		}
	}
}

// refusal returns the words in which the server has refused a request for its content; "" where it has not.
func (a response) refusal() string {
	var rpc *tool.RPCError
	if isFirm(a.status) || a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed ||
		errors.As(a.err, &rpc) && rpc.Code == tool.CodeMethodNotFound {
		return ""
	}
	return a.words()
}

// words returns what the server says in an error, in lower case; "" where that is none.
func (a response) words() string {
	var rpc *tool.RPCError
	var page *tool.HTTPError
	switch {
	case errors.As(a.err, &rpc):
		return strings.ToLower(fmt.Sprintf("%d %s %s", rpc.Code, rpc.Message, rpc.Data))
	case errors.As(a.err, &page):
		return strings.ToLower(fmt.Sprintf("%d %s", page.Status, page.Body))
	}
	return ""
}

// less returns the terms to try after a server has refused t with a, or has answered with version. more is false where
// there are none.
func (t terms) less(a response, version string, offers []byte, pinned bool) (less terms, more bool) {
	why, older := a.refusal(), ""
	for _, v := range mcp.SupportedProtocolVersions() { // the newest first
		switch {
		case v >= cmp.Or(t.Version, hop.NewestWithSession) || pinned:
		case strings.Contains(why, v):
			t.Version = v
			return t, true
		case older == "" && (version == "" || v < version):
			older = v
		}
	}
	switch {
	case why == "" && version == "":
		return t, false
	case version == "" && string(t.capabilities(offers)) != "{}":
		for before := t.capabilities(offers); bytes.Equal(before, t.capabilities(offers)); {
			t.Less++
		}
	case older != "":
		t.Version = older
	default:
		return t, false
	}
	return t, true
}

// capabilities returns what of offers is declared.
func (t terms) capabilities(offers []byte) []byte {
	if t.Less == 0 || string(offers) == "{}" {
		return offers
	}
	out := []byte("{")
	for _, name := range []string{"roots", "sampling", "elicitation"} {
		if t.Less == 1 && tool.Declares(offers, name) {
			out = rawjson.AppendMember(out, name, []byte("{}"))
		}
	}
	return append(out, '}')
}

// offersModern reports whether a server that refused 2026-07-28 lists it among those that it supports.
func offersModern(err error) bool {
	var rpc *tool.RPCError
	if !errors.As(err, &rpc) || rpc.Code != tool.CodeUnsupportedProtocol {
		return false
	}
	var data struct{ Supported []string }
	return json.Unmarshal(rpc.Data, &data) == nil && slices.Contains(data.Supported, hop.Modern)
}

// initializeParams returns the params of initialize.
func (e *entry) initializeParams(t terms) []byte {
	version := cmp.Or(e.cfg.Protocol, t.Version, hop.NewestWithSession)
	params := rawjson.AppendMember([]byte("{"), "protocolVersion", rawjson.Quote(version))
	params = rawjson.AppendMember(params, "capabilities", t.capabilities(e.offers()))
	params = rawjson.AppendMember(params, "clientInfo", hop.ClientInfo(e.group.version))
	return append(params, '}')
}

// readHello reads the answer to initialize. A member of another type than the protocol's costs nothing but itself; a
// capability is there whatever its value: PHP writes an empty object as [].
func readHello(result []byte) hello {
	said := hello{version: rawjson.Text(result, "protocolVersion"), instructions: rawjson.Text(result, "instructions")}
	info, _ := rawjson.Get(result, "serverInfo")
	_ = json.Unmarshal(info, &said.info) // a server that does not say its name is used all the same
	if raw, _ := rawjson.Get(result, "capabilities"); rawjson.IsObject(raw) {
		said.declared = bytes.Clone(raw)
	} else if !rawjson.IsNull(raw) { // it does not say which it has
		said.declared = []byte(`{"tools":{}}`)
	}
	return said
}

// readDiscovery reads the answer to server/discover. The error says that the hub has to ask for an older revision.
func readDiscovery(result []byte) (said hello, err error) {
	var versions []string
	raw, _ := rawjson.Get(result, "supportedVersions")
	if err := json.Unmarshal(raw, &versions); err != nil || !slices.Contains(versions, hop.Modern) {
		return said, errors.New("the server does not speak " + hop.Modern)
	}
	meta, _ := rawjson.Get(result, "_meta")
	said = readHello(result)
	said.version = hop.Modern
	info, _ := rawjson.Get(meta, mcp.MetaKeyServerInfo)
	_ = json.Unmarshal(info, &said.info)
	return said, nil
}

// establish takes over what the server has said, and lets it ask what the hub has offered to answer. From 2026-07-28 on
// servers send no requests.
func (c *connector) establish(sess *session, said hello) {
	sess.hello = said
	rule := c.requestRule()
	if sess.version >= hop.Modern {
		sess.hop = &hop.Hop{Version: sess.version, Client: hop.ClientInfo(c.group.version)}
		rule = refuseAll
	}
	tasks, _ := sess.tasks()
	sess.callsTasks = tasks.Calls
	sess.speaks.Store(sess.version)
	one := clientSession{c.client, c.clientHop} // its own, or the only one that there is
	if c.use == useShared {
		one, _ = c.group.subscriptions.sole()
	}
	outside := c.outside(one)
	if c.isPersonal() || outside != nil && c.isolation != nil && !c.isolation.keep(one) {
		outside = nil
	}
	has := tool.Declares(c.offers(), "roots") && (c.use == useSession || outside != nil)
	sess.asked.follow(rule, c.isolation, outside, has && c.catalog.known().AsksFirst)
	select {
	case <-sess.suspect: // the server has answered since
	default:
	}
}

// handshakeFault explains why the handshake over sess has ended with a.
func (c *connector) handshakeFault(ctx context.Context, sess *session, a response) *fault.Fault {
	if told := ofStatus(a.err); told.err != nil { // that the handshake is done
		a = told
	}
	var failure *tool.Failure
	var rpc *tool.RPCError
	refused := errors.As(a.err, &rpc)
	var large *jsonrpc.TooLarge
	var unusable *unusableError
	switch {
	case errors.As(a.err, &large):
		return transport.OversizeFault(large, "initialize")
	case a.status >= http.StatusMultipleChoices:
		f := fault.OfStatus(c.cfg, a.status, a.err)
		if errors.As(a.err, &failure) {
			f.Pause = failure.RetryAfter
		}
		if page := (*tool.HTTPError)(nil); errors.As(a.err, &page) {
			f.What += c.words(page)
		} else if refused && !f.Auth {
			f.What += ": " + c.redact.Text(rpc.Message)
		}
		return f
	case refused:
		return &fault.Fault{
			What:  fmt.Sprintf("initialize was refused: %s (JSON-RPC error %d)", c.redact.Text(rpc.Message), rpc.Code),
			Hint:  "check that the server speaks a protocol version between 2024-11-05 and 2026-07-28",
			Cause: a.err,
		}
	case errors.As(a.err, &unusable):
		return &fault.Fault{
			What: "the answer to initialize cannot be used: " + c.redact.Text(unusable.Error()),
			Hint: "check that the server speaks a protocol version between 2024-11-05 and 2026-07-28, or report " +
				"this to whoever maintains it",
			Cause: a.err,
		}
	case c.cfg.Transport == StreamableHTTP:
		return fault.OfConnect(c.cfg, causeOf(a.err), c.redact)
	}
	return c.endedFault(ctx, sess, a.err)
}

// endedFault explains why a connection that is one stream failed during the handshake: with why it has ended, if that
// is known.
func (c *connector) endedFault(ctx context.Context, sess *session, err error) *fault.Fault {
	if ctx.Err() == nil && wait.For(ctx.Done(), sess.ended, reasonWithin) {
		f := *sess.reason
		f.What += " (before it answered initialize)"
		f.Hint = "run the command by hand to see why"
		if strings.Contains(f.What, "/_npx/") {
			f.Hint = "if it goes on, remove the directory below _npx that is named: npx was stopped while it filled that"
		}
		if c.cfg.Transport == SSE {
			f.Hint = "check that the server runs and that url is right"
		}
		return &f
	}
	return &fault.Fault{
		What:  "initialize failed: " + c.redact.Text(fault.Plain(causeOf(err))),
		Hint:  "check that it is an MCP server",
		Cause: err,
	}
}
