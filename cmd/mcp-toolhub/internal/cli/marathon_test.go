//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// How often clients come and go, and servers crash and recover. `.ci/long` sets TOOLHUB_LONG and has the whole of it.
var (
	visits  = sampleOf(120, 10_000)
	crashes = sampleOf(30, 1000)
)

// sampleOf returns how much of a proof runs: a sample, or the whole where TOOLHUB_LONG is set.
func sampleOf(sample, whole int) int {
	if os.Getenv("TOOLHUB_LONG") != "" {
		return whole
	}
	return sample
}

// What a hub may hold more after a marathon: much less than one thing of each round's.
const (
	slackGoroutines  = 6
	slackDescriptors = 4
	slackHeap        = 256 << 10
)

// marathonHub is a hub of these servers with a probe. Failed servers are tried again soon and without end.
func marathonHub(t *testing.T, servers map[string]any) (*runningHub, *probe) {
	t.Helper()
	p, variable := newProbe(t)
	hub := startHubIn(t, []string{variable}, "hub.json", configText(t, servers, map[string]any{
		"tuning":  tuning{RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond, RetryBudget: 100_000, SessionIdle: 3 * time.Second, JournalFiles: 3},
		"persist": map[string]any{"journal": map[string]any{"max_bytes": "1MiB"}},
	}))
	p.pid = hub.cmd.Process.Pid
	return hub, p
}

// awaitRecords waits until a hub has its record store open, which it opens a while after its first call.
func awaitRecords(t *testing.T, hub *runningHub) {
	t.Helper()
	eventually(t, "the record store is there", func() bool {
		_, err := os.Stat(filepath.Join(hub.cmd.Dir, "state", "mcp-toolhub", store.FileName))
		return err == nil
	})
}

// checkLeaks compares what the hub holds with what it held before.
func checkLeaks(t *testing.T, p *probe, before holdings) {
	t.Helper()
	grown := func(now holdings) bool {
		return now.Goroutines > before.Goroutines+slackGoroutines || now.Descriptors > before.Descriptors+slackDescriptors ||
			now.Children > before.Children || now.Heap > before.Heap+slackHeap
	}
	now := p.settled(t)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for deadline := time.Now().Add(patience); grown(now) && time.Now().Before(deadline); <-again.C {
		now = p.settled(t)
	}
	t.Logf("before: %s", before)
	t.Logf("after:  %s", now)
	if grown(now) {
		t.Errorf("the hub holds %s, and before it held %s\nchildren:\n%s\n%s\n%.20000s", now, before,
			strings.Join(childrenOf(p.pid), "\n"), p.get(t, "profile/goroutine"), p.get(t, "profile/heap"))
	}
}

// TestMarathonOfClients: clients that come and go, politely or not, leave nothing behind.
func TestMarathonOfClients(t *testing.T) { // not parallel: it keeps the machine busy
	if testing.Short() {
		t.Skip("-short: runs hundreds of clients")
	}
	hub, p := marathonHub(t, map[string]any{
		"up":  child(upstreamtest.Script{}),
		"new": child(upstreamtest.Script{Modern: true}),
		"web": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{})},
	})
	const runners = 4
	run := func(rounds int) {
		var next atomic.Int64
		var running sync.WaitGroup
		for range runners {
			running.Go(func() {
				for i := int(next.Add(1)) - 1; i < rounds; i = int(next.Add(1)) - 1 {
					if err := visit(t.Context(), hub.url+"/mcp", i); err != nil {
						t.Errorf("round %d, a client that %s: %v", i, visitors[i%len(visitors)].name, err)
						return
					}
				}
			})
		}
		running.Wait()
		eventually(t, "the sessions that clients have left are over", func() bool {
			health, _ := hub.health(t)
			return health.Sessions == 0
		})
		for _, id := range []string{"up", "new", "web"} {
			eventually(t, "no call is left at "+id, func() bool { st := hub.server(t, id); return st.InFlight+st.Queued == 0 })
		}
		http.DefaultClient.CloseIdleConnections() // the test's own
	}
	run(visits) // caches and pools fill, and tables grow to as many sessions as are open at a time
	awaitRecords(t, hub)
	before := p.settled(t)
	run(visits)
	checkLeaks(t, p, before)
}

