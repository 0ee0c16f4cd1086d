package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const metaOK = `"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"}}`

// metaEmpty is that of a success that says nothing.
const metaEmpty = `"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded","output":"empty"}}`

func TestStdioTranscript(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := dial(t, newServer(t, Config{Version: "v"}, &far{}))
			w.send(`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)
			w.want(`{"jsonrpc":"2.0","id":"early","error":{"code":-32600,"message":"invalid request: \"tools/list\" before initialize: ` +
				`up to protocol 2025-11-25 send initialize first; from 2026-07-28 on write \"io.modelcontextprotocol/protocolVersion\" ` +
				`and \"io.modelcontextprotocol/clientCapabilities\" into params._meta of each request"}}`)
			if answer := w.handshake(version); !strings.Contains(answer, `"protocolVersion":"`+version+`"`) ||
				!strings.Contains(answer, `"tools":{"listChanged":true}`) {
				t.Fatalf("initialize answered %s", answer)
			}
			w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			w.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` +
				`{"x-unknown":12345678901234567890,"name":"mcp.s.echo","inputSchema":{"type":"object"}},` +
				`{"x-unknown":12345678901234567890,"name":"mcp.s.slow","inputSchema":{"type":"object"}}]}}`)
			w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{"b":1.0,"a":"\u0061"},` +
				`"_meta":{"mine":1,"progressToken":1.50}}}`)
			w.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.50,"progress":1,"x":1.50}}`,
				`{"jsonrpc":"2.0","id":2,"result":{"z":1e400,"content":[{"type":"text","text":"\u003c<"}],`+
					`"arguments":{"b":1.0,"a":"\u0061"},"meta":{"mine":1},`+metaOK+`}}`)
			w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nope"}}`)
			w.want(`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown tool \"nope\": list the tools and use a name from there","data":{"toolhub/invocation":{"invocation_id":"INV"}}}}`)
			w.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
			w.want(`{"jsonrpc":"2.0","id":4,"result":{}}`)
		})
	}
}

func TestStdioModernTranscript(t *testing.T) {
	t.Parallel()
	w := dial(t, newServer(t, Config{Version: "v"}, &far{}))
	w.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` + modernMeta + `}}}`)
	if got := w.next(); !strings.Contains(got, `"supportedVersions":["2026-07-28"`) ||
		!strings.Contains(got, `"resultType":"complete"`) {
		t.Fatalf("discover answered %s", got)
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`)
	w.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[` +
		`{"x-unknown":12345678901234567890,"name":"mcp.s.echo","inputSchema":{"type":"object"}},` +
		`{"x-unknown":12345678901234567890,"name":"mcp.s.slow","inputSchema":{"type":"object"}}],` +
		`"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{` + serverInfoMember + `}}}`)
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{` + modernMeta +
		`,"x":[1]}}}`)
	w.want(`{"jsonrpc":"2.0","id":3,"result":{"z":1e400,"content":[{"type":"text","text":"\u003c<"}],"arguments":{},"meta":{"x":[1]},` +
		`"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"},` + serverInfoMember +
		`},"resultType":"complete"}}`)
	w.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	w.want(`{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"invalid params: missing or invalid _meta field \"io.modelcontextprotocol/clientCapabilities\"","data":{"toolhub/invocation":{"invocation_id":"INV"}}}}`)
}

// A client that writes everything at once is served as if it had waited for each answer.
func TestNothingOvertakesInitialize(t *testing.T) {
	t.Parallel()
	w := dial(t, newServer(t, Config{}, &far{}))
	w.send(fmt.Sprintf(initialize, "2025-11-25"), initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for _, id := range []string{"0", "1"} {
		if got := w.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"result":`) {
			t.Errorf("got %s, want the result of %s", got, id)
		}
	}
}

