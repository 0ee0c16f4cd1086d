package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestQuestionsReachTheClientAndBack checks that questions, results and errors pass without a byte being changed.
func TestQuestionsReachTheClientAndBack(t *testing.T) {
	t.Parallel()
	const params = `{"z":12345678901234567890,"message":"\u0061 <b>","_meta":{"x":[]},"a":1.50,"a":{}}`
	answers := []struct {
		method string
		answer tool.Answer
		want   string
	}{
		{tool.MethodElicit, tool.Answer{Result: json.RawMessage(`{"content":{"n":1.0,"é":"\u00e9"},"action":"accept"}`)},
			`{"jsonrpc":"2.0","id":%s,"result":{"content":{"n":1.0,"é":"\u00e9"},"action":"accept"}}`},
		{tool.MethodRoots, tool.Answer{Result: json.RawMessage(`{"roots":[{"uri":"file:///a"}]}`)},
			`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a"}]}}`},
		{tool.MethodSample, tool.Answer{Err: &tool.RPCError{Raw: json.RawMessage(`{"more":1,"message":"<no>","code":-1}`)}},
			`{"jsonrpc":"2.0","id":%s,"error":{"more":1,"message":"<no>","code":-1}}`},
		{tool.MethodSample, tool.Answer{Err: &tool.RPCError{Code: -1, Message: `"no"`, Data: json.RawMessage(`[1.0]`)}},
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"\"no\"","data":[1.0]}}`},
		{tool.MethodSample, tool.Answer{Result: json.RawMessage(`"text"`)},
			`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the client's answer is no JSON object"}}`},
	}
	for _, w := range askingWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			for i, one := range answers {
				id := []string{`"q\u0031"`, `7`, `"é"`, `-1`, `"last"`}[i]
				var got []tool.Question
				c := caller{name: "ann", says: everything, ask: func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
					got = append(got, q...)
					return []tool.Answer{one.answer}, nil
				}}
				all := c.answers(t, h, "ask", w.arguments(asks(id, one.method, params)))
				if want := fmt.Sprintf(one.want, id); len(all) != 1 || all[0] != want {
					t.Errorf("the server got %q\nwant %s", all, want)
				}
				if len(got) != 1 || got[0].Method != one.method || string(got[0].Params) != params || got[0].Key == "" {
					t.Errorf("asked %+v", got)
				}
			}
			if st := h.status("s"); st.Errors != 0 || st.Restarts > 1 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// TestQuestionsThatBelongToNobody checks that a question is refused at once, with the reason, where it cannot be told whose
// client is asked, and that nobody is.
func TestQuestionsThatBelongToNobody(t *testing.T) {
	t.Parallel()
	question := asks(`"q"`, tool.MethodRoots, `{}`)
	standing := `{"standing":true,` + question[1:]
	for name, c := range map[string]struct {
		way      way
		isolated bool
		alone    bool // nobody can be asked
		says     string
		want     string
	}{
		"shared stdio":          {way: way{}, want: `{"code":-32601,"message":"method not found: the client did not offer`},
		"shared sse":            {way: way{http: &upstreamtest.Options{SSE: true}}, want: `{"code":-32601,`},
		"2026 stdio":            {way: way{script: upstreamtest.Script{Modern: true}}, isolated: true, want: `{"code":-32601,`},
		"2026 http":             {way: way{script: upstreamtest.Script{Modern: true}, http: &upstreamtest.Options{}}, want: `{"code":-32601,`},
		"nobody on http":        {way: way{http: &upstreamtest.Options{}}, alone: true, want: `{"code":-32601,"message":"method not found: the client behind this call cannot`},
		"nobody on stdio":       {way: way{}, isolated: true, alone: true, want: `{"code":-32601,"message":"method not found: the client behind this call cannot`},
		"shared http, standing": {way: way{http: &upstreamtest.Options{}}, says: standing, want: `{"code":-32600,"message":"several clients share this connection`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.way.script = withAsking(c.way.script)
			cfg := c.way.config(t, "s")
			cfg.Isolated, cfg.Shared = c.isolated, !c.isolated
			h := start(t, cfg)
			if !c.isolated {
				h.ready(t, "s")
			}
			who := caller{name: "ann", says: everything, ask: func(context.Context, []tool.Question) ([]tool.Answer, error) {
				t.Error("the client was asked")
				return nil, errors.New("no")
			}}
			if c.alone {
				who.ask = nil
			}
			arguments := question
			if c.says != "" {
				arguments = c.says
			}
			all := who.answers(t, h, "ask", arguments)
			if len(all) != 1 || !strings.HasPrefix(all[0], `{"jsonrpc":"2.0","id":"q","error":`+c.want) {
				t.Errorf("the server got %q", all)
			}
		})
	}
}