// TestMarathonOfCrashes: servers that crash and recover leave nothing behind.
func TestMarathonOfCrashes(t *testing.T) { // not parallel: it keeps the machine busy
	if testing.Short() {
		t.Skip("-short: lets servers crash again and again")
	}
	mark := newMark(t)
	all := crashers(t, mark)
	entries := map[string]any{}
	for i := range all {
		entries[all[i].id] = all[i].entry
	}
	hub, p := marathonHub(t, entries)
	run := func(rounds int) {
		var left atomic.Int64
		left.Store(int64(rounds))
		var running sync.WaitGroup
		for _, c := range all {
			running.Go(func() {
				for left.Add(-1) >= 0 {
					if err := c.round(hub); err != nil {
						t.Errorf("server %s: %v", c.id, err)
						return
					}
				}
			})
		}
		running.Wait()
		for _, c := range all {
			eventually(t, c.id+" is ready", func() bool { return hub.server(t, c.id).State == tool.ServerReady })
		}
	}
	run(crashes) // caches and pools fill
	awaitRecords(t, hub)
	before, processes := p.settled(t), len(marked(mark))
	run(crashes)
	checkLeaks(t, p, before)
	if now := len(marked(mark)); now > processes {
		t.Errorf("there are %d processes of the servers, and there were %d", now, processes)
	}
	restarts := 0
	for _, c := range all {
		restarts += hub.server(t, c.id).Restarts
	}
	t.Logf("%d restarts", restarts)
	if restarts < crashes {
		t.Errorf("in %d rounds there were %d restarts: the servers have not crashed", crashes, restarts)
	}
}

// visitors are the kinds of clients. Each has listed and called before it leaves.
var visitors = []struct {
	name    string
	version string
	leave   func(ctx context.Context, v *visitor) error
}{
	{"ends its session", rev2025, func(ctx context.Context, v *visitor) error { return v.send(ctx, http.MethodDelete, rawRequest{}) }},
	{"forgets its session", rev2025, func(context.Context, *visitor) error { return nil }},
	{"leaves its standing stream", rev2025, func(ctx context.Context, v *visitor) error { return v.cutOff(ctx, http.MethodGet, rawRequest{}) }},
	{"leaves in the midst of a call", rev2025, func(ctx context.Context, v *visitor) error {
		return v.cutOff(ctx, http.MethodPost, v.w.call("mcp.up.progress", `{"n":3}`, `"progressToken":1`))
	}},
	{"needs no session", rev2026, func(context.Context, *visitor) error { return nil }},
	{"leaves its subscription", rev2026, func(ctx context.Context, v *visitor) error {
		return v.cutOff(ctx, http.MethodPost, rawRequest{id: v.w.nextID(), method: "subscriptions/listen",
			params: v.w.params(`"notifications":{"toolsListChanged":true}`, "")})
	}},
	{"leaves in the midst of a call without a session", rev2026, func(ctx context.Context, v *visitor) error {
		return v.cutOff(ctx, http.MethodPost, v.w.call("mcp.web.hang", `{}`, ""))
	}},
}

// visitor is a client with a connection of its own. wire makes its messages.
type visitor struct {
	w      *wire
	client *http.Client
}

// visit is the i-th round: connect, list, call, disconnect.
func visit(ctx context.Context, url string, i int) error {
	kind := visitors[i%len(visitors)]
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	v := &visitor{w: &wire{version: kind.version, url: url}, client: &http.Client{Transport: transport}}
	if !v.w.modern() {
		if err := v.send(ctx, http.MethodPost, v.w.initialize("visitor"), `"serverInfo"`); err != nil {
			return err
		}
		if err := v.send(ctx, http.MethodPost, initialized); err != nil {
			return err
		}
	}
	list := rawRequest{id: v.w.nextID(), method: "tools/list", params: v.w.params("", "")}
	if err := v.send(ctx, http.MethodPost, list, `"mcp.up.echo"`, `"mcp.web.echo"`); err != nil {
		return err
	}
	name := []string{"mcp.up.echo", "mcp.new.echo", "mcp.web.echo"}[i%3]
	if err := v.send(ctx, http.MethodPost, v.w.call(name, fmt.Sprintf(`{"round":%d}`, i), ""), fmt.Sprintf(`"arguments":{"round":%d}`, i)); err != nil {
		return err
	}
	return kind.leave(ctx, v)
}

// request is wire's, for a visitor.
func (v *visitor) request(ctx context.Context, method string, r rawRequest) (*http.Request, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(r.text())
	}
	req, err := http.NewRequestWithContext(ctx, method, v.w.url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if v.w.modern() {
		req.Header.Set("Mcp-Method", r.method)
		if r.name != "" {
			req.Header.Set("Mcp-Name", r.name)
		}
	}
	v.w.setHeaders(req)
	return req, nil
}

// send sends a request and wants these texts in the answer.
func (v *visitor) send(ctx context.Context, method string, r rawRequest, want ...string) error {
	req, err := v.request(ctx, method, r)
	if err != nil {
		return err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: status %s: %.500s", method, r.method, resp.Status, body)
	}
	for _, text := range want {
		if !bytes.Contains(body, []byte(text)) {
			return fmt.Errorf("%s was answered with %.500s, want %s", r.method, body, text)
		}
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		v.w.session = id
	}
	return nil
}

// cutOff sends a request and breaks the connection: once something of the answer has come, or after a moment in which
// nothing does.
func (v *visitor) cutOff(ctx context.Context, method string, r rawRequest) error {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	req, err := v.request(ctx, method, r)
	if err != nil {
		return err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: status %s", method, r.method, resp.Status)
	}
	_, _ = bufio.NewReader(resp.Body).ReadByte()
	return nil
}
