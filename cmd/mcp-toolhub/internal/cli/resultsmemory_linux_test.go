//go:build e2e && !race

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// mostResultMemory bounds what the hub may take for 20 results at a time, in MB.
const mostResultMemory = 300

// largest is the size of the largest results: with the rest of its message such a one has 64 MiB.
const largest = 64<<20 - 1<<10

// TestMemoryOfLargeResults has 20 callers at a time get the same large results, and holds what the hub takes for that, also right
// after its start. Every call succeeds. TOOLHUB_LONG=1 takes results of every kind and size, from servers and to clients of every kind.
func TestMemoryOfLargeResults(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: makes large results")
	}
	t.Parallel() // the hub is a process of its own
	if os.Getenv("TOOLHUB_LONG") == "" {
		largeResults{kind: "json", size: 1_000_000, server: "chunked", rounds: 3, cut: true}.run(t)
		// Twenty of these are more than the hub may take, too.
		largeResults{kind: "resource", size: 20_000_000, server: "chunked", cut: true}.run(t)
		largeResults{kind: "structured", size: 7_000_000, server: "stdio", stdio: true}.run(t) // longer lines are previewed
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(resultsOfEveryKind(1))) {
		for _, size := range []int{100_000, 1_000_000, 8 << 20, 20_000_000, largest} {
			largeResults{kind: kind, size: size, server: "chunked", cut: true}.run(t)
		}
	}
	for _, server := range []string{"chunked", "sized", "events", "stdio"} {
		for _, stdio := range []bool{true, false} {
			largeResults{kind: "structured", size: map[bool]int{true: 7_000_000, false: largest}[stdio], server: server, stdio: stdio}.run(t)
			largeResults{kind: "text", size: largest, server: server, stdio: stdio, cut: true}.run(t)
		}
	}
}

// largeResults are calls of a tool that has a large result.
type largeResults struct {
	kind   string // of resultsOfEveryKind
	size   int    // about
	server string // how the server sends it: "stdio", and over HTTP "events", "chunked" JSON or "sized" JSON
	stdio  bool   // one client over stdio calls, else as many over HTTP
	cut    bool   // the clients have a limit: results are previewed and stored
	rounds int    // of calls of each client; 0: one
}

func (l largeResults) run(t *testing.T) {
	t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
		const callers = 20
		want := resultOf(l.kind, l.size)
		settings := map[string]any{}
		if l.cut {
			settings["results"] = map[string]any{"max_inline_tokens": 1000}
		}
		config := configText(t, map[string]any{"far": l.entry(t, want)}, settings)
		var calling sync.WaitGroup
		var pid int
		if l.stdio {
			w := wireHub(t, config, rev2025).open()
			pid = w.cmd.Process.Pid
			w.send(w.call("mcp.far.other", "{}", "")) // it is there
			for range callers * max(l.rounds, 1) {
				w.write(w.call("mcp.far."+l.kind, "{}", "").text())
			}
			for answers := 0; answers < callers*max(l.rounds, 1); {
				if line := w.next(); strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`) {
					l.check(t, strings.NewReader(line), want)
					answers++
				}
			}
		} else {
			hub := startHub(t, "hub.json", config)
			pid = hub.cmd.Process.Pid
			for range callers {
				w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
				calling.Go(func() {
					for range max(l.rounds, 1) {
						resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.far."+l.kind, "{}", "")))
						if err != nil {
							t.Error(err)
							return
						}
						l.check(t, resp.Body, want)
						_ = resp.Body.Close()
					}
				})
			}
		}
		calling.Wait()
		peak, _ := memoryOf(pid, "VmHWM")
		t.Logf("%d bytes each: the hub took %.0f MB at most", len(want), peak)
		if peak > mostResultMemory {
			t.Errorf("the hub took %.0f MB", peak)
		}
	})
}

// TestMemoryOfLargeOutputs has 20 callers at a time run commands that print 3 MB, and holds what the hub takes for that. All of each
// output is stored, and none stays open.
func TestMemoryOfLargeOutputs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: commands print a lot")
	}
	t.Parallel() // the hub is a process of its own
	hub := startHubIn(t, tokensOfTwo, "hub.json", commandHub(""))
	printed := sampleOf(500_000, 600_000) // lines: as much as is kept of an output
	want := lines(printed)
	digest := tool.Digest([]byte(want))
	var calling, running sync.WaitGroup
	readers := sampleOf(4, 20)
	running.Add(20)
	for i := range 20 {
		version := []string{rev2025, rev2026}[i%2]
		w := wireHTTP(t, hub.url+"/mcp", version, headerOf("ann")...).open()
		calling.Go(func() {
			links, _ := linksOf(t, last(w.send(w.call("code.run_command", fmt.Sprintf(`{"argv":["seq","1","%d"]}`, printed), ""))))
			running.Done()
			running.Wait() // reading is a matter of its own
			if len(links) != 1 || links[0].Size != len(want) || links[0].Meta["toolhub/sha256"] != digest {
				t.Errorf("%+v", links)
				return
			}
			if i >= readers {
				return
			}
			r := w.readStored(links[0].URI)
			resp, err := http.DefaultClient.Do(w.newRequest(r))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(len(want)) {
				t.Errorf("%s brought %d bytes, %v", r.text(), n, err)
			}
			if got := w.result("result_read", `{"id":"`+strings.TrimPrefix(links[0].URI, "toolhub://results/")+fmt.Sprintf(`","lines":"%d-%d"}`, printed-1, printed), ""); !strings.Contains(got, fmt.Sprintf(`%d\n%d`, printed-1, printed)) {
				t.Errorf("result_read answers %s", got)
			}
		})
	}
	calling.Wait()
	peak, _ := memoryOf(hub.cmd.Process.Pid, "VmHWM")
	t.Logf("%d bytes each: the hub took %.0f MB at most", len(want), peak)
	if peak > mostResultMemory {
		t.Errorf("the hub took %.0f MB", peak)
	}
	open := fmt.Sprintf("/proc/%d/fd", hub.cmd.Process.Pid)
	files, err := os.ReadDir(open)
	for _, f := range files {
		if to, _ := os.Readlink(filepath.Join(open, f.Name())); strings.Contains(to, "/spool/") {
			t.Errorf("%s is still open", to)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// entry is the config entry of a server that has the result.
func (l largeResults) entry(t *testing.T, result string) map[string]any {
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool(l.kind), upstreamtest.Tool("other")}}
	if l.server == "stdio" {
		script.ResultsIn = t.TempDir()
		if err := os.WriteFile(filepath.Join(script.ResultsIn, l.kind), []byte(result), 0o600); err != nil {
			t.Fatal(err)
		}
		return child(script)
	}
	script.Results = map[string]json.RawMessage{l.kind: json.RawMessage(result)}
	options := upstreamtest.Options{Script: script, JSON: l.server != "events", Sized: l.server == "sized"}
	return map[string]any{"type": "http", "url": fakeHTTP(t, options)}
}

