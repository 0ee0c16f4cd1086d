package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// TestGeneratedDocs checks that docs/configuration.md and docs/commands.md say what the code says: the first is made from
// the schema of the config file, the second from the commands. -update writes them anew.
func TestGeneratedDocs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"configuration.md": configurationPage(t), "commands.md": commandsPage(t)} {
		file := filepath.Join("..", "..", "..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if readFile(t, file) != want {
			t.Errorf("docs/%s is out of date: run go test ./cmd/mcp-toolhub/internal/cli -run TestGeneratedDocs -update", name)
		}
	}
}

// schemaNode is what configurationPage reads of a JSON Schema.
type schemaNode struct {
	Description string
	Ref         string `json:"$ref"`
	Type        any
	Enum        []string
	Pattern     string
	Minimum     *float64
	Maximum     *float64
	AnyOf       []schemaNode
	Items       *schemaNode
	Properties  map[string]*schemaNode
	Additional  json.RawMessage        `json:"additionalProperties"`
	Defs        map[string]*schemaNode `json:"$defs"`
}

const configurationHead = `# Configuration

Every key of the config file, made from [config.schema.json](../config.schema.json), which editors read to complete the file.
[config.example.yaml](../config.example.yaml) is a file to begin with.

The file is YAML, JSON or JSON with comments. An unknown key is a fault. ` + "`mcp-toolhub check`" + ` names all faults at once, with line and column.

- A **duration** is written like ` + "`30s`, `5m` or `1h30m`" + `; some keys take days, too: ` + "`7d`" + `.
- A **size** is a number of bytes, or has a unit: ` + "`64MiB`, `10MB`" + `.
- A **glob** matches names; ` + "`*` stands for any text and `?` for one character: `mcp.github.get_*`" + `.
- In strings, ` + "`${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:path}`, `${secret:NAME}`, `${userHome}` and `${workspaceFolder}`" + ` are replaced.
  A default may be a secret: ` + "`${VAR:-${secret:NAME}}`. `$${` stands for `${`" + `.
  An unset variable is a fault, and so is a file that cannot be read. In the entry of a server it stops [that server alone](servers.md#failure).

`

// configurationPage is docs/configuration.md.
func configurationPage(t *testing.T) string {
	t.Helper()
	var root schemaNode
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	p := &keyPage{t: t, defs: root.Defs, said: map[string]string{}}
	p.WriteString(configurationHead)
	shown := []string{"mcpServers", "hub", "deferred", "policy", "hooks", "results", "profiles", "persist", "servers", "inputs"}
	for key, n := range root.Properties {
		if key != "$schema" && !slices.Contains(shown, key) && !strings.HasPrefix(n.Description, "Ignored") {
			t.Errorf("the page leaves out the key %q", key)
		}
	}
	for _, key := range shown {
		n := root.Properties[key]
		if n == nil {
			t.Fatalf("the schema has no key %q", key)
		}
		fmt.Fprintf(p, "## `%s`\n\n%s\n\n", key, n.Description)
		if key == "servers" {
			continue
		}
		p.WriteString("| key | value | what it says |\n| --- | --- | --- |\n")
		p.keys(key, n)
		p.WriteString("\n")
	}
	var known []string
	for _, key := range slices.Sorted(maps.Keys(root.Properties)) {
		if strings.HasPrefix(root.Properties[key].Description, "Ignored") {
			known = append(known, "`"+key+"`")
		}
	}
	fmt.Fprintf(p, "## Keys of other clients\n\nA client's own config file can be the hub's, such as `.mcp.json` or `settings.json`. Keys of such a file that the hub does "+
		"not know\nare read over with a warning. Servers below %s are not read.\n", strings.Join(known, " and "))
	return trimLines(p.String())
}

// keyPage is the text under way.
type keyPage struct {
	bytes.Buffer
	t    *testing.T
	defs map[string]*schemaNode
	said map[string]string // the first key with a long description
}

// keys writes a row for each key below a value, and for those below them.
func (p *keyPage) keys(path string, n *schemaNode) {
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		n = p.defs[name]
	}
	for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
		below := n.Properties[key]
		p.row(path+"."+key, below)
		p.keys(path+"."+key, below)
	}
	if n.Items != nil {
		p.keys(path+"[]", n.Items)
	}
	var each schemaNode
	if len(n.Additional) > 0 && n.Additional[0] == '{' {
		if err := json.Unmarshal(n.Additional, &each); err != nil {
			p.t.Fatal(err)
		}
		p.keys(path+".NAME", &each)
	}
}

