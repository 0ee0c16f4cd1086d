package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestIdleTimeRestsWhileSomebodyIsAsked checks the clock of a call: a person who thinks does not count as a silent server,
// up to the maximum.
func TestIdleTimeRestsWhileSomebodyIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		thinks time.Duration
		ends   time.Duration
		says   string
	}{
		"answered":     {5 * time.Minute, 6 * time.Minute, "raise timeout of"},
		"not answered": {time.Hour, 10 * time.Minute, "raise timeout_max of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newMemoryWire()
				conn := testConn(w)
				defer conn.release()
				conn.sess.asked.follow(callOfClient, nil, nil, false)
				call := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, json.RawMessage("{}"))
				call.Ask = func(ctx context.Context, _ []tool.Question) ([]tool.Answer, error) {
					timer := time.NewTimer(c.thinks)
					defer timer.Stop()
					select {
					case <-timer.C:
						return []tool.Answer{{Result: json.RawMessage(`{}`)}}, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				w.in <- []byte(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
				began := time.Now()
				a := conn.sess.wait(t.Context(), call, &callLimits{idle: time.Minute, most: 10 * time.Minute})
				var f *tool.Failure
				if !errors.As(a.err, &f) || f.Class != tool.ClassTimeout || !strings.Contains(f.Message, c.says) {
					t.Errorf("answer %+v", a)
				}
				if took := time.Since(began) - settleWithin; took != c.ends { // the server does not answer the cancellation
					t.Errorf("ended after %s, want %s", took, c.ends)
				}
			})
		})
	}
}

// TestDeskTakesRootsBetweenCalls checks what comes between calls: a question for roots stays open until a call has answered it.
func TestDeskTakesRootsBetweenCalls(t *testing.T) {
	t.Parallel()
	var replies []string
	d := newServerRequests(func(body []byte) { replies = append(replies, string(body)) })
	d.follow(callOfClient, nil, nil, false)
	ask := func(id, method string) {
		e := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{}}`))
		d.receive(e, nil)
	}
	call := func() *pendingRequest {
		c := newLaneCall(1, new(tool.Request), nil)
		c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, nil }
		waits := d.begin(c) > 0
		if open := c.take().asked; waits != (len(open) > 0) {
			t.Errorf("the call waits: %v, for %d questions", waits, len(open))
		} else {
			c.news.asked = open
		}
		return c
	}
	d.end(call())
	ask("2", tool.MethodSample)
	ask("3", tool.MethodRoots)
	refused := func(ids string) {
		t.Helper()
		got := ""
		for _, r := range replies {
			if !strings.Contains(r, "-32600") {
				t.Errorf("replied %s", r)
			}
			e := jsonrpc.Read([]byte(r))
			got += string(e.ID)
		}
		if got != ids {
			t.Errorf("%s are refused, want %s", got, ids)
		}
	}
	refused("2")
	d.end(call()) // before the client has answered
	refused("2")
	last := call()
	if open := last.take().asked; len(open) != 1 || string(open[0].id) != "3" {
		t.Errorf("the next call is asked %v", open)
	}
	ask("5", tool.MethodRoots) // while a call is in flight that ends before the client was asked
	d.end(last)
	refused("2")
	last = call()
	if open := last.take().asked; len(open) != 2 {
		t.Errorf("the next call is asked %v", open)
	}
	d.end(last)
}

// TestDeskRefusesBetweenCalls checks the connection of one client's own once its call has ended, and the latest call as the
// one that is asked.
func TestDeskRefusesBetweenCalls(t *testing.T) {
	t.Parallel()
	var replies []string
	d := newServerRequests(func(body []byte) { replies = append(replies, string(body)) })
	d.follow(callOfClient, nil, nil, false)
	ask := func(id string) {
		e := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"sampling/createMessage"}`))
		d.receive(e, nil)
	}
	first, second := newLaneCall(1, new(tool.Request), nil), newLaneCall(2, new(tool.Request), nil)
	first.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, nil }
	second.Ask = first.Ask
	first.Session.Ended = make(chan struct{})
	second.Session = first.Session
	d.begin(first)
	d.begin(second)
	ask("1")
	ask("1")
	second.finish(response{})
	ask("2")
	asked := second.take().asked
	earlier := first.take()
	if len(asked) != 1 || len(earlier.asked) != 1 || !earlier.held || len(replies) != 1 || !strings.Contains(replies[0], "still open") {
		t.Errorf("asked %d and %d, replied %q", len(asked), len(earlier.asked), replies)
	}
	d.end(second)
	d.end(first)
	ask("3")
	if first.take().held || len(replies) != 4 || len(d.open) != 0 || !strings.Contains(replies[3], "no call of the client is in flight") {
		t.Errorf("replied %q, %d open", replies, len(d.open))
	}
}

