package namespace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/parallel"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// hub holds everything that all origins offer at one moment. It is immutable.
type hub struct {
	tools   *space
	prompts *space
	origins []*origin // in the order of lists
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
	catalog      tool.Catalog
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
	before := make(map[string]*origin, len(old.origins))
	for _, o := range old.origins {
		before[o.prefix()] = o
	}
	h := &hub{tools: &space{}, prompts: &space{}}
	var allTools, allPrompts []*entry
	for _, c := range catalogs {
		o := take(c, before)
		h.origins = append(h.origins, o)
		allTools, allPrompts = append(allTools, o.tools...), append(allPrompts, o.prompts...)
		for _, x := range c.Excluded {
			r := refusal{server: c.Server, Exclusion: x}
			if id, ok := parseName(tool.Name(x.Tool)); ok && id.source == c.Source &&
				(id.server == "" || id.server == c.Server) {
				r.canonical = x.Tool
			}
			h.tools.refusals = append(h.tools.refusals, r)
		}
	}
	h.tools.admit(allTools, old.tools)
	h.prompts.admit(allPrompts, old.prompts)
	return h
}

// take takes c apart. before are the origins that were known; one of them serves one catalog.
func take(c tool.Catalog, before map[string]*origin) *origin {
	o := &origin{server: c.Server, source: c.Source, instructions: sanitized(c.Instructions), pending: c.Pending,
		abilities: c.Abilities, catalog: c}
	old := before[o.prefix()]
	if old == nil {
		old = &origin{}
	}
	delete(before, o.prefix())
	o.tools = each(c.Tools, old.catalog.Tools, old.tools, func(t **tool.Tool) *entry {
		return newEntry(subject{name: (*t).Name, server: (*t).Server, native: (*t).Native,
			declaration: (*t).Declaration, tool: *t})
	})
	o.prompts = each(c.Prompts, old.catalog.Prompts, old.prompts, func(p *tool.Offer) *entry {
		return newEntry(subject{name: o.name(p.Native), server: c.Server, native: p.Native, declaration: p.Declaration})
	})
	o.resources = each(c.Resources, old.catalog.Resources, old.resources,
		func(r *tool.Offer) *link { return newResource(c.Server, r) })
	o.templates = each(c.Templates, old.catalog.Templates, old.templates,
		func(r *tool.Offer) *link { return newTemplate(c.Server, r) })
	return o
}

// each makes something of each element of list. made is what was made of the list before, which
// stays if that is the same list.
func each[T, E any](list, before []T, made []*E, build func(*T) *E) []*E {
	if len(list) == len(before) && (len(list) == 0 || &list[0] == &before[0]) {
		return made
	}
	all := make([]*E, len(list))
	parallel.Do(len(list), parallel.Few, func(i int) { all[i] = build(&list[i]) })
	return all
}

// rank puts built-in tools before those of servers.
func rank(c tool.Catalog) int {
	if c.Source == tool.SourceMCP {
		return 1
	}
	return 0
}
