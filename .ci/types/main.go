// Command types checks the types of all packages and their tests, as they are for another system:
//
//	go run .ci/types/main.go windows darwin
//
// It reads the declarations of all that they import. `go vet` and `go build` would first compile it
// for that system, which takes several times as long.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	code := 0
	for _, system := range os.Args[1:] {
		config := &packages.Config{Tests: true, BuildFlags: []string{"-tags=e2e"}, ParseFile: parse,
			Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo}
		found, err := packages.Load(config, "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, system+":", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages and tests\n", system, len(found))
		for _, p := range found {
			for _, e := range p.Errors {
				if !strings.HasSuffix(p.ID, ".test") { // go test writes its file, elsewhere
					fmt.Fprintln(os.Stderr, e)
					code = 1
				}
			}
		}
	}
	os.Exit(code)
}

// parse reads a file, without the bodies of functions if it is of another module.
func parse(files *token.FileSet, name string, src []byte) (*ast.File, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil || strings.HasPrefix(name, here) {
		return f, err
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			d.Body = nil
		}
	}
	return f, nil
}
