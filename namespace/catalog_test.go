package namespace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// recorded returns the catalogs of real servers that ../shared/catalog holds, with the toolset code beside them.
func recorded(t testing.TB) []tool.Catalog {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "catalog", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recorded catalogs in ../shared/catalog beside the repository")
	}
	catalogs := []tool.Catalog{toolset("code", "read_file", "list_dir", "search")}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := tool.Catalog{Server: strings.TrimSuffix(filepath.Base(file), ".json"), Source: tool.SourceMCP}
		for _, declaration := range declarations(t, text, "tools") {
			var head struct{ Name string }
			if err := json.Unmarshal(declaration, &head); err != nil {
				t.Fatal(err)
			}
			c.Tools = append(c.Tools, &tool.Tool{
				Name: tool.MCPName(c.Server, head.Name), Server: c.Server, Native: head.Name, Declaration: declaration,
			})
		}
		for _, list := range []struct {
			array, member string
			into          *[]tool.Offer
		}{{"prompts", "name", &c.Prompts}, {"resources", "uri", &c.Resources}, {"resourceTemplates", "uriTemplate", &c.Templates}} {
			for _, declaration := range declarations(t, text, list.array) {
				value, _ := rawjson.Get(declaration, list.member)
				native, ok := rawjson.String(value)
				if !ok {
					t.Fatalf("%s: %s", file, declaration)
				}
				*list.into = append(*list.into, tool.Offer{Server: c.Server, Native: native, Declaration: declaration})
			}
		}
		var initialized struct{ Instructions string }
		if answer, ok := rawjson.Get(text, "initialize"); ok {
			if err := json.Unmarshal(answer, &initialized); err != nil {
				t.Fatal(err)
			}
		}
		c.Instructions = initialized.Instructions
		catalogs = append(catalogs, c)
	}
	return catalogs
}

// declarations finds every element of every array that is called array in text.
func declarations(t testing.TB, text json.RawMessage, array string) (out []json.RawMessage) {
	t.Helper()
	visit := func(name string, value []byte) {
		if name == array && len(value) > 0 && value[0] == '[' {
			_ = rawjson.Elements(value, func(v []byte) bool {
				out = append(out, v)
				return true
			})
			return
		}
		out = append(out, declarations(t, value, array)...)
	}
	switch {
	case len(text) > 0 && text[0] == '{':
		_ = rawjson.Members(text, func(m rawjson.Member) bool {
			visit(m.Name(), m.Value)
			return true
		})
	case len(text) > 0 && text[0] == '[':
		_ = rawjson.Elements(text, func(v []byte) bool {
			visit("", v)
			return true
		})
	}
	return out
}

func TestRealServersTogether(t *testing.T) {
	t.Parallel()
	catalogs := recorded(t)
	total := 0
	natives := map[string]int{}
	for _, c := range catalogs {
		total += len(c.Tools)
		for _, x := range c.Tools {
			natives[x.Native]++
		}
	}
	if len(catalogs) != 27 || total < 350 {
		t.Fatalf("%d catalogs with %d tools", len(catalogs), total)
	}
	collidingTools, collidingNames := 0, 0
	for _, count := range natives {
		if count > 1 {
			collidingTools += count
			collidingNames++
		}
	}
	if collidingNames < 18 {
		t.Errorf("only %d native names collide, the recorded servers alone have 18", collidingNames)
	}
	n := newNamespace(t, allStyles(), catalogs...)
	for _, style := range n.Profiles() {
		s := surface(t, n, style)
		if want := total; style != "native" && (len(s.Listed) != want || len(s.Excluded) != 0) {
			t.Errorf("%s: %d tools of %d, excluded %v", style, len(s.Listed), want, exclusions(s.Excluded))
		}
		if style == "native" && (len(s.Listed) != total-collidingTools || len(s.Excluded) != collidingTools) {
			t.Errorf("native: %d tools, %d excluded; want %d and %d: %v", len(s.Listed), len(s.Excluded),
				total-collidingTools, collidingTools, exclusions(s.Excluded))
		}
		checkSurface(t, s)
	}
	for _, client := range []string{"claude-code", "codex-mcp-client", "gemini-cli-mcp-client", "Visual Studio Code", "cursor-vscode"} {
		s, err := n.Surface("auto", tool.Client{Name: client})
		if err != nil {
			t.Fatal(err)
		}
		checkAccepted(t, client, shownNames(s))
	}
	checkAccepted(t, "safe", shownNames(surface(t, n, "safe")))
}

