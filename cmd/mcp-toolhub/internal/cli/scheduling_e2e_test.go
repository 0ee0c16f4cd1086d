//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// overlapServer measures which of its calls overlap. Its reads answer when want of them run at the same time.
type overlapServer struct {
	want int

	mu      sync.Mutex
	writing map[string]int // calls that write, by path
	most    map[string]int
	order   map[string][]int
	reading int             // reads that run
	all     chan struct{}   // closed when want reads run
	late    <-chan struct{} // closed when reads do not wait for each other any more
}

type overlapInput struct {
	Path    string `json:"path" jsonschema:"path of the file"`
	Content string `json:"content,omitempty" jsonschema:"what to write"`
	N       int    `json:"n,omitempty" jsonschema:"the number of the call"`
}

func (o *overlapServer) write(_ context.Context, _ *mcp.CallToolRequest, in overlapInput) (*mcp.CallToolResult, any, error) {
	o.mu.Lock()
	o.writing[in.Path]++
	o.most[in.Path] = max(o.most[in.Path], o.writing[in.Path])
	o.order[in.Path] = append(o.order[in.Path], in.N)
	o.mu.Unlock()
	<-time.After(20 * time.Millisecond) // so that another one would be seen
	o.mu.Lock()
	o.writing[in.Path]--
	o.mu.Unlock()
	return &mcp.CallToolResult{}, nil, nil
}

func (o *overlapServer) read(ctx context.Context, _ *mcp.CallToolRequest, _ overlapInput) (*mcp.CallToolResult, any, error) {
	o.mu.Lock()
	if o.reading++; o.reading == o.want {
		close(o.all)
	}
	o.mu.Unlock()
	select {
	case <-o.all:
	case <-o.late:
	case <-ctx.Done():
	}
	o.mu.Lock()
	o.reading--
	o.mu.Unlock()
	return &mcp.CallToolResult{}, nil, nil
}

// start serves o, and returns the entry of its config.
func (o *overlapServer) start(t *testing.T) map[string]any {
	o.writing, o.most, o.order, o.all = map[string]int{}, map[string]int{}, map[string][]int{}, make(chan struct{})
	bound, cancel := context.WithTimeout(t.Context(), patience/4)
	t.Cleanup(cancel)
	o.late = bound.Done()
	s := mcp.NewServer(&mcp.Implementation{Name: "overlap", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "write_file", Description: "Writes a file."}, o.write)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "read_file", Description: "Reads a file.", Annotations: reads}, o.read)
	far := httptest.NewServer(sdkHandler(s, false))
	t.Cleanup(far.Close)
	return map[string]any{"type": "http", "url": far.URL, "trust": true}
}

// TestOverlapMeasuredByTheServer: writes to one file never overlap, whoever calls, those to two files do not wait for each other, and
// 20 reads run at the same time.
func TestOverlapMeasuredByTheServer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := &overlapServer{want: 20}
			hub := startHub(t, "hub.json", configText(t, map[string]any{"far": o.start(t)}, nil))
			var calling sync.WaitGroup
			for i := range 10 {
				w := wireHTTP(t, hub.url+"/mcp", version).open()
				calling.Go(func() {
					for _, path := range []string{"/tmp/a", "/tmp/b"} {
						if got := w.result("mcp.far.write_file", fmt.Sprintf(`{"path":%q,"content":"x","n":%d}`, path, i), ""); strings.Contains(got, "isError") {
							t.Errorf("%s", got)
						}
					}
				})
			}
			calling.Wait()
			if o.most["/tmp/a"] != 1 || o.most["/tmp/b"] != 1 || len(o.order["/tmp/a"]) != 10 {
				t.Errorf("so many writes overlapped: %v, of %v", o.most, o.order)
			}
			for range 20 {
				w := wireHTTP(t, hub.url+"/mcp", version).open()
				calling.Go(func() { w.result("mcp.far.read_file", `{"path":"/tmp/a"}`, "") })
			}
			calling.Wait()
			select {
			case <-o.all:
			default:
				t.Error("20 reads did not run at the same time")
			}
			if journal := readJournal(t, hub.cmd.Dir); !strings.Contains(journal, `"locks":[{"resource":"path:/tmp/a","mode":"exclusive"}]`) ||
				!strings.Contains(journal, `{"concurrency":"safe","because":"declared"}`) {
				t.Error("the records do not say which rule applied")
			}
		})
	}
}

