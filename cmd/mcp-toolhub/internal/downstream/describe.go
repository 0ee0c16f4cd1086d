package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// describe returns a receiving middleware for the SDK's server. It writes the capabilities and instructions of the caller's
// surface into the results of initialize and server/discover.
func (v *surfaces) describe(profile string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if err != nil {
				return res, err
			}
			switch res := res.(type) {
			case *mcp.InitializeResult:
				client := tool.Client{ProtocolVersion: res.ProtocolVersion}
				if p, ok := req.GetParams().(*mcp.InitializeParams); ok && p != nil && p.ClientInfo != nil {
					client.Name, client.Version = p.ClientInfo.Name, p.ClientInfo.Version
				}
				res.Capabilities, res.Instructions = v.description(profile, client)
				return initializeResult{res, v.declared(profile, client)}, nil
			case *mcp.DiscoverResult:
				client := tool.Client{ProtocolVersion: modernVersion}
				if p := req.GetParams(); p != nil {
					if info, ok := p.GetMeta()[mcp.MetaKeyClientInfo].(map[string]any); ok {
						client.Name, _ = info["name"].(string)
						client.Version, _ = info["version"].(string)
					}
				}
				res.Capabilities, res.Instructions = v.description(profile, client)
				res.TTLMs, res.CacheScope = 0, "private" // as in lists: it is a matter of who asks, and of what servers do
				return discoverResult{res, v.declared(profile, client)}, nil
			}
			return res, nil
		}
	}
}

func (v *surfaces) description(profile string, client tool.Client) (*mcp.ServerCapabilities, string) {
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	surface, err := v.deps.Surfaces.Surface(profile, tool.Actor{Client: client})
	if err != nil || surface.Features == nil {
		return caps, v.config().Instructions
	}
	able := v.abilities(surface)
	if able.Prompts {
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	if able.Resources {
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: able.Subscribe}
	}
	if able.Completions {
		caps.Completions = &mcp.CompletionCapabilities{}
	}
	if able.Logging {
		//lint:ignore SA1019 logging is deprecated from 2026-07-28 on and still a part of every revision: servers have it
		caps.Logging = &mcp.LoggingCapabilities{}
	}
	return caps, v.instructions(surface.Features)
}

// maxInstructions is how many characters of instructions a client gets: Claude Code cuts what comes after some 4,100.
const maxInstructions = 4000

// instructions returns what clients' models are told at the beginning: the sentence that names all servers, then the
// instructions of the config, then those of the servers.
func (v *surfaces) instructions(f *tool.Features) string {
	var parts []string
	for _, part := range []string{f.Headline, strings.TrimSpace(v.config().Instructions), f.Instructions} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "\n\n")
	if all := []rune(text); f.Headline != "" && len(all) > maxInstructions {
		text = string(all[:maxInstructions-1]) + "…"
	}
	return text
}

// initializeResult and discoverResult add capabilities to results of the SDK that it does not know, or would decode.
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

// declared returns the capabilities of a surface that the SDK does not know: tasks where the client's revision has them, and
// on a direct view what is experimental and what extends the protocol, as the server wrote it.
func (v *surfaces) declared(profile string, client tool.Client) (all []rawjson.Change) {
	surface, err := v.deps.Surfaces.Surface(profile, tool.Actor{Client: client})
	if err != nil {
		return nil
	}
	able, modern := v.abilities(surface), client.ProtocolVersion >= modernVersion
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

// tasksObject returns the capability "tasks" of 2025-11-25.
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
