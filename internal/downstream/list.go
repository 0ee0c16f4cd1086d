package downstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// pageTools is how many tools one page of tools/list holds. Some clients read the first page only, so it is large.
const pageTools = 2000

// list serves tools/list from the surface's raw declarations.
func (s *Server) list(p peer, m message, r replier) {
	surface, err := s.deps.Surfaces.Surface(p.profile, p.actor.Client)
	if err != nil {
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()})
		return
	}
	from, refusal := pageStart(surface, m.params)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	to := min(from+pageTools, len(surface.Listed))
	size := 64
	for _, l := range surface.Listed[from:to] {
		size += len(l.Declaration) + 1
	}
	out := append(make([]byte, 0, size+len(s.serverInfo)+128), `{"tools":[`...)
	for i, l := range surface.Listed[from:to] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, s.declaration(p, l)...)
	}
	out = append(out, ']')
	if to < len(surface.Listed) {
		out = append(append(out, `,"nextCursor":`...), rawjson.Quote(cursorAfter(surface.Listed[to-1]))...)
	}
	if p.modern {
		// The list follows what upstream servers do, so it is fresh for no time at all, and it may differ by identity.
		out = append(out, `,"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{`...)
		out = append(append(out, rawjson.Quote(mcp.MetaKeyServerInfo)...), ':')
		out = append(append(out, s.serverInfo...), '}')
	}
	r.answer(pieces{append(out, '}')})
}

// declaration is the tool as this client can take it. Before 2026-07-28 an output schema describes an object: a client of
// those revisions refuses the whole list for one that does not, so it is left out there.
func (s *Server) declaration(p peer, l tool.Listed) json.RawMessage {
	if p.modern || l.Tool.OutputSchema == nil {
		return l.Declaration
	}
	if kind, ok := rawjson.Get(l.Tool.OutputSchema, "type"); ok && string(kind) == `"object"` {
		return l.Declaration
	}
	without, _, err := rawjson.Delete(l.Declaration, "outputSchema")
	if err != nil {
		s.deps.Logger.Error("declaration cannot be adapted", "tool", l.Tool.Name, "error", err)
		return l.Declaration
	}
	return without
}

// cursorAfter is the cursor of the page that follows l. It names the tool, not a position, so that it stays true when
// other tools come and go between two pages.
func cursorAfter(l tool.Listed) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after:" + l.Tool.Name))
}

// pageStart is the index of the first tool of the page that params ask for.
func pageStart(surface *tool.Surface, params json.RawMessage) (int, *tool.RPCError) {
	raw, ok := rawjson.Get(params, "cursor")
	if !ok || rawjson.IsNull(raw) {
		return 0, nil
	}
	cursor, ok := rawjson.String(raw)
	if !ok {
		return 0, invalidParams("cursor must be a string")
	}
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		for i, l := range surface.Listed {
			if "after:"+string(l.Tool.Name) == string(text) {
				return i + 1, nil
			}
		}
	}
	return 0, invalidParams(fmt.Sprintf("cursor %q is not known: list again from the start", cursor))
}