// TestRequestsThatAreNoQuestions checks that pings are answered, and requests that the hub does not know are refused.
func TestRequestsThatAreNoQuestions(t *testing.T) {
	t.Parallel()
	for _, w := range askingWays()[:4] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			ann := caller{name: "ann", says: everything, ask: always(tool.Answer{Result: json.RawMessage(`{}`)})}
			if all := ann.answers(t, h, "ask", w.arguments(`{"questions":[{"method":"ping"},{"method":"no/such"}]}`)); len(all) != 2 ||
				!strings.HasSuffix(all[0], `"result":{}}`) || !strings.Contains(all[1], `"code":-32601`) {
				t.Errorf("the server got %q", all)
			}
		})
	}
}

func TestSeveralQuestionsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 5
	for _, w := range askingWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			var waiting sync.WaitGroup
			waiting.Add(n)
			ann := caller{name: "ann", says: everything, ask: func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
				tool.Sent(q)
				waiting.Done()
				waiting.Wait() // for all of them to be asked
				return []tool.Answer{{Result: q[0].Params}}, nil
			}}
			var questions []string
			for i := range n {
				questions = append(questions, fmt.Sprintf(`{"id":%d,"method":"elicitation/create","params":{"n":%d}}`, i, i))
			}
			all := ann.answers(t, h, "ask", w.arguments(`{"questions":[`+strings.Join(questions, ",")+`]}`))
			for i := range n {
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"n":%d}}`, i, i); len(all) != n || all[i] != want {
					t.Fatalf("the server got %q, want %s", all, want)
				}
			}
		})
	}
}

// TestFloodOfQuestions checks that a server which asks without end is refused, and that the call goes on.
func TestFloodOfQuestions(t *testing.T) {
	t.Parallel()
	const flood, limit = 100, 16
	for _, w := range askingWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			p := newPerson()
			ann := caller{name: "ann", says: everything, ask: p.ask}
			one := `{"method":"elicitation/create","params":{}}`
			flooded := make(chan []string, 1)
			go func() {
				flooded <- ann.answers(t, h, "ask", w.arguments(`{"questions":[`+one+strings.Repeat(","+one, flood-1)+`]}`))
			}()
			for range limit {
				<-p.asked
			}
			byStream := !strings.Contains(w.name, "isolated")
			if byStream {
				// Elsewhere this second call could be taken for the one that asks.
				eventually(t, "the others are refused", func() bool {
					return len(ann.answers(t, h, "answers", `{}`)) == flood-limit
				})
			}
			answered := limit
			for range limit {
				p.release <- tool.Answer{Result: json.RawMessage(`{}`)}
			}
			var all string
			for all == "" {
				select {
				case got := <-flooded:
					all = strings.Join(got, "\n")
				case <-p.asked: // there was room again before all had come
					answered++
					p.release <- tool.Answer{Result: json.RawMessage(`{}`)}
				}
			}
			if strings.Count(all, `"message":"too many questions of the server are open`) != flood-answered ||
				strings.Count(all, `"result":{}`) != answered || byStream && answered > flood/2 {
				t.Errorf("%d were asked; the server got %s", answered, all)
			}
		})
	}
}

