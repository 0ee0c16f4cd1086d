package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClientPages: in README.md and docs/clients.md every entry for a client is JSON, and every command of the hub has the flags
// that it is written with.
func TestClientPages(t *testing.T) {
	t.Parallel()
	serve := regexp.MustCompile(`mcp-toolhub (serve( .*)?)$`)
	for _, page := range []string{"README.md", filepath.Join("docs", "clients.md")} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		entries, commands := 0, 0
		for line := range strings.SplitSeq(string(text), "\n") {
			block, ok := strings.CutPrefix(line, "    ")
			switch {
			case !ok:
			case strings.HasPrefix(block, `{"`):
				entries++
				if !json.Valid([]byte(block)) {
					t.Errorf("%s: no JSON: %s", page, block)
				}
			case serve.MatchString(block):
				commands++
				root := (&app{}).root()
				cmd, args, err := root.Find(strings.Fields(serve.FindStringSubmatch(block)[1]))
				if err == nil {
					err = cmd.ParseFlags(args)
				}
				if err != nil || cmd.Name() != "serve" || cmd.Flags().NArg() > 0 {
					t.Errorf("%s: %s: %v", page, block, err)
				}
			}
		}
		if entries == 0 || commands == 0 {
			t.Errorf("%s: %d entries and %d commands", page, entries, commands)
		}
	}
}
