package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

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

	metaPrefix = "io.modelcontextprotocol/" // of all of them
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
		return strings.HasPrefix(m.Name(), metaPrefix)
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
	rest, some, err := rawjson.DeleteFunc(meta, func(m rawjson.Member) bool { return strings.HasPrefix(m.Name(), metaPrefix) })
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

// binding says that an argument also travels as a header, because the property of the tool's input schema carries
// x-mcp-header: 2026-07-28 lets gateways route by it.
type binding struct {
	path   []string
	header string
}

// maxBindingDepth bounds how deep properties are searched for x-mcp-header.
const maxBindingDepth = 16

// bindings returns the header bindings of an input schema.
func bindings(schema json.RawMessage) []binding {
	if !strings.Contains(string(schema), "x-mcp-header") {
		return nil
	}
	return appendBindings(nil, schema, nil)
}

func appendBindings(out []binding, schema []byte, at []string) []binding {
	properties, ok := rawjson.Get(schema, "properties")
	if !ok || len(at) >= maxBindingDepth {
		return out
	}
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		if !rawjson.IsObject(m.Value) {
			return true
		}
		path := append(at[:len(at):len(at)], m.Name())
		raw, _ := rawjson.Get(m.Value, "x-mcp-header")
		if header, ok := rawjson.String(raw); ok && isToken(header) {
			out = append(out, binding{path: path, header: header})
		}
		out = appendBindings(out, m.Value, path)
		return true
	})
	return out
}

// paramHeaders returns the Mcp-Param headers of a call with these arguments.
func paramHeaders(bindings []binding, arguments json.RawMessage) map[string]string {
	if len(bindings) == 0 {
		return nil
	}
	out := make(map[string]string, len(bindings))
	for _, b := range bindings {
		value, ok := []byte(arguments), true
		for _, name := range b.path {
			if value, ok = rawjson.Get(value, name); !ok {
				break
			}
		}
		if text, can := headerValue(value); ok && can {
			out["Mcp-Param-"+b.header] = headerText(text)
		}
	}
	return out
}

// headerValue returns the text of a string, boolean or integer: no other value may travel as a header.
func headerValue(value []byte) (string, bool) {
	if text, ok := rawjson.String(value); ok {
		return text, true
	}
	if s := string(value); s == "true" || s == "false" {
		return s, true
	}
	const maxSafe = 1<<53 - 1
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxSafe {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}

// headerText encodes text for a header: as it is where it is printable ASCII without outer blanks, otherwise in the
// protocol's base64 form.
func headerText(text string) string {
	const prefix, suffix = "=?base64?", "?="
	plain := text == strings.Trim(text, " \t") && !(strings.HasPrefix(text, prefix) && strings.HasSuffix(text, suffix))
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= 0x20 && text[i] <= 0x7e
	}
	if plain {
		return text
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(text)) + suffix
}

// nameText encodes a tool's name for the Mcp-Name header: as it is where a header can hold it, which is what servers
// that use the SDK compare with the body.
func nameText(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == 0x7f {
			return headerText(name)
		}
	}
	if name != strings.Trim(name, " ") {
		return headerText(name)
	}
	return name
}

// isToken reports whether name can be part of a header's name.
func isToken(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return !isTokenRune(r) }) < 0
}
