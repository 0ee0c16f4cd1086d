package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// project is a root and a home in a temporary directory, and the toolset over them.
type project struct {
	*Toolset
	root, home string
}

// newProject writes files, named relative to a directory that holds "root" and "home".
func newProject(t testing.TB, files map[string]string, change ...func(*Config)) *project {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &project{root: filepath.Join(top, "root"), home: filepath.Join(top, "home")}
	for _, dir := range []string{p.root, p.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		full := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Root: p.root, Home: p.home}
	for _, c := range change {
		c(&cfg)
	}
	if p.Toolset, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *project) tool(t testing.TB, native string) *tool.Tool {
	t.Helper()
	for _, tl := range p.Catalog().Tools {
		if tl.Native == native {
			return tl
		}
	}
	t.Fatalf("no tool %q", native)
	return nil
}

// result is a decoded result of tools/call.
type result struct {
	Content []struct{ Type, Text string }
	IsError bool
	raw     json.RawMessage // structuredContent
}

func (r result) text() string { return r.Content[0].Text }

func (r result) note() string {
	if len(r.Content) < 2 {
		return ""
	}
	return r.Content[1].Text
}

// call executes and checks what holds for every result: one line, and structured content as the output schema says.
func (p *project) call(t testing.TB, native string, args any) (result, *tool.Failure) {
	t.Helper()
	return p.callCtx(t, t.Context(), native, args, nil)
}

func (p *project) callCtx(t testing.TB, ctx context.Context, native string, args any, progress func(tool.Progress)) (result, *tool.Failure) {
	t.Helper()
	return p.execute(t, ctx, native, args, &tool.Execution{Progress: progress})
}

// execute completes e, and executes it.
func (p *project) execute(t testing.TB, ctx context.Context, native string, args any, e *tool.Execution) (result, *tool.Failure) {
	t.Helper()
	raw, ok := args.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(args); err != nil {
			t.Fatal(err)
		}
	}
	if e.Progress == nil {
		e.Progress = func(tool.Progress) {}
	}
	tl := p.tool(t, native)
	e.Tool, e.Arguments = tl, raw
	reply, err := p.Execute(ctx, e)
	if err != nil {
		var f *tool.Failure
		if !errors.As(err, &f) {
			t.Fatalf("%s %s: the error is no failure: %v", native, raw, err)
		}
		if reply.Result != nil || f.Message == "" || f.Class == "" {
			t.Fatalf("%s %s: failure %+v with result %s", native, raw, f, reply.Result)
		}
		return result{}, f
	}
	if bytes.ContainsAny(reply.Result, "\r\n") {
		t.Fatalf("%s: the result has line breaks", native)
	}
	var r struct {
		result
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(reply.Result, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Content) == 0 || r.Content[0].Type != "text" {
		t.Fatalf("%s: no text: %s", native, reply.Result)
	}
	r.raw = r.StructuredContent
	validate(t, tl.OutputSchema, r.raw)
	return r.result, nil
}

func (p *project) mustCall(t testing.TB, native string, args any) result {
	t.Helper()
	r, f := p.call(t, native, args)
	if f != nil {
		t.Fatalf("%s %v: %v (%s)", native, args, f, f.ErrorCode())
	}
	return r
}

func decode[T any](t testing.TB, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func compileSchema(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:schema", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem:schema")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validate(t testing.TB, schema, value json.RawMessage) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatalf("no structured content: %v", err)
	}
	if err := compileSchema(t, schema).Validate(v); err != nil {
		t.Fatalf("structured content does not fit its schema: %v\n%s", err, value)
	}
}

type object = map[string]any