func TestIdsComeBackAsSent(t *testing.T) {
	t.Parallel()
	w := dial(t, newServer(t, Config{Version: "v"}, &far{}))
	w.handshake("2025-11-25")
	for _, id := range []string{`7`, `-7`, `0`, `1.5`, `1e3`, `12345678901234567890`, `-0`, `"a"`, `""`, `"\u0061"`,
		`"ä"`, `"7"`, `"toolhub-1"`} {
		for _, request := range []string{`"method":"ping"`, `"method":"tools/list"`,
			`"method":"tools/call","params":{"name":"nope"}`, `"method":"no/such"`} {
			w.send(`{"jsonrpc":"2.0","id":` + id + `,` + request + `}`)
			if got := w.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,`) {
				t.Errorf("%s with id %s answered %s", request, id, got)
			}
		}
	}
}

func TestBadMessagesAreAnswered(t *testing.T) {
	t.Parallel()
	w := dial(t, newServer(t, Config{}, &far{}))
	w.handshake("2025-06-18")
	for in, code := range map[string]int{
		`{`:                        tool.CodeParseError,
		`nonsense`:                 tool.CodeParseError,
		`7`:                        tool.CodeInvalidRequest,
		`{"id":1,"method":"ping"}`: tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                            tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                        tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                    tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`:             tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                         tool.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`:     tool.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`: tool.CodeInvalidParams,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                             tool.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
			`}`: tool.CodeParseError,
	} {
		w.send(in)
		if got := w.next(); !strings.Contains(got, fmt.Sprintf(`"code":%d`, code)) {
			t.Errorf("%.80s answered %s, want code %d", in, got, code)
		}
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// An initialize that is none is refused as any request with wrong params, and the client may send a right one.
func TestInitializeThatIsNone(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`,"params":null`: "initialize needs params with protocolVersion, capabilities and " +
			"clientInfo",
		``: "initialize needs params with protocolVersion, capabilities and " +
			"clientInfo",
		`,"params":{"protocolVersion":5}`:                       `"protocolVersion" must be no number`,
		`,"params":{"capabilities":[]}`:                         `"capabilities" must be no array`,
		`,"params":{"capabilities":{"roots":5}}`:                `"capabilities.roots" must be no number`,
		`,"params":{"capabilities":{"elicitation":true}}`:       `"capabilities.elicitation" must be no bool`,
		`,"params":{"capabilities":{"elicitation":{"form":1}}}`: `"capabilities.elicitation.form" must be no number`,
		`,"params":{"clientInfo":{"name":[]}}`:                  `"clientInfo.name" must be no array`,
	} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Config{}, &far{})
			text := `{"jsonrpc":"2.0","id":1.5,"method":"initialize"` + params + `}`
			answer := string(jsonrpc.ErrorText([]byte("1.5"), invalidParams(want)))
			w := dial(t, s)
			w.send(text)
			w.want(answer)
			w.handshake("2025-11-25")
			url := serve(t, s) + "/mcp"
			status, h, got := post(t, url, text)
			if status != 400 || h.Get(headerSession) != "" || len(got) != 1 || strings.TrimSpace(got[0]) != answer {
				t.Errorf("over HTTP: %d, session %q, %s", status, h.Get(headerSession), got)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	w := dial(t, newServer(t, Config{Version: "v"}, &far{}))
	w.handshake("2025-03-26")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nope"}},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}]`)
	got := w.next()
	var answers []map[string]any
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != 2 {
		t.Fatalf("batch answered %s", got)
	}
}

// blocking is a tool that runs until its call is canceled, and says so.
func blocking(began chan<- string, ended chan<- error) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		began <- e.Tool.Native
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
	}
}

func TestStdioCancel(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 1), make(chan error, 1)
	w := dial(t, newServer(t, Config{}, &far{execute: blocking(began, ended)}))
	w.handshake("2025-11-25")
	w.send(`{"jsonrpc":"2.0","id":1.50,"method":"tools/call","params":{"name":"mcp.s.slow"}}`)
	<-began
	w.send(`{"jsonrpc":"2.0","id":1.50,"method":"tools/call","params":{"name":"mcp.s.slow"}}`)
	w.want(`{"jsonrpc":"2.0","id":1.50,"error":{"code":-32600,"message":"invalid request: id 1.50 is in use by a call that has not been answered"}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.50}}`)
	if err := <-ended; err == nil {
		t.Error("the tool was not canceled")
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nope"}}`)
	// and no answer to the other
	w.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown tool \"nope\": list the tools and use a name from there","data":{"toolhub/invocation":{"invocation_id":"INV"}}}}`)
}

func TestCallsAreAnsweredAfterTheInputHasEnded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := dial(t, newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		<-release
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}}))
	w.handshake("2025-11-25")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.slow"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	_ = w.in.Close()
	w.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	close(release)
	w.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[],` + metaEmpty + `}}`)
	if err := <-w.ended; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

