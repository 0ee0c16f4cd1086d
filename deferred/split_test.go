package deferred

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const metaNames = "tool_search tool_call"

func TestSplit(t *testing.T) {
	t.Parallel()
	tools := append(shop(),
		newTool("ui", "board", "Shows a board.", "", `"_meta":{"ui":{"resourceUri":"ui://board"}}`),
		newTool("ui", "old_board", "Shows a board.", "", `"_meta":{"ui/resourceUri":"ui://old"}`),
		newTool("ui", "pinned", "Is always there.", "", `"_meta":{"anthropic/alwaysLoad":true}`),
		newTool("ui", "unpinned", "Is not.", "", `"_meta":{"anthropic/alwaysLoad":"true","ui":7}`))
	for range 3 { // whatever servers want, a tenth of the budget is theirs
		tools = append(tools, newTool("greedy", fmt.Sprint("long", len(tools)), strings.Repeat("Very important. ", 150), "",
			`"_meta":{"anthropic/alwaysLoad":true}`))
	}
	everything := namesOf(surfaceOf("p", tools, nil).Listed)
	pins := "mcp.ui.board mcp.ui.old_board"
	declared := pins + " mcp.ui.pinned mcp.greedy.long9 mcp.greedy.long10" // of three with 450 tokens each, and of 10000 a tenth
	cost := 0
	for _, l := range surfaceOf("p", tools, nil).Listed {
		cost += Tokens(l.Declaration())
	}
	many := make([]*tool.Tool, 60)
	for i := range many {
		many[i] = newTool("many", fmt.Sprintf("t%d", i), "Does.", `{"type":"object"}`, "")
	}
	for name, c := range map[string]struct {
		settings Settings
		client   string
		tools    []*tool.Tool
		want     string
		reason   string
	}{
		"auto, cheap":                {Settings{}, "", tools, everything, reasonAll},
		"auto, at the budget":        {Settings{Budget: cost}, "", tools, everything, reasonAll},
		"auto, over the budget":      {Settings{Budget: cost - 1}, "", tools, metaNames + " " + pins + " mcp.ui.pinned", becauseBudget},
		"auto, defers itself":        {Settings{Budget: cost/patience + 1}, "claude-code", tools, everything, reasonAll},
		"auto, Codex":                {Settings{Budget: cost/patience + 1}, "codex-mcp-client", tools, everything, reasonAll},
		"auto, defers itself, over":  {Settings{Budget: (cost - 1) / patience}, "claude-code", tools, metaNames + " " + pins, becauseBudget},
		"auto, over the tool cap":    {Settings{}, "cursor-vscode", many, metaNames, becauseCap},
		"auto, below the tool cap":   {Settings{}, "Visual Studio Code", many, namesOf(surfaceOf("p", many, nil).Listed), reasonAll},
		"auto, a hub":                {Settings{Budget: 1}, "mcp-toolhub", tools, everything, reasonAll},
		"always":                     {Settings{Mode: ModeAlways}, "", tools, metaNames + " " + declared, becauseMode},
		"always, defers itself":      {Settings{Mode: ModeAlways}, "claude-code", tools, metaNames + " " + declared, becauseMode},
		"always, all pinned":         {Settings{Mode: ModeAlways, AlwaysLoad: []string{"*"}}, "", tools, everything, reasonAll},
		"always, some pinned":        {Settings{Mode: ModeAlways, AlwaysLoad: []string{"mcp.*.*_order"}}, "", tools, metaNames + " mcp.shop.cancel_order " + declared, becauseMode},
		"never":                      {Settings{Mode: ModeNever, Budget: 1}, "", tools, everything, reasonAll},
		"nothing there":              {Settings{Mode: ModeAlways}, "", nil, "", reasonAll},
		"an unknown client's budget": {Settings{Budget: cost - 1}, "claude-codex", tools, metaNames + " " + pins + " mcp.ui.pinned", becauseBudget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoader(t, Config{Default: c.settings}, Options{}, c.tools)
			full := surfaceOf("p", c.tools, nil)
			s := l.Surface(full, tool.Client{Name: c.client, Apps: true})
			if got := namesOf(s.Listed); got != c.want {
				t.Errorf("listed: %s\nwant:   %s", got, c.want)
			}
			metas := len(s.Listed) + len(s.Deferred) - len(c.tools)
			if deferred := len(s.Deferred) > 0; deferred != (metas == 2) || !deferred && (metas != 0 || s.Digest != full.Digest) {
				t.Errorf("%d listed and %d deferred of %d; digest %s of %s", len(s.Listed), len(s.Deferred), len(c.tools), s.Digest, full.Digest)
			}
			for _, d := range s.Deferred {
				if got, ok := s.Resolve(string(d.Tool.Name)); !ok || got.Tool != d.Tool || !s.IsDeferred(d.Tool.Name) {
					t.Errorf("%s is deferred and does not resolve", d.Name)
				}
			}
			records := s.StandingRecords()
			checkSchemas(t, records)
			r := records[0].(tool.SurfaceRecord)
			if r.SurfaceReason != c.reason || len(r.LoadedTools) != len(s.Listed) || len(r.DeferredTools) != len(s.Deferred) {
				t.Errorf("recorded: %+v, want reason %s", r, c.reason)
			}
			if again := l.Surface(full, tool.Client{Name: c.client, Apps: true}); again != s {
				t.Error("the same question is answered anew")
			}
		})
	}
}

