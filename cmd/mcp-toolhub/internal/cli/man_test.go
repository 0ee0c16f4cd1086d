package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManPages writes what packages install, and holds that there is a page for each command, in which no text is taken for a macro.
func TestManPages(t *testing.T) {
	t.Parallel()
	root := (&app{std: streams{getenv: func(string) (string, bool) { return "", false }}}).root()
	dir := filepath.Join(t.TempDir(), "pages")
	if err := writePages(root, dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"mcp-toolhub.1":            {".TH \"MCP-TOOLHUB\" 1", "\nBegin:\n  setup "},
		"mcp-toolhub-tools-call.1": {".SH NAME\nmcp\\-toolhub\\-tools\\-call \\- ", "\n  \\-c, \\-\\-config file "},
		"mcp-toolhub-serve.1":      {"\\-\\-http host:port ", "\nExamples:\n  mcp\\-toolhub serve"},
	} {
		for _, part := range want {
			if !strings.Contains(readFile(t, filepath.Join(dir, file)), part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	macros := []string{".TH", ".SH", ".nf", ".fi"}
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`(?m)^[.'][^ \n]*`).FindAllString(readFile(t, page), -1) {
			if !slices.Contains(macros, m) {
				t.Errorf("%s: %s is no macro", filepath.Base(page), m)
			}
		}
	}
	if got := roff("a\\b\n.TH\n'x --y"); got != "a\\eb\n\\&.TH\n\\&'x \\-\\-y" {
		t.Errorf("roff: %q", got)
	}
	if err := writePages(root, filepath.Join(dir, "mcp-toolhub.1")); err == nil {
		t.Error("a file is taken for a directory")
	}
	if _, err := os.Stat(filepath.Join(dir, "mcp-toolhub-man.1")); err == nil {
		t.Error("the hidden command has a page")
	}
}