// TestServerWithdrawsItsQuestion checks that the client is told, and that the answer is not sent.
func TestServerWithdrawsItsQuestion(t *testing.T) {
	t.Parallel()
	for _, w := range askingWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			p := newPerson()
			ann := caller{name: "ann", says: everything, ask: p.ask}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := ann.call(ctx, h, "ask", w.arguments(asks(`"\u0071"`, tool.MethodElicit, `{}`)))
				ended <- err
			}()
			<-p.asked
			if _, err := ann.call(t.Context(), h, "withdraw", `{"id":"q"}`); err != nil {
				t.Fatal(err)
			}
			if err := <-p.left; !errors.Is(err, context.Canceled) {
				t.Errorf("the asking ended with %v", err)
			}
			if all := ann.answers(t, h, "answers", `{}`); len(all) != 0 {
				t.Errorf("the server got %q", all)
			}
			cancel()
			if f := failure(t, <-ended); f.Class != tool.ClassCanceled {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// TestCallEndsBeforeItsQuestion checks that a question ends with its call, whoever ends that.
func TestCallEndsBeforeItsQuestion(t *testing.T) {
	t.Parallel()
	for _, w := range askingWays() {
		for _, by := range []string{"client", "server"} {
			t.Run(w.name+" by "+by, func(t *testing.T) {
				t.Parallel()
				h := w.start(t, nil)
				p := newPerson()
				ann := caller{name: "ann", says: everything, ask: p.ask}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				arguments := w.arguments(asks(`"q"`, tool.MethodElicit, `{}`))
				if by == "server" {
					arguments = `{"leave":true,` + arguments[1:]
				}
				ended := make(chan error, 1)
				go func() {
					_, err := ann.call(ctx, h, "ask", arguments)
					ended <- err
				}()
				if by == "client" {
					<-p.asked
					cancel()
					if f := failure(t, <-ended); f.Class != tool.ClassCanceled {
						t.Errorf("failure %+v", f)
					}
					if err := <-p.left; !errors.Is(err, context.Canceled) {
						t.Errorf("the asking ended with %v", err)
					}
				} else if err := <-ended; err != nil {
					t.Error(err)
				}
				// On a stream of its own the question may come while the next call looks, of which nobody can be asked.
				want := regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":"q","error":\{"code":-3260[01],"message":"`)
				eventually(t, "the server is told", func() bool {
					all := ann.answers(t, h, "answers", `{}`)
					return len(all) == 1 && want.MatchString(all[0])
				})
			})
		}
	}
}

// TestServerDiesWhileItAsks checks that the asking ends, and that the call is not sent again.
func TestServerDiesWhileItAsks(t *testing.T) {
	t.Parallel()
	for _, w := range askingWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var far *upstreamtest.Handler
			h := w.start(t, func(c *upstream.ServerConfig) {
				if w.http != nil && !w.http.SSE {
					o := *w.http
					o.Script = withAsking(upstreamtest.Script{})
					isolated := c.Isolated
					*c, far = overHTTP(t, "s", o)
					c.Isolated = isolated
				}
			})
			p := newPerson()
			ann := caller{name: "ann", says: everything, ask: p.ask}
			ended := make(chan error, 1)
			go func() {
				_, err := ann.call(t.Context(), h, "ask", w.arguments(asks(`"q"`, tool.MethodElicit, `{}`)))
				ended <- err
			}()
			<-p.asked
			if far != nil {
				far.Close()
			} else {
				_, _ = ann.call(t.Context(), h, "die", `{}`)
			}
			if err := <-p.left; !errors.Is(err, context.Canceled) {
				t.Errorf("the asking ended with %v", err)
			}
			if f := failure(t, <-ended); f.Code != "connection_lost" || !f.OutcomeUnknown {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// TestConcurrentCallsAreAskedApart checks that on one connection that clients share each is asked what its own calls ask,
// and nothing else.
func TestConcurrentCallsAreAskedApart(t *testing.T) {
	t.Parallel()
	h := askingWay{http: &upstreamtest.Options{}}.start(t, nil)
	var asked atomic.Int64
	var all sync.WaitGroup
	for client := range 2 {
		for n := range 30 { // and two questions each: fewer than may be open on one connection, if all come at once
			all.Go(func() {
				mine := fmt.Sprintf(`{"client":%d,"n":%d}`, client, n)
				who := caller{name: fmt.Sprint(client), says: everything}
				who.ask = func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
					asked.Add(1)
					if string(q[0].Params) != mine {
						t.Errorf("asked %s instead of %s", q[0].Params, mine)
					}
					return []tool.Answer{{Result: json.RawMessage(mine)}}, nil
				}
				one := `{"method":"elicitation/create","params":` + mine + `}`
				reply, err := who.call(t.Context(), h, "ask", `{"questions":[`+one+`,`+one+`]}`)
				if err != nil || strings.Count(string(reply.Result), `"result":`+mine) != 2 {
					t.Errorf("reply %s, %v", reply.Result, err)
				}
			})
		}
	}
	all.Wait()
	if asked.Load() != 2*30*2 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestSessionsAreAskedApart checks that the server's copies for two sessions ask their own client each.
func TestSessionsAreAskedApart(t *testing.T) {
	t.Parallel()
	for _, w := range askingWays()[:4] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := w.start(t, nil)
			var all sync.WaitGroup
			for _, name := range []string{"ann", "bob"} {
				who := caller{name: name, says: everything, ask: always(tool.Answer{Result: json.RawMessage(`{"I":"` + name + `"}`)})}
				all.Go(func() {
					for range 10 {
						// The fake's ids are its own, so that on stdio both sessions use the same ones.
						got, err := who.call(t.Context(), h, "ask", w.arguments(`{"questions":[{"method":"roots/list"}]}`))
						if err != nil || !w.standing && !strings.Contains(string(got.Result), `"I":"`+name) {
							t.Errorf("%s: %s, %v", name, got.Result, err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestServerAsksAtOnce checks servers that ask for roots as soon as they are initialised: on a connection of one client's
// own the call that it was made for answers. A server that is shared is isolated for that.
func TestServerAsksAtOnce(t *testing.T) {
	t.Parallel()
	early := withAsking(upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.AsksEarly}})
	roots := tool.Answer{Result: json.RawMessage(`{"roots":[{"uri":"file:///ann"}]}`)}
	for name, c := range map[string]struct {
		isolated bool
		ask      tool.Asker
		want     string
	}{
		"isolated":            {true, always(roots), `{"jsonrpc":"2.0","id":"early","result":{"roots":[{"uri":"file:///ann"}]}}`},
		"isolated, but alone": {true, nil, `{"jsonrpc":"2.0","id":"early","error":{"code":-32601,`},
		"shared":              {false, always(roots), `{"jsonrpc":"2.0","id":"early","result":{"roots":[{"uri":"file:///ann"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := stdio("s", early)
			cfg.Isolated = c.isolated
			h := start(t, cfg)
			ann := caller{name: "ann", says: everything, ask: c.ask}
			if all := ann.answers(t, h, "answers", `{"wait":"early"}`); len(all) != 1 || !strings.HasPrefix(all[0], c.want) {
				t.Errorf("the server is answered %q", all)
			}
		})
	}
}

// TestSDKDoesNotAnswerForTheClient checks the stream of initialize itself.
func TestSDKDoesNotAnswerForTheClient(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 1)
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		switch {
		case strings.Contains(string(body), `"id":"early"`):
			answers <- string(body)
			w.WriteHeader(http.StatusAccepted)
			return true
		case strings.Contains(string(body), `"method":"initialize"`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"early\",\"method\":\"roots/list\"}\n\n")
			w.(http.Flusher).Flush()
		}
		return false
	}})
	start(t, cfg)
	if got := <-answers; !strings.Contains(got, `-32601`) || strings.Contains(got, `"roots"`) {
		t.Errorf("answered %s", got)
	}
}
