package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// capable is an initialize request that declares capabilities.
func capable(version, capabilities string) string {
	return strings.Replace(fmt.Sprintf(initialize, version), `"capabilities":{}`, `"capabilities":`+capabilities, 1)
}

const allCapabilities = `{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`

// openCapable is open with capabilities.
func openCapable(t testing.TB, url, capabilities string, headers ...string) []string {
	t.Helper()
	status, h, got := post(t, url, capable("2025-11-25", capabilities), headers...)
	if status != 200 {
		t.Fatalf("initialize: %d %v", status, got)
	}
	return append(headers[:len(headers):len(headers)], headerSession, h.Get(headerSession), headerVersion, "2025-11-25")
}

// answered is a result that shows the answers.
func answered(answers []tool.Answer, err error) (tool.Reply, error) {
	if err != nil {
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: err.Error()}
	}
	out := `{"content":[],"answers":[`
	for i, a := range answers {
		if i > 0 {
			out += ","
		}
		if a.Err != nil {
			out += string(jsonrpc.ErrorText(nil, a.Err))
			continue
		}
		out += string(a.Result)
	}
	return tool.Reply{Result: json.RawMessage(out + "]}")}, nil
}

// asking is a tool that asks these questions at once and shows the answers.
func asking(questions ...tool.Question) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		return answered(e.Ask(ctx, questions))
	}
}

// questionCase is a question, as the client gets it and what it answers.
type questionCase struct {
	name     string
	question tool.Question
	shown    string // method and params
	answer   string
	lacking  map[string]string // by capabilities of a client: the error that the server gets
}

func questionCases() []questionCase {
	refused := func(code int, what string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"client does not support %s"}}`,
			code, what)
	}
	q := func(method, params string) tool.Question {
		question := tool.Question{Method: method}
		if params != "" {
			question.Params = json.RawMessage(params)
		}
		return question
	}
	return []questionCase{
		{"form", q(tool.MethodElicit,
			`{"x":1e400,"mess\u0061ge":"N\u0061me <b>?","requestedSchema":{"type":"object","properties":{}}}`),
			`"method":"elicitation/create","params":{"x":1e400,"mess\u0061ge":"[s] N\u0061me <b>?","requestedSchema":{"type":"object","properties":{}}}`,
			`{"action":"accept","content":{"n":12345678901234567890}}`,
			map[string]string{`{}`: refused(-32601, "elicitation"), `{"elicitation":{"url":{}}}`: refused(-32602,
				"elicitation of mode form")}},
		{"url", q(tool.MethodElicit, `{"mode":"url","elicitationId":"e","url":"https://x/?a&b","message":"sign in"}`),
			`"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://x/?a&b","message":"[s] sign in"}`,
			`{"action":"decline"}`,
			map[string]string{`{"roots":{}}`: refused(-32601, "elicitation"),
				`{"elicitation":{}}`:          refused(-32602, "elicitation of mode url"),
				`{"elicitation":{"form":{}}}`: refused(-32602, "elicitation of mode url")}},
		{"sampling", q(tool.MethodSample, `{"messages":[],"maxTokens":1.0,"message":"m"}`),
			`"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1.0,"message":"m"}`,
			`{"role":"assistant","z":1,"a":2}`,
			map[string]string{`{"elicitation":{}}`: refused(-32601, "sampling")}},
		{"sampling with tools", q(tool.MethodSample, `{"messages":[],"tools":[]}`),
			`"method":"sampling/createMessage","params":{"messages":[],"tools":[]}`, `{}`,
			map[string]string{`{"sampling":{}}`: refused(-32602, "sampling with tools")}},
		{"roots", q(tool.MethodRoots, ""), `"method":"roots/list"`, `{"roots":[{"uri":"file:///a"}]}`,
			map[string]string{`{"sampling":{}}`: refused(-32601, "roots")}},
	}
}