// row refers to an earlier key if that has the same long description.
func (p *keyPage) row(path string, n *schemaNode) {
	text, kind := n.Description, kindOf(n)
	if first, ok := p.said[text]; ok {
		text, kind = "As `"+first+"`.", ""
	} else if len(text) > 60 {
		p.said[text] = path
	}
	fmt.Fprintf(p, "| `%s` | %s | %s |\n", path, strings.ReplaceAll(kind, "|", `\|`), strings.ReplaceAll(text, "|", `\|`))
}

// kindOf names the values that a key takes.
func kindOf(n *schemaNode) string {
	kind, _ := n.Type.(string)
	if kinds, ok := n.Type.([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
		if len(kinds) > 1 && kinds[1] != "null" {
			kind = "string or number"
		}
	}
	switch {
	case len(n.Enum) > 0:
		return "`" + strings.Join(n.Enum, "`, `") + "`"
	case strings.Contains(n.Pattern, "ns|us"):
		return "duration"
	case len(n.AnyOf) > 0 && strings.Contains(n.AnyOf[len(n.AnyOf)-1].Pattern, "KiB"):
		return "size"
	case n.Pattern == `\$\{`:
		return "reference"
	case kind == "integer" && n.Minimum != nil && n.Maximum != nil:
		return fmt.Sprintf("%.0f to %.0f", *n.Minimum, *n.Maximum)
	case kind == "array":
		return "list"
	case kind == "boolean":
		return "true or false"
	case kind == "" && len(n.AnyOf) > 0:
		var all []string
		for i := range n.AnyOf {
			all = append(all, kindOf(&n.AnyOf[i]))
		}
		return strings.Join(slices.Compact(all), " or ")
	}
	return kind
}

// commandsPage is docs/commands.md.
func commandsPage(t *testing.T) string {
	t.Helper()
	root := (&app{std: streams{getenv: func(string) (string, bool) { return "", false }}}).root()
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page lists every command, as `mcp-toolhub help COMMAND` prints it. It is made from the program.\n\n")
	fmt.Fprintf(&b, "```text\n%s\n```\n\n", strings.TrimSpace(root.Long))
	b.WriteString("These flags go with every command:\n\n```text\n" + flagText(root.PersistentFlags()) + "```\n")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.Name() == "help" || c.Name() == "man" {
				continue
			}
			if c.Runnable() && !c.HasSubCommands() {
				about := c.Long
				if about == "" {
					about = c.Short + "."
				}
				fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n\n%s\n", strings.TrimPrefix(c.CommandPath(), "mcp-toolhub "), c.UseLine(), strings.TrimSpace(about))
				if flags := flagText(c.LocalNonPersistentFlags()); flags != "" {
					b.WriteString("\nFlags:\n" + flags)
				}
				if c.Example != "" {
					b.WriteString("\nExamples:\n" + strings.TrimRight(c.Example, "\n") + "\n")
				}
				b.WriteString("```\n")
			}
			walk(c)
		}
	}
	walk(root)
	return b.String()
}

func flagText(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(110) }

// TestNamedFunctions checks that every function that docs/architecture.md names is there, and every test.
func TestNamedFunctions(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	exist, tests := functions(t, root), testNames(t, root)
	named := regexp.MustCompile("`([a-z]+\\.(?:\\(\\*[A-Za-z]+\\)\\.)?[A-Za-z]+)`")
	page := readFile(t, filepath.Join(root, "docs", "architecture.md"))
	found := named.FindAllStringSubmatch(page, -1)
	if len(found) < 30 {
		t.Errorf("docs/architecture.md names %d functions: the pattern finds too few", len(found))
	}
	for _, m := range found {
		if !exist[m[1]] && m[1] != "mcp.AddTool" && m[1] != "invoke.Call" {
			t.Errorf("docs/architecture.md names %s, and there is no such function", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(page, -1) {
		if !tests[m[1]] {
			t.Errorf("docs/architecture.md names %s, and there is no such test", m[1])
		}
	}
}

// testNames are the names of all tests and fuzz targets of the module.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(readFile(t, file), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// functions are all functions and methods of the module outside tests, as package.Name and package.(*Type).Name.
func functions(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
					name = fmt.Sprintf("(*%s).%s", star.X, name)
				}
			}
			all[f.Name.Name+"."+name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// trimLines takes spaces at line ends away.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
