package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// around stands for the hub around the pipeline.
type around struct {
	gate *gate.Gate
	open bool // the queue
}

func (a around) Gate() *gate.Gate                                            { return a.gate }
func (around) Hooks() *hook.Set                                              { return nil }
func (around) Limits(string) invoke.Limits                                   { return invoke.Limits{} }
func (around) Present(t *tool.Tool) *tool.Tool                               { return t }
func (a around) QueueOpen() bool                                             { return a.open }
func (around) CommandLine(words string) string                               { return "mcp-toolhub " + words }
func (around) Announce(context.Context, string, approval.View)               {}
func (around) Offer(context.Context, *policy.Request) *policy.SuggestedGrant { return nil }

// far is what lies behind the server under test: one profile more than the default one, and tools
// that a script answers.
type far struct {
	mu      sync.Mutex
	surface *tool.Surface
	execute func(context.Context, *tool.Execution) (tool.Reply, error)
	servers Servers          // nil: tools alone
	dir     string           // of the journal
	sync    time.Duration    // within which that is on the disk; 0: at once
	journal *persist.Journal // set by newServer

	options func(*invoke.Options) // changes those of the pipeline; nil: none
	key     []byte                // of what clients carry; nil: one of its own
	signIn  tool.SignInAsker      // nil: none
	ended   string                // where sessions are recorded that ended for good; "": nowhere
	model   string                // of the latest client that has asked for the surface

	fresh       func(server, method string) (tool.Freshness, bool) // nil: no server has such a list
	firstLists  func()                                             // nil: they have come
	sessionEnds chan<- string                                      // gets the sessions that end; nil: none
}

func (f *far) Fresh(server, method string) (tool.Freshness, bool) {
	if f.fresh == nil {
		return tool.Freshness{}, false
	}
	return f.fresh(server, method)
}

func (f *far) FirstLists(context.Context, *tool.Surface) {
	if f.firstLists != nil {
		f.firstLists()
	}
}

func (f *far) ResourceURI(server, native string) string { return "toolhub://" + server + "/" + native }

func (f *far) Servers() []tool.ServerStatus {
	return []tool.ServerStatus{{Server: "s", State: tool.ServerBackoff, LastError: "it is down"}}
}

func (f *far) Problems() []string { return nil }
func (f *far) Warnings() []string { return nil }

func (f *far) EndSession(session string) {
	if f.sessionEnds != nil {
		f.sessionEnds <- session
	}
}

// show makes s the surface.
func (f *far) show(s *tool.Surface) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shown := *s
	f.surface = &shown
}

func (f *far) Surface(profile string, caller tool.Actor) (*tool.Surface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.model = caller.Client.Model
	return f.surface, nil
}

func (f *far) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	return f.execute(ctx, e)
}

// offer makes the surface hold tools of these native names.
func (f *far) offer(names ...string) {
	var listed []tool.Listed
	index := make(map[string]int)
	input := json.RawMessage(`{"type":"object"}`)
	for i, n := range names {
		name := tool.MCPName("s", n)
		listed = append(listed, tool.Listed{Name: string(name), Tool: &tool.Tool{Name: name, Server: "s", Native: n,
			InputSchema:  input,
			SchemaDigest: tool.Digest(input)}, Changed: json.RawMessage(fmt.Sprintf(
			`{"x-unknown":12345678901234567890,"name":%q,"inputSchema":{"type":"object"}}`, name))})
		index[string(name)] = i
	}
	f.mu.Lock()
	f.surface = tool.NewSurface("srf", "default", "canonical", "d", listed, nil, index)
	f.mu.Unlock()
}

// web is the client of these tests. httptest closes idle connections of the default one whenever
// any of its servers ends, and with them requests of others.
var web = sync.OnceValue(func() *http.Client { return &http.Client{Transport: &http.Transport{}} })

// newServer is a server over a real pipeline and journal.
func newServer(t testing.TB, cfg Config, f *far) *Server {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	f.dir = t.TempDir()
	journal, err := persist.Open(persist.JournalConfig{Dir: f.dir, SyncWithin: f.sync}, logger)
	if err != nil {
		t.Fatal(err)
	}
	f.journal = journal
	t.Cleanup(func() { _ = journal.Close() })
	if f.surface == nil {
		f.offer("echo", "slow")
	}
	if f.execute == nil {
		f.execute = echo
	}
	if f.servers == nil {
		f.servers = noServers{}
	}
	o := invoke.Options{Executors: map[string]invoke.Executor{"mcp": f}, Settings: around{gate: acceptAll(t)}, People: around{},
		Journal: journal, Schemas: schema.NewCache(10), Logger: logger, SignIn: f.signIn}
	if f.options != nil {
		f.options(&o)
	}
	p, err := invoke.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(cfg, []string{"default", "other", DirectView("s")}, Deps{Surfaces: f, Pipeline: p, Servers: f.servers,
		Logger:   logger,
		StateKey: f.key, EndedSessions: f.ended, Status: f, Grants: f})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// echo answers with what it got, and reports progress once.
func echo(_ context.Context, e *tool.Execution) (tool.Reply, error) {
	e.Progress(tool.Progress{Params: json.RawMessage(`{"progressToken":"upstream's own","progress":1,"x":1.50}`)})
	result := fmt.Sprintf(`{"z":1e400,"content":[{"type":"text","text":"\u003c<"}],"arguments":%s,"meta":%s}`,
		e.Arguments, orNull(e.Meta))
	return tool.Reply{Result: json.RawMessage(result)}, nil
}

func orNull(raw json.RawMessage) string {
	if raw == nil {
		return "null"
	}
	return string(raw)
}

// wire is a stdio client that speaks raw lines.
type wire struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	ended chan error
	halt  context.CancelFunc // what the hub does at its stop, after its drain
}

