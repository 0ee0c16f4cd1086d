package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// newTool returns a tool of server, with a declaration of its own.
func newTool(server, native string) *tool.Tool {
	return &tool.Tool{
		Name: tool.MCPName(server, native), Server: server, Native: native,
		Declaration: fmt.Appendf(nil, `{ "x" : 12345678901234567890, "name":%s,"inputSchema":{"type":"object"}}`, rawjson.Quote(native)),
	}
}

func server(id string, natives ...string) tool.Catalog {
	c := tool.Catalog{Server: id, Source: tool.SourceMCP}
	for _, n := range natives {
		c.Tools = append(c.Tools, newTool(id, n))
	}
	return c
}

func toolset(name string, natives ...string) tool.Catalog {
	c := server(name, natives...)
	c.Source = name
	for _, t := range c.Tools {
		t.Name = tool.Name(name + "." + t.Native)
	}
	return c
}

func newNamespace(t testing.TB, profiles []Profile, catalogs ...tool.Catalog) *Namespace {
	t.Helper()
	n := New(profiles)
	n.Update(catalogs)
	return n
}

func surface(t testing.TB, n *Namespace, profile string) *tool.Surface {
	t.Helper()
	s, err := n.Surface(profile, tool.Client{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shownNames(s *tool.Surface) []string {
	names := []string{}
	for _, l := range s.Listed {
		names = append(names, l.Name)
	}
	return names
}

// exclusions writes exclusions as "tool code twin".
func exclusions(list []tool.Exclusion) []string {
	out := []string{}
	for _, x := range list {
		out = append(out, strings.TrimSpace(x.Tool+" "+x.Code+" "+x.Twin))
	}
	return out
}

// toolChanges are the names of the profiles whose tools have changed.
func toolChanges(changes []Change) (profiles []string) {
	for _, c := range changes {
		if c.Tools {
			profiles = append(profiles, c.Profile)
		}
	}
	return profiles
}

// resolved is the canonical name that name stands for on s, or "".
func resolved(s *tool.Surface, name string) string {
	if l, ok := s.Resolve(name); ok {
		return string(l.Tool.Name)
	}
	return ""
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func allStyles() []Profile {
	var out []Profile
	for _, s := range []Style{StyleAuto, StyleCanonical, StyleSafe, StyleShort, StyleNative} {
		out = append(out, Profile{Name: string(s), Style: s})
	}
	return out
}

func TestStylesAndOrder(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, allStyles(),
		server("zeta", "b", "a"), server("alpha", "c"), toolset("hub", "status"), toolset("code", "read_file"))
	for profile, want := range map[string][]string{
		"default":   {"code.read_file", "hub.status", "mcp.alpha.c", "mcp.zeta.b", "mcp.zeta.a"},
		"canonical": {"code.read_file", "hub.status", "mcp.alpha.c", "mcp.zeta.b", "mcp.zeta.a"},
		"safe":      {"code__read_file", "hub__status", "mcp__alpha__c", "mcp__zeta__b", "mcp__zeta__a"},
		"short":     {"code__read_file", "hub__status", "alpha__c", "zeta__b", "zeta__a"},
		"native":    {"read_file", "status", "c", "b", "a"},
	} {
		s := surface(t, n, profile)
		equal(t, profile, shownNames(s), want)
		for _, l := range s.Listed {
			for _, name := range []string{l.Name, string(l.Tool.Name), l.Tool.Native} {
				if got := resolved(s, name); got != string(l.Tool.Name) {
					t.Errorf("%s: %q resolves to %q, want %q", profile, name, got, l.Tool.Name)
				}
			}
		}
		if got := resolved(s, "MCP.ALPHA.C"); got != "" {
			t.Errorf("%s: a name in other case resolves to %q", profile, got)
		}
	}
	s, err := n.Surface("auto", tool.Client{Name: "claude-code", Version: "2.1"})
	if err != nil || s.Style != string(StyleShort) {
		t.Errorf("auto for claude-code: %v, %v", s, err)
	}
}

func TestUnknownProfile(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, []Profile{{Name: "team"}})
	_, err := n.Surface("taem", tool.Client{})
	if !errors.Is(err, errUnknownProfile) || !strings.Contains(err.Error(), `"taem"`) ||
		!strings.Contains(err.Error(), "default, team") {
		t.Errorf("error = %v", err)
	}
}

func TestTwinsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		catalogs []tool.Catalog
		kept     []string
		excluded []string
	}{
		{"duplicate in one server", []tool.Catalog{server("a", "x", "x", "y")}, []string{"mcp.a.y"},
			[]string{"mcp.a.x unsafe_twin a", "mcp.a.x unsafe_twin a"}},
		{"duplicate server", []tool.Catalog{server("a", "x"), server("a", "x", "z")}, []string{"mcp.a.z"},
			[]string{"mcp.a.x unsafe_twin a", "mcp.a.x unsafe_twin a"}},
		{"case", []tool.Catalog{server("a", "getItem", "getitem")}, nil,
			[]string{"mcp.a.getItem unsafe_twin a", "mcp.a.getitem unsafe_twin a"}},
		{"Cyrillic", []tool.Catalog{server("a", "read", "rеad")}, nil,
			[]string{"mcp.a.read unsafe_twin a", "mcp.a.rеad unsafe_twin a"}},
		{"separators in one server", []tool.Catalog{server("a", "get-item", "get_item")}, []string{"mcp.a.get-item", "mcp.a.get_item"}, nil},
		{"separators across servers", []tool.Catalog{server("git-hub", "x", "y"), server("git_hub", "x")}, []string{"mcp.git-hub.y"},
			[]string{"mcp.git-hub.x unsafe_twin git_hub", "mcp.git_hub.x unsafe_twin git-hub"}},
		{"three", []tool.Catalog{server("g-h", "x-y", "x_y"), server("g_h", "x.y")}, nil,
			[]string{"mcp.g-h.x-y unsafe_twin g_h", "mcp.g-h.x_y unsafe_twin g_h", "mcp.g_h.x.y unsafe_twin g-h"}},
		{"moved boundary", []tool.Catalog{server("a", "b__c"), server("a__b", "c")}, nil,
			[]string{"mcp.a.b__c unsafe_twin a__b", "mcp.a__b.c unsafe_twin a"}},
		{"same tool of two servers", []tool.Catalog{server("a", "x"), server("b", "x")}, []string{"mcp.a.x", "mcp.b.x"}, nil},
		{"toolset and server", []tool.Catalog{server("code", "x"), toolset("code", "x")}, []string{"code.x", "mcp.code.x"}, nil},
		{"unknown toolset and server", []tool.Catalog{server("new", "x"), toolset("new", "x")}, nil,
			[]string{"new.x unsafe_twin new", "mcp.new.x unsafe_twin new"}},
		{"hidden", []tool.Catalog{server("a", "x\u200b", "y\u202ez", "w")}, []string{"mcp.a.w"},
			[]string{`mcp.a.x\u200b hidden_unicode`, `mcp.a.y\u202ez hidden_unicode`}},
		{"escape sequence", []tool.Catalog{server("a", "\x1b[31mx")}, nil, []string{`mcp.a.\x1b[31mx hidden_unicode`}},
		{"empty", []tool.Catalog{server("a", "")}, nil, []string{"mcp.a. invalid_name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, catalogs := range [][]tool.Catalog{c.catalogs, reversed(c.catalogs)} {
				s := surface(t, newNamespace(t, nil, catalogs...), DefaultProfile)
				equal(t, "kept", shownNames(s), c.kept)
				equal(t, "excluded", exclusions(s.Excluded), c.excluded)
				for _, x := range s.Excluded {
					if x.Twin != "" && strings.Count(x.Reason, fmt.Sprintf("%q", x.Twin)) == 0 || !strings.Contains(x.Reason, ": ") {
						t.Errorf("the reason names no twin or no way out: %s", x.Reason)
					}
				}
			}
		})
	}
}

