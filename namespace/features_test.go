package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// offers returns an offer per native, whose declaration holds it as member.
func offers(server, member string, natives ...string) (out []tool.Offer) {
	for _, n := range natives {
		out = append(out, tool.Offer{Server: server, Native: n,
			Declaration: fmt.Appendf(nil, `{ "n" : 12345678901234567890,%q:%s, "z":"\u00e9" }`, member, rawjson.Quote(n))})
	}
	return out
}

func withPrompts(c tool.Catalog, natives ...string) tool.Catalog {
	c.Prompts = offers(c.Server, "name", natives...)
	return c
}

// withLinks adds resources, and templates where a native holds a brace.
func withLinks(c tool.Catalog, natives ...string) tool.Catalog {
	for _, n := range natives {
		if isTemplate(n) {
			c.Templates = append(c.Templates, offers(c.Server, "uriTemplate", n)...)
		} else {
			c.Resources = append(c.Resources, offers(c.Server, "uri", n)...)
		}
	}
	return c
}

func shownFeatures(list []tool.Feature) []string {
	names := []string{}
	for _, f := range list {
		names = append(names, f.Shown)
	}
	return names
}

func features(t testing.TB, n *Namespace, profile string) *tool.Features {
	t.Helper()
	f := surface(t, n, profile).Features
	if f == nil {
		t.Fatalf("%s: no features", profile)
	}
	return f
}

// prompted is "server/native" of the prompt that name stands for, or "".
func prompted(f *tool.Features, name string) string {
	if p, ok := f.Prompt(name); ok {
		return p.Server + "/" + p.Native
	}
	return ""
}

// owned writes what Owner says as "server,server native".
func owned(f *tool.Features, uri string) string {
	servers, native := f.Owner(uri)
	return strings.Join(servers, ",") + " " + native
}

func TestPromptsInEachStyle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	n := newNamespace(t, allStyles(), withPrompts(server("zeta", "ask"), "ask", "b"), withPrompts(server("alpha"), "c", "a b", long))
	for style, want := range map[string][]string{
		"canonical": {"mcp.alpha.c", "mcp.alpha.a b", "mcp.alpha." + long, "mcp.zeta.ask", "mcp.zeta.b"},
		"native":    {"c", "a b", long, "ask", "b"},
	} {
		equal(t, style, shownFeatures(features(t, n, style).Prompts), want)
	}
	for _, style := range n.Profiles() {
		f := features(t, n, style)
		if len(f.Prompts) != 5 || len(f.Excluded) != 0 {
			t.Errorf("%s: %v, excluded %v", style, shownFeatures(f.Prompts), f.Excluded)
		}
		for _, p := range f.Prompts {
			id, _ := parseName(tool.MCPName(p.Server, p.Native))
			if style == "short" && p.Shown != id.short() || style == "safe" && p.Shown != id.safe() {
				t.Errorf("%s: %q is shown as %q", style, p.Native, p.Shown)
			}
			for _, name := range []string{p.Shown, id.canonical(), id.safe(), id.short(), p.Native} {
				if got := prompted(f, name); got != p.Server+"/"+p.Native {
					t.Errorf("%s: %q is prompt %q", style, name, got)
				}
			}
			native, shown := string(rawjson.Quote(p.Native)), string(rawjson.Quote(p.Shown))
			if want := strings.Replace(string(p.Offer.Declaration), native, shown, 1); string(p.Declaration) != want {
				t.Errorf("%s: declaration\n got %s\nwant %s", style, p.Declaration, want)
			}
		}
	}
	// Tools and prompts are name spaces of their own.
	s := surface(t, n, "canonical")
	if resolved(s, "mcp.zeta.ask") != "mcp.zeta.ask" || resolved(s, "mcp.alpha.c") != "" || len(s.Excluded) != 0 {
		t.Errorf("prompts and tools meet: %v", exclusions(s.Excluded))
	}
}

