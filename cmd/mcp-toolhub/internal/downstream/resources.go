package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ownedResource reads the URI out of a request about one resource. It finds the server of the
// resource, and the URI as that knows it.
func (v *surfaceReader) ownedResource(ctx context.Context, p *peer, m *jsonrpc.Message) (uri, server, native string,
	refusal *tool.RPCError) {
	if uri, refusal = textParam(m, "uri"); refusal != nil {
		return "", "", "", refusal
	}
	refusal = v.find(ctx, p, func(s *tool.Surface) (none *tool.RPCError) {
		server, native, none = ownerOf(p, s, uri)
		return none
	})
	return uri, server, native, refusal
}

// ownerOf finds the server of a resource and the URI by which that knows it: in the lists and
// templates of the surface, or else in what results have told this caller.
func ownerOf(p *peer, surface *tool.Surface, uri string) (server, native string, refusal *tool.RPCError) {
	f := surface.Features
	if f == nil {
		return "", "", unknownResource(p, uri)
	}
	servers, native := f.Owner(uri)
	if len(servers) == 0 && strings.HasPrefix(uri, uiScheme) {
		servers = pageOwners(surface, uri)
	} else if len(servers) == 0 {
		servers = slices.DeleteFunc(p.caller.linked(uri),
			func(server string) bool { return !slices.Contains(f.Servers, server) })
	}
	switch {
	case len(servers) == 1:
		return servers[0], native, nil
	case len(servers) > 1:
		form := "toolhub://SERVER/"
		if strings.HasPrefix(uri, uiScheme) {
			form = "ui://toolhub/SERVER/"
		}
		return "", "", invalidParams(fmt.Sprintf("resource %q is offered by the servers %q: ask for it by the %s URI "+
			"that resources/list or resources/templates/list shows", uri, servers, form))
	case direct(p.profile) && len(f.Servers) == 1:
		return f.Servers[0], uri, nil // it knows best what it has
	}
	return "", "", unknownResource(p, uri)
}

// templateOf finds the server of a resource template, or of a resource.
func templateOf(p *peer, surface *tool.Surface, uri string) (server, native string, refusal *tool.RPCError) {
	var found []*tool.Feature
	if surface.Features != nil {
		for i := range surface.Features.Templates {
			t := &surface.Features.Templates[i]
			if t.Shown == uri {
				return t.Server, t.Native, nil
			}
			if t.Native == uri {
				found = append(found, t)
			}
		}
	}
	switch len(found) {
	case 0:
		return ownerOf(p, surface, uri)
	case 1:
		return found[0].Server, found[0].Native, nil
	}
	return "", "", invalidParams(fmt.Sprintf("resource template %q is offered by the servers %q and %q: ask for "+
		"it by the "+
		"toolhub://SERVER/ template that resources/templates/list shows", uri, found[0].Server, found[1].Server))
}

// textParam reads a parameter that must be a non-empty string.
func textParam(m *jsonrpc.Message, name string) (string, *tool.RPCError) {
	value, _ := m.Object.Get(name)
	text, ok := rawjson.String(value)
	if !ok || text == "" {
		return "", invalidParams(fmt.Sprintf("%q must be a non-empty string", name))
	}
	return text, nil
}

// uiScheme begins the URIs of pages that tools bring along. Such a page acts in its server's name:
// no other server may put one in its place.
const uiScheme = "ui://"

// codeResourceNotFound is the error code for an unknown resource before 2026-07-28. Later revisions
// use that of invalid params.
const codeResourceNotFound = -32002

func unknownResource(p *peer, uri string) *tool.RPCError {
	data := append([]byte(`{"uri":`), rawjson.Quote(uri)...)
	e := &tool.RPCError{Code: codeResourceNotFound,
		Message: fmt.Sprintf("resource %q is not found: list the resources again", uri),
		Data:    append(data, '}')}
	if p.modern {
		e.Code = tool.CodeInvalidParams
	}
	return e
}

// pageOwners returns the servers whose tools bring along the page at uri.
func pageOwners(surface *tool.Surface, uri string) []string {
	var servers []string
	for _, l := range surface.Listed {
		meta, _ := rawjson.Get(l.Declaration(), "_meta")
		ui, _ := rawjson.Get(meta, "ui")
		raw, ok := rawjson.Get(ui, "resourceUri")
		if !ok {
			raw, _ = rawjson.Get(meta, "ui/resourceUri") // as it was written first
		}
		if page, ok := rawjson.String(raw); ok && page == uri && !slices.Contains(servers, l.Tool.Server) {
			servers = append(servers, l.Tool.Server)
		}
	}
	return servers
}

// StoredResults reads stored results, as resource contents under uri. free is called once those
// were sent. The error is ErrNoResult where the caller has none of that id, or a *tool.Failure.
type StoredResults func(caller tool.Actor, id tool.ResultID, uri string) (contents json.RawMessage, free func(),
	err error)

// ErrNoResult says that there is no such result for the caller.
var ErrNoResult = errors.New("no such result")

// readStored serves resources/read of a stored result. What the caller may not read cannot be told
// from what is not there.
func (f *forwarder) readStored(ctx context.Context, p *peer, m *jsonrpc.Message, r replier, uri string) *tool.RPCError {
	id := strings.TrimPrefix(uri, tool.ResultURI(""))
	contents, free, err := f.deps.StoredResults(p.actor, tool.ResultID(id), uri)
	if errors.Is(err, ErrNoResult) {
		return unknownResource(p, uri)
	}
	if err != nil {
		f.deps.Logger.Warn("a stored result cannot be read", "result", id, "error", err)
		return f.errorOf(err)
	}
	defer free()
	const before = `{"contents":[`
	around, err := f.resultOf(ctx, p, answeredRequest{method: m.Method}, []byte(before+"]}"))
	if err != nil {
		return f.errorOf(err)
	}
	r.answer(pieces{parts: [][]byte{[]byte(before), contents, around[len(before):]}, disk: f.deps.Spool, free: free})
	return nil
}

// isStored reports whether a URI is that of a stored result.
func (f *forwarder) isStored(uri string) bool {
	return f.deps.StoredResults != nil && strings.HasPrefix(uri, tool.ResultURI(""))
}