func reversed(list []tool.Catalog) []tool.Catalog {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

func TestTheSameToolListedTwice(t *testing.T) {
	t.Parallel()
	c := server("a", "x")
	c.Tools = append(c.Tools, c.Tools[0])
	n := newNamespace(t, nil, c)
	equal(t, "excluded", exclusions(n.Excluded()), []string{"mcp.a.x unsafe_twin a", "mcp.a.x unsafe_twin a"})
}

func TestNativeStyle(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, []Profile{{Name: "native", Style: StyleNative}, {Name: "short", Style: StyleShort}},
		server("a", "search", "only_a", "Look"), server("b", "search", "only_b", "lооk"), // Cyrillic о
		server("evil", "a__only_a", "mcp.b.only_b", "tool_search"), server("evil2", "Tool_Search"),
		tool.Catalog{Server: "hub", Source: "hub", Tools: []*tool.Tool{{Name: "tool_search", Server: "hub", Native: "tool_search",
			Declaration: []byte(`{"name":"tool_search"}`)}}})
	s := surface(t, n, "native")
	equal(t, "kept", shownNames(s), []string{"tool_search", "only_a", "only_b"})
	equal(t, "excluded", exclusions(s.Excluded), []string{
		"mcp.a.search duplicate_name b", "mcp.a.Look unsafe_twin b", "mcp.b.search duplicate_name a", "mcp.b.lооk unsafe_twin a",
		"mcp.evil.a__only_a duplicate_name a", "mcp.evil.mcp.b.only_b duplicate_name b", "mcp.evil.tool_search duplicate_name hub",
		"mcp.evil2.Tool_Search unsafe_twin hub",
	})
	for name, want := range map[string]string{
		"search": "", "mcp.a.search": "", "a__search": "", "a__only_a": "mcp.a.only_a", "mcp.b.only_b": "mcp.b.only_b",
		"tool_search": "tool_search",
	} {
		if got := resolved(s, name); got != want {
			t.Errorf("%q resolves to %q, want %q", name, got, want)
		}
	}
	// In the other styles nothing collides, and names that would stand for two tools stand for none, or for their owner.
	s = surface(t, n, "short")
	if len(s.Listed) != 11 || len(s.Excluded) != 0 {
		t.Errorf("short: %d listed, excluded %v", len(s.Listed), exclusions(s.Excluded))
	}
	for name, want := range map[string]string{
		"search": "", "a__search": "mcp.a.search", "mcp__b__search": "mcp.b.search", "a__only_a": "mcp.a.only_a",
		"mcp.b.only_b": "mcp.b.only_b", "tool_search": "tool_search", "mcp.evil.tool_search": "mcp.evil.tool_search",
	} {
		if got := resolved(s, name); got != want {
			t.Errorf("%q resolves to %q, want %q", name, got, want)
		}
	}
}

