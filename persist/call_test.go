package persist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// journaled opens a journal in dir until the test ends.
func journaled(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := Open(JournalConfig{Dir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func begun() *Call {
	var c Call
	c.Begin(CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.s.t", Actor: "actor:cli/ann", Created: time.Now()},
		tool.ExternalMapping{Source: "mcp", Role: "client"})
	return &c
}

// objects reads the objects of the journal in dir by their kinds.
func objects(t testing.TB, dir string) map[tool.Object][]json.RawMessage {
	t.Helper()
	all := map[tool.Object][]json.RawMessage{}
	if err := Read(dir, func(o json.RawMessage) bool { keep(t, all, o); return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

func keep(t testing.TB, all map[tool.Object][]json.RawMessage, object json.RawMessage) {
	t.Helper()
	var head tool.Head
	if err := json.Unmarshal(object, &head); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	all[head.Object] = append(all[head.Object], object)
}

// TestObjectsOfACallAreComplete fills what a call record holds at random, by reflection, so that it also covers members that
// are added later, and compares what is read with encoding/json.
func TestObjectsOfACallAreComplete(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 1000 {
		var (
			d       tool.PermissionDecision
			m       tool.InputMutation
			mapping tool.ExternalMapping
			failure tool.Error
			in      CallInput
			end     CallEnd
		)
		for _, v := range []any{&d, &m, &mapping, &failure, &in, &end} {
			for i := range reflect.ValueOf(v).Elem().NumField() {
				fill(random, reflect.ValueOf(v).Elem().Field(i))
			}
		}
		if !json.Valid(failure.NativeErrorRef) { // which is the hub's own
			failure.NativeErrorRef = nil
		}
		c := begun()
		c.Created = c.Created.Truncate(time.Microsecond).UTC()
		at := c.Created.Add(time.Millisecond)
		c.Input = in
		if d.ExpiresAt != nil {
			d.ExpiresAt = new(d.ExpiresAt.UTC()) // as all times are when they are read
		}
		c.Decide(&d, at)
		c.Mutate(&m, in.Model, in.ModelRef, at)
		c.Answered(mapping, at)
		c.Move(tool.StatusFailed, at)
		end.At, end.Error = at, &failure
		line, _, err := c.line(&end)
		if err != nil {
			refused++
			continue
		}
		got := map[tool.Object][]json.RawMessage{}
		reader := deriver{open: map[tool.InvocationID]*derivation{}}
		if _, err := reader.line(line, func(o json.RawMessage) bool { keep(t, got, o); return true }); err != nil {
			t.Fatal(err)
		}
		same(t, got[tool.ObjectPermissionDecision][0], tool.PermissionDecisionRecord{Head: tool.HeadOf(tool.ObjectPermissionDecision),
			DecisionID: tool.DecisionID(derivedID("dec_", c.Invocation, 1)), InvocationID: c.Invocation, ToolID: c.Tool, ActorRef: c.Actor,
			PermissionDecision: d, DecidedAt: at})
		same(t, got[tool.ObjectInputMutation][0], tool.InputMutationRecord{Head: tool.HeadOf(tool.ObjectInputMutation),
			MutationID: tool.MutationID(derivedID("mut_", c.Invocation, 2)), InvocationID: c.Invocation, InputMutation: m, CreatedAt: at})
		var r tool.Result
		var inv tool.Invocation
		decodeInto(t, got[tool.ObjectResult][0], &r)
		decodeInto(t, got[tool.ObjectInvocation][0], &inv)
		same(t, encoded(t, r.Error), failure)
		same(t, encoded(t, inv.ExternalMappings[1]), mapping)
		same(t, encoded(t, CallInput{inv.ModelInput, inv.ModelInputRef, inv.ObservableInput}), in)
		same(t, encoded(t, CallInput{inv.PermissionInput, inv.PermissionInputRef, nil}), CallInput{in.Model, in.ModelRef, nil})
		want := end.CallResult
		want.Redacted, want.Detected = 0, 0
		if (r.Redaction == tool.Redacted) != (end.Redacted > 0) {
			t.Errorf("%d secrets redacted: %s", end.Redacted, r.Redaction)
		}
		want.Summary = failure.Message
		same(t, encoded(t, CallResult{r.Content, r.StructuredContent, r.ContentRef, r.Summary, r.Output, 0, 0, want.Unmodified}), want)
	}
	if refused > 500 {
		t.Errorf("%d of 1000 are refused: too few are compared", refused)
	}
}

func decodeInto(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	text, err := standard(v)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// same compares an object with a value, whatever the order of members.
func same(t *testing.T, got []byte, want any) {
	t.Helper()
	var a, b any
	for _, c := range []struct {
		text []byte
		into *any
	}{{got, &a}, {encoded(t, want), &b}} {
		d := json.NewDecoder(bytes.NewReader(c.text))
		d.UseNumber()
		if err := d.Decode(c.into); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("\ngot  %s\nwant %s", encoded(t, a), encoded(t, b))
	}
}

// A call that reports much writes its steps as they come, and not again with its end. Nothing is missing, and nothing there
// twice.
func TestManySteps(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), begun()
	j := journaled(t, dir)
	const reports = 400
	for range reports {
		c.Progress(strings.Repeat("x", 100), nil, time.Now())
		if err := j.Note(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if len(c.text) > stepBytes+200 {
			t.Fatalf("%d bytes of steps are held", len(c.text))
		}
	}
	if err := j.End(t.Context(), c, &CallEnd{At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := j.Note(t.Context(), c); err != nil { // nothing follows the end
		t.Fatal(err)
	}
	got := objects(t, dir)
	if n := len(got[tool.ObjectProgress]); n != reports || len(got[tool.ObjectResult]) != 1 {
		t.Errorf("%d reports, %d results", n, len(got[tool.ObjectResult]))
	}
	var last tool.ProgressRecord
	decodeInto(t, got[tool.ObjectProgress][reports-1], &last)
	if last.Sequence != reports {
		t.Errorf("the last one is %+v", last)
	}
}

// What stands in a file that looks like a call record and is none is reported, and all else is read.
func TestBrokenCallRecords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"object":"call_record","version":2}`:                                                    "version 2",
		`{"object":"call_record","version":1,"steps":{}}`:                                         "no call record",
		`{"object":"call_record","version":1,"steps":[[]]}`:                                       "step 0",
		`{"object":"call_record","version":1,"from":7,"steps":[["planned"]]}`:                     "step 7",
		`{"object":"call_record","version":1,"steps":[["decision",1,7]]}`:                         "step 0",
		`{"object":"call_record","version":1,"ended_us":1,"steps":[["mutation",1,{"reason":7}]]}`: "cannot be read",
	} {
		dir := t.TempDir()
		j := journaled(t, dir)
		first, second := begun(), begun()
		for _, c := range []*Call{first, second} {
			if err := j.End(t.Context(), c, &CallEnd{At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if c == first {
				if _, err := j.files.current.WriteAt([]byte(line+"\n"), j.files.size); err != nil {
					t.Fatal(err)
				}
				j.files.size += int64(len(line) + 1)
			}
		}
		results := 0
		err := Read(dir, func(o json.RawMessage) bool {
			if bytes.Contains(o, []byte(`"object":"tool_result"`)) {
				results++
			}
			return true
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ", byte ") || results != 2 {
			t.Errorf("%s: %d results, %v", line, results, err)
		}
	}
}

// FuzzRead: whatever stands in a journal, reading it ends, and what it yields is JSON.
func FuzzRead(f *testing.F) {
	c := begun()
	c.Decide(&tool.PermissionDecision{Behavior: tool.Ask}, time.Now())
	c.Ask("apr_x", "", time.Now())
	line, _, _ := c.line(&CallEnd{At: time.Now()})
	f.Add(line)
	f.Add([]byte(`{"object":"call_record","version":1,"from":-3,"steps":[["awaiting_approval",0],["record",1,{}],["decision",2,{}]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if !json.Valid(line) {
			return
		}
		d := deriver{open: map[tool.InvocationID]*derivation{}}
		for range 2 {
			_, _ = d.line(line, func(o json.RawMessage) bool {
				if !json.Valid(o) {
					t.Errorf("%q yields %q", line, o)
				}
				return true
			})
		}
	})
}

// A disk that hangs holds nobody for longer than 10 s.
func TestAHangingDiskHoldsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journaled(t, t.TempDir())
		j.mu.Lock()
		j.writer = true // and never writes
		j.mu.Unlock()
		end := func(after time.Duration, took chan<- time.Duration) {
			time.Sleep(after)
			began := time.Now()
			if err := j.End(t.Context(), begun(), &CallEnd{At: began}); !errors.Is(err, errLate) {
				t.Errorf("error %v", err)
			}
			took <- time.Since(began)
		}
		took := make(chan time.Duration, 20)
		for i := range cap(took) {
			go end(time.Duration(i)*100*time.Millisecond, took)
		}
		for range cap(took) {
			if d := <-took; d < 8*time.Second || d > 11*time.Second {
				t.Errorf("held for %v", d)
			}
		}
		j.write() // the disk is back, and what was late is written all the same
		if err := j.End(t.Context(), begun(), &CallEnd{At: time.Now()}); err != nil {
			t.Error(err)
		}
		if n := len(objects(t, j.files.cfg.Dir)[tool.ObjectResult]); n != cap(took)+1 {
			t.Errorf("%d results", n)
		}
	})
}

// Callers that give up while they wait leave nobody without a writer.
func TestCallersThatGiveUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := journaled(t, dir)
	var wg sync.WaitGroup
	var kept atomic.Int32
	for caller := range 64 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for range 40 {
				if random.IntN(2) == 0 {
					if err := j.End(t.Context(), begun(), &CallEnd{At: time.Now()}); err != nil {
						t.Error(err)
					}
					kept.Add(1)
					continue
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Microsecond)
				_ = j.Commit(ctx, tool.Event{Head: tool.HeadOf(tool.ObjectEvent)})
				cancel()
			}
		})
	}
	wg.Wait()
	if n := len(objects(t, dir)[tool.ObjectResult]); n != int(kept.Load()) {
		t.Errorf("%d results of %d", n, kept.Load())
	}
}

