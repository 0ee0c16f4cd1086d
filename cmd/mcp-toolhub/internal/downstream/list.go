package downstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// pageSize is how much one page of a list holds. Some clients read the first page only, so it is large.
const pageSize = 2000

// listing is one kind of thing that a surface offers, ready to be listed.
type listing struct {
	member      string // of the result
	length      int
	name        func(i int) string // unlike that of every other one, and stable
	declaration func(i int) json.RawMessage
}

func toolListing(s *Server, p peer, surface *tool.Surface) listing {
	listed := surface.Listed
	if !p.modern && p.caller != nil {
		// On 2026-07-28 no list changes because of another request; before, a session has a list of its own.
		p.caller.give(surface)
		listed = slices.Concat(listed, p.caller.listedBesides(surface))
	} else {
		surface.Give()
	}
	return listing{member: "tools", length: len(listed),
		name:        func(i int) string { return string(listed[i].Tool.Name) },
		declaration: func(i int) json.RawMessage { return s.declaration(p, listed[i]) }}
}

func promptListing(_ *Server, _ peer, surface *tool.Surface) listing {
	return featureListing("prompts", surface, func(f *tool.Features) []tool.Feature { return f.Prompts })
}

func resourceListing(_ *Server, _ peer, surface *tool.Surface) listing {
	return featureListing("resources", surface, func(f *tool.Features) []tool.Feature { return f.Resources })
}

func templateListing(_ *Server, _ peer, surface *tool.Surface) listing {
	return featureListing("resourceTemplates", surface, func(f *tool.Features) []tool.Feature { return f.Templates })
}

func featureListing(member string, surface *tool.Surface, of func(*tool.Features) []tool.Feature) listing {
	var all []tool.Feature
	if surface.Features != nil {
		all = of(surface.Features)
	}
	return listing{member: member, length: len(all),
		name:        func(i int) string { return all[i].Server + " " + all[i].Native },
		declaration: func(i int) json.RawMessage { return all[i].Declaration }}
}

// list serves the lists, from the surface's raw declarations.
func (s *Server) list(ctx context.Context, p peer, m message, r replier, kind func(*Server, peer, *tool.Surface) listing) {
	surface, refusal := s.surfaceToList(ctx, p, m.method)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	if ctx.Err() != nil && r.abandon(ctx) {
		return
	}
	l := kind(s, p, surface)
	from, refusal := l.start(m.params)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	to := min(from+pageSize, l.length)
	size, declarations := 64, make([]json.RawMessage, 0, to-from)
	for i := from; i < to; i++ {
		declarations = append(declarations, l.declaration(i))
		size += len(declarations[i-from]) + 1
	}
	out := append(make([]byte, 0, size+len(s.serverInfo)+128), `{"`+l.member+`":[`...)
	for i, d := range declarations {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, d...)
	}
	out = append(out, ']')
	if to < l.length {
		out = append(append(out, `,"nextCursor":`...), rawjson.Quote(l.cursorAfter(to-1))...)
	}
	if p.modern {
		out = s.cacheHints(p, surface, m.method).append(out)
		out = append(out, `,"resultType":"complete","_meta":{`...)
		out = append(append(out, rawjson.Quote(mcp.MetaKeyServerInfo)...), ':')
		out = append(append(out, s.serverInfo...), '}')
	}
	r.answer(whole(append(out, '}')))
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

// cursorAfter is the cursor of the page that follows the one ending in i. It names what stands there, not a position, so
// that it stays true when others come and go between two pages.
func (l listing) cursorAfter(i int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after:" + l.name(i)))
}

// start is the index of the first one of the page that params ask for.
func (l listing) start(params json.RawMessage) (int, *tool.RPCError) {
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
		for i := range l.length {
			if "after:"+l.name(i) == string(text) {
				return i + 1, nil
			}
		}
	}
	return 0, invalidParams(fmt.Sprintf("cursor %q is not known: list again from the start", cursor))
}
