package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

func admit(cfg settings.Server, raw []json.RawMessage) ([]*tool.Tool, []tool.Exclusion) {
	a := newAdmission(cfg, nil)
	admitted, excluded := a.admit(lists.Tools, raw, digests(raw))
	var tools []*tool.Tool
	for _, c := range admitted {
		tools = append(tools, a.tool(c))
	}
	return tools, excluded
}

func one(declaration string) ([]*tool.Tool, []tool.Exclusion) {
	return admit(settings.Server{ID: "srv"}, []json.RawMessage{json.RawMessage(declaration)})
}

func TestAdmitRepairs(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 20_000) + "{}" + strings.Repeat("}", 20_000)
	const ok = `"inputSchema":{"type":"object"}`
	for _, test := range []struct {
		name, in, want string
		parts          string // of the repairs, joined by comma
	}{
		{"none", `{"name":"t",` + ok + `}`, `{"name":"t",` + ok + `}`, ""},
		{"order, numbers, escapes and unknown members stay",
			`{"z":12345678901234567890.10, "name":"t\u0041","inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"é":"\/"}`,
			`{"z":12345678901234567890.10, "name":"t\u0041","inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"é":"\/"}`, ""},
		{"pretty", "{\n \"name\": \"t\",\r\n \"inputSchema\": {\"type\": \"object\"},\n \"n\": 1e400}", `{"name":"t",` + ok + `,"n":1e400}`, ""},
		{"no input schema", `{"name":"t"}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"boolean input schema", `{"inputSchema":true,"name":"t"}`, `{` + ok + `,"name":"t"}`, "inputSchema"},
		{"null input schema", `{"inputSchema":null,"name":"t"}`, `{` + ok + `,"name":"t"}`, "inputSchema"},
		{"array input schema", `{"inputSchema":[1],"name":"t"}`, `{` + ok + `,"name":"t"}`, "inputSchema"},
		{"text input schema", `{"inputSchema":"{}","name":"t"}`, `{` + ok + `,"name":"t"}`, "inputSchema"},
		{"empty input schema", `{"name":"t","inputSchema":{}}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"no type", `{"name":"t","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#"}}`,
			`{"name":"t","inputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}}`, "inputSchema"},
		{"list of types", `{"name":"t","inputSchema":{"a":1,"type":["null","object"],"b":2}}`,
			`{"name":"t","inputSchema":{"a":1,"type":"object","b":2}}`, "inputSchema"},
		{"does not compile", `{"name":"t","inputSchema":{"type":"object","properties":{"a":"string","b":{"maximum":3}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{"maximum":3}}}}`, "inputSchema"},
		{"one bad word", `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"int","maximum":3},"b":{"type":"string"}},"required":["a"]}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"maximum":3},"b":{"type":"string"}},"required":["a"]}}`, "inputSchema"},
		{"bad words in other places", `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"anyOf":[{"type":"str"}],"x":1},"b":{"$ref":"#/$defs/d"},"c/d":{"items":{"type":7}}},"$defs":{"d":null},"required":"a"}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"x":1},"b":{"$ref":"#/$defs/d"},"c/d":{"items":{}}},"$defs":{"d":{}}}}`, "inputSchema,inputSchema,inputSchema,inputSchema"},
		{"reference to nothing", `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/no"},"b":{"type":"string"}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{"type":"string"}}}}`, "inputSchema"},
		{"remote reference", `{"name":"t","inputSchema":{"type":"object","$ref":"https://x.test/s"}}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"endless reference", `{"name":"t","inputSchema":{"type":"object","$ref":"#"}}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"too deep", `{"name":"t","inputSchema":{"type":"object","not":` + deep + `}}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"lookahead", `{"name":"t","inputSchema":{"type":"object","properties":{"p":{"pattern":"(?=a)"}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"p":{"pattern":"(?=a)"}}}}`, ""},
		{"output schema", `{"name":"t",` + ok + `,"outputSchema":{"type":"object"}}`, `{"name":"t",` + ok + `,"outputSchema":{"type":"object"}}`, ""},
		{"null output schema", `{"name":"t","outputSchema":null,` + ok + `}`, `{"name":"t",` + ok + `}`, "outputSchema"},
		{"bad output schema", `{"name":"t",` + ok + `,"outputSchema":{"type":"thing"}}`, `{"name":"t",` + ok + `}`, "outputSchema"},
		{"bad output pattern", `{"name":"t",` + ok + `,"outputSchema":{"type":"object","properties":{"a":{"pattern":"(("}}}}`, `{"name":"t",` + ok + `}`, "outputSchema"},
		{"deep output schema", `{"name":"t",` + ok + `,"outputSchema":` + deep + `}`, `{"name":"t",` + ok + `}`, "outputSchema"},
		{"output schema without type", `{"name":"t",` + ok + `,"outputSchema":{"title":"T"}}`, `{"name":"t",` + ok + `,"outputSchema":{"type":"object","title":"T"}}`, "outputSchema"},
		{"output schema by choice", `{"name":"t",` + ok + `,"outputSchema":{"anyOf":[{}]}}`, `{"name":"t",` + ok + `,"outputSchema":{"anyOf":[{}]}}`, ""},
		{"description and title", `{"description":null,"name":"t","title":7,` + ok + `}`, `{"name":"t",` + ok + `}`, "title,description"},
		{"annotations", `{"name":"t",` + ok + `,"annotations":[]}`, `{"name":"t",` + ok + `}`, "annotations"},
		{"annotation members", `{"name":"t",` + ok + `,"annotations":{"title":1,"mine":[1],"readOnlyHint":"yes","openWorldHint":false,"idempotentHint":null}}`,
			`{"name":"t",` + ok + `,"annotations":{"mine":[1],"openWorldHint":false}}`, "annotations.title,annotations.readOnlyHint,annotations.idempotentHint"},
		{"icons", `{"name":"t",` + ok + `,"icons":[{"src":"data:,"},{"href":"x"}]}`, `{"name":"t",` + ok + `}`, "icons"},
		{"icon sizes", `{"name":"t",` + ok + `,"icons":[{"src":"data:,","sizes":"48x48"}]}`, `{"name":"t",` + ok + `}`, "icons"},
		{"good icons", `{"name":"t",` + ok + `,"icons":[{"src":"data:,","sizes":["any"],"theme":"dark","x":1}]}`,
			`{"name":"t",` + ok + `,"icons":[{"src":"data:,","sizes":["any"],"theme":"dark","x":1}]}`, ""},
		{"meta", `{"name":"t","_meta":"x",` + ok + `}`, `{"name":"t",` + ok + `}`, "_meta"},
		{"meta with a huge number", `{"name":"t","_meta":{"a":[1e999]},` + ok + `}`, `{"name":"t",` + ok + `}`, "_meta"},
		{"huge number", `{"name":"t","inputSchema":{"type":"object","minimum":1e400}}`, `{"name":"t",` + ok + `}`, "inputSchema"},
		{"empty enum", `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"enum":[]}}}}`, `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"enum":[]}}}}`, ""},
		{"empty output enum", `{"name":"t",` + ok + `,"outputSchema":{"type":"object","properties":{"a":{"enum":[]}}}}`, `{"name":"t",` + ok + `}`, "outputSchema"},
		{"execution", `{"name":"t","execution":true,` + ok + `}`, `{"name":"t",` + ok + `}`, "execution"},
		{"task support", `{"name":"t","execution":{"taskSupport":"maybe"},` + ok + `}`, `{"name":"t",` + ok + `}`, "execution"},
		{"good execution", `{"name":"t","execution":{"taskSupport":"optional","new":1},` + ok + `}`, `{"name":"t","execution":{"taskSupport":"optional","new":1},` + ok + `}`, ""},
		{"stray bytes", `{"name":"t","description":"a` + "\xff" + `b",` + ok + `}`, `{"name":"t","description":"a` + "\uFFFD" + `b",` + ok + `}`, "declaration"},
		{"header annotations", `{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}`,
			`{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := strings.Clone(test.in)
			got := admitted(t, test.in)
			if string(got.Declaration) != test.want {
				t.Errorf("declaration\n%s\nwant\n%s", got.Declaration, test.want)
			}
			if parts := repaired(t, got); parts != test.parts {
				t.Errorf("repairs %+v, want of %s", got.Repairs, test.parts)
			}
			if before != test.in {
				t.Error("Admit changed its input")
			}
			register(t, got)
		})
	}
}

