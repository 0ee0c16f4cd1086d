package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// forwardedRequests are a prompt and a resource of the server a that clients ask for, and what the
// server is asked for then.
func forwardedRequests() map[string]struct{ params, native string } {
	return map[string]struct{ params, native string }{
		tool.MethodPromptsGet:    {`"name":"mcp.a.greet"`, `"name":"greet"`},
		tool.MethodResourcesRead: {`"uri":"toolhub://a/file:///both"`, `"uri":"file:///both"`},
	}
}

// onForwarded runs test for both methods over both wires.
func onForwarded(t *testing.T, v func() *servers, test func(t *testing.T, c *asker, s *Server, method, params,
	native string)) {
	t.Helper()
	for method, e := range forwardedRequests() {
		for _, door := range []string{"stdio", "http"} {
			t.Run(method+"/"+door, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, Config{Version: "v"}, behind(v()))
				c := overStdio(t, s)
				if door == "http" {
					c = overHTTP(t, serve(t, s)+"/mcp")
				}
				test(t, c, s, method, e.params, e.native)
			})
		}
	}
}

// ofModern is a reply of a server of 2026-07-28.
func ofModern(result string, needsInput bool) tool.Reply {
	return tool.Reply{Result: json.RawMessage(result), NeedsInput: needsInput,
		Mapping: tool.ExternalMapping{ProtocolVersion: modernVersion}}
}