func TestPromptsAreKeptApart(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, []Profile{{Name: "native", Style: StyleNative}},
		withPrompts(server("a"), "same", "get-item", "get_item", "Read", "read", "x\u200b", ""), withPrompts(server("b"), "same", "a__own"),
		withPrompts(server("a-b"), "p"), withPrompts(server("a_b"), "p"), withPrompts(server("c", "t"), "twice", "twice"))
	f := features(t, n, DefaultProfile)
	equal(t, "shown", shownFeatures(f.Prompts), []string{"mcp.a.same", "mcp.a.get-item", "mcp.a.get_item", "mcp.b.same", "mcp.b.a__own"})
	equal(t, "excluded", exclusions(f.Excluded), []string{`prompt mcp.a.x\u200b hidden_unicode`, "prompt mcp.a. invalid_name",
		"prompt mcp.a.Read unsafe_twin a",
		"prompt mcp.a.read unsafe_twin a", "prompt mcp.a-b.p unsafe_twin a_b", "prompt mcp.a_b.p unsafe_twin a-b", "prompt mcp.c.twice unsafe_twin c",
		"prompt mcp.c.twice unsafe_twin c"})
	if got := prompted(f, "same"); got != "" {
		t.Errorf("a name of two prompts is %q", got)
	}
	for _, x := range f.Excluded {
		if strings.Contains(x.Reason, "tools") {
			t.Errorf("the reason speaks of tools: %s", x.Reason)
		}
	}
	f = features(t, n, "native")
	equal(t, "native", shownFeatures(f.Prompts), []string{"get-item", "get_item", "a__own"})
	if got := len(surface(t, n, "native").Excluded); got != 0 {
		t.Errorf("%d prompts are among the excluded tools", got)
	}
}

func TestProfilesSelectFeatures(t *testing.T) {
	t.Parallel()
	all := func(id string) tool.Catalog {
		c := withLinks(withPrompts(server(id, "t"), "p", "q"), "x://"+id, "y://"+id+"/{v}")
		c.Instructions, c.Abilities = "say "+id, tool.Abilities{Logging: id == "c", Completions: id == "a", Subscribe: id == "b"}
		return c
	}
	n := newNamespace(t, []Profile{
		{Name: "servers", Servers: []string{"a", "b"}, Exclude: []string{"*.q"}},
		{Name: "include", Include: []string{"mcp.b.t", "code.*"}},
		{Name: "exclude", Exclude: []string{"mcp.b.*", "mcp.c.p"}},
		{Name: "none", Include: []string{"code.*"}},
	}, all("c"), all("a"), all("b"), toolset("code", "read"))
	for profile, want := range map[string]struct {
		prompts, servers, resources []string
		abilities                   tool.Abilities
	}{
		"servers": {[]string{"mcp.a.p", "mcp.b.p"}, []string{"a", "b"}, []string{"x://a", "x://b"},
			tool.Abilities{Prompts: true, Resources: true, Completions: true, Subscribe: true}},
		"include": {[]string{}, []string{"b"}, []string{"x://b"}, tool.Abilities{Resources: true, Subscribe: true}},
		"exclude": {[]string{"mcp.a.p", "mcp.a.q", "mcp.c.q"}, []string{"a", "c"}, []string{"x://a", "x://c"},
			tool.Abilities{Prompts: true, Resources: true, Completions: true, Logging: true}},
		"none": {[]string{}, nil, []string{}, tool.Abilities{}},
	} {
		f := features(t, n, profile)
		equal(t, profile+" prompts", shownFeatures(f.Prompts), want.prompts)
		equal(t, profile+" servers", f.Servers, want.servers)
		equal(t, profile+" resources", shownFeatures(f.Resources), want.resources)
		if f.Abilities != want.abilities {
			t.Errorf("%s: %+v", profile, f.Abilities)
		}
		for _, id := range []string{"a", "b", "c"} {
			member := slices.Contains(want.servers, id)
			for _, uri := range []string{"x://" + id, "y://" + id + "/1", "toolhub://" + id + "/x:y"} {
				if servers, _ := f.Owner(uri); (len(servers) == 1) != member {
					t.Errorf("%s: %s belongs to %v", profile, uri, servers)
				}
			}
			if strings.Contains(f.Instructions, "say "+id) != member {
				t.Errorf("%s: instructions %q", profile, f.Instructions)
			}
		}
	}
	if f := features(t, newNamespace(t, nil), DefaultProfile); f.Abilities != (tool.Abilities{}) || owned(f, "x:y") != " x:y" || prompted(f, "x") != "" {
		t.Error("a hub without servers offers something")
	}
}