// A call that the hub cuts off at its end is answered, as it is over HTTP; one that its client has cancelled is not.
func TestACallThatIsCutOffIsAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		stop func(w *wire, halt context.CancelFunc)
	}{
		{"hub stops", func(_ *wire, halt context.CancelFunc) { halt() }},
		{"input ends", func(w *wire, _ context.CancelFunc) { _ = w.in.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began, ended := make(chan string, 2), make(chan error, 2)
			w := dial(t, newServer(t, Config{HTTP: HTTPConfig{DrainTimeout: time.Millisecond}},
				&far{execute: blocking(began, ended), options: together(t)}))
			w.handshake("2025-11-25")
			for _, id := range []string{"1", "2"} {
				w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"mcp.s.slow"}}`)
				<-began
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			<-ended
			w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nope"}}`)
			w.next()
			c.stop(w, w.halt)
			if got := w.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"result":`) ||
				!strings.Contains(got, `"status":"canceled"`) {
				t.Errorf("the call that was cut off was answered with %s", got)
			}
			if err := <-w.ended; err != nil {
				t.Errorf("ServeStdio: %v", err)
			}
		})
	}
}

func TestListChangedOverStdio(t *testing.T) {
	t.Parallel()
	f := &far{}
	s := newServer(t, Config{}, f)
	w := dial(t, s)
	s.Changed(Change{Profile: "default", Tools: true}) // before initialize: for nobody
	w.handshake("2025-11-25")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.offer("new")
	s.Changed(Change{Profile: "other", Tools: true}) // not this client's profile
	s.Changed(Change{Profile: "default", Tools: true})
	w.want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if got := w.next(); !strings.Contains(got, "mcp.s.new") || strings.Contains(got, "mcp.s.echo") {
		t.Errorf("list after the change: %s", got)
	}
}

func TestListenOverStdio(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, &far{})
	w := dial(t, s)
	w.send(`{"jsonrpc":"2.0","id":1e1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`)
	if got := w.next(); !strings.Contains(got, `"notifications/subscriptions/acknowledged"`) ||
		!strings.Contains(got, `subscriptionId":1e1`) {
		t.Fatalf("listen was acknowledged with %s", got)
	}
	s.Changed(Change{Profile: "default", Tools: true})
	if got := w.next(); !strings.Contains(got, `"notifications/tools/list_changed"`) ||
		!strings.Contains(got, `subscriptionId":1e1`) {
		t.Fatalf("a change was told as %s", got)
	}
	_ = w.in.Close()
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		t.Fatal("a standing request kept the server from ending")
	}
}

// A client that keeps its pipe open and does not read it cannot keep the hub from stopping.
func TestAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, &far{})
	inR, inW := io.Pipe()
	_, outW := io.Pipe() // nobody reads
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(ctx, inR, outW, Stdio{Profile: "default"}) }()
	go func() { _, _ = fmt.Fprintf(inW, initialize+"\n", "2025-11-25") }()
	s.Changed(Change{Profile: "default", Tools: true})
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the door is still open")
	}
	_, _ = inW.Close(), outW.Close()
}

// stuckReplier is a client that does not read until it is let.
type stuckReplier struct {
	replier
	read chan struct{}
	got  []string
}

func (r *stuckReplier) notify(_ string, params json.RawMessage) {
	<-r.read
	r.got = append(r.got, string(params))
}

func TestProgressWaitsForNoClient(t *testing.T) {
	t.Parallel()
	r := &stuckReplier{read: make(chan struct{})}
	p := &peer{modern: true}
	q := &callNotes{to: &attempt{peer: p, reply: r, token: json.RawMessage(`"t"`)}, peer: p}
	q.idle.L = &q.mu
	report := q.report
	for i := range 2 * maxQueued {
		report(tool.Progress{Params: json.RawMessage(fmt.Sprintf(`{"progressToken":0,"progress":%d}`, i))})
	}
	close(r.read)
	q.detach()
	last := fmt.Sprintf(`{"progressToken":"t","progress":%d}`, 2*maxQueued-1)
	if n := len(r.got); n < maxQueued || n > maxQueued+1 || r.got[n-1] != last {
		t.Errorf("%d reports, the last one %s", n, r.got[n-1])
	}
}

// A call that has ended twice does not end another one that has its id by now.
func TestAnIdThatIsUsedAgainStaysInUse(t *testing.T) {
	t.Parallel()
	var calls inflight
	id := json.RawMessage(`1`)
	_, call, _ := calls.add(t.Context(), id)
	call.end()
	ctx, _, refusal := calls.add(t.Context(), id)
	if refusal != nil {
		t.Fatal(refusal)
	}
	call.end()
	if calls.cancel(json.RawMessage(`{"requestId":1}`)); ctx.Err() == nil {
		t.Error("the second call of the id cannot be cancelled")
	}
}
