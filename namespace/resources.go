package namespace

import (
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// resourceIndex holds the resources and templates of one view, and finds the owners of URIs. It is
// the same for all styles, and immutable.
type resourceIndex struct {
	resources []tool.Feature
	templates []tool.Feature
	excluded  []tool.Exclusion

	sole    string                // the server of a direct view; "" on other surfaces
	servers map[string]bool       // of the surface
	claims  map[string]*claimants // of URIs, by look
	matched []*link               // templates that URIs can be matched with
}

// claimants are the links that can be taken for one another.
type claimants struct {
	servers []string // in the surface's order
	links   []*link
}

// newResourceIndex indexes the resources of origins. pages are the user interfaces of the tools on
// the surface: they belong to their tool's server whether it lists them or not.
func newResourceIndex(origins []*origin, pages []tool.Offer, sole string) *resourceIndex {
	s := &resourceIndex{sole: sole, servers: make(map[string]bool), claims: make(map[string]*claimants)}
	for _, o := range origins {
		if o.source == tool.SourceMCP {
			s.servers[o.server] = true
		}
		for _, l := range o.resources {
			s.claim(l)
		}
		for _, l := range o.templates {
			s.claim(l)
			if l.template != nil {
				s.matched = append(s.matched, l)
			}
		}
	}
	for i := range pages {
		s.claim(newResource(pages[i].Server, &pages[i]))
	}
	for _, o := range origins {
		s.resources = s.show(s.resources, o.resources)
		s.templates = s.show(s.templates, o.templates)
	}
	return s
}

// claim enters a link under its look.
func (s *resourceIndex) claim(l *link) {
	c := s.claims[l.look]
	if c == nil {
		c = &claimants{}
		s.claims[l.look] = c
	}
	if !slices.Contains(c.servers, l.Server) {
		c.servers = append(c.servers, l.Server)
	}
	c.links = append(c.links, l)
}

// show appends links as clients see them. A URI in the hub's own scheme, or one that several
// servers claim, is shown in the hub's form: it would be ambiguous otherwise.
func (s *resourceIndex) show(list []tool.Feature, links []*link) []tool.Feature {
	for _, l := range links {
		f, err := l.feature(s.sole == "" && (len(s.claims[l.look].servers) > 1 || isHubURI(l.look)))
		if err != nil {
			s.excluded = append(s.excluded, tool.Exclusion{Tool: "resource " + escaped(l.Native), Origin: l.Server,
				Code:   codeDeclaration,
				Reason: fmt.Sprintf("the declaration cannot be written (%v): have the server's author mend it", err)})
			continue
		}
		list = append(list, f)
	}
	return list
}

// owner implements tool.Features.Owner: of a URI, and of a template's own text, which completion refers to.
func (s *resourceIndex) owner(uri string) (servers []string, native string) {
	if s.sole != "" {
		return []string{s.sole}, s.soleNative(uri)
	}
	if server, native, ok := splitURI(uri); ok {
		if s.servers[server] {
			return []string{server}, native
		}
		return nil, uri
	}
	normal := normalURI(uri)
	if c := s.claims[keyOf(uri, normal)]; c != nil {
		if len(c.servers) > 1 {
			return slices.Clone(c.servers), uri
		}
		if native, ok := c.native(uri, normal); ok {
			return slices.Clone(c.servers), native
		}
	}
	if isTemplate(uri) {
		return nil, uri
	}
	return s.fitting(normal), uri
}

// native returns the URI of the claimants that uri equals; ok is false if it only looks like one.
func (c *claimants) native(uri, normal string) (native string, ok bool) {
	for _, l := range c.links {
		if l.Native == uri {
			return uri, true
		}
		if l.normal == normal && !ok {
			native, ok = l.Native, true
		}
	}
	return native, ok
}

// soleNative returns uri as the server of a direct view knows it: unchanged, but for the form that other surfaces show.
func (s *resourceIndex) soleNative(uri string) string {
	server, native, ok := splitURI(uri)
	if !ok || server != s.sole {
		return uri
	}
	if c := s.claims[keyOf(uri, normalURI(uri))]; c != nil &&
		slices.ContainsFunc(c.links, func(l *link) bool { return l.Native == uri }) {
		return uri
	}
	return native
}

// fitting returns the servers that have a template for the URI, in no order of preference. A user interface belongs to
// those alone who list it or whose tool names it.
func (s *resourceIndex) fitting(normal string) (servers []string) {
	if isPageURI(normal) {
		return nil
	}
	for _, l := range s.matched {
		if !slices.Contains(servers, l.Server) && l.template.matches(normal) {
			servers = append(servers, l.Server)
		}
	}
	slices.Sort(servers)
	return servers
}
