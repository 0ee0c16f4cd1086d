package invoke

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// errorsPage is the page whose table is generated from errorClasses and from the failures that the code makes.
const errorsPage = "../../../../docs/errors.md"

// made holds what the code says of failures: the classes that it makes, by the names of their constants, and their codes.
type made struct {
	codes map[string]map[string]bool // by constant
}

// readFailures finds every class that the code gives to a failure, and the codes beside it.
func readFailures(t *testing.T) made {
	t.Helper()
	found, files, constants := made{map[string]map[string]bool{}}, []*ast.File{}, map[string]string{}
	err := filepath.WalkDir("../../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, "errorclass.go") || strings.Contains(path, "upstreamtest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for i, name := range v.Names {
					if i < len(v.Values) {
						if text, ok := v.Values[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
							constants[name.Name], _ = strconv.Unquote(text.Value)
						}
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool { return found.look(n, constants) })
	}
	return found
}

// look notes the class that n gives to a failure, if it gives one.
func (m made) look(n ast.Node, constants map[string]string) bool {
	code := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(e.Value)
			return text
		case *ast.Ident:
			return constants[e.Name]
		case *ast.SelectorExpr:
			return constants[e.Sel.Name]
		}
		return ""
	}
	switch n := n.(type) {
	case *ast.CaseClause: // compares, and makes nothing
		for _, s := range n.Body {
			ast.Inspect(s, func(n ast.Node) bool { return m.look(n, constants) })
		}
		return false
	case *ast.BinaryExpr:
		return n.Op != token.EQL && n.Op != token.NEQ
	case *ast.CompositeLit:
		class, codes := "", ""
		for _, e := range n.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key, _ := pair.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "Class" || key.Name == "ErrorClass":
				class = className(pair.Value)
			case key.Name == "Code" || key.Name == "ErrorCode":
				codes = code(pair.Value)
			}
		}
		m.add(class, codes)
	case *ast.AssignStmt:
		class, codes := "", ""
		for i, left := range n.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok && i < len(n.Rhs) && s.Sel.Name == "Code" {
				codes = code(n.Rhs[i])
			}
		}
		for _, right := range n.Rhs {
			class = max(class, className(right))
		}
		m.add(class, codes)
	case *ast.CallExpr, *ast.ReturnStmt:
		args := []ast.Expr(nil)
		if c, ok := n.(*ast.CallExpr); ok {
			args = c.Args
		} else if r, ok := n.(*ast.ReturnStmt); ok {
			args = r.Results
		}
		for i, a := range args {
			if class := className(a); class != "" {
				next := ""
				if i+1 < len(args) {
					next = code(args[i+1])
				}
				if strings.Contains(next, " ") {
					next = "" // it is the message
				}
				m.add(class, next)
			}
		}
	}
	return true
}

// className returns the constant of an error class that e is; "" for anything else.
func className(e ast.Expr) string {
	name := ""
	switch e := e.(type) {
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.Ident:
		name = e.Name
	}
	if strings.HasPrefix(name, "Class") && len(name) > len("Class") {
		return name
	}
	return ""
}

func (m made) add(class, code string) {
	if class == "" {
		return
	}
	if m.codes[class] == nil {
		m.codes[class] = map[string]bool{}
	}
	if code != "" {
		m.codes[class][code] = true
	}
}

// constantsOfClasses returns the names of the constants by class, as internal/tool declares them.
func constantsOfClasses(t *testing.T) map[tool.ErrorClass]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../internal/tool/execution.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[tool.ErrorClass]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && strings.HasPrefix(v.Names[0].Name, "Class") {
			if text, ok := v.Values[0].(*ast.BasicLit); ok {
				value, _ := strconv.Unquote(text.Value)
				names[tool.ErrorClass(value)] = v.Names[0].Name
			}
		}
		return true
	})
	return names
}

// TestErrorsPageIsThatOfTheCode holds that docs/errors.md says which classes and codes there are, and that each class is made by
// something.
func TestErrorsPageIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	names, found, all := constantsOfClasses(t), readFailures(t), errorClasses()
	if len(names) != len(all) {
		t.Errorf("%d classes are declared, and the table has %d", len(names), len(all))
	}
	var table, next strings.Builder
	table.WriteString("| class | status | recoverability | what makes it | codes besides the class itself |\n| --- | --- | --- | --- | --- |\n")
	next.WriteString("| class | `next` |\n| --- | --- |\n")
	for _, c := range all {
		codes, isMade := found.codes[names[c.class]]
		if !isMade {
			t.Errorf("nothing in the code makes %q", c.class)
		}
		var list []string
		for _, code := range computedCodes()[c.class] {
			codes[code] = true
		}
		for _, code := range slices.Sorted(maps.Keys(codes)) {
			list = append(list, "`"+code+"`")
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | `%s` | %s | %s |\n", c.class, c.status, c.recoverability, c.made, strings.Join(list, " "))
		fmt.Fprintf(&next, "| `%s` | %s |\n", c.class, c.next)
	}
	page, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	want := put(t, put(t, page, "classes", table.String()), "next", next.String())
	if *update && !bytes.Equal(page, want) {
		if err := os.WriteFile(errorsPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want) {
		t.Errorf("%s is not that of the code: go test ./cmd/mcp-toolhub/internal/invoke -run %s -update writes it", errorsPage, t.Name())
	}
}

// computedCodes are the codes that do not stand beside their class in the code.
func computedCodes() map[tool.ErrorClass][]string {
	const far = "upstream_error"
	return map[tool.ErrorClass][]string{
		tool.ClassInvalidArguments: {far, "http_413"}, tool.ClassCapabilityGap: {far, "missing_client_capability"},
		tool.ClassExecutionFailed: {far, tool.CodeToolError}, tool.ClassPartialFailure: {tool.CodeToolError},
		tool.ClassSetupRequired: {"program_not_found", "server_needs_auth", "server_needs_setup"}, tool.ClassCredentialMissing: {"http_401", "http_403", "server_needs_auth"},
		tool.ClassRateLimited: {"http_429"}, tool.ClassDependencyUnavailable: {"http_STATUS", "server_STATE"},
		tool.ClassSandboxViolation: {"outside_roots"}, tool.ClassSchemaNotLoaded: {"schema_changed", "selection_ref_invalid"}, tool.ClassSchemaValidationFailed: {"input_mutation_failed"},
	}
}

// put returns page with text between the marks of name.
func put(t *testing.T, page []byte, name, text string) []byte {
	t.Helper()
	begin, end := []byte("<!-- "+name+": generated -->\n"), []byte("<!-- end of "+name+" -->\n")
	before, rest, ok1 := bytes.Cut(page, begin)
	_, after, ok2 := bytes.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no marks of %q", errorsPage, name)
	}
	return slices.Concat(before, begin, []byte("\n"+text+"\n"), end, after)
}