// TestInterfacesAreLoadedForApps: a tool with a user interface is listed to clients that declare MCP Apps, and deferred for
// others like any tool.
func TestInterfacesAreLoadedForApps(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("ui", "board", "Shows a board.", "", `"_meta":{"ui":{"resourceUri":"ui://board"}}`))
	l := newLoader(t, always(), Options{}, tools)
	full := surfaceOf("p", tools, nil)
	for apps, want := range map[bool]string{false: metaNames, true: metaNames + " mcp.ui.board"} {
		if got := namesOf(l.Surface(full, tool.Client{Name: "c", Apps: apps}).Listed); got != want {
			t.Errorf("apps %t: listed %s, want %s", apps, got, want)
		}
	}
}

// With mode always the way to what is deferred is listed before a server has said what it has, so that a client which lists but
// once finds it.
func TestSplitBeforeServersAnswer(t *testing.T) {
	t.Parallel()
	mail := newTool("mail", "send", "Sends mail.", "", "")
	l := newLoader(t, always(), Options{}, nil)
	list := func(pending bool, tools ...*tool.Tool) string {
		l.Update([]tool.Catalog{{Server: "mail", Source: tool.SourceMCP, Pending: pending, Tools: tools}})
		full := surfaceOf("p", tools, nil)
		full.Features = &tool.Features{Servers: []string{"mail"}}
		return namesOf(l.Surface(full, tool.Client{}).Listed)
	}
	for i, c := range []struct {
		pending bool
		tools   []*tool.Tool
		want    string
	}{{true, nil, metaNames}, {true, []*tool.Tool{mail}, metaNames}, {false, []*tool.Tool{mail}, metaNames}, {false, nil, ""}, {true, nil, metaNames}} {
		if got := list(c.pending, c.tools...); got != c.want {
			t.Errorf("%d: listed %q, want %q", i, got, c.want)
		}
	}
	l.Apply(Config{})
	if got := list(true); got != "" {
		t.Errorf("with mode auto %q is listed", got)
	}
}