// An ask that nothing has answered is closed by the next decision, or by the end of its call, however that ended. A call that asked nobody has
// no such decision.
func TestAsksAreClosed(t *testing.T) {
	t.Parallel()
	ask, allow := &tool.PermissionDecision{Behavior: tool.Ask, Mode: "default"}, &tool.PermissionDecision{Behavior: tool.Allow}
	for _, c := range []struct {
		decisions []*tool.PermissionDecision
		want      string // behaviors, and the step of the decision that each closes
	}{
		{nil, ""},
		{[]*tool.PermissionDecision{allow}, "allow"},
		{[]*tool.PermissionDecision{ask, allow}, "ask allow 1"},
		{[]*tool.PermissionDecision{ask}, "ask deny 1"},
		{[]*tool.PermissionDecision{ask, ask}, "ask ask 1 deny 2"}, // the question changed
		{[]*tool.PermissionDecision{ask, allow, ask}, "ask allow 1 ask deny 3"},
	} {
		for _, ended := range []tool.Status{tool.StatusCanceled, tool.StatusYielded, tool.StatusFailed, tool.StatusTimedOut} {
			call, at := begun(), time.Now()
			for _, d := range c.decisions {
				call.Decide(d, at)
			}
			call.Move(ended, at)
			line, _, err := call.line(&CallEnd{At: at})
			if err != nil {
				t.Fatal(err)
			}
			var got, said []string
			var decided []tool.DecisionID
			var inv tool.Invocation
			reader := deriver{open: map[tool.InvocationID]*derivation{}}
			_, err = reader.line(line, func(o json.RawMessage) bool {
				var r tool.PermissionDecisionRecord
				var e tool.Event
				var head tool.Head
				switch decodeInto(t, o, &head); head.Object {
				case tool.ObjectPermissionDecision:
					decodeInto(t, o, &r)
					decided, got = append(decided, r.DecisionID), append(got, string(r.Behavior))
					if _, step, ok := strings.Cut(string(r.Closes), "."); ok {
						got = append(got, step)
					}
					if r.Source == sourceCallEnded && (r.ExpiresAt != nil || r.Mode != "default" || r.DecidedAt.IsZero()) {
						t.Errorf("the closing decision is %s", o)
					}
				case tool.ObjectEvent:
					if decodeInto(t, o, &e); strings.HasPrefix(string(e.EventType), "tool.permission.") {
						said = append(said, fmt.Sprint(e.Data["decision_id"]))
					}
				case tool.ObjectInvocation:
					decodeInto(t, o, &inv)
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(got, " "); text != c.want || !reflect.DeepEqual(inv.PermissionDecisions, decided) || len(said) != len(decided) {
				t.Errorf("%s: decisions %q, want %q; the invocation names %v of %v, events %v", ended, text, c.want, inv.PermissionDecisions, decided, said)
			}
		}
	}
}

// What a call was asked with masks what the server says, and nothing that the hub itself writes: a caller may choose "behavior" as its password.
func TestLearnedSecretsAreMaskedInTheServersWords(t *testing.T) {
	t.Parallel()
	c := begun()
	c.Secrets = secret.New([]byte("key"))
	_, learned := c.Learned().Learn([]byte(`{"password":"behavior","passwords":["progress"],"token":"accept_all"}`), false)
	c.Mask(learned)
	now := time.Now()
	c.Decide(&tool.PermissionDecision{Behavior: "allow", Mode: "accept_all"}, now)
	c.Progress("what a behavior", nil, now)
	end := &CallEnd{At: now, CallResult: CallResult{Content: []byte(`[{"type":"text","text":"no behavior","behavior":1}]`)}, Error: &tool.Error{Message: "bad behavior"}}
	c.redact(end)
	if text := string(bytes.Join([][]byte{c.text, end.Content, []byte(end.Error.Message)}, nil)); strings.Count(text, "[masked:") != 3 ||
		!strings.Contains(text, `"behavior":"allow","mode":"accept_all"`) || !strings.Contains(text, `{"message":"what a [masked:`) ||
		!strings.Contains(text, `","behavior":1}]`) || end.Redacted != 2 {
		t.Errorf("%d: %s", end.Redacted, text)
	}
}
