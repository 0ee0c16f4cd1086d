package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// asker is a client of 2026-07-28, on stdio or HTTP.
type asker struct {
	t            *testing.T
	capabilities string
	send         func(request string) (messages []string) // up to the response
	id           int
}

// overStdio is such a client on a pipe.
func overStdio(t *testing.T, s *Server) *asker {
	w := dial(t, s)
	return &asker{t: t, capabilities: allCapabilities, send: func(request string) (all []string) {
		w.send(request)
		for {
			all = append(all, w.next())
			if !strings.Contains(all[len(all)-1], `"method":"notifications/`) {
				return all
			}
		}
	}}
}

// overHTTP is such a client of the hub at base, with further headers.
func overHTTP(t *testing.T, base string, headers ...string) *asker {
	return &asker{t: t, capabilities: allCapabilities, send: func(request string) []string {
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		_ = json.Unmarshal([]byte(request), &m)
		_, _, got := post(t, base, request, append([]string{headerVersion, "2026-07-28", headerMethod, m.Method,
			headerName, m.Params.Name + m.Params.URI}, headers...)...)
		return got
	}}
}

// request is a tools/call with more params, for instance `,"requestState":"…"`.
func (c *asker) request(name, arguments, more string) string {
	return c.requestOf("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, arguments, more))
}

// requestOf is a request with params, the inside of the object.
func (c *asker) requestOf(method, params string) string {
	c.id++
	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":`+c.capabilities, 1)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"progressToken":%d,%s}}}`,
		c.id, method, params, c.id, meta)
}

// ask sends such a request and returns its response.
func (c *asker) ask(method, params string) string {
	got := c.send(c.requestOf(method, params))
	return got[len(got)-1]
}

// call makes a call and returns its response.
func (c *asker) call(name, arguments, more string) string {
	got := c.send(c.request(name, arguments, more))
	return got[len(got)-1]
}

// input reads a result that needs input: what is asked, and the members of params that bring the answers.
func input(t testing.TB, response string) (requests string, with func(responses string) string) {
	t.Helper()
	result, _ := rawjson.Get([]byte(response), "result")
	kind, _ := rawjson.Get(result, "resultType")
	raw, _ := rawjson.Get(result, "inputRequests")
	state, _ := rawjson.Get(result, "requestState")
	if string(kind) != `"input_required"` || len(state) < 50 {
		t.Fatalf("no input is required: %s", response)
	}
	return string(raw), func(responses string) string {
		if responses == "" {
			return `,"requestState":` + string(state)
		}
		return `,"inputResponses":` + responses + `,"requestState":` + string(state)
	}
}

func elicitation(text string) tool.Question {
	return tool.Question{Method: tool.MethodElicit, Params: json.RawMessage(`{"message":"` + text + `"}`)}
}

// doors are a client on stdio and one over HTTP.
func doors(t *testing.T, f *far, test func(*testing.T, *far, *Server, *asker)) {
	for name, connect := range map[string]func(*testing.T, *Server) *asker{
		"stdio": overStdio,
		"http":  func(t *testing.T, s *Server) *asker { return overHTTP(t, serve(t, s)+"/mcp") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := &far{execute: f.execute}
			s := newServer(t, Config{Version: "v"}, mine)
			test(t, mine, s, connect(t, s))
		})
	}
}

// The call goes on while its client fetches answers: several questions at once, several rounds, missing answers.
func TestParkedCall(t *testing.T) {
	t.Parallel()
	f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
		first, err := e.Ask(ctx, []tool.Question{elicitation("one"), {Method: tool.MethodRoots}})
		if err != nil {
			return tool.Reply{}, err
		}
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":2}`)})
		second, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodSample, Params: json.RawMessage(`{"maxTokens":1.0}`)}})
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
			!strings.HasSuffix(got[1], `,"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"needs_input"},`+serverInfoMember+`}}}`) {
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
			`"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"},%s},"resultType":"complete"}}`, c.id+1, serverInfoMember)
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
			if got := fmt.Sprint(r["status_transitions"]); strings.Count(got, "needs_input") != 2 || r["status"] != "succeeded" {
				t.Errorf("transitions %s", got)
			}
		}
	})
}

