package downstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
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
}

// listing returns the items of the list that method reads, among resources with the caller's own.
func (v *surfaceReader) listing(p *peer, method string, surface *tool.Surface, own []tool.Feature) listedItems {
	var f tool.Features
	if surface.Features != nil {
		f = *surface.Features
	}
	switch method {
	case tool.MethodPromptsList:
		return featureListing("prompts", f.Prompts)
	case tool.MethodResourcesList:
		return featureListing("resources", append(slices.Clip(f.Resources), own...))
	case tool.MethodTemplatesList:
		return featureListing("resourceTemplates", f.Templates)
	}
	listed := surface.Listed
	if !p.modern {
		// On 2026-07-28 no list changes because of another request; before, a session has a list of its own.
		p.caller.give(surface)
		listed = slices.Concat(listed, p.caller.listedBesides(surface))
	} else {
		surface.Give()
	}
	return listedItems{member: "tools", length: len(listed),
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
	var own []tool.Feature
	if m.Method == tool.MethodResourcesList && surface.Features != nil {
		own = v.personalResources(ctx, p, surface.Features)
	}
	l := v.listing(p, m.Method, surface, own)
	from, refusal := l.start(m.Params)
	if refusal != nil {
		return refusal
	}
	to := min(from+pageSize, l.length)
	page, rest := l.page(from, to), []byte(nil)
	if to < l.length {
		rest = append(append(rest, `,"nextCursor":`...), rawjson.Quote(l.cursorAfter(to-1))...)
	}
	if p.modern {
		ttl, scope := v.cacheHints(p, surface, m.Method)
		rest = fmt.Appendf(rest, `,"ttlMs":%d,"cacheScope":%q,"resultType":"complete","_meta":{%q:%s}`,
			ttl.Milliseconds(), scope,
			mcp.MetaKeyServerInfo, v.serverInfo)
	}
	r.answer(pieces{parts: append(page, append(rest, '}'))})
	return nil
}

// page returns the beginning of a result, with the items from one to before another.
func (l listedItems) page(from, to int) [][]byte {
	parts, comma := append(make([][]byte, 0, 2*(to-from)+3), []byte(`{"`+l.member+`":[`)), []byte(",")
	for i := from; i < to; i++ {
		if i > from {
			parts = append(parts, comma)
		}
		parts = append(parts, l.declaration(i))
	}
	return append(parts, []byte("]"))
}

// declaration returns the tool as this client can take it. Before 2026-07-28 an output schema describes an object, and
// clients refuse a whole list for another one. So that is left out for them, and for clients that
// get no structuredContent of the tool.
func (v *surfaceReader) declaration(p *peer, l tool.Listed) json.RawMessage {
	if l.Tool.OutputSchema == nil {
		return l.Declaration()
	}
	kind, _ := rawjson.Get(l.Tool.OutputSchema, "type")
	if (p.modern || string(kind) == `"object"`) && !(l.Tool.TextTells && p.actor.Client.Habits().ShowsBoth) {
		return l.Declaration()
	}
	without, _, err := rawjson.Delete(l.Declaration(), "outputSchema")
	if err != nil {
		v.deps.Logger.Error("declaration cannot be adapted", "tool", l.Tool.Name, "error", err)
		return l.Declaration()
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

// cacheHints returns for how long the list of 2026-07-28 that method reads may be kept, and by
// whom: no more than each server said whose list was merged. What the hub itself adds changes with
// its config alone. A list that others see differently, or not at all, is private.
func (v *surfaceReader) cacheHints(p *peer, surface *tool.Surface, method string) (ttl time.Duration, scope string) {
	if surface.Features == nil {
		return 0, "private"
	}
	var all tool.Freshness
	merged := 0
	for _, server := range surface.Features.Servers {
		f, ok := v.deps.Surfaces.Fresh(server, method)
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
	if all.Public && !surface.ForClient && len(v.cfg().Auth.Tokens) == 0 {
		scope = "public"
	}
	return max(0, time.Until(all.Until)), scope
}

const (
	maxPersonalResources = 10_000  // of one server's list for one caller
	maxPersonalBytes     = 8 << 20 // in it
)

// personalWithin bounds the time that servers may take for it: the client does not wait for one that hangs.
const personalWithin = 10 * time.Second

// personalResources returns the resources of the servers that each caller signs in to, as they list
// them to the caller of p. No catalog holds them: a server may list somebody's documents.
func (v *surfaceReader) personalResources(ctx context.Context, p *peer, f *tool.Features) []tool.Feature {
	servers := slices.DeleteFunc(v.deps.Servers.Personal(),
		func(server string) bool { return !slices.Contains(f.Servers, server) })
	if len(servers) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, personalWithin)
	defer cancel()
	listed := make([][]tool.Feature, len(servers))
	var listing sync.WaitGroup
	for i, server := range servers {
		listing.Go(func() {
			var err error
			if listed[i], err = v.resourcesOf(limited, p, server); err != nil {
				v.deps.Logger.Debug("a server does not list its resources to a caller", "server", server, "error", err)
			}
		})
	}
	listing.Wait()
	return slices.Concat(listed...)
}

// resourcesOf lists the resources of one server. With an error it returns those of the pages before.
func (v *surfaceReader) resourcesOf(ctx context.Context, p *peer, server string) (all []tool.Feature, err error) {
	size := 0
	var bad error
	err = v.pagesOf(ctx, p, server, tool.MethodResourcesList, func(page *tool.Reply) (more bool) {
		if size += len(page.Result); size > maxPersonalBytes {
			bad = fmt.Errorf("the list has more than %d bytes", maxPersonalBytes)
			return false
		}
		resources, _ := rawjson.Get(page.Result, "resources")
		bad = rawjson.Elements(resources, func(one []byte) bool {
			uri, ok := rawjson.GetString(one, "uri")
			if !ok || uri == "" {
				return true
			}
			resource := tool.Feature{Offer: tool.Offer{Server: server, Native: uri}, Shown: uri,
				Declaration: bytes.Clone(one)}
			if !direct(p.profile) {
				resource.Shown = v.deps.Surfaces.ResourceURI(server, uri)
				// it was read a moment ago
				resource.Declaration, _ = rawjson.Set(resource.Declaration, "uri", rawjson.Quote(resource.Shown))
			}
			all = append(all, resource)
			return len(all) < maxPersonalResources
		})
		return bad == nil && len(all) < maxPersonalResources
	})
	return all, cmp.Or(bad, err)
}

// maxPages bounds the pages of one server's list that are read for one client.
const maxPages = 100

// pagesOf gives read the pages of a server's list, until it returns false.
func (v *surfaceReader) pagesOf(ctx context.Context, p *peer, server, method string,
	read func(page *tool.Reply) (more bool)) error {
	params, seen := json.RawMessage(`{}`), []string{}
	for range maxPages {
		page, err := v.deps.Servers.Forward(ctx, &tool.Request{Server: server, Method: method, Params: params,
			Hop: p.hop, Session: p.session})
		if err != nil {
			return err
		}
		more := read(&page)
		next, _ := rawjson.GetString(page.Result, "nextCursor")
		if page.Free != nil {
			page.Free()
		}
		if !more || next == "" || slices.Contains(seen, next) {
			return nil
		}
		seen = append(seen, next)
		params = fmt.Appendf(nil, `{"cursor":%s}`, rawjson.Quote(next))
	}
	return nil
}