func TestProfileSelects(t *testing.T) {
	t.Parallel()
	broken := server("broken", "x")
	broken.Excluded = []tool.Exclusion{{Tool: "y", Origin: "broken", Code: "invalid_schema", Reason: "r: mend it"}}
	n := newNamespace(t, []Profile{{
		Name: "p", Servers: []string{"git*", "code"}, Include: []string{"code.*", "mcp.github.*"}, Exclude: []string{"*.delete_*", "mcp.*.secret"},
	}}, server("github", "get", "delete_repo", "secret"), server("gitlab", "get"), server("fs", "get"), toolset("code", "read"), broken)
	s := surface(t, n, "p")
	equal(t, "kept", shownNames(s), []string{"code.read", "mcp.github.get"})
	equal(t, "excluded", exclusions(s.Excluded), []string{})
	if got := resolved(s, "get"); got != "mcp.github.get" {
		t.Errorf("get resolves to %q: tools that the profile hides must not count", got)
	}
	for _, name := range []string{"mcp.github.secret", "github__secret", "secret", "mcp.gitlab.get", "mcp.github.delete_repo", "no"} {
		if got := resolved(s, name); got != "" {
			t.Errorf("%q resolves to %q", name, got)
		}
	}
	equal(t, "default", exclusions(surface(t, n, DefaultProfile).Excluded), []string{"y invalid_schema"})
	if got := resolved(surface(t, n, DefaultProfile), "mcp.github.secret"); got == "" {
		t.Error("the hub itself has lost a hidden tool")
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	overrides := []Override{
		{Match: "mcp.gh.search", Name: "find", Title: "Find \"it\" <now>"},
		{Match: "mcp.gh.*", Title: "later", Description: "d"},
		{Match: "code.read_file", Name: "cat"},
	}
	var profiles []Profile
	for _, p := range allStyles() {
		p.Tools = overrides
		profiles = append(profiles, p)
	}
	gh := server("gh", "search", "list")
	gh.Tools[0].Declaration = []byte(`{ "description" : "old" , "name" : "s\u0065arch","n":1e999, "é":"\u00e9" }`)
	n := newNamespace(t, profiles, gh, toolset("code", "read_file"))
	for style, want := range map[string][]string{
		"canonical": {"code.cat", "mcp.gh.find", "mcp.gh.list"},
		"safe":      {"code__cat", "mcp__gh__find", "mcp__gh__list"},
		"short":     {"code__cat", "gh__find", "gh__list"},
		"native":    {"cat", "find", "list"},
	} {
		s := surface(t, n, style)
		equal(t, style, shownNames(s), want)
		for _, name := range []string{"mcp.gh.find", "mcp__gh__find", "gh__find", "find", "mcp.gh.search", "mcp__gh__search",
			"gh__search", "search"} {
			if got := resolved(s, name); got != "mcp.gh.search" {
				t.Errorf("%s: %q resolves to %q", style, name, got)
			}
		}
	}
	got := string(surface(t, n, "short").Listed[1].Declaration())
	want := `{ "description" : "d" , "name" : "gh__find","n":1e999, "é":"\u00e9" ,"title":"Find \"it\" <now>"}`
	if got != want {
		t.Errorf("declaration:\n got %s\nwant %s", got, want)
	}
	// What is not changed keeps its escapes.
	n = newNamespace(t, []Profile{{Name: "native", Style: StyleNative}}, gh)
	if got := string(surface(t, n, "native").Listed[0].Declaration()); got != string(gh.Tools[0].Declaration) {
		t.Errorf("declaration: %s", got)
	}
}

func TestOverrideNamesThatClash(t *testing.T) {
	t.Parallel()
	for _, style := range []Style{StyleCanonical, StyleSafe, StyleShort, StyleNative} {
		n := newNamespace(t, []Profile{
			{Name: "steals", Style: style, Tools: []Override{{Match: "mcp.a.x", Name: "y"}}},
			{Name: "both", Style: style, Tools: []Override{{Match: "mcp.a.x", Name: "z"}, {Match: "mcp.a.y", Name: "z"}}},
			{Name: "swaps", Style: style, Exclude: []string{"mcp.a.y"}, Tools: []Override{{Match: "mcp.a.x", Name: "y"}}},
		}, server("a", "x", "y", "w"))
		s := surface(t, n, "steals")
		equal(t, "steals", exclusions(s.Excluded), []string{"mcp.a.x duplicate_name a"})
		if got := resolved(s, "mcp.a.y"); got != "mcp.a.y" || len(s.Listed) != 2 {
			t.Errorf("%s: mcp.a.y resolves to %q of %v", style, got, shownNames(s))
		}
		equal(t, "both", exclusions(surface(t, n, "both").Excluded), []string{"mcp.a.x duplicate_name a", "mcp.a.y duplicate_name a"})
		s = surface(t, n, "swaps")
		if got := resolved(s, "mcp.a.y"); got != "mcp.a.x" || len(s.Excluded) != 0 {
			t.Errorf("%s: the name of a hidden tool resolves to %q, excluded %v", style, got, exclusions(s.Excluded))
		}
	}
}

func TestBrokenDeclaration(t *testing.T) {
	t.Parallel()
	c := server("a", "x", "y")
	c.Tools[0].Declaration = []byte(`[]`)
	s := surface(t, newNamespace(t, nil, c), DefaultProfile)
	equal(t, "excluded", exclusions(s.Excluded), []string{"mcp.a.x invalid_declaration"})
	equal(t, "kept", shownNames(s), []string{"mcp.a.y"})
}

func TestUpdateSaysWhatChanged(t *testing.T) {
	t.Parallel()
	n := New([]Profile{{Name: "a", Servers: []string{"a"}}, {Name: "b", Servers: []string{"b"}}})
	equal(t, "nothing", toolChanges(n.Update(nil)), nil)
	a, b := server("a", "x"), server("b", "x")
	equal(t, "a and b appear", toolChanges(n.Update([]tool.Catalog{a, b})), []string{"a", "b", "default"})
	before := surface(t, n, "a")
	equal(t, "order", toolChanges(n.Update([]tool.Catalog{b, a})), nil)
	if surface(t, n, "a") != before {
		t.Error("an unchanged surface was built again")
	}
	if got, _ := n.Surface("a", tool.Client{Name: "new"}); got != before {
		t.Error("a surface is not shared by clients")
	}
	// The server reconnects: equal tools, other pointers.
	again := server("a", "x")
	again.Tools[0].Title = "known to people only"
	equal(t, "equal tools", toolChanges(n.Update([]tool.Catalog{again, b})), nil)
	after := surface(t, n, "a")
	if after.Digest != before.Digest || after.ID != before.ID || after.Listed[0].Tool != again.Tools[0] {
		t.Error("equal tools do not give an equal surface with the new tools")
	}
	changed := server("b", "x")
	changed.Tools[0].Declaration = []byte(`{"name":"x","description":"new"}`)
	equal(t, "declaration", toolChanges(n.Update([]tool.Catalog{again, changed})), []string{"b", "default"})
	if got := surface(t, n, "b"); got.ID == before.ID || len(got.ID) != 30 || string(got.ID[4:]) != got.Digest[:26] {
		t.Errorf("id %q, digest %q", got.ID, got.Digest)
	}
	changed.Excluded = []tool.Exclusion{{Tool: "y", Origin: "b", Code: "c", Reason: "r"}}
	equal(t, "exclusions are not listed", toolChanges(n.Update([]tool.Catalog{again, changed})), nil)
	equal(t, "but shown", exclusions(surface(t, n, "b").Excluded), []string{"y c"})
	equal(t, "gone", toolChanges(n.Update([]tool.Catalog{changed})), []string{"a", "default"})
}

// A surface that was built before an Update and one that is built from nothing are the same.
func TestUpdatesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	catalogs := []tool.Catalog{server("a", "x", "y"), server("b", "x"), server("a_b", "z"), server("a-b", "z"), toolset("code", "x")}
	n := newNamespace(t, allStyles())
	for mask := range 1 << len(catalogs) {
		var now []tool.Catalog
		for i, c := range catalogs {
			if mask&(1<<i) != 0 {
				now = append(now, c)
			}
		}
		n.Update(now)
		fresh := newNamespace(t, allStyles(), reversed(now)...)
		for _, p := range n.Profiles() {
			got, want := surface(t, n, p), surface(t, fresh, p)
			if got.Digest != want.Digest || !slices.Equal(got.Excluded, want.Excluded) {
				t.Fatalf("profile %s with servers %b: %v, %v; want %v, %v", p, mask, shownNames(got), got.Excluded,
					shownNames(want), want.Excluded)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, allStyles())
	one, two := server("a", "x", "y"), server("b", "x")
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 200 {
				if worker == 0 {
					n.Update([][]tool.Catalog{{one}, {one, two}}[i%2])
				}
				for _, p := range n.Profiles() {
					s := surface(t, n, p)
					for _, l := range s.Listed {
						if resolved(s, l.Name) != string(l.Tool.Name) {
							t.Errorf("%s: %q does not resolve", p, l.Name)
						}
					}
				}
				n.Excluded()
			}
		})
	}
	group.Wait()
}