// passing is a tool of a server of 2026-07-28 that needs two rounds.
func passing(seen chan<- string) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		state, _ := rawjson.Get(e.Params, "requestState")
		responses, _ := rawjson.Get(e.Params, "inputResponses")
		seen <- string(state) + string(responses)
		reply := tool.Reply{NeedsInput: true, Mapping: tool.ExternalMapping{Source: "mcp", Role: "upstream", ProtocolVersion: "2026-07-28"}}
		switch string(state) {
		case "":
			reply.Result = json.RawMessage(`{"x":1e400,"inputRequests":{"a":{"method":"elicitation/create","y":1,"params":{"mode":"url","url":"u","message":"go"}},` +
				`"b":{"method":"roots/list"}},"requestState":"\u0061<","resultType":"input_required"}`)
		case `"\u0061<"`:
			reply.Result = json.RawMessage(`{"resultType":"input_required","requestState":"second"}`)
		default:
			reply.NeedsInput, reply.Result = false, json.RawMessage(`{"content":[],"resultType":"complete"}`)
		}
		return reply, nil
	}
}

func TestInputRequiredPassesThrough(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"stdio", "http"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 10)
			f := &far{execute: passing(seen)}
			s := newServer(t, Config{Version: "v"}, f)
			c := overStdio(t, s)
			if door == "http" {
				c = overHTTP(t, serve(t, s)+"/mcp")
			}
			got := c.call("mcp.s.echo", `{}`, "")
			asked, with := input(t, got)
			if asked != `{"a":{"method":"elicitation/create","y":1,"params":{"mode":"url","url":"u","message":"[s] go"}},"b":{"method":"roots/list"}}` ||
				!strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"x":1e400,"inputRequests":`) || strings.Contains(got, "u0061") {
				t.Errorf("result %s", got)
			}
			got = c.call("mcp.s.echo", `{}`, with(`{"a":{"action":"accept"},"b":{"roots":[]}}`))
			if !strings.Contains(got, `{"invocation_id":"INV","status":"needs_input"}`) {
				t.Errorf("result %s", got)
			}
			_, with = input(t, got)
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"result":{"content":[],"resultType":"complete","_meta":{"toolhub/invocation":`+
				`{"invocation_id":"INV","status":"succeeded"},%s}}}`, serverInfoMember)
			if got := c.call("mcp.s.echo", `{}`, with("")); got != want {
				t.Errorf("result %s", got)
			}
			close(seen)
			var all []string
			for one := range seen {
				all = append(all, one)
			}
			if got := strings.Join(all, " "); got != ` "\u0061<"{"a":{"action":"accept"},"b":{"roots":[]}} "second"` {
				t.Errorf("the server saw %s", got)
			}
			records := f.recordsOf(t)
			if len(records) != 1 {
				t.Errorf("%d invocations", len(records))
			}
			for _, r := range records {
				if got := fmt.Sprint(r["status_transitions"]); strings.Count(got, "needs_input") != 2 || len(r["external_mappings"].([]any)) != 6 {
					t.Errorf("invocation %v", r)
				}
			}
		})
	}
}

// needing is a tool whose server of 2026-07-28 answers so at first, and completes then.
func needing(result string) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		if _, again := rawjson.Get(e.Params, "inputResponses"); again {
			_, state := rawjson.Get(e.Params, "requestState")
			return tool.Reply{Result: json.RawMessage(fmt.Sprintf(`{"content":[],"state":%v}`, state))}, nil
		}
		return tool.Reply{Result: json.RawMessage(result), NeedsInput: true}, nil
	}
}