func TestOwnersOfResources(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, allStyles(),
		withLinks(server("a"), "file:///own", "shared://x", "Docs://Host/A", "toolhub://b/file:///own", "case:///A", "odd://a b", "rfc://~a"),
		withLinks(server("b"), "shared://x", "file:///b/{+p}", "tpl://{x}", "case:///a", "ui://page", "both://{id}"),
		withLinks(server("c"), "SHARED://X", "tpl://{y}", "tpl://other/{y}", "file:///b/listed", "both://{id}/x", "{bad", "both://1/{z}"))
	for _, style := range n.Profiles() {
		f := features(t, n, style)
		equal(t, style+" resources", shownFeatures(f.Resources), []string{"file:///own", "toolhub://a/shared://x", "Docs://Host/A",
			"toolhub://a/toolhub://b/file:///own", "toolhub://a/case:///A", "odd://a b", "rfc://~a", "toolhub://b/shared://x",
			"toolhub://b/case:///a", "ui://page", "toolhub://c/SHARED://X", "file:///b/listed"})
		equal(t, style+" templates", shownFeatures(f.Templates), []string{"file:///b/{+p}", "toolhub://b/tpl://{x}", "both://{id}",
			"toolhub://c/tpl://{y}", "tpl://other/{y}", "both://{id}/x", "{bad", "both://1/{z}"})
		for uri, want := range map[string]string{
			"file:///own":                         "a file:///own",
			"FILE:///own":                         "a file:///own", // as its server knows it
			"docs://host/A":                       "a Docs://Host/A",
			"docs://host/%41":                     "a Docs://Host/A",
			"docs://host/a":                       " docs://host/a", // another resource, of which nobody knows
			"odd://a%20b":                         "a odd://a b",
			"rfc://%7ea":                          "a rfc://~a",
			"shared://x":                          "a,b,c shared://x",
			"Shared://%58":                        "a,b,c Shared://%58",
			"case:///A":                           "a,b case:///A",
			"toolhub://a/shared://x":              "a shared://x",
			"toolhub://c/SHARED://X":              "c SHARED://X",
			"toolhub://b/file:///own":             "b file:///own", // a's URI of that text has another form
			"toolhub://a/toolhub://b/file:///own": "a toolhub://b/file:///own",
			"TOOLHUB://B/anything:x":              "b anything:x",
			"toolhub://d/x:y":                     " toolhub://d/x:y",
			"file:///b/x/y":                       "b file:///b/x/y",
			"FILE:///b/x/y":                       "b FILE:///b/x/y",
			"file:///b/listed":                    "c file:///b/listed", // lists come before templates
			"file:///b/../x":                      " file:///b/../x",
			"tpl://1":                             "b,c tpl://1",
			"toolhub://c/tpl://1":                 "c tpl://1",
			"tpl://other/1":                       "c tpl://other/1",
			"both://1/x":                          "c both://1/x",
			"both://1":                            "b both://1",
			"ui://page":                           "b ui://page",
			"ui://other":                          " ui://other",
			"nobody:x":                            " nobody:x",
			// Completion refers to templates by their text.
			"file:///b/{+p}":        "b file:///b/{+p}",
			"tpl://{x}":             "b,c tpl://{x}",
			"toolhub://b/tpl://{x}": "b tpl://{x}",
			"file:///b/{+other}":    " file:///b/{+other}",
			"{bad":                  "c {bad",
		} {
			if got := owned(f, uri); got != want {
				t.Errorf("%s: %q is %q, want %q", style, uri, got, want)
			}
		}
		for _, list := range [][]tool.Feature{f.Resources, f.Templates} {
			for _, x := range list {
				native, shown := string(rawjson.Quote(x.Native)), string(rawjson.Quote(x.Shown))
				if want := strings.Replace(string(x.Offer.Declaration), native, shown, 1); string(x.Declaration) != want {
					t.Errorf("%s: declaration\n got %s\nwant %s", style, x.Declaration, want)
				}
			}
		}
	}
}

