package namespace

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestNamesInEachStyle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ canonical, safe, short, native string }{
		{"mcp.github.search_issues", "mcp__github__search_issues", "github__search_issues", "search_issues"},
		{"mcp.git-hub.get-item", "mcp__git-hub__get-item", "git-hub__get-item", "get-item"},
		{"mcp.a_b.c_d", "mcp__a_b__c_d", "a_b__c_d", "c_d"},
		{"code.read_file", "code__read_file", "code__read_file", "read_file"},
		{"hub.status", "hub__status", "hub__status", "status"},
		{"tool_search", "tool_search", "tool_search", "tool_search"},
		// A server of a toolset's id leaves the short names to the toolset.
		{"mcp.code.read_file", "mcp__code__read_file", "mcp__code__read_file", "read_file"},
		// Replaced characters.
		{"mcp.s.admin.tools.list", "mcp__s__admin_tools_list_3ecf0f3bb4", "s__admin_tools_list_3ecf0f3bb4", "admin.tools.list"},
		{"mcp.s.Créer /x", "mcp__s__Cr_er_x_", "s__Cr_er_x_", "Créer /x"},
		{"mcp.s.日本", "mcp__s_", "s_", "日本"},
		// Separators that could be read in two ways.
		{"mcp.a.b__c", "mcp__a__b_c_", "a__b_c_", "b__c"},
		{"mcp.a__b.c", "mcp__a_b__c_", "a_b__c_", "c"},
		{"mcp.a._b", "mcp__a__b_", "a__b_", "_b"},
		{"mcp.a_.b", "mcp__a__b_", "a__b_", "b"},
		// What looks like a digest gets a real one.
		{"mcp.a.b_0123456789", "mcp__a__b_0123456789_", "a__b_0123456789_", "b_0123456789"},
		// Length: 46 fits, 47 is cut.
		{"mcp.server." + strings.Repeat("x", 33), "mcp__server__" + strings.Repeat("x", 33),
			"server__" + strings.Repeat("x", 33), strings.Repeat("x", 33)},
		{"mcp.server." + strings.Repeat("x", 34), "mcp__server__" + strings.Repeat("x", 22) + "_",
			"server__" + strings.Repeat("x", 34), strings.Repeat("x", 34)},
	} {
		id, ok := parseName(tool.Name(c.canonical))
		if !ok {
			t.Errorf("parseName(%q) failed", c.canonical)
			continue
		}
		for style, want := range map[Style]string{
			StyleCanonical: c.canonical, StyleSafe: c.safe, StyleShort: c.short, StyleNative: c.native,
		} {
			got := id.in(style)
			if digested := strings.HasSuffix(want, "_") && style != StyleNative; digested && endsInDigest(got) {
				got = got[:len(got)-digestLength]
			}
			if got != want {
				t.Errorf("%q in style %s = %q, want %q", c.canonical, style, got, want)
			}
		}
	}
	for _, bad := range []string{"", "mcp.", "mcp.a", "mcp.a.", "mcp..b", ".b", "code."} {
		if id, ok := parseName(tool.Name(bad)); ok {
			t.Errorf("parseName(%q) = %+v, want a refusal", bad, id)
		}
	}
}

var safePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,46}$`)

// checkApart fails unless the safe and short names of a and b are legal, stable and apart.
func checkApart(t *testing.T, a, b tool.Name) {
	t.Helper()
	x, okA := parseName(a)
	y, okB := parseName(b)
	if !okA || !okB {
		return
	}
	for _, id := range []identity{x, y} {
		for _, name := range []string{id.safe(), id.short()} {
			if id.source != "" && !safePattern.MatchString(name) {
				t.Errorf("%q is shown as %q, which clients refuse", id.canonical(), name)
			}
			if again, _ := parseName(tool.Name(id.canonical())); again != id {
				t.Errorf("%q is parsed as %+v and then as %+v", id.canonical(), id, again)
			}
		}
	}
	if a == b {
		return
	}
	for _, n := range []string{x.safe(), x.short()} {
		for _, m := range []string{y.safe(), y.short()} {
			if n == m {
				t.Errorf("%q and %q are both shown as %q", a, b, n)
			}
		}
	}
}

// Every split of the same text, and a tool that is named like another one's digest, in all pairs.
func TestNamesOfDifferentToolsDiffer(t *testing.T) {
	t.Parallel()
	var names []tool.Name
	for _, text := range []string{"a__b__c", "a_b_c", "a___b", "_a_b_", "mcp__a__b", "code__a", "hub__a__b"} {
		for i := 1; i < len(text)-1; i++ {
			names = append(names, tool.MCPName(text[:i], text[i:]), tool.MCPName(text[:i], text[i+1:]))
		}
	}
	names = append(names, "code.a", "hub.a", "hub.a__b", "code.b__c", "tool_search", "tool_call", "result_read")
	for _, base := range names {
		id, ok := parseName(base)
		if !ok || id.source != tool.SourceMCP {
			continue
		}
		// A hostile server names its tool like the encoded form of somebody else's.
		for _, forged := range []string{id.safe(), id.short(), strings.TrimPrefix(id.short(), id.server+separator)} {
			names = append(names, tool.MCPName(id.server, forged), tool.MCPName("mcp", forged))
		}
	}
	owners := map[string]tool.Name{}
	for _, name := range names {
		id, ok := parseName(name)
		if !ok {
			continue
		}
		for _, shown := range []string{id.safe(), id.short()} {
			if owner, taken := owners[shown]; taken && owner != name {
				t.Errorf("%q and %q are both shown as %q", owner, name, shown)
			}
			owners[shown] = name
		}
	}
	if len(owners) < 200 {
		t.Errorf("only %d names were compared", len(owners))
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", "b__c", "a__b", "c")
	f.Add("a", "b", "A", "b")
	f.Add("code", "read_file", "x", "\u200b")
	f.Add("s", strings.Repeat("y", 100), "s", strings.Repeat("y", 101))
	f.Fuzz(func(t *testing.T, server, native, server2, native2 string) {
		if strings.Contains(server, ".") || strings.Contains(server2, ".") {
			t.Skip("server ids hold no dot")
		}
		checkApart(t, tool.MCPName(server, native), tool.MCPName(server2, native2))
		for _, e := range []*entry{
			newEntry(subject{name: tool.MCPName(server, native)}),
			newEntry(subject{name: tool.MCPName(server2, native2)}),
		} {
			if e.fault == nil && foldLook(e.look) != e.look {
				t.Errorf("foldLook is not stable on %q", e.name)
			}
		}
	})
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		look  bool // equal to the eye
		loose bool // equal but for separators
	}{
		{"read", "read", true, true},
		{"read", "Read", true, true},
		{"read", "rеad", true, true}, // Cyrillic е
		{"PAYPAL", "РАУРАL", true, true},
		{"read", "ｒｅａｄ", true, true},
		{"read", "re\u200bad", true, true},
		{"read", "re\U000e0061ad", true, true},
		{"café", "cafe\u0301", true, true},
		{"file", "ﬁle", true, true},
		{"get-item", "get‐item", true, true},
		{"get-item", "get_item", false, true},
		{"get.item", "get__item", false, true},
		{"get item", "get/item", false, true},
		{"getitem", "get_item", false, false},
		{"read", "write", false, false},
		{"café", "cafe", false, false},
		{"日本", "中国", false, false},
	} {
		a, b := foldLook(c.a), foldLook(c.b)
		if (a == b) != c.look {
			t.Errorf("foldLook: %+q and %+q give %+q and %+q, want equal %v", c.a, c.b, a, b, c.look)
		}
		if a, b = foldSeparators(a), foldSeparators(b); (a == b) != c.loose {
			t.Errorf("foldSeparators: %+q and %+q give %+q and %+q, want equal %v", c.a, c.b, a, b, c.loose)
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{0, '\n', 0x1b, 0x7f, 0x85, 0xad, 0x200b, 0x200e, 0x202e, 0x2060, 0x2066, 0x2028, 0x3164,
		0x115f, 0xfe0f, 0xfeff, 0xe000, 0xe0001, 0xe0041, 0xe0100, 0x2800} {
		if got, found := findHidden("ab" + string(r) + "c"); !found || got != r {
			t.Errorf("hidden does not find %U", r)
		}
	}
	if _, found := findHidden("a\xffb"); !found {
		t.Error("hidden does not find broken UTF-8")
	}
	if r, found := findHidden("Ünïcode 日本 read_file-1.2/x �"); found {
		t.Errorf("hidden finds %U in plain text", r)
	}
}

func TestAutoStyle(t *testing.T) {
	t.Parallel()
	rules := clientRules()
	for client, want := range map[string]Style{
		"claude-code": StyleShort, "claude-ai": StyleShort, "claude-ai (via mcp-remote 0.1.37)": StyleShort,
		"cursor-vscode": StyleShort, "Cursor": StyleShort, "Visual Studio Code": StyleShort,
		"Visual Studio Code - Insiders": StyleShort, "codex-mcp-client": StyleShort, "Codex": StyleShort,
		"gemini-cli-mcp-client": StyleShort, "gemini-cli-mcp-client-github": StyleShort, "Zed": StyleShort,
		"windsurf-client": StyleShort, "Cline": StyleShort, "@cline/core": StyleShort, "qwen-cli-mcp-client-toolhub": StyleShort, "Roo-Code": StyleShort, "opencode": StyleShort,
		"github-copilot-developer": StyleShort, "JetBrains-IU-copilot-intellij": StyleShort,
		"": StyleCanonical, "my-agent": StyleCanonical, "zedtool": StyleCanonical, "not-claude": StyleCanonical,
		"ai-sdk-mcp-client": StyleSafe, "@langchain/mcp-adapters": StyleSafe, "mcp": StyleSafe, "Java SDK MCP Client": StyleSafe,
		"spring-ai-mcp-client - server1": StyleSafe, "langchain4j": StyleSafe, "rmcp": StyleSafe, "my-client": StyleSafe,
		"mcp (via mcp-remote 0.15.1)": StyleSafe, "mcp-inspector": StyleCanonical, "inspector-cli": StyleCanonical,
		"my-client-of-note": StyleCanonical, "mcp-remote": StyleCanonical,
		"mcp-toolhub": StyleCanonical, strings.Repeat("é", 100): StyleCanonical,
	} {
		if got := autoStyle(rules, tool.Client{Name: client}); got != want {
			t.Errorf("autoStyle(%q) = %s, want %s", client, got, want)
		}
	}
	for _, rule := range rules {
		if rule.name != strings.ToLower(rule.name) {
			t.Errorf("the row of %q is never found: it is not in lower case", rule.name)
		}
	}
}

func ExampleNamespace_Surface() {
	n := New(nil)
	n.Update([]tool.Catalog{{Server: "github", Source: tool.SourceMCP, Tools: []*tool.Tool{{
		Name: "mcp.github.search_issues", Server: "github", Native: "search_issues",
		Declaration: []byte(`{"name":"search_issues","inputSchema":{"type":"object"}}`),
	}}}})
	s, err := n.Surface(DefaultProfile, tool.Client{Name: "claude-code"})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(s.Listed[0].Declaration()))
	l, ok := s.Resolve("mcp.github.search_issues")
	fmt.Println(l.Tool.Name, ok)
	// Output:
	// {"name":"github__search_issues","inputSchema":{"type":"object"}}
	// mcp.github.search_issues true
}

// TestClientsAreDocumented: docs/clients.md names each client that the hub knows in the row of its style.
func TestClientsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules := clientRules()
	for _, rule := range rules {
		style := string(autoStyle(rules, tool.Client{Name: rule.name}))
		found := false
		for line := range strings.SplitSeq(string(page), "\n") {
			found = found || strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+rule.name+"`") && strings.Contains(line, "| `"+style+"`:")
		}
		if !found {
			t.Errorf("docs/clients.md has no row with the client `%s` and the style %s", rule.name, style)
		}
	}
}

// TestLeavesOutAgreesWithWhatIsShown: a profile has a reason for leaving a tool out exactly where it does.
func TestLeavesOutAgreesWithWhatIsShown(t *testing.T) {
	t.Parallel()
	for _, p := range []Profile{
		{},
		{Servers: []string{"git*"}},
		{Include: []string{"mcp.*.list_*"}},
		{Exclude: []string{"*.delete_*"}, Tools: []Override{{Match: "*", Title: "T"}}},
		{Servers: []string{"mail"}, Include: []string{"mcp.mail.list_folders"}, Exclude: []string{"mcp.mail.*"}},
	} {
		for server, natives := range map[string][]string{"github": {"list_issues", "delete_repo"}, "mail": {"list_folders", "send"}} {
			for _, native := range natives {
				name := "mcp." + server + "." + native
				own := &p
				_, selected := own.selects(name)
				if why := p.LeavesOut(server, name); (why == "") != (selected && own.offers(server)) {
					t.Errorf("%+v shows %s: %t, and gives the reason %q", p, name, selected, why)
				}
			}
		}
	}
}
