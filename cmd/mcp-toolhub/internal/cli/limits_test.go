package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a reader can hold in the head at once.
const (
	maxFiles     = 35 // of a package; tests and main do not count
	maxMethods   = 40 // of a type
	maxFields    = 35 // of a struct
	maxFuncLines = 80
	maxColumns   = 120
)

// mayImportOthers says which packages may import a module that shapes what it touches. Anything else goes through them.
var mayImportOthers = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk":   {"upstream", "upstream/internal/transport", "upstream/internal/hop", "upstream/signin", "cmd/mcp-toolhub/internal/downstream", "cmd/mcp-toolhub/internal/demo"},
	"golang.org/x/oauth2":                      {"upstream/signin"},
	"github.com/golang-jwt/jwt/v5":             {"upstream/signin"},
	"github.com/google/cel-go":                 {"policy", "cmd/mcp-toolhub/internal/events"},
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/schema"},
	"modernc.org/sqlite":                       {"persist/store"},
	"github.com/pressly/goose/v3":              {"persist/store"},
	"github.com/jackc/pgx/v5":                  {"persist/store"},
	"github.com/spf13/cobra":                   {"cmd/mcp-toolhub/internal/cli"},
	"github.com/goccy/go-yaml":                 {"internal/textfile"},
	"github.com/klauspost/compress":            {"persist/payload"},
	"gocloud.dev":                              {"persist/payload"},
	"github.com/tailscale/hujson":              {"internal/textfile", "internal/splice"},
	"github.com/pelletier/go-toml/v2":          {"internal/textfile", "internal/secret"},
	"github.com/lmittmann/tint":                {"cmd/mcp-toolhub/internal/cli"},
	"github.com/theory/jsonpath":               {"persist/slice"},
}

// TestLimits holds the sizes of packages, types, functions and lines, and what no package but
// main may do. A type that grows over a limit has two responsibilities: divide it.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := limits{files: map[string]int{}, methods: map[string]int{}, over: map[string][]string{}}
	root := filepath.Join("..", "..", "..", "..")
	walkGo(t, root, func(pkg, file string) {
		if !strings.HasSuffix(file, "_test.go") {
			l.read(t, pkg, file)
		}
	})
	for pkg, n := range l.files {
		if n > maxFiles && !onTop[pkg] {
			l.add("package "+pkg, strconv.Itoa(n)+" files")
		}
	}
	for name, n := range l.methods {
		if n > maxMethods {
			l.add(name, strconv.Itoa(n)+" methods")
		}
	}
	for what, faults := range l.over {
		t.Errorf("%s: %s", what, strings.Join(faults, ", "))
	}
}

// limits counts what TestLimits compares.
type limits struct {
	files, methods map[string]int      // by package; by package.Type
	over           map[string][]string // the faults of each package, type and function
}

func (l limits) add(what, fault string) { l.over[what] = append(l.over[what], fault) }

func (l limits) read(t *testing.T, pkg, file string) {
	t.Helper()
	l.files[pkg]++
	for i, line := range strings.Split(readFile(t, file), "\n") {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			l.add(pkg+"/"+path.Base(file), fmt.Sprintf("%d columns in line %d", n, i+1))
		}
	}
	positions := token.NewFileSet()
	f, err := parser.ParseFile(positions, file, nil, 0)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		for module, users := range mayImportOthers {
			if (imported == module || strings.HasPrefix(imported, module+"/")) && !slices.Contains(users, pkg) && !testOnly[pkg] {
				l.add(pkg, "imports "+imported)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := pkg + "." + n.Name.Name
			if n.Recv != nil {
				receiver := typeName(n.Recv.List[0].Type)
				l.methods[pkg+"."+receiver]++
				name = pkg + ".(*" + receiver + ")." + n.Name.Name
			}
			if lines := positions.Position(n.End()).Line - positions.Position(n.Pos()).Line + 1; lines > maxFuncLines {
				l.add(name, strconv.Itoa(lines)+" lines")
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				l.readStruct(pkg+"."+n.Name.Name, s)
			}
		case *ast.CallExpr:
			if isContext(n.Fun, "Background") || isContext(n.Fun, "TODO") {
				if !onTop[pkg] {
					l.add(pkg, path.Base(file)+" makes a context that nothing ends")
				}
			}
		}
		return true
	})
}

func (l limits) readStruct(name string, s *ast.StructType) {
	fields := 0
	for _, f := range s.Fields.List {
		fields += max(1, len(f.Names))
		if isContext(f.Type, "Context") {
			l.add(name, "keeps a context")
		}
	}
	if fields > maxFields {
		l.add(name, strconv.Itoa(fields)+" fields")
	}
}

// isContext tells whether x is context.<name>.
func isContext(x ast.Expr, name string) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "context" && s.Sel.Name == name
}

// typeName is the name of a receiver's type, without pointer and type parameters.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}
