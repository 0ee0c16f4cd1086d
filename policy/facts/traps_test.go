package facts_test

import (
	"encoding/json"
	"fmt"
	"strings"
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

// TestForeignLettersInAReadableText: they do not make it one that is not read.
func TestForeignLettersInAReadableText(t *testing.T) {
	t.Parallel()
	for _, description := range []string{"", "Lists notes 🎉", "Lists notes, naïve résumés and Ünïcödé among them", "Lists notes (笔记)"} {
		if f := facts.Of(made(t, "list_notes", description, "", ""), facts.Options{}); !f.ReadOnly.Value {
			t.Errorf("%q: %+v", description, f.ReadOnly)
		}
	}
}

// TestWordsThatAreNotReadOnly has names and descriptions that a hasty derivation would take for read-only.
func TestWordsThatAreNotReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, description string }{
		{"get_or_create", "Gets a thing."},
		{"get_删除", "Gets a thing."},
		{"list_users", "列出用户并删除不活跃的用户"},
		{"get_note", "Возвращает заметку и удаляет её"},
		{"get_token", "Get and rotate a token"},
		{"get_order", "Get an order, or cancel it"},
		{"getOrCreateUser", ""},
		{"get_or_set", ""},
		{"list_and_delete", ""},
		{"list_and_drop", ""},
		{"read_write_file", ""},
		{"find_and_replace", ""},
		{"search", "Search the files for a text and replace it with another"},
		{"search", "Search for documents, then delete them"},
		{"search_files", "Search files, and optionally delete what is found"},
		{"get_reset", ""},
		{"reset_count", "Reset the count"},
		{"clear_read", ""},
		{"drop_view", ""},
		{"check_out", ""},
		{"check_in_file", ""},
		{"view", "Views and then deletes the message."},
		{"get_message", "Returns a message. The message will be deleted."},
		{"get_message", "Returns a message. This tool also deletes it from the server."},
		{"get_message", "Returns the message and marks it. Not only reads but deletes the message."},
		{"get_invite", "Get an invitation. Can also remove it."},
		{"fetch", "Permanently removes nothing? It wipes the disk."},
		{"run", ""},
		{"run_tests", "Runs the tests"},
		{"browser_click", "Clicks"},
		{"fetch_page", "Fetch a page and save it to disk"},
		{"get_logs", "Get logs. Large ones will be written to a file."},
		{"generate_api_key", "Generate an API key"},
		{"capture_payment", "Capture a payment"},
		{"resolve_issue", "Resolve an issue"},
		{"select", ""},
		{"thing", ""},
		{"", ""},
		{"do_it", "Does what is wanted"},
		{"g\u0435t_users", ""}, // a Cyrillic letter
		{"удалить", ""},
		{"archive_list", "Archive a list"},
		{"post_search", ""},
		{"pull_read", "Pulls the latest changes"},
		{"uninstall", "Get rid of a program"},
		{"get_rid", "Remove a file"},
		{"list_files", "Delete files"},
		{"list_files", "Deletes files"},
		{"list_files", "This tool deletes files"},
		{"list_files", "Use this tool to delete files"},
		{"list_files", "Lists files. This action cannot be undone."},
		{"list_files", "PERMANENTLY DELETE files"},
		{"list_files", "Lists files. Not only lists, deletes them."},
		{"list_files", "List files. " + strings.Repeat("It is long. ", 2000)},
	} {
		notReadOnly(t, c.name, c.description, "")
	}
}

