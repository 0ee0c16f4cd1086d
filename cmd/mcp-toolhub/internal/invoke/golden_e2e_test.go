//go:build e2e

package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// story is a kind of call: what happens, and what the journal holds afterwards.
type story struct {
	name string
	run  func(t *testing.T, b *bench)
}

func stories() []story {
	return append(append(plainStories(), permissionStories()...), inputStories()...)
}

// plainStories are calls that nobody is asked about.
func plainStories() []story {
	one := func(name, args string) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) { b.call(t.Context(), name, args) }
	}
	doing := func(ex executorFunc) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			b.does(ex)
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}
	}
	upstream := tool.ExternalMapping{Source: "mcp", Role: "upstream", ServerID: "s", SessionID: "far", ProtocolVersion: "2025-11-25",
		Method: "tools/call", ToolName: "t", JSONRPCRequestID: `"toolhub-5"`}
	return []story{
		{"success", one("mcp.s.t", `{"n":1}`)},
		{"another_name", one("s__t", `{ "n" : 1, "x":"<&\u2028>" }`)},
		{"masked", one("mcp.s.t", `{"n":1,"password":"hush","url":"https://u:p@example.com/"}`)},
		{"large_arguments", one("mcp.s.t", `{"n":1,"x":"`+strings.Repeat("x", persist.InlineLimit)+`"}`)},
		{"unknown_tool", one("mcp.s.other", `{"n":1,"token":"hush"}`)},
		{"malformed", func(t *testing.T, b *bench) {
			c := b.callOf("", `"hush"`)
			c.Refused = &tool.RPCError{Code: tool.CodeInvalidParams, Message: "invalid params: \"name\" must be a non-empty string"}
			b.Invoke(t.Context(), c)
		}},
		{"hidden", func(t *testing.T, b *bench) {
			now := b.guarded(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Deny, Reason: "not today"})
			b.surface = now.Load().Surface(b.surface, tool.Actor{Name: "ann", Door: "http"})
			b.call(t.Context(), "mcp.s.t", `{"n":1,"password":"hush"}`)
		}},
		{"no_object", one("mcp.s.t", `[1]`)},
		{"no_arguments", one("mcp.s.t", ``)},
		{"null_arguments", one("mcp.s.t", `null`)},
		{"invalid", one("mcp.s.t", `{"n":"x"}`)},
		{"invalid_warned", func(t *testing.T, b *bench) {
			b.surface.Listed[0].Tool.Validate = tool.ValidateWarn
			b.call(t.Context(), "mcp.s.t", `{"n":"x"}`)
			b.call(t.Context(), "mcp.s.t", `null`)
		}},
		{"twin_of_arguments", func(t *testing.T, b *bench) {
			b.Invoke(t.Context(), b.callInRounds(t.Context(), `{"name":"x","Arguments":{"n":2}}`))
		}},
		{"is_error", doing(ok(`{"content":[{"type":"text","text":"no"}],"isError":true}`))},
		{"odd_content", doing(ok(`{"content":[1,{"type":"text"},null]}`))},
		{"no_content", doing(ok(`{"x":1}`))},
		{"no_object_as_result", doing(ok(`7`))},
		{"large_result", doing(ok(`{"content":[{"type":"text","text":"` + strings.Repeat("x", persist.InlineLimit) + `"}]}`))},
		{"mapped", doing(func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(answer), Mapping: upstream}, nil
		})},
		{"task", doing(func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1","status":"working"}}`), Task: "t1", Mapping: upstream}, nil
		})},
		{"json_rpc_error", doing(func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Mapping: upstream}, fmt.Errorf("call: %w", &tool.RPCError{Code: -32099, Message: "secret", Shown: "no"})
		})},
		{"invalid_for_the_server", doing(fails(&tool.RPCError{Code: tool.CodeInvalidParams, Message: "no such page"}))},
		{"server_down", doing(fails(&tool.Failure{Class: tool.ClassDependencyUnavailable, Message: "it is down", RetryAfter: time.Second,
			Detail: `{"next":1}`, Cause: errors.New("cause")}))},
		{"timeout", doing(fails(&tool.Failure{Class: tool.ClassTimeout, Message: "too slow", OutcomeUnknown: true}))},
		{"unexpected_error", doing(fails(errors.New("what is that")))},
		{"panic", doing(func(context.Context, *tool.Execution) (tool.Reply, error) { panic("boom") })},
		{"no_executor", func(t *testing.T, b *bench) {
			b.opts.Executors = nil
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"slow", doing(func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			time.Sleep(4 * time.Second)
			return tool.Reply{Result: json.RawMessage(answer), Mapping: upstream}, nil
		})},
		{"progress", doing(reportsProgress)},
		{"progress_at_the_end", doing(func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			text := []byte(`{"progress":1,"total":3}`)
			for i := range 3 {
				text[len(`{"progress":`)] = byte('1' + i)
				e.Progress(tool.Progress{Params: text})
				time.Sleep(10 * time.Millisecond)
			}
			return tool.Reply{Result: json.RawMessage(answer), Mapping: upstream}, nil
		})},
		{"progress_before_something_else", doing(func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			for _, message := range []string{"first", "lost", "before"} {
				e.Progress(tool.Progress{Params: json.RawMessage(`{}`), Message: message})
				time.Sleep(10 * time.Millisecond)
			}
			e.Record(recordsOf(e.Invocation)...)
			return tool.Reply{Result: json.RawMessage(answer)}, nil
		})},
		{"a_client_with_a_name", func(t *testing.T, b *bench) {
			c := b.callOf("mcp.s.t", `{"n":1}`)
			c.Actor.Client = tool.Client{Name: strings.Repeat("é", 120), Version: "1.2"}
			b.Invoke(t.Context(), c)
		}},
		{"large_error", doing(ok(`{"content":[{"type":"image"},{"type":"text","text":"no page https://ann:hush@example.com/ ` +
			strings.Repeat("x", persist.InlineLimit) + `"}],"isError":true}`))},
		{"records_of_the_executor", doing(func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			e.Record(recordsOf(e.Invocation)...)
			return tool.Reply{Result: json.RawMessage(answer)}, nil
		})},
		{"canceled_before", func(t *testing.T, b *bench) { b.call(canceled(t.Context(), 0, nil), "mcp.s.t", `{"n":1}`) }},
		{"canceled_while_it_runs", func(t *testing.T, b *bench) {
			b.does(waits)
			b.call(canceled(t.Context(), 50*time.Millisecond, nil), "mcp.s.t", `{"n":1}`)
		}},
		{"canceled_for_a_reason", func(t *testing.T, b *bench) {
			b.does(waits)
			b.call(canceled(t.Context(), 50*time.Millisecond, &tool.Failure{Class: tool.ClassTimeout, Message: "nobody answered"}), "mcp.s.t", `{"n":1}`)
		}},
		{"queued", func(t *testing.T, b *bench) { // one that runs, one that is canceled in the queue, and one that finds it full
			b.does(waits)
			b.scheduler = narrow(1, 1)
			done := make(chan Outcome, 2)
			go func() { done <- b.call(t.Context(), "mcp.s.t", `{"n":1}`) }()
			synctest.Wait()
			go func() { done <- b.call(canceled(t.Context(), 100*time.Millisecond, nil), "mcp.s.t", `{"n":2}`) }()
			synctest.Wait()
			b.call(t.Context(), "mcp.s.t", `{"n":3}`)
			<-done
			<-done
		}},
		{"forwarded", func(t *testing.T, b *bench) {
			c := b.callOf("mcp.s.t", `{"n":1}`)
			c.Via, c.Invocation, c.Actor = "tool_call", tool.NewInvocationID(), tool.Actor{Name: "bob", Door: "stdio", Session: "near",
				Client: tool.Client{Name: "c", ProtocolVersion: "2025-06-18"}}
			b.Invoke(t.Context(), c)
		}},
		{"deferred_loaded", func(t *testing.T, b *bench) { b.defers(t, nil) }},
		{"deferred_refused", func(t *testing.T, b *bench) {
			b.defers(t, &tool.Failure{Class: tool.ClassSchemaNotLoaded, Message: "read this first", Detail: `{"selection_ref":"x"}`})
		}},
	}
}

