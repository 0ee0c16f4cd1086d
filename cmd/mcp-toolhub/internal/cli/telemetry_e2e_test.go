//go:build e2e

package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// trace returns the spans of a trace, by name, once the hub has sent n of them.
func (c *collector) trace(id string, n int) (all map[string]*tracepb.Span) {
	c.t.Helper()
	eventually(c.t, "the spans have come", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		all = make(map[string]*tracepb.Span)
		for _, s := range c.spans {
			if hex.EncodeToString(s.TraceId) == id {
				all[s.Kind.String()+" "+s.Name] = s
			}
		}
		return len(all) >= n
	})
	return all
}

// phaseNames are the phases that a call of a server's tool has spans of besides execute.
var phaseNames = []string{"resolve_tool", "parse_schema", "validate_values", "prepare_observable_input", "pre_hooks", "permission", "schedule",
	"map_result", "post_hooks", "persist_result", "emit_terminal"}

// TestTraceFits calls tools with a context in _meta, on both generations and over stdio and HTTP to servers: the spans of the hub are
// children of the client's span, and the server gets the hub's span as its parent. Everything else of _meta stays.
func TestTraceFits(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	servers := map[string]any{}
	for _, f := range farServers(t) {
		servers[f.id] = f.entry
	}
	hub := startHubIn(t, to.env("OTEL_SERVICE_NAME=hub-of-tests", "OTEL_RESOURCE_ATTRIBUTES=team=a,service.namespace=n",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=k%20ey", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"), "hub.json", configText(t, servers, nil))
	const parent, state = "00f067aa0ba902b7", "rojo=00f067aa0ba902b7,congo=t61"
	n := 0
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		for id := range servers {
			n++
			trace := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", n)
			meta := fmt.Sprintf(`"com.example/z":{"b":1.0,"a":"\u003c<"},"traceparent":"00-%s-%s-01","tracestate":%q,"baggage":"user=ann,a=%%20"`,
				trace, parent, state)
			name := "mcp." + id + ".echo"
			result := w.result(name, `{"text":"a word that is nobody's business"}`, meta)
			content, _ := memberOf(t, result, "structuredContent")
			sent, _ := memberOf(t, content, "params")
			seen, _ := memberOf(t, sent, "_meta")
			all := to.trace(trace, 2+len(phaseNames))
			server, client := all["SPAN_KIND_SERVER tools/call "+name], all["SPAN_KIND_CLIENT tools/call echo"]
			if server == nil || client == nil {
				t.Fatalf("%s on %s: %v", name, version, all)
			}
			if got := hex.EncodeToString(server.ParentSpanId); got != parent {
				t.Errorf("the parent of the hub's span is %s", got)
			}
			if !bytes.Equal(client.ParentSpanId, server.SpanId) {
				t.Error("the request to the server is no child of the call")
			}
			got, _ := memberOf(t, seen, "traceparent")
			if want := fmt.Sprintf(`"00-%s-%x-01"`, trace, client.SpanId); got != want {
				t.Errorf("the server %s got traceparent %s, want %s", id, got, want)
			}
			others := without(t, seen, func(key string) bool {
				return key == "traceparent" || key == "progressToken" || strings.HasPrefix(key, "io.modelcontextprotocol/")
			})
			if want := fmt.Sprintf(`{"com.example/z":{"b":1.0,"a":"\u003c<"},"tracestate":%q,"baggage":"user=ann,a=%%20"}`, state); others != want {
				t.Errorf("of _meta, %s got\n%s, want\n%s", id, others, want)
			}
			checkPhases(t, server, all)
			checkAttributes(t, server, map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": name, "toolhub.status": "succeeded",
				"gen_ai.operation.name": "execute_tool", "mcp.protocol.version": version, "network.transport": "tcp", "toolhub.server": id})
			checkAttributes(t, client, map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "toolhub.server": id})
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if a := to.about; a["service.name"] != "hub-of-tests" || a["team"] != "a" || a["service.namespace"] != "n" || a["service.version"] == "" {
		t.Errorf("the resource is %v", a)
	}
	if got := to.headers.Get("api-key"); got != "k ey" {
		t.Errorf("the header came as %q", got)
	}
	if strings.Contains(to.all.String(), "nobody's business") {
		t.Error("the collector got an argument")
	}
}

