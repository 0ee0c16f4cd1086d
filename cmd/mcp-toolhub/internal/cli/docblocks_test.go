package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
)

// pages are README.md, CONTRIBUTING.md and docs/*.md, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages in docs: %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		all[file] = readFile(t, file)
	}
	return all
}

// TestBlocks checks every block of the documentation: a config loads, JSON is JSON, and a shell's text parses and calls
// mcp-toolhub as it can be called. Commands that stand in a sentence or a table are checked, too.
func TestBlocks(t *testing.T) {
	t.Parallel()
	fenced := regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	inline := regexp.MustCompile("`((?:[^`\n]+ -- )?mcp-toolhub [a-z-]+(?: [^`\n]*)?)`")
	indented := regexp.MustCompile(`(?m)^    (\$ )?(mcp-toolhub [a-z].*)$`)
	checked := map[string]int{}
	for file, text := range pages(t) {
		name := filepath.Base(file)
		for _, m := range fenced.FindAllStringSubmatch(text, -1) {
			checked[m[1]]++
			switch m[1] {
			case "yaml":
				checkConfigBlock(t, name, m[2])
			case "json":
				if !json.Valid([]byte(m[2])) {
					t.Errorf("%s: a block is no JSON:\n%s", name, m[2])
				}
			case "sh":
				checkShell(t, name, m[2])
			case "text", "mermaid", "toml", "http", "js": // TestACPFromNPM runs the one in js
			default:
				t.Errorf("%s: a block is of the kind %q, which no test knows", name, m[1])
			}
		}
		if name == "commands.md" { // what the program prints of itself
			continue
		}
		rest := fenced.ReplaceAllString(text, "")
		for _, m := range inline.FindAllStringSubmatch(rest, -1) {
			checked["inline"]++
			checkShell(t, name, strings.NewReplacer(`\|`, "|").Replace(m[1]))
		}
		for _, m := range indented.FindAllStringSubmatch(rest, -1) {
			checked["indented"]++
			checkShell(t, name, m[2])
		}
	}
	for kind, least := range map[string]int{"yaml": 8, "json": 3, "sh": 5, "inline": 20} {
		if checked[kind] < least {
			t.Errorf("%d blocks of the kind %s: the test finds too few", checked[kind], kind)
		}
	}
}

// checkConfigBlock loads a block as a config. Every variable and secret has a value, and the file that one block names is there.
func checkConfigBlock(t *testing.T, page, text string) {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config", "docs.token"), []byte("a-long-token-of-the-docs"), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := func(name string) (string, bool) {
		if name == "HOME" || name == "USERPROFILE" {
			return home, true
		}
		return "a-long-value-of-" + name, !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "MCP_TOOLHUB_")
	}
	err := secrets.Change(filepath.Join(home, ".local", "state", "mcp-toolhub"), func(all map[string]string) error {
		all["hub-ann"], all["hub-bob"] = "a-long-token-of-ann", "a-long-token-of-bob"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	whole := text
	if regexp.MustCompile(`(?m)^profiles:`).MatchString(text) && !strings.Contains(text, "mcpServers:") {
		whole += "mcpServers: {github: {command: github}}\nhub: {toolsets: {code: {root: .}}}\n" // which the profiles are about
	}
	file := filepath.Join(home, "block.yaml")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(config.Source{Path: file, Env: variables}); err != nil {
		t.Errorf("%s: a block is no config: %v\n%s", page, err, text)
	}
}

// checkShell parses a shell's text, and every call of mcp-toolhub in it as the program would.
func checkShell(t *testing.T, page, text string) {
	t.Helper()
	// What stands for something: [FILE], a|b, NAME.
	plain := regexp.MustCompile(`\[[A-Z]+\]`).ReplaceAllString(text, "FILE")
	plain = regexp.MustCompile(`\b([a-z]+)(\|[a-z]+)+\b`).ReplaceAllString(plain, "$1")
	file, err := syntax.NewParser().Parse(strings.NewReader(plain), page)
	if err != nil {
		t.Errorf("%s: a shell does not read %q: %v", page, text, err)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, wordOf(w))
		}
		for i, w := range words {
			if w == "mcp-toolhub" && (i == 0 || words[i-1] == "--" || words[i-1] == "toolhub") {
				if err := parses(words[i+1:]); err != nil {
					t.Errorf("%s: %q: %v", page, text, err)
				}
			}
		}
		return true
	})
}

// wordOf is the text of a word without its quotes.
func wordOf(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		default:
			b.WriteString("x")
		}
	}
	return b.String()
}

// parses reports whether the program takes the words of a command line, without running it.
func parses(words []string) error {
	root := (&app{std: streams{getenv: func(string) (string, bool) { return "", false }}}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if len(args) == 0 && !cmd.HasSubCommands() && len(rest) == 0 {
		return nil // a command that a sentence names
	}
	if cmd.HasSubCommands() && len(args) > 0 {
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
	}
	return validArgs(cmd, args)
}

func validArgs(cmd *cobra.Command, args []string) error {
	if cmd.Args == nil {
		return nil
	}
	return cmd.Args(cmd, args)
}

// TestLinks checks that every link of the documentation to a file of the project leads somewhere, with its anchor.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	all := pages(t)
	for file, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			to := filepath.Join(filepath.Dir(file), path)
			if path == "" {
				to = file
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(file), m[1], err)
				continue
			}
			if anchor != "" && !anchors(all[to])[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", filepath.Base(file), m[1])
			}
		}
	}
}

// anchors are the names by which the headings of a page are linked to.
func anchors(page string) map[string]bool {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}