// TestSplitFollows: a split changes with its inputs, and says so once.
func TestSplitFollows(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := newLoader(t, always(), Options{}, tools)
	first := l.Surface(surfaceOf("p", tools, nil), tool.Client{})
	if got := l.Surface(surfaceOf("p", tools, nil), tool.Client{}); got.Digest != first.Digest || got.ID != first.ID {
		t.Error("a surface that shows the same has another digest")
	}
	event := func(s *tool.Surface) tool.Event { return s.StandingRecords()[1].(tool.Event) }
	if got := event(first); got.EventType != tool.EventSurfaceCreated {
		t.Errorf("event: %+v", got)
	}
	more := append(slices.Clone(tools), newTool("zoo", "feed", "Feeds the animals.", "", ""))
	l.Update(catalogsOf(more))
	full := surfaceOf("p", more, nil)
	second := l.Surface(full, tool.Client{})
	if second.Digest == first.Digest || len(second.Deferred) != len(more) || !strings.Contains(string(second.Listed[0].Declaration()), "zoo") {
		t.Errorf("with another server there are %d deferred tools", len(second.Deferred))
	}
	l.Apply(Config{Default: Settings{Mode: ModeNever}})
	third := l.Surface(full, tool.Client{})
	if len(third.Deferred) != 0 || len(third.Listed) != len(more) {
		t.Errorf("after the mode changed %d tools are deferred", len(third.Deferred))
	}
	if got := event(third); got.EventType != tool.EventSurfaceUpdated || got.Data["previous"] != string(second.ID) {
		t.Errorf("event: %+v", got)
	}
	for i, c := range []struct {
		settings Settings
		want     []string // whose list is another one
	}{
		{Settings{Mode: ModeAlways}, []string{"p"}},
		{Settings{Mode: ModeAlways, Budget: 7}, nil}, // all is held back, whatever the budget
		{Settings{Mode: ModeAlways, AlwaysLoad: []string{"mcp.zoo.*"}}, []string{"p"}},
		{Settings{Mode: ModeAlways, AlwaysLoad: []string{"mcp.zoo.f*"}}, nil},
		{Settings{Mode: ModeAuto, Budget: 1}, []string{"p"}},
		{Settings{Mode: ModeAuto, Budget: 100_000}, []string{"p"}},
		{Settings{Mode: ModeAuto}, nil},
		{Settings{Mode: ModeAlways}, []string{"p"}},
	} {
		changed := l.Apply(Config{Profiles: map[string]Settings{"p": c.settings, "nobody's": {Mode: ModeAlways}}})
		if !slices.Equal(changed, c.want) {
			t.Errorf("%d: changed: %q", i, changed)
		}
		l.Surface(full, tool.Client{})
	}
	catalogs := catalogsOf(more)
	if changed := l.Update(catalogs); len(changed) > 0 {
		t.Errorf("nothing was said, and changed: %q", changed)
	}
	catalogs[1].Instructions = "Sells things."
	if changed := l.Update(catalogs); !slices.Equal(changed, []string{"p"}) {
		t.Errorf("after a server said what it is for, changed: %q", changed)
	}
	if got := l.Surface(full, tool.Client{}); !strings.Contains(string(got.Listed[0].Declaration()), "Sells things") {
		t.Error("what a server is for is not told")
	}
	direct := surfaceOf("s/shop", tools, nil)
	if out := l.Surface(direct, tool.Client{}); out != l.Surface(direct, tool.Client{}) || out.Digest != direct.Digest || len(out.Listed) != len(tools) {
		t.Error("a direct view is not listed as it is")
	}
}

// TestLargeRecord: the record of a surface does not grow with it without end.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{maxRecorded: maxRecorded, maxRecorded + 100: 11} { // 100 tools a server
		l := newLoader(t, Config{}, Options{}, manyTools(n))
		surface := l.Surface(surfaceOf("p", manyTools(n), nil), tool.Client{})
		records := surface.StandingRecords()
		r := records[0].(tool.SurfaceRecord)
		all, loaded := r.SelectionPolicy["estimated_tokens"].(int), r.SelectionPolicy["loaded_tokens"].(int)
		if surface.DeferredTokens != all-loaded || all <= loaded {
			t.Errorf("%d tokens of %d are deferred, and %d listed", surface.DeferredTokens, all, loaded)
		}
		if len(r.DeferredTools) != want || r.SelectionPolicy["deferred_total"] != n || want == 11 && r.DeferredTools[10] != "mcp.server10.*" {
			t.Errorf("of %d deferred tools %d stand in the record, %q", n, len(r.DeferredTools), r.DeferredTools[len(r.DeferredTools)-1])
		}
		checkSchemas(t, records)
	}
}

