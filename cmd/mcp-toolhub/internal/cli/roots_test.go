//go:build e2e

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestRootsChange has clients of both doors say that their roots have changed. The server that each has for itself is told,
// asks, and gets that client's roots. The one that all share is not: it was never told that it would be.
func TestRootsChange(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"http", "stdio"} {
		for _, version := range []string{rev2025March, rev2025} {
			t.Run(door+" "+version, func(t *testing.T) {
				t.Parallel()
				own := upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("answers")),
					Behaviours: []upstreamtest.Behaviour{upstreamtest.AsksAgain}, Record: filepath.Join(t.TempDir(), "own")}
				shared := own
				shared.Record = ""
				config := configText(t, map[string]any{"own": with(child(own), "isolation", "session"),
					"shared": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: shared})}}, nil)
				w := rootsClient(t, door, version, config)
				x := &exchange{w: w, answer: func(_ int, q asked) string {
					if q.method != "roots/list" || q.params != "" {
						t.Errorf("asked %s %s", q.method, q.params)
					}
					return `{"roots":[{"uri":"file:///new","n":1.0}]}`
				}}
				x.call("mcp.own.echo", `{}`)
				x.call("mcp.shared.echo", `{}`)
				if len(x.asked) > 0 {
					t.Fatalf("asked %v before anything has changed", x.asked)
				}
				w.respond(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"n":1.0}}}`)
				got := x.call("mcp.own.answers", `{"wait":"file:///new"}`)
				if !strings.Contains(got, `"result":{"roots":[{"uri":"file:///new","n":1.0}]}`) {
					t.Errorf("the server is answered %s", got)
				}
				x.call("mcp.shared.echo", `{}`)
				if len(x.asked) != 1 {
					t.Errorf("asked %v", x.asked)
				}
				checkRootsRecord(t, own.Record, 1)
			})
		}
	}
}

func rootsClient(t *testing.T, door, version, config string) *wire {
	t.Helper()
	if door == "stdio" {
		w := wireHub(t, config, version).able().open()
		w.awaitTools("mcp.own.echo", "mcp.shared.echo")
		return w
	}
	w := wireHTTP(t, startHub(t, "hub.json", config).url+"/mcp", version).able().open()
	w.awaitTools("mcp.own.echo", "mcp.shared.echo")
	return w
}

// checkRootsRecord holds what a server got: told times that roots have changed, if that was offered.
func checkRootsRecord(t *testing.T, file string, told int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	record := string(data)
	const note = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"n":1.0}}}`
	if n := strings.Count(record, note); n != told || strings.Count(record, "roots/list_changed") != told {
		t.Errorf("%s: told %d times, want %d:\n%s", filepath.Base(file), n, told, record)
	}
	offered := 0
	for line := range strings.Lines(record) { // besides, server/discover may have said it first
		if strings.Contains(line, `"method":"initialize"`) && strings.Contains(line, `"listChanged":true`) {
			offered++
		}
	}
	if offered != told {
		t.Errorf("%s: offered %d times, want %d", filepath.Base(file), offered, told)
	}
}
