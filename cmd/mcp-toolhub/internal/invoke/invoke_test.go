package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// executorFunc is the far side of the pipeline.
type executorFunc func(context.Context, *tool.Execution) (tool.Reply, error)

func (f executorFunc) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	return f(ctx, e)
}

// around stands for the hub around a pipeline.
type around struct {
	gate  func() *gate.Gate
	hooks *hook.Set
	open  bool // the queue
}

func (a *around) Gate() *gate.Gate                                            { return a.gate() }
func (a *around) Hooks() *hook.Set                                            { return a.hooks }
func (*around) Limits(string) Limits                                          { return Limits{} }
func (*around) Present(t *tool.Tool) *tool.Tool                               { return t }
func (a *around) QueueOpen() bool                                             { return a.open }
func (*around) CommandLine(words string) string                               { return "mcp-toolhub " + words }
func (*around) Announce(context.Context, string, approval.View)               {}
func (*around) Offer(context.Context, *policy.Request) *policy.SuggestedGrant { return nil }

// Limits are those of every server.
func (l Limits) Limits(string) Limits { return l }

// bench is a pipeline over a real journal, with one tool mcp.s.t.
type bench struct {
	*Pipeline
	around  *around
	surface *tool.Surface
	dir     string
	journal *persist.Journal
	log     *bytes.Buffer
}

func newBench(t testing.TB, validate tool.Validate, ex executorFunc) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), log: &bytes.Buffer{}}
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	var err error
	if b.journal, err = persist.Open(persist.JournalConfig{Dir: b.dir}, logger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.journal.Close() })
	input := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	listed := []tool.Listed{{Name: "mcp.s.t", Tool: &tool.Tool{Name: "mcp.s.t", Server: "s", Native: "t", Validate: validate,
		InputSchema: input, SchemaDigest: tool.Digest(input)}}}
	b.surface = tool.NewSurface("srf_x", "default", "canonical", "x", listed, nil, map[string]int{"mcp.s.t": 0, "s__t": 0})
	b.around = &around{gate: acceptAll(t)}
	b.Pipeline, err = New(Options{Executors: map[string]Executor{"mcp": ex}, Settings: b.around, People: b.around, Journal: b.journal,
		Schemas: schema.NewCache(10), Logger: logger, Key: make([]byte, seal.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) call(ctx context.Context, name, args string) Outcome {
	return b.Invoke(ctx, b.callOf(name, args))
}

func (b *bench) callOf(name, args string) *Call {
	return &Call{Surface: b.surface, Name: name, Params: json.RawMessage(`{"name":"x"}`), Arguments: json.RawMessage(args),
		NativeCallID: json.RawMessage(`1e3`), Method: "tools/call", Actor: tool.Actor{Name: "ann", Door: "http"}}
}

// records reads the journal back, after everything was written.
func (b *bench) records(t testing.TB) []map[string]any {
	t.Helper()
	if err := b.journal.Close(); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	err := persist.Read(b.dir, func(line json.RawMessage) bool {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Errorf("journal line %s: %v", line, err)
		}
		if !ofTool(line) {
			all = append(all, r)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ofTool reports whether an object is one of those that calls name: it declares a tool, or is a policy.
func ofTool(object []byte) bool {
	var o struct {
		Object tool.Object    `json:"object"`
		Type   tool.EventType `json:"event_type"`
	}
	if json.Unmarshal(object, &o) != nil {
		return false
	}
	switch o.Object {
	case tool.ObjectNamespace, tool.ObjectDeclaration, tool.ObjectInterface, tool.ObjectExecutionProfile, tool.ObjectPermissionProfile,
		tool.ObjectSchedulerPolicy, tool.ObjectPolicy:
		return true
	}
	return o.Type == tool.EventToolDeclared
}

// ofCalls counts a line of the journal that is one of a call.
func ofCalls(line []byte) int {
	if bytes.HasPrefix(line, []byte(`{"object":"`+persist.ObjectCall)) {
		return 1
	}
	return 0
}

func ok(result string) executorFunc {
	return func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(result)}, nil
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	rpc := &tool.RPCError{Code: -32099, Message: "no", Raw: json.RawMessage(`{"code":-32099,"message":"no","x":1}`)}
	for _, c := range []struct {
		name, tool, args string
		ex               executorFunc
		status           tool.Status
		class            tool.ErrorClass
		result           string // contained in the result
		rpc              string // contained in the JSON-RPC error
		ran              bool
	}{
		{"succeeds", "mcp.s.t", `{"n":1}`, ok(`{"content":[]}`), tool.StatusSucceeded, "", `{"content":[]}`, "", true},
		{"by another name", "s__t", `{"n":1}`, ok(`{"content":[]}`), tool.StatusSucceeded, "", `{"content":[]}`, "", true},
		{"isError", "mcp.s.t", `{"n":1}`, ok(`{"content":[],"isError":true}`), tool.StatusFailed, tool.ClassExecutionFailed, `"isError":true`, "", true},
		{"unknown tool", "mcp.s.other", `{"n":1}`, ok(`{}`), tool.StatusFailed, tool.ClassUnknownTool, "", `unknown tool "mcp.s.other": list the tools and use a name from there`, false},
		{"arguments are no object", "mcp.s.t", `[1]`, ok(`{}`), tool.StatusValidationFailed, tool.ClassInvalidArguments, "", "must be a JSON object", false},
		{"arguments do not fit", "mcp.s.t", `{"n":"x"}`, ok(`{}`), tool.StatusValidationFailed, tool.ClassSchemaValidationFailed, `"isError":true`, "", false},
		{"arguments are missing", "mcp.s.t", ``, ok(`{}`), tool.StatusValidationFailed, tool.ClassSchemaValidationFailed, `n`, "", false},
		{"upstream's JSON-RPC error", "mcp.s.t", `{"n":1}`, func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{}, fmt.Errorf("call: %w", rpc)
		}, tool.StatusFailed, tool.ClassExecutionFailed, "", "no", true},
		{"server down", "mcp.s.t", `{"n":1}`, func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{}, &tool.Failure{Class: tool.ClassDependencyUnavailable, Message: "it is down", Cause: errors.New("secret cause")}
		}, tool.StatusFailed, tool.ClassDependencyUnavailable, "it is down", "", true},
		{"timeout", "mcp.s.t", `{"n":1}`, func(context.Context, *tool.Execution) (tool.Reply, error) {
			return tool.Reply{}, &tool.Failure{Class: tool.ClassTimeout, Message: "too slow", OutcomeUnknown: true}
		}, tool.StatusTimedOut, tool.ClassTimeout, "too slow", "", true},
		{"panic", "mcp.s.t", `{"n":1}`, func(context.Context, *tool.Execution) (tool.Reply, error) { panic("boom") },
			tool.StatusFailed, tool.ClassExecutionFailed, "the hub failed", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ran := false
			b := newBench(t, tool.ValidateReject, func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
				ran = true
				return c.ex(ctx, e)
			})
			out := b.call(t.Context(), c.tool, c.args)
			if out.Status != c.status || out.Class != c.class || ran != c.ran {
				t.Errorf("status %s, class %s, ran %v; want %s, %s, %v", out.Status, out.Class, ran, c.status, c.class, c.ran)
			}
			if (out.Err == nil) != (c.rpc == "") || (out.Result == nil) != (c.rpc != "") {
				t.Fatalf("outcome %+v has not exactly one of result and error", out)
			}
			if c.rpc != "" && !strings.Contains(out.Err.Message, c.rpc) || !strings.Contains(string(out.Result), c.result) {
				t.Errorf("result %s, error %v", out.Result, out.Err)
			}
			if strings.Contains(string(out.Result), "secret cause") {
				t.Errorf("the cause reached the client: %s", out.Result)
			}
			checkRecords(t, b, out, c.ran)
		})
	}
}