// defers calls the tool while it is deferred, and admits that with err.
func (b *bench) defers(t *testing.T, err error) {
	b.opts.Admit = admits(func(c tool.DeferredCall) ([]tool.Record, error) { return recordsOf(c.Invocation), err })
	listed := b.surface.Listed
	b.surface = b.surface.With(tool.Split{ID: "srf_y", Digest: "y", Deferred: listed})
	b.call(t.Context(), "mcp.s.t", `{"n":1}`)
}

func reportsProgress(_ context.Context, e *tool.Execution) (tool.Reply, error) {
	for i, params := range []string{`{"progress":1,"total":3,"message":"one"}`, `{"progress":2,"total":3,"message":"lost"}`,
		`{"progress":0.5}`, `{"progress":4,"total":3}`, `{}`, `{"progress":3,"total":3,"message":"<three>"}`} {
		e.Progress(tool.Progress{Params: json.RawMessage(params), Message: strings.Repeat("m", i)})
		time.Sleep(time.Duration(i) * 150 * time.Millisecond)
	}
	return tool.Reply{Result: json.RawMessage(answer)}, nil
}

// permissionStories are calls that rules or people decide about.
func permissionStories() []story {
	deny := policy.Rule{Match: []string{"mcp.*"}, Then: tool.Deny, Reason: "not today"}
	accept := `{"action":"accept","content":{"answer":"allow_once"}}`
	asked := func(result string, after time.Duration) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			b.guarded(t)
			b.Invoke(t.Context(), b.asks(t, result, after))
		}
	}
	inQueue := func(a approval.Answer) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			b.guarded(t)
			b.queued(a)
			c := b.asks(t, "", 0)
			c.Ask = nil
			b.Invoke(t.Context(), c)
		}
	}
	return []story{
		{"allowed_by_a_rule", func(t *testing.T, b *bench) {
			b.guarded(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Allow, When: `arguments.n == 1`, Reason: "<fine>"})
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"denied_by_a_rule", func(t *testing.T, b *bench) {
			b.guarded(t, deny)
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"nobody_to_ask", func(t *testing.T, b *bench) {
			b.guarded(t)
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"no_approvals", func(t *testing.T, b *bench) {
			b.guarded(t)
			b.opts.Approvals = nil
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"asked_and_allowed", asked(accept, time.Second)},
		{"asked_and_allowed_with_words", asked(`{"action":"accept","content":{"answer":"allow_once","message":"mind it"}}`, time.Second)},
		{"asked_and_denied", asked(`{"action":"accept","content":{"answer":"deny_once","message":"no"}}`, time.Second)},
		{"asked_and_declined", asked(`{"action":"decline"}`, time.Second)},
		{"asked_and_dismissed", asked(`{"action":"cancel"}`, time.Second)},
		{"asked_a_program", asked(`{"action":"decline"}`, time.Millisecond)},
		{"asked_in_vain", asked(`{}`, time.Hour)},
		{"answered_with_nothing_three_times", asked(`{"action":"accept","content":{"answer":"perhaps"}}`, time.Second)},
		{"answered_at_the_second_time", func(t *testing.T, b *bench) {
			b.guarded(t)
			c := b.asks(t, "", 0)
			n := 0
			c.Ask = func(_ context.Context, q []tool.Question) ([]tool.Answer, error) {
				tool.Sent(q)
				time.Sleep(time.Second)
				if n++; n == 1 {
					return []tool.Answer{{Malformed: true, Err: &tool.RPCError{Code: tool.CodeInternalError}}}, nil
				}
				return []tool.Answer{{Result: json.RawMessage(accept)}}, nil
			}
			b.Invoke(t.Context(), c)
		}},
		{"canceled_while_asked", func(t *testing.T, b *bench) {
			b.guarded(t)
			b.Invoke(canceled(t.Context(), time.Second, nil), b.asks(t, accept, time.Hour))
		}},
		{"allowed_in_the_queue", inQueue(approval.Answer{Choice: policy.AllowOnce})},
		{"denied_in_the_queue", inQueue(approval.Answer{Choice: policy.DenyOnce, Sentence: "never"})},
		{"changed_by_a_person", inQueue(approval.Answer{Choice: policy.AllowOnce, Arguments: []byte(`{ "n": 2, "password":"hush" }`)})},
		{"changed_to_much", inQueue(approval.Answer{Choice: policy.AllowOnce, Arguments: []byte(`{"n":2,"x":"` + strings.Repeat("x", persist.InlineLimit) + `"}`)})},
		{"changed_by_the_policy", func(t *testing.T, b *bench) {
			now := b.guarded(t)
			c := b.asks(t, accept, time.Second)
			time.AfterFunc(time.Millisecond, func() { now.Store(gateOf(t, deny)) })
			b.Invoke(t.Context(), c)
		}},
		{"expired_in_the_queue", func(t *testing.T, b *bench) {
			b.guarded(t)
			b.around.open = true
			b.Invoke(t.Context(), b.asks(t, `{"action":"accept"}`, time.Second))
		}},
		{"yielded", func(t *testing.T, b *bench) {
			b.guarded(t)
			b.around.open = true
			c := b.callOf("mcp.s.t", `{"n":1}`)
			b.Invoke(t.Context(), c)
			b.queued(approval.Answer{Choice: policy.AllowOnce})
			b.Invoke(t.Context(), c)
		}},
		{"stopped_while_asked", func(t *testing.T, b *bench) {
			b.guarded(t)
			time.AfterFunc(time.Second, b.opts.Approvals.Close)
			b.Invoke(t.Context(), b.asks(t, accept, time.Hour))
		}},
		{"denied_by_the_mode", func(t *testing.T, b *bench) {
			g, err := gate.New(gate.Config{Mode: policy.ModeReadOnly}, gate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b.around.gate = func() *gate.Gate { return g }
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
	}
}

// inputStories are calls that wait for their client.
func inputStories() []story {
	suspended := func(t *testing.T, b *bench, guarded bool) (*Suspended, *Call) {
		if guarded {
			b.guarded(t)
		}
		round := 0
		b.does(func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
			if round++; round == 1 {
				return tool.Reply{Result: json.RawMessage(`{"resultType":"input_required"}`), NeedsInput: true,
					Mapping: tool.ExternalMapping{Source: "mcp", Role: "upstream", ServerID: "s", JSONRPCRequestID: "1"}}, nil
			}
			return tool.Reply{Result: json.RawMessage(answer), Mapping: tool.ExternalMapping{Source: "mcp", Role: "upstream", ServerID: "s",
				JSONRPCRequestID: "2"}}, nil
		})
		c := b.asks(t, `{"action":"accept","content":{"answer":"allow_once"}}`, time.Second)
		c.InputByRetry = true
		out := b.Invoke(t.Context(), c)
		if out.Suspended == nil {
			t.Fatalf("not suspended: %+v", out)
		}
		time.Sleep(time.Second)
		c.NativeCallID = json.RawMessage(`"second"`)
		return out.Suspended, c
	}
	asksItself := func(t *testing.T, b *bench, ctx context.Context, times int) {
		b.does(func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			for range times {
				if _, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}}); err != nil {
					return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled", OutcomeUnknown: true}
				}
			}
			return tool.Reply{Result: json.RawMessage(answer)}, nil
		})
		b.Invoke(ctx, b.asks(t, `{"roots":[]}`, time.Second))
	}
	return []story{
		{"suspended_and_resumed", func(t *testing.T, b *bench) {
			w, c := suspended(t, b, false)
			w.Resume(t.Context(), c)
		}},
		{"suspended_and_resumed_elsewhere", func(t *testing.T, b *bench) {
			w, c := suspended(t, b, false)
			c.Surface = tool.NewSurface("srf_z", "default", "canonical", "z", b.surface.Listed, nil, map[string]int{"mcp.s.t": 0})
			w.Resume(t.Context(), c)
		}},
		{"suspended_after_a_question", func(t *testing.T, b *bench) {
			w, c := suspended(t, b, true)
			w.Resume(t.Context(), c)
		}},
		{"suspended_and_denied", func(t *testing.T, b *bench) {
			now := b.guarded(t)
			w, c := suspended(t, b, false)
			now.Store(gateOf(t, policy.Rule{Match: []string{"mcp.*"}, Then: tool.Deny}))
			w.Resume(t.Context(), c)
		}},
		{"suspended_and_given_up", func(t *testing.T, b *bench) {
			w, _ := suspended(t, b, false)
			w.End(t.Context(), &tool.Failure{Class: tool.ClassTimeout, Message: "nobody answered"})
		}},
		{"suspended_and_refused", func(t *testing.T, b *bench) {
			w, _ := suspended(t, b, false)
			w.End(t.Context(), &tool.RPCError{Code: tool.CodeMissingCapabilities, Message: "no"})
		}},
		{"suspended_and_gone", func(t *testing.T, b *bench) {
			w, c := suspended(t, b, false)
			c.Surface = tool.NewSurface("srf_z", "default", "canonical", "z", nil, nil, nil)
			w.Resume(t.Context(), c)
		}},
		{"suspended_and_canceled", func(t *testing.T, b *bench) {
			w, c := suspended(t, b, false)
			w.Resume(canceled(t.Context(), 0, nil), c)
		}},
		{"input_of_nobody", func(t *testing.T, b *bench) {
			b.does(func(context.Context, *tool.Execution) (tool.Reply, error) {
				return tool.Reply{Result: json.RawMessage(`{}`), NeedsInput: true}, nil
			})
			b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		}},
		{"asked_by_the_server", func(t *testing.T, b *bench) { asksItself(t, b, t.Context(), 2) }},
		{"canceled_while_asked_by_the_server", func(t *testing.T, b *bench) {
			asksItself(t, b, canceled(t.Context(), 1500*time.Millisecond, nil), 2)
		}},
	}
}