// TestDeskPutsWhileTheCallEnds checks, under the race detector, that a question which goes on to the next call may be on its way
// to the client of the one that ends.
func TestDeskPutsWhileTheCallEnds(t *testing.T) {
	t.Parallel()
	d := newServerRequests(func([]byte) {})
	d.follow(callOfClient, nil, nil, false)
	call := newLaneCall(1, new(tool.Request), nil)
	call.Ask = func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
		tool.Sent(q)
		return []tool.Answer{{}}, nil
	}
	e := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`))
	d.receive(e, nil)
	d.begin(call)
	asked := call.take().asked
	if len(asked) != 1 {
		t.Fatalf("asked %d", len(asked))
	}
	sent := make(chan struct{})
	var putting sync.WaitGroup
	putting.Go(func() { d.put(t.Context(), asked[0], nil, sync.OnceFunc(func() { close(sent) })) })
	d.end(call)
	<-sent // whether it was asked or not: what is asked next waits for that
	putting.Wait()
}

// TestDeskOfAClientThatCannotBeAsked checks that the server hears the same whether it asks before the call or during it.
func TestDeskOfAClientThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	var replies []string
	d := newServerRequests(func(body []byte) { replies = append(replies, string(body)) })
	d.follow(callOfClient, nil, nil, false)
	ask := func(id string) {
		e := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"sampling/createMessage"}`))
		d.receive(e, nil)
	}
	call := newLaneCall(1, new(tool.Request), nil)
	ask("1")
	d.begin(call)
	ask("2")
	call.finish(response{})
	ask("3")
	d.end(call)
	for n, want := range []string{errUnasked.Message, errUnasked.Message, errNoCall.Message} {
		if len(replies) != 3 || !strings.Contains(replies[n], want) {
			t.Errorf("replied %q, want %q to question %d", replies, want, n+1)
		}
	}
}

// TestDeskOfOneCaller checks the connection of clients that sign in alike: a question that comes on no call's stream belongs
// to the only call, and while there are two it is nobody's.
func TestDeskOfOneCaller(t *testing.T) {
	t.Parallel()
	var replies []string
	d := newServerRequests(func(body []byte) { replies = append(replies, string(body)) })
	d.follow(callOfClient, nil, nil, false)
	ask := func(id string) {
		e := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"roots/list"}`))
		d.receive(e, nil)
	}
	alice, bob := newLaneCall(1, new(tool.Request), nil), newLaneCall(2, new(tool.Request), nil)
	alice.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, nil }
	bob.Ask = alice.Ask
	d.begin(alice)
	ask("1")
	d.begin(bob)
	ask("2")
	ofAlice := alice.take().asked
	ofBob := bob.take().asked
	if len(ofAlice) != 1 || len(ofBob) != 0 || len(replies) != 1 || !strings.Contains(replies[0], "several clients share") {
		t.Errorf("asked %d and %d, replied %q", len(ofAlice), len(ofBob), replies)
	}
}

// FuzzDesk feeds serverRequests what a server may write: each question gets at most one well-formed answer, and no more are open
// than may be.
func FuzzDesk(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, true)
	f.Add(`{"jsonrpc":"2.0","id":"\u0031","method":"elicitation/create","params":{"a":1}}`,
		`{"jsonrpc":"2.0","id":"1","method":"sampling/createMessage","params":[]}`, false)
	f.Fuzz(func(t *testing.T, one, two string, own bool) {
		d := newServerRequests(func(body []byte) {
			if !rawjson.Valid(body) {
				t.Errorf("answered %q", body)
			}
		})
		d.follow(callOfStream, nil, nil, false)
		if own {
			d.follow(callOfClient, nil, nil, false)
		}
		call := newLaneCall(1, new(tool.Request), nil)
		call.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return []tool.Answer{{}}, nil }
		for _, line := range []string{one, two, one} {
			e := jsonrpc.Read([]byte(line))
			switch {
			case !rawjson.Valid([]byte(line)):
			case e.Kind == jsonrpc.Request:
				d.receive(e, nil)
				d.begin(call)
				d.receive(e, call)
			case e.Kind == jsonrpc.Notification:
				d.canceled(e)
			}
		}
		asked := call.take().asked
		for _, q := range asked {
			d.put(t.Context(), q, nil, func() {})
		}
		d.end(call)
		if held := call.take().held; held || len(d.open)+len(d.early) > 1 {
			t.Errorf("held %v, open %d, early %d", held, len(d.open), len(d.early))
		}
	})
}

// FuzzRounds feeds results of type input_required: what is taken from one makes well-formed params.
func FuzzRounds(f *testing.F) {
	f.Add(`{"resultType":"input_required","requestState":"s\u0031","inputRequests":{"\u0062":{"method":"elicitation/create","params":{"a":1}}}}`)
	f.Add(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"a":1}}`)
	f.Fuzz(func(t *testing.T, result string) {
		if !rawjson.Valid([]byte(result)) {
			return
		}
		in, err := tool.ReadInputRequired([]byte(result))
		if err != nil {
			return
		}
		answers := make([]tool.Answer, len(in.Questions))
		for i := range answers {
			answers[i].Result = fmt.Appendf(nil, `{"i":%d}`, i)
		}
		params, err := retryParams(in, json.RawMessage(`{"name":"x"}`), answers)
		if err != nil || !json.Valid(params) {
			t.Errorf("%q: %s, %v", result, params, err)
		}
	})
}
