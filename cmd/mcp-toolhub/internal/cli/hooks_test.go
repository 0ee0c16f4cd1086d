package cli

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestHooksOnErrorsOfServers: a JSON-RPC error of a server goes to the client as it is. The record says that what a hook makes of the result is ignored.
func TestHooksOnErrorsOfServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := wireHubIn(t, dir, configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: upstreamtest.DefaultTools()})}, map[string]any{
		"hooks": []any{map[string]any{"name": "words", "event": "post_tool_use_failure", "add_context": "ask somebody"}}}), rev2026).open()
	w.awaitTools("mcp.s.fail")
	if got := w.send(w.call("mcp.s.fail", `{"error":{"code":-32000,"message":"no"}}`, "")); !strings.Contains(got[len(got)-1], `"error":{"code":-32000,"message":"no"}`) {
		t.Errorf("the client gets %s", got)
	}
	w.hangUp()
	journal := readJournal(t, dir)
	if !strings.Contains(journal, `"ignored","outputs":["additional_context"]`) && !strings.Contains(journal, `"outputs":["additional_context"],"type":"ignored"`) {
		t.Errorf("the record does not say that the hook is ignored: %s", journal)
	}
	if strings.Contains(journal, "modified_by") {
		t.Errorf("the record says that the error was modified: %s", journal)
	}
}
