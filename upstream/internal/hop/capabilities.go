package hop

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// AllCapabilities are those of a client that can answer every request of a server.
const AllCapabilities = `{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`

// ClientCapabilities returns the capabilities of a client that the hub can honour for a server up
// to 2025-11-25. Experimental ones may need messages that the hub passes on to clients of one
// server alone.
func ClientCapabilities(says tool.Hop) json.RawMessage {
	out, raw := []byte("{"), says.ClientCapabilities
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return json.RawMessage("{}")
	}
	for _, names := range [][]string{{"sampling", "tools", "context"}, {"elicitation", "form", "url"}} {
		name, parts := names[0], names[1:]
		if of, ok := Ability(raw, name); ok {
			kept := []byte("{")
			for _, part := range parts {
				if _, ok := Ability(of, part); ok { // what the client says inside is not promised
					kept = rawjson.AppendMember(kept, part, []byte("{}"))
				}
			}
			out = rawjson.AppendMember(out, name, append(kept, '}'))
		}
	}
	if of, ok := Ability(raw, "roots"); ok {
		roots := "{}"
		if changes, _ := rawjson.Get(of, "listChanged"); string(changes) == "true" {
			roots = `{"listChanged":true}`
		}
		out = rawjson.AppendMember(out, "roots", []byte(roots))
	}
	if of, ok := Ability(raw, "extensions"); ok { // these servers have tasks of another kind
		out = rawjson.AppendMember(out, "extensions", objects(of, tool.TaskExtension))
	}
	if of, ok := Ability(raw, "experimental"); ok && says.Direct {
		out = rawjson.AppendMember(out, "experimental", objects(of, ""))
	}
	return append(out, '}')
}

// objects returns object with those of its members alone that are objects, and not named except.
func objects(object []byte, except string) []byte {
	kept, _, err := rawjson.DeleteFunc(object, func(m rawjson.Member) bool {
		return !rawjson.IsObject(m.Value) || m.Name() == except
	})
	if err != nil {
		return []byte("{}") // never: it is well-formed
	}
	return kept
}

// Ability returns a member of capabilities. ok is false unless it is an object.
func Ability(object []byte, name string) ([]byte, bool) {
	value, ok := rawjson.Get(object, name)
	return value, ok && rawjson.IsObject(value)
}

// carried returns h with the capabilities that the hub can honour in a request to a server of
// 2026-07-28, where each request names those of its client. asks says that the client can answer
// requests at all. The rest stays as the client wrote it.
func carried(h tool.Hop, asks bool) tool.Hop {
	raw := h.ClientCapabilities
	h.ClientCapabilities = nil
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return h
	}
	var roots, extensions []byte
	kept, _, err := rawjson.DeleteFunc(raw, func(m rawjson.Member) bool {
		switch m.Name() {
		case "tasks": // of 2025-11-25: the client's own tasks, which the hub does not offer
			return true
		case "sampling", "elicitation":
			return !asks
		case "roots":
			roots = m.Value
			return !asks
		case "extensions":
			extensions = m.Value
		}
		return false
	})
	if err == nil && asks && roots != nil {
		kept, err = without(kept, "roots", roots, "listChanged")
	}
	if err == nil && h.Revision < Modern && extensions != nil { // which had tasks of another kind
		kept, err = without(kept, "extensions", extensions, tool.TaskExtension)
	}
	if err == nil {
		h.ClientCapabilities = kept
	}
	return h
}

// without returns object, whose member of that name has value, without a part of that; the same where there is none.
func without(object []byte, name string, value []byte, part string) ([]byte, error) {
	if !rawjson.IsObject(value) {
		return object, nil
	}
	rest, some, err := rawjson.Delete(value, part)
	if err != nil || !some {
		return object, err
	}
	return rawjson.Set(object, name, rest)
}