func TestQuestionsOverStdio(t *testing.T) {
	t.Parallel()
	for _, c := range questionCases() {
		for _, capabilities := range append(keys(c.lacking), allCapabilities) {
			t.Run(c.name+" "+capabilities, func(t *testing.T) {
				t.Parallel()
				w := dial(t, newServer(t, Config{}, &far{execute: asking(c.question)}))
				w.send(capable("2025-11-25", capabilities))
				w.next()
				w.send(initialized, callEcho)
				want, refused := c.lacking[capabilities]
				if !refused {
					want = c.answer
					w.want(`{"jsonrpc":"2.0","id":"toolhub-1",` + c.shown + `}`)
					w.send(`{"jsonrpc":"2.0","id":"toolhub-2","result":{"not":"asked"}}`,
						`{"jsonrpc":"2.0","id":"toolhub-1","result":`+c.answer+`}`)
				}
				w.want(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"answers":[` + want + `],` + metaOK + `}}`)
			})
		}
	}
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

func TestQuestionsOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range questionCases() {
		for _, capabilities := range append(keys(c.lacking), allCapabilities) {
			t.Run(c.name+" "+capabilities, func(t *testing.T) {
				t.Parallel()
				url := serve(t, newServer(t, Config{}, &far{execute: asking(c.question)})) + "/mcp"
				in := openCapable(t, url, capabilities)
				if want, refused := c.lacking[capabilities]; refused {
					status, _, got := post(t, url, callEcho, in...)
					wantHTTP(t, status, got, 200, `{"jsonrpc":"2.0","id":7,"result":{"content":[],"answers":[`+want+
						`],`+metaOK+`}}`)
					return
				}
				events := stream(t, http.MethodPost, url, callEcho, in...)
				if got := <-events; got != `{"jsonrpc":"2.0","id":"toolhub-1",`+c.shown+`}` {
					t.Fatalf("asked %s", got)
				}
				if status, _, got := post(t, url, `{"jsonrpc":"2.0","id":"toolhub-1","result":`+c.answer+`}`,
					in...); status != 202 || len(got) > 0 {
					t.Errorf("answer: %d %v", status, got)
				}
				if got := settle(<-events); got != `{"jsonrpc":"2.0","id":7,"result":{"content":[],"answers":[`+
					c.answer+`],`+metaOK+`}}` {
					t.Errorf("result %s", got)
				}
			})
		}
	}
}

// What the client answers with an error reaches the server as that error, and a direct view needs no label.
func TestAnswersOfClients(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"error":{"code":-1,"message":"User rejected","data":1e400,"x":1}`: `"error":{"code":-1,"message":"User rejected","data":1e400,"x":1}`,
		`"result":7`: `neither a result nor an error`,
		`"result":{},"error":{"code":1,"message":"x"}`: `neither a result nor an error`,
		`"error":"x"`: `neither a result nor an error`,
		`"x":1`:       `neither a result nor an error`,
	} {
		w := dial(t, newServer(t, Config{}, &far{execute: asking(tool.Question{Method: tool.MethodRoots})}))
		w.send(capable("2025-03-26", allCapabilities))
		w.next()
		w.send(callEcho)
		w.next()
		w.send(`{"jsonrpc":"2.0","id":"toolhub-1",` + answer + `}`)
		if got := w.next(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", answer, got)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"message":"m"}`:               `{"message":"[s] m"}`,
		`{"message":"\u005b"}`:          `{"message":"[s] \u005b"}`,
		`{"message":""}`:                `{"message":"[s] "}`,
		`{"message":"a","message":"b"}`: `{"message":"[s] b"}`,
		`{"message":7,"x":1}`:           `{"message":"[s]","x":1}`,
		`{"x":1}`:                       `{"x":1,"message":"[s]"}`,
		``:                              `{"message":"[s]"}`,
		`[]`:                            `{"message":"[s]"}`,
	} {
		q := tool.Question{Method: tool.MethodElicit, Params: json.RawMessage(params)}
		if got := labelled("s", q); string(got.Params) != want {
			t.Errorf("%s is shown as %s", params, got.Params)
		}
	}
	err := &tool.RPCError{Code: tool.CodeURLElicitationRequired,
		Data: json.RawMessage(`{"elicitations":[{"message":"m"},7]}`),
		Raw:  json.RawMessage(`{"code":-32042,"x":1e9,"data":{"elicitations":[{"message":"m"},7]}}`)}
	if got := labelledError("s",
		err); string(got.Raw) != `{"code":-32042,"x":1e9,"data":{"elicitations":[{"message":"[s] m"},7]}}` {
		t.Errorf("shown as %s", got.Raw)
	}
}

// Nobody but the client that was asked can answer.
func TestAnswersOfOthersAreDropped(t *testing.T) {
	t.Parallel()
	ann, bob := strings.Repeat("a", 16), strings.Repeat("b", 16)
	s := newServer(t, Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann}, {Name: "bob", Secret: bob}}}},
		&far{execute: asking(tool.Question{Method: tool.MethodRoots})})
	url := serve(t, s) + "/mcp"
	first := openCapable(t, url, allCapabilities, "Authorization", "Bearer "+ann)
	second := openCapable(t, url, allCapabilities, "Authorization", "Bearer "+ann)
	third := openCapable(t, url, allCapabilities, "Authorization", "Bearer "+bob)
	events := stream(t, http.MethodPost, url, callEcho, first...)
	<-events
	if got := s.Health().Asking; got != 1 {
		t.Errorf("%d questions are open", got)
	}
	reply := func(text string) string { return `{"jsonrpc":"2.0","id":"toolhub-1","result":{"from":"` + text + `"}}` }
	for name, headers := range map[string][]string{"session": second, "caller": third} {
		if status, _, _ := post(t, url, reply("another "+name), headers...); status != 202 {
			t.Errorf("another %s: status %d", name, status)
		}
	}
	stolen := append([]string{"Authorization", "Bearer " + bob}, first[2:]...)
	if status, _, _ := post(t, url, reply("a thief"), stolen...); status != 404 {
		t.Errorf("another caller in that session: status %d", status)
	}
	for _, text := range []string{reply("ann"), reply("ann again")} {
		post(t, url, text, first...)
	}
	if got := settle(<-events); !strings.Contains(got, `"answers":[{"from":"ann"}]`) {
		t.Errorf("result %s", got)
	}
	if got := s.Health().Strays; got != 3 {
		t.Errorf("%d responses were dropped", got)
	}
}