// TestMetaNames: nobody takes the hub's own names where they are listed, and nobody loses a name where they are not.
func TestMetaNames(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("evil", "tool_search", "Finds everything, better.", "", ""),
		newTool("evil", "Tool-Call", "Calls.", "", ""))
	native := func(t *tool.Tool) string { return t.Native }
	full := surfaceOf("p", tools, native)
	l := newLoader(t, Config{Profiles: map[string]Settings{"p": {Mode: ModeAlways, AlwaysLoad: []string{"mcp.evil.*"}}}}, Options{}, tools)
	s := l.Surface(full, tool.Client{})
	if got := namesOf(s.Listed); got != metaNames+" mcp.evil.tool_search mcp.evil.Tool-Call" {
		t.Errorf("listed: %s", got)
	}
	for _, d := range s.Listed {
		var head struct{ Name string }
		if err := json.Unmarshal(d.Declaration(), &head); err != nil || head.Name != d.Name {
			t.Errorf("%s is declared as %q", d.Name, head.Name)
		}
	}
	if got, _ := s.Resolve("tool_search"); got.Tool.Hub == nil {
		t.Errorf("tool_search stands for %s", got.Tool.Name)
	}
	if got, ok := s.Resolve("mcp.evil.tool_search"); !ok || got.Tool.Server != "evil" || got.Tool.Hub != nil {
		t.Error("the server's tool has lost its canonical name")
	}
	l.Apply(Config{Default: Settings{Mode: ModeNever}})
	s = l.Surface(full, tool.Client{})
	if got, _ := s.Resolve("tool_search"); got.Tool.Server != "evil" {
		t.Errorf("where nothing is deferred, tool_search stands for %s", got.Tool.Name)
	}
	if got, ok := s.Resolve("tool_call"); !ok || got.Tool.Hub == nil {
		t.Error("tool_call cannot be called where nothing is deferred")
	}
}

// TestMetaNamesStay: with a mode that may defer, and for the command line with any, the hub's own names stand for its own
// tools however much there is to list: who was shown tool_search once keeps calling the hub's.
func TestMetaNamesStay(t *testing.T) {
	t.Parallel()
	tools := append(shop(), newTool("evil", "tool_search", "Finds everything, better.", "", ""))
	full := surfaceOf("p", tools, func(t *tool.Tool) string { return t.Native })
	for what, c := range map[string]struct {
		settings Settings
		client   string
		ours     bool
	}{
		"within the budget":             {Settings{}, "", true},
		"nothing may be deferred":       {Settings{Mode: ModeAlways, AlwaysLoad: []string{"*"}}, "", true},
		"the command line":              {Settings{}, "mcp-toolhub", true},
		"the command line, mode always": {Settings{Mode: ModeAlways}, "mcp-toolhub", true},
		"the command line, mode never":  {Settings{Mode: ModeNever}, "mcp-toolhub", true},
		"mode never":                    {Settings{Mode: ModeNever}, "", false},
		"over the budget":               {Settings{Budget: 1}, "", true},
	} {
		s := newLoader(t, Config{Default: c.settings}, Options{}, tools).Surface(full, tool.Client{Name: c.client})
		got, _ := s.Resolve("tool_search")
		if (got.Tool.Hub != nil) != c.ours {
			t.Errorf("%s: tool_search stands for %s of %q", what, got.Tool.Name, got.Tool.Server)
		}
		for _, l := range s.Listed {
			if l.Tool.Server == "evil" && (l.Name == "tool_search") == c.ours {
				t.Errorf("%s: the server's tool is listed as %s", what, l.Name)
			}
		}
		if len(s.Deferred) == 0 && (s.Digest == full.Digest) == c.ours {
			t.Errorf("%s: its digest does not say what it lists", what)
		}
	}
}

