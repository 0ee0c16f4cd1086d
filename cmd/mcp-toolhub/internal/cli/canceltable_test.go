//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// cancelHub is a hub with a server of each kind, and its one client.
type cancelHub struct {
	*canceling
	dir     string
	probe   *probe
	hooks   chan *hookMoment
	servers map[string]*heldServer
	calls   int

	read  int        // bytes of the journal
	lines []callLine // of the journal
}

// heldServer is a server whose next start can be held up.
type heldServer struct {
	file     string // stdio: it does not start while there is this one
	handler  *upstreamtest.Handler
	told     int // calls that have heard of a cancellation, so far
	mu       sync.Mutex
	held     chan struct{} // nil: it is not held up
	arrived  chan struct{} // holds one token for each start that is held up
	beginsBy string        // a request that holds this, or "GET", starts it
}

// hookMoment is a hook that runs, until it is released or its caller has gone.
type hookMoment struct {
	tool    string
	release chan struct{}
	gone    <-chan struct{}
}

// callLine is a line of the journal, as far as the test looks at it.
type callLine struct {
	Object  string
	ID      string `json:"invocation_id"`
	Tool    string `json:"tool_id"`
	Status  string
	EndedUS *int64 `json:"ended_us"`
	Steps   []json.RawMessage
}

func startCancelHub(t *testing.T, version, door string) *cancelHub {
	h := &cancelHub{dir: t.TempDir(), hooks: make(chan *hookMoment, 10), servers: map[string]*heldServer{}}
	h.canceling = &canceling{t: t, state: filepath.Join(h.dir, "state")}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call hookCall
		body, _ := io.ReadAll(r.Body)
		mustDecode(t, string(body), &call)
		m := &hookMoment{call.Tool, make(chan struct{}), r.Context().Done()}
		h.hooks <- m
		select {
		case <-m.release:
		case <-m.gone:
		}
	}))
	t.Cleanup(endpoint.Close)
	entries, tools := map[string]any{}, []string{}
	for _, name := range append(cancelKinds(), "stdio2025own", "sseown") {
		kind, own := strings.CutSuffix(name, "own")
		if own && version == rev2026 {
			continue // its clients are not asked while a call runs
		}
		s := &heldServer{file: filepath.Join(h.dir, name), arrived: make(chan struct{}, 10), beginsBy: `"initialize"`}
		script := upstreamtest.Script{Modern: strings.HasSuffix(name, "2026")}
		for _, tool := range []string{"pre", "post", "asked", "plain", "hang", "ask", "rounds", "calls", "die"} {
			script.Tools = append(script.Tools, upstreamtest.Tool(tool))
		}
		entry := map[string]any{}
		if strings.HasPrefix(name, "stdio") {
			script.Held = s.file
			entry = child(script)
		} else {
			entry["url"], s.handler = fakeHandler(t, upstreamtest.Options{Script: script, SSE: kind == "sse", Intercept: s.intercept})
		}
		if own { // only then may it ask
			entry["isolation"] = "session"
		}
		if kind == "sse" {
			entry["type"], s.beginsBy = "sse", http.MethodGet
		}
		entries[name], h.servers[name] = entry, s
		tools = append(tools, "mcp."+name+".plain")
	}
	hook := func(event, tool string) map[string]any {
		return map[string]any{"event": event, "match": "mcp.*." + tool, "url": endpoint.URL, "timeout": "60s"}
	}
	config := configText(t, entries, map[string]any{
		"hub":   map[string]any{"http": map[string]any{"drain_timeout": "100ms"}},
		"hooks": []any{hook("pre_tool_use", "pre"), hook("post_tool_use", "post")},
		"policy": map[string]any{"mode": "default", "tools": []any{map[string]any{"match": "mcp.*", "concurrency": "exclusive"}}, "rules": []any{map[string]any{"match": "mcp.*.asked", "then": "ask"}, map[string]any{"match": "*", "then": "allow"}},
			"ask": map[string]any{"channels": []string{"client", "queue"}}}})
	var variable string
	h.probe, variable = newProbe(t)
	if door == "http" {
		h.hub = startHubIn(t, []string{variable}, "hub.json", config, "--state-dir", h.state)
		h.w = wireHTTP(t, h.hub.url+"/mcp", version)
	} else {
		file := filepath.Join(h.dir, "hub.json")
		writeFile(t, file, config)
		program, err := exec.LookPath("mcp-toolhub")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "serve", "--config", file, "--log-format", "json", "--state-dir", h.state)
		cmd.Dir, cmd.Env = h.dir, append(scratchEnv(h.dir), variable)
		h.w = wireProcess(t, cmd, version)
	}
	t.Cleanup(func() { checkRecordsBeneath(t, h.dir) })
	h.w.able().open().awaitTools(tools...)
	return h
}

// arrives waits for what comes from a channel, or for its end.
func arrives[T any](t testing.TB, what string, from <-chan T) (one T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case one = <-from:
	case <-timer.C:
		t.Fatalf("%s: not within %s", what, patience)
	}
	return one
}

