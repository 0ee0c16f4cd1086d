package namespace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// hub holds everything that all origins offer at one moment. It is immutable.
type hub struct {
	tools   *space
	prompts *space
	origins []*origin             // in the order of lists
	said    map[string]string     // instructions as the origins wrote them, to those that are fit to be shown
	links   map[*tool.Offer]*link // every resource and template, by its place in its catalog
}

// origin is one catalog with an entry for all that it lists, refused ones too.
type origin struct {
	server       string
	source       string
	instructions string // fit to be shown
	pending      bool   // it has not answered yet
	abilities    tool.Abilities
	tools        []*entry
	prompts      []*entry
	resources    []*link
	templates    []*link
}

// prefix returns the beginning of the canonical names of o.
func (o *origin) prefix() string {
	if o.source == tool.SourceMCP {
		return string(tool.MCPName(o.server, ""))
	}
	return o.source + "."
}

// name returns the canonical name of the prompt that o calls native.
func (o *origin) name(native string) tool.Name { return tool.Name(o.prefix() + native) }

// admit puts catalogs together. old may be nil; what it knows of the same things is not computed again.
func admit(catalogs []tool.Catalog, old *hub) *hub {
	catalogs = slices.Clone(catalogs)
	slices.SortStableFunc(catalogs, func(a, b tool.Catalog) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Server, b.Server))
	})
	if old == nil {
		old = &hub{tools: &space{}, prompts: &space{}}
	}
	tools, prompts, links := 0, 0, 0
	for _, c := range catalogs {
		tools, prompts, links = tools+len(c.Tools), prompts+len(c.Prompts), links+len(c.Resources)+len(c.Templates)
	}
	h := &hub{tools: &space{cache: make(map[any]*entry, tools)}, prompts: &space{cache: make(map[any]*entry, prompts)},
		said: make(map[string]string), links: make(map[*tool.Offer]*link, links)}
	allTools, allPrompts := make([]*entry, 0, tools), make([]*entry, 0, prompts)
	for _, c := range catalogs {
		o := h.take(c, old)
		h.origins = append(h.origins, o)
		allTools, allPrompts = append(allTools, o.tools...), append(allPrompts, o.prompts...)
		for _, x := range c.Excluded {
			r := refusal{server: c.Server, Exclusion: x}
			if id, ok := parseName(tool.Name(x.Tool)); ok && id.source == c.Source && (id.server == "" || id.server == c.Server) {
				r.canonical = x.Tool
			}
			h.tools.refusals = append(h.tools.refusals, r)
		}
	}
	h.tools.admit(allTools, old.tools)
	h.prompts.admit(allPrompts, old.prompts)
	return h
}

// take takes c apart.
func (h *hub) take(c tool.Catalog, old *hub) *origin {
	said, known := old.said[c.Instructions]
	if !known {
		said = sanitized(c.Instructions)
	}
	h.said[c.Instructions] = said
	o := &origin{server: c.Server, source: c.Source, instructions: said, pending: c.Pending, abilities: c.Abilities}
	o.tools = h.tools.enter(len(c.Tools), func(i int) any { return c.Tools[i] }, func(i int) subject {
		t := c.Tools[i]
		return subject{name: t.Name, server: t.Server, native: t.Native, declaration: t.Declaration, tool: t}
	}, old.tools)
	o.prompts = h.prompts.enter(len(c.Prompts), func(i int) any { return &c.Prompts[i] }, func(i int) subject {
		p := &c.Prompts[i]
		return subject{name: o.name(p.Native), server: c.Server, native: p.Native, declaration: p.Declaration}
	}, old.prompts)
	for i := range c.Resources {
		o.resources = append(o.resources, h.link(c.Server, &c.Resources[i], newResource, old))
	}
	for i := range c.Templates {
		o.templates = append(o.templates, h.link(c.Server, &c.Templates[i], newTemplate, old))
	}
	return o
}

func (h *hub) link(server string, at *tool.Offer, build func(string, *tool.Offer) *link, old *hub) *link {
	l := old.links[at]
	if l == nil {
		l = build(server, at)
	}
	h.links[at] = l
	return l
}

// rank puts built-in tools before those of servers.
func rank(c tool.Catalog) int {
	if c.Source == tool.SourceMCP {
		return 1
	}
	return 0
}
