package facts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestAnnotations: those of a server without trust only tighten; those of a trusted one loosen as well, unless the name or
// the schema says the contrary.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	const sql = `"sql":{"type":"string"}`
	for _, c := range []struct {
		name, properties, annotations string
		trust                         bool
		readOnly, destructive         bool
		origin                        facts.Origin
	}{
		{"thing", "", `{"readOnlyHint":true}`, false, false, true, facts.Inferred},
		{"thing", "", `{"readOnlyHint":true}`, true, true, false, facts.Declared},
		{"thing", "", `{"destructiveHint":false}`, false, false, true, facts.Inferred},
		{"thing", "", `{"destructiveHint":false}`, true, false, false, facts.Inferred},
		{"get_thing", "", `{"readOnlyHint":false}`, false, false, true, facts.Declared},
		{"get_thing", "", `{"readOnlyHint":false}`, true, false, true, facts.Declared},
		{"get_thing", "", `{"destructiveHint":true}`, false, false, true, facts.Declared},
		{"get_thing", "", `{"readOnlyHint":true,"destructiveHint":true}`, true, false, true, facts.Declared},
		{"get_thing", "", `{"readOnlyHint":"true"}`, true, false, true, facts.Inferred},
		{"get_thing", "", `[]`, true, false, true, facts.Inferred},
		{"delete_thing", "", `{"readOnlyHint":true}`, true, false, true, facts.Inferred},
		{"run_thing", sql, `{"readOnlyHint":true}`, true, false, true, facts.Inferred},
		{"run_read_only_sql", sql, `{"readOnlyHint":true}`, true, false, true, facts.Inferred},
		{"create_thing", "", `{}`, false, false, true, facts.Inferred},
		{"update_thing", "", `{}`, false, false, true, facts.Inferred},
	} {
		f := facts.Of(made(t, c.name, "", c.properties, c.annotations), facts.Options{Trust: c.trust})
		if f.ReadOnly.Value != c.readOnly || f.Destructive.Value != c.destructive || f.ReadOnly.Origin != c.origin {
			t.Errorf("%s %s trust %t: read-only %+v, destructive %+v", c.name, c.annotations, c.trust, f.ReadOnly, f.Destructive)
		}
	}
	open := func(annotations string, trust bool) facts.Fact[bool] {
		return facts.Of(made(t, "get_thing", "", "", annotations), facts.Options{Trust: trust}).OpenWorld
	}
	if o := open(`{"openWorldHint":false}`, false); !o.Value {
		t.Errorf("a server without trust bounds its world: %+v", o)
	}
	if o := open(`{"openWorldHint":false}`, true); o.Value || o.Origin != facts.Declared {
		t.Errorf("a trusted server does not bound its world: %+v", o)
	}
	again := func(annotations string, trust bool) facts.Fact[bool] {
		return facts.Of(made(t, "set_thing", "", "", annotations), facts.Options{Trust: trust}).Idempotent
	}
	if i := again(`{"idempotentHint":true}`, false); i.Value {
		t.Errorf("a server without trust makes its tool idempotent: %+v", i)
	}
	if i := again(`{"idempotentHint":true}`, true); !i.Value {
		t.Errorf("a trusted server does not make its tool idempotent: %+v", i)
	}
}

