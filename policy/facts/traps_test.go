package facts_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// made returns a tool of the server s, whose input schema has the given properties.
func made(tb testing.TB, name, description, properties, annotations string) *tool.Tool {
	tb.Helper()
	if annotations == "" {
		annotations = "{}"
	}
	n, _ := json.Marshal(name)
	d, _ := json.Marshal(description)
	return declared(tb, "s", fmt.Sprintf(`{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{%s}},"annotations":%s}`,
		n, d, properties, annotations))
}

// TestWordsNeverLoosen: whatever a server without trust says, none of its tools is read-only or safe beside others.
func TestWordsNeverLoosen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"get_zork", "list_users", "search", "read_only_get", "explain", "whoami", ""} {
		for _, description := range []string{"", "Gets a thing.", "Read-only. Changes nothing, and never deletes data."} {
			f := facts.Of(made(t, name, description, "", `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true}`), facts.Options{})
			if f.ReadOnly.Value || f.Idempotent.Value || !f.Destructive.Value || f.Concurrency.Value == facts.ConcurrencySafe ||
				!f.Has("write") || f.Has("readonly") || f.Risk.Value == facts.RiskLow {
				t.Errorf("%s (%s): %+v, %+v, tags %q", name, description, f.ReadOnly, f.Concurrency, f.Tags)
			}
		}
	}
}

// TestWordsTighten has declarations that are taken for dangerous, or for reaching the network.
func TestWordsTighten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, description, properties, tag string }{
		{"get_or_delete", "Gets a thing.", "", "dangerous"},
		{"listAndDrop", "", "", "dangerous"},
		{"clear_read", "", "", "dangerous"},
		{"list_files", "Deletes files", "", "dangerous"},
		{"get_rid", "Remove a file", "", "dangerous"},
		{"query", "Run a query", `"sql":{"type":"string"}`, "dangerous"},
		{"query_database", "", `"query":{"type":"string"}`, "dangerous"},
		{"query", "Query the database", `"query":{"type":"string"}`, "dangerous"},
		{"query", "", `"query":{"type":"string","description":"SQL to execute"}`, "dangerous"},
		{"explain_sql", "Explain an SQL statement", `"sql":{"type":"string"}`, "dangerous"},
		{"read_shell", "Reads what a shell prints", `"cmd":{"type":"string","description":"shell command to run"}`, "dangerous"},
		{"get_items", "Get items", `"delete":{"type":"boolean"}`, "dangerous"},
		{"get_items", "Get items", `"options":{"type":"object","properties":{"overwrite_existing":{"type":"boolean"}}}`, "dangerous"},
		{"get_items", "Get items", `"options":{"$ref":"#/$defs/o"}},"$defs":{"o":{"properties":{"purge":{"type":"boolean"}}}`, "dangerous"},
		{"lookup", "Look at things", `"action":{"type":"string","enum":["list","delete"]}`, "dangerous"},
		{"get_things", "Manage things", `"op":{"const":"delete"}`, "dangerous"},
		{"search", "Search the web for a text", "", "network"},
		{"send_note", "", "", "network"},
		{"browser_tabs", "", "", "browser"},
	} {
		if f := facts.Of(made(t, c.name, c.description, c.properties, ""), facts.Options{}); !f.Has(c.tag) || f.LooksReadOnly() && c.tag == "dangerous" {
			t.Errorf("%s (%s) {%s}: tags %q", c.name, c.description, c.properties, f.Tags)
		}
	}
}

// TestLooksReadOnly holds which tools are offered to people as ones that only read.
func TestLooksReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, annotations string
		looks             bool
	}{
		{"get_pull_request", "", true},
		{"s_list_commits", "", true}, // behind the name of its server
		{"HTTPGetStatus", "", false},
		{"thing", `{"readOnlyHint":true}`, true},
		{"searchCode", `{"readOnlyHint":true}`, true},
		{"get_thing", `{"readOnlyHint":false}`, false},
		{"get_thing", `{"destructiveHint":true}`, false},
		{"get_or_delete", "", false},
		{"create_get", "", false},
		{"", "", false},
	} {
		if f := facts.Of(made(t, c.name, "", "", c.annotations), facts.Options{}); f.LooksReadOnly() != c.looks {
			t.Errorf("%s %s: %t", c.name, c.annotations, !c.looks)
		}
	}
	if facts.Of(made(t, "get_thing", "", "", `{"readOnlyHint":true}`), facts.Options{Trust: true}).LooksReadOnly() {
		t.Error("a tool that is known to read only is offered")
	}
}
