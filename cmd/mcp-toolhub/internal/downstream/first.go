package downstream

import (
	"context"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// awaitLists waits for the first lists of the servers of surface, which is what p sees, and returns what p sees then.
func (s *Server) awaitLists(ctx context.Context, p peer, surface *tool.Surface) (*tool.Surface, *tool.RPCError) {
	if s.deps.FirstLists == nil {
		return surface, nil
	}
	s.deps.FirstLists(ctx, surface)
	return s.surface(p)
}

// surfaceToList is what p sees, for a list of that method. Some clients list tools once: a list without the tools of servers
// that are still starting is all that they would ever know. Where tool_search is listed they find those tools later, so
// nobody waits.
func (s *Server) surfaceToList(ctx context.Context, p peer, method string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := s.surface(p)
	if refusal != nil || method != methodToolsList || slices.ContainsFunc(surface.Listed, func(l tool.Listed) bool { return l.Tool.Name == tool.MetaSearch }) {
		return surface, refusal
	}
	return s.awaitLists(ctx, p, surface)
}

// surfaceWith is what p sees, for a call of name. A name that stands for nothing may be that of a tool whose server has not
// listed yet. A tool that is hidden from p is waited for like one that nobody has: the time tells no difference.
func (s *Server) surfaceWith(ctx context.Context, p peer, name string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := s.surface(p)
	if refusal != nil {
		return nil, refusal
	}
	if _, known := surface.Resolve(name); known {
		return surface, nil
	}
	return s.awaitLists(ctx, p, surface)
}
