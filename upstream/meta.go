package upstream

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Keys of _meta that belong to each hop on 2026-07-28.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// hop is what the hub says of itself in each request to a server of 2026-07-28.
type hop struct {
	version string
	client  string // of the hub
}

// members returns the hop's members of _meta, without braces, for a request of the hub's own: it offers servers nothing.
func (h hop) members(logLevel json.RawMessage) []byte {
	return h.membersFor(tool.Hop{LogLevel: logLevel})
}

// membersFor is members for a request of a client that said this of itself.
func (h hop) membersFor(client tool.Hop) []byte {
	b := []byte(`"` + metaVersion + `":`)
	b = append(b, rawjson.Quote(h.version)...)
	b = append(b, `,"`+metaClientInfo+`":{"name":"`+HubCommand+`","version":`...)
	b = append(b, rawjson.Quote(h.client)...)
	b = append(b, `},"`+metaCapabilities+`":`...)
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

// callMeta returns the _meta of a tools/call: meta with the call's progress token and, for h other than nil, the facts
// of the hop, which client takes part in.
func callMeta(meta json.RawMessage, token string, h *hop, client tool.Hop) ([]byte, error) {
	if rawjson.IsNull(meta) {
		meta = json.RawMessage("{}")
	}
	out, err := rawjson.Set(meta, "progressToken", []byte(`"`+token+`"`))
	if err != nil || h == nil {
		return out, err
	}
	// What the client's hop said must not contradict what this one says.
	out, _, err = rawjson.DeleteFunc(out, func(m rawjson.Member) bool {
		return tool.OfHop(m.Name())
	})
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(out, '}') // there is a member before it: the token
	joined := make([]byte, 0, len(out)+256)
	joined = append(joined, out[:end]...)
	joined = append(joined, ',')
	joined = append(joined, h.membersFor(client)...)
	return append(joined, '}'), nil
}

// withoutHop returns the params of a notification without what its _meta says of the hop.
func withoutHop(params json.RawMessage) (json.RawMessage, error) {
	meta, ok := rawjson.Get(params, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return params, nil
	}
	rest, some, err := rawjson.DeleteFunc(meta, func(m rawjson.Member) bool { return tool.OfHop(m.Name()) })
	if err != nil || !some {
		return params, err
	}
	left := false
	_ = rawjson.Members(rest, func(rawjson.Member) bool { left = true; return false })
	if left {
		return rawjson.Set(params, "_meta", rest)
	}
	params, _, err = rawjson.Delete(params, "_meta")
	return params, err
}

// callParams returns the params of the tools/call that x asks for: x.Params with name, arguments and _meta replaced in
// their places, or appended, and every other member as it stands.
func callParams(x *tool.Execution, token string, h *hop) (json.RawMessage, error) {
	var client tool.Hop
	if h != nil {
		client = carried(x.Hop, x.Ask != nil || x.InRounds)
	}
	meta, err := callMeta(x.Meta, token, h, client)
	if err != nil {
		return nil, err
	}
	own := [...]struct {
		name  string
		value []byte
		done  bool
	}{
		{name: "name", value: rawjson.Quote(x.Tool.Native)},
		{name: "arguments", value: x.Arguments},
		{name: "_meta", value: meta},
	}
	if rawjson.IsNull(x.Arguments) {
		own[1].value = []byte("{}") // "null" is refused by servers that use the TypeScript SDK
	}
	out := make([]byte, 1, len(x.Params)+len(x.Arguments)+len(meta)+len(x.Tool.Native)+64)
	out[0] = '{'
	put := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, key...)
		out = append(out, '"', ':')
		out = append(out, value...)
	}
	if !rawjson.IsNull(x.Params) {
		err = rawjson.Members(x.Params, func(m rawjson.Member) bool {
			for i := range own {
				if m.Is(own[i].name) {
					if !own[i].done {
						put(own[i].name, own[i].value)
					}
					own[i].done = true
					return true
				}
			}
			put(string(m.Key), m.Value)
			return true
		})
	}
	for i := range own {
		if !own[i].done {
			put(own[i].name, own[i].value)
		}
	}
	return append(out, '}'), err
}

// listParams returns the params of one page of tools/list.
func listParams(cursor string, h *hop) json.RawMessage {
	out := []byte("{")
	if cursor != "" {
		out = append(out, `"cursor":`...)
		out = append(out, rawjson.Quote(cursor)...)
	}
	if h != nil {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"_meta":{`...)
		out = append(out, h.members(nil)...)
		out = append(out, '}')
	}
	return append(out, '}')
}

// nameText encodes a tool's name for the Mcp-Name header: as it is where a header can hold it, which is what servers
// that use the SDK compare with the body.
func nameText(name string) string {
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
