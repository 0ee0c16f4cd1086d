package admit

import (
	"crypto/sha256"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Listing is an admitted catalog, with what the hub needs to call its tools.
type Listing struct {
	Catalog  tool.Catalog
	Offer    Offer // what it was made from
	Digest   [sha256.Size]byte
	Bindings map[string][]paramheader.Binding // by the tool's own name
	Repaired int
	Limited  []string // which limits were hit, and with what effect
	Findings []tool.Finding
}

// Admit judges what the server offers. The texts of a listing hold no secrets of cfg.
func (o Offer) Admit(cfg settings.Server, r *secret.Redactor) *Listing {
	a := newAdmission(cfg, o.Sound)
	l := &Listing{Digest: o.Digest(), Bindings: make(map[string][]paramheader.Binding)}
	c := &l.Catalog
	*c = tool.Catalog{Server: cfg.ID, Source: tool.SourceMCP, Tags: cfg.Tags, Title: o.Title, Abilities: o.Abilities}
	for kind, raw := range o.Lists {
		admitted, excluded := a.admit(lists.List(kind), raw, o.digests[kind])
		c.Excluded = append(c.Excluded, excluded...)
		for _, one := range admitted {
			offer := tool.Offer{Server: cfg.ID, Native: one.name, Declaration: one.declaration}
			switch lists.List(kind) {
			case lists.Tools:
				c.Tools = append(c.Tools, a.tool(one))
			case lists.Prompts:
				c.Prompts = append(c.Prompts, offer)
			case lists.Resources:
				c.Resources = append(c.Resources, offer)
			case lists.Templates:
				c.Templates = append(c.Templates, offer)
			}
		}
	}
	c.Instructions = a.checkInstructions(o.Instructions)
	for i, e := range c.Excluded {
		c.Excluded[i].Tool, c.Excluded[i].Reason = r.Text(e.Tool), r.Beginning(e.Reason, secret.MaxMessage)
	}
	for i, f := range a.findings {
		a.findings[i].About = r.Text(f.About)
	}
	for _, t := range c.Tools {
		if len(t.Repairs) > 0 {
			l.Repaired++
		}
		schema, _ := t.RuntimeSchema()
		if b := paramheader.Of(schema); b != nil {
			l.Bindings[t.Native] = b
		}
	}
	l.Limited, l.Findings, l.Offer = a.limited, a.findings, o
	l.Offer.Sound = a.sound
	return l
}

// Descriptions returns digests of what a model is told of each tool, by the tool's own name: its
// schema and its description.
func (l *Listing) Descriptions() map[string][sha256.Size]byte {
	all := make(map[string][sha256.Size]byte, len(l.Catalog.Tools))
	for _, t := range l.Catalog.Tools {
		all[t.Native] = sha256.Sum256([]byte(t.SchemaDigest + t.Description))
	}
	return all
}