var (
	anyID     = regexp.MustCompile(`\b([a-z]{3})_[0-9a-z]{26}(\.[0-9]+)?\b`)
	anyRepeat = regexp.MustCompile(`x{1000,}`)
	anyOwner  = regexp.MustCompile(`"invocation_id":"(\w+)"`)
)

// normal puts the lines of each invocation together, replaces ids by their kind and the number in which they come, and
// shortens long texts.
func normal(lines string) string {
	var order []string
	of := map[string]string{}
	for line := range strings.Lines(lines) {
		id := anyOwner.FindString(line)
		if of[id] == "" {
			order = append(order, id)
		}
		of[id] += line
	}
	lines = ""
	for _, id := range order {
		lines += of[id]
	}
	numbers := map[string]int{}
	known := map[string]string{}
	lines = anyID.ReplaceAllStringFunc(lines, func(id string) string {
		if known[id] == "" {
			kind := id[:3]
			numbers[kind]++
			known[id] = fmt.Sprintf("%s_%026d", kind, numbers[kind])
		}
		return known[id]
	})
	return anyRepeat.ReplaceAllString(lines, "xxx")
}

// TestRecordsOfEveryKindOfCall compares the objects that the journal holds of every kind of call with those of the golden files.
func TestRecordsOfEveryKindOfCall(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			var got string
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tool.ValidateReject, ok(answer))
				s.run(t, b)
				for _, r := range b.records(t) {
					if r["object"] != string(tool.ObjectDeferredRef) {
						validateRecord(t, r)
					}
				}
				whole := lines(t, b.dir)
				checkEarlier(t, b.dir, whole)
				got = normal(whole)
			})
			file := filepath.Join("testdata", "journal", s.name+".jsonl")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if difference := firstDifference(canonical(t, got), canonical(t, string(want))); difference != "" {
				t.Error(difference)
			}
		})
	}
}

