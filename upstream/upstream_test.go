package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	run.Main()
	upstreamtest.Main()
	sdkMain()
	_ = flag.Set("test.parallel", strconv.Itoa(8*runtime.GOMAXPROCS(0))) // most tests wait; -parallel says otherwise
	before := runtime.NumGoroutine()
	code := m.Run()
	fuzzing := flag.Lookup("test.fuzz").Value.String() != "" // the fuzzing engine leaves goroutines of its own
	if code == 0 && !fuzzing && !settles(func() bool { return runtime.NumGoroutine() <= before }) {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines left after all tests:\n%s\n", buf[:runtime.Stack(buf, true)])
		code = 1
	}
	os.Exit(code)
}

// patience is how long a test waits for what must happen. It is long: the machine may be busy.
const patience = time.Minute

// settles polls until ok or the test's patience is at its end.
func settles(ok func() bool) bool { return settlesWithin(patience, ok) }

// settlesWithin polls until ok or for d.
func settlesWithin(d time.Duration, ok func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(d)
	for {
		if ok() {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !settles(ok) {
		t.Fatalf("did not happen: %s", what)
	}
}

// logBuffer is a log that tests can read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// harness is a started group.
type harness struct {
	*upstream.Group
	log *logBuffer
}

// start starts a group of servers and closes it at the end of the test.
func start(t testing.TB, servers ...upstream.ServerConfig) *harness {
	t.Helper()
	return startConfig(t, upstream.Config{Servers: servers})
}

func startConfig(t testing.TB, cfg upstream.Config) *harness {
	t.Helper()
	h := newHarness(t, cfg)
	h.Start(t.Context())
	return h
}

// newHarness makes a group that is not started yet, and closes it at the end of the test.
func newHarness(t testing.TB, cfg upstream.Config) *harness {
	t.Helper()
	h := &harness{log: &logBuffer{}}
	if cfg.RetryMin == 0 {
		cfg.RetryMin, cfg.RetryMax = 20*time.Millisecond, 200*time.Millisecond
	}
	cfg.Version = "9.9"
	var err error
	h.Group, err = upstream.NewGroup(cfg, slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", h.log)
		}
	})
	return h
}

// ready waits until the server id is ready.
func (h *harness) ready(t testing.TB, id string) tool.ServerStatus {
	t.Helper()
	return h.reaches(t, id, tool.ServerReady)
}

func (h *harness) reaches(t testing.TB, id string, state tool.ServerState) (st tool.ServerStatus) {
	t.Helper()
	if !settles(func() bool { st = h.status(id); return st.State == state }) {
		t.Fatalf("server %s: state %s (%s), want %s", id, st.State, st.LastError, state)
	}
	return st
}

func (h *harness) status(id string) tool.ServerStatus {
	for _, st := range h.Statuses() {
		if st.Server == id {
			return st
		}
	}
	return tool.ServerStatus{}
}

func (h *harness) catalog(id string) tool.Catalog {
	for _, c := range h.Catalogs() {
		if c.Server == id {
			return c
		}
	}
	return tool.Catalog{}
}

func (h *harness) names(id string) string {
	var names []string
	for _, tl := range h.catalog(id).Tools {
		names = append(names, tl.Native)
	}
	return strings.Join(names, " ")
}

// execution is a call of one tool.
func execution(server, native, arguments string) *tool.Execution {
	return &tool.Execution{
		Tool:      &tool.Tool{Name: tool.MCPName(server, native), Server: server, Native: native},
		Params:    json.RawMessage(`{"name":"x","arguments":{}}`),
		Arguments: json.RawMessage(arguments),
		Progress:  func(tool.Progress) {},
	}
}

func (h *harness) call(ctx context.Context, server, native, arguments string) (tool.Reply, error) {
	return h.Execute(ctx, execution(server, native, arguments))
}

// mustCall calls a tool that has to answer.
func (h *harness) mustCall(t testing.TB, server, native, arguments string) json.RawMessage {
	t.Helper()
	reply, err := h.call(t.Context(), server, native, arguments)
	if err != nil {
		t.Fatalf("call %s of %s: %v", native, server, err)
	}
	return reply.Result
}