// TestArgumentsThatAreNotReadOnly has those where the arguments tell.
func TestArgumentsThatAreNotReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, description, properties string }{
		{"query", "Run a query", `"sql":{"type":"string"}`},
		{"query", "Query the database", `"query":{"type":"string"}`},
		{"query_database", "", `"query":{"type":"string"}`},
		{"query", "", `"query":{"type":"string","description":"SQL to execute"}`},
		{"get_rows", "Get rows", `"statement":{"type":"string","description":"SQL statement"}`},
		{"execute_sql", "Execute arbitrary SQL", `"sql":{"type":"string"}`},
		{"find", "Run a cypher query", `"query":{"type":"string","description":"Cypher"}`},
		{"graphql_query", "Query the GraphQL API", `"query":{"type":"string"}`},
		{"get_data", "Returns data if not in read-only mode", `"sql":{"type":"string"}`},
		{"get_data", "This is not read-only", `"sql":{"type":"string"}`},
		{"get_output", "Get the output of a read-only command", `"command":{"type":"string"}`},
		{"evaluate", "Evaluates an expression", `"expression":{"type":"string"}`},
		{"show", "Show the result of JavaScript code", `"code":{"type":"string"}`},
		{"read_shell", "Reads what a shell prints", `"cmd":{"type":"string","description":"shell command to run"}`},
		{"browser_navigate", "Navigate to a URL", `"url":{"type":"string"}`},
		{"browser_tabs", "List, create, close, or select a browser tab.", `"action":{"type":"string","enum":["list","new","close"]}`},
		{"fetch", "Fetch a URL", `"url":{"type":"string"},"method":{"type":"string","enum":["GET","POST"]}`},
		{"fetch", "Fetch a URL", `"url":{"type":"string"},"method":{"type":"string"}`},
		{"fetch", "Fetch a URL", `"url":{"type":"string"},"body":{"type":"string"}`},
		{"get_report", "Get a report", `"output_path":{"type":"string"}`},
		{"get_report", "Get a report", `"filename":{"type":"string","description":"Save the report to this file"}`},
		{"get_items", "Get items", `"delete":{"type":"boolean"}`},
		{"get_items", "Get items", `"options":{"type":"object","properties":{"overwrite_existing":{"type":"boolean"}}}`},
		{"get_items", "Get items", `"options":{"anyOf":[{"type":"object"},{"type":"object","properties":{"purge":{"type":"boolean"}}}]}`},
		{"lookup", "Look at things", `"action":{"type":"string","enum":["list","delete"]}`},
		{"issue", "", `"operation":{"enum":["get","update"]}`},
		{"get_things", "Manage things", `"op":{"const":"delete"}`},
		{"generate_image", "Generate an image", `"path":{"type":"string"}`},
		{"convert_file", "Convert a file to text", `"path":{"type":"string"}`},
		{"get_items", "Get items", `"options":{"$ref":"#/$defs/o"}},"$defs":{"o":{"properties":{"purge":{"type":"boolean"}}}`},
		{"get_items", "Get items", `"options":{"$ref":"https://example.com/schema"}`},
		{"get_items", "Get items", `"options":{"$ref":"#/$defs/none"}`},
		{"get_items", "Get items", `"a":{"patternProperties":{".":{"type":"boolean"}}}`},
		{"get_items", "Get items", strings.Repeat(`"a":{"properties":{`, 20) + strings.Repeat("}}", 20)},
		{"get_items", "Get items", `"a":{"properties":{` + strings.Repeat(`"b":{},`, 1500) + `"c":{}}}`},
	} {
		notReadOnly(t, c.name, c.description, c.properties)
	}
}

func notReadOnly(t *testing.T, name, description, properties string) {
	t.Helper()
	f := facts.Of(made(t, name, description, properties, ""), facts.Options{})
	if f.ReadOnly.Value {
		t.Errorf("%s (%s) {%s} is taken for read-only: %s", name, description, properties, f.ReadOnly.Why)
	}
	if !f.Has("write") || f.Has("readonly") || f.Risk.Value == facts.RiskLow || len(f.WriteEffects.Value) == 0 {
		t.Errorf("%s: tags %q, risk %s, effects %q", name, f.Tags, f.Risk.Value, f.WriteEffects.Value)
	}
}

func TestWhatIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, description, properties string }{
		{"get_pull_request", "Get a pull request", ""},
		{"list_commits", "List commits and branches", ""},
		{"pull_request_read", "Get information on a pull request", `"method":{"type":"string","enum":["get","get_comments"]}`},
		{"getUserById", "", `"id":{"type":"string"}`},
		{"HTTPGetStatus", "Get the status", ""},
		{"list_deleted_items", "Lists items in the bin", ""},
		{"query", "Run a read-only SQL query", `"sql":{"type":"string"}`},
		{"query_docs", "Query the documentation", `"query":{"type":"string"}`},
		{"explain_sql", "Explain an SQL statement", `"sql":{"type":"string"}`},
		{"validate_script", "Validate a script", `"script":{"type":"string"}`},
		{"weather", "Returns the weather of a city. Does not change anything and never deletes data.", ""},
		{"directions", "Get directions between two points", ""},
		{"fetch", "Fetch a URL", `"url":{"type":"string"}`},
		{"fetch", "Fetch a URL", `"url":{"type":"string"},"method":{"type":"string","enum":["GET","HEAD"]}`},
		{"generate_chart", "Generate a chart", `"data":{"type":"array"}`},
		{"search_code", "Search code", `"query":{"type":"string"},"language_code":{"type":"string"}`},
		{"get_tree", "Get a tree", `"node":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"child":{"$ref":"#/$defs/n"}}}`},
		{"get_file", "Get a file", `"path":{"type":"string","description":"path to the file"}`},
	} {
		f := facts.Of(made(t, c.name, c.description, c.properties, ""), facts.Options{})
		if !f.ReadOnly.Value || f.Destructive.Value || !f.Has("readonly") || f.Has("write") || len(f.WriteEffects.Value) > 0 {
			t.Errorf("%s (%s) {%s} is not taken for read-only: %s; destructive %v", c.name, c.description, c.properties, f.ReadOnly.Why, f.Destructive)
		}
		if f.ReadOnly.Origin != facts.Inferred {
			t.Errorf("%s: read-only is %s", c.name, f.ReadOnly.Origin)
		}
	}
}