func TestWhatCannotPassThrough(t *testing.T) {
	t.Parallel()
	ask := func(requests string) string {
		return `{"resultType":"input_required","inputRequests":` + requests + `}`
	}
	for _, c := range []struct{ result, capabilities, want string }{
		{ask(`{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url"}}}`), `{"elicitation":{}}`,
			`"code":-32021,"message":"the server has to ask something first: client does not support roots, or did not declare it in this request",` +
				`"data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}}`},
		{ask(`{"a":{"method":"sampling/createMessage","params":{"tools":[]}}}`), `{"sampling":{}}`, `"data":{"requiredCapabilities":{"sampling":{"tools":{}}}}`},
		{ask(`{"a":{"method":"no/such"}}`), allCapabilities, `"isError":true`},
		{ask(`{"a":{"method":"elicitation/create","params":{"mode":"telepathy"}}}`), allCapabilities, `"isError":true`},
		{ask(`{"a":{"method":"roots/list"},"a":{"method":"sampling/createMessage"}}`), allCapabilities, `two members`},
		{ask(`[]`), allCapabilities, `inputRequests is no object`},
		{ask(`{"a":7}`), allCapabilities, `"isError":true`},
		{`{"resultType":"input_required"}`, allCapabilities, `neither inputRequests nor a requestState`},
		{`{"resultType":"input_required","requestState":7}`, allCapabilities, `no string`},
		{`7`, allCapabilities, `"isError":true`},
	} {
		f := &far{execute: needing(c.result)}
		s := newServer(t, Config{}, f)
		w := overStdio(t, s)
		w.capabilities = c.capabilities
		if got := w.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.result, got)
		}
		if s.Health().Waiting != 0 {
			t.Errorf("%s: the call waits", c.result)
		}
		f.recordsOf(t)
	}
}

// What a client of 2026-07-28 cannot be asked is answered for it, as it would be for any other.
func TestParkedQuestionsNeedCapabilities(t *testing.T) {
	t.Parallel()
	doors(t, &far{execute: asking(tool.Question{Method: tool.MethodRoots}, elicitation("m"))}, func(t *testing.T, _ *far, s *Server, c *asker) {
		c.capabilities = `{}`
		if got := c.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, "client does not support roots") || !strings.Contains(got, "client does not support elicitation") {
			t.Errorf("result %s", got)
		}
		c.capabilities = `{"elicitation":{}}`
		asked, with := input(t, c.call("mcp.s.echo", `{}`, ""))
		if asked != `{"q2":{"method":"elicitation/create","params":{"message":"[s] m"}}}` {
			t.Errorf("asked %s", asked)
		}
		c.capabilities = `{}`
		if got := c.call("mcp.s.echo", `{}`, with(`{}`)); !strings.Contains(got, "client does not support elicitation") {
			t.Errorf("result %s", got)
		}
	})
}