// A user interface belongs to who lists it or names it in a tool, and to nobody by template.
func TestUserInterfacesHaveOneOwner(t *testing.T) {
	t.Parallel()
	named := server("b", "show", "old")
	named.Tools[0].Declaration = json.RawMessage(`{"name":"show","_meta":{"ui":{"resourceUri":"ui://b/page"}}}`)
	named.Tools[1].Declaration = json.RawMessage(`{"name":"old","_meta":{"ui/resourceUri":"ui://b/old"}}`)
	no := server("c", "x")
	no.Tools[0].Declaration = json.RawMessage(`{"name":"x","_meta":{"ui":{"resourceUri":"file:///etc/passwd"}}}`)
	n := newNamespace(t, nil, withLinks(server("a"), "ui://a/page", "{+any}", "ui://{x}"), named, no)
	f := features(t, n, DefaultProfile)
	for uri, want := range map[string]string{
		"ui://a/page": "a ui://a/page", "ui://b/page": "b ui://b/page", "ui://b/old": "b ui://b/old", "ui://c": " ui://c", "UI://c": " UI://c",
		"file:///etc/passwd": "a file:///etc/passwd",
	} {
		if got := owned(f, uri); got != want {
			t.Errorf("%s is %q, want %q", uri, got, want)
		}
	}
	n.Update([]tool.Catalog{withLinks(server("a"), "ui://b/page"), named})
	if got := owned(features(t, n, DefaultProfile), "ui://b/page"); got != "a,b ui://b/page" {
		t.Errorf("claimed by another server: %q", got)
	}
}

func TestDirectViews(t *testing.T) {
	t.Parallel()
	a := withLinks(withPrompts(server("a", "x", "Read", "read", "evil\u202e", "mcp.a.x", "dup", "dup", "", "git__pull"), "p", "P"),
		"shared://x", "toolhub://a/y:z", "toolhub://b/y:z", "t://{x}")
	a.Instructions, a.Abilities = "be kind", tool.Abilities{Logging: true}
	a.Excluded = []tool.Exclusion{{Tool: "broken", Origin: "a", Code: "invalid_schema", Reason: "r: mend it"}}
	n := newNamespace(t, []Profile{{Name: "b-only", Servers: []string{"b"}}}, a, withLinks(server("b", "x"), "shared://x", "t://{x}"), toolset("code", "read"))
	s := surface(t, n, "s/a")
	equal(t, "tools", shownNames(s), []string{"x", "Read", "read", "evil\u202e", "mcp.a.x", "git__pull"})
	equal(t, "excluded", exclusions(s.Excluded), []string{"broken invalid_schema", "mcp.a.dup unsafe_twin a", "mcp.a.dup unsafe_twin a",
		"mcp.a. invalid_name"})
	if s.Profile != "s/a" || s.Style != string(StyleNative) || s.ID == "" {
		t.Errorf("surface %q of profile %q, style %q", s.ID, s.Profile, s.Style)
	}
	for i, l := range s.Listed {
		if string(l.Declaration()) != string(l.Tool.Declaration) {
			t.Errorf("declaration %s", l.Declaration())
		}
		if got := resolved(s, l.Name); got != string(l.Tool.Name) {
			t.Errorf("%q resolves to %q", l.Name, got)
		}
		id, _ := parseName(l.Tool.Name)
		for _, name := range []string{string(l.Tool.Name), id.safe(), id.short()} {
			// The first tool's canonical name is the fifth one's own.
			if got := resolved(s, name); got != string(l.Tool.Name) && (i != 0 || got != "mcp.a.mcp.a.x") {
				t.Errorf("%q resolves to %q", name, got)
			}
		}
	}
	f := s.Features
	equal(t, "prompts", shownFeatures(f.Prompts), []string{"p", "P"})
	equal(t, "resources", shownFeatures(f.Resources), []string{"shared://x", "toolhub://a/y:z", "toolhub://b/y:z"})
	equal(t, "templates", shownFeatures(f.Templates), []string{"t://{x}"})
	equal(t, "servers", f.Servers, []string{"a"})
	if f.Instructions != "be kind" || !f.Abilities.Logging || !f.Abilities.Prompts {
		t.Errorf("instructions %q, abilities %+v", f.Instructions, f.Abilities)
	}
	for uri, want := range map[string]string{
		"shared://x": "a shared://x", "SHARED://x": "a SHARED://x", "toolhub://a/shared://x": "a shared://x", "toolhub://a/y:z": "a toolhub://a/y:z",
		"toolhub://b/y:z": "a toolhub://b/y:z", "unlisted:x": "a unlisted:x", "t://{x}": "a t://{x}", "ui://x": "a ui://x",
	} {
		if got := owned(f, uri); got != want {
			t.Errorf("%s is %q, want %q", uri, got, want)
		}
	}
	for _, bad := range []string{"s/", "s/c", "s/code", "s/a/b", "s"} {
		if s, err := n.Surface(bad, tool.Client{}); !errors.Is(err, errUnknownProfile) || s != nil {
			t.Errorf("%q: %v, %v", bad, s, err)
		}
	}
	if surface(t, n, "s/a") != s {
		t.Error("a direct view is built again")
	}
}