// checkPhases holds that each phase has a span within that of its call, one after the other.
func checkPhases(t *testing.T, call *tracepb.Span, all map[string]*tracepb.Span) {
	t.Helper()
	last := call.StartTimeUnixNano
	for _, phase := range phaseNames {
		s := all["SPAN_KIND_INTERNAL "+phase]
		if s == nil {
			t.Errorf("there is no span %s: %v", phase, all)
			continue
		}
		if !bytes.Equal(s.ParentSpanId, call.SpanId) || s.StartTimeUnixNano < last || s.EndTimeUnixNano > call.EndTimeUnixNano {
			t.Errorf("the span %s does not fit into its call", phase)
		}
		last = s.EndTimeUnixNano
	}
}

func checkAttributes(t *testing.T, s *tracepb.Span, want map[string]string) {
	t.Helper()
	got := texts(s.Attributes)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got[key], value)
		}
	}
}

// TestSpansOfHandshakes: each initialize, server/discover and ping of a client has a SERVER span below what its _meta names. What the hub
// asks servers on its own, it has CLIENT spans of.
func TestSpansOfHandshakes(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	modern := child(upstreamtest.Script{Modern: true})
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"old": child(upstreamtest.Script{}), "new": modern}, nil))
	const parent = "00f067aa0ba902b7"
	meta := func(n int) string {
		return fmt.Sprintf(`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0f%04x-%s-01"`, n, parent)
	}
	legacy, latest := wireHTTP(t, hub.url+"/mcp", rev2025), wireHTTP(t, hub.url+"/mcp", rev2026)
	greet := legacy.initialize("c")
	greet.params = strings.Replace(greet.params, "{", `{"_meta":{`+meta(1)+`},`, 1)
	legacy.send(greet)
	legacy.open()
	legacy.send(rawRequest{id: "7", method: "ping"})
	for n, r := range map[int]rawRequest{
		1: greet,
		2: {id: "8", method: "ping", params: `{"_meta":{` + meta(2) + `}}`},
		3: {id: "9", method: "server/discover", params: latest.params("", meta(3))},
	} {
		if w := map[bool]*wire{true: latest, false: legacy}[n == 3]; n > 1 {
			if got := w.send(r); !strings.Contains(got[len(got)-1], `"result"`) {
				t.Fatalf("%s: %s", r.method, got)
			}
		}
		all := to.trace(fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0f%04x", n), 1)
		span := all["SPAN_KIND_SERVER "+r.method]
		if span == nil || hex.EncodeToString(span.ParentSpanId) != parent || len(all) != 1 {
			t.Errorf("%s has the spans %v", r.method, all)
			continue
		}
		checkAttributes(t, span, map[string]string{"mcp.method.name": r.method})
	}
	for _, want := range []string{"old server/discover -32601", "old initialize ", "old tools/list ", "new server/discover ", "new tools/list "} {
		eventually(t, want, func() bool {
			to.mu.Lock()
			defer to.mu.Unlock()
			return slices.ContainsFunc(to.spans, func(s *tracepb.Span) bool {
				has := texts(s.Attributes)
				return s.Kind == tracepb.Span_SPAN_KIND_CLIENT && has["toolhub.server"]+" "+s.Name+" "+has["error.type"] == want
			})
		})
	}
}