// A requestState is good for the very call that it was given for, in its time, and once.
func TestRequestStateIsBound(t *testing.T) {
	t.Parallel()
	for kind, execute := range map[string]func(context.Context, *tool.Execution) (tool.Reply, error){
		"paused": needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`),
		"parked": asking(tool.Question{Method: tool.MethodRoots}),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ann, bob := strings.Repeat("a", 16), strings.Repeat("b", 16)
			f := &far{execute: execute}
			s := newServer(t, Config{Auth: AuthConfig{Tokens: []Token{{"ann", ann}, {"bob", bob}}}}, f)
			base := serve(t, s)
			as := func(path, secret string) *asker { return overHTTP(t, base+path, "Authorization", "Bearer "+secret) }
			c := as("/mcp", ann)
			_, with := input(t, c.call("mcp.s.echo", `{"n":1}`, ""))
			_, other := input(t, c.call("mcp.s.echo", `{"n":2}`, ""))
			answer := with(`{"q1":{"roots":[]}}`)
			tampered := []byte(answer)
			tampered[len(tampered)-20] ^= 1
			refused := func(what, got, why string) {
				t.Helper()
				if !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, why) || !strings.Contains(got, "from the start") {
					t.Errorf("%s: %s", what, got)
				}
			}
			refused("tampered", c.call("mcp.s.echo", `{"n":1}`, string(tampered)), "was changed")
			refused("invented", c.call("mcp.s.echo", `{"n":1}`, `,"requestState":"x"`), "was changed")
			refused("empty", c.call("mcp.s.echo", `{"n":1}`, `,"requestState":""`), "was changed")
			refused("no string", c.call("mcp.s.echo", `{"n":1}`, `,"requestState":null`), "must be a string")
			refused("other arguments", c.call("mcp.s.echo", `{"n":1.0}`, answer), "belongs to another request")
			refused("no arguments", c.call("mcp.s.echo", `null`, answer), "belongs to another request")
			refused("other tool", c.call("mcp.s.slow", `{"n":1}`, answer), "belongs to another request")
			refused("unknown tool", c.call("nope", `{"n":1}`, answer), "belongs to another request")
			refused("other caller", as("/mcp", bob).call("mcp.s.echo", `{"n":1}`, answer), "belongs to another request")
			refused("other profile", as("/mcp/p/other", ann).call("mcp.s.echo", `{"n":1}`, answer), "belongs to another request")
			refused("other door", overStdio(t, s).call("mcp.s.echo", `{"n":1}`, answer), "belongs to another request")
			refused("another call's", c.call("mcp.s.echo", `{"n":2}`, answer), "belongs to another request")
			elsewhere := newServer(t, Config{}, &far{execute: execute})
			refused("of another hub", overStdio(t, elsewhere).call("mcp.s.echo", `{"n":1}`, answer), "was changed")
			if got := c.call("mcp.s.echo", `{"n":1}`, answer); !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("the true request: %s", got)
			}
			refused("replayed", c.call("mcp.s.echo", `{"n":1}`, answer), "was used before")
			if got := c.call("mcp.s.echo", `{"n":2}`, other(`{"q1":{}}`)); !strings.Contains(got, `"status":"succeeded"`) || strings.Contains(got, `"state":true`) {
				t.Errorf("the other call: %s", got)
			}
			if n := len(f.recordsOf(t)); n != 2 {
				t.Errorf("%d invocations", n)
			}
		})
	}
}

// Of many requests with one requestState one goes on.
func TestRequestStateIsGoodForOne(t *testing.T) {
	t.Parallel()
	f := &far{execute: asking(tool.Question{Method: tool.MethodRoots})}
	s := newServer(t, Config{}, f)
	base := serve(t, s) + "/mcp"
	_, with := input(t, overHTTP(t, base).call("mcp.s.echo", `{}`, ""))
	results := make(chan string, 10)
	var all sync.WaitGroup
	for range cap(results) {
		all.Go(func() { results <- overHTTP(t, base).call("mcp.s.echo", `{}`, with(`{"q1":{}}`)) })
	}
	all.Wait()
	close(results)
	succeeded := 0
	for got := range results {
		if strings.Contains(got, `"status":"succeeded"`) {
			succeeded++
		}
	}
	if succeeded != 1 {
		t.Errorf("%d requests went on", succeeded)
	}
}

// pipe is a client on stdio inside a bubble.
func pipe(t *testing.T, s *Server) (*asker, func() error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(t.Context(), inR, outW, "default"); _ = outW.Close() }()
	lines := make(chan string, 100)
	go func() {
		dec := json.NewDecoder(outR)
		for {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				close(lines)
				return
			}
			lines <- settle(string(line))
		}
	}()
	c := &asker{t: t, capabilities: allCapabilities, send: func(request string) []string {
		if _, err := io.WriteString(inW, request+"\n"); err != nil {
			t.Error(err)
		}
		return []string{<-lines}
	}}
	return c, func() error { _ = inW.Close(); return <-ended }
}

// waitingTools are a tool of each generation that wait for input.
func waitingTools(ended chan<- error) map[string]func(context.Context, *tool.Execution) (tool.Reply, error) {
	return map[string]func(context.Context, *tool.Execution) (tool.Reply, error){
		"paused": needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`),
		"parked": func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}})
			if ended != nil {
				ended <- context.Cause(ctx)
			}
			return answered(answers, err)
		},
		"parked, then paused": func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}})
			if err != nil {
				return tool.Reply{NeedsInput: true, Result: json.RawMessage(`{"inputRequests":{"q1":{"method":"roots/list"}}}`)}, nil
			}
			return answered(answers, err)
		},
	}
}