func TestBuiltInToolsetsAreTrusted(t *testing.T) {
	t.Parallel()
	tl := declared(t, "code", `{"name":"read_file","description":"Reads a file.","inputSchema":{"type":"object","properties":`+
		`{"path":{"type":"string"}}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)
	tl.Name, tl.Tags = "code.read_file", []string{"readonly", "filesystem", "code"}
	f := facts.Of(tl, facts.Options{})
	if !f.Trusted || f.ReadOnly.Origin != facts.Declared || f.OpenWorld.Value || f.Kind.Value != "file_operation" {
		t.Errorf("%+v", f)
	}
	if want := []string{"code", "filesystem", "readonly"}; !slices.Equal(f.Tags, want) {
		t.Errorf("tags are %q, want %q", f.Tags, want)
	}
	if f.Risk.Value != facts.RiskLow {
		t.Errorf("%+v", f.Risk)
	}
}

func ptr(b bool) *bool { return &b }

func TestOverrides(t *testing.T) {
	t.Parallel()
	tl := made(t, "delete_thing", "Deletes a thing.", `"path":{"type":"string"},"where":{"type":"string"}`, `{"destructiveHint":true}`)
	f := facts.Of(tl, facts.Options{Overrides: []facts.Override{
		{Match: "mcp.other.*", Disabled: true},
		{Match: "mcp.s.delete_?????", ReadOnly: ptr(true), Tags: []string{"mine"}, Arguments: map[string]string{"/path": "none", "/where": "host"}},
		{Match: "mcp.*", ReadOnly: ptr(false), Network: ptr(false), Disabled: true,
			Arguments: map[string]string{"/path": "path"}},
	}})
	if !f.ReadOnly.Value || f.ReadOnly.Origin != facts.Configured || f.Destructive.Value || f.Risk.Value != facts.RiskLow {
		t.Errorf("read-only %+v, destructive %+v, risk %+v", f.ReadOnly, f.Destructive, f.Risk)
	}
	if f.Network.Value || f.Network.Origin != facts.Configured || !f.IsOutOfUse() || f.Lifecycle.Value != facts.Disabled || !f.Has("mine") {
		t.Errorf("network %+v, kind %+v, lifecycle %+v, tags %q", f.Network, f.Kind, f.Lifecycle, f.Tags)
	}
	want := []facts.Argument{{Pointer: "/where", Kind: "host", Origin: facts.Configured, Why: "mcp.s.delete_?????"}}
	if !slices.Equal(f.Arguments, want) {
		t.Errorf("arguments are %+v", f.Arguments)
	}
	for _, o := range []facts.Override{{Match: "*", Destructive: ptr(true)}, {Match: "*", Command: ptr(true)}} {
		f := facts.Of(made(t, "get_thing", "", "", `{"readOnlyHint":true}`), facts.Options{Trust: true, Overrides: []facts.Override{o}})
		if f.ReadOnly.Value || !f.Destructive.Value || !f.Has("dangerous") {
			t.Errorf("%+v: read-only %+v, destructive %+v, tags %q", o, f.ReadOnly, f.Destructive, f.Tags)
		}
	}
}

func TestTagsOfAServer(t *testing.T) {
	t.Parallel()
	tl := made(t, "get_thing", "", "", "")
	tl.Tags = []string{"write", "network", "filesystem", "team"}
	f := facts.Of(tl, facts.Options{})
	if f.ReadOnly.Value || !f.Network.Value || !f.Filesystem.Value || f.Network.Origin != facts.Configured || !f.Has("team") {
		t.Errorf("%+v", f)
	}
	tl = made(t, "delete_thing", "", "", "")
	tl.Tags = []string{"readonly", "dangerous"}
	if f := facts.Of(tl, facts.Options{}); f.ReadOnly.Value || f.Has("readonly") || !f.Has("dangerous") {
		t.Errorf("a server's tag loosens: %q", f.Tags)
	}
	// what the operator calls dangerous is no small risk, even if it only reads
	reads := made(t, "get_thing", "", "", `{"readOnlyHint":true}`)
	tl = made(t, "get_thing", "", "", `{"readOnlyHint":true}`)
	tl.Tags = []string{"dangerous"}
	for _, f := range []*facts.Facts{facts.Of(tl, facts.Options{Trust: true}),
		facts.Of(reads, facts.Options{Trust: true, Overrides: []facts.Override{{Match: "*", Tags: []string{"dangerous"}}}})} {
		if !f.ReadOnly.Value || f.Risk.Value != facts.RiskHigh || f.Risk.Origin != facts.Configured {
			t.Errorf("a dangerous reader: %+v", f.Risk)
		}
	}
	if f := facts.Of(made(t, "thing", "", "", ""), facts.Options{}); !f.Has("unknown") || f.Risk.Value != facts.RiskHigh {
		t.Errorf("nothing is known of it: %q", f.Tags)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]string{
		`"path":{"type":"string"}`: "/path path",
		`"repo_path":{"type":"string"},"repo":{"type":"string"},"owner":{"type":"string"}`:                                                                   "/repo_path resource,/repo resource,/owner resource",
		`"files":{"type":"array","items":{"type":"string"}}`:                                                                                                 "/files/* path",
		`"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"}}}}`:                                                         "/files/*/path path",
		`"a/b~c":{"type":"string","format":"uri"}`:                                                                                                           "/a~1b~0c url",
		`"opts":{"type":"object","properties":{"target":{"type":"string","description":"Absolute path"}}}`:                                                   "/opts/target path",
		`"opts":{"oneOf":[{"properties":{"url":{"type":"string"}}},{"properties":{"url":{}}}]}`:                                                              "/opts/url url",
		`"command":{"type":"array","items":{"type":"string"}}`:                                                                                               "/command/* command",
		`"mode":{"type":"string"},"n":{"type":"integer"},"text":{"type":"string"}`:                                                                           "",
		`"edit":{"$ref":"#/$defs/e"},"to":{"$ref":"#/$defs/p"}},"$defs":{"e":{"properties":{"file":{"type":"string"}}},"p":{"type":"string","format":"uri"}`: "/edit/file path,/to url",
		`"issue_id":{"type":"integer"}`:                                                                                                                      "/issue_id resource",
		`"jq":{"type":"string","description":"a jsonpath to the field"},"path":{"type":"string","description":"JSON path"}`:                                  "",
	} {
		f := facts.Of(made(t, "get_thing", "", property, ""), facts.Options{})
		var got []string
		for _, a := range f.Arguments {
			got = append(got, a.Pointer+" "+a.Kind)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("{%s}: %q, want %q", property, strings.Join(got, ","), want)
		}
	}
	f := facts.Of(made(t, "login", "", `"user":{"type":"string"},"password":{"type":"string"},"apiKey":{},"page_token":{"type":"string",`+
		`"description":"Pagination token"},"x":{"type":"string","format":"password"},"max_token":{"type":"integer"}`, ""), facts.Options{})
	if want := []string{"/password", "/apiKey", "/x"}; !slices.Equal(f.Sensitive, want) {
		t.Errorf("sensitive are %q, want %q", f.Sensitive, want)
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	plain := made(t, "get_thing", "Gets a thing.", "", "")
	marked := made(t, "get_thing", "", "", `{"deprecated":true}`)
	off := facts.Options{Overrides: []facts.Override{{Match: "*", Disabled: true}}}
	for _, c := range []struct {
		of    *tool.Tool
		o     facts.Options
		state facts.State
		want  string
	}{
		{plain, facts.Options{}, facts.State{}, facts.Available},
		{plain, facts.Options{}, facts.State{Server: tool.ServerReady}, facts.Available},
		{plain, facts.Options{}, facts.State{Server: tool.ServerStarting}, facts.Available},
		{plain, off, facts.State{Deferred: true}, facts.Disabled},
		{plain, facts.Options{}, facts.State{Hidden: true, Deferred: true}, facts.Disabled},
		{plain, facts.Options{}, facts.State{Server: tool.ServerStopped}, facts.Disabled},
		{plain, facts.Options{}, facts.State{Server: tool.ServerNeedsAuth}, facts.RequiresSetup},
		{plain, facts.Options{}, facts.State{Server: tool.ServerBackoff}, facts.RequiresSetup},
		{plain, facts.Options{}, facts.State{Deferred: true}, facts.Deferred},
		{marked, facts.Options{}, facts.State{Deferred: true}, facts.Deprecated},
		{marked, facts.Options{}, facts.State{}, facts.Deprecated},
	} {
		f := facts.Of(c.of, c.o)
		if got := f.LifecycleIn(c.state); got.Value != c.want || got.Why == "" {
			t.Errorf("%+v: %+v, want %s", c.state, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := facts.Config{Tools: []facts.Override{{Match: "mcp.s.*", ReadOnly: ptr(true),
		Tags: []string{"dangerous"}, Arguments: map[string]string{"/a": "path"}}}}
	if err := good.Validate(); err != nil {
		t.Errorf("%v", err)
	}
	if err := (facts.Config{}).Validate(); err != nil {
		t.Errorf("%v", err)
	}
	bad := facts.Config{Tools: []facts.Override{
		{Match: "a", ReadOnly: ptr(true), Destructive: ptr(true), Command: ptr(true)},
		{Match: "b", Concurrency: "x", Interrupt: "x", Tags: []string{"write", " a"}, Arguments: map[string]string{"p": "x"}},
	}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("every fault is overlooked")
	}
	for _, path := range []string{"tools[0].destructive", "tools[0].command",
		"tools[1].concurrency", "tools[1].interrupt",
		"tools[1].tags:", "tools[1].tags[1]", "tools[1].arguments:", "tools[1].arguments.p"} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("no fault at %s in:\n%v", path, err)
		}
	}
}

// TestReferencesThatMultiply: a short schema may have a great many paths through it.
func TestReferencesThatMultiply(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 11 {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[%s]}`, i, strings.Join(slices.Repeat([]string{ref}, 50), ",")))
	}
	tl := made(t, "get_thing", "", `},"allOf":[{"$ref":"#/$defs/d0"}],"$defs":{`+strings.Join(defs, ","), "")
	began := time.Now()
	facts.Of(tl, facts.Options{})
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("took %s", took)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("get_thing", "Gets a thing.", `{"type":"object","properties":{"path":{"type":"string"}}}`, `{"readOnlyHint":true}`, true)
	f.Add("delete", "", `{"properties":{"a":{"anyOf":[{"properties":{"b":{"enum":["delete"]}}}]}}}`, `{"destructiveHint":true}`, false)
	f.Add("", "\u0000", `[]`, `null`, false)
	f.Add("GET_2xX\u00e9", "A.B. \u00e9", `[]`, `null`, false)
	f.Fuzz(func(t *testing.T, name, description, schema, annotations string, trust bool) {
		declaration := `{"name":"x","inputSchema":` + schema + `,"annotations":` + annotations + `}`
		tl := &tool.Tool{Name: tool.MCPName("s", name), Server: "s", Native: name, Description: description,
			Declaration: json.RawMessage(declaration), InputSchema: json.RawMessage(schema)}
		got := facts.Of(tl, facts.Options{Trust: trust})
		if got.ReadOnly.Value && (got.Destructive.Value || !trust) {
			t.Errorf("read-only: %+v, destructive: %+v", got.ReadOnly, got.Destructive)
		}
		if got.Has("readonly") == got.Has("write") || !slices.IsSorted(got.Tags) {
			t.Errorf("tags %q", got.Tags)
		}
		if got.ReadOnly.Value != got.Has("readonly") || got.ReadOnly.Value && got.Risk.Value != facts.RiskLow && got.Risk.Value != facts.RiskMedium {
			t.Errorf("read-only %+v, risk %+v", got.ReadOnly, got.Risk)
		}
		for _, object := range got.Objects() {
			if !json.Valid(object) {
				t.Errorf("%s", object)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	tools := recorded(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		facts.Of(tools[i%len(tools)], facts.Options{})
	}
}

func BenchmarkOfOneTool(b *testing.B) {
	for _, name := range []tool.Name{"mcp.github.create_pull_request", "mcp.git.git_log"} {
		for _, tl := range recorded(b) {
			if tl.Name == name {
				b.Run(tl.Native, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						facts.Of(tl, facts.Options{})
					}
				})
			}
		}
	}
}