// TestTracingIsOff: where the variables do not ask for traces, the server gets the context that the client has sent.
func TestTracingIsOff(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	const meta = `"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b"`
	for name, env := range map[string][]string{"disabled": to.env("OTEL_SDK_DISABLED=true"), "none": to.env("OTEL_TRACES_EXPORTER=none"),
		"grpc": to.env("OTEL_EXPORTER_OTLP_PROTOCOL=grpc"), "unset": nil} {
		hub := startHubIn(t, env, "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})}, nil))
		w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
		if got := w.result("mcp.s.echo", `{}`, meta); !strings.Contains(got, meta) {
			t.Errorf("%s: the server got %s", name, got)
		}
		if says := strings.Contains(hub.log(), "speaks http/protobuf alone"); says != (name == "grpc") {
			t.Errorf("%s: the log speaks of the protocol: %v", name, says)
		}
	}
	if to.mu.Lock(); len(to.spans) > 0 {
		t.Errorf("spans have come: %v", to.spans)
	}
	to.mu.Unlock()
}

// TestSampling: the standard's sampler decides, and what is not sampled is still passed on.
func TestSampling(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	hub := startHubIn(t, to.env("OTEL_TRACES_SAMPLER=parentbased_always_off"), "hub.json",
		configText(t, map[string]any{"s": child(upstreamtest.Script{})}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2026).open()
	if got := w.result("mcp.s.echo", `{}`, ""); !strings.Contains(got, `"traceparent":"00-`) || !strings.Contains(got, `-00"`) {
		t.Errorf("a call without a parent came as %s", got)
	}
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	w.result("mcp.s.echo", `{}`, `"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`)
	to.trace(id, 2+len(phaseNames))
	// A malformed parent counts as none, and its state is not passed on.
	if got := w.result("mcp.s.echo", `{}`, `"traceparent":"00-zz","tracestate":"a=b"`); strings.Contains(got, "tracestate") ||
		strings.Contains(got, "00-zz") {
		t.Errorf("a malformed parent came as %s", got)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, s := range to.spans {
		if hex.EncodeToString(s.TraceId) != id {
			t.Errorf("%s was sent, and is not sampled", s.Name)
		}
	}
}

// TestErrorsOfSpans holds the status and the error.type of calls that fail, each in its way, and what of them is not sent.
func TestErrorsOfSpans(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})},
		map[string]any{"policy": map[string]any{"mode": "accept_all", "rules": []map[string]any{{"match": "mcp.s.echo", "when": "has(arguments.text)", "then": "deny"}}}}))
	w := wireHTTP(t, hub.url+"/mcp", rev2026).open()
	rpc := func(code int) string {
		return fmt.Sprintf(`{"text":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":%d,\"message\":\"inner life\"}}"}`, code)
	}
	for i, c := range []struct{ name, args, kind, span, phase string }{
		{"mcp.s.answer", rpc(-32603), "-32603", "mcp.s.answer", "CLIENT tools/call answer"},
		{"mcp.s.answer", rpc(77), "_OTHER", "mcp.s.answer", "CLIENT tools/call answer"},
		{"mcp.s.raw", `{"result":{"isError":true,"content":[{"type":"text","text":"inner life"}]}}`, "tool_error", "mcp.s.raw", "CLIENT tools/call raw"},
		{"mcp.s.echo", `{"text":"inner life"}`, "permission_denied", "mcp.s.echo", "INTERNAL permission"},
		{"no-such-inner-life", `{}`, "-32602", "", "INTERNAL resolve_tool"},
	} {
		id := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", i+1)
		r := rawRequest{id: w.nextID(), method: "tools/call", name: c.name,
			params: w.params(`"name":`+quoted(c.name)+`,"arguments":`+c.args, `"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`)}
		w.send(r)
		var all map[string]*tracepb.Span
		var call *tracepb.Span
		eventually(t, "the call's spans have come", func() bool {
			all = to.trace(id, 5)
			call = all[strings.TrimSpace("SPAN_KIND_SERVER tools/call "+c.span)]
			return call != nil && all["SPAN_KIND_"+c.phase] != nil
		})
		checkAttributes(t, call, map[string]string{"error.type": c.kind})
		if in := all["SPAN_KIND_"+c.phase]; in == nil || in.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || call.Status.GetCode() != in.Status.GetCode() {
			t.Errorf("%s: the spans %v", c.name, all)
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if strings.Contains(to.all.String(), "inner") {
		t.Error("the collector got an argument, a name that a client chose, or the message of an error")
	}
}

// TestContentIsRedacted: where arguments and results are switched on, they come without secrets.
func TestContentIsRedacted(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	const secret = "ghp_" + "Zk3mQ9vX7bT2wL5nR8cJ4hF6dS1aG0yPuE2i"
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})},
		map[string]any{"hub": map[string]any{"telemetry": map[string]any{"content": true}, "log": map[string]any{"level": "debug"}}}))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	args := `{"text":"a plain word","password":"hunter2-hunter2","note":"key ` + secret + `"}`
	if got := w.result("mcp.s.echo", args, `"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`); !strings.Contains(got, secret) {
		t.Fatalf("the caller got %s", got)
	}
	attributes := texts(to.trace(id, 2+len(phaseNames))["SPAN_KIND_SERVER tools/call mcp.s.echo"].Attributes)
	if a := attributes["gen_ai.tool.call.arguments"]; !strings.Contains(a, "a plain word") || strings.Contains(a, "hunter2") {
		t.Errorf("the arguments are %s", a)
	}
	if attributes["gen_ai.tool.call.result"] == "" {
		t.Error("there is no result")
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if strings.Contains(to.all.String(), secret) || strings.Contains(to.all.String(), "hunter2") {
		t.Error("the collector got a secret")
	}
}

