package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The call goes on while its client fetches answers: several questions at once, several rounds, missing answers.
func TestSuspendedCall(t *testing.T) {
	t.Parallel()
	f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
		first, err := e.Ask(ctx, []tool.Question{elicitation("one"), {Method: tool.MethodRoots}})
		if err != nil {
			return tool.Reply{}, err
		}
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":2}`)})
		second, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodSample,
			Params: json.RawMessage(`{"maxTokens":1.0}`)}})
		return answered(append(first, second...), err)
	}}
	doors(t, f, func(t *testing.T, f *far, s *Server, c *asker) {
		progress := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%d}}`, n, c.id)
		}
		got := c.send(c.request("mcp.s.echo", `{"b":1,"a":2}`, ""))
		if len(got) != 2 || got[0] != progress(1) {
			t.Fatalf("got %v", got)
		}
		if want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{`; !strings.HasPrefix(got[1], want) ||
			!strings.HasSuffix(got[1], `,"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"needs_input"},`+
				serverInfoMember+`}}}`) {
			t.Errorf("result %s", got[1])
		}
		asked, with := input(t, got[1])
		elicit := `"q1":{"method":"elicitation/create","params":{"message":"[s] one"}}`
		if want := `{` + elicit + `,"q2":{"method":"roots/list"}}`; asked != want {
			t.Errorf("asked %s, want %s", asked, want)
		}
		if s.Health().Waiting != 1 {
			t.Errorf("%d calls wait", s.Health().Waiting)
		}
		again := c.call("mcp.s.echo", `{ "a":2,"b":1 }`, with(`{"q2":{"roots":[]},"q1":7,"q9":{}}`))
		asked, with = input(t, again)
		if asked != `{`+elicit+`}` || !strings.Contains(again, `{"invocation_id":"INV","status":"needs_input"}`) {
			t.Errorf("asked again %s", again)
		}
		got = c.send(c.request("mcp.s.echo", `{"b":1,"a":2}`, with(`{"q1":{"action":"accept","big":1e400}}`)))
		if len(got) != 2 || got[0] != progress(2) {
			t.Errorf("got %v", got)
		}
		asked, with = input(t, got[len(got)-1])
		if asked != `{"q3":{"method":"sampling/createMessage","params":{"maxTokens":1.0}}}` {
			t.Errorf("asked %s", asked)
		}
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[],"answers":[{"action":"accept","big":1e400},{"roots":[]},{"z":1}],`+
			`"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"},%s},"resultType":"complete"}}`,
			c.id+1, serverInfoMember)
		if got := c.call("mcp.s.echo", `{"b":1,"a":2}`, with(`{"q3":{"z":1}}`)); got != want {
			t.Errorf("result %s, want %s", got, want)
		}
		if s.Health().Waiting != 0 {
			t.Errorf("%d calls wait", s.Health().Waiting)
		}
		all := f.recordsOf(t)
		if len(all) != 1 {
			t.Errorf("%d invocations", len(all))
		}
		for _, r := range all {
			if got := fmt.Sprint(r["status_transitions"]); strings.Count(got, "needs_input") != 2 ||
				r["status"] != "succeeded" {
				t.Errorf("transitions %s", got)
			}
		}
	})
}

// What a client of 2026-07-28 cannot be asked is answered for it, as it would be for any other.
func TestSuspendedQuestionsNeedCapabilities(t *testing.T) {
	t.Parallel()
	doors(t, &far{execute: asking(tool.Question{Method: tool.MethodRoots}, elicitation("m"))},
		func(t *testing.T, _ *far, s *Server, c *asker) {
			c.capabilities = `{}`
			if got := c.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, "client does not support roots") ||
				!strings.Contains(got, "client does not support elicitation") {
				t.Errorf("result %s", got)
			}
			c.capabilities = `{"elicitation":{}}`
			asked, with := input(t, c.call("mcp.s.echo", `{}`, ""))
			if asked != `{"q2":{"method":"elicitation/create","params":{"message":"[s] m"}}}` {
				t.Errorf("asked %s", asked)
			}
			c.capabilities = `{}`
			if got := c.call("mcp.s.echo", `{}`, with(`{}`)); !strings.Contains(got,
				"client does not support elicitation") {
				t.Errorf("result %s", got)
			}
		})
}

// waitingTools are a tool of each generation that wait for input.
func waitingTools(ended chan<- error) map[string]func(context.Context, *tool.Execution) (tool.Reply, error) {
	return map[string]func(context.Context, *tool.Execution) (tool.Reply, error){
		"repeated": needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`),
		"suspended": func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}})
			if ended != nil {
				ended <- context.Cause(ctx)
			}
			return answered(answers, err)
		},
		"suspended, then repeated": func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}})
			if err != nil {
				return tool.Reply{NeedsInput: true,
					Result: json.RawMessage(`{"inputRequests":{"q1":{"method":"roots/list"}}}`)}, nil
			}
			return answered(answers, err)
		},
	}
}

