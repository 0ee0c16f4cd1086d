package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestListChangedReachesWhoSeesIt has a server say that its tools have changed when they have, and when they have not.
// Clients of several servers are told of the former alone, and those of a profile that does not show the server of nothing.
// Clients of its direct view are told what it says.
func TestListChangedReachesWhoSeesIt(t *testing.T) {
	t.Parallel()
	tools := append(upstreamtest.DefaultTools(), upstreamtest.Tool("grow"), upstreamtest.Tool("flood"))
	config := configText(t, map[string]any{"a": child(upstreamtest.Script{Tools: tools}), "b": child(upstreamtest.Script{})},
		map[string]any{"profiles": map[string]any{"others": map[string]any{"servers": []string{"b"}}}})
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			hub := startHub(t, "hub.json", config)
			w := wireHTTP(t, hub.url+"/mcp", version).open()
			w.awaitTools("mcp.a.grow", "mcp.b.echo")
			var merged, others, view <-chan string
			for path, to := range map[string]*<-chan string{"/mcp": &merged, "/mcp/p/others": &others, viewOf("a"): &view} {
				*to = wireHTTP(t, hub.url+path, version).open().changes()
			}
			for i := range 3 {
				w.result("mcp.a.flood", `{"n":50}`, "") // the same list
				if got := await(t, view); !strings.Contains(got, `"notifications/tools/list_changed"`) {
					t.Errorf("the direct view got %s", got)
				}
				w.result("mcp.a.grow", fmt.Sprintf(`{"name":"grown%d"}`, i), "")
				if got := await(t, merged); !strings.Contains(got, `"notifications/tools/list_changed"`) {
					t.Errorf("the merged view got %s", got)
				}
				w.awaitTools(fmt.Sprint("mcp.a.grown", i))
			}
			if got := drained(merged); len(got) > 0 {
				t.Errorf("told too often: %q", got)
			}
			if got := drained(others); len(got) > 0 {
				t.Errorf("told what it does not show: %q", got)
			}
		})
	}
}

// changes opens a stream of what belongs to no call and returns what comes on it, but for the acknowledgement.
func (w *wire) changes() <-chan string {
	w.t.Helper()
	if !w.modern() {
		return w.standing()
	}
	stream := w.listen(w.newRequest(rawRequest{id: w.nextID(), method: "subscriptions/listen",
		params: w.params(`"notifications":{"toolsListChanged":true}`, "")}))
	if got := await(w.t, stream); !strings.Contains(got, "acknowledged") {
		w.t.Fatalf("got %s", got)
	}
	return stream
}

func drained(stream <-chan string) (all []string) {
	for {
		select {
		case m := <-stream:
			all = append(all, m)
		default:
			return all
		}
	}
}