// TestCollectorThatFails: a collector that is not there, one that hangs and one that refuses harm no call, and the hub ends in time. The
// log says so once.
func TestCollectorThatFails(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"gone":           nil,
		"hangs":          func(_ http.ResponseWriter, r *http.Request) { <-hangs },
		"hangs for long": func(_ http.ResponseWriter, r *http.Request) { <-hangs },
		"refuses":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"is busy":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "http://" + gone.Addr().String()
			if answer != nil {
				server := httptest.NewServer(answer)
				t.Cleanup(server.CloseClientConnections) // Close would wait for them
				url = server.URL
			}
			to, patient := &collector{url: url}, name == "hangs for long"
			timeout := map[bool]string{true: "120000", false: "300"}[patient]
			hub := startHubIn(t, to.env("OTEL_EXPORTER_OTLP_TIMEOUT="+timeout, "OTEL_BSP_MAX_QUEUE_SIZE=64", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=8"),
				"hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})}, nil))
			w := wireHTTP(t, hub.url+"/mcp", rev2026).open()
			for range 60 { // far more spans than the queue takes
				w.result("mcp.s.echo", `{"text":"x"}`, "")
			}
			eventually(t, "the log says that telemetry is lost", func() bool { return patient || strings.Contains(hub.log(), "telemetry is lost") })
			began := time.Now()
			if err := hub.stop(); err != nil {
				t.Errorf("%s: the hub ended with %v", name, err)
			}
			if took := time.Since(began); took > 100*time.Second {
				t.Errorf("%s: the hub took %s to end", name, took)
			}
			for line := range strings.Lines(hub.log()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: the log has the line %s", name, line)
				}
			}
			if n := strings.Count(hub.log(), "telemetry is lost"); n > 3 {
				t.Errorf("%s: the log says it %d times", name, n)
			}
		})
	}
}

// TestRequestsHaveSpans: what is no call has spans, too, and the server gets the hub's as its parent.
func TestRequestsHaveSpans(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	script := upstreamtest.Script{Features: upstreamtest.Features{Resources: []json.RawMessage{[]byte(`{"uri":"x://first","name":"first"}`)}}}
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(script)}, nil))
	for i, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		id := fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", i+1)
		list := w.send(rawRequest{id: w.nextID(), method: "resources/list", params: w.params("", "")})
		uri := regexp.MustCompile(`"uri":"([^"]+)"`).FindStringSubmatch(list[len(list)-1])
		if uri == nil {
			t.Fatalf("the list is %s", list)
		}
		answers := w.send(rawRequest{id: w.nextID(), method: "resources/read", name: uri[1],
			params: w.params(`"uri":`+quoted(uri[1]), `"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`)})
		all := to.trace(id, 2)
		server, client := all["SPAN_KIND_SERVER resources/read"], all["SPAN_KIND_CLIENT resources/read"]
		if server == nil || client == nil || !bytes.Equal(client.ParentSpanId, server.SpanId) {
			t.Fatalf("the spans are %v", all)
		}
		if want := fmt.Sprintf(`"traceparent":"00-%s-%x-01"`, id, client.SpanId); !strings.Contains(answers[len(answers)-1], want) {
			t.Errorf("the server got %s, want %s", answers, want)
		}
	}
	if _, got := scrapeHub(t, hub.url+"/metrics", ""); got["mcp_server_operation_duration_seconds mcp_method_name=resources/read"] != 2 ||
		got["mcp_client_operation_duration_seconds mcp_method_name=resources/read server=s"] != 2 {
		t.Errorf("the metrics are %v", got)
	}
}