func dial(t testing.TB, s *Server) *wire {
	t.Helper()
	return dialProfile(t, s, "default")
}

func dialProfile(t testing.TB, s *Server, profile string) *wire {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	w := &wire{t: t, in: inW, lines: make(chan string, 1000), ended: make(chan error, 1), halt: cancel}
	go func() {
		err := s.ServeStdio(ctx, inR, outW, Stdio{Profile: profile})
		_ = outW.Close()
		w.ended <- err
	}()
	go func() {
		r := bufio.NewScanner(outR)
		r.Buffer(nil, 64<<20)
		for r.Scan() {
			w.lines <- r.Text()
		}
		close(w.lines)
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		cancel()
		_ = outR.Close()
	})
	return w
}

func (w *wire) send(lines ...string) {
	w.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(w.in, l+"\n"); err != nil {
			w.t.Fatalf("send %s: %v", l, err)
		}
	}
}

// next returns the next line that the server wrote, with the parts that are random replaced.
func (w *wire) next() string {
	w.t.Helper()
	select {
	case l, ok := <-w.lines:
		if !ok {
			w.t.Fatal("the server has closed its output")
		}
		return settle(l)
	case <-w.t.Context().Done():
		w.t.Fatal("nothing came")
	}
	return ""
}

func (w *wire) want(lines ...string) {
	w.t.Helper()
	for _, want := range lines {
		if got := w.next(); got != want {
			w.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// settle replaces invocation ids, which are random.
func settle(text string) string {
	for {
		i := strings.Index(text, `"inv_`)
		if i < 0 {
			return text
		}
		text = text[:i] + `"INV` + text[i+len(`"inv_`)+26:]
	}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// handshake initialises on version and returns the server's answer.
func (w *wire) handshake(version string) string {
	w.t.Helper()
	w.send(fmt.Sprintf(initialize, version))
	answer := w.next()
	w.send(initialized)
	return answer
}

// post sends one message over HTTP and returns status, headers and the messages that came back.
func post(t testing.TB, url, body string, headers ...string) (int, http.Header, []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := web().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				messages = append(messages, settle(strings.TrimSpace(text)))
			}
		}
	} else if len(data) > 0 {
		messages = append(messages, settle(strings.TrimSpace(string(data))))
	}
	return resp.StatusCode, resp.Header, messages
}

// open initialises an HTTP session and returns its id.
func open(t testing.TB, url, version string, headers ...string) string {
	t.Helper()
	status, h, messages := post(t, url, fmt.Sprintf(initialize, version), headers...)
	if status != http.StatusOK || h.Get(headerSession) == "" {
		t.Fatalf("initialize: status %d, headers %v, %v", status, h, messages)
	}
	result, _ := rawjson.Get([]byte(messages[0]), "result")
	if v, _ := rawjson.Get(result, "protocolVersion"); string(v) != `"`+version+`"` {
		t.Fatalf("initialize on %s answered %s", version, messages[0])
	}
	status, _, _ = post(t, url, initialized, append(headers, headerSession, h.Get(headerSession), headerVersion,
		version)...)
	if status != http.StatusAccepted {
		t.Fatalf("initialized: status %d", status)
	}
	return h.Get(headerSession)
}

func serve(t testing.TB, s *Server) string {
	t.Helper()
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ctx)
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

const serverInfoMember = `"io.modelcontextprotocol/serverInfo":{"name":"mcp-toolhub","title":"MCP Toolhub","version":"v"}`

// acceptAll is a gate that allows every call, as the mode of that name does.
func acceptAll(t testing.TB, said ...facts.Override) *gate.Gate {
	t.Helper()
	g, err := gate.New(gate.Config{Mode: policy.ModeAcceptAll, Tools: facts.Config{Tools: said}}, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// together lets the calls of one session run at the same time.
func together(t testing.TB) func(*invoke.Options) {
	return func(o *invoke.Options) {
		o.Settings = around{gate: acceptAll(t, facts.Override{Match: "*", Concurrency: facts.ConcurrencySafe})}
	}
}