func TestCatalog(t *testing.T) {
	t.Parallel()
	c := newProject(t, nil).Catalog()
	if c.Server != "code" || c.Source != "code" || len(c.Tools) != 3 {
		t.Fatalf("catalog %+v", c)
	}
	for _, tl := range c.Tools {
		if tl.Name != tool.Name("code."+tl.Native) || tl.Title == "" || tl.Description == "" || tl.Server != "code" {
			t.Errorf("tool %+v", tl)
		}
		if bytes.ContainsAny(tl.Declaration, "\n\t") {
			t.Errorf("%s: the declaration has line breaks", tl.Name)
		}
		if tl.SchemaDigest != tool.Digest(tl.InputSchema) {
			t.Errorf("%s: wrong digest", tl.Name)
		}
		compileSchema(t, tl.InputSchema)
		compileSchema(t, tl.OutputSchema)
		var d struct {
			Name        string
			Annotations map[string]bool
			InputSchema struct {
				AdditionalProperties *bool
				Schema               string `json:"$schema"`
			}
		}
		if err := json.Unmarshal(tl.Declaration, &d); err != nil {
			t.Fatal(err)
		}
		if d.Name != tl.Native || !d.Annotations["readOnlyHint"] || d.Annotations["openWorldHint"] ||
			d.InputSchema.AdditionalProperties == nil || *d.InputSchema.AdditionalProperties ||
			!strings.Contains(d.InputSchema.Schema, "2020-12") {
			t.Errorf("declaration %s", tl.Declaration)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	ssh := filepath.Join(dir, ".ssh")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(ssh, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"missing root":         {Config{Root: filepath.Join(dir, "none")}, "existing directory"},
		"file as root":         {Config{Root: file}, "not a directory"},
		"sensitive root":       {Config{Root: ssh}, "sensitive"},
		"unclosed bracket":     {Config{Root: dir, SensitivePaths: []string{"a[b"}}, "not a glob"},
		"everything":           {Config{Root: dir, SensitivePaths: []string{"/"}}, "not a glob"},
		"tilde without a home": {Config{Root: dir, SensitivePaths: []string{"~/x"}}, "home"},
	} {
		if _, err := New(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/a": "x\n"})
	for _, tc := range []struct {
		native, args string
		ok           bool
	}{
		{readFile, `{"path":"a"}`, true},
		{readFile, `{"path":"a","start_line":1.0,"max_lines":1e0}`, true},
		{readFile, `{"PATH":"a"}`, false},
		{readFile, `{"path":"a","Path":"b"}`, false},
		{readFile, `{}`, false},
		{readFile, `[]`, false},
		{readFile, `null`, false},
		{readFile, ``, false},
		{readFile, `{"path":null}`, false},
		{readFile, `{"path":""}`, false},
		{readFile, `{"path":"a\u0000b"}`, false},
		{readFile, `{"path":"a","start_line":0}`, false},
		{readFile, `{"path":"a","start_line":-1}`, false},
		{readFile, `{"path":"a","start_line":1.5}`, false},
		{readFile, `{"path":"a","start_line":"1"}`, false},
		{readFile, `{"path":"a","start_line":1e99}`, false},
		{readFile, `{"path":"a","start_line":1e999}`, false},
		{readFile, `{"path":"a","start_line":null}`, false},
		{readFile, `{"path":"a","max_lines":0}`, false},
		{readFile, `{"path":"a","max_lines":1001}`, false},
		{listDir, `{}`, true},
		{listDir, `{"path":".","recursive":true,"limit":1}`, true},
		{listDir, `{"recursive":"yes"}`, false},
		{listDir, `{"recursive":null}`, false},
		{listDir, `{"limit":1001}`, false},
		{search, `{"query":"x"}`, true},
		{search, `{"query":"(?i)X","glob":"*.{a,b}","limit":5}`, true},
		{search, `{"query":""}`, false},
		{search, `{"query":"("}`, false},
		{search, `{"query":"a\nb"}`, false},
		{search, `{"query":"(a{900}){9}"}`, false},
		{search, `{"query":"(a{30}b{30}c{30}){30}"}`, false},
		{search, `{"query":"x","glob":"[a"}`, false},
		{search, `{"query":"x","glob":"{a}{b}{c}{d}"}`, false},
		{search, `{"query":"x","glob":""}`, false},
	} {
		_, f := p.call(t, tc.native, json.RawMessage(tc.args))
		if tc.ok && f != nil {
			t.Errorf("%s %s: %v", tc.native, tc.args, f)
		}
		if !tc.ok && (f == nil || f.Class != tool.ClassInvalidArguments) {
			t.Errorf("%s %s: failure %v, want invalid_arguments", tc.native, tc.args, f)
		}
	}
	_, err := p.Execute(t.Context(), &tool.Execution{Tool: &tool.Tool{Native: "write_file"}, Arguments: json.RawMessage(`{}`)})
	var f *tool.Failure
	if !errors.As(err, &f) || f.Class != tool.ClassUnknownTool {
		t.Errorf("unknown tool: %v", err)
	}
}

// FuzzArguments holds the tools against their declared schemas: what a schema allows is never refused as malformed, and what it
// refuses is never executed.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"path":"a"}`, `{"path":"../x","start_line":2.0}`, `{"query":"a|b","glob":"*.go"}`,
		`{"recursive":true,"limit":7}`, `{"path":1}`, `{"path":"a","path":"b"}`, `{"query":"x","limit":1e1}`, `{"path":"~/.ssh/id"}`,
		`{"path":"/proc/self/environ"}`, `{"query":"[[:alpha:]]+","path":"."}`, `{"path":"a","max_lines":0.5}`} {
		f.Add(s)
	}
	for _, s := range []string{`{"path":"n","content":"x"}`, `{"path":"a","content":"\ud800","overwrite":true}`, `{"path":"a","edits":[{"old":"one","new":""}]}`,
		`{"path":"a","unified_diff":"@@ -1 +1 @@\n-one\n+1\n"}`, `{"path":"a","edits":[{"old":1,"new":2}],"create_if_missing":null}`,
		`{"path":"a","edits":[{"old":"","new":"","replace_all":true,"x":1}]}`} {
		f.Add(s)
	}
	p := newProject(f, map[string]string{"root/a": "one\ntwo\n", "root/b/c.go": "x"}, writable)
	schemas := map[string]*jsonschema.Schema{}
	for _, tl := range p.Catalog().Tools {
		schemas[tl.Native] = compileSchema(f, tl.InputSchema)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || strings.Contains(text, ":1e") && len(text) > 200 {
			return
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return
		}
		if m, ok := v.(map[string]any); ok {
			for _, name := range []string{"path"} { // stay inside of the temporary directory
				if s, ok := m[name].(string); ok && (filepath.IsAbs(s) || strings.Contains(s, "..")) {
					return
				}
			}
		}
		if _, twice := rawjson.Repeated([]byte(text), bytes.Compare); twice {
			return // no call reaches a toolset with such arguments
		}
		for native, schema := range schemas {
			allowed := schema.Validate(v) == nil
			_, f := p.call(t, native, json.RawMessage(text))
			if !allowed && (f == nil || f.Class != tool.ClassInvalidArguments) {
				t.Errorf("%s %s: the schema refuses it, the tool answers %v", native, text, f)
			}
			if allowed && f != nil && f.Class == tool.ClassInvalidArguments && f.Code == "" && !strings.Contains(f.Message, "NUL") {
				t.Errorf("%s %s: the schema allows it, the tool says %v", native, text, f)
			}
		}
	})
}