// calls is how to call a tool of one server.
type calls func(ctx context.Context, native, arguments string) (tool.Reply, error)

// of is how to call the tools of server.
func (h *harness) of(server string) calls {
	return func(ctx context.Context, native, arguments string) (tool.Reply, error) {
		return h.call(ctx, server, native, arguments)
	}
}

// count is how many calls of a tool the server has got.
func (c calls) count(t testing.TB, native string) int {
	t.Helper()
	reply, err := c(t.Context(), "arrived", fmt.Sprintf(`{"tool":%q}`, native))
	if err != nil {
		t.Fatalf("call arrived: %v", err)
	}
	content, _ := rawjson.Get(reply.Result, "structuredContent")
	raw, _ := rawjson.Get(content, "n")
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatalf("result %s: %v", reply.Result, err)
	}
	return n
}

// reach waits until the server has got n calls of a tool. That the hub counts a call as in flight does not say so yet.
func (c calls) reach(t testing.TB, native string, n int) {
	t.Helper()
	eventually(t, "the server has got the call of "+native, func() bool { return c.count(t, native) >= n })
}

// failure is err as a *tool.Failure.
func failure(t testing.TB, err error) *tool.Failure {
	t.Helper()
	var f *tool.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T), want a *tool.Failure", err, err)
	}
	if strings.TrimSpace(f.Message) == "" {
		t.Error("the failure has no message")
	}
	return f
}

// stdio is a server that is a child obeying s.
func stdio(id string, s upstreamtest.Script) upstream.ServerConfig {
	command, args, env := upstreamtest.Command(s)
	return upstream.ServerConfig{ID: id, Transport: upstream.Stdio, Command: command, Args: args, Env: env}
}

// overHTTP is a server that is a handler in this process.
func overHTTP(t testing.TB, id string, o upstreamtest.Options) (upstream.ServerConfig, *upstreamtest.Handler) {
	t.Helper()
	h := upstreamtest.NewHandler(o)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	cfg := upstream.ServerConfig{ID: id, Transport: upstream.StreamableHTTP, URL: srv.URL + "/mcp"}
	if o.SSE {
		cfg.Transport = upstream.SSE
	}
	return cfg, h
}

// way is one way to reach a fake server.
type way struct {
	name   string
	script upstreamtest.Script
	http   *upstreamtest.Options
}

// config makes a server that is reached this way.
func (w way) config(t testing.TB, id string) upstream.ServerConfig {
	t.Helper()
	if w.http == nil {
		return stdio(id, w.script)
	}
	o := *w.http
	o.Script = w.script
	cfg, _ := overHTTP(t, id, o)
	return cfg
}

// ways are all transports in both generations of the protocol.
func ways() []way {
	modern := upstreamtest.Script{Modern: true}
	return []way{
		{name: "stdio 2025"},
		{name: "stdio 2026", script: modern},
		{name: "http 2025 stream", http: &upstreamtest.Options{}},
		{name: "http 2025 json", http: &upstreamtest.Options{JSON: true}},
		{name: "http 2025 ids", http: &upstreamtest.Options{EventIDs: true}},
		{name: "http 2025 cut", http: &upstreamtest.Options{EventIDs: true, Cut: true}},
		{name: "http 2025 pretty", http: &upstreamtest.Options{Pretty: true}},
		{name: "http 2026 stream", script: modern, http: &upstreamtest.Options{}},
		{name: "http 2026 json", script: modern, http: &upstreamtest.Options{JSON: true}},
		{name: "http 2026 json pretty", script: modern, http: &upstreamtest.Options{JSON: true, Pretty: true}},
		{name: "sse", http: &upstreamtest.Options{SSE: true}},
	}
}

func modern(w way) bool { return w.script.Modern }

// isNumber reports whether an id, or a progress token, is one that the hub makes.
func isNumber(id []byte) bool {
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil
}
