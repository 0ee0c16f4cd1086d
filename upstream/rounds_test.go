package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// modernWays reach a server of 2026-07-28.
func modernWays() []way {
	modern := withAsking(upstreamtest.Script{Modern: true})
	return []way{
		{name: "stdio", script: modern},
		{name: "http stream", script: modern, http: &upstreamtest.Options{}},
		{name: "http json", script: modern, http: &upstreamtest.Options{JSON: true}},
	}
}

func startWay(t testing.TB, w way, change func(*upstream.ServerConfig)) *harness {
	t.Helper()
	cfg := w.config(t, "s")
	if change != nil {
		change(&cfg)
	}
	h := start(t, cfg)
	h.ready(t, "s")
	return h
}

// rounds are the arguments of the tool rounds.
func rounds(key string, results ...string) string {
	return fmt.Sprintf(`{"key":%q,"results":[%s]}`, key, strings.Join(results, ","))
}

// received are the params of each round, as the tool rounds reports them.
func received(t testing.TB, result json.RawMessage) (all []string) {
	t.Helper()
	content, _ := rawjson.Get(result, "structuredContent")
	list, ok := rawjson.Get(content, "received")
	if !ok {
		t.Fatalf("result %s", result)
	}
	_ = rawjson.Elements(list, func(one []byte) bool {
		all = append(all, string(one))
		return true
	})
	return all
}

// without is object without one member.
func without(t testing.TB, object, name string) string {
	t.Helper()
	out, _, err := rawjson.Delete([]byte(object), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestRoundsWithAClientThatIsAsked checks what both sides see of a call that takes three rounds: the questions all at once,
// in their order; the answers under the server's keys; the latest state only; everything else as it was.
func TestRoundsWithAClientThatIsAsked(t *testing.T) {
	t.Parallel()
	for _, w := range modernWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, w, nil)
			var asked [][]tool.Question
			ann := caller{name: "ann", says: everything, ask: func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
				asked = append(asked, q)
				all := make([]tool.Answer, len(q))
				for i := range q {
					all[i].Result = fmt.Appendf(nil, `{"n":1.0,"round":%d,"i":%d}`, len(asked), i)
				}
				return all, nil
			}}
			arguments := rounds("k",
				`{"resultType":"input_required","requestState":"s\u0031","inputRequests":{"\u0062":{"method":"elicitation/create","params":{"z":1.50,"a":12345678901234567890}},`+
					`"a":{"method":"roots/list"}}}`,
				`{"resultType":"input_required","requestState":"s2"}`,
				`{"resultType":"input_required","inputRequests":{"c":{"params":{},"method":"sampling/createMessage"}}}`)
			x := ann.execution("rounds", arguments)
			x.Params = json.RawMessage(`{"future":[1.0],"name":"x","arguments":{},"é":2,"requestState":"stray"}`)
			reply, err := h.Execute(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			all := received(t, reply.Result)
			if reply.NeedsInput || len(all) != 4 || len(asked) != 2 {
				t.Fatalf("%d rounds, asked %d times: %+v", len(all), len(asked), reply)
			}
			plain := `{"future":[1.0],"name":"rounds","arguments":` + arguments + `,"é":2`
			for i, want := range []string{
				plain + `,"requestState":"stray"}`,
				plain + `,"inputResponses":{"\u0062":{"n":1.0,"round":1,"i":0},"a":{"n":1.0,"round":1,"i":1}},"requestState":"s\u0031"}`,
				plain + `,"requestState":"s2"}`,
				plain + `,"inputResponses":{"c":{"n":1.0,"round":2,"i":0}}}`,
			} {
				if got := without(t, all[i], "_meta"); got != want {
					t.Errorf("round %d\n got %s\nwant %s", i, got, want)
				}
			}
			tokens := map[string]bool{}
			for _, params := range all {
				meta, _ := rawjson.Get([]byte(params), "_meta")
				token, _ := rawjson.Get(meta, "progressToken")
				tokens[string(token)] = true
				offered, _ := rawjson.Get(meta, "io.modelcontextprotocol/clientCapabilities")
				if string(offered) != strings.Replace(everything, `{"listChanged":true}`, `{}`, 1) {
					t.Errorf("offered %s", offered)
				}
			}
			if len(tokens) != 4 || !tokens[reply.Mapping.JSONRPCRequestID] {
				t.Errorf("tokens %v, mapping %+v", tokens, reply.Mapping)
			}
			first := asked[0]
			if len(first) != 2 || first[0].Key != "b" || string(first[0].Params) != `{"z":1.50,"a":12345678901234567890}` ||
				first[1].Key != "a" || first[1].Method != tool.MethodRoots || first[1].Params != nil || asked[1][0].Method != tool.MethodSample {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

// TestRoundsWithAClientThatTakesThem checks that the result passes as it is, and so do the answers of the next request.
func TestRoundsWithAClientThatTakesThem(t *testing.T) {
	t.Parallel()
	for _, w := range modernWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, w, nil)
			want := `{"future":1.0,"requestState":"s","inputRequests":{"a":{"method":"elicitation/create","x":[]}},"resultType":"input_required"}`
			ann := caller{name: "ann", says: everything}
			x := ann.execution("rounds", rounds("k", want))
			x.InputByRetry = true
			reply, err := h.Execute(t.Context(), x)
			if err != nil || !reply.NeedsInput || string(reply.Result) != want {
				t.Fatalf("reply %s %v, %v", reply.Result, reply.NeedsInput, err)
			}
			x.Params = json.RawMessage(`{"requestState":"\u0073","name":"x","inputResponses":{"a":{"z":1.50,"a":12345678901234567890}},"arguments":{}}`)
			if reply, err = h.Execute(t.Context(), x); err != nil || reply.NeedsInput {
				t.Fatalf("reply %s %v, %v", reply.Result, reply.NeedsInput, err)
			}
			got := without(t, received(t, reply.Result)[1], "_meta")
			sent := strings.NewReplacer(`"name":"x"`, `"name":"rounds"`, `"arguments":{}`, `"arguments":`+string(x.Arguments))
			if want := sent.Replace(string(x.Params)); got != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
		})
	}
}

