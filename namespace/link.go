package namespace

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// link is a resource or a template with the values that are computed from it alone. It is
// immutable, and kept from one Update to the next for as long as the catalog holds it.
type link struct {
	tool.Offer
	member   string    // of the declaration that holds Native: "uri" or "uriTemplate"
	normal   string    // of a resource, and of a template that is none: the URI in normal form
	look     string    // what is equal for two links can be taken for one another
	template *template // nil where nothing can be matched with it
	digest   [sha256.Size]byte
}

func newResource(server string, offer *tool.Offer) *link {
	l := newLink(server, offer, "uri")
	l.normal = normalURI(l.Native)
	l.look = keyOf(l.Native, l.normal)
	return l
}

func newTemplate(server string, offer *tool.Offer) *link {
	l := newLink(server, offer, "uriTemplate")
	normal := normalURI(l.Native)
	l.look = keyOf(l.Native, normal)
	if !l.varies() {
		l.normal = normal
	} else if t, ok := parseTemplate(l.Native); ok {
		l.template = t
	}
	return l
}

// keyOf returns the look of a URI or a template: one table holds both.
func keyOf(text, normal string) string {
	if isTemplate(text) {
		if t, ok := parseTemplate(text); ok {
			return t.shape
		}
	}
	return lookOf(normal)
}

func newLink(server string, offer *tool.Offer, member string) *link {
	l := &link{Offer: *offer, member: member, digest: sha256.Sum256(offer.Declaration)}
	l.Server = server
	return l
}

// varies reports whether l is a template that stands for more than one URI.
func (l *link) varies() bool { return l.member == "uriTemplate" && isTemplate(l.Native) }

// feature returns the link as a surface shows it; isHubs asks for the hub's form.
func (l *link) feature(isHubs bool) (tool.Feature, error) {
	f := tool.Feature{Offer: l.Offer, Shown: l.Native, Declaration: l.Declaration}
	if !isHubs {
		return f, nil
	}
	switch {
	case l.varies():
		f.Shown = hubTemplate(l.Server, l.Native)
	case isPageURI(l.normal):
		f.Shown = hubPage(l.Server, l.Native) // as the declarations of tools name it: hosts compare the two
	default:
		f.Shown = hubURI(l.Server, l.Native)
	}
	var err error
	f.Declaration, err = renamed(l.Declaration, l.member, l.Native, f.Shown)
	return f, err
}

// renamed returns declaration with shown as the value of member, which is native; every other byte
// stays. A value that says the same already is not written anew: its escapes are the origin's too.
func renamed(declaration json.RawMessage, member, native, shown string) (json.RawMessage, error) {
	if native == shown {
		return declaration, nil
	}
	return rawjson.Set(declaration, member, rawjson.Quote(shown))
}

// MCP Apps has the URI of a tool's page in the member resourceUri of metaUI, and its first drafts had it in metaPage.
const (
	metaUI   = "ui"
	metaPage = "ui/resourceUri"
)

// repaged returns a tool's declaration with page as the URI of its user interface, wherever it names one.
func repaged(declaration json.RawMessage, page string) (json.RawMessage, error) {
	meta := rawjson.GetObject(declaration, "_meta")
	var err error
	if _, has := rawjson.Get(meta, metaPage); has {
		declaration, err = rawjson.SetIn(declaration, rawjson.Quote(page), "_meta", metaPage)
	}
	if _, has := rawjson.Get(rawjson.GetObject(meta, metaUI), "resourceUri"); has && err == nil {
		declaration, err = rawjson.SetIn(declaration, rawjson.Quote(page), "_meta", metaUI, "resourceUri")
	}
	return declaration, err
}

// pageOf returns the URI of the resource that a tool's declaration names as its user interface (MCP Apps), or "".
func pageOf(declaration json.RawMessage) string {
	if !bytes.Contains(declaration, []byte(`_meta"`)) && !bytes.Contains(declaration, []byte(`\u`)) {
		return "" // as nearly always; an escape may write the key otherwise
	}
	meta := rawjson.GetObject(declaration, "_meta")
	value, _ := rawjson.Get(meta, metaPage)
	if v, ok := rawjson.Get(rawjson.GetObject(meta, metaUI), "resourceUri"); ok {
		value = v
	}
	uri, _ := rawjson.String(value)
	if !isPageURI(normalURI(uri)) {
		return ""
	}
	return uri
}