// TestShowHasSpans: while the hub runs, calls show has the spans of a call without any collector; afterwards it has the record.
func TestShowHasSpans(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{})}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	answers := w.send(w.call("mcp.s.echo", `{}`, ""))
	id := regexp.MustCompile(`inv_\w+`).FindString(answers[len(answers)-1])
	text := hub.command(t, "calls", "show", id)
	if !regexp.MustCompile(`(?m)^ *\+0\.000 ms +[0-9.]+ ms  tools/call mcp\.s\.echo$`).MatchString(text) {
		t.Errorf("there is no span of the call:\n%s", text)
	}
	for _, phase := range append([]string{"execute"}, phaseNames...) {
		if !regexp.MustCompile(`(?m) ms  ` + phase + `$`).MatchString(text) {
			t.Errorf("there is no span of %s:\n%s", phase, text)
		}
	}
	var told struct{ Spans *telemetry.Spans }
	if err := json.Unmarshal([]byte(hub.command(t, "calls", "show", id, "-o", "json")), &told); err != nil || told.Spans == nil || len(told.Spans.All) != 13 {
		t.Errorf("as JSON the spans are %+v, %v", told.Spans, err)
	}
	if err := hub.stop(); err != nil {
		t.Fatal(err)
	}
	if text := hub.command(t, "calls", "show", id); strings.Contains(text, "SPAN") || !strings.Contains(text, "arguments_ready") {
		t.Errorf("after the end of the hub the story is\n%s", text)
	}
}

// TestTraceOfSuspendedCall: a call that waits for its client's next request has a span for each request to its server, and one for the wait.
func TestTraceOfSuspendedCall(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{Modern: true, Tools: []json.RawMessage{upstreamtest.Tool("rounds")}})}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2026)
	w.can = `{"elicitation":{}}`
	w.open()
	const id = "4bf92f3577b34da6a3ce929d0e0e0002"
	const args = `{"results":[{"resultType":"input_required","requestState":"s","inputRequests":{"q1":{"method":"elicitation/create",` +
		`"params":{"message":"m"}}}}]}`
	first := w.result("mcp.s.rounds", args, `"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`)
	state, ok := memberOf(t, first, "requestState")
	if !ok {
		t.Fatalf("the server asks nothing: %s", first)
	}
	w.send(rawRequest{id: w.nextID(), method: "tools/call", name: "mcp.s.rounds", params: w.params(join(`"name":"mcp.s.rounds"`,
		`"arguments":`+args, `"inputResponses":{"q1":{"action":"accept"}},"requestState":`+state), "")})
	waits := to.trace(id, 3+len(phaseNames))["SPAN_KIND_INTERNAL needs_input"]
	to.mu.Lock()
	defer to.mu.Unlock()
	var hops []*tracepb.Span
	for _, s := range to.spans {
		if s.Kind == tracepb.Span_SPAN_KIND_CLIENT && hex.EncodeToString(s.TraceId) == id {
			hops = append(hops, s)
		}
	}
	if len(hops) != 2 || waits == nil || hops[0].EndTimeUnixNano > waits.StartTimeUnixNano || hops[1].StartTimeUnixNano < waits.EndTimeUnixNano {
		t.Errorf("the spans are %v and %v", hops, waits)
	}
}

// TestTraceOfNestedCalls: the calls of a batch are children of the batch.
func TestTraceOfNestedCalls(t *testing.T) {
	t.Parallel()
	to := startCollector(t)
	hub := startHubIn(t, to.env(), "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{Modern: true})}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2026).open()
	const id = "4bf92f3577b34da6a3ce929d0e0e0001"
	answer := w.result("tool_batch", `{"calls":[{"id":"a","name":"mcp.s.echo"},{"id":"b","name":"mcp.s.echo"}]}`,
		`"traceparent":"00-`+id+`-00f067aa0ba902b7-01"`)
	var batch *tracepb.Span
	var members []*tracepb.Span
	eventually(t, "the spans have come", func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		batch, members = nil, nil
		for _, s := range to.spans {
			switch {
			case hex.EncodeToString(s.TraceId) != id:
			case s.Name == "tools/call mcp.s.echo":
				members = append(members, s)
			case s.Name == "execute":
				batch = s
			}
		}
		return batch != nil && len(members) == 2
	})
	for _, m := range members {
		if !bytes.Equal(m.ParentSpanId, batch.SpanId) {
			t.Errorf("a call of the batch is no child of it: %v, %v", m, answer)
		}
	}
}