// TestRoundsThatFail checks how a call ends that cannot go on.
func TestRoundsThatFail(t *testing.T) {
	t.Parallel()
	const ask = `{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"roots/list"}}}`
	yes := tool.Answer{Result: json.RawMessage(`{}`)}
	wants := func(requests string) []string {
		return []string{`{"resultType":"input_required","requestState":"s","inputRequests":` + requests + `}`}
	}
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf(`"k%d":{"method":"roots/list"}`, i))
	}
	endless := make([]string, 20)
	for i := range endless {
		endless[i] = ask
	}
	for name, c := range map[string]struct {
		ask     tool.Asker
		passes  bool
		results []string
		class   tool.ErrorClass // "": a JSON-RPC error
		code    string
		says    string
	}{
		"refused": {ask: func(context.Context, []tool.Question) ([]tool.Answer, error) {
			return []tool.Answer{yes, {Err: &tool.RPCError{Code: -1, Message: "I will not"}}}, nil
		}, results: []string{ask}, says: "I will not"},
		"no object":      {ask: always(tool.Answer{Result: json.RawMessage(`[]`)}), results: []string{ask}, says: "no JSON object"},
		"nobody to ask":  {results: []string{ask}, class: tool.ClassCapabilityGap, code: "client_cannot_be_asked", says: "elicitation/create"},
		"client is gone": {ask: func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, errors.New("secret") }, results: []string{ask}, class: tool.ClassCanceled, code: "client_gone", says: "call again"},
		"too few answers": {ask: func(context.Context, []tool.Question) ([]tool.Answer, error) { return []tool.Answer{yes}, nil },
			results: []string{ask}, class: tool.ClassCanceled, code: "client_gone", says: "call again"},
		"endless":             {ask: always(yes), results: endless, class: tool.ClassExecutionFailed, code: "invalid_response", says: "for the 10th time"},
		"endless, state only": {results: strings.Split(strings.Repeat(`{"resultType":"input_required","requestState":"s"};`, 19)+`{}`, ";"), class: tool.ClassExecutionFailed, code: "invalid_response", says: "for the 10th time"},
		"unknown method":      {ask: always(yes), results: wants(`{"a":{"method":"tools/call"}}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: `the method "tools/call"`},
		"unknown, passed on":  {passes: true, results: wants(`{"a":{"method":"tools/call"}}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: `the method "tools/call"`},
		"no method":           {ask: always(yes), results: wants(`{"a":{}}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: `"a" names no method`},
		"no request":          {ask: always(yes), results: wants(`{"a":1}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: "no method"},
		"no map":              {ask: always(yes), results: wants(`[]`), class: tool.ClassExecutionFailed, code: "invalid_response", says: "no object"},
		"null":                {ask: always(yes), results: wants(`null`), class: tool.ClassExecutionFailed, code: "invalid_response", says: "no object"},
		"odd params":          {ask: always(yes), results: wants(`{"a":{"method":"roots/list","params":[]}}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: "params that are no object"},
		"same key":            {ask: always(yes), results: wants(`{"a":{"method":"roots/list"},"\u0061":{"method":"roots/list"}}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: `two members "a"`},
		"too many":            {ask: always(yes), results: wants(`{` + strings.Join(many, ",") + `}`), class: tool.ClassExecutionFailed, code: "invalid_response", says: "more than 16"},
		"nothing":             {ask: always(yes), results: []string{`{"resultType":"input_required"}`}, class: tool.ClassExecutionFailed, code: "invalid_response", says: "neither inputRequests nor"},
		"empty map":           {ask: always(yes), results: []string{`{"resultType":"input_required","inputRequests":{}}`}, class: tool.ClassExecutionFailed, code: "invalid_response", says: "neither inputRequests nor"},
		"odd state":           {ask: always(yes), results: []string{`{"resultType":"input_required","requestState":1}`}, class: tool.ClassExecutionFailed, code: "invalid_response", says: "no string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, modernWays()[1], nil)
			x := caller{name: "ann", says: everything, ask: c.ask}.execution("rounds", rounds("k", c.results...))
			x.InputByRetry = c.passes
			_, err := h.Execute(t.Context(), x)
			if c.class == "" {
				var rpc *tool.RPCError
				if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, c.says) {
					t.Errorf("error %v", err)
				}
				return
			}
			if f := failure(t, err); f.Class != c.class || f.Code != c.code || !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "secret") {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// TestRoundsEndWithTheCall checks that the client is not asked longer than the call may take, or somebody wants it.
func TestRoundsEndWithTheCall(t *testing.T) {
	t.Parallel()
	const ask = `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`
	for name, c := range map[string]struct {
		most  time.Duration
		end   func(t *testing.T, h *harness, cancel func())
		class tool.ErrorClass
		says  string
	}{
		"call_max": {most: 6 * time.Second, end: func(*testing.T, *harness, func()) {}, class: tool.ClassTimeout, says: "timeout_max"},
		"client":   {most: time.Minute, end: func(_ *testing.T, _ *harness, cancel func()) { cancel() }, class: tool.ClassCanceled},
		"hub": {most: time.Minute, end: func(t *testing.T, h *harness, _ func()) {
			if err := h.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}, class: tool.ClassDependencyUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, modernWays()[1], func(s *upstream.ServerConfig) {
				s.Timeouts.Call, s.Timeouts.CallMax = 6*time.Second, c.most
			})
			p := newPerson()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := caller{name: "ann", says: everything, ask: p.ask}.call(ctx, h, "rounds", rounds("k", ask))
				ended <- err
			}()
			select {
			case <-p.asked:
			case err := <-ended:
				t.Fatalf("it ended before the client was asked: %v", err)
			}
			c.end(t, h, cancel)
			if f := failure(t, <-ended); f.Class != c.class || !strings.Contains(f.Message, c.says) {
				t.Errorf("failure %+v", f)
			}
			<-p.left
		})
	}
}

