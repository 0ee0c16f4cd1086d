package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// gateServer is a server whose calls say that they run, and then wait for their gate. A call is named by its content.
type gateServer struct {
	t    *testing.T
	came chan string // contents of calls, as they come to the server

	mu    sync.Mutex
	gates map[string]chan struct{}
	ended []string // contents of calls that were about to end
}

type gateInput struct {
	Path    string `json:"path,omitempty" jsonschema:"path of the file"`
	Content string `json:"content" jsonschema:"what it is"`
}

// gate ends the call of that content, once.
func (g *gateServer) gate(content string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates[content] == nil {
		g.gates[content] = make(chan struct{})
	}
	return g.gates[content]
}

func (g *gateServer) serve(ctx context.Context, r *mcp.CallToolRequest, in gateInput) (*mcp.CallToolResult, any, error) {
	if r.Params.Name == "edit_file" {
		if _, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "which line?"}); err != nil {
			return nil, nil, err
		}
	}
	g.came <- in.Content
	select {
	case <-g.gate(in.Content):
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = append(g.ended, in.Content)
	return &mcp.CallToolResult{}, nil, nil
}

// next is the next call that comes to the server.
func (g *gateServer) next() string {
	g.t.Helper()
	return await(g.t, g.came)
}

// gatedHub runs a hub before a server of gates.
func gatedHub(t *testing.T, more map[string]any) (*gateServer, *runningHub) {
	g, config := gatedConfig(t, more)
	return g, startHub(t, "hub.json", config)
}

// gatedConfig runs a server of gates, and returns the config of a hub before it.
func gatedConfig(t *testing.T, more map[string]any) (*gateServer, string) {
	return gatedConfigWith(t, more, nil)
}

// gatedConfigWith is gatedConfig with these keys more at the top.
func gatedConfigWith(t *testing.T, more, top map[string]any) (*gateServer, string) {
	g := &gateServer{t: t, came: make(chan string, 1000), gates: map[string]chan struct{}{}}
	s := mcp.NewServer(&mcp.Implementation{Name: "gates", Version: "1"}, nil)
	for name, description := range map[string]string{"write_file": "Writes a file.", "edit_file": "Edits a file.", "read_file": "Reads a file.",
		"send_message": "Sends a message."} {
		reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
		if name != "read_file" {
			reads = nil
		}
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, Annotations: reads}, g.serve)
	}
	far := httptest.NewServer(sdkHandler(s, false))
	t.Cleanup(far.Close)
	entry := map[string]any{"type": "http", "url": far.URL, "trust": true}
	for key, value := range more {
		entry[key] = value
	}
	return g, configText(t, map[string]any{"far": entry}, top)
}

// sdkHandler serves s over HTTP. The SDK serves 2026-07-28 only where there are no sessions.
func sdkHandler(s *mcp.Server, modern bool) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: modern})
}

// queued waits until n calls wait in the queue.
func queued(t *testing.T, hub *runningHub, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " calls wait"), func() bool { return hub.server(t, "far").Queued == n })
}

// begins sends a call, whose answer comes on the channel.
func begins(w *wire, name, args string) <-chan string {
	return sends(w, w.call("mcp.far."+name, args, ""))
}

// sends sends a request, whose answer comes on the channel.
func sends(w *wire, r rawRequest) <-chan string {
	answer := make(chan string, 1)
	go func() {
		messages := w.send(r)
		answer <- messages[len(messages)-1]
	}()
	return answer
}

// succeeds waits for the answer of a call.
func succeeds(t *testing.T, answer <-chan string) {
	t.Helper()
	if got := await(t, answer); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("a call ended with %.500s", got)
	}
}

// TestReadsWaitForWritesThroughTheHub: calls of one file come to the server in the order in which they came to the hub, where one of two
// writes. Those of another file do not wait.
func TestReadsWaitForWritesThroughTheHub(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, hub := gatedHub(t, nil)
			call := func(tool, path, content string) <-chan string {
				w := wireHTTP(t, hub.url+"/mcp", version).open()
				return begins(w, tool, fmt.Sprintf(`{"path":%q,"content":%q}`, path, content))
			}
			comes := func(want string) {
				t.Helper()
				if got := g.next(); got != want {
					t.Fatalf("%s came, not %s", got, want)
				}
			}
			all := []<-chan string{call("write_file", "/tmp/a", "first")}
			comes("first")
			all = append(all, call("read_file", "/tmp/a", "read"))
			queued(t, hub, 1)
			all = append(all, call("write_file", "/tmp/a", "second"))
			queued(t, hub, 2)
			all = append(all, call("read_file", "/tmp/a", "late")) // it waits for a write that itself waits
			queued(t, hub, 3)
			all = append(all, call("read_file", "/tmp/b", "other"))
			comes("other")
			for _, content := range []string{"first", "read", "second"} {
				close(g.gate(content))
				comes(map[string]string{"first": "read", "read": "second", "second": "late"}[content])
			}
			close(g.gate("late"))
			close(g.gate("other"))
			for _, answer := range all {
				succeeds(t, answer)
			}
		})
	}
}

// TestAnAskedClientGoes: a client that goes while it is asked has denied nothing. Its call is canceled by that, on both generations.
func TestAnAskedClientGoes(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			_, config := gatedConfigWith(t, nil, map[string]any{"policy": map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"client"}},
				"rules": []any{map[string]any{"match": "mcp.far.send_message", "then": "ask"}}}})
			dir := t.TempDir()
			w := wireHubIn(t, dir, config, version).able().open()
			w.awaitTools("mcp.far.send_message")
			w.write(w.call("mcp.far.send_message", `{"content":"x"}`, "").text())
			w.nextWith("requestedSchema")
			w.hangUp()
			results := 0
			for _, r := range resultsIn(t, dir) {
				results++
				if r.Status != tool.StatusCanceled || r.Error == nil || !strings.Contains(r.Error.Message, "the client has gone") {
					t.Errorf("the call ended as %s: %+v", r.Status, r.Error)
				}
			}
			if results != 1 {
				t.Errorf("%d results", results)
			}
		})
	}
}

// resultsIn returns the results in the journal of a hub that has run in dir.
func resultsIn(t *testing.T, dir string) (all []tool.Result) {
	t.Helper()
	if err := persist.Read(filepath.Join(dir, "state", "mcp-toolhub", "journal"), func(line json.RawMessage) bool {
		var r tool.Result
		if mustDecode(t, string(line), &r); r.Object == tool.ObjectResult {
			all = append(all, r)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBatchesOverHTTPKeepTheirOrder: messages of a batch are sent in the order in which it was written, also where nothing says in which
// order the client wrote the batch and other calls.
func TestBatchesOverHTTPKeepTheirOrder(t *testing.T) {
	t.Parallel()
	g, hub := gatedHub(t, nil)
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		for round := range 5 {
			var calls, want, got []string
			for n := range 4 {
				content := fmt.Sprint(version, " ", round, " ", n)
				close(g.gate(content))
				calls = append(calls, fmt.Sprintf(`{"id":"%d","name":"mcp.far.send_message","arguments":{"content":%q}}`, n, content))
				want = append(want, content)
			}
			w.batch(`{"ordering_policy":"allow_unordered","calls":[` + strings.Join(calls, ",") + `]}`)
			for range calls {
				got = append(got, g.next())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v came", got)
			}
		}
	}
}