func TestRequestStateExpires(t *testing.T) {
	t.Parallel()
	for kind, execute := range waitingTools(nil) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &far{execute: execute}
				s := newServer(t, Config{}, f)
				c, leave := pipe(t, s)
				_, with := input(t, c.call("mcp.s.echo", `{}`, ""))
				time.Sleep(10*time.Minute - time.Second)
				synctest.Wait()
				if s.Health().Waiting != 1 {
					t.Error("the call ended before its time")
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if s.Health().Waiting != 0 {
					t.Error("the call still waits")
				}
				if got := c.call("mcp.s.echo", `{}`, with(`{"q1":{}}`)); !strings.Contains(got, "has expired") {
					t.Errorf("result %s", got)
				}
				if err := leave(); err != nil {
					t.Error(err)
				}
				for _, r := range f.recordsOf(t) {
					if r["status"] != "timed_out" {
						t.Errorf("the call ended as %v", r["status"])
					}
				}
			})
		})
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
func TestParkedCallOutlivesConnections(t *testing.T) {
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
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, base, strings.NewReader(c.request("mcp.s.echo", `{}`, with(`{"q1":{}}`))))
	for _, h := range [][2]string{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"},
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
func TestParkedQuestionIsTakenBack(t *testing.T) {
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
			for range maxRoundsOfCaller {
				input(t, first.call("mcp.s.echo", `{}`, ""))
			}
			if got := first.call("mcp.s.echo", `{}`, ""); !strings.Contains(got, `"error_class":"rate_limited"`) || !strings.Contains(got, "answer those") {
				t.Errorf("one too many: %s", got)
			}
			_, with := input(t, second.call("mcp.s.echo", `{}`, ""))
			if got := second.call("mcp.s.echo", `{}`, with(`{"q1":{}}`)); !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("another caller: %s", got)
			}
			s.Drain(t.Context())
			if n := len(f.recordsOf(t)); n != maxRoundsOfCaller+2 {
				t.Errorf("%d invocations", n)
			}
		})
	}
}

// Twenty calls of clients of 2026-07-28, over one server and with equal ids, get their own questions and results.
func TestParkedCallsDoNotCross(t *testing.T) {
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
		calling.Go(func() {
			who := fmt.Sprintf("client-%d", i)
			args := `{"who":"` + who + `"}`
			got := c.call("mcp.s.echo", args, "")
			for n := 1; n <= 3; n++ {
				asked, with := input(t, got)
				if asked != fmt.Sprintf(`{"q%d":{"method":"elicitation/create","params":{"message":"[s] %s"}}}`, n, who) {
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

func FuzzInputRequired(f *testing.F) {
	f.Add([]byte(`{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"x"}`))
	f.Add([]byte(`{"inputRequests":{"a":{"method":"roots/list"}}}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		if !rawjson.Valid(result) || !rawjson.IsObject(result) {
			return
		}
		on := &turn{peer: peer{profile: "default", hop: tool.Hop{ClientCapabilities: json.RawMessage(allCapabilities)}}, from: "s"}
		shown, _, err := inputRequired(on, result)
		if err != nil {
			return
		}
		if !rawjson.Valid(shown) {
			t.Fatalf("%s becomes %s", result, shown)
		}
		var got struct {
			InputRequests map[string]struct {
				Method string
				Params struct{ Message string }
			}
		}
		if json.Unmarshal(shown, &got) != nil {
			return
		}
		for key, q := range got.InputRequests {
			if q.Method == tool.MethodElicit && !strings.HasPrefix(q.Params.Message, "[s]") {
				t.Errorf("%s: %q does not say who asks: %s", result, key, shown)
			}
		}
	})
}

// A server that needs input of a client that has canceled its call waits for nobody.
func TestNobodyWaitsForACanceledClient(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	f := &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Reply{NeedsInput: true, Result: json.RawMessage(`{"inputRequests":{"a":{"method":"roots/list"}}}`)}, nil
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