// Several rounds of a server of 2026-07-28: with questions and a state, with a state alone, with questions alone.
func TestForwardedRequestInRounds(t *testing.T) {
	t.Parallel()
	v := func() *servers {
		return &servers{forward: func(_ context.Context, r *tool.Request) (tool.Reply, error) {
			state, _ := rawjson.Get(r.Params, "requestState")
			responses, _ := rawjson.Get(r.Params, "inputResponses")
			if !r.InputByRetry || r.Ask == nil || string(r.Hop.ClientCapabilities) != allCapabilities {
				t.Errorf("the request goes on as %+v", r)
			}
			r.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
			switch {
			case string(state) == `"\u0061<"`:
				return ofModern(`{"resultType":"input_required","requestState":"second"}`, true), nil
			case string(state) == `"second"`:
				return ofModern(`{"resultType":"input_required","inputRequests":{"c":{"method":"roots/list"}}}`, true),
					nil
			case responses != nil:
				params, _, _ := rawjson.Delete(r.Params, "_meta")
				return ofModern(`{"params":`+string(params)+`,"resultType":"complete"}`, false), nil
			}
			return ofModern(`{"x":1e400,"requestState":"\u0061<","inputRequests":{"a":{"method":"elicitation/create","y":1,"params":`+
				`{"mode":"url","url":"u","message":"go"}},"b":{"method":"roots/list"}},"resultType":"input_required","requestState":"\u0061<",`+
				`"_meta":{"io.modelcontextprotocol/serverInfo":{},"mine":1}}`, true), nil
		}}
	}
	onForwarded(t, v, func(t *testing.T, c *asker, s *Server, method, params, native string) {
		got := c.send(c.requestOf(method, params))
		if len(got) != 2 ||
			got[0] != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1}}` {
			t.Fatalf("got %v", got)
		}
		asked, with := input(t, got[1])
		before, after, _ := strings.Cut(got[1], `"requestState":`)
		if before != `{"jsonrpc":"2.0","id":1,"result":{"x":1e400,` || strings.Contains(got[1], "u0061") ||
			!strings.HasSuffix(after, `"resultType":"input_required","_meta":{"mine":1,`+serverInfoMember+`}}}`) {
			t.Errorf("result %s", got[1])
		}
		if asked != `{"a":{"method":"elicitation/create","y":1,"params":{"mode":"url","url":"u","message":"[a] go"}},"b":{"method":"roots/list"}}` {
			t.Errorf("asked %s", asked)
		}
		if s.Health().Waiting != 1 {
			t.Errorf("%d requests wait", s.Health().Waiting)
		}
		second := c.ask(method, params+with(`{"a":{"action":"accept"},"b":{"roots":[]}}`))
		if strings.Contains(second, "second") || strings.Contains(second, "inputRequests") ||
			strings.Contains(second, "ttlMs") {
			t.Errorf("result %s", second)
		}
		_, with = input(t, second)
		asked, with = input(t, c.ask(method, params+with("")))
		if asked != `{"c":{"method":"roots/list"}}` {
			t.Errorf("asked %s", asked)
		}
		hints := ""
		if method == tool.MethodResourcesRead {
			hints = `,"ttlMs":0,"cacheScope":"private"`
		}
		want := `{"jsonrpc":"2.0","id":4,"result":{"params":{` + native +
			`,"inputResponses":{"c":{"big":1e400}}},"resultType":"complete"` +
			hints + `,"_meta":{` + serverInfoMember + `}}}`
		if got := c.ask(method, params+with(`{"c":{"big":1e400}}`)); got != want {
			t.Errorf("result %s\nwant   %s", got, want)
		}
		if s.Health().Waiting != 0 {
			t.Errorf("%d requests wait", s.Health().Waiting)
		}
	})
}

// A server up to 2025-11-25 asks twice while it works on one request: the request waits for each answer.
func TestSuspendedRequest(t *testing.T) {
	t.Parallel()
	v := func() *servers {
		var requests atomic.Int64
		return &servers{forward: func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
			if requests.Add(1) > 1 {
				t.Error("the request was sent again")
			}
			first, err := r.Ask(ctx, []tool.Question{elicitation("one"), {Method: tool.MethodRoots}})
			if err != nil {
				return tool.Reply{}, err
			}
			r.Progress(tool.Progress{Params: json.RawMessage(`{"progress":2}`)})
			second, err := r.Ask(ctx, []tool.Question{{Method: tool.MethodSample,
				Params: json.RawMessage(`{"maxTokens":1.0}`)}})
			return answered(append(first, second...), err)
		}}
	}
	onForwarded(t, v, func(t *testing.T, c *asker, s *Server, method, params, _ string) {
		got := c.ask(method, params)
		asked, with := input(t, got)
		if !strings.HasPrefix(got,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{`) ||
			!strings.HasSuffix(got, `","_meta":{`+serverInfoMember+`}}}`) {
			t.Errorf("result %s", got)
		}
		elicit := `"q1":{"method":"elicitation/create","params":{"message":"[a] one"}}`
		if asked != `{`+elicit+`,"q2":{"method":"roots/list"}}` {
			t.Errorf("asked %s", asked)
		}
		asked, with = input(t, c.ask(method, params+with(`{"q2":{"roots":[]}}`)))
		if asked != `{`+elicit+`}` {
			t.Errorf("asked again %s", asked)
		}
		all := c.send(c.requestOf(method, params+with(`{"q1":{"action":"accept","big":1e400}}`)))
		if len(all) != 2 ||
			all[0] != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":3}}` {
			t.Errorf("got %v", all)
		}
		asked, with = input(t, all[len(all)-1])
		if asked != `{"q3":{"method":"sampling/createMessage","params":{"maxTokens":1.0}}}` {
			t.Errorf("asked %s", asked)
		}
		hints := ""
		if method == tool.MethodResourcesRead {
			hints = `"ttlMs":0,"cacheScope":"private",`
		}
		want := `{"jsonrpc":"2.0","id":4,"result":{"content":[],"answers":[{"action":"accept","big":1e400},{"roots":[]},{"z":1}],` + hints +
			`"resultType":"complete","_meta":{` + serverInfoMember + `}}}`
		if got := c.ask(method, params+with(`{"q3":{"z":1}}`)); got != want {
			t.Errorf("result %s\nwant   %s", got, want)
		}
		if s.Health().Waiting != 0 {
			t.Errorf("%d requests wait", s.Health().Waiting)
		}
	})
}

