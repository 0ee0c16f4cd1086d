package glob_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"mcp.github.*", "mcp.github.search.issues", true},
		{"mcp.github.*", "mcp.github-npm.x", false},
		{"mcp.*.delete_*", "mcp.fs.delete_file", true},
		{"mcp.*.delete_*", "mcp.fs.undelete", false},
		{"*", "", true},
		{"?", "é", true},
		{"?é", "éé", true},
		{"*é", "aéé", true},
		{"?", "", false},
		{"", "", true},
		{"", "a", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXbYbZ", false},
		{"code.*", "code.read_file", true},
		{"exact", "exact", true},
		{"exact", "exactly", false},
		{strings.Repeat("*a", 30) + "b", strings.Repeat("a", 3000), false},
	} {
		if got := glob.Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%.40q, %.40q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"mcp.*.read_?": "", "*": "", "mcp.日本.x": "",
		"": "is empty", " a": "white space", "a[b]": "mean nothing here", `a\*`: "mean nothing here",
		"a\u200bb": "invisible", "a\x00b": "invisible", "a\xff": "invisible",
	} {
		err := glob.Check(pattern)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%q) = %v, want %q", pattern, err, want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { glob.Match("mcp.*.delete_*é", "mcp.files.delete_all_é") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMatch compares with a regular expression that says the same.
func FuzzMatch(f *testing.F) {
	f.Add("mcp.*.x?", "mcp.a.xy")
	f.Add("**?*", "é")
	f.Add("a*a*a", "aaaa")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 50 || len(name) > 200 || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, `.*`), `\?`, `.`)
		want := regexp.MustCompile(`(?s)\A` + quoted + `\z`).MatchString(name)
		if got := glob.Match(pattern, name); got != want {
			t.Errorf("Match(%q, %q) = %v", pattern, name, got)
		}
		if glob.Match(pattern, name) && !glob.CanBegin(pattern, name) {
			t.Errorf("%q matches %q but cannot begin with it", pattern, name)
		}
	})
}