// intercept holds a start up.
func (s *heldServer) intercept(_ http.ResponseWriter, r *http.Request, body []byte) bool {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held == nil || r.Method != s.beginsBy && !bytes.Contains(body, []byte(s.beginsBy)) {
		return false
	}
	s.arrived <- struct{}{}
	select {
	case <-held:
	case <-r.Context().Done():
	}
	return false
}

// heard holds that n calls more at the server have heard of a cancellation, that none of them goes on, and that a call runs there.
func (h *cancelHub) heard(server string, n int, name string) {
	h.t.Helper()
	s := h.servers[server]
	s.told += n
	var now struct {
		StructuredContent struct{ Open, Canceled, Closed int }
	}
	eventually(h.t, name+": nothing is left at the server", func() bool {
		result := h.w.result("mcp."+server+".calls", "{}", "")
		mustDecode(h.t, result, &now)
		told := now.StructuredContent.Canceled
		if server == "http2026" {
			told = now.StructuredContent.Closed
		}
		if told > s.told {
			h.t.Fatalf("%s: the server has heard of %d cancellations, want %d", name, told, s.told)
		}
		return told == s.told && now.StructuredContent.Open == 0 && strings.Contains(result, "structuredContent")
	})
}

// look reads what is new in the journal.
func (h *cancelHub) look() {
	h.t.Helper()
	files, _ := filepath.Glob(filepath.Join(h.state, "journal", "*.jsonl"))
	if len(files) != 1 {
		h.t.Fatalf("the journal has the files %v", files)
	}
	f, err := os.Open(files[0])
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, int64(h.read), 1<<30))
	if err != nil {
		h.t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // what follows is being written
	h.read += len(text)
	for line := range bytes.Lines(text) {
		var l callLine
		mustDecode(h.t, string(line), &l)
		if l.Object == string(persist.ObjectCall) {
			h.lines = append(h.lines, l)
		}
	}
}

// ended waits for the end of a call of the tool whose lines come after the first seen lines of the journal.
func (h *cancelHub) ended(tool string, seen int) (end callLine) {
	h.t.Helper()
	ends := 0
	eventually(h.t, "the call of "+tool+" has ended", func() bool {
		h.look()
		ends = 0
		for _, line := range h.lines[seen:] {
			if line.Tool == tool && line.EndedUS != nil {
				ends++
				end = line
			}
		}
		return ends > 0
	})
	if ends != 1 {
		h.t.Errorf("%s has %d terminal records", tool, ends)
	}
	return end
}

// last is the end of the last call of a tool.
func (h *cancelHub) last(tool string) (end callLine) {
	for _, line := range h.lines {
		if line.Tool == tool && line.EndedUS != nil {
			end = line
		}
	}
	return end
}

// facts returns what a call record says of a cancellation.
func (l callLine) facts(t testing.TB) canceled {
	t.Helper()
	got := canceled{status: l.Status}
	requests := 0
	for _, step := range l.Steps {
		var all []json.RawMessage
		mustDecode(t, string(step), &all)
		if string(all[0]) != `"cancel"` {
			continue
		}
		var facts struct {
			By      string `json:"requested_by"`
			At      string `json:"requested_at"`
			Reason  string
			Outcome string
		}
		mustDecode(t, string(all[2]), &facts)
		if requests++; requests > 1 || facts.At == "" {
			t.Errorf("%s has %d requests, the last one %s", l.ID, requests, step)
		}
		got = canceled{l.Status, facts.By, facts.Reason, facts.Outcome}
	}
	return got
}

// nothingRuns holds that no goroutine of the hub has to do with a call any more.
func (h *cancelHub) nothingRuns() {
	h.t.Helper()
	h.look()
	ended := map[string]bool{}
	for _, line := range h.lines {
		ended[line.ID] = ended[line.ID] || line.EndedUS != nil
	}
	for id, over := range ended {
		if !over {
			h.t.Errorf("%s has no terminal record", id)
		}
	}
	eventually(h.t, "no goroutine serves a call", func() bool {
		for _, part := range []string{"internal/invoke.(*Pipeline)", "internal/invoke.(*approver)", "internal/batch.", "upstream.(*executor)",
			"upstream.withdrawal", "policy/hook."} {
			if h.goroutines(part) > 0 {
				return false
			}
		}
		return true
	})
}

// goroutines counts those of the hub whose stacks hold the text.
func (h *cancelHub) goroutines(text string) (n int) {
	for group := range strings.SplitSeq(h.probe.get(h.t, "profile/goroutine"), "\n\n") {
		if _, after, ok := strings.Cut(group, "goroutine profile:"); ok {
			_, group, _ = strings.Cut(after, "\n")
		}
		if strings.Contains(group, text) {
			count, _, _ := strings.Cut(group, " @")
			of, _ := strconv.Atoi(count)
			n += of
		}
	}
	return n
}