// waitingRequests are requests that a server of each generation has to ask something for.
func waitingRequests() map[string]func(context.Context, *tool.Request) (tool.Reply, error) {
	return map[string]func(context.Context, *tool.Request) (tool.Reply, error){
		"repeated": func(_ context.Context, r *tool.Request) (tool.Reply, error) {
			if state, again := rawjson.Get(r.Params, "requestState"); again {
				return ofModern(`{"done":`+string(state)+`,"resultType":"complete"}`, false), nil
			}
			return ofModern(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}},"requestState":"its own"}`, true), nil
		},
		"suspended": func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
			if _, err := r.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}); err != nil {
				return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
			}
			return tool.Reply{Result: json.RawMessage(`{"done":"its own"}`)}, nil
		},
	}
}

// A requestState is good for the very request that it was given for, in its time, and once.
func TestRequestStateOfForwardedIsBound(t *testing.T) {
	t.Parallel()
	for kind, forward := range waitingRequests() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ann, bob := strings.Repeat("a", 16), strings.Repeat("b", 16)
			f := behind(&servers{forward: forward})
			f.execute = needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`)
			s := newServer(t, Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann},
				{Name: "bob", Secret: bob}}}}, f)
			base := serve(t, s)
			as := func(path, secret string) *asker { return overHTTP(t, base+path, "Authorization", "Bearer "+secret) }
			c := as("/mcp", ann)
			const prompt, args = `"name":"mcp.a.greet"`, `,"arguments":{"a":"1","b":"2"}`
			// which the server knows as the prompt is called
			const page, sameName = `"uri":"file:///one"`, `"uri":"toolhub://a/greet"`
			given := func(method, params string) string {
				t.Helper()
				got := c.ask(method, params)
				if strings.Contains(got, "its own") {
					t.Errorf("the server's state is shown: %s", got)
				}
				_, with := input(t, got)
				return with(`{"q1":{"roots":[]}}`)
			}
			withArgs, plain, read := given(tool.MethodPromptsGet, prompt+args), given(tool.MethodPromptsGet, prompt),
				given(tool.MethodResourcesRead, page)
			_, with := input(t, c.call("mcp.s.echo", `{}`, ""))
			called := with(`{"q1":{"roots":[]}}`)
			tampered := []byte(withArgs)
			tampered[len(tampered)-20] ^= 1
			other := "belongs to another request"
			for what, r := range map[string]struct {
				as                         *asker
				method, params, state, why string
			}{
				"tampered": {c, tool.MethodPromptsGet, prompt + args, string(tampered), "was changed"},
				"the server's": {c, tool.MethodPromptsGet, prompt + args, `,"requestState":"its own"`,
					"was changed"},
				"no string": {c, tool.MethodResourcesRead, page, `,"requestState":null`, "must be a string"},
				"other arguments": {c, tool.MethodPromptsGet, prompt + `,"arguments":{"a":"1","b":"3"}`, withArgs,
					other},
				"no arguments":          {c, tool.MethodPromptsGet, prompt, withArgs, other},
				"other prompt":          {c, tool.MethodPromptsGet, `"name":"mcp.b.greet"`, plain, other},
				"other URI":             {c, tool.MethodResourcesRead, `"uri":"toolhub://a/file:///both"`, read, other},
				"other server":          {c, tool.MethodResourcesRead, `"uri":"toolhub://b/file:///one"`, read, other},
				"other method":          {c, tool.MethodResourcesRead, sameName, plain, other},
				"a tool's":              {c, tool.MethodResourcesRead, `"uri":"toolhub://s/mcp.s.echo"`, called, other},
				"a prompt's, at a tool": {c, tool.MethodToolsCall, `"name":"mcp.s.echo"`, plain, other},
				"other caller":          {as("/mcp", bob), tool.MethodPromptsGet, prompt, plain, other},
				"other profile":         {as("/mcp/p/other", ann), tool.MethodPromptsGet, prompt, plain, other},
				"other door":            {overStdio(t, s), tool.MethodPromptsGet, prompt, plain, other},
			} {
				if got := r.as.ask(r.method, r.params+r.state); !strings.Contains(got, `"code":-32602`) ||
					!strings.Contains(got, r.why) ||
					!strings.Contains(got, "from the start") {
					t.Errorf("%s: %s", what, got)
				}
			}
			for _, r := range [][3]string{
				// the same, under its other name
				{tool.MethodPromptsGet, `"name":"a__greet","arguments":{ "b":"\u0032","a":"1"}`, withArgs},
				{tool.MethodPromptsGet, prompt, plain}, {tool.MethodResourcesRead, page, read},
			} {
				if got := c.ask(r[0], r[1]+r[2]); !strings.Contains(got, `"result":{"done":"its own"`) {
					t.Errorf("the true request: %s", got)
				}
				if got := c.ask(r[0], r[1]+r[2]); !strings.Contains(got, "was used before") {
					t.Errorf("replayed: %s", got)
				}
			}
			if got := c.ask(tool.MethodToolsCall, `"name":"mcp.s.echo"`+called); !strings.Contains(got,
				`"status":"succeeded"`) {
				t.Errorf("the tool: %s", got)
			}
		})
	}
}

