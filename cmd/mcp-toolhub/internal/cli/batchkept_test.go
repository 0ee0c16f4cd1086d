//go:build e2e

package cli

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

// TestBatchBounds: an entry of a call over a rate limit says when to call again. A value that finds no room among the arguments leaves the room to
// smaller ones, and what was given counts, too.
func TestBatchBounds(t *testing.T) {
	t.Parallel()
	w := wireHub(t, configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: upstreamtest.DefaultTools()})}, map[string]any{
		"policy": map[string]any{"mode": "accept_all", "rates": []any{map[string]any{"match": "mcp.s.fail", "calls": 1, "every": "1h"}}}}), rev2026).open()
	w.awaitTools("mcp.s.raw")
	got := w.result("tool_batch", `{"ordering_policy":"serial","sibling_failure_policy":"ignore","calls":[{"id":"ran","name":"mcp.s.fail","arguments":{"error":{"code":1,"message":"x"}}}]}`, "")
	if entry := entryOf(t, got, "ran"); strings.Contains(entry, "retry_after_ms") {
		t.Errorf("a call within the limit is answered %s", entry)
	}
	got = w.result("tool_batch", `{"calls":[{"id":"over","name":"mcp.s.fail","arguments":{"error":{"code":1,"message":"x"}}}]}`, "")
	if entry := entryOf(t, got, "over"); !regexp.MustCompile(`"retry_after_ms":3[56]\d{5},`).MatchString(entry) ||
		!strings.Contains(entry, "1 calls are allowed here at once, and 1 more in each 1h0m0s: nothing ran") {
		t.Errorf("a call over the limit is answered %s", entry)
	}
	large := strings.Repeat("x", 2_500_000)
	got = w.result("tool_batch", `{"ordering_policy":"allow_unordered","sibling_failure_policy":"ignore","calls":[`+
		`{"id":"source","name":"mcp.s.raw","arguments":{"result":{"content":[],"structuredContent":{"large":"`+large+`","small":"y"}}}},`+
		`{"id":"large","name":"mcp.s.echo","depends_on":["source"],"arguments_from":{"a":{"call":"source","pointer":"/large"}}},`+
		`{"id":"small","name":"mcp.s.echo","depends_on":["large"],"arguments_from":{"a":{"call":"source","pointer":"/small"}}}]}`, "")
	for id, want := range map[string]string{"large": `"error_class":"invalid_arguments"`, "small": `"status":"succeeded"`} {
		if entry := entryOf(t, got, id); !strings.Contains(entry, want) {
			t.Errorf("%s is answered %.300s", id, entry)
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
