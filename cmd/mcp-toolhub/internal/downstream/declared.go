package downstream

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// initializeResult and discoverResult are results of the SDK with capabilities that it does not know, or would decode.
type (
	initializeResult struct {
		*mcp.InitializeResult
		declared []rawjson.Change
	}
	discoverResult struct {
		*mcp.DiscoverResult
		declared []rawjson.Change
	}
)

// MarshalJSON implements json.Marshaler.
func (r initializeResult) MarshalJSON() ([]byte, error) {
	return withDeclared(r.InitializeResult, r.declared)
}

// MarshalJSON implements json.Marshaler.
func (r discoverResult) MarshalJSON() ([]byte, error) {
	return withDeclared(r.DiscoverResult, r.declared)
}

func withDeclared(result any, declared []rawjson.Change) ([]byte, error) {
	text, err := json.Marshal(result)
	if err != nil || len(declared) == 0 {
		return text, err
	}
	capabilities, _ := rawjson.Get(text, "capabilities")
	for _, c := range declared {
		if capabilities, err = rawjson.Set(capabilities, c.Name, c.Value); err != nil {
			return nil, fmt.Errorf("declare capability %q: %w", c.Name, err)
		}
	}
	return rawjson.Set(text, "capabilities", capabilities)
}

// declared are the capabilities of a surface that the SDK does not know: tasks where the client's revision has those of a
// server, and on a direct view what is experimental and what extends the protocol, as the server wrote it.
func (s *Server) declared(profile string, client tool.Client) (all []rawjson.Change) {
	surface, err := s.deps.Surfaces.Surface(profile, tool.Actor{Client: client})
	if err != nil {
		return nil
	}
	able, modern := s.abilities(surface), client.ProtocolVersion >= modernVersion
	extensions := "{}"
	if direct(profile) {
		if able.Experimental != "" {
			all = append(all, rawjson.Change{Name: "experimental", Value: []byte(able.Experimental)})
		}
		if able.Extensions != "" {
			extensions = able.Extensions
		}
	}
	_, has := rawjson.Get([]byte(extensions), tool.TaskExtension)
	text := []byte(extensions)
	switch {
	case has && !(modern && able.TaskExtension):
		text, _, err = rawjson.Delete(text, tool.TaskExtension)
	case !has && modern && able.TaskExtension:
		text, err = rawjson.Set(text, tool.TaskExtension, []byte("{}"))
	}
	if err == nil && !empty(text) {
		all = append(all, rawjson.Change{Name: "extensions", Value: text})
	}
	if t := able.Tasks; client.ProtocolVersion == tasksSince && t != (tool.Tasks{}) {
		all = append(all, rawjson.Change{Name: "tasks", Value: tasksObject(t)})
	}
	return all
}

// tasksObject is the capability "tasks" of 2025-11-25.
func tasksObject(t tool.Tasks) []byte {
	out := []byte("{")
	for _, m := range []struct {
		has    bool
		member string
	}{{t.List, `"list":{}`}, {t.Cancel, `"cancel":{}`}, {t.Calls, `"requests":{"tools":{"call":{}}}`}} {
		if !m.has {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, m.member...)
	}
	return append(out, '}')
}