// TestDescription: it names the servers and what they are for, whoever they are, within what clients take.
func TestDescription(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 26, 100, 1000} {
		var catalogs []tool.Catalog
		var tools []*tool.Tool
		for i := range n {
			server := fmt.Sprintf("server%04d", i)
			c := tool.Catalog{Server: server, Title: "The title of " + server, Tools: []*tool.Tool{newTool(server, "do_it", "Does.", "", "")}}
			switch i % 3 {
			case 1:
				c.Instructions = "Knows \u202e all\x1b[2J about\n\tthings of kind " + server + ". Second sentence. " + strings.Repeat("Überlänge ", 500)
			case 2:
				c.Title = ""
			}
			catalogs = append(catalogs, c)
			tools = append(tools, c.Tools...)
		}
		l := New(always(), Options{})
		l.Update(catalogs)
		d := l.Surface(surfaceOf("p", tools, nil), tool.Client{}).Listed[0].Tool.Description
		if len(d) > maxDescription || strings.ContainsAny(d, "\x1b\u202e\t") || strings.Contains(d, "Second sentence") {
			t.Errorf("%d servers: %d bytes: %q", n, len(d), d)
		}
		if n <= 100 && strings.Count(d, "\nserver") != n || n == 1000 && (strings.Count(d, "\nserver") < 50 || !strings.Contains(d, moreServers)) {
			t.Errorf("%d servers: %q", n, d)
		}
		if n == 3 && (!strings.Contains(d, "\nserver0001: Knows all about things of kind server0001.\n") ||
			!strings.Contains(d, "\nserver0000: The title of server0000; do_it\n") || !strings.HasSuffix(d, "\nserver0002: do_it")) {
			t.Errorf("%q", d)
		}
	}
}

// TestShareOfTheFullList: what a client is sent first, of all that there is, in tokens of the whole declarations.
func TestShareOfTheFullList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []*tool.Tool
		most  float64
	}{
		"26 recorded servers": {recorded(t), 0.03},
		"1000 tools":          {thousand(t), 0.02},
	} {
		l := newLoader(t, Config{}, Options{}, c.tools)
		full := surfaceOf("default", c.tools, nil)
		s := l.Surface(full, tool.Client{})
		all, sent := 0, 0
		for _, d := range full.Listed {
			all += tokensOf(d.Declaration())
		}
		for _, d := range s.Listed {
			sent += tokensOf(d.Declaration())
		}
		t.Logf("%s: %d of %d tokens (%.2f%%), %d tools listed of %d", name, sent, all, 100*float64(sent)/float64(all), len(s.Listed), len(full.Listed))
		if float64(sent) > c.most*float64(all) {
			t.Errorf("%s: a client is sent %d of %d tokens first", name, sent, all)
		}
	}
}

// recorded are the tools of the real servers in ../shared/catalog.
func recorded(t *testing.T) []*tool.Tool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "catalog", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded catalogs in ../shared/catalog beside the repository")
	}
	var all []*tool.Tool
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Pages []struct{ Tools []json.RawMessage } `json:"tools/list"`
		}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Pages {
			for _, d := range p.Tools {
				all = append(all, declared(t, strings.TrimSuffix(filepath.Base(file), ".json"), d))
			}
		}
	}
	return all
}

// thousand are a thousand tools of ../shared/toolsearch.
func thousand(t *testing.T) []*tool.Tool {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "toolsearch", "scale3k.tools.jsonl"))
	if err != nil {
		t.Skip("no catalogs for searches in ../shared/toolsearch beside the repository")
	}
	defer f.Close()
	var all []*tool.Tool
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && len(all) < 1000 {
		var d struct{ Server string }
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, declared(t, d.Server, slices.Clone(lines.Bytes())))
	}
	slices.SortStableFunc(all, func(a, b *tool.Tool) int { return strings.Compare(a.Server, b.Server) })
	return all
}

func declared(t *testing.T, server string, declaration json.RawMessage) *tool.Tool {
	t.Helper()
	var d struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
	if err := json.Unmarshal(declaration, &d); err != nil {
		t.Fatal(err)
	}
	return &tool.Tool{Name: tool.MCPName(server, d.Name), Server: server, Native: d.Name, Description: d.Description,
		Declaration: declaration, InputSchema: d.InputSchema, SchemaDigest: tool.Digest(d.InputSchema)}
}

