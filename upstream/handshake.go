package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// hello is what a server says of itself in its answer to server/discover or initialize.
type hello struct {
	mcp.InitializeResult
	declared []byte // the capabilities as the server wrote them; nil where there are none
}

// unusableError says why an answer of a server cannot be used.
type unusableError struct{ why error }

func (e *unusableError) Error() string { return e.why.Error() }

func (e *unusableError) Unwrap() error { return e.why }

// handshake lets the hub and the server tell each other who they are, and makes l the lane of sess. A server is asked
// server/discover first, unless older says that it speaks a revision before 2026-07-28. If it does not answer that in
// time, or refuses it, the hub goes on to initialize: the server may ignore everything before that.
func (c *connector) handshake(ctx context.Context, sess *session, l lane, older bool) response {
	var found response
	if !older {
		h := &hop.Hop{Version: hop.Modern, Client: c.hubVersion}
		l.speak(hop.Modern, h)
		limited, cancel := context.WithTimeout(ctx, c.probeTime())
		params := append([]byte(`{"_meta":{`), h.Members(tool.Hop{ClientCapabilities: c.offers()})...)
		params = append(params, `}}`...)
		if found = c.greet(limited, l, methodDiscover, params); offersModern(found.err) {
			found = c.greet(limited, l, methodDiscover, params)
		}
		sess.undiscovered = errors.Is(found.err, context.DeadlineExceeded)
		cancel()
		if found.err == nil {
			if said, err := readDiscovery(found.result); err == nil {
				c.establish(sess, l, said)
				return response{}
			}
		}
		l.speak("", nil)
	}
	a := c.greet(ctx, l, methodInitialize, c.initializeParams())
	switch {
	case a.err == nil:
	case errors.As(found.err, new(*unusableError)) || errors.As(found.err, new(*transport.Oversize)):
		return found // the server knows server/discover, and may know nothing else
	default:
		return a
	}
	said, err := readHello(a.result)
	if err == nil && !slices.Contains(mcp.SupportedProtocolVersions(), said.ProtocolVersion) {
		err = fmt.Errorf("unsupported protocol version: %q", said.ProtocolVersion)
	}
	if err != nil {
		return response{err: &unusableError{err}}
	}
	c.establish(sess, l, said)
	return response{err: l.tell(ctx, noteInitialized, []byte("{}"))}
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

// greet sends a request of the handshake and waits for the answer.
func (c *connector) greet(ctx context.Context, l lane, method string, params []byte) response {
	end := c.asks(ctx, method)
	a := await(ctx, l, newLaneCall(c.nextID(), method, params))
	end(a.err)
	return a
}

// initializeParams returns the params of initialize.
func (c *connector) initializeParams() []byte {
	params := rawjson.AppendMember([]byte("{"), "protocolVersion", rawjson.Quote(hop.NewestWithSession))
	params = rawjson.AppendMember(params, "capabilities", c.offers())
	params = rawjson.AppendMember(params, "clientInfo", hop.ClientInfo(c.hubVersion))
	return append(params, '}')
}

// readHello reads the answer to initialize.
func readHello(result []byte) (said hello, err error) {
	if err := json.Unmarshal(result, &said.InitializeResult); err != nil {
		return said, err
	}
	if raw, ok := rawjson.Get(result, "capabilities"); ok && rawjson.IsObject(raw) {
		said.declared = bytes.Clone(raw)
	}
	return said, nil
}

// readDiscovery reads the answer to server/discover. The error says that the hub has to ask for an older revision.
func readDiscovery(result []byte) (said hello, err error) {
	if said, err = readHello(result); err != nil {
		return said, err
	}
	var versions []string
	raw, _ := rawjson.Get(result, "supportedVersions")
	if err := json.Unmarshal(raw, &versions); err != nil || !slices.Contains(versions, hop.Modern) {
		return said, errors.New("the server does not speak " + hop.Modern)
	}
	meta, _ := rawjson.Get(result, "_meta")
	info, _ := rawjson.Get(meta, mcp.MetaKeyServerInfo)
	said.ProtocolVersion, said.ServerInfo = hop.Modern, nil
	_ = json.Unmarshal(info, &said.ServerInfo) // a server that does not say its name is used all the same
	return said, nil
}

// establish takes over what the server has said, makes l the session's lane, and lets the server ask through it what
// the hub has offered to answer. From 2026-07-28 on servers send no requests.
func (c *connector) establish(sess *session, l lane, said hello) {
	sess.info, sess.declared, sess.version = said.InitializeResult, said.declared, said.ProtocolVersion
	rule := c.requestRule()
	if sess.version >= hop.Modern {
		sess.hop = &hop.Hop{Version: sess.version, Client: c.hubVersion}
		rule = refuseAll
	}
	if sess.info.Capabilities == nil {
		sess.info.Capabilities = &mcp.ServerCapabilities{}
	}
	tasks, _ := sess.tasks()
	sess.callsTasks = tasks.Calls
	sess.lane = l
	l.speak(sess.version, sess.hop)
	l.serverRequests().follow(rule)
	select {
	case <-sess.suspect: // the server has answered since
	default:
	}
}

// handshakeFault explains why the handshake over sess has ended with a.
func (c *connector) handshakeFault(ctx context.Context, sess *session, a response) *fault.Fault {
	var status *fault.StatusError
	if errors.As(a.err, &status) {
		a.status, a.pause = status.Status, transport.RetryAfter(status.Header)
	}
	var rpc *tool.RPCError
	refused := errors.As(a.err, &rpc)
	var large *transport.Oversize
	var media *fault.MediaError
	var unusable *unusableError
	switch {
	case errors.As(a.err, &large):
		return large.Fault("initialize")
	case a.status >= http.StatusMultipleChoices:
		f := fault.OfStatus(c.cfg, a.status, a.pause, a.err)
		if refused && !f.Auth {
			f.What += ": " + c.redact.Text(rpc.Message)
		}
		return f
	case refused:
		return &fault.Fault{
			What:  fmt.Sprintf("initialize was refused: %s (JSON-RPC error %d)", c.redact.Text(rpc.Message), rpc.Code),
			Hint:  "check that the server speaks a protocol version between 2024-11-05 and 2026-07-28",
			Cause: a.err,
		}
	case errors.As(a.err, &media):
		return &fault.Fault{
			What: fmt.Sprintf("%s answered with content type %q instead of JSON", secret.URL(c.cfg.URL),
				c.redact.Text(media.Media)),
			Hint:  "check that url is that of an MCP endpoint",
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
