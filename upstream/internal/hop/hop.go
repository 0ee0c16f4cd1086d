// Package hop writes what the hub says of itself, and of a client, in its requests to a server:
// params, _meta, capabilities.
package hop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Revisions of the protocol.
const (
	Modern            = "2026-07-28" // from here on: no sessions, facts of the hop in each request
	NewestWithSession = "2025-11-25"
)

// Keys of _meta that belong to each hop on 2026-07-28.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	SubscriptionKey  = "io.modelcontextprotocol/subscriptionId"
)

// Hop holds what the hub says of itself in each request to a server of 2026-07-28. It is nil for
// servers of older revisions, which learn that once, in initialize.
type Hop struct {
	Version string // of the protocol
	Client  []byte // name and version of the hub: see ClientInfo
}

// ClientInfo returns the name and the version under which the hub makes itself known to servers.
func ClientInfo(version string) []byte {
	return append(rawjson.AppendQuote([]byte(`{"name":"`+settings.HubCommand+`","version":`), version), '}')
}

// AppendMembers appends the hop's members of _meta, without braces. client is what the client said of itself; zero in
// requests of the hub's own.
func (h *Hop) AppendMembers(b []byte, client tool.Hop) []byte {
	b = rawjson.AppendQuote(append(b, `"`+metaVersion+`":`...), h.Version)
	b = append(append(b, `,"`+metaClientInfo+`":`...), h.Client...)
	b = append(b, `,"`+metaCapabilities+`":`...)
	if rawjson.IsNull(client.ClientCapabilities) {
		b = append(b, `{}`...)
	} else {
		b = append(b, client.ClientCapabilities...)
	}
	if !rawjson.IsNull(client.LogLevel) {
		b = append(b, `,"`+metaLogLevel+`":`...)
		b = append(b, client.LogLevel...)
	}
	return b
}

// meta returns meta with the request's progress token, unless that is 0, and the members of the hop. It is nil where
// there are none. asks says that the client can answer requests at all.
func (h *Hop) meta(meta json.RawMessage, token int64, client tool.Hop, asks bool) (json.RawMessage, error) {
	if rawjson.IsNull(meta) {
		if h == nil && token == 0 {
			return nil, nil
		}
		meta = json.RawMessage("{}")
	}
	var err error
	if token != 0 {
		meta, err = rawjson.Set(meta, "progressToken", strconv.AppendInt(nil, token, 10))
	}
	if h == nil || err != nil {
		return meta, err
	}
	// The members of the client's hop must not contradict those of this one.
	meta, _, err = rawjson.DeleteFunc(meta, func(m rawjson.Member) bool { return tool.OfHop(m.Name()) })
	if err != nil {
		return nil, err
	}
	out := bytes.TrimRight(meta[:bytes.LastIndexByte(meta, '}')], " \t\r\n")
	out = slices.Clip(out)
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(h.AppendMembers(out, carried(client, asks)), '}'), nil
}

// CallParams returns the params of a tools/call: x.Params with name, arguments and _meta replaced
// in their places, or appended. Every other member stays as it is.
func (h *Hop) CallParams(x *tool.Execution, token int64) (json.RawMessage, error) {
	meta, err := h.meta(x.Meta, token, x.Hop, x.Ask != nil || x.InputByRetry)
	if err != nil {
		return nil, err
	}
	arguments, params := x.Arguments, x.Params
	if rawjson.IsNull(arguments) {
		arguments = json.RawMessage("{}") // "null" is refused by servers that use the TypeScript SDK
	}
	if rawjson.IsNull(params) {
		params = json.RawMessage("{}")
	}
	object, err := rawjson.ReadObject(params)
	if err != nil {
		return nil, err
	}
	return bytes.Join(object.With(rawjson.Change{Name: "name", Value: rawjson.Quote(x.Tool.Native)},
		rawjson.Change{Name: "arguments", Value: arguments}, rawjson.Change{Name: "_meta", Value: meta}), nil), nil
}

// RequestParams returns the params of a forwarded request: r.Params with _meta replaced in its
// place, or appended. Every other member stays as it is.
func (h *Hop) RequestParams(r *tool.Request, token int64) (json.RawMessage, error) {
	params := r.Params
	if rawjson.IsNull(params) {
		params = json.RawMessage("{}")
	}
	params, err := rawjson.Line(params)
	if err != nil {
		return nil, err
	}
	if !rawjson.IsObject(params) {
		return nil, fmt.Errorf("params: %w", rawjson.ErrSyntax)
	}
	meta, err := h.meta(r.Meta, token, r.Hop, r.Ask != nil || r.InputByRetry)
	if err != nil {
		return nil, err
	}
	if meta == nil {
		params, _, err = rawjson.Delete(params, "_meta")
		return params, err
	}
	return rawjson.Set(params, "_meta", meta)
}

// ListParams returns the params for one page of a list.
func (h *Hop) ListParams(cursor *string) json.RawMessage {
	out := []byte("{")
	if cursor != nil {
		out = rawjson.AppendMember(out, "cursor", rawjson.Quote(*cursor))
	}
	if h != nil {
		out = rawjson.AppendMember(out, "_meta", append(h.AppendMembers([]byte("{"), tool.Hop{}), '}'))
	}
	return append(out, '}')
}

// NameHeader returns the value of the Mcp-Name header. A name that a header can hold stays as it
// is: servers that use the SDK compare it with the body.
func NameHeader(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == 0x7f {
			return paramheader.Encode(name)
		}
	}
	if name != strings.Trim(name, " ") {
		return paramheader.Encode(name)
	}
	return name
}
