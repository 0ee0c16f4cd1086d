package approval_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

func binding() approval.Binding {
	return approval.Binding{Actor: "actor:http/ann", Session: "s1", Server: "files", Tool: "mcp.files.write", Schema: "schema",
		Arguments: "sha256:args", Policy: "sha256:policy", Profile: "review", CWD: "/p"}
}

func question() approval.Question {
	return approval.Question{Binding: binding(), Invocation: "inv_1", Decision: "dec_1", Reason: "it writes",
		Arguments: `{"path":"/p/a"}`, Targets: []string{"/p/a"}}
}

func ask(t *testing.T, a *approval.Approvals, q approval.Question) *approval.Ticket {
	t.Helper()
	ticket, err := a.Ask(q)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func once() approval.Answer {
	return approval.Answer{Choice: policy.AllowOnce, By: "cli/ann", Sentence: "go on"}
}

func TestAnAnswerReachesItsCallOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := approval.New(approval.Options{})
		defer a.Close()
		ticket := ask(t, a, question())
		if _, err := ticket.Redeem(binding()); err == nil {
			t.Error("an open question gives an answer")
		}
		go func() {
			time.Sleep(time.Minute)
			if err := a.Answer(ticket.ID(), once()); err != nil {
				t.Error(err)
			}
		}()
		if err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer, err := ticket.Redeem(binding())
		if err != nil || answer.Choice != policy.AllowOnce || answer.Sentence != "go on" || answer.By != "cli/ann" {
			t.Errorf("got %+v, %v", answer, err)
		}
		if _, err := ticket.Redeem(binding()); !errors.Is(err, approval.ErrUsed) {
			t.Errorf("the answer is good twice: %v", err)
		}
		if len(a.List()) != 0 {
			t.Error("the question is still open")
		}
	})
}

// TestAnAnswerIsForNothingElse is what an attacker tries with an approval that a person gave: each field of what it is
// bound to, changed.
func TestAnAnswerIsForNothingElse(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*approval.Binding){
		"caller":    func(b *approval.Binding) { b.Actor = "actor:http/bob" },
		"session":   func(b *approval.Binding) { b.Session = "s2" },
		"server":    func(b *approval.Binding) { b.Server = "other" },
		"tool":      func(b *approval.Binding) { b.Tool = "mcp.files.wipe" },
		"schema":    func(b *approval.Binding) { b.Schema = "changed" },
		"arguments": func(b *approval.Binding) { b.Arguments = "sha256:other" },
		"policy":    func(b *approval.Binding) { b.Policy = "sha256:stricter" },
		"profile":   func(b *approval.Binding) { b.Profile = "" },
		"cwd":       func(b *approval.Binding) { b.CWD = "/" },
	} {
		a := approval.New(approval.Options{})
		ticket := ask(t, a, question())
		other := binding()
		change(&other)
		q := question()
		q.Binding = other
		if second := ask(t, a, q); second.ID() == ticket.ID() {
			t.Errorf("%s: another question is taken for the same one", what)
		}
		if err := a.Answer(ticket.ID(), once()); err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Redeem(other); !errors.Is(err, approval.ErrBinding) {
			t.Errorf("%s: the answer is good for another call: %v", what, err)
		}
		if answer, err := ticket.Redeem(binding()); err != nil || answer.Choice != policy.AllowOnce {
			t.Errorf("%s: a wrong try spoiled the right one: %v", what, err)
		}
		a.Close()
	}
}

func TestNoAnswerInTimeDenies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := approval.New(approval.Options{Timeout: 10 * time.Minute})
		defer a.Close()
		q := question()
		q.Timeout = time.Minute
		began := time.Now()
		ticket := ask(t, a, q)
		if err := ticket.Wait(t.Context()); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v", waited)
		}
		if _, err := ticket.Redeem(binding()); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("an expired question gives an answer: %v", err)
		}
		if err := a.Answer(ticket.ID(), once()); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("an expired question takes an answer: %v", err)
		}
		if v, err := a.Get(ticket.ID()); err != nil || v.State != approval.Expired || v.Answer.Choice != policy.DenyOnce {
			t.Errorf("got %+v, %v", v, err)
		}
		q.Timeout = time.Hour // longer than the options let it be
		if left := time.Until(ask(t, a, q).Expires()); left != 10*time.Minute {
			t.Errorf("the question stays open for %v", left)
		}
	})
}