// checkEarlier reads the journal as it was after each line: what followed from it then follows from it in the end, under the same
// ids. A hub that is killed leaves such a journal.
func checkEarlier(t *testing.T, dir, whole string) {
	var written []string
	if err := persist.NewLines(dir, "", make(map[string]int64), func(line json.RawMessage) bool {
		written = append(written, string(line)+"\n")
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for n := range written {
		earlier := t.TempDir()
		writeJournal(t, earlier, strings.Join(written[:n], ""))
		rest := whole
		for line := range strings.Lines(lines(t, earlier)) {
			i := strings.Index(rest, line)
			if i < 0 {
				t.Fatalf("of %d lines of %d follows what does not follow in the end, or elsewhere: %s", n, len(written), line)
			}
			rest = rest[i+len(line):]
		}
	}
}

// canonical sorts the members of each line.
func canonical(t *testing.T, lines string) string {
	var all strings.Builder
	for line := range strings.Lines(lines) {
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(text, '\n'))
	}
	return all.String()
}

// asks makes a call whose client answers every question so.
func (b *bench) asks(t *testing.T, result string, after time.Duration) *Call {
	c := b.callInRounds(t.Context(), `{"name":"x"}`)
	c.InputByRetry, c.Progress = false, func(tool.Progress) {}
	c.Ask = func(ctx context.Context, q []tool.Question) ([]tool.Answer, error) {
		tool.Sent(q)
		select {
		case <-time.After(after):
			return []tool.Answer{{Result: json.RawMessage(result)}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c
}

// queued lets somebody in the queue answer so after a second.
func (b *bench) queued(a approval.Answer) {
	b.around.open = true
	a.By = "queue/op"
	go func() {
		time.Sleep(time.Second)
		for _, v := range b.opts.Approvals.List() {
			_ = b.opts.Approvals.Answer(v.ID, a)
		}
	}()
}

// waits is a tool that answers after a second, or says that it was canceled.
func waits(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	select {
	case <-time.After(time.Second):
		return tool.Reply{Result: json.RawMessage(answer)}, nil
	case <-ctx.Done():
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled", OutcomeUnknown: true}
	}
}

func fails(err error) executorFunc {
	return func(context.Context, *tool.Execution) (tool.Reply, error) { return tool.Reply{}, err }
}
