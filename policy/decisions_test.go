package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestDecisions asks about every call of the tables in testdata/decisions. Each is written by hand, and run as a user's
// table is by `policy test`.
func TestDecisions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/decisions/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		table := readTable(t, file)
		total += len(table.Calls)
		results, err := table.Run(nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var text strings.Builder
		if failed, err := policy.WriteResults(&text, results); failed > 0 || err != nil {
			t.Errorf("%v\n%s", err, text.String())
		}
		for _, r := range results {
			checkRecord(t, r.Decision)
		}
	}
	if total < 150 {
		t.Errorf("%d decisions: too few", total)
	}
}

// TestConfiguredReadersNeedNoTrust: a tool runs without a question where the config says that it only reads, with trust in its server or without.
func TestConfiguredReadersNeedNoTrust(t *testing.T) {
	t.Parallel()
	e := compile(t, policy.Settings{})
	for want, overrides := range map[tool.Behavior][]facts.Override{tool.Ask: nil, tool.Allow: {{Match: "mcp.x.get", ReadOnly: new(true)}}} {
		r := writer("mcp.x.get")
		r.Facts = facts.Of(r.Tool, facts.Options{Overrides: overrides})
		if d := e.Decide(r); d.Behavior != want {
			t.Errorf("%+v: %s %v", overrides, d.Behavior, d.Reason)
		}
	}
}

func readTable(t *testing.T, file string) *policy.Table {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table, err := policy.ParseTable(filepath.ToSlash(file), data)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