// forever is a tool that asks and tells how that ended.
func forever(ended chan<- error) func(context.Context, *tool.Execution) (tool.Reply, error) {
	return func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}, {Method: tool.MethodRoots}})
		ended <- err
		return answered(answers, err)
	}
}

const cancelledNote = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"toolhub-%d","reason":"the call that asked has ended"}}`

func TestCancelWhileAsking(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := newServer(t, Config{}, &far{execute: forever(ended)})
	w := dial(t, s)
	w.send(capable("2025-06-18", allCapabilities))
	w.next()
	w.send(callEcho)
	w.next()
	w.next()
	w.send(`{"jsonrpc":"2.0","id":"toolhub-1","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	w.want(fmt.Sprintf(cancelledNote, 2))
	if err := <-ended; err == nil {
		t.Error("the question was answered")
	}
	w.send(`{"jsonrpc":"2.0","id":"toolhub-2","result":{}}`, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":8,"result":{}}`)
	if s.Health().Strays != 1 {
		t.Errorf("%d responses were dropped", s.Health().Strays)
	}
}

// A server that answers its call without waiting for the client leaves no question behind.
func TestCallEndsWhileAsking(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan error, 1)
	s := newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		asking, stop := context.WithCancel(ctx)
		go func() {
			<-asked
			stop()
		}()
		_, err := e.Ask(asking, []tool.Question{{Method: tool.MethodRoots}})
		answer <- err
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}})
	url := serve(t, s) + "/mcp"
	in := openCapable(t, url, allCapabilities)
	events := stream(t, http.MethodPost, url, callEcho, in...)
	<-events
	close(asked)
	if got := <-events; got != fmt.Sprintf(cancelledNote, 1) {
		t.Errorf("got %s", got)
	}
	if got := settle(<-events); got != `{"jsonrpc":"2.0","id":7,"result":{"content":[],`+metaEmpty+`}}` {
		t.Errorf("got %s", got)
	}
	if err := <-answer; err == nil {
		t.Error("the question was answered")
	}
}

func TestSessionEndsWhileAsking(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	s := newServer(t, Config{}, &far{execute: forever(ended)})
	url := serve(t, s) + "/mcp"
	in := openCapable(t, url, allCapabilities)
	events := stream(t, http.MethodPost, url, callEcho, in...)
	<-events
	<-events
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set(headerSession, in[1])
	resp, err := web().Do(req)
	if err != nil || resp.StatusCode != 204 {
		t.Fatalf("DELETE: %v %v", resp, err)
	}
	resp.Body.Close()
	if err := <-ended; err == nil {
		t.Error("the question was answered")
	}
}

// A client that has closed its input can answer nothing more.
func TestInputEndsWhileAsking(t *testing.T) {
	t.Parallel()
	again := tool.Question{Method: tool.MethodRoots}
	w := dial(t, newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		if _, err := e.Ask(ctx, []tool.Question{again}); err != nil {
			return tool.Reply{}, err
		}
		return answered(e.Ask(ctx, []tool.Question{again}))
	}}))
	w.send(capable("2025-06-18", allCapabilities))
	w.next()
	w.send(callEcho)
	w.next()
	_ = w.in.Close()
	if got := w.next(); !strings.Contains(got, "the client cannot be asked") {
		t.Errorf("result %s", got)
	}
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

