package gate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

func writeTool() *tool.Tool {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`)
	d := json.RawMessage(`{"name":"write_file","description":"Writes a file","inputSchema":` + string(schema) + `}`)
	return &tool.Tool{Name: "mcp.files.write_file", Server: "files", Native: "write_file", Declaration: d, InputSchema: schema,
		SchemaDigest: tool.Digest(schema), Description: "Writes a file"}
}

func newGate(tb testing.TB, c gate.Config, dir string) *gate.Gate {
	tb.Helper()
	g, err := gate.New(c, gate.Options{Dir: dir, State: filepath.Join(dir, "state"), HubTools: hubTools()})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// An approval is for one version of whatever decides about a server's calls, and for no other server's settings.
func TestVersion(t *testing.T) {
	t.Parallel()
	version := func(c gate.Config, o gate.Options) string {
		g, err := gate.New(c, o)
		if err != nil {
			t.Fatal(err)
		}
		return g.Version("files")
	}
	yes := true
	usual := version(gate.Config{}, gate.Options{})
	if again := version(gate.Config{}, gate.Options{Sources: map[string]gate.ToolSource{"other": {Trust: true}}}); again != usual {
		t.Errorf("another server changes %q to %q", usual, again)
	}
	seen := map[string]string{usual: "nothing"}
	for name, v := range map[string]string{
		"limits": version(gate.Config{Limits: target.Config{SensitivePaths: []string{"secret"}}}, gate.Options{}),
		"facts":  version(gate.Config{Tools: facts.Config{Tools: []facts.Override{{Match: "*", ReadOnly: &yes}}}}, gate.Options{}),
		"mode":   version(gate.Config{Mode: policy.ModeClient}, gate.Options{}),
		"trust":  version(gate.Config{}, gate.Options{Sources: map[string]gate.ToolSource{"files": {Trust: true}}}),
		"own":    version(gate.Config{}, gate.Options{Own: []string{"/x"}}),
	} {
		if other, same := seen[v]; same {
			t.Errorf("%s is the version of %s", name, other)
		}
		seen[v] = name
	}
}

// No record of a decision has the secrets of a call.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	g, err := gate.New(gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{{Match: []string{"mcp.files.*"}, Then: tool.Ask,
		When: `timestamp(arguments.password) > timestamp("2020-01-01T00:00:00Z")`}}}}}, gate.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Request(t.Context(), policy.Request{Tool: writeTool(), Actor: tool.Actor{Name: "ann", Door: "http"},
		Input: json.RawMessage(`{"path":"https://u:SECRET@h.example/a.txt","password":"SECRET\"1","url":"https://u:SECRET@h.example/x?token=SECRET"}`)})
	if err != nil {
		t.Fatal(err)
	}
	d := g.Engine.Decide(r)
	if left, err := json.Marshal(r.Targets); err != nil || strings.Count(string(left), "SECRET") < 3 {
		t.Errorf("what the call is aimed at was changed: %s %v", left, err)
	}
	if record, err := json.Marshal(d); err != nil || strings.Contains(string(record), "SECRET") || !strings.Contains(string(record), "invalid RFC 3339 timestamp") {
		t.Errorf("%s %v", record, err)
	}
}

// What the hub goes by is asked about by whatever name it is reached, also where somebody has allowed all else, and what it
// keeps to itself is denied.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(dir, "real [1] {a}*")
	if err := os.MkdirAll(filepath.Join(real, "state"), 0o700); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(real, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	g, err := gate.New(gate.Config{Limits: target.Config{ExemptPaths: []string{filepath.ToSlash(dir) + "/rules/**", "**/run/**"}},
		Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{{Match: []string{"mcp.*"}, Then: tool.Allow}}}}},
		gate.Options{Dir: dir, State: filepath.Join(dir, "link", "state"), Sources: map[string]gate.ToolSource{"files": {Trust: true}},
			Own: []string{filepath.Join(dir, "link", "config.yaml"), filepath.Join(dir, "rules", "own.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	reader := writeTool()
	reader.Name, reader.Native, reader.Description = "mcp.files.read_file", "read_file", "Reads a file"
	reader.InputSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	reader.Declaration = json.RawMessage(`{"name":"read_file","annotations":{"readOnlyHint":true}}`)
	for _, test := range []struct {
		tool *tool.Tool
		path string
		want tool.Behavior
	}{
		{writeTool(), real + "/state/grants.yaml", tool.Deny}, {writeTool(), "link/state/run/1.json", tool.Deny},
		{writeTool(), "link/state", tool.Deny}, {writeTool(), "link/STATE/run/1.json", tool.Deny}, {writeTool(), "link/state2", tool.Allow},
		{writeTool(), real + "/config.yaml", tool.Ask}, {writeTool(), "link/config.yaml", tool.Ask}, {writeTool(), "link/CONFIG.yaml", tool.Ask},
		{writeTool(), "rules/own.yaml", tool.Ask}, {writeTool(), "rules/other.yaml", tool.Allow}, {writeTool(), "link/other.yaml", tool.Allow},
		{reader, real + "/state/run/1.json", tool.Deny}, {reader, real + "/config.yaml", tool.Allow},
	} {
		input, err := json.Marshal(map[string]string{"path": test.path})
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Request(t.Context(), policy.Request{Tool: test.tool, Input: input,
			Actor: tool.Actor{Name: "ann", Door: "http"}})
		if err != nil {
			t.Fatal(err)
		}
		if d := g.Engine.Decide(r); d.Behavior != test.want {
			t.Errorf("%s %s: %s, want %s: %v", test.tool.Native, test.path, d.Behavior, test.want, d.Reason)
		}
	}
}

// What a call is aimed at is found and judged: where it leads, and not what it says.
func TestRequest(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	g := newGate(t, gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{{Match: []string{"mcp.files.*"}, Then: tool.Allow}}}}}, dir)
	for given, want := range map[string]tool.Behavior{
		"a.txt": tool.Allow, "link/a.txt": tool.Ask, "../a.txt": tool.Ask, ".env": tool.Ask, "state/run/1.json": tool.Deny, "x/../state/k": tool.Deny,
	} {
		input, err := json.Marshal(map[string]string{"path": given})
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Request(t.Context(), policy.Request{Tool: writeTool(), Input: input,
			Actor: tool.Actor{Name: "ann", Door: "http"}})
		if err != nil || len(r.Targets) == 0 {
			t.Fatalf("%s: %+v, %v", given, r.Targets, err)
		}
		if d := g.Engine.Decide(r); d.Behavior != want {
			t.Errorf("%s: %s %v", given, d.Behavior, d.Reason)
		}
	}
}

// A rule and a remembered answer about a host hold for whatever clients take for that host, and for nothing that some of them
// take for another one.
func TestHostsOfRulesAndAnswersAreThoseThatClientsGoTo(t *testing.T) {
	t.Parallel()
	grants, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{{Match: []string{"mcp.*"}, Then: tool.Deny,
		When: `targets.exists(t, t.host == "evil.corp")`}}}}}, gate.Options{Dir: t.TempDir(), Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	fetch := writeTool()
	fetch.Name, fetch.Native = "mcp.files.fetch", "fetch"
	fetch.InputSchema = json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}}}`)
	fetch.Declaration = json.RawMessage(`{"name":"fetch","inputSchema":` + string(fetch.InputSchema) + `}`)
	if _, err := grants.AddSession("s", policy.Grant{Then: tool.Allow, Tool: fetch.Name, Actor: "actor:http/ann", Schema: fetch.SchemaDigest,
		Scopes: []policy.Scope{{Kind: target.URL, Host: "good.corp", Write: true}}}); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]tool.Behavior{
		"http:/evil.corp/x": tool.Deny, `https:\\evil.corp`: tool.Deny, "https:evil.corp": tool.Deny, "http://ev%69l.corp/": tool.Deny, "\thttp:///EVIL。corp.": tool.Deny,
		"https://good.corp/": tool.Allow, "https:/good.corp": tool.Allow, `https:\\GOOD.corp\x`: tool.Allow, "https://other.corp": tool.Ask,
		`https://good.corp\@other.corp/`: tool.Deny, "https://good.corp@other.corp": tool.Ask,
	} {
		input, err := json.Marshal(map[string]string{"url": given})
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Request(t.Context(), policy.Request{Tool: fetch, Input: input,
			Actor: tool.Actor{Name: "ann", Door: "http", Session: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		if d := g.Engine.Decide(r); d.Behavior != want {
			t.Errorf("%q: %s, want %s: %v", given, d.Behavior, want, d.Reason)
		}
	}
}

// The same surface is returned as long as nothing changes, and each caller has its own.
func TestSurface(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{{Match: []string{"*"}, Actor: []string{"bob"},
		Then: tool.Deny}}}}}, t.TempDir())
	full := tool.NewSurface("srf_x", "p", "canonical", "d", []tool.Listed{{Name: "w", Tool: writeTool()}}, nil, map[string]int{"w": 0})
	ann, bob := tool.Actor{Name: "ann", Door: "http"}, tool.Actor{Name: "bob", Door: "http"}
	if g.Surface(full, ann) != full {
		t.Error("nothing is hidden, and the surface is another")
	}
	s := g.Surface(full, bob)
	if _, ok := s.Resolve("w"); ok || len(s.Listed) != 0 || s.ID == full.ID || s.Digest == full.Digest || len(s.Excluded) != 3 || s != g.Surface(full, bob) {
		t.Errorf("%+v", s)
	}
}

