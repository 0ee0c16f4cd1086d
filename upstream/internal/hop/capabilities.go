//lint:file-ignore SA1019 Servers of older revisions still use what 2026-07-28 deprecates.

package hop

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ClientCapabilities returns the capabilities of a client that the hub can honour for a server up
// to 2025-11-25. Experimental ones may need messages that the hub passes on to clients of one
// server alone.
func ClientCapabilities(says tool.Hop) *mcp.ClientCapabilities {
	c, raw := &mcp.ClientCapabilities{}, says.ClientCapabilities
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return c
	}
	if of, ok := Ability(raw, "sampling"); ok {
		c.Sampling = &mcp.SamplingCapabilities{}
		if _, ok := Ability(of, "tools"); ok {
			c.Sampling.Tools = &mcp.SamplingToolsCapabilities{}
		}
		if _, ok := Ability(of, "context"); ok {
			c.Sampling.Context = &mcp.SamplingContextCapabilities{}
		}
	}
	if of, ok := Ability(raw, "elicitation"); ok {
		c.Elicitation = &mcp.ElicitationCapabilities{}
		if _, ok := Ability(of, "form"); ok {
			c.Elicitation.Form = &mcp.FormElicitationCapabilities{}
		}
		if _, ok := Ability(of, "url"); ok {
			c.Elicitation.URL = &mcp.URLElicitationCapabilities{}
		}
	}
	if of, ok := Ability(raw, "roots"); ok {
		changes, _ := rawjson.Get(of, "listChanged")
		c.RootsV2 = &mcp.RootCapabilities{ListChanged: string(changes) == "true"}
	}
	c.Extensions = named(raw, "extensions")
	delete(c.Extensions, tool.TaskExtension) // of 2026-07-28: these servers have tasks of another kind
	if says.Direct {
		c.Experimental = named(raw, "experimental")
	}
	return c
}

// OffersAll reports whether the server may send requests of every kind.
func OffersAll(c *mcp.ClientCapabilities) bool {
	return c.Sampling != nil && c.Elicitation != nil && c.RootsV2 != nil
}

// OffersAny reports whether the server may send requests of any kind.
func OffersAny(c *mcp.ClientCapabilities) bool {
	return c.Sampling != nil || c.Elicitation != nil || c.RootsV2 != nil
}

// named returns those members of a capability that are objects; nil where there is none.
func named(capabilities json.RawMessage, name string) map[string]any {
	var all map[string]any
	object, _ := rawjson.Get(capabilities, name)
	_ = rawjson.Members(object, func(m rawjson.Member) bool {
		if rawjson.IsObject(m.Value) {
			if all == nil {
				all = make(map[string]any)
			}
			all[m.Name()] = json.RawMessage(m.Value)
		}
		return true
	})
	return all
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

// AllCapabilities returns the capabilities of a client that can answer every request of a server.
func AllCapabilities() *mcp.ClientCapabilities {
	return &mcp.ClientCapabilities{
		Sampling: &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
		Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{},
			URL: &mcp.URLElicitationCapabilities{}},
		RootsV2: &mcp.RootCapabilities{},
	}
}
