package downstream

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// abilities are what the surface can do besides tools. A server that has not been up yet may turn out to be able to do
// anything, and what a client is told at its beginning holds to the end of its session.
func (s *Server) abilities(surface *tool.Surface) tool.Abilities {
	f := surface.Features
	if f == nil {
		return tool.Abilities{}
	}
	able := f.Abilities
	for _, st := range s.deps.Statuses() {
		if !st.Known && (st.State == tool.ServerStarting || st.State == tool.ServerBackoff) && slices.Contains(f.Servers, st.Server) {
			able = able.Or(tool.Abilities{Prompts: true, Resources: true, Subscribe: true, Completions: true, Logging: true,
				Tasks: tool.Tasks{Calls: true, List: true, Cancel: true}, TaskExtension: true})
		}
	}
	return able
}

// describe is a receiving middleware of the SDK's server: it says in the results of initialize and server/discover what
// the caller's surface can do, and what its servers have to say.
func (s *Server) describe(profile string) mcp.Middleware {
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
				res.Capabilities, res.Instructions = s.description(profile, client)
				return initializeResult{res, s.declared(profile, client)}, nil
			case *mcp.DiscoverResult:
				client := tool.Client{ProtocolVersion: modernVersion}
				if p := req.GetParams(); p != nil {
					if info, ok := p.GetMeta()[mcp.MetaKeyClientInfo].(map[string]any); ok {
						client.Name, _ = info["name"].(string)
						client.Version, _ = info["version"].(string)
					}
				}
				res.Capabilities, res.Instructions = s.description(profile, client)
				res.TTLMs, res.CacheScope = 0, "private" // as in lists: it is a matter of who asks, and of what servers do
				return discoverResult{res, s.declared(profile, client)}, nil
			}
			return res, nil
		}
	}
}

func (s *Server) description(profile string, client tool.Client) (*mcp.ServerCapabilities, string) {
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	surface, err := s.deps.Surfaces.Surface(profile, tool.Actor{Client: client})
	if err != nil || surface.Features == nil {
		return caps, s.cfg().Instructions
	}
	able := s.abilities(surface)
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
	return caps, s.instructions(surface.Features)
}

// maxInstructions is how many characters of instructions a client gets: Claude Code cuts what comes after some 4,100.
const maxInstructions = 4000

// instructions are what clients' models are told at the beginning: the sentence that names all servers, what the config
// says, and what the servers say.
func (s *Server) instructions(f *tool.Features) string {
	var parts []string
	for _, part := range []string{f.Headline, strings.TrimSpace(s.cfg().Instructions), f.Instructions} {
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
