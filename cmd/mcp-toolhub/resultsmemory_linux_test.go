//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// resultsOfEveryKind are results of about size bytes, by what they hold.
func resultsOfEveryKind(size int) map[string]string {
	row := `{"id":1234567,"name":"a name with a quote \" in it","tags":["a","b"],"at":"2026-11-22T10:09:36Z"}`
	rows := "[" + strings.Repeat(row+",", size/len(row)) + row + "]"
	lines := strings.Repeat("a line of text, no longer than others are\n", size/42)
	blob := strings.Repeat("QUJD", size/4)
	content := func(block string) string { return `{"content":[` + block + `]}` }
	return map[string]string{
		"text":       content(`{"type":"text","text":` + quoted(lines) + `}`),
		"json":       content(`{"type":"text","text":` + quoted(rows) + `}`),
		"structured": `{"content":[],"structuredContent":{"rows":` + rows + `}}`,
		"resource":   content(`{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"` + blob + `"}}`),
		"image":      content(`{"type":"image","mimeType":"image/png","data":"` + blob + `"}`),
		"audio":      content(`{"type":"audio","mimeType":"audio/wav","data":"` + blob + `"}`),
		"meta":       `{"content":[],"_meta":{"example.com/all":` + rows + `}}`,
	}
}

// mostResultMemory bounds what the hub may take for 20 results at a time, in MB.
const mostResultMemory = 300

// TestMemoryOfLargeResults has 20 callers at a time get the same large results, and holds what the hub takes for that, also right
// after its start. For larger ones the memory for messages is bounded: a call whose answer finds no room there fails with a class.
// TOOLHUB_LONG=1 takes results of every kind, up to 64 MiB.
func TestMemoryOfLargeResults(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: makes large results")
	}
	bounded := map[string]any{"message": "100MiB", "memory": "100MiB"}
	kinds := []string{"json"}
	if os.Getenv("TOOLHUB_LONG") != "" {
		kinds = slices.Sorted(maps.Keys(resultsOfEveryKind(1)))
		callForLargeResults(t, kinds, 100_000, 20, 1, nil)
		callForLargeResults(t, kinds, 8<<20, 20, 1, bounded)
		callForLargeResults(t, kinds, 20_000_000, 20, 1, bounded)
		callForLargeResults(t, kinds, 64<<20-1<<10, 20, 1, bounded)
	}
	callForLargeResults(t, kinds, 1_000_000, 20, 3, nil)
	callForLargeResults(t, kinds, 20_000_000, 1, 1, bounded)
}

// callForLargeResults has so many callers get results of these kinds and about this size, each so many times.
func callForLargeResults(t *testing.T, kinds []string, size, callers, rounds int, limits map[string]any) {
	t.Helper()
	results := resultsOfEveryKind(size)
	script := upstreamtest.Script{Results: map[string]json.RawMessage{}}
	for _, kind := range kinds {
		script.Tools = append(script.Tools, upstreamtest.Tool(kind))
		script.Results[kind] = json.RawMessage(results[kind])
	}
	far := fakeHTTP(t, upstreamtest.Options{JSON: true, Script: script})
	hub := startHub(t, "hub.json", configText(t, map[string]any{"far": map[string]any{"type": "http", "url": far}},
		map[string]any{"results": map[string]any{"max_inline_tokens": 1000}, "hub": map[string]any{"limits": limits}}))
	for _, kind := range kinds {
		var calling sync.WaitGroup
		var mu sync.Mutex
		ends := map[string]int{}
		for range callers {
			w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
			calling.Go(func() {
				for range rounds {
					answer := last(w.send(w.call("mcp.far."+kind, `{}`, "")))
					end := fmt.Sprintf("%.300s", answer)
					switch {
					case strings.Contains(answer, "toolhub://results/"):
						end = "stored"
					case limits != nil && strings.Contains(answer, `"error_class":"result_too_large"`):
						end = "refused"
					}
					mu.Lock()
					ends[end]++
					mu.Unlock()
				}
			})
		}
		calling.Wait()
		peak, _ := memoryOf(hub.cmd.Process.Pid, "VmHWM")
		t.Logf("%d bytes of %s: %v, and the hub took %.0f MB at most", size, kind, ends, peak)
		if ends["stored"]+ends["refused"] != callers*rounds || callers == 1 && ends["refused"] > 0 {
			t.Errorf("%d bytes of %s: %v", size, kind, ends)
		}
		if peak > mostResultMemory {
			t.Errorf("%d bytes of %s: the hub took %.0f MB", size, kind, peak)
		}
	}
}
