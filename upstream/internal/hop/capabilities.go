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
	if h.Revision < Modern {
		raw = withoutTasks(raw)
	}
	kept, _, err := rawjson.DeleteFunc(raw, func(m rawjson.Member) bool {
		switch m.Name() {
		case "tasks": // of 2025-11-25: the client's own tasks, which the hub does not offer
			return true
		case "sampling", "elicitation", "roots":
			return !asks
		}
		return false
	})
	if err != nil {
		return h
	}
	if roots, ok := Ability(kept, "roots"); ok {
		if still, changes, err := rawjson.Delete(roots, "listChanged"); err == nil && changes {
			if kept, err = rawjson.Set(kept, "roots", still); err != nil {
				return h
			}
		}
	}
	h.ClientCapabilities = kept
	return h
}

// withoutTasks removes the extension for tasks of 2026-07-28 from the capabilities of a client of an older revision.
func withoutTasks(capabilities json.RawMessage) json.RawMessage {
	extensions, ok := Ability(capabilities, "extensions")
	if !ok {
		return capabilities
	}
	kept, some, err := rawjson.Delete(extensions, tool.TaskExtension)
	if err != nil || !some {
		return capabilities
	}
	out, err := rawjson.Set(capabilities, "extensions", kept)
	if err != nil {
		return capabilities
	}
	return out
}
