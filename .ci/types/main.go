// Command types checks the types of all packages and their tests, as they are for another system:
//
//	go run .ci/types/main.go windows darwin
//
// It reads all that they import from source. `go vet` and `go build` would first compile it for
// that system, which takes several times as long.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	code := 0
	for _, system := range os.Args[1:] {
		config := &packages.Config{Tests: true, BuildFlags: []string{"-tags=e2e"},
			Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo}
		found, err := packages.Load(config, "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, system+":", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages and tests\n", system, len(found))
		if packages.PrintErrors(found) > 0 {
			code = 1
		}
	}
	os.Exit(code)
}