// checkRecords holds what is true of every invocation: one terminal result, the invocation under one id, and a trace
// before execution.
func checkRecords(t *testing.T, b *bench, out Outcome, ran bool) {
	t.Helper()
	var results, invocations []map[string]any
	for _, r := range b.records(t) {
		validateRecord(t, r)
		if id := r["invocation_id"]; id != string(out.InvocationID) {
			t.Errorf("record of another invocation %v", id)
		}
		switch r["object"] {
		case "tool_result":
			results = append(results, r)
		case "tool_invocation":
			invocations = append(invocations, r)
		}
	}
	if len(results) != 1 || results[0]["status"] != string(out.Status) {
		t.Fatalf("results in the journal: %v", results)
	}
	last := invocations[len(invocations)-1]
	if want := map[bool]int{true: 2, false: 1}[ran]; len(invocations) != want || last["ended_at"] == nil || last["native_call_id"] != "1e3" {
		t.Errorf("invocations in the journal: %v", invocations)
	}
}

func TestValidateModes(t *testing.T) {
	t.Parallel()
	for mode, status := range map[tool.Validate]tool.Status{
		"": tool.StatusValidationFailed, tool.ValidateReject: tool.StatusValidationFailed,
		tool.ValidateWarn: tool.StatusSucceeded, tool.ValidateOff: tool.StatusSucceeded,
	} {
		b := newBench(t, mode, ok(`{"content":[]}`))
		if out := b.call(t.Context(), "mcp.s.t", `{"n":"x"}`); out.Status != status {
			t.Errorf("validate %q: status %s, want %s", mode, out.Status, status)
		}
		warned := false
		for _, r := range b.records(t) {
			warned = warned || r["event_type"] == string(tool.EventInvocationValidationFailed)
		}
		if warned != (mode != tool.ValidateOff) {
			t.Errorf("validate %q: validation event %v", mode, warned)
		}
	}
}

