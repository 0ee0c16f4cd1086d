package downstream

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A requestState is good for the very call that it was given for, in its time, and once.
func TestRequestStateIsBound(t *testing.T) {
	t.Parallel()
	for kind, execute := range map[string]func(context.Context, *tool.Execution) (tool.Reply, error){
		"repeated":  needing(`{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}}}`),
		"suspended": asking(tool.Question{Method: tool.MethodRoots}),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ann, bob := strings.Repeat("a", 16), strings.Repeat("b", 16)
			f := &far{execute: execute}
			s := newServer(t, Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann},
				{Name: "bob", Secret: bob}}}}, f)
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
				if !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, why) ||
					!strings.Contains(got, "from the start") {
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
			refused("other profile", as("/mcp/p/other", ann).call("mcp.s.echo", `{"n":1}`, answer),
				"belongs to another request")
			refused("other door", overStdio(t, s).call("mcp.s.echo", `{"n":1}`, answer), "belongs to another request")
			refused("another call's", c.call("mcp.s.echo", `{"n":2}`, answer), "belongs to another request")
			elsewhere := newServer(t, Config{}, &far{execute: execute})
			refused("of another hub", overStdio(t, elsewhere).call("mcp.s.echo", `{"n":1}`, answer), "was changed")
			if got := c.call("mcp.s.echo", `{"n":1}`, answer); !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("the true request: %s", got)
			}
			refused("replayed", c.call("mcp.s.echo", `{"n":1}`, answer), "was used before")
			if got := c.call("mcp.s.echo", `{"n":2}`, other(`{"q1":{}}`)); !strings.Contains(got,
				`"status":"succeeded"`) ||
				strings.Contains(got, `"state":true`) {
				t.Errorf("the other call: %s", got)
			}
			ended := map[any]int{}
			for _, r := range f.recordsOf(t) {
				ended[r["status"]]++
			}
			if len(ended) != 2 || ended["succeeded"] != 2 || ended["validation_failed"] != 13 {
				t.Errorf("invocations: %v", ended)
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
				ended := map[any]int{}
				for _, r := range f.recordsOf(t) {
					ended[r["status"]]++
				}
				// the call, and the retry
				if len(ended) != 2 || ended["timed_out"] != 1 || ended["validation_failed"] != 1 {
					t.Errorf("the calls ended as %v", ended)
				}
			})
		})
	}
}