func TestWaitingRequestsExpire(t *testing.T) {
	t.Parallel()
	for kind, forward := range waitingRequests() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var over atomic.Bool
				s := newServer(t, Config{}, behind(&servers{forward: func(ctx context.Context,
					r *tool.Request) (tool.Reply, error) {
					defer over.Store(true)
					return forward(ctx, r)
				}}))
				c, leave := pipe(t, s)
				_, with := input(t, c.ask(tool.MethodPromptsGet, `"name":"mcp.a.greet"`))
				time.Sleep(10*time.Minute - time.Second)
				synctest.Wait()
				if s.Health().Waiting != 1 || over.Load() != (kind == "repeated") {
					t.Error("the request ended before its time")
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if s.Health().Waiting != 0 || !over.Load() {
					t.Error("the request still waits")
				}
				if got := c.ask(tool.MethodPromptsGet, `"name":"mcp.a.greet"`+with(`{"q1":{}}`)); !strings.Contains(got,
					"has expired") {
					t.Errorf("result %s", got)
				}
				if err := leave(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// However many requests wait, and however they end: whoever waits for them hears of it.
func TestWaitingRequestsEnd(t *testing.T) {
	t.Parallel()
	for kind, forward := range waitingRequests() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Config{}, behind(&servers{forward: forward}))
			first, w := overStdio(t, s), dial(t, s)
			const params = `"uri":"file:///one"`
			_, with := input(t, first.ask(tool.MethodResourcesRead, params))
			for range suspended.MaxOfCaller - 1 {
				input(t, first.ask(tool.MethodResourcesRead, params))
			}
			if got := first.ask(tool.MethodResourcesRead, params); !strings.Contains(got, `"error":{"code":-32603`) ||
				!strings.Contains(got, `"error_class":"rate_limited"`) || !strings.Contains(got, "answer those") {
				t.Errorf("one too many: %s", got)
			}
			second := &asker{t: t, capabilities: allCapabilities}
			w.send(second.requestOf(tool.MethodResourcesRead, params))
			input(t, w.next())
			_ = w.in.Close()
			if err := <-w.ended; err != nil {
				t.Error(err)
			}
			if n := s.Health().Waiting; n != suspended.MaxOfCaller {
				t.Errorf("%d wait after a client has gone", n)
			}
			s.Drain(t.Context())
			if s.Health().Waiting != 0 {
				t.Error("requests still wait")
			}
			if got := first.ask(tool.MethodResourcesRead, params+with(`{"q1":{}}`)); !strings.Contains(got,
				"the hub is stopping") {
				t.Errorf("result %s", got)
			}
		})
	}
}

func TestForwardedThatCannotAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ requests, capabilities, want string }{
		{`{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url"}}}`,
			`{"elicitation":{}}`,
			`"error":{"code":-32021,"message":"the server has to ask something first: client does not support roots, or did not declare it in ` +
				`this request","data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}},"toolhub/invocation":{"invocation_id":"`},
		{`{"a":{"method":"no/such"}}`, allCapabilities, `"error_code":"invalid_input_required"`},
		{`[]`, allCapabilities, `inputRequests is no object`},
	} {
		v := func() *servers {
			return &servers{forward: func(context.Context, *tool.Request) (tool.Reply, error) {
				return ofModern(`{"resultType":"input_required","requestState":"its own","inputRequests":`+c.requests+
					`}`, true), nil
			}}
		}
		onForwarded(t, v, func(t *testing.T, a *asker, s *Server, method, params, _ string) {
			a.capabilities = c.capabilities
			if got := a.ask(method, params); !strings.Contains(got, c.want) || strings.Contains(got, "its own") {
				t.Errorf("%s: %s", c.requests, got)
			}
			if s.Health().Waiting != 0 {
				t.Errorf("%s: the request waits", c.requests)
			}
		})
	}
	v := func() *servers {
		return &servers{forward: func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
			return answered(r.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}))
		}}
	}
	onForwarded(t, v, func(t *testing.T, a *asker, _ *Server, method, params, _ string) {
		a.capabilities = `{}`
		if got := a.ask(method, params); !strings.Contains(got, `"result":{"content":[],"answers":[`) ||
			!strings.Contains(got, "client does not support roots") {
			t.Errorf("a question of an older server: %s", got)
		}
	})
}

// What a server without result types calls input_required passes none of the hub's checks, so that it asks nobody.
func TestOlderServersNeedNoInputByResult(t *testing.T) {
	t.Parallel()
	const result = `{"resultType":"\u0069nput_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"x"}`
	reply := tool.Reply{Result: json.RawMessage(result), Mapping: tool.ExternalMapping{ProtocolVersion: "2025-11-25"}}
	f := behind(&servers{forward: func(context.Context, *tool.Request) (tool.Reply, error) { return reply, nil }})
	f.execute = func(context.Context, *tool.Execution) (tool.Reply, error) { return reply, nil }
	c := overStdio(t, newServer(t, Config{}, f))
	for method, params := range map[string]string{tool.MethodToolsCall: `"name":"mcp.s.echo"`,
		tool.MethodPromptsGet:    `"name":"mcp.a.greet"`,
		tool.MethodResourcesRead: `"uri":"file:///one"`} {
		if got := c.ask(method, params); !strings.Contains(got, `"resultType":"complete"`) ||
			strings.Contains(got, "nput_required") {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// Elicitations that an error wants first say which server asks, for every kind of request.
func TestErrorsOfForwardedRequestsAreLabelled(t *testing.T) {
	t.Parallel()
	v := &servers{forward: func(context.Context, *tool.Request) (tool.Reply, error) {
		return tool.Reply{}, &tool.RPCError{Code: tool.CodeURLElicitationRequired, Message: "m",
			Data: json.RawMessage(`{"elicitations":[{"message":"m"}]}`)}
	}}
	s := newServer(t, Config{}, behind(v))
	for _, version := range []string{"2025-11-25", modernVersion} {
		c := newClient(t, s, version, false)
		c.want("1", tool.MethodPromptsGet, `"name":"mcp.a.greet"`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m","data":{"elicitations":[{"message":"[a] m"}]}}}`,
				tool.CodeURLElicitationRequired))
	}
}

// A completion is not among what a server may need input for.
func TestCompletionsNeedNoInput(t *testing.T) {
	t.Parallel()
	v := &servers{forward: func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
		if r.InputByRetry || r.Ask != nil {
			t.Errorf("the request goes on as %+v", r)
		}
		return mirror(ctx, r)
	}}
	c := newClient(t, newServer(t, Config{}, behind(v)), modernVersion, false)
	if got := c.ask("1", tool.MethodComplete, `"ref":{"type":"ref/prompt","name":"mcp.a.greet"}`); !strings.Contains(got[0],
		`"resultType":"complete"`) {
		t.Errorf("result %v", got)
	}
}

// A panic ends the request that it happens in, and nothing else.
func TestPanicInAForwardedRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, behind(&servers{forward: func(context.Context, *tool.Request) (tool.Reply,
		error) {
		panic("far away")
	}}))
	c := overHTTP(t, serve(t, s)+"/mcp")
	for range 2 {
		if got := c.ask(tool.MethodPromptsGet, `"name":"mcp.a.greet"`); !strings.Contains(got, `"code":-32603`) ||
			strings.Contains(got, "far away") {
			t.Errorf("answered %s", got)
		}
	}
}