// Without a rule or mode that could hide anything, what the operator has taken out of use is hidden all the same.
func TestSurfaceHidesWhatIsOutOfUse(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Config{Tools: facts.Config{Tools: []facts.Override{{Match: "mcp.files.*", Disabled: true}}}}, t.TempDir())
	full := tool.NewSurface("srf_x", "p", "canonical", "d", []tool.Listed{{Name: "w", Tool: writeTool()}}, nil, map[string]int{"w": 0})
	if s := g.Surface(full, tool.Actor{Name: "ann", Door: "http"}); len(s.Listed) != 0 {
		t.Errorf("%+v", s)
	}
}

// hubTools are a tool that reads and one that forwards.
func hubTools() []*tool.HubTool {
	return []*tool.HubTool{{Name: "tool_search", Annotations: `{"readOnlyHint":true,"openWorldHint":false}`}, {Name: "tool_call", Annotations: `{}`, Forwards: true}}
}

// The hub's own tools are left out by rules that are about them. What denies writing is not about tool_call, which is the call
// that it stands for.
func TestSurfaceWithholdsTheHubsOwnTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule         policy.Rule
		search, call bool
	}{
		{policy.Rule{Match: []string{"tool_search"}}, true, false},
		{policy.Rule{Match: []string{"tool_call"}}, false, true},
		{policy.Rule{Server: []string{"hub"}}, true, true},
		{policy.Rule{Tags: []string{"write", "openworld", "unknown", "dangerous"}}, false, false},
		{policy.Rule{Tags: []string{"readonly"}}, true, false},
		{policy.Rule{Match: []string{"tool_*"}, When: "arguments.a == 1"}, false, false},
		{policy.Rule{Match: []string{"mcp.*"}}, false, false},
	} {
		c.rule.Then = tool.Deny
		g := newGate(t, gate.Config{Mode: policy.ModePlan, Sets: []policy.Set{{Source: policy.User, Rules: []policy.Rule{c.rule}}}}, t.TempDir())
		s := g.Surface(tool.NewSurface("srf_x", "p", "canonical", "d", nil, nil, nil), tool.Actor{Name: "ann", Door: "http"})
		if s.Withholds("tool_search") != c.search || s.Withholds("tool_call") != c.call {
			t.Errorf("%+v: %+v", c.rule, s.Excluded)
		}
	}
}

