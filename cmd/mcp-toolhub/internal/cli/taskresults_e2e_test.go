//go:build e2e

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestPhasesOfATasksResult holds that the result of a task passes through the phases that the result of its call would have: it is held against
// the output schema, hooks see it, and strategies count.
func TestPhasesOfATasksResult(t *testing.T) {
	t.Parallel()
	const schema = `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	hooks := map[string]any{"hooks": []any{map[string]any{"match": "mcp.far.task", "event": []string{"post_tool_use", "result_persistence"},
		"redact": []string{"key-[0-9]+"}}}}
	strategy := func(s string) map[string]any {
		return map[string]any{"results": map[string]any{"tools": []any{map[string]any{"match": "mcp.far.*", "strategy": s}}}}
	}
	long := `{"content":[{"type":"text","text":"` + strings.Repeat("word ", 40_000) + `"}]}`
	for name, c := range map[string]struct {
		declared string
		more     map[string]any
		entry    map[string]any
		result   string
		gets     string // a part
		not      string // no part
		is       tool.Status
		line     string // a part
	}{
		"a result that fits":       {schema, nil, nil, `{"content":[],"structuredContent":{"n":1}}`, `"n":1`, "isError", tool.StatusSucceeded, `"n":1`},
		"a result that is told of": {schema, nil, nil, `{"content":[],"structuredContent":{"n":"x"}}`, `"n":"x"`, "isError", tool.StatusSucceeded, `"checked":"output"`},
		"an error":                 {schema, nil, nil, `{"content":[{"type":"text","text":"no"}],"isError":true}`, `"status":"failed"`, "n/a", tool.StatusFailed, `"summary":"no"`},
		"a secret":                 {"", hooks, nil, `{"content":[{"type":"text","text":"it is key-123"}]}`, `it is [redacted]`, "key-123", tool.StatusSucceeded, `"updated_output"`},
		"what is never kept":       {"", strategy("never_persist"), nil, `{"content":[{"type":"text","text":"hush"}]}`, `hush`, "n/a", tool.StatusSucceeded, `"content_ref":"hmac-sha256:`},
		"a long one":               {"", nil, nil, long, `word word`, "isError", tool.StatusSucceeded, `"content_ref":"sha256:`},
	} {
		for _, version := range []string{rev2025, rev2026} {
			t.Run(fmt.Sprintf("%s on %s", name, version), func(t *testing.T) {
				t.Parallel()
				f := follow(t, version, c.declared, c.more, c.entry)
				got := f.task(c.result)[0]
				if !strings.Contains(got, c.gets) || strings.Contains(got, c.not) || version == rev2025 && !strings.Contains(got, `"io.modelcontextprotocol/related-task":{"taskId":"task-1"}`) {
					t.Errorf("the caller gets %.1000s", got)
				}
				all, lines := f.results()
				if len(all) != 1 || all[0].Status != c.is || !strings.Contains(lines[0], c.line) || strings.Contains(lines[0], c.not) {
					t.Errorf("the journal has %+v: %.2000s", all, lines)
				}
			})
		}
	}
}

// TestTaskThatChangesItsResult holds that a server cannot give another result of a task than the one that is in the records.
func TestTaskThatChangesItsResult(t *testing.T) {
	t.Parallel()
	f := follow(t, rev2025, "", nil, nil)
	first := `{"content":[{"type":"text","text":"` + strings.Repeat("one ", 20_000) + `"}]}`
	id := taskID(t, f.do(f.tool("task", `{"text":"","result":`+first+`}`, `"task":{}`, "")))
	f.do(f.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
	if got := f.do(f.about("tasks/result", id)); !strings.Contains(got, "one one") {
		t.Errorf("%.1000s", got)
	}
	f.do(f.tool("finish", `{"task":`+quoted(id)+`,"result":{"content":[]}}`, "", ""))
	if got := f.do(f.about("tasks/result", id)); !strings.Contains(got, "another result than before") {
		t.Errorf("%.1000s", got)
	}
	if all, _ := f.results(); len(all) != 1 {
		t.Errorf("the journal has %+v", all)
	}
}