func admitted(t *testing.T, declaration string) *tool.Tool {
	t.Helper()
	tools, excluded := one(declaration)
	if len(tools) != 1 || len(excluded) != 0 {
		t.Fatalf("not admitted: %+v", excluded)
	}
	return tools[0]
}

// repaired is the parts that were repaired, joined by comma, each for a reason that can be shown.
func repaired(t *testing.T, admitted *tool.Tool) string {
	t.Helper()
	var parts []string
	for _, repair := range admitted.Repairs {
		parts = append(parts, repair.Part)
		if repair.Reason == "" || len(repair.Reason) > 600 {
			t.Errorf("reason of %s: %q", repair.Part, repair.Reason)
		}
	}
	return strings.Join(parts, ",")
}

func TestAdmitExcludes(t *testing.T) {
	t.Parallel()
	const ok = `"inputSchema":{"type":"object"}`
	header := func(properties string) string {
		return `{"name":"t","inputSchema":{"type":"object","properties":{` + properties + `}}}`
	}
	for _, test := range []struct{ name, in, tool, code string }{
		{"no JSON", `{"name":`, "#1", codeInvalidDeclaration},
		{"nothing", ``, "#1", codeInvalidDeclaration},
		{"null", `null`, "#1", codeInvalidDeclaration},
		{"text", `"t"`, "#1", codeInvalidDeclaration},
		{"two values", `{"name":"t"} {}`, "#1", codeInvalidDeclaration},
		{"no name", `{` + ok + `}`, "#1", codeInvalidName},
		{"name of a wrong type", `{"name":7,` + ok + `}`, "#1", codeInvalidName},
		{"empty name", `{"name":"",` + ok + `}`, "#1", codeInvalidName},
		{"long name", `{"name":"` + strings.Repeat("n", maxNameBytes+1) + `",` + ok + `}`, `"` + strings.Repeat("n", 80) + `\u2026"`, codeInvalidName},
		{"line break in the name", `{"name":"a\nb",` + ok + `}`, `"a\nb"`, codeInvalidName},
		{"half a surrogate in the name", `{"name":"a\ud800",` + ok + `}`, `"a\ufffd"`, codeInvalidName},
		{"stray byte in the name", `{"name":"a` + "\xff" + `",` + ok + `}`, `"a\ufffd"`, codeInvalidName},
		{"name twice", `{"name":"a","name":"b",` + ok + `}`, "mcp.srv.b", codeInvalidDeclaration},
		{"name twice, once escaped", `{"name":"a","n\u0061me":"b",` + ok + `}`, "mcp.srv.b", codeInvalidDeclaration},
		{"hint twice", `{"name":"t","annotations":{"readOnlyHint":true,"readOnlyHint":false},` + ok + `}`, "mcp.srv.t", codeInvalidDeclaration},
		{"type twice, in an array", `{"name":"t","x":[{"a":1},{"type":1,"type":2}],` + ok + `}`, "mcp.srv.t", codeInvalidDeclaration},
		{"input of another type", `{"name":"t","inputSchema":{"type":"string"}}`, "mcp.srv.t", codeInvalidSchema},
		{"input of other types", `{"name":"t","inputSchema":{"type":["string","null"]}}`, "mcp.srv.t", codeInvalidSchema},
		{"input of no type", `{"name":"t","inputSchema":{"type":null}}`, "mcp.srv.t", codeInvalidSchema},
		{"too large", `{"name":"t",` + ok + `,"x":"` + strings.Repeat("x", (settings.Server{}).WithDefaults().Limits.ToolSize) + `"}`, "mcp.srv.t", codeTooLarge},
		{"too deep", `{"name":"t",` + ok + `,"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "#1", codeTooLarge},
		{"deep and open", `{"name":"t","inputSchema":` + strings.Repeat("[", 100_000), "#1", codeTooLarge},
		{"header on an object", header(`"a":{"type":"object","x-mcp-header":"A"}`), "mcp.srv.t", codeInvalidHeader},
		{"header on a number", header(`"a":{"type":"number","x-mcp-header":"A"}`), "mcp.srv.t", codeInvalidHeader},
		{"header without a type", header(`"a":{"x-mcp-header":"A"}`), "mcp.srv.t", codeInvalidHeader},
		{"header that is no text", header(`"a":{"type":"string","x-mcp-header":true}`), "mcp.srv.t", codeInvalidHeader},
		{"null header", header(`"a":{"type":"string","x-mcp-header":null}`), "mcp.srv.t", codeInvalidHeader},
		{"empty header", header(`"a":{"type":"string","x-mcp-header":""}`), "mcp.srv.t", codeInvalidHeader},
		{"header with a space", header(`"a":{"type":"string","x-mcp-header":"A B"}`), "mcp.srv.t", codeInvalidHeader},
		{"header with a line break", header(`"a":{"type":"string","x-mcp-header":"A\r\nX: y"}`), "mcp.srv.t", codeInvalidHeader},
		{"escaped keyword", header(`"a":{"type":"string","x\u002dmcp-header":"A B"}`), "mcp.srv.t", codeInvalidHeader},
		{"nested header", header(`"o":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}`), "mcp.srv.t", codeInvalidHeader},
		{"header twice", header(`"a":{"type":"string","x-mcp-header":"Region"},"o":{"properties":{"b":{"type":"string","x-mcp-header":"REGION"}}}`), "mcp.srv.t", codeInvalidHeader},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tools, excluded := one(test.in)
			if len(tools) != 0 || len(excluded) != 1 {
				t.Fatalf("admitted %d, excluded %+v", len(tools), excluded)
			}
			e := excluded[0]
			if e.Tool != test.tool || e.Code != test.code || e.Origin != "srv" {
				t.Errorf("excluded %+v; want tool %s, code %s", e, test.tool, test.code)
			}
			if !strings.Contains(e.Reason, " on the server") || len(e.Reason) > 400 {
				t.Errorf("reason %q does not end in what to do", e.Reason)
			}
		})
	}
}

func TestAdmitTwins(t *testing.T) {
	t.Parallel()
	a, other := `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"a","inputSchema":{"type":"object"},"description":"other"}`
	b, c := `{"name":"b","inputSchema":{"type":"object"}}`, `{"name":"c","inputSchema":{"type":"object"}}`
	tools, excluded := admit(settings.Server{ID: "srv"}, []json.RawMessage{
		[]byte(a), []byte(b), []byte(other), []byte(c), []byte(`{"name":"c", "inputSchema":7}`), []byte("\n" + b)})
	if len(tools) != 3 || tools[0].Native != "a" || tools[0].Description != "" {
		t.Errorf("admitted %v, want the first of each", tools)
	}
	var got []string
	for _, e := range excluded {
		if e.Code != codeDuplicateName || e.Twin != "srv" {
			t.Errorf("excluded %+v", e)
		}
		_, at, _ := strings.Cut(e.Reason, "at position ")
		at, _, _ = strings.Cut(at, " of its list")
		got = append(got, e.Tool+" "+at)
	}
	want := "mcp.srv.a 1,mcp.srv.c 4,mcp.srv.b 2"
	if strings.Join(got, ",") != want {
		t.Errorf("excluded %s\nwant     %s", strings.Join(got, ","), want)
	}
}

func TestAdmitLimitsTools(t *testing.T) {
	t.Parallel()
	raw := make([]json.RawMessage, (settings.Server{}).WithDefaults().Limits.Tools+7)
	for i := range raw {
		raw[i] = fmt.Appendf(nil, `{"name":"t%d","inputSchema":7}`, i)
	}
	tools, excluded := admit(settings.Server{ID: "srv"}, raw)
	if len(tools) != (settings.Server{}).WithDefaults().Limits.Tools || len(excluded) != 1 {
		t.Fatalf("admitted %d, excluded %d", len(tools), len(excluded))
	}
	if e := excluded[0]; e.Code != codeTooLarge || e.Tool != "(7 more)" || !strings.Contains(e.Reason, "10007") {
		t.Errorf("excluded %+v", e)
	}
}

func TestAdmitFillsTools(t *testing.T) {
	t.Parallel()
	cfg := settings.Server{ID: "srv", Tags: []string{"x"}, Validate: "warn"}
	tools, _ := admit(cfg, []json.RawMessage{[]byte(
		`{"name":"a.b","title":"T\u00e9","description":"D\u001b[1m","inputSchema":{"type":"object","a":1.0},"outputSchema":{"type":"object"}}`),
		[]byte(`{"name":"c","annotations":{"title":"A"}}`)})
	if len(tools) != 2 {
		t.Fatal("not admitted")
	}
	got := tools[0]
	if got.Name != "mcp.srv.a.b" || got.Server != "srv" || got.Native != "a.b" || got.Title != "Té" || got.Description != "D\x1b[1m" ||
		string(got.InputSchema) != `{"type":"object","a":1.0}` || string(got.OutputSchema) != `{"type":"object"}` ||
		got.SchemaDigest != tool.Digest(got.InputSchema) || len(got.Tags) != 1 || got.Validate != tool.ValidateWarn || got.Repairs != nil {
		t.Errorf("tool %+v", got)
	}
	if tools[1].Title != "A" || tools[1].OutputSchema != nil {
		t.Errorf("tool %+v", tools[1])
	}
}

// TestAdmitRealServers admits what 26 published servers list, as they wrote it and pretty-printed.
func TestAdmitRealServers(t *testing.T) {
	t.Parallel()
	for server, raw := range realCatalogs(t) {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			compact := make([]json.RawMessage, len(raw))
			for i := range raw {
				var buf bytes.Buffer
				if err := json.Compact(&buf, raw[i]); err != nil {
					t.Fatal(err)
				}
				compact[i] = buf.Bytes()
			}
			for _, list := range [][]json.RawMessage{raw, compact} {
				tools, excluded := admit(settings.Server{ID: server}, list)
				if len(tools) != len(raw) || len(excluded) != 0 {
					t.Fatalf("admitted %d of %d, excluded %+v", len(tools), len(raw), excluded)
				}
				for i, got := range tools {
					switch {
					case server == "gitlab":
						want := bytes.Replace(compact[i], []byte(`"inputSchema":{`), []byte(`"inputSchema":{"type":"object",`), 1)
						if len(got.Repairs) != 1 || !bytes.Equal(got.Declaration, want) {
							t.Errorf("%s: %s, repairs %+v", got.Name, got.Declaration, got.Repairs)
						}
					case len(got.Repairs) > 0:
						t.Errorf("%s: repairs %+v", got.Name, got.Repairs)
					case !bytes.Equal(got.Declaration, compact[i]):
						t.Errorf("%s: the declaration is not what the server listed:\n%s\n%s", got.Name, got.Declaration, compact[i])
					}
					register(t, got)
				}
			}
		})
	}
}

// realCatalogs reads the recorded tools/list answers, by server.
func realCatalogs(t testing.TB) map[string][]json.RawMessage {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			t.Fatal("no go.mod above this package")
		}
		root = filepath.Dir(root)
	}
	files, _ := filepath.Glob(filepath.Join(root, "..", "shared", "catalog", "*.json"))
	if len(files) == 0 {
		t.Skip("needs the recorded catalogs in ../shared/catalog, next to the repository")
	}
	catalogs := make(map[string][]json.RawMessage)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct {
			Name  string `json:"name"`
			Pages []struct {
				Tools []json.RawMessage `json:"tools"`
			} `json:"tools/list"`
		}
		if err := json.Unmarshal(data, &recorded); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, page := range recorded.Pages {
			catalogs[recorded.Name] = append(catalogs[recorded.Name], page.Tools...)
		}
	}
	return catalogs
}

// register fails t unless the SDK's typed client and server could take the tool: it decodes, and AddTool does not panic.
func register(t testing.TB, admitted *tool.Tool) {
	t.Helper()
	if !rawjson.Valid(admitted.Declaration) || !json.Valid(admitted.Declaration) || bytes.ContainsAny(admitted.Declaration, "\r\n") {
		t.Fatalf("the declaration is not one line of JSON: %q", admitted.Declaration)
	}
	if kind, _ := rawjson.Get(admitted.InputSchema, "type"); string(kind) != `"object"` {
		t.Fatalf("input schema without type object: %s", admitted.InputSchema)
	}
	exact := only(t, admitted.Declaration, "name", "title", "description", "inputSchema", "outputSchema", "icons", "_meta")
	if icons, ok := exact["icons"]; ok {
		list := []map[string]json.RawMessage{}
		if err := rawjson.Elements(icons, func(icon []byte) bool {
			list = append(list, only(t, icon, "src", "mimeType", "sizes", "theme"))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		exact["icons"], _ = json.Marshal(list)
	}
	if annotations, ok := rawjson.Get(admitted.Declaration, "annotations"); ok {
		exact["annotations"], _ = json.Marshal(
			only(t, annotations, "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"))
	}
	text, err := json.Marshal(exact)
	if err != nil {
		t.Fatal(err)
	}
	var typed mcp.Tool
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatalf("a typed client loses the list: %v\n%s", err, text)
	}
	typed.InputSchema = admitted.InputSchema
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("AddTool panics: %v\n%s", fault, admitted.Declaration)
		}
	}()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	server.AddTool(&typed, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
}

// only returns the named members of object: the SDK matches names exactly, encoding/json takes "SIZES" for "sizes".
func only(t testing.TB, object []byte, names ...string) map[string]json.RawMessage {
	t.Helper()
	members := make(map[string]json.RawMessage)
	for _, name := range names {
		if value, ok := rawjson.Get(object, name); ok {
			members[name] = value
		}
	}
	return members
}

// TestServerDigest: a tool's version is another one for each change of address, command, arguments and account, and the same where a
// secret is renewed.
func TestServerDigest(t *testing.T) {
	t.Parallel()
	version := func(cfg settings.Server) string {
		tools, _ := admit(cfg, []json.RawMessage{[]byte(`{"name":"a","inputSchema":{"type":"object"}}`)})
		return tools[0].Version()
	}
	usual := settings.Server{ID: "s", Command: "x", Args: []string{"--token", "first-secret"}, Secrets: []string{"", "first-secret"}}
	renewed := usual
	renewed.Args, renewed.Secrets = []string{"--token", "second-secret"}, []string{"second-secret"}
	if version(renewed) != version(usual) {
		t.Error("a renewed secret makes it another server")
	}
	seen := map[string]string{version(usual): "the usual entry"}
	for what, change := range map[string]func(*settings.Server){
		"url": func(s *settings.Server) { s.URL = "https://other.example" }, "command": func(s *settings.Server) { s.Command = "y" },
		"args": func(s *settings.Server) { s.Args = []string{"--token"} }, "dir": func(s *settings.Server) { s.Dir = "/y" },
		"account": func(s *settings.Server) { s.Account = "y" }, "sign-in": func(s *settings.Server) { s.SignIn = "y" },
	} {
		other := usual
		change(&other)
		if of := seen[version(other)]; of != "" {
			t.Errorf("another %s has the version of %s", what, of)
		}
		seen[version(other)] = "another " + what
	}
}
