package downstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// pageSize bounds one page of a list. It is large because some clients read only the first page.
const pageSize = 2000

// listedItems holds the tools, prompts, resources or templates of a surface, ready to be listed.
type listedItems struct {
	member      string // of the result
	length      int
	name        func(i int) string // unlike that of every other one, and stable
	declaration func(i int) json.RawMessage
	surface     *tool.Surface // whose Listed these are, and nothing besides; nil for others
}

// listing returns the items of the list that method reads.
func (v *surfaceReader) listing(p *peer, method string, surface *tool.Surface) listedItems {
	var f tool.Features
	if surface.Features != nil {
		f = *surface.Features
	}
	switch method {
	case methodPromptsList:
		return featureListing("prompts", f.Prompts)
	case methodResourcesList:
		return featureListing("resources", f.Resources)
	case methodTemplatesList:
		return featureListing("resourceTemplates", f.Templates)
	}
	listed, whose := surface.Listed, surface
	if !p.modern && p.caller != nil {
		// On 2026-07-28 no list changes because of another request; before, a session has a list of its own.
		p.caller.give(surface)
		if besides := p.caller.listedBesides(surface); len(besides) > 0 {
			listed, whose = slices.Concat(listed, besides), nil
		}
	} else {
		surface.Give()
	}
	return listedItems{member: "tools", length: len(listed), surface: whose,
		name:        func(i int) string { return string(listed[i].Tool.Name) },
		declaration: func(i int) json.RawMessage { return v.declaration(p, listed[i]) }}
}

func featureListing(member string, all []tool.Feature) listedItems {
	return listedItems{member: member, length: len(all),
		name:        func(i int) string { return all[i].Server + " " + all[i].Native },
		declaration: func(i int) json.RawMessage { return all[i].Declaration }}
}

// list serves the lists, from the surface's raw declarations.
func (v *surfaceReader) list(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	surface, refusal := v.forList(ctx, p, m.Method)
	if refusal != nil {
		return refusal
	}
	if ctx.Err() != nil && r.abandon(ctx) {
		return nil
	}
	l := v.listing(p, m.Method, surface)
	from, refusal := l.start(m.Params)
	if refusal != nil {
		return refusal
	}
	to := min(from+pageSize, l.length)
	page := l.page(p.modern, from, to)
	rest := []byte(nil)
	if to < l.length {
		rest = append(append(rest, `,"nextCursor":`...), rawjson.Quote(l.cursorAfter(to-1))...)
	}
	if p.modern {
		ttl, scope := v.cacheHints(p, surface, m.Method)
		rest = fmt.Appendf(rest, `,"ttlMs":%d,"cacheScope":%q,"resultType":"complete","_meta":{%q:%s}`, ttl.Milliseconds(), scope,
			mcp.MetaKeyServerInfo, v.serverInfo)
	}
	page.parts = append(page.parts, append(rest, '}'))
	r.answer(page)
	return nil
}

// page returns the beginning of a result, with the items from one to before another. The whole list of a surface is put together
// once. That of one which has several pages is not: who lists that many tools would not want them in memory twice.
func (l listedItems) page(modern bool, from, to int) pieces {
	complete := l.surface != nil && from == 0 && to == l.length
	if complete {
		if text := l.surface.ListText(modern); text != nil {
			return pieces{parts: [][]byte{text}, oneLine: true}
		}
	}
	parts, comma := append(make([][]byte, 0, 2*(to-from)+3), []byte(`{"`+l.member+`":[`)), []byte(",")
	for i := from; i < to; i++ {
		if i > from {
			parts = append(parts, comma)
		}
		parts = append(parts, l.declaration(i))
	}
	out := pieces{parts: append(parts, []byte("]"))}
	if !complete {
		return out
	}
	text := out.joined()
	if out = whole(text); !hasBreak(text) {
		out.oneLine = true
		l.surface.KeepListText(modern, text)
	}
	return out
}

// declaration returns the tool as this client can take it. Before 2026-07-28 an output schema describes an object, and
// clients refuse a whole list for another one. So that is left out for them.
func (v *surfaceReader) declaration(p *peer, l tool.Listed) json.RawMessage {
	if p.modern || l.Tool.OutputSchema == nil {
		return l.Declaration
	}
	if kind, ok := rawjson.Get(l.Tool.OutputSchema, "type"); ok && string(kind) == `"object"` {
		return l.Declaration
	}
	without, _, err := rawjson.Delete(l.Declaration, "outputSchema")
	if err != nil {
		v.deps.Logger.Error("declaration cannot be adapted", "tool", l.Tool.Name, "error", err)
		return l.Declaration
	}
	return without
}

// cursorAfter returns the cursor of the page after i. It names what stands there, not a position: so it stays true when
// others come and go between two pages.
func (l listedItems) cursorAfter(i int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after:" + l.name(i)))
}

// start returns the index at which the page that params ask for begins.
func (l listedItems) start(params json.RawMessage) (int, *tool.RPCError) {
	raw, ok := rawjson.Get(params, "cursor")
	if !ok || rawjson.IsNull(raw) {
		return 0, nil
	}
	cursor, ok := rawjson.String(raw)
	switch {
	case !ok:
		return 0, invalidParams("cursor must be a string")
	case cursor == "":
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

// cacheHints returns for how long the list of 2026-07-28 that method reads may be kept, and by whom: no more than each server
// said whose list was merged. What the hub itself adds changes with its config alone. A list that others see differently, or
// not at all, is private.
func (v *surfaceReader) cacheHints(p *peer, surface *tool.Surface, method string) (ttl time.Duration, scope string) {
	if v.deps.Fresh == nil || surface.Features == nil {
		return 0, "private"
	}
	var all tool.Freshness
	merged := 0
	for _, server := range surface.Features.Servers {
		f, ok := v.deps.Fresh(server, method)
		switch {
		case !ok:
			continue
		case merged == 0:
			all = f
		default:
			all = all.And(f)
		}
		merged++
	}
	now, err := v.deps.Surfaces.Surface(p.profile, p.actor)
	if err != nil || now != surface || merged == 0 {
		return 0, "private" // what servers say may be of a later list
	}
	scope = "private"
	if all.Public && !surface.ForClient && len(v.config().Auth.Tokens) == 0 {
		scope = "public"
	}
	return max(0, time.Until(all.Until)), scope
}
