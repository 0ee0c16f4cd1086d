package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestRemoteCallersSeeNoLocalPaths: what the hub itself says to a caller with a token, in errors, progress and health, names no directory of
// this machine. The log does, and a person of this machine sees it, too.
func TestRemoteCallersSeeNoLocalPaths(t *testing.T) {
	t.Parallel()
	tokens := map[string]any{"auth": map[string]any{"tokens": []map[string]string{{"name": "ann", "token": "${env:ANN}"}}}}
	for _, remote := range []bool{true, false} {
		down := map[string]any{"command": t.TempDir() + "/none"}
		more := map[string]any{"policy": map[string]any{}}
		var headers []string
		if remote {
			more["hub"], headers = tokens, []string{"Authorization", "Bearer ann-ann-ann-ann-ann"}
		}
		hub := startHubIn(t, []string{"ANN=ann-ann-ann-ann-ann"}, "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{
			Tools: []json.RawMessage{upstreamtest.Tool("echo")}}), "down": down}, more))
		w := wireHTTP(t, hub.url+"/mcp", rev2025, headers...).open()
		w.awaitTools("mcp.s.echo")
		next, end := w.begin(w.call("mcp.s.echo", `{}`, `"progressToken":"p"`))
		waiting := next()
		end()
		w = wireHTTP(t, hub.url+viewOf("down"), rev2025, headers...).open()
		read := last(w.send(rawRequest{id: w.nextID(), method: "resources/read", params: w.params(`"uri":"own://a"`, "")}))
		health := ""
		eventually(t, "the health says what is wrong", func() bool {
			_, health = hub.health(t, headers...)
			return strings.Contains(health, "/none")
		})
		for what, text := range map[string]string{"progress": waiting, "a request": read, "health": health} {
			if seen := strings.Contains(text, os.TempDir()+"/"); seen == remote {
				t.Errorf("remote %v: %s: %s", remote, what, text)
			}
		}
	}
}