func TestConcurrentRoundsAreAskedApart(t *testing.T) {
	t.Parallel()
	for _, w := range modernWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, w, nil)
			var all sync.WaitGroup
			for n := range 20 {
				mine := fmt.Sprintf(`{"n":%d}`, n)
				who := caller{name: fmt.Sprint(n), says: everything}
				who.ask = func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
					if string(q[0].Params) != mine {
						t.Errorf("asked %s instead of %s", q[0].Params, mine)
					}
					return []tool.Answer{{Result: json.RawMessage(mine)}}, nil
				}
				one := `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":` + mine + `}}}`
				all.Go(func() {
					reply, err := who.call(t.Context(), h, "rounds", rounds(mine, one, one))
					if err != nil || strings.Count(string(reply.Result), `"inputResponses":{"a":`+mine) != 2 {
						t.Errorf("reply %s, %v", reply.Result, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestRequestSaysWhatItsClientCan checks the capabilities in each request to a server of 2026-07-28.
func TestRequestSaysWhatItsClientCan(t *testing.T) {
	t.Parallel()
	const says = `{"z":{"n":1.0},"tasks":{},"roots":{"a":[],"listChanged":true},"extensions":{"a/b":{}},"sampling":{"tools":{}},"elicitation":{}}`
	const said = `{"z":{"n":1.0},"roots":{"a":[]},"extensions":{"a/b":{}},"sampling":{"tools":{}},"elicitation":{}}`
	for name, c := range map[string]struct {
		says   string
		ask    tool.Asker
		passes bool
		want   string
	}{
		"asked":         {says: says, ask: always(tool.Answer{}), want: said},
		"takes rounds":  {says: says, passes: true, want: said},
		"never asked":   {says: says, want: `{"z":{"n":1.0},"extensions":{"a/b":{}}}`},
		"says nothing":  {ask: always(tool.Answer{}), want: `{}`},
		"says nonsense": {says: `[1]`, ask: always(tool.Answer{}), want: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startWay(t, modernWays()[0], nil)
			x := caller{name: "ann", says: c.says, ask: c.ask}.execution("echo", `{}`)
			x.InputByRetry = c.passes
			reply, err := h.Execute(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			if want := `"io.modelcontextprotocol/clientCapabilities":` + c.want + `}`; !strings.Contains(string(reply.Result), want) {
				t.Errorf("sent %s\nwant %s", reply.Result, want)
			}
		})
	}
}
