package namespace

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// styles are the concrete styles, each with a surface of its own.
var styles = [...]Style{StyleCanonical, StyleSafe, StyleShort, StyleNative}

// view is one profile applied to one hub. Its surfaces are built when first asked for and never change.
type view struct {
	profile *Profile
	tools   *selection
	prompts *selection
	origins []*origin // those that the profile shows anything of
	sole    string    // the server of a direct view; "" otherwise

	links        [sha256.Size]byte // digest of all resources and templates
	pages        []tool.Offer      // the user interfaces of tools
	headline     string
	instructions string

	resources func() *resourceIndex // built when first asked for

	mu    sync.Mutex // held while a surface is built
	built [len(styles)]atomic.Pointer[tool.Surface]
}

// newView selects what p shows of h.
func newView(p *Profile, h *hub) *view {
	v := &view{profile: p, tools: &selection{profile: p, owners: h.tools.owners},
		prompts: &selection{profile: p, owners: h.prompts.owners}}
	offered := make(map[string]bool)
	offers := func(server string) bool {
		if _, asked := offered[server]; !asked {
			offered[server] = p.offers(server)
		}
		return offered[server]
	}
	v.tools.take(h.tools, offers, p.selects)
	v.prompts.take(h.prompts, offers, p.selectsPrompt)
	for _, o := range h.origins {
		if offers(o.server) && p.reaches(o.prefix()) {
			v.origins = append(v.origins, o)
		}
	}
	v.finish()
	return v
}

// newDirectView shows the one server as it is: also what no other surface shows because of its name.
func newDirectView(server string, h *hub) *view {
	p := &Profile{Name: tool.DirectPrefix + server, Style: StyleNative}
	v := &view{profile: p, sole: server, tools: &selection{profile: p, direct: true},
		prompts: &selection{profile: p, direct: true}}
	for _, o := range h.origins {
		if o.server != server || o.source != tool.SourceMCP {
			continue
		}
		v.origins = append(v.origins, o)
		v.tools.visible = append(v.tools.visible, o.tools...)
		v.prompts.visible = append(v.prompts.visible, o.prompts...)
	}
	if v.origins == nil {
		return nil
	}
	for _, r := range h.tools.refusals {
		if r.server == server && !r.here {
			v.tools.excluded = append(v.tools.excluded, r.Exclusion)
		}
	}
	v.tools.overrides, v.prompts.overrides = make([]toolOverride, len(v.tools.visible)),
		make([]toolOverride, len(v.prompts.visible))
	v.tools.sum()
	v.prompts.sum()
	v.finish()
	return v
}

// finish computes what follows from the view's origins and selections.
func (v *view) finish() {
	sum := sha256.New()
	for _, o := range v.origins {
		if len(o.resources)+len(o.templates) == 0 {
			continue
		}
		fmt.Fprintf(sum, "%q %d %d\n", o.server, len(o.resources), len(o.templates))
		for _, l := range slices.Concat(o.resources, o.templates) {
			sum.Write(l.digest[:])
		}
	}
	sum.Sum(v.links[:0])
	if v.profile.Style == StyleNative && len(v.origins) == 1 { // that server as it is
		v.instructions = cut(v.origins[0].instructions, maxDirect)
	} else {
		v.headline = headline(v.origins)
		v.instructions = instruct(v.origins, maxInstructions-len(v.headline)-len(blankLine))
	}
	for _, e := range v.tools.visible {
		if e.page != "" {
			v.pages = append(v.pages, tool.Offer{Server: e.server, Native: e.page})
		}
	}
	v.resources = sync.OnceValue(func() *resourceIndex { return newResourceIndex(v.origins, v.pages, v.sole) })
	if v.sole == "" {
		v.tools.markDisputed(v.disputedPages())
	}
}

// disputedPages returns the looks of the pages that another server of the surface claims as well,
// or that have the hub's own form: such a URI alone does not tell its owner.
func (v *view) disputedPages() map[string]bool {
	disputed := make(map[string]bool)
	for _, p := range v.pages {
		look := keyOf(p.Native, normalURI(p.Native))
		if len(v.resources().claims[look].servers) > 1 || isHubURI(look) {
			disputed[look] = true
		}
	}
	return disputed
}

// same reports whether v shows exactly what old shows, so that old can stay.
func (v *view) same(old *view) bool {
	return v.tools.same(old.tools) && v.prompts.same(old.prompts) && v.links == old.links &&
		v.headline == old.headline && v.instructions == old.instructions &&
		slices.EqualFunc(v.origins, old.origins, func(a, b *origin) bool {
			return a.server == b.server && a.source == b.source && a.abilities == b.abilities
		})
}

// changeTo says what next shows differently; ok is false where there is nothing. Abilities are told
// at the beginning of a session only, and do not count.
func (v *view) changeTo(next *view) (c Change, ok bool) {
	c = Change{Profile: v.profile.Name, Tools: v.tools.digest != next.tools.digest,
		Prompts:   v.prompts.digest != next.prompts.digest,
		Resources: v.links != next.links, Instructions: v.instructions != next.instructions}
	return c, c.Tools || c.Prompts || c.Resources || c.Instructions
}

// surface returns the surface in style, which is one of styles.
func (v *view) surface(style Style) *tool.Surface {
	i := max(slices.Index(styles[:], style), 0)
	if s := v.built[i].Load(); s != nil {
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.built[i].Load(); s != nil {
		return s
	}
	s := v.build(style)
	v.built[i].Store(s)
	return s
}

// build makes the surface in style.
func (v *view) build(style Style) *tool.Surface {
	tools := v.tools.inStyle(style)
	listed := make([]tool.Listed, 0, len(tools.entries))
	for i, e := range tools.entries {
		listed = append(listed, tool.Listed{Name: tools.rows[i].shown, Tool: e.tool,
			Changed: tools.rows[i].declaration, Page: tools.rows[i].page})
	}
	id := tool.SurfaceID("srf_" + tools.digest[:26])
	s := tool.NewSurfaceNamed(id, v.profile.Name, string(style), tools.digest, listed, tools.excluded, tools.names)
	s.Features = v.features(v.prompts.inStyle(style))
	s.ForClient = v.profile.Style == StyleAuto
	return s
}

// features returns all that a surface offers besides tools.
func (v *view) features(prompts styledSelection) *tool.Features {
	s := v.resources()
	f := tool.Features{Resources: s.resources, Templates: s.templates, Headline: v.headline,
		Instructions: v.instructions}
	for _, x := range prompts.excluded {
		x.Tool = "prompt " + x.Tool
		f.Excluded = append(f.Excluded, x)
	}
	f.Excluded = append(f.Excluded, s.excluded...)
	for i, e := range prompts.entries {
		f.Prompts = append(f.Prompts, tool.Feature{
			Offer: tool.Offer{Server: e.server, Native: e.native, Declaration: e.declaration},
			Shown: prompts.rows[i].shown, Declaration: prompts.rows[i].declaration,
		})
	}
	for _, o := range v.origins {
		f.Abilities = f.Abilities.Or(o.abilities)
		if o.source == tool.SourceMCP && !slices.Contains(f.Servers, o.server) {
			f.Servers = append(f.Servers, o.server)
		}
	}
	f.Abilities.Prompts = f.Abilities.Prompts || len(f.Prompts) > 0
	f.Abilities.Resources = f.Abilities.Resources || len(f.Resources)+len(f.Templates) > 0
	return tool.NewFeatures(f, prompts.names(), s.owner)
}
