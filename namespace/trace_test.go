package namespace

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Features that came about by updates and those that are made at once are the same.
func TestFeatureUpdatesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	show := server("d", "show")
	show.Tools[0].Declaration = []byte(`{"name":"show","_meta":{"ui":{"resourceUri":"ui://page"}}}`)
	catalogs := []tool.Catalog{
		withLinks(withPrompts(server("a"), "p", "b__q"), "x:y", "x:{y}"), withLinks(withPrompts(server("b"), "q", "p"), "x:y", "ui://page"),
		withPrompts(server("a-b"), "p"), withPrompts(server("a_b", "x"), "p", "P", "q"), show,
	}
	catalogs[0].Instructions, catalogs[3].Abilities.Logging = "say", true
	n := newNamespace(t, allStyles())
	for _, mask := range append([]int{31, 15, 31, 0, 3, 19, 3, 7, 15}, seq(32)...) {
		var now []tool.Catalog
		for i, c := range catalogs {
			if mask&(1<<i) != 0 {
				now = append(now, c)
			}
		}
		n.Update(now)
		fresh := newNamespace(t, allStyles(), reversed(now)...)
		for _, p := range append(n.Profiles(), "s/a", "s/d") {
			a, err1 := n.Surface(p, tool.Client{})
			b, err2 := fresh.Surface(p, tool.Client{})
			if (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s with servers %b: %v, %v", p, mask, err1, err2)
			}
			if err1 != nil {
				continue
			}
			got, want := a.Features, b.Features
			if !slices.EqualFunc(got.Prompts, want.Prompts, sameFeature) || !slices.EqualFunc(got.Resources, want.Resources, sameFeature) ||
				!slices.EqualFunc(got.Templates, want.Templates, sameFeature) || !slices.Equal(got.Excluded, want.Excluded) ||
				!slices.Equal(got.Servers, want.Servers) || got.Abilities != want.Abilities || got.Instructions != want.Instructions {
				t.Fatalf("%s with servers %b:\n got %+v\nwant %+v", p, mask, got, want)
			}
			for _, uri := range []string{"x:y", "x:z", "ui://page", "toolhub://a/x:y", "toolhub://b/q:q", "toolhub://d/x:y", "toolhub://a_b/x:y"} {
				if owned(got, uri) != owned(want, uri) {
					t.Fatalf("%s with servers %b: %s is %q, want %q", p, mask, uri, owned(got, uri), owned(want, uri))
				}
			}
			for _, name := range []string{"p", "q", "b__q", "a__p", "mcp.a_b.p", "mcp.a_b.q"} {
				if prompted(got, name) != prompted(want, name) {
					t.Fatalf("%s with servers %b: %s is %q, want %q", p, mask, name, prompted(got, name), prompted(want, name))
				}
			}
		}
	}
}

func seq(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// Twins that nobody sees can still keep a name off a native surface: its clients are told.
func TestTwinsThatTakeANameAreAChange(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, []Profile{{Name: "native", Style: StyleNative}}, withPrompts(server("b", "read", "x"), "read"))
	s := surface(t, n, "native")
	equal(t, "before", shownNames(s), []string{"read", "x"})
	changes := n.Update([]tool.Catalog{withPrompts(server("a", "Read", "read"), "Read", "read"), withPrompts(server("b", "read", "x"), "read")})
	equal(t, "changes", written(changes), []string{"default:tp", "native:tp"})
	s = surface(t, n, "native")
	equal(t, "after", shownNames(s), []string{"x"})
	equal(t, "excluded", exclusions(s.Excluded), []string{"mcp.a.Read unsafe_twin a", "mcp.a.read unsafe_twin a", "mcp.b.read unsafe_twin a"})
	equal(t, "prompts", shownFeatures(s.Features.Prompts), []string{})
	if got := resolved(s, "mcp.b.read"); got != "" {
		t.Errorf("what is not shown resolves to %q", got)
	}
}

func TestCanBegin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{"*", true}, {"mcp.*", true}, {"*.read", true}, {"mcp.ab.*", true}, {"mcp.ab.x", true}, {"mcp.a*", true}, {"m?p.*b.x", true},
		{"*ab*", true}, {"?????????", true}, {"*x", true}, {"mcp.ab.", true},
		{"mcp.ab", false}, {"mcp.a", false}, {"mcp.abc.*", false}, {"code.*", false}, {"", false}, {"mcp.b*", false}, {"??", false},
	} {
		if got := glob.CanBegin(c.pattern, "mcp.ab."); got != c.want {
			t.Errorf("glob.CanBegin(%q) = %v", c.pattern, got)
		}
	}
}

func sameFeature(a, b tool.Feature) bool {
	return a.Server == b.Server && a.Native == b.Native && bytes.Equal(a.Declaration, b.Declaration)
}