// Whatever strangers call their tools: what is listed resolves to itself by every full name, and looks like nothing else.
func FuzzSurface(f *testing.F) {
	f.Add("search", "search", "code__read_file", "mcp.a.x", "x")
	f.Add("a__x", "b__x", "x", "x\u200b", "y")
	f.Add("rеad", "read", "Read", "read_file", "re-ad")
	f.Add("tool_search", "TOOL_SEARCH", "mcp__a__x", "", "a.b")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		profiles := allStyles()
		for i := range profiles {
			profiles[i].Tools = []Override{{Match: "mcp.a.x", Name: "renamed"}, {Match: "mcp.b.y", Name: "x"}}
		}
		n := newNamespace(t, profiles, toolset("code", "read_file"), server("a", "x", a, b), server("b", "y", c, d),
			server("a_b", e), server("a__b", e), server("a-b", a))
		for _, p := range n.Profiles() {
			s := surface(t, n, p)
			looks := map[string]bool{}
			for _, l := range s.Listed {
				id, _ := parseName(l.Tool.Name)
				for _, name := range []string{l.Name, string(l.Tool.Name), id.safe(), id.short()} {
					if got := resolved(s, name); got != string(l.Tool.Name) {
						t.Errorf("%s: %q resolves to %q, want %q", p, name, got, l.Tool.Name)
					}
				}
				if looks[foldLook(l.Name)] {
					t.Errorf("%s: %q looks like another name", p, l.Name)
				}
				looks[foldLook(l.Name)] = true
			}
			if offered := 10; len(s.Listed)+len(s.Excluded) != offered {
				t.Errorf("%s: %d listed and %d excluded of %d", p, len(s.Listed), len(s.Excluded), offered)
			}
			if got := resolved(s, "code__read_file"); got != "code.read_file" && p != "native" {
				t.Errorf("%s: code__read_file resolves to %q", p, got)
			}
		}
	})
}
