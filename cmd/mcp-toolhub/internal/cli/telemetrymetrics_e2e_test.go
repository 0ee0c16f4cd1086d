//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestMetricsOfAHub: holders of a token read the metrics where there are tokens, and nobody else. What they say is what happened.
func TestMetricsOfAHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ann"), []byte("a-long-token-of-ann"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})}, map[string]any{
		"hub":    map[string]any{"auth": map[string]any{"tokens": []map[string]any{{"name": "ann", "token": "${file:" + filepath.Join(dir, "ann") + "}"}}}},
		"policy": map[string]any{"mode": "accept_all", "rules": []map[string]any{{"match": "mcp.s.raw", "when": "has(arguments.result)", "then": "deny"}}},
	}))
	for _, token := range []string{"", "a-long-token-of-bob"} {
		if status, _ := scrapeHub(t, hub.url+"/metrics", token); status != http.StatusUnauthorized {
			t.Errorf("with the token %q the status is %d", token, status)
		}
	}
	w := wireHTTP(t, hub.url+"/mcp", rev2025, "Authorization", "Bearer a-long-token-of-ann").open()
	for range 3 {
		w.result("mcp.s.echo", `{}`, "")
	}
	w.result("mcp.s.raw", `{"result":{}}`, "")
	for i := range 50 {
		w.send(w.call(fmt.Sprint("hostile-", i), `{}`, ""))
	}
	status, got := scrapeHub(t, hub.url+"/metrics", "a-long-token-of-ann")
	if status != http.StatusOK {
		t.Fatalf("the status is %d", status)
	}
	for key, want := range map[string]float64{
		"toolhub_calls_total class= server=s status=succeeded tool=mcp.s.echo":                                                     3,
		"toolhub_calls_total class=permission_denied server=s status=denied tool=mcp.s.raw":                                        1,
		"toolhub_calls_total class=unknown_tool server= status=failed tool=_OTHER":                                                 50,
		"toolhub_call_part_duration_seconds part=upstream server=s":                                                                3,
		"mcp_server_operation_duration_seconds gen_ai_tool_name=mcp.s.echo mcp_method_name=tools/call":                             3,
		"mcp_server_operation_duration_seconds error_type=permission_denied gen_ai_tool_name=mcp.s.raw mcp_method_name=tools/call": 1,
		"mcp_client_operation_duration_seconds gen_ai_tool_name=mcp.s.echo mcp_method_name=tools/call server=s":                    3,
		"toolhub_server_state server=s state=ready":                                                                                1,
		"toolhub_server_state server=s state=backoff":                                                                              0,
		"toolhub_calls_running server=s":                                                                                           0,
		"toolhub_approvals_open":                                                                                                   0,
	} {
		if value, ok := got[key]; !ok || value != want {
			t.Errorf("%s is %v, %v, want %v", key, value, ok, want)
		}
	}
	if t.Failed() {
		for key, value := range got {
			t.Log(key, value)
		}
	}
}