func TestCancelWhileQueued(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	b := newBench(t, tool.ValidateOff, func(context.Context, *tool.Execution) (tool.Reply, error) {
		close(inside)
		<-leave
		return tool.Reply{Result: json.RawMessage(`{}`)}, nil
	})
	b.scheduler = narrow(1, 1)
	var first sync.WaitGroup
	first.Go(func() { b.call(t.Context(), "mcp.s.t", `{}`) })
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := b.call(ctx, "mcp.s.t", `{}`); out.Status != tool.StatusCanceled {
		t.Errorf("status %s, want canceled", out.Status)
	}
	close(leave)
	first.Wait()
}

func TestProgressIsOrderedAndEndsWithTheCall(t *testing.T) {
	t.Parallel()
	var late func(tool.Progress)
	b := newBench(t, tool.ValidateOff, func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		for i := range 3 {
			e.Progress(tool.Progress{Params: json.RawMessage(fmt.Sprintf(`{"progress":%d,"total":3,"message":"m"}`, i+1))})
		}
		late = e.Progress
		return tool.Reply{Result: json.RawMessage(`{}`)}, nil
	})
	var got []string
	b.Invoke(t.Context(), &Call{Surface: b.surface, Name: "mcp.s.t", Params: json.RawMessage(`{}`),
		Progress: func(p tool.Progress) { got = append(got, string(p.Params)) }})
	late(tool.Progress{Params: json.RawMessage(`{"progress":4}`)})
	want := []string{`{"progress":1,"total":3,"message":"m"}`, `{"progress":2,"total":3,"message":"m"}`, `{"progress":3,"total":3,"message":"m"}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("progress %q, want %q", got, want)
	}
}

func TestLargePayloadsAreReferenced(t *testing.T) {
	t.Parallel()
	big := `{"content":[{"type":"text","text":"` + strings.Repeat("x", persist.InlineLimit) + `"}]}`
	b := newBench(t, tool.ValidateOff, ok(big))
	args := `{"n":"` + strings.Repeat("y", persist.InlineLimit) + `"}`
	if out := b.call(t.Context(), "mcp.s.t", args); string(out.Result) != big {
		t.Error("the result changed on its way")
	}
	for _, r := range b.records(t) {
		validateRecord(t, r)
		if r["model_input"] != nil || r["content"] != nil {
			t.Errorf("a large payload stands in the journal: %.200v", r)
		}
		if r["object"] == "tool_result" && r["content_ref"] != persist.Ref(json.RawMessage(big)) {
			t.Errorf("content_ref %v", r["content_ref"])
		}
	}
}

// FuzzObjects: whatever a server calls content, the record holds an array of objects.
func FuzzObjects(f *testing.F) {
	for _, s := range []string{`[]`, `[{"type":"text"}]`, `[1,"a",null,{}]`, `{}`, `null`, `[`, `"x"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		out := objects(content)
		if out == nil {
			return
		}
		var got []map[string]json.RawMessage
		if err := json.Unmarshal(out, &got); err != nil {
			t.Errorf("objects(%q) = %q: %v", content, out, err)
		}
	})
}

// validateRecord checks a record against the standard's own schema.
func validateRecord(t testing.TB, r map[string]any) {
	t.Helper()
	file := map[any]string{"tool_invocation": "invocation", "tool_result": "result", "tool_event": "event", "tool_progress": "progress",
		"tool_permission_decision": "permission-decision", "tool_input_mutation": "input-mutation"}[r["object"]]
	if file == "" {
		t.Fatalf("a record of no kind that is known: %v", r)
	}
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "agenttool", "schemas")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Logf("the standard's schemas are not beside the project: %v", err)
		return
	}
	raw, err := os.ReadFile(filepath.Join(dir, "agenttool-"+file+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(text); err != nil {
		t.Errorf("record %s: %v", text, err)
	}
	if !rawjson.Valid(text) {
		t.Errorf("record %s is no JSON", text)
	}
}

func BenchmarkInvoke(b *testing.B) {
	p := newBench(b, tool.ValidateReject, ok(`{"content":[{"type":"text","text":"3"}]}`))
	b.ReportAllocs()
	for b.Loop() {
		p.call(b.Context(), "mcp.s.t", `{"n":1}`)
	}
}

func BenchmarkInvokeParallel(b *testing.B) {
	p := newBench(b, tool.ValidateReject, ok(`{"content":[{"type":"text","text":"3"}]}`))
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.call(context.Background(), "mcp.s.t", `{"n":1}`)
		}
	})
}

// acceptAll is a gate that allows every call, as the mode of that name does.
func acceptAll(t testing.TB) func() *gate.Gate {
	t.Helper()
	g, err := gate.New(gate.Config{Mode: policy.ModeAcceptAll}, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func() *gate.Gate { return g }
}