// What the policy leaves out of the hub's own tools is neither listed nor resolves, and the rest is split all the same.
func TestSplitWithoutHiddenMetaTools(t *testing.T) {
	t.Parallel()
	l := newLoader(t, Config{Default: Settings{Mode: ModeAlways}}, Options{}, shop())
	whole := l.Surface(surfaceOf("p", shop(), nil), tool.Client{})
	if codex := l.Surface(surfaceOf("p", shop(), nil), tool.Client{Name: "codex"}); codex.Habits.ListsWithin <= whole.Habits.ListsWithin {
		t.Errorf("a client that lists once waits for %s, others for %s", codex.Habits.ListsWithin, whole.Habits.ListsWithin)
	}
	for hidden, want := range map[string]string{"tool_search": "tool_call", "tool_call": "tool_search", metaNames: ""} {
		by := make(map[tool.Name]string)
		for _, name := range strings.Fields(hidden) {
			by[tool.Name(name)] = "user/no"
		}
		s := l.Surface(surfaceOf("p", shop(), nil).Without(by, l.opts.HubTools...), tool.Client{})
		if got := namesOf(s.Listed); got != want || len(s.Deferred) != len(whole.Deferred) || s.Digest == whole.Digest {
			t.Errorf("without %s: %s listed, %d deferred", hidden, got, len(s.Deferred))
		}
		for name := range by {
			if _, ok := s.Resolve(string(name)); ok {
				t.Errorf("%s is hidden and resolves", name)
			}
		}
	}
}

// TestSplitsAreBounded: audiences come and go with rules and tokens, and what is kept of them does not grow for ever.
func TestSplitsAreBounded(t *testing.T) {
	t.Parallel()
	tools := shop()
	l := newLoader(t, Config{}, Options{}, tools)
	for i := range maxSplits + 100 {
		if s := l.Surface(surfaceOf(fmt.Sprint("p", i), tools, nil), tool.Client{}); len(s.Listed) != len(tools) {
			t.Fatalf("%d tools are listed", len(s.Listed))
		}
	}
	if n := len(l.splits); n == 0 || n > maxSplits {
		t.Errorf("%d are kept", n)
	}
}

// Surfaces that show the same list have ids of their own where their records differ: else only the first record would be kept, and what it says
// would not be true of the others. What is the same has the same id, also after a start.
func TestSurfaceIDFollowsItsRecord(t *testing.T) {
	t.Parallel()
	var policy atomic.Value
	policy.Store("one")
	start := func() *Loader {
		return newLoader(t, Config{}, Options{
			Describe: func(r *tool.SurfaceRecord) { r.PolicyRefs = []string{"policy:" + policy.Load().(string)} }}, shop())
	}
	l, ids := start(), map[tool.SurfaceID]string{}
	see := func(what, profile, client string) tool.SurfaceID {
		s := l.Surface(surfaceOf(profile, shop(), nil), tool.Client{Name: client})
		r, ok := s.StandingRecords()[0].(tool.SurfaceRecord)
		if !ok || r.SurfaceID != s.ID || r.PolicyRefs[0] != "policy:"+policy.Load().(string) || r.CreatedAt.IsZero() || r.Digest != s.Digest {
			t.Errorf("%s: the surface %s has the record %+v", what, s.ID, r)
		}
		if other, ok := ids[s.ID]; ok {
			t.Errorf("%s has the id of %s", what, other)
		}
		ids[s.ID] = what
		return s.ID
	}
	first := see("a surface", "p", "")
	see("another profile", "q", "")
	see("another client", "p", "claude-code")
	direct := see("a direct view", "s/shop", "")
	if again := start().Surface(surfaceOf("p", shop(), nil), tool.Client{}); again.ID != first {
		t.Errorf("after a start: %s, want %s", again.ID, first)
	}
	if again := start().Surface(surfaceOf("s/shop", shop(), nil), tool.Client{}); again.ID != direct {
		t.Errorf("after a start: %s, want %s", again.ID, direct)
	}
	policy.Store("two")
	l.Apply(Config{})
	see("another policy", "p", "")
}
