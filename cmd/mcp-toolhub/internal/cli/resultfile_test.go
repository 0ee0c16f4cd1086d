package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestResultInAFile: a client over stdio, which is a program of this machine, is told in which file the text of a large result is. One
// over HTTP is not, nor where results are sealed.
func TestResultInAFile(t *testing.T) {
	t.Parallel()
	config := func(persist map[string]any) string {
		more := neverDeferred()
		more["results"], more["persist"] = map[string]any{"max_inline_tokens": 1000}, persist
		return configText(t, map[string]any{"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}, "trust": true}}, more)
	}
	file := regexp.MustCompile(`It is also in the file (\S+\.txt)\.`)
	hub := startHub(t, "hub.json", config(map[string]any{}))
	for name, w := range map[string]*wire{
		"stdio":  wireHub(t, config(map[string]any{}), rev2025),
		"sealed": wireHub(t, config(map[string]any{"results": map[string]any{"key": "${env:HOME}"}}), rev2025),
		"http":   wireHTTP(t, hub.url+"/mcp", rev2025),
	} {
		w.open()
		if w.stdin != nil {
			w.ready("mcp.demo.big")
		}
		result := w.result("mcp.demo.big", `{"bytes":100000}`, "")
		found := file.FindStringSubmatch(result)
		if !strings.Contains(result, "are stored") || (found != nil) != (name == "stdio") {
			t.Errorf("%s: %.3000s", name, result)
		}
		if found == nil {
			continue
		}
		text, err := os.ReadFile(found[1])
		if err != nil || len(text) != 100000 || !strings.HasPrefix(string(text), "00000000 ") {
			t.Errorf("%d bytes, %v: %.100s", len(text), err, text)
		}
	}
}