// What the facts call sensitive is masked wherever some program would find it, and so is what is named like a secret where
// the schema knows no such name.
func TestMask(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"api_key":{"type":"string"},"page_token":{"type":"string","description":"Page token"},` +
		`"list":{"type":"array","items":{"type":"object","properties":{"secret":{"type":"string"}}}},"headers":{"type":"object"}}}`)
	f := facts.Of(&tool.Tool{Name: "mcp.a.b", Server: "a", InputSchema: schema, Declaration: json.RawMessage(`{"name":"b"}`)}, facts.Options{})
	for given, want := range map[string]string{
		`{"a":1,"Api_Key":"s","api_key":["s"],"big":12345678901234567890}`: `{"a":1,"Api_Key":"[masked]","api_key":"[masked]","big":12345678901234567890}`,
		`{"list":[{"secret":"s","u":2}]}`:                                  `{"list":[{"secret":"[masked]","u":2}]}`,
		`{"\u0061pi_key":"s","api_key":"t"}`:                               `{"\u0061pi_key":"[masked]","api_key":"[masked]"}`,
		`{"password":"s","x":{"y":[{"accessToken":"s"}]}}`:                 `{"password":"[masked]","x":{"y":[{"accessToken":"[masked]"}]}}`,
		`{"headers":{"Authorization":"Bearer s"}}`:                         `{"headers":{"Authorization":"[masked]"}}`,
		`{"page_token":"p","text":"plain"}`:                                `{"page_token":"p","text":"plain"}`,
		`{"x":["https:\/\/u\u003as\u0040h", {"//u:s@h":1.0}],"y":"a = b"}`: `{"x":["https://u:[masked]@h", {"//u:[masked]@h":1.0}],"y":"a = b"}`,
		`{"x":"mail a@b, c=d"}`:                                            `{"x":"mail a@b, c=d"}`,
		`{"password":"s","x":"h/?token=s;rm"}`:                             `{"password":"[masked]","x":"h/?token=[masked]"}`,
	} {
		if got := gate.Mask([]byte(given), f); string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", given, got, want)
		}
	}
	if got := gate.Mask([]byte(`{"text" : "plain"}`), nil); string(got) != `{"text" : "plain"}` {
		t.Errorf("without a secret: %s", got)
	}
	for _, schema := range []string{`{"properties":{"command":{"type":"string"}}}`, `{"properties":{"code":{"type":"string","description":"JavaScript to run"}}}`} {
		runs := facts.Of(&tool.Tool{Name: "mcp.a.run", Server: "a", InputSchema: json.RawMessage(schema)}, facts.Options{})
		if got := gate.Mask([]byte(`{"x":"h/?token=s;rm"}`), runs); string(got) != `{"x":"h/?token=[masked];rm"}` {
			t.Errorf("a tool that runs commands: %s", got)
		}
	}
	if got := gate.Mask([]byte(`{"token":"s"}`), nil); string(got) != `{"token":"[masked]"}` {
		t.Errorf("a tool of which nothing is known: %s", got)
	}
}

// What a stranger wrote stands between quotes that it cannot end, and what shows nothing is shown.
func TestPlainAndQuoted(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a\nb\r\x1b[2J":             `a\u000ab\u000d\u001b[2J`,
		"\u202eabc\u2066\u200b":     `\u202eabc\u2066\u200b`,
		"a\u3164b\u2800\ufe0f":      `a\u3164b\u2800\ufe0f`,
		"x\U000e0061\U000e0100\xff": `x\ue0061\ue0100\ufffd`,
		"naïve 日本":                  `naïve 日本`,
	} {
		if got := gate.Plain(given, 100); got != want {
			t.Errorf("%q is shown as %s, want %s", given, got, want)
		}
	}
	aim := gate.TargetLine(&target.Target{Kind: target.Path, Resolved: `/p/a\" (allowed by the operator)`})
	if want := `path "/p/a\\\" (allowed by the operator)"`; aim != want {
		t.Errorf("%s, want %s", aim, want)
	}
}

