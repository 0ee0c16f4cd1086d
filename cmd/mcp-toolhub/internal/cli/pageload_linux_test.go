//go:build e2e

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// What a page may take: the time to its first byte, its size, and the hub's processor time.
const (
	pageWithin = 100 * time.Millisecond
	pageBytes  = 150 << 10
	pageCPU    = 20 * time.Millisecond
)

// pageMillion names the environment variable with which TestPageIsQuick has 10,000 tools, 1,000,000 calls and 100 approvals, and measures.
const pageMillion = "TOOLHUB_MILLION"

// TestPageIsQuick: no page is larger than 150 KiB. With 10,000 tools, 1,000,000 calls and 100 approvals, none takes more than 100 ms until its first byte, or 20 ms of
// the hub's processor time; of each the median of nine.
func TestPageIsQuick(t *testing.T) {
	measure := os.Getenv(pageMillion) != ""
	tools, calls, asks := 600, 2_000, 30
	if measure {
		tools, calls, asks = 10_000, 1_000_000, 100
	} else {
		t.Parallel()
	}
	p := &permitted{t: t, dir: t.TempDir(), far: make(map[string]any)}
	p.state, p.file = filepath.Join(p.dir, "state"), filepath.Join(p.dir, "hub.json")
	for server := range 10 {
		var all []json.RawMessage
		for n := range tools / 10 {
			all = append(all, json.RawMessage(fmt.Sprintf(`{"name":"tool%d","description":"%s","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`,
				n, strings.Repeat("does something ", 20))))
		}
		far := fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: all}, JSON: true})
		p.far[fmt.Sprintf("s%d", server)] = map[string]any{"type": "http", "url": far}
	}
	last := writeCalls(t, filepath.Join(p.state, "journal"), calls)
	p.write(map[string]any{}, nil)
	h, err := launch(p.dir, scratchEnv(p.dir), "--config", p.file, "--state-dir", p.state)
	if err != nil {
		t.Fatal(err)
	}
	p.runningHub = h
	t.Cleanup(func() { _ = h.stop() })
	r := openPage(t, p.hub())
	for deadline := time.Now().Add(30 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, text := r.get("/ui/calls"); strings.Contains(text, last) {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the store is not filled")
		}
	}
	w := p.client(rev2025).open()
	var asking sync.WaitGroup
	for n := range asks {
		asking.Go(func() {
			w.waits(rawRequest{id: fmt.Sprintf(`"a%d"`, n), method: "tools/call", name: "mcp.s0.tool0",
				params: fmt.Sprintf(`{"name":"mcp.s0.tool0","arguments":{"n":%d},"_meta":{"progressToken":%d}}`, n, n)})
		})
	}
	asking.Wait()
	eventually(t, "the calls wait", func() bool { return len(matchedAll(r, "/ui/approvals")) > 0 })
	for _, path := range []string{"/ui/", "/ui/servers", "/ui/servers/s3", "/ui/tools", "/ui/tools?page=3", "/ui/tools?server=s3", "/ui/tools?q=something", "/ui/tool?name=mcp.s3.tool7", "/ui/approvals",
		"/ui/calls", "/ui/calls?status=failed", "/ui/calls?text=word7", "/ui/calls?tool=mcp.s1.*", "/ui/secrets", "/ui/policy", "/ui/explain?tool=mcp.s3.tool7&as=local&door=http"} {
		var times, spent []time.Duration
		size := 0
		for range 9 {
			before := processorTime(t, h.cmd.Process.Pid)
			var took time.Duration
			took, size = r.timed(path)
			times, spent = append(times, took), append(spent, processorTime(t, h.cmd.Process.Pid)-before)
		}
		slices.Sort(times)
		slices.Sort(spent)
		t.Logf("%-50s first byte after %5.1f ms (at most %.1f), %3d KiB, processor %s", path, inMilliseconds(times[4]), inMilliseconds(times[8]), size>>10, spent[4])
		if size > pageBytes {
			t.Errorf("%s has %d bytes", path, size)
		}
		if measure && (times[4] > pageWithin || spent[4] > pageCPU) {
			t.Errorf("%s takes too long", path)
		}
	}
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// matchedAll are the approvals that a page lists.
func matchedAll(r *pageClient, path string) []string {
	_, text := r.get(path)
	return strings.SplitAfter(text, `href="/ui/approvals/`)[1:]
}

// timed gets a page, and returns the time until its first byte, and its size.
func (r *pageClient) timed(path string) (took time.Duration, size int) {
	r.t.Helper()
	began := time.Now()
	trace := httptrace.WithClientTrace(r.t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { took = time.Since(began) }})
	req, err := http.NewRequestWithContext(trace, http.MethodGet, r.base+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	size, err = bufio.NewReader(resp.Body).Discard(1 << 30)
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
	}
	return took, size
}

// processorTime is what a process has used so far.
func processorTime(t *testing.T, pid int) (total time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	for _, file := range threads {
		text, _ := os.ReadFile(file) // a thread may have ended
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

// writeCalls writes a journal of so many calls, one a second until now, and returns the id of the last one.
func writeCalls(t *testing.T, dir string, calls int) (last string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "journal-20260101T000000.000Z-000001.jsonl"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	began := time.Now().Add(-time.Duration(calls) * time.Second)
	for i := range calls {
		last = string(tool.NewInvocationID())
		status := "succeeded"
		if i%20 == 7 {
			status = "failed"
		}
		fmt.Fprintf(out, `{"object":"call_record","version":1,"invocation_id":%q,"status":%q,"tool_id":"mcp.s%d.tool%d","actor_ref":"actor:user%d",`+
			`"client":{"name":"client%d"},"profile":"default","created_at":%q,"ended_us":%d,"model_input":{"query":"word%d word%d"},`+
			`"steps":[["planned",0],["selected",6],["running",24],["answered",1460],[%q,1466]],"result":{"content":[{"type":"text","text":"word%d"}]}}`+"\n",
			last, status, i%10, i/10%7*(i%3), i%50, i%7, began.Add(time.Duration(i)*time.Second).UTC().Format(time.RFC3339Nano), 1000+i%5000,
			i%100, i%5000, status, i%1000)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return last
}