// checkSurface fails unless each tool resolves by each name, and declarations differ from the origin's in the name only.
func checkSurface(t *testing.T, s *tool.Surface) {
	t.Helper()
	for _, l := range s.Listed {
		id, _ := parseName(l.Tool.Name)
		for _, name := range []string{l.Name, string(l.Tool.Name), id.safe(), id.short()} {
			if got := resolved(s, name); got != string(l.Tool.Name) {
				t.Errorf("%s: %q resolves to %q, want %q", s.Style, name, got, l.Tool.Name)
			}
		}
		if got := resolved(s, l.Tool.Native); got != "" && got != string(l.Tool.Name) {
			t.Errorf("%s: %q resolves to %q", s.Style, l.Tool.Native, got)
		}
		before, after, found := strings.Cut(string(l.Tool.Declaration), string(rawjson.Quote(l.Tool.Native)))
		if want := before + string(rawjson.Quote(l.Name)) + after; !found || string(l.Declaration()) != want {
			t.Errorf("%s: the declaration of %s differs in more than its name", s.Style, l.Tool.Name)
		}
	}
}

// checkAccepted holds names against what known clients take.
func checkAccepted(t *testing.T, who string, names []string) {
	t.Helper()
	ends, cut := map[string]string{}, map[string]string{}
	for _, name := range names {
		if !safePattern.MatchString(name) {
			t.Errorf("%s: %q is no name of at most %d safe characters", who, name, maxName)
		}
		if len("toolhub")+len(name) >= 60 {
			t.Errorf("%s: %q with its server is too long for Cursor", who, name)
		}
		if len("mcp__toolhub__")+len(name) > 64 {
			t.Errorf("%s: %q with its prefix is longer than 64", who, name)
		}
		end := name[:min(30, len(name))] + "|" + name[max(0, len(name)-30):]
		if other, taken := ends[end]; taken {
			t.Errorf("%s: %q and %q have equal first and last 30 characters", who, name, other)
		}
		ends[end] = name
		// What is left of a name of the longest prefix when the middle is cut out of it.
		long := "mcp_toolhub_" + name
		if len(long) > 63 {
			long = long[:30] + "..." + long[len(long)-30:]
		}
		if other, taken := cut[long]; taken {
			t.Errorf("%s: %q and %q are the same once cut to 63", who, name, other)
		}
		cut[long] = name
	}
}

// Prompts, resources and instructions of real servers: all are there, under names that resolve to them.
func TestRealFeaturesTogether(t *testing.T) {
	t.Parallel()
	catalogs := recorded(t)
	var prompts, resources, said int
	for _, c := range catalogs {
		prompts, resources = prompts+len(c.Prompts), resources+len(c.Resources)
		if c.Instructions != "" {
			said++
		}
	}
	if prompts < 5 || resources < 16 || said < 3 {
		t.Fatalf("%d prompts, %d resources, %d instructions", prompts, resources, said)
	}
	n := newNamespace(t, allStyles(), catalogs...)
	for _, style := range n.Profiles() {
		f := features(t, n, style)
		if len(f.Prompts) != prompts || len(f.Resources) != resources || len(f.Excluded) != 0 {
			t.Errorf("%s: %d prompts, %d resources, excluded %v", style, len(f.Prompts), len(f.Resources), f.Excluded)
		}
		if labels := strings.Count("\n"+f.Instructions, "\nServer "); labels != said {
			t.Errorf("%s: instructions of %d servers, want %d", style, labels, said)
		}
		for _, r := range f.Resources {
			if r.Shown != r.Native || string(r.Declaration) != string(r.Offer.Declaration) {
				t.Errorf("%s: %q of %s is shown as %q", style, r.Native, r.Server, r.Shown)
			}
		}
		checkFeatures(t, style, f)
	}
	for _, c := range catalogs[1:] {
		s := surface(t, n, "s/"+c.Server)
		if len(s.Listed) != len(c.Tools) || len(s.Features.Prompts) != len(c.Prompts) || len(s.Features.Resources) != len(c.Resources) {
			t.Errorf("s/%s: %d tools, %d prompts, %d resources", c.Server, len(s.Listed), len(s.Features.Prompts), len(s.Features.Resources))
		}
		for i, l := range s.Listed {
			if string(l.Declaration()) != string(c.Tools[i].Declaration) {
				t.Errorf("s/%s: tool %s is not as the server lists it", c.Server, l.Name)
			}
		}
		checkFeatures(t, s.Profile, s.Features)
	}
}

// A name that is shown stays the same whichever other servers there are.
func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	catalogs := recorded(t)
	all := newNamespace(t, allStyles(), catalogs...)
	want := map[string]string{}
	for _, style := range all.Profiles() {
		for _, l := range surface(t, all, style).Listed {
			want[style+" "+string(l.Tool.Name)] = l.Name
		}
	}
	for i := range catalogs {
		rest := slices.Delete(slices.Clone(catalogs), i, i+1)
		all.Update(rest)
		for _, style := range all.Profiles() {
			for _, l := range surface(t, all, style).Listed {
				if name, shown := want[style+" "+string(l.Tool.Name)]; shown && name != l.Name {
					t.Errorf("without %s, %s is shown as %q and no longer as %q", catalogs[i].Server, l.Tool.Name, l.Name, name)
				}
			}
		}
	}
}