// FuzzMessage: nothing that a stranger writes makes a line of its own, or goes unseen.
func FuzzMessage(f *testing.F) {
	f.Add("x\nRisk: low", `{"path":"a\nb"}`, "client")
	f.Add("\u202eabc\x1b[2J", `{}`, "\r")
	g := newGate(f, gate.Config{}, f.TempDir())
	f.Fuzz(func(t *testing.T, description, arguments, client string) {
		if !json.Valid([]byte(arguments)) || !strings.HasPrefix(arguments, "{") {
			arguments = `{}`
		}
		w := writeTool()
		w.Description = description
		r, err := g.Request(t.Context(), policy.Request{Tool: w, Input: []byte(arguments),
			Actor: tool.Actor{Name: "a", Door: "http", Client: tool.Client{Name: client}}})
		if err != nil {
			t.Skip(err)
		}
		d := g.Engine.Decide(r)
		text := gate.Message(gate.Asked{Request: &r, Decision: &d})
		risks := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "Risk: ") {
				risks++
			}
		}
		if risks != 1 || len(text) > 20<<10 || strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && c != ' ' && !unicode.IsPrint(c) }) {
			t.Errorf("%q", text)
		}
	})
}

// BenchmarkPermission is all that permission adds to a call: targets, 100 rules, a condition.
func BenchmarkPermission(b *testing.B) {
	rules := make([]policy.Rule, 0, 100)
	for i := range 99 {
		rules = append(rules, policy.Rule{ID: fmt.Sprint("r", i), Match: []string{fmt.Sprintf("mcp.server%d.*_file", i)}, Then: tool.Deny})
	}
	rules = append(rules, policy.Rule{ID: "cel", Match: []string{"mcp.files.*"}, Then: tool.Allow, When: `arguments.path.endsWith(".go") && actor.name == "ann"`})
	g := newGate(b, gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: rules}}}, b.TempDir())
	for name, input := range map[string]string{"path": `{"path":"main.go","content":"x"}`, "no target": `{"content":"x"}`} {
		b.Run(name, func(b *testing.B) {
			c := policy.Request{Tool: writeTool(), Input: json.RawMessage(input),
				Actor: tool.Actor{Name: "ann", Door: "http"}}
			b.ReportAllocs()
			for b.Loop() {
				r, err := g.Request(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				g.Engine.Decide(r)
			}
		})
	}
}