// However a waiting call ends, it has its one result.
func TestWaitingCallsEnd(t *testing.T) {
	t.Parallel()
	for kind, execute := range waitingTools(nil) {
		for _, how := range []string{"the hub stops", "the client leaves"} {
			t.Run(kind+" "+how, func(t *testing.T) {
				t.Parallel()
				f := &far{execute: execute}
				s := newServer(t, Config{}, f)
				w := dial(t, s)
				c := &asker{t: t, capabilities: allCapabilities}
				w.send(c.request("mcp.s.echo", `{}`, ""))
				_, with := input(t, w.next())
				if how == "the client leaves" {
					_ = w.in.Close()
					if err := <-w.ended; err != nil {
						t.Error(err)
					}
				} else {
					s.Drain(t.Context())
					w.send(c.request("mcp.s.echo", `{}`, with(`{}`)))
					if got := w.next(); !strings.Contains(got, "the hub is stopping") {
						t.Errorf("result %s", got)
					}
				}
				all := f.recordsOf(t)
				for _, r := range all {
					if r["status"] != "canceled" {
						t.Errorf("the call ended as %v", r["status"])
					}
				}
				if len(all) != 1 || s.Health().Waiting != 0 {
					t.Errorf("%d invocations, %d wait", len(all), s.Health().Waiting)
				}
			})
		}
	}
}

// Leaving between two requests loses nothing; leaving an open one cancels the call.
func TestSuspendedCallOutlivesConnections(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		if _, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}); err != nil {
			return tool.Reply{}, err
		}
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
	}}
	s := newServer(t, Config{}, f)
	base := serve(t, s) + "/mcp"
	c := overHTTP(t, base)
	_, with := input(t, c.call("mcp.s.echo", `{}`, ""))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, base,
		strings.NewReader(c.request("mcp.s.echo", `{}`, with(`{"q1":{}}`))))
	for _, h := range [][2]string{{"Content-Type", "application/json"},
		{"Accept", "application/json, text/event-stream"},
		{headerVersion, "2026-07-28"}, {headerMethod, "tools/call"}, {headerName, "mcp.s.echo"}} {
		req.Header.Set(h[0], h[1])
	}
	go func() {
		<-began
		cancel()
	}()
	if resp, err := web().Do(req); err == nil {
		resp.Body.Close()
		t.Error("the request was answered")
	}
	<-ended
	s.Drain(t.Context())
	for _, r := range f.recordsOf(t) {
		if r["status"] != "canceled" {
			t.Errorf("the call ended as %v", r["status"])
		}
	}
}

// A question that its server takes back needs no answer: the client's next request finds the call going on.
func TestSuspendedQuestionIsTakenBack(t *testing.T) {
	t.Parallel()
	give := make(chan struct{})
	s := newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		asking, cancel := context.WithCancel(ctx)
		go func() {
			<-give
			cancel()
		}()
		_, err := e.Ask(asking, []tool.Question{{Method: tool.MethodRoots}})
		return tool.Reply{Result: json.RawMessage(fmt.Sprintf(`{"content":[],"gave_up":%v}`, err != nil))}, nil
	}})
	c := overStdio(t, s)
	_, with := input(t, c.call("mcp.s.echo", `{}`, ""))
	close(give)
	got := c.call("mcp.s.echo", `{}`, with(`{}`))
	for strings.Contains(got, "input_required") { // the request came before the server had given up
		_, with = input(t, got)
		got = c.call("mcp.s.echo", `{}`, with(`{}`))
	}
	if !strings.Contains(got, `"gave_up":true`) {
		t.Errorf("result %s", got)
	}
}

// The waiting calls of one caller leave room for the others.
func TestWaitingCallsAreBounded(t *testing.T) {
	t.Parallel()
	for kind, execute := range waitingTools(nil) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := &far{execute: execute}
			s := newServer(t, Config{}, f)
			first, second := overStdio(t, s), overStdio(t, s)
			for range suspended.MaxOfCaller {
				input(t, first.call("mcp.s.echo", `{}`, ""))
			}
			if got := first.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, `"error_class":"rate_limited"`) ||
				!strings.Contains(got, "answer those") {
				t.Errorf("one too many: %s", got)
			}
			_, with := input(t, second.call("mcp.s.echo", `{}`, ""))
			if got := second.call("mcp.s.echo", `{}`, with(`{"q1":{}}`)); !strings.Contains(got,
				`"status":"succeeded"`) {
				t.Errorf("another caller: %s", got)
			}
			s.Drain(t.Context())
			if n := len(f.recordsOf(t)); n != suspended.MaxOfCaller+2 {
				t.Errorf("%d invocations", n)
			}
		})
	}
}

