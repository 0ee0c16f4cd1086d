package invoke

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// TestAListOfCanceledCalls: where all calls of a list are canceled before the question leaves, nobody is asked.
func TestAListOfCanceledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Asks{}
		a.Begin()
		a.Begin() // so that the first one waits for this one
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan listAnswer, 1)
		c := &Call{Member: &Member{Asks: a}}
		go func() {
			answer <- a.ask(ctx, c, func() gate.Asked {
				return gate.Asked{Request: &policy.Request{Tool: &tool.Tool{Name: "mcp.s.t"}}, Decision: &tool.PermissionDecision{}}
			}, func() { t.Error("the question has left") })
		}()
		synctest.Wait()
		cancel()
		if got := <-answer; got.err == nil {
			t.Errorf("answered: %+v", got)
		}
		synctest.Wait()
	})
}

// TestSingleQuestionsComeInOrder: where a person wants to be asked about each call of a list, the questions leave in the order of the calls. One
// that has been canceled meanwhile holds up no other.
func TestSingleQuestionsComeInOrder(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const calls, gone = 6, 2
			a, order := &Asks{}, make(chan int, calls)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			for i := range calls {
				a.Begin()
				c := &Call{Member: &Member{Index: i, Asks: a}, Ask: func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
					if strings.Contains(string(q[0].Params), gate.AskEach) {
						cancel()
						return []tool.Answer{{Result: json.RawMessage(`{"action":"accept","content":{"answer":"ask_each"}}`)}}, nil
					}
					order <- i
					q[0].Sent()
					time.Sleep(time.Second) // for a person to answer
					return []tool.Answer{{Result: json.RawMessage(`{"action":"decline"}`)}}, nil
				}}
				of := t.Context()
				if i == gone {
					of = ctx
				}
				all.Go(func() {
					_, _ = c.ask(of, func() gate.Asked {
						return gate.Asked{Request: &policy.Request{Tool: &tool.Tool{Name: "mcp.s.t"}}, Decision: &tool.PermissionDecision{}}
					}, func() {})
				})
			}
			all.Wait()
			close(order)
			last := -1
			for i := range order {
				if i < last {
					t.Errorf("the question about call %d came after that about call %d", i, last)
				}
				last = i
			}
			if last != calls-1 {
				t.Errorf("the last question is about call %d", last)
			}
		})
	}
}