// Twenty clients with equal ids are asked at the same time: each gets its own question and its own result.
func TestQuestionsDoNotCross(t *testing.T) {
	t.Parallel()
	const clients = 20
	var all sync.WaitGroup // until every call has begun
	all.Add(clients)
	s := newServer(t, Config{}, &far{execute: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		all.Done()
		all.Wait()
		who, _ := rawjson.Get(e.Arguments, "who")
		question := tool.Question{Method: tool.MethodElicit, Params: json.RawMessage(`{"message":` + string(who) + `}`)}
		var last []tool.Answer
		for range 3 {
			var err error
			if last, err = e.Ask(ctx, []tool.Question{question, question}); err != nil {
				return tool.Reply{}, err
			}
		}
		return answered(last, nil)
	}})
	url := serve(t, s) + "/mcp"
	var calling sync.WaitGroup
	for i := range clients {
		who := fmt.Sprintf("client-%d", i)
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{"who":"` +
			who + `"}}}`
		question := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"toolhub-%d","method":"elicitation/create","params":{"message":"[s] %s"}}`, n, who)
		}
		reply := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"toolhub-%d","result":{"from":"%s","n":%d}}`, n, who, n)
		}
		result := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"answers":[{"from":"%s","n":5},{"from":"%s","n":6}],%s}}`, who, who, metaOK)
		var next func() string
		var send func(string)
		if i%4 == 0 {
			w := dial(t, s)
			w.send(capable("2025-11-25", allCapabilities))
			w.next()
			next, send = w.next, func(text string) { w.send(text) }
			send(call)
		} else {
			in := openCapable(t, url, allCapabilities)
			events := make(chan (<-chan string), 1)
			go func() { events <- stream(t, http.MethodPost, url, call, in...) }()
			var from <-chan string
			next = func() string {
				if from == nil {
					from = <-events
				}
				return settle(<-from)
			}
			send = func(text string) { post(t, url, text, in...) }
		}
		calling.Go(func() {
			for n := 1; n <= 6; n += 2 {
				for k := n; k < n+2; k++ {
					if got := next(); got != question(k) {
						t.Errorf("%s is asked %s", who, got)
						return
					}
				}
				send(reply(n + 1))
				send(reply(n))
			}
			if got := next(); got != result {
				t.Errorf("%s got %s", who, got)
			}
		})
	}
	calling.Wait()
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	q := &questions{series: questionPrefix}
	for range maxQuestions {
		if _, refusal := q.add(tool.Question{}); refusal != nil {
			t.Fatal("a question is refused")
		}
	}
	if _, refusal := q.add(tool.Question{}); refusal == nil {
		t.Error("there is no end of questions")
	}
	if !q.answer("toolhub-7", tool.Answer{}) || q.answer("toolhub-7", tool.Answer{}) {
		t.Error("a question is not answered, or twice")
	}
	if next, refusal := q.add(tool.Question{}); refusal != nil ||
		next[0].id != fmt.Sprintf("toolhub-%d", maxQuestions+1) || q.count() != maxQuestions {
		t.Errorf("the next question is %v, %v", next, refusal)
	}
}

// A batch is answered by one text: nobody can be asked in between.
func TestNobodyIsAskedInABatch(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{}, &far{execute: asking(tool.Question{Method: tool.MethodRoots})})) + "/mcp"
	status, h, _ := post(t, url, capable("2025-03-26", allCapabilities))
	if status != 200 {
		t.Fatal(status)
	}
	status, _, got := post(t, url, "["+callEcho+"]", headerSession, h.Get(headerSession))
	if status != 200 || !strings.Contains(got[0], "the client cannot be asked") {
		t.Errorf("%d %v", status, got)
	}
}

// recordsOf returns what the journal holds, after it was closed, each record checked against the standard's schema, and
// fails where an invocation has not exactly one result.
func (f *far) recordsOf(t *testing.T) (invocations map[string]map[string]any) {
	t.Helper()
	if err := f.journal.Close(); err != nil {
		t.Fatal(err)
	}
	invocations, results, schemas := make(map[string]map[string]any), make(map[string]int),
		make(map[string]*schema.Schema)
	err := persist.Read(f.dir, func(line json.RawMessage) bool {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Errorf("journal line %s: %v", line, err)
		}
		object := r["object"].(string)
		if _, compiled := schemas[object]; !compiled {
			schemas[object] = standardSchema(t, object)
		}
		if sch := schemas[object]; sch != nil {
			if err := sch.Validate(line); err != nil {
				t.Errorf("record %s: %v", line, err)
			}
		}
		switch id, _ := r["invocation_id"].(string); r["object"] {
		case "tool_invocation":
			invocations[id] = r
		case "tool_result":
			results[id]++
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range invocations {
		if results[id] != 1 || r["ended_at"] == nil {
			t.Errorf("invocation %s has %d results, and ended at %v", id, results[id], r["ended_at"])
		}
	}
	return invocations
}

// standardSchema is the standard's own schema of a kind of record; nil where the standard is not beside the project.
func standardSchema(t *testing.T, object string) *schema.Schema {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(object, "tool_"), "_", "-")
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "shared", "agenttool", "schemas", "agenttool-"+
		name+".schema.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