// Twenty calls of clients of 2026-07-28, over one server and with equal ids, get their own
// questions and results. Each client is a run.
func TestSuspendedCallsDoNotCross(t *testing.T) {
	t.Parallel()
	const clients = 20
	var all sync.WaitGroup
	all.Add(clients)
	s := newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		all.Done()
		all.Wait()
		who, _ := rawjson.Get(e.Arguments, "who")
		name, _ := rawjson.String(who)
		var last []tool.Answer
		for range 3 {
			var err error
			if last, err = e.Ask(ctx, []tool.Question{elicitation(name)}); err != nil {
				return tool.Reply{}, err
			}
		}
		return answered(last, nil)
	}})
	base := serve(t, s) + "/mcp"
	var calling sync.WaitGroup
	for i := range clients {
		c := overHTTP(t, base)
		if i%4 == 0 {
			c = overStdio(t, s)
		}
		who, send := fmt.Sprintf("client-%d", i), c.send
		c.send = func(request string) []string {
			return send(strings.Replace(request, `"_meta":{`, `"_meta":{"toolhub/run":"`+who+`",`, 1))
		}
		calling.Go(func() {
			args := `{"who":"` + who + `"}`
			got := c.call("mcp.s.echo", args, "")
			for n := 1; n <= 3; n++ {
				asked, with := input(t, got)
				if asked != fmt.Sprintf(`{"q%d":{"method":"elicitation/create","params":{"message":"[s] %s"}}}`, n,
					who) {
					t.Errorf("%s is asked %s", who, asked)
				}
				got = c.call("mcp.s.echo", args, with(fmt.Sprintf(`{"q%d":{"from":"%s","n":%d}}`, n, who, n)))
			}
			if !strings.Contains(got, fmt.Sprintf(`"answers":[{"from":"%s","n":3}]`, who)) {
				t.Errorf("%s got %s", who, got)
			}
		})
	}
	calling.Wait()
}

// A server that needs input of a client that has canceled its call waits for nobody.
func TestNobodyWaitsForACanceledClient(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Reply{NeedsInput: true, Result: json.RawMessage(`{"inputRequests":{"a":{"method":"roots/list"}}}`)},
			nil
	}}
	s := newServer(t, Config{}, f)
	w := dial(t, s)
	c := &asker{t: t, capabilities: allCapabilities}
	w.send(c.request("mcp.s.echo", `{}`, ""))
	<-began
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	_ = w.in.Close()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	for line := range w.lines {
		t.Errorf("the client got %s", line)
	}
	for _, r := range f.recordsOf(t) {
		if got := fmt.Sprint(r["status_transitions"]); r["status"] != "canceled" || s.Health().Waiting != 0 {
			t.Errorf("the call ended as %v: %s", r["status"], got)
		}
	}
}

// TestSuspendedCallLeavesItsConnection holds that requests behind a suspended call are served on
// the connection on which that came, whether its answer was a stream or not, and that a connection
// which is to be closed is closed.
func TestSuspendedCallLeavesItsConnection(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{false, true} {
		f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			if says {
				e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
			}
			return answered(e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}))
		}}
		base := serve(t, newServer(t, Config{}, f))
		c := overHTTP(t, base)
		message := func(body, headers string) string {
			return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: "+
				"%s\r\n%s: 2026-07-28\r\n"+
				"%s: tools/call\r\n%s: mcp.s.echo\r\n%sContent-Length: %d\r\n\r\n%s", usualAccept, headerVersion,
				headerMethod, headerName, headers,
				len(body), body)
		}
		for _, headers := range []string{"", "Connection: close\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			in := bufio.NewReader(conn)
			last := func() string {
				response, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("progress %v, headers %q: %v", says, headers, err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatalf("progress %v, headers %q: %v", says, headers, err)
				}
				return string(body[strings.LastIndex(string(body), `{"jsonrpc"`):])
			}
			_, _ = io.WriteString(conn, message(c.request("mcp.s.echo", `{}`, ""), headers)+
				message(c.request("mcp.s.other", `{}`, ""), "")) // which is refused: the headers name another tool
			_, with := input(t, strings.TrimSpace(last()))
			if headers != "" {
				if _, err := in.ReadByte(); err == nil {
					t.Error("the connection is still used")
				}
				continue
			}
			if got := last(); !strings.Contains(got, "does not match") {
				t.Errorf("the request behind a suspended call is answered with %s", got)
			}
			_, _ = io.WriteString(conn, message(c.request("mcp.s.echo", `{}`, with(`{"q1":{"roots":[]}}`)), ""))
			if got := last(); !strings.Contains(got, `"answers":[{"roots":[]}]`) {
				t.Errorf("the retry on the same connection is answered with %s", got)
			}
		}
	}
}
