package namespace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// paged is a server whose tools name these pages, in turns as the extension has it, as its drafts had it, and both ways.
func paged(id string, pages ...string) tool.Catalog {
	var natives []string
	for i := range pages {
		natives = append(natives, fmt.Sprint("show", i))
	}
	c := server(id, natives...)
	for i, page := range pages {
		quoted, _ := json.Marshal(page)
		meta := []string{`"ui":{"visibility":["app"],"resourceUri":%s,"n":1.0}`, `"ui/resourceUri":%s`,
			`"ui/resourceUri":%[2]s,"ui":{"resourceUri":%[2]s}`}[i%3]
		c.Tools[i].Declaration = fmt.Appendf(nil, `{"name":%q,"x":1e400,"_meta":{"k":"\u0041",`+meta+`}}`, natives[i], quoted)
	}
	return c
}

// pagesIn are the pages that the declarations of a surface name, and a check that nothing else in them is another's.
func pagesIn(t *testing.T, s *tool.Surface) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	for _, l := range s.Listed {
		page := pageOf(l.Declaration())
		pages[l.Name] = page
		native, shown := pageOf(l.Tool.Declaration), string(l.Declaration())
		shown = strings.Replace(shown, `"name":"`+l.Name+`"`, `"name":"`+l.Tool.Native+`"`, 1)
		if got := strings.ReplaceAll(shown, page, native); got != string(l.Tool.Declaration) {
			t.Errorf("%s: declaration %s\nfrom %s", l.Name, l.Declaration(), l.Tool.Declaration)
		}
		if l.Page != "" && l.Page != page || l.Page == "" && page != native {
			t.Errorf("%s: page %q is said to be %q", l.Name, page, l.Page)
		}
	}
	return pages
}

// Pages that two servers claim are named in the hub's form, in the scheme that hosts insist on, and only where a surface
// shows both. All that tools name can be read there, from their own server.
func TestPagesOfToolsCanBeRead(t *testing.T) {
	t.Parallel()
	a := paged("a", "ui://page", "ui://page", "ui://page", "ui://own", "ui://toolhub/b/page", "UI://odd")
	b := withLinks(paged("b", "ui://PAGE/", "ui://b/x?y=1"), "ui://page", "ui://odd")
	n := newNamespace(t, []Profile{{Name: "alone", Servers: []string{"a"}}}, a, b)
	for profile, want := range map[string]map[string]string{
		DefaultProfile: {
			"mcp.a.show0": "ui://toolhub/a/page", "mcp.a.show1": "ui://toolhub/a/page", "mcp.a.show2": "ui://toolhub/a/page",
			"mcp.a.show3": "ui://own", "mcp.a.show4": "ui://toolhub/a/toolhub/b/page", "mcp.a.show5": "ui://toolhub/a/~UI%3A%2F%2Fodd",
			"mcp.b.show0": "ui://PAGE/", "mcp.b.show1": "ui://b/x?y=1",
		},
		"alone": {"mcp.a.show0": "ui://page", "mcp.a.show1": "ui://page", "mcp.a.show2": "ui://page", "mcp.a.show3": "ui://own",
			"mcp.a.show4": "ui://toolhub/a/toolhub/b/page", "mcp.a.show5": "UI://odd"},
		"s/a": {"show0": "ui://page", "show1": "ui://page", "show2": "ui://page", "show3": "ui://own", "show4": "ui://toolhub/b/page", "show5": "UI://odd"},
	} {
		s := surface(t, n, profile)
		got := pagesIn(t, s)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: pages\n %v, want\n %v", profile, got, want)
		}
		for _, l := range s.Listed {
			if got := owned(s.Features, got[l.Name]); got != l.Tool.Server+" "+pageOf(l.Tool.Declaration) {
				t.Errorf("%s: the page of %s is %q", profile, l.Name, got)
			}
		}
	}
	f := features(t, n, DefaultProfile)
	// Lists name pages as tools do, in the one scheme that hosts take: some compare the two.
	equal(t, "resources", shownFeatures(f.Resources), []string{"ui://toolhub/b/page", "ui://toolhub/b/odd"})
	for _, r := range f.Resources {
		if want := strings.Replace(string(r.Offer.Declaration), r.Native, r.Shown, 1); string(r.Declaration) != want || owned(f, r.Shown) != "b "+r.Native {
			t.Errorf("%s is declared %s, and is %s", r.Shown, r.Declaration, owned(f, r.Shown))
		}
	}
	for uri, want := range map[string]string{
		"toolhub://b/ui://page": "b ui://page", "toolhub://a/ui://page": "a ui://page",
		"ui://page": "b,a ui://page", "UI://ToolHub/B/page": "b ui://page", "ui://toolhub/c/page": " ui://toolhub/c/page", "ui://toolhub/a": " ui://toolhub/a",
		"ui://toolhub/a/{x}": " ui://toolhub/a/{x}",
	} {
		if got := owned(f, uri); got != want && !(uri == "ui://page" && got == "a,b ui://page") {
			t.Errorf("%s is %q, want %q", uri, got, want)
		}
	}
}

// A page becomes another server's, too, and is one's own again: the tools that name it are told to have changed.
func TestPagesChangeHands(t *testing.T) {
	t.Parallel()
	a := paged("a", "ui://page", "ui://own")
	n := newNamespace(t, nil, a, server("b", "x"))
	native := pagesIn(t, surface(t, n, DefaultProfile))
	digest := surface(t, n, DefaultProfile).Digest
	claimed := withLinks(server("b", "x"), "ui://page")
	b := server("b", "x")
	for i, step := range []struct {
		b    tool.Catalog
		page string
	}{{claimed, "ui://toolhub/a/page"}, {b, "ui://page"}, {claimed, "ui://toolhub/a/page"}} {
		changes := n.Update([]tool.Catalog{a, step.b})
		s := surface(t, n, DefaultProfile)
		if len(changes) != 1 || !changes[0].Tools || !changes[0].Resources || pagesIn(t, s)["mcp.a.show0"] != step.page ||
			pagesIn(t, s)["mcp.a.show1"] != "ui://own" {
			t.Errorf("step %d: %+v, pages %v", i, changes, pagesIn(t, s))
		}
		if (s.Digest == digest) != (step.page == native["mcp.a.show0"]) {
			t.Errorf("step %d: the digest does not tell", i)
		}
	}
}

func FuzzHubPage(f *testing.F) {
	for _, s := range []string{"ui://page", "ui://", "ui://~x", "UI://x", "ui://a/../b", "ui://{x}", "ui:x", "", "ui://a b", "ui://%7e", "ui://toolhub/a/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, native string) {
		shown := hubPage("s-1", native)
		server, back, ok := splitURI(shown)
		if !strings.HasPrefix(shown, "ui://") || server != "s-1" || back != native || !ok || !isHubURI(lookOf(normalURI(shown))) {
			t.Errorf("%q is shown as %q, which is %q of %q, %v", native, shown, back, server, ok)
		}
	})
}