// TestRatesThroughTheHub: what is bounded for each actor, tool or server is counted for each. A call too many does not reach its server, and
// answer and record say when to call again.
func TestRatesThroughTheHub(t *testing.T) {
	t.Parallel()
	far, servers := map[string]*upstreamtest.Handler{}, map[string]any{}
	ran, came := 0, 0
	for _, id := range []string{"far", "other"} {
		script := upstreamtest.Script{Results: map[string]json.RawMessage{}}
		for _, name := range []string{"by_actor", "by_tool", "by_tool_too", "by_server", "by_server_too"} {
			script.Tools, script.Results[name] = append(script.Tools, upstreamtest.Tool(name)), json.RawMessage(`{"content":[]}`)
		}
		url, handler := fakeHandler(t, upstreamtest.Options{Script: script})
		far[id], servers[id] = handler, map[string]any{"type": "http", "url": url}
	}
	rate := func(match string, calls int, per string) map[string]any {
		return map[string]any{"match": match, "calls": calls, "every": "2h", "per": []any{per}}
	}
	hub := newVault(t, servers, map[string]any{"policy": map[string]any{"mode": "accept_all", "rates": []any{
		rate("mcp.*.by_actor", 2, "actor"), rate("mcp.*.by_tool*", 1, "tool"), rate("mcp.*.by_server*", 1, "server")}}})
	people := map[string]*wire{}
	for name, token := range map[string]string{"ann": annToken, "bob": bobToken} {
		people[name] = hub.person(t, rev2025, token)
		people[name].awaitTools("mcp.far.by_tool", "mcp.other.by_tool")
	}
	for n, c := range []struct {
		who, tool string
		within    time.Duration // from which call on it may come again; 0: it runs
	}{
		{"ann", "far.by_actor", 0}, {"ann", "far.by_actor", 0}, {"ann", "far.by_actor", time.Hour}, {"ann", "other.by_actor", time.Hour}, {"bob", "far.by_actor", 0},
		{"ann", "far.by_tool", 0}, {"bob", "far.by_tool", 2 * time.Hour}, {"bob", "far.by_tool_too", 0}, {"bob", "other.by_tool", 0},
		{"ann", "far.by_server", 0}, {"bob", "far.by_server_too", 2 * time.Hour}, {"bob", "other.by_server_too", 0},
	} {
		var got struct {
			Meta struct {
				Invocation struct {
					ID    string `json:"invocation_id"`
					Class string `json:"error_class"`
					Retry int64  `json:"retry_after_ms"`
				} `json:"toolhub/invocation"`
			} `json:"_meta"`
		}
		mustDecode(t, people[c.who].result("mcp."+c.tool, `{}`, ""), &got)
		is := got.Meta.Invocation
		if c.within == 0 {
			if ran++; is.Class != "" {
				t.Errorf("call %d, %s of %s: %+v", n, c.tool, c.who, is)
			}
			continue
		}
		// It is less by what the calls before it took.
		if wait := time.Duration(is.Retry) * time.Millisecond; is.Class != "rate_limited" || wait > c.within || wait < c.within-30*time.Minute {
			t.Errorf("call %d, %s of %s: %+v", n, c.tool, c.who, is)
		}
		recorded := regexp.MustCompile(`"invocation_id":"` + is.ID + `".*"error_class":"rate_limited".*"retry_after_ms":` + fmt.Sprint(is.Retry))
		if !recorded.MatchString(readJournal(t, hub.dir)) {
			t.Errorf("the record of call %d does not say when to call again", n)
		}
	}
	for _, server := range far {
		for _, r := range server.Requests() {
			if strings.Contains(string(r.Body), `"method":"tools/call"`) {
				came++
			}
		}
	}
	if came != ran {
		t.Errorf("%d calls came to the servers, not %d", came, ran)
	}
}
