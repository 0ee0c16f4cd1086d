package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestBatchKeepsNoMoreThanItsCalls: what the record of a call does not keep of its result, that of its batch does not keep either. The batch
// is the first that a client calls, and waits for servers that start as a single call does. A name that a rule hides is answered as one that nobody has.
func TestBatchKeepsNoMoreThanItsCalls(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		for _, bytes := range []int{500, 40_000} { // the second one is too large for the client
			dir := t.TempDir()
			script := upstreamtest.Script{Tools: upstreamtest.DefaultTools(), Delay: 300 * time.Millisecond}
			w := wireHubIn(t, dir, configText(t, map[string]any{"unkept": child(script), "hook": child(script), "hidden": child(script), "plain": child(script)}, map[string]any{
				"results": map[string]any{"max_inline_tokens": 5000, "tools": []any{map[string]any{"match": "mcp.unkept.*", "strategy": "never_persist"}}},
				"policy":  map[string]any{"mode": "accept_all", "rules": []any{map[string]any{"match": "mcp.hidden.*", "then": "deny"}}},
				"hooks": []any{map[string]any{"name": "less", "event": "result_persistence", "match": "mcp.hook.*",
					"redact": []string{"x+"}}}}), version).open()
			got := w.result("tool_batch", fmt.Sprintf(`{"ordering_policy":"allow_unordered","calls":[{"id":"unkept","name":"mcp.unkept.big","arguments":{"bytes":%d}},`+
				`{"id":"hook","name":"mcp.hook.big","arguments":{"bytes":400}},{"id":"hidden","name":"mcp.hidden.echo","arguments":{}},{"id":"nobody","name":"mcp.hidden.nobody","arguments":{}}]}`, bytes), "")
			for _, n := range []int{bytes, 400} {
				if !strings.Contains(got, `"`+strings.Repeat("x", n)+`"`) {
					t.Errorf("%s: %d bytes are not answered: %.3000s", version, n, got)
				}
			}
			ids := regexp.MustCompile(`inv_\w+`)
			hidden := ids.ReplaceAllString(entryOf(t, got, "hidden"), "")
			nobody := ids.ReplaceAllString(entryOf(t, got, "nobody"), "")
			if strings.ReplaceAll(hidden, "mcp.hidden.echo", "") != strings.ReplaceAll(strings.ReplaceAll(nobody, "mcp.hidden.nobody", ""), `"nobody"`, `"hidden"`) {
				t.Errorf("%s: a hidden name is answered %s, an unknown one %s", version, hidden, nobody)
			}
			w.result("tool_batch", `{"calls":[{"id":"a","name":"mcp.plain.big","arguments":{"bytes":350}}]}`, "")
			w.hangUp()
			files, plain := 0, strings.Repeat("x", 350)
			inFiles(t, dir, func(file, text string) {
				files++
				if n := strings.Count(text, plain); n != 1 && filepath.Base(filepath.Dir(file)) == "journal" && strings.HasSuffix(file, ".jsonl") {
					t.Errorf("%s: the journal has the result of a call %d times", version, n)
				}
				if strings.Contains(text, strings.Repeat("x", 400)) || strings.Contains(file, filepath.Join("results", "bytes")) {
					t.Errorf("%s: %s has a result", version, file)
				}
			})
			if files < 3 {
				t.Errorf("%s: the hub has left %d files", version, files)
			}
		}
	}
}

// entryOf is the entry of a call among the results of a batch.
func entryOf(t *testing.T, result, id string) string {
	t.Helper()
	var r struct {
		StructuredContent struct {
			Results []json.RawMessage `json:"results"`
		} `json:"structuredContent"`
	}
	mustDecode(t, result, &r)
	for _, one := range r.StructuredContent.Results {
		if strings.HasPrefix(string(one), `{"id":"`+id+`"`) {
			return string(one)
		}
	}
	t.Fatalf("no call %q is in %.2000s", id, result)
	return ""
}

// inFiles calls see with all files below dir.
func inFiles(t *testing.T, dir string, see func(file, text string)) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		see(file, string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