// check reads an answer, which has all of the result, or a link to it.
func (l largeResults) check(t *testing.T, answer io.Reader, want string) {
	in := bufio.NewReaderSize(answer, 16<<10)
	start, err := in.Peek(16 << 10)
	if l.cut {
		if !strings.Contains(string(start), "toolhub://results/") || err == nil {
			t.Errorf("no link to the result: %.500s", start)
		}
		return
	}
	first := want[:strings.Index(want, ":")] // of its members; after the last one the hub adds its own
	at := strings.Index(string(start), first)
	if at < 0 {
		t.Errorf("no result: %.500s", start)
		return
	}
	_, _ = in.Discard(at)
	want = want[:len(want)-len("}")]
	if l.kind == "meta" {
		want = want[:len(want)-len("}")] // which is where it adds it
	}
	got := make([]byte, 64<<10)
	for want != "" {
		n, err := io.ReadFull(in, got[:min(len(got), len(want))])
		if err != nil || string(got[:n]) != want[:n] {
			t.Errorf("with %d bytes to come the answer is another one: %v", len(want), err)
			return
		}
		want = want[n:]
	}
	_, _ = io.Copy(io.Discard, in)
}

// TestAServerThatStopsWithinLargeResultsIsGivenUp has a call of one server hold all memory for large messages, and others wait for
// it. Calls of another server succeed meanwhile.
func TestAServerThatStopsWithinLargeResultsIsGivenUp(t *testing.T) {
	t.Parallel()
	const callers, size, most = 2, 8 << 20, 11 << 20 // most is more than sockets take: the hub has read a large part
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("json")},
		Results: map[string]json.RawMessage{"json": json.RawMessage(resultOf("json", size))}}
	sent, end := make(chan error, callers), make(chan struct{})
	stops := func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"tools/call"`) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`+strings.Repeat("x", most))
		sent <- errors.Join(err, http.NewResponseController(w).Flush())
		<-end
		return true
	}
	servers := map[string]any{
		"stops": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script, Intercept: stops})},
		"fine":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script, JSON: true})},
	}
	hub := startHub(t, "hub.json", configText(t, servers, map[string]any{"hub": map[string]any{"limits": map[string]any{"memory": "16MiB"}}}))
	call := func(calling *sync.WaitGroup, name string, then func(answer string)) {
		for range callers {
			w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
			calling.Go(func() { then(last(w.send(w.call(name, "{}", "")))) })
		}
	}
	var stopped, calling sync.WaitGroup
	defer stopped.Wait()
	defer close(end)
	call(&stopped, "mcp.stops.json", func(string) {})
	if err := <-sent; err != nil { // the hub does not read on the others: they wait for room
		t.Fatal(err)
	}
	call(&calling, "mcp.fine.json", func(answer string) {
		if len(answer) < size*9/10 {
			t.Errorf("another server's call: %.500s", answer)
		}
	})
	calling.Wait()
}

// resultOf is a result of a kind, of at most size bytes and hardly less.
func resultOf(kind string, size int) string {
	const sample = 100_000 // what is quoted is longer than it was
	return resultsOfEveryKind(int(int64(size) * (sample - 500) / int64(len(resultsOfEveryKind(sample)[kind]))))[kind]
}

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

// TestASlowReaderHoldsUpNobody has clients not read large results of a server, one of which fills the memory for
// messages. Calls of others to the same server succeed meanwhile, and then the slow ones get what they have called for.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const size = 22_000_000
	l := largeResults{kind: "structured", size: size, server: "stdio"}
	want := resultOf(l.kind, size)
	config := configText(t, map[string]any{"far": l.entry(t, want)}, map[string]any{"hub": map[string]any{"limits": map[string]any{"memory": "32MiB"}}})
	hub := startHub(t, "hub.json", config)
	var slow []*http.Response
	for range 3 {
		w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
		resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.far.structured", "{}", "")))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		slow = append(slow, resp)
	}
	fast := wireHTTP(t, hub.url+"/mcp", rev2026).open()
	for range 2 {
		l.check(t, strings.NewReader(last(fast.send(fast.call("mcp.far.structured", "{}", "")))), want)
	}
	for _, resp := range slow {
		l.check(t, resp.Body, want)
	}
}
