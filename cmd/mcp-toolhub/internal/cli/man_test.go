package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManPage holds that the manual page has each command, and that no text in it is taken for a macro.
func TestManPage(t *testing.T) {
	t.Parallel()
	page := manPage((&app{std: streams{getenv: func(string) (string, bool) { return "", false }}}).root())
	for _, part := range []string{".TH MCP-TOOLHUB 1", "\nBegin:\n  setup ", ".SH mcp\\-toolhub tools call\n",
		"\n  \\-c, \\-\\-config file ", "\\-\\-http host:port ", "\nExamples:\n  mcp\\-toolhub serve"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q", part)
		}
	}
	if n := strings.Count(page, "\n.SH "); n < 40 || strings.Contains(page, ".SH mcp\\-toolhub man\n") {
		t.Errorf("%d sections, or one of the hidden command", n)
	}
	macros := []string{".TH", ".SH", ".nf", ".fi"}
	for _, m := range regexp.MustCompile(`(?m)^[.'][^ \n]*`).FindAllString(page, -1) {
		if !slices.Contains(macros, m) {
			t.Errorf("%s is no macro", m)
		}
	}
	if got := roff("a\\b\n.TH\n'x --y"); got != "a\\eb\n\\&.TH\n\\&'x \\-\\-y" {
		t.Errorf("roff: %q", got)
	}
}