func TestAnApprovalExpiresUnused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := approval.New(approval.Options{Timeout: time.Minute})
		defer a.Close()
		ticket := ask(t, a, question())
		if err := a.Answer(ticket.ID(), once()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := ticket.Redeem(binding()); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheFirstOfManyAnswersCounts(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	ticket := ask(t, a, question())
	choices := policy.Choices()
	var group sync.WaitGroup
	var mu sync.Mutex
	var taken []policy.Choice
	for i := range 50 {
		group.Go(func() {
			choice := choices[i%len(choices)]
			switch err := a.Answer(ticket.ID(), approval.Answer{Choice: choice}); {
			case err == nil:
				mu.Lock()
				taken = append(taken, choice)
				mu.Unlock()
			case !errors.Is(err, approval.ErrAnswered):
				t.Error(err)
			}
		})
	}
	group.Wait()
	answer, err := ticket.Redeem(binding())
	if err != nil || len(taken) != 1 || answer.Choice != taken[0] {
		t.Errorf("%d answers were taken, %v; the call got %q, %v", len(taken), taken, answer.Choice, err)
	}
}

func TestAnAnswerAfterCancelIsRefused(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	ticket := ask(t, a, question())
	gone := errors.New("the client canceled")
	cancel(gone)
	if err := ticket.Wait(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if err := a.Answer(ticket.ID(), once()); !errors.Is(err, approval.ErrCanceled) {
		t.Errorf("got %v", err)
	}
	if _, err := ticket.Redeem(binding()); !errors.Is(err, approval.ErrCanceled) {
		t.Errorf("got %v", err)
	}
	if v, err := a.Get(ticket.ID()); err != nil || v.State != approval.Canceled {
		t.Errorf("got %+v, %v", v, err)
	}
	if again := ask(t, a, question()); again.ID() == ticket.ID() {
		t.Error("a canceled question is joined")
	}
}

func TestEqualQuestionsAreOne(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	first, second, third := ask(t, a, question()), ask(t, a, question()), ask(t, a, question())
	if first.ID() != second.ID() || len(a.List()) != 1 || a.List()[0].Waiting != 3 {
		t.Fatalf("%+v", a.List())
	}
	var more []*approval.Ticket
	for range 97 {
		more = append(more, ask(t, a, question()))
	}
	if _, err := a.Ask(question()); !errors.Is(err, approval.ErrFull) {
		t.Errorf("got %v", err)
	}
	for _, ticket := range more {
		ticket.Leave()
	}
	second.Leave()
	second.Leave()
	if v := a.List(); len(v) != 1 || v[0].Waiting != 2 {
		t.Errorf("one that leaves twice counts twice, or withdraws the question: %+v", v)
	}
	if err := a.Answer(first.ID(), once()); err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []*approval.Ticket{first, third} {
		if _, err := ticket.Redeem(binding()); err != nil {
			t.Error(err)
		}
	}
	if _, err := second.Redeem(binding()); !errors.Is(err, approval.ErrCanceled) {
		t.Errorf("who left has the answer: %v", err)
	}
}

func TestWhatAnswersAreRefused(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	q := question()
	q.Choices = []policy.Choice{policy.AllowOnce, policy.DenyOnce, "made_up"}
	ticket := ask(t, a, q)
	for _, answer := range []approval.Answer{
		{Choice: ""}, {Choice: "made_up"}, {Choice: policy.AllowAlways}, {Choice: "ALLOW_ONCE"},
		{Choice: policy.DenyOnce, Arguments: []byte(`{}`)}, {Choice: policy.AllowOnce, Arguments: []byte(`[1]`)},
		{Choice: policy.AllowOnce, Arguments: []byte(`{`)}, {Choice: policy.AllowOnce, Arguments: []byte(` `)}, {Choice: policy.AllowOnce, Arguments: make([]byte, 2<<20)},
	} {
		if err := a.Answer(ticket.ID(), answer); err == nil {
			t.Errorf("the answer %q with %d bytes was taken", answer.Choice, len(answer.Arguments))
		}
	}
	if err := a.Answer("apr_guess", once()); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	edited := once()
	edited.Arguments = []byte(`{"path":"/p/b"}`)
	if err := a.Answer(ticket.ID(), edited); err != nil {
		t.Fatal(err)
	}
	edited.Arguments[2] = 'X' // the caller's memory is the caller's
	if got, err := ticket.Redeem(binding()); err != nil || string(got.Arguments) != `{"path":"/p/b"}` {
		t.Errorf("got %s, %v", got.Arguments, err)
	}
}

func TestAClosedQueueDenies(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	open, answered := ask(t, a, question()), question()
	answered.Binding.Tool = "mcp.files.other"
	late := ask(t, a, answered)
	if err := a.Answer(late.ID(), once()); err != nil {
		t.Fatal(err)
	}
	a.Close()
	a.Close()
	if err := open.Wait(t.Context()); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := late.Redeem(answered.Binding); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("an answer is good in a hub that stops: %v", err)
	}
	if _, err := a.Ask(question()); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := a.Answer(open.ID(), once()); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, more := <-a.Watch(t.Context()); more {
		t.Error("a closed queue has a stream")
	}
	// After a restart there is a new queue, which knows nothing of the old one's questions.
	if err := approval.New(approval.Options{}).Answer(open.ID(), once()); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	put := func(actor string, n int) error {
		q := question()
		q.Binding.Actor, q.Binding.Arguments = actor, fmt.Sprint(n)
		_, err := a.Ask(q)
		return err
	}
	for n := range 250 {
		if err := put("greedy", n); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("greedy", 250); !errors.Is(err, approval.ErrFull) {
		t.Errorf("one caller takes all places: %v", err)
	}
	for n := range 750 {
		if err := put(fmt.Sprint("other", n), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("last", 0); !errors.Is(err, approval.ErrFull) {
		t.Errorf("got %v", err)
	}
	views := a.List()
	for _, v := range views {
		if err := a.Answer(v.ID, approval.Answer{Choice: policy.DenyOnce}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Get(views[0].ID); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("settled questions are kept for ever: %v", err)
	}
	if _, err := a.Get(views[999].ID); err != nil {
		t.Error(err)
	}
	if err := put("greedy", 1000); err != nil {
		t.Errorf("answered questions still count: %v", err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := approval.New(approval.Options{})
		defer a.Close()
		first := ask(t, a, question())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := a.Watch(ctx)
		want := func(kind approval.Kind) approval.Event {
			t.Helper()
			synctest.Wait()
			select {
			case e := <-events:
				if e.Kind != kind {
					t.Errorf("got %s, want %s", e.Kind, kind)
				}
				return e
			default:
				t.Errorf("no event, want %s", kind)
				return approval.Event{}
			}
		}
		if e := want(approval.Asked); e.Question.ID != first.ID() {
			t.Errorf("got %+v", e)
		}
		second := ask(t, a, question())
		want(approval.Changed)
		second.Leave()
		want(approval.Changed)
		if err := a.Answer(first.ID(), once()); err != nil {
			t.Fatal(err)
		}
		if e := want(approval.Settled); e.Question.State != approval.Answered || e.Question.Answer.Choice != policy.AllowOnce {
			t.Errorf("got %+v", e)
		}
		// One who does not read holds nobody up, and is told.
		for n := range 300 {
			q := question()
			q.Binding.Actor, q.Binding.Arguments = fmt.Sprint("caller", n%2), fmt.Sprint(n)
			ask(t, a, q)
		}
		lost := 0
		for len(events) > 0 {
			if e := <-events; e.Kind == approval.Lost {
				lost++
			} else if lost > 0 {
				t.Error("an event follows the notice that could not be sent")
			}
		}
		if lost != 1 {
			t.Errorf("told %d times that events are missing", lost)
		}
		q := question()
		q.Binding.Arguments = "after"
		ask(t, a, q)
		want(approval.Asked)
		cancel()
		synctest.Wait()
		if _, more := <-events; more {
			t.Error("the stream goes on after its context ended")
		}
	})
}

// TestWhatStrangersWriteIsBounded: what is shown is cut, and shares no memory with the call.
func TestWhatStrangersWriteIsBounded(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	q := question()
	q.Arguments = `{"text":"` + strings.Repeat("é", 1<<20) + `"}`
	q.Reason = strings.Repeat("r", 1<<20)
	for range 100 {
		q.Targets = append(q.Targets, strings.Repeat("/p", 1<<16))
		q.Tags = append(q.Tags, "tag")
	}
	ask(t, a, q)
	v := a.List()[0]
	size := len(v.Arguments) + len(v.Reason)
	for _, text := range v.Targets {
		size += len(text)
	}
	if size > 50<<10 || !v.Cut || v.MoreTargets != 69 || !strings.HasPrefix(v.Arguments, `{"text":"é`) {
		t.Errorf("%d bytes are kept, cut %t, %d more targets", size, v.Cut, v.MoreTargets)
	}
	v.Targets[0] = "changed"
	if a.List()[0].Targets[0] == "changed" {
		t.Error("a view shares memory with the queue")
	}
}

// TestAThousandQuestionsAreSmall is the bound: under 20 MB, with goroutines that wait and arguments as large as
// they are kept.
func TestAThousandQuestionsAreSmall(t *testing.T) {
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := measure()
	a := approval.New(approval.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 1000 {
		q := question()
		q.Binding.Actor, q.Binding.Arguments = fmt.Sprint("caller", n%4), fmt.Sprint("sha256:", n)
		q.Invocation = tool.NewInvocationID()
		q.Arguments = `{"text":"` + strings.Repeat("a", 64<<10) + `"}`
		q.Targets = []string{strings.Repeat("/p", 100)}
		ticket := ask(t, a, q)
		group.Go(func() {
			if err := ticket.Wait(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	used := measure() - before
	t.Logf("1,000 pending approvals: %.1f MB", float64(used)/1e6)
	if used > 20e6 {
		t.Errorf("1,000 pending approvals take %d bytes", used)
	}
	cancel()
	group.Wait()
	if len(a.List()) != 0 {
		t.Error("questions that nobody waits for are open")
	}
	a.Close()
}

func BenchmarkAskAndAnswer(b *testing.B) {
	a := approval.New(approval.Options{})
	defer a.Close()
	b.ReportAllocs()
	for b.Loop() {
		ticket, err := a.Ask(question())
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Answer(ticket.ID(), once()); err != nil {
			b.Fatal(err)
		}
		if _, err := ticket.Redeem(binding()); err != nil {
			b.Fatal(err)
		}
	}
}

// An answer, or a call that gives up, at the very moment when the time is over is one end of the question, not two.
func TestTheLastMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := approval.New(approval.Options{Timeout: time.Second})
		defer a.Close()
		var group sync.WaitGroup
		for i := range 60 {
			q := question()
			q.Binding.Arguments = fmt.Sprint(i)
			ticket := ask(t, a, q)
			group.Go(func() {
				time.Sleep(time.Second)
				if i%2 == 0 {
					ticket.Leave()
				} else if err := a.Answer(ticket.ID(), once()); !errors.Is(err, approval.ErrExpired) {
					t.Errorf("got %v", err)
				}
			})
		}
		group.Wait()
		synctest.Wait()
		if len(a.List()) != 0 {
			t.Errorf("%d questions are open", len(a.List()))
		}
	})
}

type check func(arguments []byte) error

func (c check) CheckArguments(arguments []byte) error { return c(arguments) }

// Arguments that the tool does not take are refused to the person, and the question stays open.
func TestChangedArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	q := question()
	q.Check = check(func(arguments []byte) error {
		if len(a.List()) != 1 { // whoever checks holds nobody up
			t.Error("the question is not open")
		}
		if string(arguments) != `{"n":2}` {
			return errors.New("n must be 2")
		}
		return nil
	})
	ticket, err := a.Ask(q)
	if err != nil {
		t.Fatal(err)
	}
	wrong, right := once(), once()
	wrong.Arguments, right.Arguments = []byte(`{"n":"2"}`), []byte(`{"n":2}`)
	if err := a.Answer(ticket.ID(), wrong); err == nil || err.Error() != "n must be 2" {
		t.Errorf("%v", err)
	}
	if v, err := a.Get(ticket.ID()); err != nil || v.State != approval.Pending {
		t.Errorf("%+v, %v", v, err)
	}
	if err := a.Answer(ticket.ID(), right); err != nil {
		t.Error(err)
	}
	if err := a.Answer(ticket.ID(), wrong); !errors.Is(err, approval.ErrAnswered) {
		t.Errorf("%v", err)
	}
}

// A call that can wait no longer yields its place, and the next equal call takes it up: with the answer that was given meanwhile,
// once. For every other call it is as if nobody had asked.
func TestAYieldedPlaceIsTakenUpOnce(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := approval.New(approval.Options{Timeout: 5 * time.Minute})
			defer a.Close()
			first := ask(t, a, question())
			if !first.Yield("inv_1") || first.Yield("inv_1") {
				t.Fatal("a place is yielded once")
			}
			first.Leave() // changes nothing
			time.Sleep(time.Minute)
			answer := func() {
				if err := a.Answer(first.ID(), once()); err != nil {
					t.Fatal(err)
				}
			}
			if meanwhile {
				answer()
			}
			for _, change := range []func(*approval.Binding){
				func(b *approval.Binding) { b.Actor = "actor:http/bob" }, func(b *approval.Binding) { b.Session = "s2" },
				func(b *approval.Binding) { b.Tool = "mcp.files.other" }, func(b *approval.Binding) { b.Schema = "other" },
				func(b *approval.Binding) { b.Arguments = "sha256:others" }, func(b *approval.Binding) { b.Policy = "other" },
				func(b *approval.Binding) { b.Profile = "other" }, func(b *approval.Binding) { b.CWD = "/q" },
				func(b *approval.Binding) { b.Server = "other" },
			} {
				q := question()
				change(&q.Binding)
				other := ask(t, a, q)
				if other.ID() == first.ID() || other.IsSettled() || other.Parent() != "" {
					t.Errorf("%+v has the answer to another question", q.Binding)
				}
				other.Leave()
			}
			second := ask(t, a, question())
			if second.ID() != first.ID() || second.Parent() != "inv_1" || second.IsSettled() != meanwhile || second.Expires() != first.Expires() {
				t.Fatalf("%s of %q, settled %t", second.ID(), second.Parent(), second.IsSettled())
			}
			if !meanwhile {
				answer()
			}
			if got, err := second.Redeem(binding()); err != nil || got.Choice != policy.AllowOnce {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := first.Redeem(binding()); !errors.Is(err, approval.ErrCanceled) {
				t.Errorf("who has yielded redeems: %v", err)
			}
			if third := ask(t, a, question()); third.ID() == first.ID() || third.IsSettled() {
				t.Error("the answer counts twice")
			}
		})
	}
}

// What was yielded ends with the time of its question, answered or not, and then the caller's place is free again.
func TestYieldedPlacesExpire(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := approval.New(approval.Options{Timeout: time.Minute})
			defer a.Close()
			first, second := ask(t, a, question()), ask(t, a, question())
			if !first.Yield("inv_1") || !second.Yield("inv_2") {
				t.Fatal("not yielded")
			}
			if open := a.List(); len(open) != 1 || open[0].Waiting != 2 {
				t.Errorf("open: %+v", open)
			}
			if answered {
				if err := a.Answer(first.ID(), once()); err != nil {
					t.Fatal(err)
				}
			}
			if again := ask(t, a, question()); again.Parent() != "inv_1" || again.IsSettled() != answered {
				t.Errorf("the oldest first: %q", again.Parent())
			}
			time.Sleep(time.Minute / 2)
			for n := range 249 { // which take all other places of the caller
				q := question()
				q.Binding.Arguments = fmt.Sprint(n)
				ask(t, a, q)
			}
			time.Sleep(time.Minute / 2)
			synctest.Wait()
			if late := ask(t, a, question()); late.ID() == first.ID() || late.Parent() != "" || late.IsSettled() {
				t.Error("the question has outlived its time")
			}
		})
	}
}

// Whoever yields when the answer is there has the answer.
func TestNobodyYieldsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	a := approval.New(approval.Options{})
	defer a.Close()
	ticket := ask(t, a, question())
	if err := a.Answer(ticket.ID(), once()); err != nil {
		t.Fatal(err)
	}
	if ticket.Yield("inv_1") {
		t.Error("yielded")
	}
	if _, err := ticket.Redeem(binding()); err != nil {
		t.Error(err)
	}
}
