package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// everything is what a client says of itself that can be asked for anything.
const everything = `{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`

// caller makes calls for one client.
type caller struct {
	name string
	says string // its capabilities
	ask  tool.Asker
}

func (c caller) execution(native, arguments string) *tool.Execution {
	x := execution("s", native, arguments)
	x.Ask, x.Session = c.ask, tool.Session{Key: "test/" + c.name, Name: c.name}
	if c.says != "" {
		x.Hop.ClientCapabilities = json.RawMessage(c.says)
	}
	return x
}

func (c caller) call(ctx context.Context, h *harness, native, arguments string) (tool.Reply, error) {
	return h.Execute(ctx, c.execution(native, arguments))
}

// answers calls a tool that tells what questions were answered with.
func (c caller) answers(t testing.TB, h *harness, native, arguments string) (all []string) {
	t.Helper()
	if native == "answers" && !strings.Contains(arguments, `"wait":`) {
		c.ask = nil // so that no question of another call goes to this one
	}
	reply, err := c.call(t.Context(), h, native, arguments)
	if err != nil {
		t.Fatalf("%s calls %s: %v", c.name, native, err)
	}
	content, _ := rawjson.Get(reply.Result, "structuredContent")
	list, ok := rawjson.Get(content, "answers")
	if !ok {
		t.Fatalf("result %s", reply.Result)
	}
	_ = rawjson.Elements(list, func(one []byte) bool {
		all = append(all, string(one))
		return true
	})
	return all
}

// always answers everything the same.
func always(a tool.Answer) tool.Asker {
	return func(_ context.Context, questions []tool.Question) ([]tool.Answer, error) {
		all := make([]tool.Answer, len(questions))
		for i := range all {
			all[i] = a
		}
		return all, nil
	}
}

// person answers questions when the test says so.
type person struct {
	asked   chan tool.Question
	release chan tool.Answer
	left    chan error // why the asking ended without an answer
}

func newPerson() *person {
	return &person{asked: make(chan tool.Question, 1000), release: make(chan tool.Answer), left: make(chan error, 1000)}
}

func (p *person) ask(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
	tool.Sent(questions)
	p.asked <- questions[0]
	select {
	case a := <-p.release:
		return []tool.Answer{a}, nil
	case <-ctx.Done():
		p.left <- ctx.Err()
		return nil, ctx.Err()
	}
}

func withAsking(s upstreamtest.Script) upstreamtest.Script {
	for _, name := range []string{"ask", "withdraw", "answers", "rounds"} {
		s.Tools = append(s.Tools, upstreamtest.Tool(name))
	}
	s.Tools = append(s.Tools, upstreamtest.DefaultTools()...)
	return s
}

// asks are the arguments of the tool ask for one question.
func asks(id, method, params string) string {
	return fmt.Sprintf(`{"questions":[{"id":%s,"method":%q,"params":%s}]}`, id, method, params)
}

// askingWay is a way to reach a server of up to 2025-11-25 that may ask.
type askingWay struct {
	name     string
	isolated bool
	http     *upstreamtest.Options
	standing bool // the question comes on the stream that is no call's
}

func askingWays() []askingWay {
	return []askingWay{
		{name: "stdio isolated", isolated: true},
		{name: "sse isolated", isolated: true, http: &upstreamtest.Options{SSE: true}},
		{name: "http isolated", isolated: true, http: &upstreamtest.Options{}},
		{name: "http isolated standing", isolated: true, http: &upstreamtest.Options{}, standing: true},
		{name: "http shared", http: &upstreamtest.Options{}},
		{name: "http shared ids", http: &upstreamtest.Options{EventIDs: true}},
		{name: "http shared cut", http: &upstreamtest.Options{EventIDs: true, Cut: true}},
	}
}

func (w askingWay) start(t testing.TB, change func(*upstream.ServerConfig)) *harness {
	t.Helper()
	cfg := way{script: withAsking(upstreamtest.Script{}), http: w.http}.config(t, "s")
	cfg.Isolated = w.isolated
	if change != nil {
		change(&cfg)
	}
	h := start(t, cfg)
	if !w.isolated || w.http != nil {
		h.ready(t, "s")
	}
	return h
}

// arguments are those of the tool ask, this way.
func (w askingWay) arguments(more string) string {
	if w.standing {
		more = `{"standing":true,` + more[1:]
	}
	return more
}
