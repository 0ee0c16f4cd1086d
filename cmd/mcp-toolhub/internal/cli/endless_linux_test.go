//go:build e2e && !race

package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestEndlessStreams has eight servers answer without end, at the same time. Each call fails, and the hub takes less than 300 MB.
func TestEndlessStreams(t *testing.T) {
	t.Parallel() // the hub is a process of its own
	piece := bytes.Repeat([]byte("x"), 64<<10)
	servers := map[string]any{}
	for i := range 8 {
		contentType, start := "application/json", ""
		if i%2 == 0 {
			contentType, start = "text/event-stream", "data: "
		}
		endless := func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if !strings.Contains(string(body), `"tools/call"`) {
				return false
			}
			w.Header().Set("Content-Type", contentType)
			_, err := io.WriteString(w, start+`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`)
			for err == nil && r.Context().Err() == nil {
				_, err = w.Write(piece)
			}
			return true
		}
		servers[fmt.Sprintf("s%d", i)] = map[string]any{"type": "http",
			"url": fakeHTTP(t, upstreamtest.Options{JSON: i%2 != 0, Intercept: endless})}
	}
	hub := startHub(t, "hub.json", configText(t, servers, nil))
	var calling sync.WaitGroup
	for id := range servers {
		w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
		calling.Go(func() {
			answer := last(w.send(w.call("mcp."+id+".echo", "{}", "")))
			if !strings.Contains(answer, "result_too_large") {
				t.Errorf("%s: %.500s", id, answer)
			}
		})
	}
	calling.Wait()
	peak, _ := memoryOf(hub.cmd.Process.Pid, "VmHWM")
	t.Logf("the hub took %.0f MB at most", peak)
	if peak > mostResultMemory {
		t.Errorf("the hub took %.0f MB", peak)
	}
}
